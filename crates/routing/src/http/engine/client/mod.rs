//! A client's connection: how it begins, heads and bodies as they come, answers on their
//! way to it, and its end. What becomes of a request in between is not its concern.

mod opening;

use std::net::SocketAddr;

use wire::deadlines::NEVER;
use wire::http1::{Limits, MOST_FIELDS, RequestError, RequestHead, RequestScanner, Sink};
use wire::poller::{Interest, Registration};
use wire::slab::Key;
use wire::stream::{Received, Stream};

use super::buffers::{Buffers, Inbox, Outbox, ROOM};
use super::context::Context;
use super::token;
use crate::http::pipeline::Client;
use crate::table::Nanos;

/// Bytes of a body that are read and dropped, so that the connection can go on after an
/// answer that did not wait for it. As Go's server does.
pub(super) const DISCARD: usize = 256 * 1024;
/// How long a closed connection waits for its client to notice.
const LINGER: Nanos = 2_000_000_000;

/// A client's connection.
pub(super) struct ClientConnection {
    key: Key,
    stream: Stream,
    client: Client,
    scanner: RequestScanner,
    /// What came and is not used yet: a head in part, a body, requests that follow.
    inbox: Inbox,
    outbox: Outbox,
    phase: Phase,
    /// The client will send no more.
    ended: bool,
    registration: Registration,
    /// When patience ends, whatever the phase; of [`Phase::Busy`] the request says when.
    deadline: Nanos,
    /// Whether TLS is to begin on it.
    awaits_tls: bool,
    /// Whether the PROXY header is behind it.
    introduced: bool,
    /// The domain whose settings its handshake follows.
    domain: Option<usize>,
    /// Whether it has carried a request.
    used: bool,
}

/// What a client's connection is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The PROXY header and TLS's handshake.
    Opening,
    /// Between requests.
    Idle,
    /// A head has begun.
    Head,
    /// A request is on its way, or a tunnel that it led to.
    Busy,
    /// A request was answered before its body had come; so many bytes more are awaited
    /// and dropped.
    Discarding(usize),
    /// The last answer is being sent.
    Flushing,
    /// The end was sent. Bytes are dropped, up to so many, until the client ends too:
    /// to close with bytes unread could destroy the answer on its way.
    Lingering(usize),
    /// The last bytes are tried to be sent, once.
    Cut,
    /// It speaks HTTP/2: each of its streams becomes a connection of its own.
    Http2,
    /// To be removed.
    Closed,
}

/// What was found where a head should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// A head.
    Head,
    /// A head in part, or nothing.
    Part,
    /// No head; the client is told.
    Nonsense,
}

impl ClientConnection {
    /// One that was accepted. `tls`: TLS is to begin on it, if `stream` does not have it.
    pub(super) fn accepted(
        key: Key,
        stream: Stream,
        peer: SocketAddr,
        tls: bool,
        context: &Context,
    ) -> Self {
        let settings = &context.shared.settings;
        let (phase, patience) = match tls || settings.proxy_protocol {
            true => (Phase::Opening, settings.backends.handshake_timeout),
            false => (Phase::Idle, settings.idle_timeout),
        };
        Self {
            phase,
            deadline: context.clock.after(patience),
            awaits_tls: tls,
            ..Self::internal(key, stream, Client::new(peer, None), context)
        }
    }

    /// One that comes from another part of this thread. Its head has come to the router
    /// already, if not here: a drain waits for it.
    pub(super) fn internal(key: Key, stream: Stream, client: Client, context: &Context) -> Self {
        let settings = &context.shared.settings;
        let limits = Limits {
            head_bytes: settings.longest_head(),
            // Those above the setting are refused with fields, and logged.
            fields: MOST_FIELDS,
            ..Limits::default()
        };
        let token = key.token(token::CLIENT);
        Self {
            key,
            stream,
            client,
            scanner: RequestScanner::new(limits),
            inbox: Inbox::default(),
            outbox: Outbox::default(),
            phase: Phase::Head,
            ended: false,
            registration: Registration::added(token, Interest::Read),
            deadline: context.clock.after(settings.head_timeout),
            awaits_tls: false,
            introduced: false,
            domain: None,
            used: false,
        }
    }

    pub(super) fn key(&self) -> Key {
        self.key
    }

    /// Who is at the other end.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    pub(super) fn took_all(&self) -> bool {
        self.outbox.is_empty()
    }

    /// Whether bytes that were sent are still on this side: of a record of TLS, or of a stream
    /// whose client has no room.
    pub(super) fn holds_sent_bytes(&self) -> bool {
        self.stream.wants_write()
    }

    /// Bytes that came and are not used yet.
    pub(super) fn held(&self) -> usize {
        self.inbox.len()
    }

    pub(super) fn holds_bytes(&self) -> bool {
        self.stream.holds_bytes()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(super) fn deadline(&self) -> Nanos {
        self.deadline
    }

    pub(super) fn is_opening(&self) -> bool {
        self.phase == Phase::Opening
    }

    pub(super) fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    pub(super) fn speaks_http2(&self) -> bool {
        self.phase == Phase::Http2
    }

    /// What it is made of; its memory is given back.
    pub(super) fn into_parts(mut self, buffers: &mut Buffers) -> (Stream, Client) {
        self.inbox.clear(buffers);
        self.outbox.clear(buffers);
        (self.stream, self.client)
    }

    /// Whether bytes have a place now. Of [`Phase::Busy`] the request knows.
    pub(super) fn wants_bytes(&self) -> bool {
        match self.phase {
            Phase::Opening | Phase::Discarding(_) | Phase::Lingering(_) => true,
            // What is answered waits for the client to take it; then the next is read.
            Phase::Idle | Phase::Head => self.outbox.is_empty(),
            _ => false,
        }
    }

    /// Takes in bytes, once.
    pub(super) fn receive(&mut self, context: &mut Context) {
        let most = match self.phase {
            Phase::Idle | Phase::Head => context.shared.settings.longest_head().max(ROOM),
            _ => ROOM,
        };
        let buffers = &mut context.buffers;
        match self.inbox.receive(&mut self.stream, most, buffers) {
            Ok(Received::Bytes(bytes)) => context.counters.received.add(bytes as u64),
            Ok(Received::Nothing) => return,
            Ok(Received::End) => self.ended = true,
            Err(error) => {
                self.ended = true;
                self.outbox.clear(buffers);
                context.note_memory(&error);
            }
        }
        match self.phase {
            Phase::Discarding(left) => self.discard(left, context),
            Phase::Lingering(left) => {
                let left = left.saturating_sub(self.inbox.len());
                self.inbox.clear(&mut context.buffers);
                self.phase = if self.ended || left == 0 {
                    Phase::Closed
                } else {
                    Phase::Lingering(left)
                };
            }
            _ => {}
        }
    }

    /// Does what can be done without waiting while there is no request. Whether the next
    /// one may be looked for.
    pub(super) fn settle(&mut self, context: &mut Context) -> bool {
        match self.phase {
            Phase::Idle | Phase::Head => {
                // A client that does not take its answers gets no more of them.
                if !self.flush_or_close(context) || !self.outbox.is_empty() {
                    return false;
                }
                let waits = !self.ended && (context.running || !self.used);
                if self.inbox.is_empty() && !waits {
                    self.phase = Phase::Closed;
                }
                !self.inbox.is_empty()
            }
            Phase::Discarding(_) => {
                self.flush_or_close(context);
                false
            }
            Phase::Flushing => {
                if self.flush_or_close(context) && self.outbox.is_empty() {
                    self.linger(context);
                }
                false
            }
            Phase::Cut => {
                self.flush(context);
                self.phase = Phase::Closed;
                false
            }
            _ => false,
        }
    }

    /// The next request's head, if it is there.
    pub(super) fn head(&mut self, into: &mut RequestHead, context: &mut Context) -> Found {
        match self.scanner.head(self.inbox.bytes(), into) {
            Ok(Some(length)) => {
                self.inbox.consume(length, &mut context.buffers);
                (self.used, self.phase) = (true, Phase::Busy);
                return Found::Head;
            }
            Ok(None) => {
                self.inbox.park(&mut context.buffers);
                if !self.ended {
                    if self.phase == Phase::Idle {
                        self.phase = Phase::Head;
                        self.deadline = context.clock.after(context.shared.settings.head_timeout);
                    }
                    return Found::Part;
                }
                self.refuse_bytes(RequestError::RequestLine, context);
            }
            Err(error) => {
                self.refuse_bytes(error, context);
            }
        }
        Found::Nonsense
    }

    /// Takes what came of the request's body; whether that was its end.
    pub(super) fn body(
        &mut self,
        sink: &mut impl Sink,
        buffers: &mut Buffers,
    ) -> Result<bool, RequestError> {
        let scan = self.scanner.body(self.inbox.bytes(), sink)?;
        self.inbox.consume(scan.consumed, buffers);
        Ok(scan.ended)
    }

    pub(super) fn take_bytes(&mut self, into: &mut Vec<u8>, buffers: &mut Buffers) {
        into.extend_from_slice(self.inbox.bytes());
        self.inbox.clear(buffers);
    }

    /// Sends what can be sent now; `false` when the client is gone.
    pub(super) fn flush(&mut self, context: &mut Context) -> bool {
        if self.outbox.is_empty() && !self.stream.wants_write() {
            return true;
        }
        let sent = self.outbox.send(&mut self.stream, &mut context.buffers);
        match sent {
            Ok(bytes) => context.counters.sent.add(bytes as u64),
            Err(_) => self.ended = true,
        }
        sent.is_ok()
    }

    fn flush_or_close(&mut self, context: &mut Context) -> bool {
        let flushed = self.flush(context);
        if !flushed {
            self.phase = Phase::Closed;
        }
        flushed
    }

    /// Says that nothing more will be sent. Called again, it changes nothing.
    pub(super) fn end_sending(&mut self) {
        // Fails only when the connection is gone, which its own events tell.
        let _ = self.stream.close_write();
    }

    /// All of an answer is in the outbox. `keep_alive`: another request may follow;
    /// `body_read`: all of this one's body came.
    pub(super) fn answered(&mut self, keep_alive: bool, body_read: bool, context: &mut Context) {
        // A stream carries one request.
        if !keep_alive || self.stream.socket().is_none() {
            self.close_after_answer(context);
        } else if body_read {
            self.await_request(context);
        } else {
            self.deadline = context.clock.after(context.shared.settings.head_timeout);
            self.discard(DISCARD, context);
        }
    }

    /// Answers bytes that are no request, and closes; the length of the answer's body.
    pub(super) fn refuse_bytes(&mut self, error: RequestError, context: &mut Context) -> u64 {
        context.counters.malformed.increment();
        if error == RequestError::ContentLengthEmpty {
            context.counters.empty_content_length.increment();
        }
        let write_buffer = self.outbox.write_buffer(&mut context.buffers);
        write_buffer.extend_from_slice(error.answer());
        self.close_after_answer(context);
        error.answer_body().len() as u64
    }

    /// What is in the outbox is the last that the client gets.
    pub(super) fn close_after_answer(&mut self, context: &mut Context) {
        self.inbox.clear(&mut context.buffers);
        self.phase = Phase::Flushing;
        self.deadline = context.clock.after(context.shared.settings.head_timeout);
    }

    /// An answer cannot be finished. To close is the only way to say so.
    pub(super) fn cut_off(&mut self) {
        self.phase = Phase::Cut;
    }

    /// It is over, whatever waits to be sent.
    pub(super) fn close(&mut self) {
        self.phase = Phase::Closed;
    }

    /// Closes it if there is no request, not even a part of one.
    pub(super) fn close_if_idle(&mut self) {
        if self.phase == Phase::Idle && self.outbox.is_empty() {
            self.phase = Phase::Closed;
        }
    }

    /// It ran out of patience, without a request.
    pub(super) fn expired(&mut self, context: &mut Context) {
        match self.phase {
            Phase::Opening => self.opening_failed(context),
            Phase::Head | Phase::Flushing | Phase::Discarding(_) => {
                context.counters.slow_clients.increment();
                self.phase = Phase::Closed;
            }
            Phase::Idle | Phase::Lingering(_) => self.phase = Phase::Closed,
            _ => self.deadline = NEVER,
        }
    }

    /// Watches for what it needs, where that changed, or closes it. `read`: bytes have a
    /// place now.
    pub(super) fn watch(&mut self, read: bool, context: &Context) {
        let write = !self.outbox.is_empty() || self.stream.wants_write();
        let (wanted, poller) = (Some(Interest::of(read, write)), &context.poller);
        if self.registration.set(&self.stream, wanted, poller).is_err() {
            self.phase = Phase::Closed;
        }
    }

    /// The connection waits for its next request.
    fn await_request(&mut self, context: &Context) {
        self.phase = Phase::Idle;
        self.deadline = context.clock.after(context.shared.settings.idle_timeout);
    }

    /// Drops what came of a body that nobody wants, so that the connection can go on.
    fn discard(&mut self, left: usize, context: &mut Context) {
        match self.scanner.body(self.inbox.bytes(), &mut ()) {
            Ok(scan) => {
                self.inbox.consume(scan.consumed, &mut context.buffers);
                let left = left.saturating_sub(scan.consumed);
                if scan.ended {
                    self.await_request(context);
                } else if left == 0 {
                    self.close_after_answer(context);
                } else if self.ended {
                    self.phase = Phase::Closed;
                } else {
                    self.phase = Phase::Discarding(left);
                }
            }
            Err(_) => self.close_after_answer(context),
        }
    }

    fn linger(&mut self, context: &Context) {
        match self.stream.close_write() {
            Ok(true) if !self.ended && self.stream.socket().is_some() => {
                self.phase = Phase::Lingering(DISCARD);
                self.deadline = context.clock.now().saturating_add(LINGER);
            }
            Ok(false) => {}
            _ => self.phase = Phase::Closed,
        }
    }
}
