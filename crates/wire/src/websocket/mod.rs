//! The client's side of WebSocket (RFC 6455), without extensions.
//!
//! A connection begins as HTTP/1.1: send [`handshake`], scan the answer with
//! [`http1::ResponseScanner`](crate::http1::ResponseScanner), and give its head to
//! [`accept`]. From then on [`encode`] makes frames and a [`FrameScanner`] reads them.

mod encode;
mod error;
mod handshake;
mod scanner;
#[cfg(test)]
mod tests;
mod utf8;

pub use encode::{Frame, encode};
pub use error::WebSocketError;
pub use handshake::{Key, accept, accept_extended, handshake};
pub use scanner::{Event, FrameScan, FrameScanner};

/// Most bytes in a control frame (RFC 6455 section 5.5).
const MOST_CONTROL_BYTES: usize = 125;
