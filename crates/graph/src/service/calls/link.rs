//! A connection to a callee: a request goes out, an answer comes in.

use std::mem;
use std::net::SocketAddr;
use std::sync::Arc;

use traces::failure;
use wire::http1::{BodyLength, KnownHead, Limits, ResponseScanner, Sink, field};
use wire::poller::{Event, Interest, Poller, Registration};
use wire::slab::Key;
use wire::socket;
use wire::stream::{Received, Stream};

use super::causes::cause_word;
use crate::metrics::ClientCounters;
use crate::service::context::Context;
use crate::service::message::{FAILED, MOST_FAILED};
use crate::service::outbox::Outbox;
use crate::service::request_state::{Attempt, MOST_ECHO, PoolId};
use crate::service::token;

/// Bounds of an answer's head.
const LIMITS: Limits = Limits {
    head_bytes: 32 * 1024,
    fields: 128,
    chunk_line_bytes: 1024,
    interim: 8,
    ..Limits::DEFAULT
};
/// How an answer ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answered {
    pub(super) status: u16,
    /// Whether the connection may carry another call.
    pub(super) keep: bool,
}

/// A connection to a callee.
pub(super) struct Link {
    pub(super) key: Key,
    pub(super) pool: PoolId,
    pub(super) counters: Arc<ClientCounters>,
    pub(super) address: SocketAddr,
    stream: Stream,
    scanner: ResponseScanner,
    /// Bytes of an answer that came and are not used yet.
    rest: Vec<u8>,
    pub(super) outbox: Outbox,
    /// What it is in use for.
    pub(super) attempt: Option<Attempt>,
    /// The connection is made.
    connected: bool,
    /// It has carried a call to its end: that it breaks now may be a race with the callee
    /// closing what was idle.
    pub(super) reused: bool,
    registration: Registration,
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
            registration: Registration::added(key.token(token::LINK), Interest::Read),
            answer: Answer::default(),
        }
    }

    /// Whether nothing of an answer came.
    pub(super) fn is_silent(&self) -> bool {
        self.rest.is_empty() && !self.scanner.started()
    }

    /// Sends what waits in the outbox, and begins or ends to watch for when more can be.
    pub(super) fn send(&mut self, poller: &Poller) -> Result<(), &'static str> {
        let sent = self.outbox.send(&mut self.stream);
        sent.map_err(|error| cause_word(error.cause()))?;
        let all = self.outbox.is_empty();
        // Nothing is taken before the connection is made.
        self.connected |= all;
        let wanted = Some(Interest::of(true, !all));
        let set = self.registration.set(&self.stream, wanted, poller);
        set.map_err(|_| failure::RESET)
    }

    /// Goes on with the request and the answer of a call.
    pub(super) fn turn(
        &mut self,
        event: Event,
        context: &mut Context,
    ) -> Result<Option<Answered>, &'static str> {
        if event.writable && self.registration.tells_writable() {
            if !self.connected {
                let outcome = self.stream.outcome();
                outcome.map_err(|errno| cause_word(socket::cause(errno)))?;
                self.connected = true;
                if let Some(attempt) = &mut self.attempt {
                    attempt.sent = context.now;
                }
            }
            self.send(&context.poller)?;
        }
        if !event.readable {
            return Ok(None);
        }
        match self.stream.receive(&mut context.room) {
            Ok(Received::Bytes(count)) => {
                let bytes = context.room.get(..count).unwrap_or_default();
                match context.routes.pool(self.pool) {
                    Some(pool) => self.scan(&mut pool.known, bytes),
                    None => self.scan(&mut KnownHead::default(), bytes),
                }
            }
            Ok(Received::Nothing) => Ok(None),
            Ok(Received::End) if self.is_silent() => Err(failure::RESET),
            Ok(Received::End) => match self.scanner.end(&mut self.answer) {
                Ok(complete) => Ok(Some(Answered {
                    status: complete.status,
                    keep: false,
                })),
                Err(_) => Err(failure::RESET),
            },
            Err(error) => Err(cause_word(error.cause())),
        }
    }

    /// Scans what came of an answer.
    fn scan(
        &mut self,
        known: &mut KnownHead,
        bytes: &[u8],
    ) -> Result<Option<Answered>, &'static str> {
        let mut rest = mem::take(&mut self.rest);
        let input = if rest.is_empty() {
            bytes
        } else {
            rest.extend_from_slice(bytes);
            &rest
        };
        let mut used = 0;
        let result = loop {
            let now = input.get(used..).unwrap_or_default();
            match self.scanner.scan_after(known, now, &mut self.answer) {
                Ok(scan) => {
                    used += scan.consumed;
                    if let Some(complete) = scan.complete {
                        let keep = complete.keep_alive
                            && !complete.upgraded
                            && used == input.len()
                            && self.outbox.is_empty();
                        let status = complete.status;
                        break Ok(Some(Answered { status, keep }));
                    }
                    if scan.consumed == 0 || used == input.len() {
                        break Ok(None);
                    }
                }
                Err(_) => break Err(failure::MALFORMED),
            }
        };
        let left = input.get(used..).unwrap_or_default();
        self.rest = match left.is_empty() {
            true => {
                rest.clear();
                rest
            }
            false => left.to_vec(),
        };
        result
    }
}
