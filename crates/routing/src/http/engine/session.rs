//! What the engine knows of a connection, and of the request that is on its way on it.

use std::net::SocketAddr;
use std::sync::Arc;

use wire::http1::{RequestHead, RequestScanner, ResponseScanner};
use wire::poller::Interest;
use wire::slab::Key;
use wire::stream::Stream;

use super::buffers::{Inbox, Outbox};
use crate::http::pipeline::{Client, Exchange, Promise};
use crate::selection::Choice;
use crate::table::{Endpoint, Nanos, Text};
use wire::deadlines::NEVER;

/// A client's connection.
pub(super) struct Session {
    pub(super) key: Key,
    pub(super) stream: Stream,
    pub(super) client: Client,
    pub(super) scanner: RequestScanner,
    /// What came and is not used yet: a head in part, a body, requests that follow.
    pub(super) inbox: Inbox,
    pub(super) outbox: Outbox,
    pub(super) phase: Phase,
    /// The client will send no more.
    pub(super) ended: bool,
    /// What the poller watches for.
    pub(super) interest: Interest,
    /// When patience ends, whatever the phase.
    pub(super) deadline: Nanos,
    /// Whether TLS is to begin on it.
    pub(super) awaits_tls: bool,
    /// Whether the PROXY header is behind it.
    pub(super) introduced: bool,
    /// The domain whose settings its handshake follows.
    pub(super) domain: Option<usize>,
    /// Whether it has carried a request.
    pub(super) used: bool,
    /// The request that is on its way.
    pub(super) flight: Option<Box<Flight>>,
}

/// What a client's connection is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The PROXY header and TLS's handshake.
    Opening,
    /// Between requests.
    Idle,
    /// A head has begun.
    Head,
    /// A request is on its way.
    Flight,
    /// Bytes go both ways as they are.
    Tunnel,
    /// A request was answered before its body had come; so many bytes more are awaited
    /// and dropped.
    Discarding(usize),
    /// The last answer is being sent.
    Flushing,
    /// The end was sent. Bytes are dropped, up to so many, until the client ends too:
    /// to close with bytes unread could destroy the answer on its way.
    Lingering(usize),
    /// It speaks HTTP/2: each of its streams becomes a connection of its own.
    Http2,
    /// To be removed.
    Closed,
}

impl Session {
    /// Whether bytes of the client have a place now.
    pub(super) fn wants_bytes(&self) -> bool {
        match self.phase {
            Phase::Opening | Phase::Discarding(_) | Phase::Lingering(_) => true,
            // What is answered waits for the client to take it; then the next is read.
            Phase::Idle | Phase::Head => self.outbox.is_empty(),
            Phase::Flight => match &self.flight {
                Some(flight) if !flight.body_read => {
                    flight.upstream.len() < super::buffers::ROOM
                        && self.inbox.len() < super::buffers::ROOM
                }
                // The end is to be noticed; a request that follows waits here.
                _ => !self.ended && self.inbox.len() < AHEAD,
            },
            Phase::Tunnel => {
                let flight = self.flight.as_ref();
                !self.ended && flight.is_some_and(|flight| flight.upstream.is_empty())
            }
            Phase::Flushing | Phase::Http2 | Phase::Closed => false,
        }
    }

    /// What the poller should watch for.
    pub(super) fn wanted(&self) -> Interest {
        let write = !self.outbox.is_empty() || self.stream.wants_write();
        interest(self.wants_bytes(), write)
    }
}

/// Bytes of following requests that are read while one is on its way.
const AHEAD: usize = 16 * 1024;
/// Memory for a head, and for a body that may be sent again, that stays with a flight.
const KEPT_MEMORY: usize = 8 * 1024;

pub(super) fn interest(read: bool, write: bool) -> Interest {
    match (read, write) {
        (true, true) => Interest::Both,
        (true, false) => Interest::Read,
        (false, true) => Interest::Write,
        (false, false) => Interest::Nothing,
    }
}

/// A request on its way. Used again for others, so that nothing is allocated for one.
#[derive(Default)]
pub(super) struct Flight {
    pub(super) head: RequestHead,
    pub(super) exchange: Exchange,
    /// Chooses endpoints, one for each attempt.
    pub(super) choice: Option<Choice>,
    /// The request goes to a route service, not to an endpoint of its pool.
    pub(super) to_service: bool,
    /// The endpoint's name is being resolved.
    pub(super) resolving: bool,
    /// Attempts so far; those that were resent do not count.
    pub(super) attempts: u32,
    pub(super) endpoint: Option<Arc<Endpoint>>,
    /// Whether the endpoint counts this request as one that waits for it.
    pub(super) counted: bool,
    pub(super) link: Option<Box<Link>>,
    /// Whether the body has come whole.
    pub(super) body_read: bool,
    /// To the backend: the head, and the body as it comes.
    pub(super) upstream: Outbox,
    /// The body so far as it is sent, for another attempt.
    pub(super) kept: Vec<u8>,
    /// Whether `kept` holds all of it.
    pub(super) kept_whole: bool,
    /// Bytes of its head, and how many bytes this attempt has given to the kernel.
    pub(super) head_bytes: usize,
    pub(super) sent: usize,
    /// The backend takes no more: it may have answered without reading everything.
    pub(super) upstream_broken: bool,
    /// When this attempt began and must be over, and when its connection was there.
    pub(super) attempt_began: Nanos,
    pub(super) attempt_ends: Nanos,
    pub(super) connected: Nanos,
    /// When a client that waits for `100 Continue` is told to go on.
    pub(super) continue_at: Nanos,
    /// The answer's head is on its way to the client.
    pub(super) answered: bool,
    /// Not to be logged: the server itself answers it.
    pub(super) unlogged: bool,
    /// What was promised to the client with it.
    pub(super) promise: Option<Promise>,
}

/// A connection to a backend.
pub(super) struct Link {
    pub(super) key: Key,
    /// The pool that it belongs to.
    pub(super) identity: Text,
    /// Whether it speaks TLS, and to whom: pools hold what an endpoint once was, too.
    pub(super) server_name: Option<Text>,
    /// It is to a route service, whose certificate is checked by other rules.
    pub(super) service: bool,
    pub(super) stream: Stream,
    /// The router's own end, where the stream does not know it.
    pub(super) local: Option<SocketAddr>,
    pub(super) state: LinkState,
    pub(super) scanner: ResponseScanner,
    pub(super) inbox: Inbox,
    pub(super) interest: Interest,
    /// Whether the poller watches it. Not when it broke while the client was slow to take
    /// what came before: the poller would tell of it again and again.
    pub(super) watched: bool,
    /// Whether it has carried a request before this one.
    pub(super) reused: bool,
    /// The backend will send no more.
    pub(super) ended: bool,
}

/// What a connection to a backend is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkState {
    Connecting,
    Handshaking,
    Open,
}

/// Where a connection to a backend is.
pub(super) enum Whereabouts {
    /// In its pool.
    Idle(Box<Link>),
    /// With the client's connection whose request it carries.
    With(Key),
}

impl Flight {
    /// Makes it ready for another request.
    pub(super) fn reset(&mut self) {
        self.choice = None;
        (self.to_service, self.resolving) = (false, false);
        self.attempts = 0;
        self.endpoint = None;
        self.counted = false;
        self.link = None;
        self.body_read = false;
        self.kept.clear();
        self.kept_whole = true;
        (self.head_bytes, self.sent) = (0, 0);
        self.upstream_broken = false;
        self.attempt_ends = NEVER;
        self.continue_at = NEVER;
        (self.answered, self.unlogged) = (false, false);
        self.promise = None;
    }

    /// Lets go of what it holds of its last request, but for memory up to a bound.
    pub(super) fn release(&mut self) {
        self.choice = None;
        self.endpoint = None;
        self.exchange.progress.endpoint = None;
        self.kept.clear();
        self.kept.shrink_to(KEPT_MEMORY);
        if self.head.bytes().len() > KEPT_MEMORY {
            self.head.clear(KEPT_MEMORY);
        }
    }
}
