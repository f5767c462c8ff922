//! HTTP/2 (RFC 9113) for clients and servers that have their own event loop.
//!
//! The protocol is the `h2` crate's; here is what joins it to a socket in non-blocking
//! mode and to a loop that knows only readiness. There is no runtime and no task: a
//! [`Connection`] works within [`Connection::drive`] and nowhere else.
//!
//! ```text
//! readiness ──▶ drive ──▶ finished ──▶ send, cancel ──▶ drive ──▶ wants_write?
//! ```
//!
//! [`Connection`] is a client that keeps whole exchanges, [`Client`] one that streams
//! them. [`Serving`] and [`Server`] are the other sides of both. [`gateway`] turns streams into connections of HTTP/1.1
//! and back.

mod answer;
mod client;
mod connection;
mod driver;
mod error;
pub mod gateway;
pub mod grpc;
mod io;
mod payload;
mod server;
mod serving;
mod slots;
#[cfg(test)]
mod tests;
mod wake;

pub use answer::Answer;
pub use client::{Client, ClientSettings};
pub use connection::Connection;
pub use driver::Progress;
pub use error::{Http2Error, StreamError};
pub use h2::Reason;
pub use payload::Payload;
pub use server::{Accepted, Server, ServerSettings};
pub use serving::{Asked, Served, Serving};
pub use slots::StreamKey;

/// How a connection behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Most streams open at once; the peer may allow fewer. Default 100.
    pub streams: usize,
    /// Streams opened before the peer has said how many it allows; with 0, requests wait
    /// for its first word, and none is refused for being one too many. Default 100.
    pub early_streams: usize,
    /// Bytes that the peer may send ahead on one stream. Default and most 2^31 - 1: the
    /// window is never what limits a load.
    pub stream_window: u32,
    /// The same for the connection.
    pub connection_window: u32,
    /// Bytes of one answer's fields, as RFC 9113 section 6.5.2 counts them, and of its
    /// trailers. Default 64 KiB.
    pub head_bytes: u32,
    /// Bytes read in one [`Connection::drive`] before it returns
    /// [`Progress::More`]. Default 1 MiB.
    pub read_budget: usize,
    /// A read that gives fewer bytes than asked for has emptied the socket, so that
    /// nobody asks again before the next readiness. True of plain TCP, where it saves a
    /// system call; not of TLS. Default false.
    pub short_read_drains: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            streams: 100,
            early_streams: 100,
            stream_window: i32::MAX as u32,
            connection_window: i32::MAX as u32,
            head_bytes: 64 * 1024,
            read_budget: 1024 * 1024,
            short_read_drains: false,
        }
    }
}
