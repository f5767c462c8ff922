//! HTTP/2 without sockets: bytes in, bytes out, and what happened.
//!
//! A [`Connection`] is one side of a connection. What it received is looked at stream by
//! stream, what it has to send is taken as bytes. It knows no time, and nobody waits in it.
//!
//! ```text
//! bytes ──▶ receive ──▶ touched, opened ──▶ head, body, trailers of a stream
//! head, data, trailers of a stream ──▶ out ──▶ bytes
//! ```
//!
//! What holds:
//! - A message that breaks a rule costs its stream, and the table of compressed fields stays
//!   the peer's. What cannot be read ends the connection.
//! - Nothing grows with what a peer sends but up to a bound: bodies are bounded by windows,
//!   heads by what one may have and by how many wait, what is to be sent by
//!   [`Settings::out_bytes`], beside one answer to each frame of a piece of input.

mod connection;
mod controls;
mod fields;
mod flow;
mod frames;
mod hpack;
mod messages;
mod names;
mod receive;
mod send;
mod streams;
#[cfg(test)]
mod tests;

pub use connection::{Connection, Role, Settings};
pub use fields::{Field, Fields};
pub use hpack::Block;
pub use names::{Kind, is_name, is_of_connection, is_value};
pub use send::Reading;
pub use streams::StreamKey;

/// What is sent when a connection is shut down: once it is answered, all that was on its way is
/// there.
const LAST_PING: &[u8; 8] = b"farewell";
