//! HTTP/2 and gRPC at both edges, many streams to a connection.
//!
//! ```text
//! caller ══▶ front: a flight for each stream          channel ══▶ callee
//! ```
//!
//! A service that speaks HTTP/2 or gRPC does so from the first byte (RFC 9113 section
//! 3.3). Its callers keep one connection to each of its instances, a channel, which
//! carries as many calls at a time as the edge has connections; a cold edge makes a
//! channel for each call.

mod calling;
mod channel;
mod front;
mod grpc;
mod message;

pub(super) use channel::Channel;
pub(super) use front::Front;
pub(super) use message::Body as StreamBody;

use std::io;
use std::os::fd::OwnedFd;

use wire::poller::{Interest, Poller};
use wire::stream::Stream;

use super::token::Token;

/// Bytes of a message that stand before its body, at most.
const MESSAGE_PREFIX: usize = 16;
/// Most streams of one caller's connection.
const STREAMS: u32 = 250;

/// A connection's socket once more, to watch it by: the protocol owns the other one.
struct Watch {
    socket: OwnedFd,
    writing: bool,
}

impl Watch {
    fn new(stream: &Stream, poller: &Poller, token: Token, writing: bool) -> io::Result<Self> {
        let socket = rustix::io::fcntl_dupfd_cloexec(stream, 0)?;
        let interest = if writing {
            Interest::Both
        } else {
            Interest::Read
        };
        poller.add(&socket, token.number(), interest)?;
        Ok(Self { socket, writing })
    }

    /// Watches for when it can be written, or does so no more.
    fn set(&mut self, poller: &Poller, token: Token, writing: bool) -> io::Result<()> {
        if self.writing != writing {
            self.writing = writing;
            let interest = if writing {
                Interest::Both
            } else {
                Interest::Read
            };
            poller.change(&self.socket, token.number(), interest)?;
        }
        Ok(())
    }
}
