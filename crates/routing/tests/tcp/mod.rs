//! The TCP router with real sockets: changes under load, failures, TLS, drain.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bulk;
mod changes;
mod ends;
mod faults;
pub(crate) mod rig;
pub(crate) mod tls;
