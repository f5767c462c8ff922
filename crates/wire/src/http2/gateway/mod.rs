//! Streams of HTTP/2 as connections of HTTP/1.1, for whoever speaks only that.
//!
//! ```text
//! client ── h2 ──▶ Server ──▶ ServerStream, HTTP/1.1 ──▶ router ──▶ ClientStream ──▶ Backend ── h2 ──▶ backend
//! ```
//!
//! A [`ServerStream`] is a connection of HTTP/1.1 for a stream that a client opens. A
//! [`ClientStream`] is one to a server, whose requests come one after the other, and each
//! become a stream. Both are [`Carried`](crate::stream::Carried): they have no descriptor,
//! and are translated when they are sent to and received from. Bodies are streamed both
//! ways: nobody is read from faster than the other side takes it, and a side that gives up
//! is told to the other. Trailers and interim answers pass.

mod client_stream;
mod head_budget;
mod heads;
mod inward;
mod outward;
mod server_stream;
#[cfg(test)]
mod tests;

pub use client_stream::{Backend, ClientStream};
pub use head_budget::HeadBudget;
pub use server_stream::{OpenStreams, ServerStream};

use crate::http1::{Limits, MOST_FIELDS};

/// Bytes that are kept for one direction of one stream before no more is read.
const ROOM: usize = 64 * 1024;

/// Both sides have bounded their heads before.
const LIMITS: Limits = Limits {
    head_bytes: 2 * 1024 * 1024,
    fields: MOST_FIELDS,
    ..Limits::DEFAULT
};
