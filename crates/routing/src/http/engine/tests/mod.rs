//! The engine over real sockets, between scripted backends and clients.

mod bench;
mod bodies;
mod faults;
mod hairpin;
mod hostile;
mod http2;
mod identity;
mod mishaps;
mod moves;
mod requests;
mod tls;
