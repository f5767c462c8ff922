//! Connections to callees, and those who wait for one.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use wire::http1::{BodyLength, KnownHead, Limits, ResponseScanner, Sink, field};
use wire::slab::Key;
use wire::stream::Stream;

use super::flight::{Flight, MOST_ECHO};
use super::outbox::Outbox;
use super::plan::Callee;
use crate::Nanos;
use crate::metrics::ClientCounters;
use crate::script::Ticket;
use crate::topology::{Connections, EdgeId, Protocol, StepId};
use traces::SpanId;
use traces::context::Outgoing;

/// Calls that may wait for a connection to one callee; further ones fail at once.
pub(super) const MOST_WAITING: usize = 4096;
/// Bytes of a callee's word on its failure that are kept.
pub(super) const MOST_FAILED: usize = 256;
/// Bounds of an answer's head.
const LIMITS: Limits = Limits {
    head_bytes: 32 * 1024,
    fields: 128,
    chunk_line_bytes: 1024,
    interim: 8,
};
/// The field of an answer that says which edge failed, and why.
pub(super) const FAILED: &str = "x-headroom-failed";

/// The connections of one instance to all instances of one callee.
#[derive(Default)]
pub(super) struct Route {
    pub(super) pools: Vec<Pool>,
    /// How many of them the newest revision calls.
    pub(super) used: usize,
    /// Whose turn it is.
    pub(super) turn: usize,
    /// Most connections to each of them.
    pub(super) most: usize,
    pub(super) warm: bool,
    /// Whether calls share one connection, as streams of HTTP/2.
    pub(super) streams: bool,
}

impl Route {
    /// Takes over how a revision connects, which may name other addresses.
    pub(super) fn adopt(&mut self, callee: &Callee) {
        self.streams = callee.protocol != Protocol::Http1;
        (self.warm, self.most) = match callee.connections {
            Connections::Warm(most) => (true, most as usize),
            Connections::Cold(most) => (false, most as usize),
        };
        self.most = self.most.max(1);
        self.used = callee.addresses.len();
        for (place, address) in callee.addresses.iter().enumerate() {
            match self.pools.get_mut(place) {
                Some(pool) => pool.address = *address,
                None => self.pools.push(Pool::new(*address)),
            }
        }
    }

    /// The place of the callee's instance that is called next, of the first `count`.
    pub(super) fn next(&mut self, count: usize) -> usize {
        let place = self.turn % count.max(1);
        self.turn = place + 1;
        place
    }
}

/// The connections of one instance to one instance of a callee.
pub(super) struct Pool {
    pub(super) address: SocketAddr,
    /// Those without a call; the one used last is used next.
    pub(super) idle: Vec<Key>,
    /// All, idle or not.
    pub(super) open: usize,
    /// The one that carries all calls, if it is HTTP/2.
    pub(super) channel: Option<Key>,
    /// Calls over HTTP/2 that have not ended.
    pub(super) load: usize,
    pub(super) waiting: VecDeque<Attempt>,
    /// What the callee's answers begin with.
    pub(super) known: KnownHead,
}

impl Pool {
    /// Whether another call can be made now, beside at most `most`.
    pub(super) fn has_room(&self, streams: bool, most: usize) -> bool {
        if streams {
            self.load < most
        } else {
            !self.idle.is_empty() || self.open < most
        }
    }

    fn new(address: SocketAddr) -> Self {
        Self {
            address,
            idle: Vec::new(),
            open: 0,
            channel: None,
            load: 0,
            waiting: VecDeque::new(),
            known: KnownHead::default(),
        }
    }
}

/// Which pool, and whose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PoolId {
    pub(super) instance: usize,
    pub(super) slot: usize,
    pub(super) place: usize,
}

/// One attempt of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt {
    pub(super) flight: Key,
    pub(super) ticket: Ticket,
    pub(super) edge: EdgeId,
    pub(super) step: StepId,
    pub(super) bytes: u64,
    pub(super) deadline: Nanos,
    pub(super) number: u8,
    pub(super) span: SpanId,
    /// When the step wanted it.
    pub(super) wanted: Nanos,
    /// When its first byte was sent.
    pub(super) sent: Nanos,
}

impl Attempt {
    /// The context that it carries.
    pub(super) fn context<'a>(&self, flight: &'a Flight) -> Outgoing<'a> {
        Outgoing {
            trace: flight.trace,
            span: self.span,
            parent: flight.span,
            sampled: flight.sampled,
            debug: flight.debug,
            passed: &flight.passed,
        }
    }
}

/// A connection to a callee.
pub(super) struct Link {
    pub(super) key: Key,
    pub(super) pool: PoolId,
    pub(super) counters: Arc<ClientCounters>,
    pub(super) address: SocketAddr,
    pub(super) stream: Stream,
    pub(super) scanner: ResponseScanner,
    /// Bytes of an answer that came and are not used yet.
    pub(super) rest: Vec<u8>,
    pub(super) outbox: Outbox,
    /// What it is in use for.
    pub(super) attempt: Option<Attempt>,
    /// The connection is made.
    pub(super) connected: bool,
    /// It has carried a call to its end: that it breaks now may be a race with the callee
    /// closing what was idle.
    pub(super) reused: bool,
    /// The poller tells when it can be written.
    pub(super) writing: bool,
    pub(super) answer: Answer,
}

/// What is kept of an answer.
#[derive(Default)]
pub(super) struct Answer {
    /// Keep the body, as far as an echo may be long.
    pub(super) wanted: bool,
    pub(super) body: Vec<u8>,
    /// What it says about its failure.
    pub(super) failed: Vec<u8>,
}

impl Sink for Answer {
    fn length(&mut self, _: BodyLength) {
        self.body.clear();
        self.failed.clear();
    }

    fn head(&mut self, status: u16, fields: &[u8]) {
        if status >= 400
            && let Some(said) = field(fields, FAILED)
        {
            let most = said.get(..MOST_FAILED).unwrap_or(said);
            self.failed.extend_from_slice(most);
        }
    }

    fn body(&mut self, part: &[u8]) {
        if self.wanted {
            let room = MOST_ECHO.saturating_sub(self.body.len());
            self.body
                .extend_from_slice(part.get(..room).unwrap_or(part));
        }
    }
}

impl Link {
    pub(super) fn new(
        key: Key,
        pool: PoolId,
        counters: Arc<ClientCounters>,
        address: SocketAddr,
        stream: Stream,
    ) -> Self {
        Self {
            key,
            pool,
            counters,
            address,
            stream,
            scanner: ResponseScanner::new(LIMITS),
            rest: Vec::new(),
            outbox: Outbox::default(),
            attempt: None,
            connected: false,
            reused: false,
            writing: false,
            answer: Answer::default(),
        }
    }

    /// Whether nothing of an answer came.
    pub(super) fn is_silent(&self) -> bool {
        self.rest.is_empty() && !self.scanner.started()
    }
}
