//! The engine over real sockets, between scripted backends and clients.

mod bench;
mod bodies;
mod faults;
mod mishaps;
mod requests;
mod tls;
