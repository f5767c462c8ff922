//! HTTP for control planes: servers with limits, pooled clients, streams of events, and
//! TLS.
//!
//! Data paths (load, routing) do not use this crate; they count every
//! microsecond and have loops of their own. Control planes want safety first:
//! every connection, head, body and wait has a bound here, so that a slow or
//! hostile peer costs one connection and never the service.

mod body;
mod client;
mod dial;
pub mod events;
mod http2_client;
mod room;
mod server;
mod stall;
pub mod tls;

pub use body::{Body, BodyError, empty, full, plain_text, read_body, response, stream};
pub use client::{Answer, Client, ClientError, ClientOptions};
pub use http2_client::{Http2Answer, http2_exchange};
pub use hyper::body::Incoming;
pub use room::{BodyReadError, Held, Room};
pub use server::{
    ConnectionFailure, Handler, Limits, PeerCertificate, Shutdown, bind, serve, serve_http2,
    shutdown,
};

/// A future that is compiled in the crate that makes it. Those of an `async fn` are compiled, with
/// everything that they spawn, by each program that awaits them.
pub type BoxFuture<T> = std::pin::Pin<Box<dyn Future<Output = T> + Send>>;

/// A future without its type, for a task. What tokio does for a task is compiled again for
/// every type of future and kind of runtime.
pub fn boxed<T>(future: impl Future<Output = T> + Send + 'static) -> BoxFuture<T> {
    Box::pin(future)
}

/// As [`boxed`], for the future that a program waits for: it may borrow.
pub fn local<'a, T>(
    future: impl Future<Output = T> + 'a,
) -> std::pin::Pin<Box<dyn Future<Output = T> + 'a>> {
    Box::pin(future)
}
