//! The core NATS protocol: a client whose queues have bounds, and an endpoint that a
//! process can embed so that one machine needs no server.
//!
//! ```text
//! client ── codec ──▶ nats-server, or server (this crate) ── codec ──▶ client
//! ```
//!
//! `codec` and `subject` are pure. Neither JetStream nor clusters are here: registrations
//! of routes are plain messages that are sent again and again.

pub mod client;
pub mod codec;
mod password;
pub mod server;
mod stream;
pub mod subject;

pub use password::Password;
