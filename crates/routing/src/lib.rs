//! HTTP and TCP routers that take their routes from the wire: NATS messages, the routing
//! API, a file.
//!
//! ```text
//! registry (NATS, API, file) ──▶ table ◀── http (thread per core) ──▶ backends
//! api (routing API server) ────▶ tcp (thread per core) ─────────────▶ backends
//! ```
//!
//! `table`, `selection`, `http::pipeline` and the messages of `registry` do no I/O: time
//! and randomness come in as arguments. What crosses a wire follows gorouter, routing-api
//! and cf-tcp-router exactly; each module names the facts that it keeps.

pub mod api;
pub mod backend;
#[cfg(test)]
mod every_key;
pub mod http;
mod peer_tls;
pub mod registry;
pub mod secret;
pub mod selection;
pub mod table;
pub mod tcp;
