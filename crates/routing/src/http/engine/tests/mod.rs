//! The engine over real sockets, between scripted backends and clients.

mod bench;
mod bodies;
mod envelopes;
mod faults;
mod hairpin;
mod hostile;
mod http2;
mod identity;
mod large_heads;
mod malformed_http2;
mod mishaps;
mod moves;
mod reload;
mod requests;
mod time_limits;
pub(super) mod tls;
