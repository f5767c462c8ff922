//! HTTP/2 (RFC 9113) for clients and servers that have their own event loop.
//!
//! The protocol is in [`codec`], without sockets; here is what joins it to a socket in
//! non-blocking mode and to a loop that knows only readiness. There is no runtime and no
//! task: a connection works within its `drive` and nowhere else.
//!
//! ```text
//! readiness ──▶ drive ──▶ what came ──▶ requests, answers ──▶ drive ──▶ rewatch
//! ```
//!
//! [`Exchanges`] is a client's connection and [`Serving`] a server's, both of whole messages.
//! [`Server`] hands streams out one by one, for the [`gateway`] that turns them into bytes of
//! HTTP/1.1 and back.

mod answer;
mod client;
pub mod codec;
mod error;
mod exchanges;
pub mod gateway;
pub mod grpc;
mod link;
mod maps;
mod payload;
mod reason;
mod server;
mod serving;
mod shared;
#[cfg(test)]
mod tests;

pub use answer::Answer;
pub use client::ClientSettings;
pub use codec::StreamKey;
pub use error::{Http2Error, StreamError};
pub use exchanges::Exchanges;
pub use link::{Carried, Progress};
pub use payload::Payload;
pub use reason::Reason;
pub use server::{Accepted, Server, ServerSettings};
pub use serving::{ReceivedRequest, Served, Serving};
