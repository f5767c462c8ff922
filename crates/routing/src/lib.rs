//! HTTP and TCP routers that take their routes from the wire: NATS messages, the routing
//! API, a file.
//!
//! ```text
//! registry (NATS, file) ──▶ table ◀── http (thread per core) ──▶ backends
//! api_feed (routing API) ──▶ table, tcp (thread per core) ─────▶ backends
//! ```
//!
//! `table`, `selection`, `http::pipeline` and the messages of `registry` do no I/O: time
//! and randomness come in as arguments. What crosses a wire follows gorouter, routing-api
//! and cf-tcp-router exactly; each module names the facts that it keeps.
//!
//! # What always holds
//!
//! - A request waits for no registration. Lookups read what is immutable or atomic; writers never
//!   hold up readers. The data path takes no lock, and allocates nothing for a plain request once its
//!   buffers have grown.
//! - One pipeline: HTTP/1.1 and HTTP/2, TLS or not, go through the same pure `http::pipeline`, which
//!   is what the recordings of gorouter are replayed against.

pub mod api_feed;
mod descriptors;
pub mod http;
mod peer_tls;
pub mod registry;
pub mod selection;
mod settings_keys;
pub mod table;
pub mod tcp;
