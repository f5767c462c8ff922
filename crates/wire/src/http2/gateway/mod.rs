//! Streams of HTTP/2 as connections of HTTP/1.1, for whoever speaks only that.
//!
//! ```text
//! client ── h2 ──▶ Front ──▶ pair of sockets, HTTP/1.1 ──▶ router ──▶ pair ──▶ Back ── h2 ──▶ backend
//! ```
//!
//! A [`Front`] gives a connection of HTTP/1.1 for each stream that a client opens. A
//! [`Back`] takes a connection of HTTP/1.1, whose requests come one after the other, and
//! makes each one a stream to a server. Bodies are streamed both ways: nobody is read from
//! faster than the other side takes it, and a side that gives up is told to the other.
//! Trailers and interim answers pass.
//!
//! Both have one descriptor, their own poller's, for the loop that they run in: when it
//! can be read, call `turn`.

mod back;
mod front;
mod head_budget;
mod heads;
mod inward;
mod outward;
#[cfg(test)]
mod tests;

pub use back::Back;
pub use front::Front;
pub use head_budget::HeadBudget;

use crate::poller::{Interest, Poller};
use crate::stream::Stream;

/// Bytes that are kept for one direction of one stream before no more is read.
const ROOM: usize = 64 * 1024;

/// Watches a pair's end for what is wanted of it, if that has changed.
fn watch(
    poller: &Poller,
    stream: &Stream,
    token: u64,
    was: &mut Interest,
    now: Interest,
) -> std::io::Result<()> {
    if *was != now {
        poller.change(stream, token, now)?;
        *was = now;
    }
    Ok(())
}

/// Interest in reading, writing, both or neither.
fn interest(read: bool, write: bool) -> Interest {
    match (read, write) {
        (true, true) => Interest::Both,
        (true, false) => Interest::Read,
        (false, true) => Interest::Write,
        (false, false) => Interest::Nothing,
    }
}
