//! HTTP/2 (RFC 9113) for clients and servers that have their own event loop.
//!
//! The protocol is the `h2` crate's; here is what joins it to a socket in non-blocking
//! mode and to a loop that knows only readiness. There is no runtime and no task: a
//! connection works within its `drive` and nowhere else.
//!
//! ```text
//! readiness ──▶ drive ──▶ what came ──▶ requests, answers ──▶ drive ──▶ rewatch
//! ```
//!
//! There are two kinds of connection, [`Client`] and [`Server`], whose streams are handed
//! out part by part. [`Exchanges`] and [`Serving`] keep these parts until a message is
//! whole; [`gateway`] turns them into bytes of HTTP/1.1 and back. Of what a peer sends, the
//! heads are read before the codec reads them, so that a malformed one costs its stream only.

mod answer;
mod client;
mod driver;
mod error;
mod exchanges;
pub mod gateway;
pub mod grpc;
mod io;
mod malformed;
mod payload;
mod server;
mod serving;
mod slots;
#[cfg(test)]
mod tests;

pub use answer::Answer;
pub use client::{Client, ClientSettings};
pub use driver::Progress;
pub use error::{Http2Error, StreamError};
pub use exchanges::Exchanges;
pub use h2::Reason;
pub use payload::Payload;
pub use server::{Accepted, Server, ServerSettings};
pub use serving::{Asked, Served, Serving};
pub use slots::StreamKey;
