//! A server's connection as one of HTTP/1.1, whose requests become streams.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use super::inward::{Failed, Inward};
use super::outward::{Outward, Parts};
use super::{LIMITS, ROOM, heads};
use crate::http1::{RequestBody, RequestHead, RequestScanner};
use crate::http2::codec::{Connection, Reading, StreamKey};
use crate::http2::link::Link;
use crate::http2::shared::{Handle, Shared};
use crate::http2::{self, ClientSettings, Http2Error, Progress};
use crate::poller::{Interest, Poller};
use crate::signal::Signal;
use crate::stream::{Carried, Received, Stream, StreamError};

/// Most times that a request is sent again after the server refused its stream.
const MOST_AGAIN: u32 = 2;

/// The connection below a [`ClientStream`].
pub struct Backend {
    shared: Arc<Shared>,
    link: Link,
    /// The connection or its stream has ended.
    ended: Arc<AtomicBool>,
    /// The stream's.
    signal: Signal,
}

/// A server's connection as one of HTTP/1.1: its requests come one after the other, each
/// becomes a stream of HTTP/2. It ends where one of HTTP/1.1 would have to.
pub struct ClientStream {
    signal: Signal,
    shared: Arc<Shared>,
    /// The connection below or this stream has ended.
    ended: Arc<AtomicBool>,
    /// What was sent and is not used yet.
    inbox: Vec<u8>,
    scanner: RequestScanner,
    head: RequestHead,
    /// A head that waits for a free stream.
    parsed: bool,
    /// Times that this head was sent again.
    again: u32,
    exchange: Option<Exchange>,
    /// The answer may have more than what was received.
    more: bool,
    /// There will be no other request: the last one is in the way of it.
    spent: bool,
}

/// One request and its answer.
struct Exchange {
    handle: Handle,
    message: Message,
}

struct Message {
    /// `None`: the server wants no more of the request.
    request: Option<Outward>,
    /// All of the request was read.
    read: bool,
    bodiless: bool,
    answer: Answer,
}

enum Answer {
    /// With the interim answers so far.
    Awaited(Vec<u8>),
    Begun(Inward),
}

impl Backend {
    /// Begins to use a connection whose TLS handshake is done. Its own socket is watched
    /// with `token`.
    ///
    /// # Errors
    /// When the connection is gone, or cannot be watched.
    pub fn start(
        stream: Stream,
        settings: ClientSettings,
        poller: &Poller,
        token: u64,
    ) -> io::Result<(Self, ClientStream)> {
        let shared = Shared::new(settings.connection());
        let mut link = Link::new(stream, settings.read_budget);
        link.watch(poller, token)?;
        poller.add(shared.signal(), token, Interest::Read)?;
        let (signal, ended) = (Signal::default(), Arc::new(AtomicBool::new(false)));
        let stream = ClientStream {
            signal: signal.clone(),
            shared: Arc::clone(&shared),
            ended: Arc::clone(&ended),
            inbox: Vec::new(),
            scanner: RequestScanner::new(LIMITS),
            head: RequestHead::default(),
            parsed: false,
            again: 0,
            exchange: None,
            more: false,
            spent: false,
        };
        let mut backend = Self {
            shared,
            link,
            ended,
            signal,
        };
        let driven = backend.drive(false, poller);
        driven.map_err(|_| Errno::CONNRESET)?;
        Ok((backend, stream))
    }

    /// Does everything that can be done without waiting. To be called when its token is
    /// told of, and again when there is more.
    ///
    /// # Errors
    /// When the connection has ended, as its stream hears too: [`Http2Error::Closed`] if
    /// nothing was wrong.
    pub fn drive(&mut self, readable: bool, poller: &Poller) -> Result<Progress, Http2Error> {
        self.shared.begin();
        let inner = &mut *self.shared.lock();
        self.link.receive(&mut inner.connection, readable);
        self.link.send(&mut inner.connection);
        inner.connection.end_if_idle();
        inner.wake_streams();
        inner.wake_opener();
        if self.ended.load(Ordering::Relaxed) {
            return Err(Http2Error::Closed);
        }
        if let Some(error) = inner.connection.ended() {
            return Err(error.clone());
        }
        let watched = self.link.rewatch(poller);
        watched.map_err(|error| Http2Error::Io(error.kind()))?;
        Ok(self.link.progress(&inner.connection))
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.signal.ring();
    }
}

impl Drop for ClientStream {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.exchange = None;
        self.shared.wake();
    }
}

impl ClientStream {
    /// Uses what was sent, as far as the server lets it.
    fn advance(&mut self) -> Result<(), StreamError> {
        if self.exchange.is_none() && !self.begin()? {
            return Ok(());
        }
        let Some(Exchange { handle, message }) = &mut self.exchange else {
            return Ok(());
        };
        let (inbox, scanner) = (&mut self.inbox, &mut self.scanner);
        handle.with(|connection, key| message.advance(inbox, scanner, connection, key))
    }

    /// Opens a stream for the next request, if its head is there and a stream is free.
    fn begin(&mut self) -> Result<bool, StreamError> {
        let unfit = StreamError::Socket(Errno::PIPE);
        if !self.parsed {
            if self.inbox.is_empty() {
                return Ok(false);
            }
            let Ok(length) = self.scanner.head(&self.inbox, &mut self.head) else {
                return Err(unfit);
            };
            let Some(length) = length else {
                return Ok(false);
            };
            self.inbox.drain(..length);
            (self.parsed, self.again) = (true, 0);
        }
        let inner = &mut *self.shared.lock();
        match inner.connection.ready() {
            Ok(()) => {}
            Err(Http2Error::Full) => {
                inner.await_opening(self.signal.clone());
                return Ok(false);
            }
            Err(_) => return Err(unfit),
        }
        // Its target or host may have no form in HTTP/2.
        let Ok(target) = heads::target(&self.head) else {
            return Err(unfit);
        };
        let head = &self.head;
        let ends = head.body() == RequestBody::None;
        let bodiless = head.method() == b"HEAD";
        let opened = inner.connection.open(ends, bodiless, |block| {
            heads::write_block(head, &target, block);
        });
        let key = opened.map_err(|_| unfit)?;
        inner.watch(key, &self.signal);
        self.parsed = false;
        self.exchange = Some(Exchange {
            handle: Handle::new(&self.shared, key),
            message: Message {
                request: Some(Outward::new(Parts::default(), ends)),
                read: ends,
                bodiless,
                answer: Answer::Awaited(Vec::new()),
            },
        });
        Ok(true)
    }

    /// Looks for the answer's head; whether there is something new to take. If not, the
    /// signal rings when there is.
    fn listen(&mut self) -> bool {
        let Some(Exchange { handle, message }) = &mut self.exchange else {
            return false;
        };
        match handle.with(|connection, key| message.listen(connection, key)) {
            Ok(new) => new,
            Err(Failed) if self.send_again() => false,
            // As a server of HTTP/1.1 that fails: it closes the connection.
            Err(Failed) => {
                (self.exchange, self.spent) = (None, true);
                true
            }
        }
    }

    /// Opens another stream for a request that was refused, if its head is all of it: nothing was
    /// done with it, whatever its method (RFC 9113 section 8.7).
    fn send_again(&mut self) -> bool {
        let Some(Exchange { handle, .. }) = &self.exchange else {
            return false;
        };
        let failure = handle.with(|connection, key| connection.failure(key));
        let refused = failure == Some(http2::StreamError::Refused);
        if !refused || self.head.body() != RequestBody::None || self.again >= MOST_AGAIN {
            return false;
        }
        self.again += 1;
        (self.exchange, self.parsed) = (None, true);
        self.advance().is_ok()
    }

    /// Takes what there is of the answer.
    fn take(&mut self, into: &mut [u8]) -> Received {
        let Some(Exchange { handle, message }) = &mut self.exchange else {
            return match self.spent || self.ended.load(Ordering::Relaxed) {
                true => Received::End,
                false => Received::Nothing,
            };
        };
        let taken = match &mut message.answer {
            Answer::Awaited(interim) => {
                let length = interim.len().min(into.len());
                into[..length].copy_from_slice(&interim[..length]);
                interim.drain(..length);
                Ok(length)
            }
            Answer::Begun(inward) => {
                handle.with(|connection, key| inward.take(into, connection, key))
            }
        };
        if let Answer::Begun(inward) = &message.answer
            && inward.ended()
        {
            let sent = message.request.as_ref().is_some_and(Outward::ended);
            // The rest of the request is in the way of the next one.
            self.spent = !message.read || !sent;
            self.exchange = None;
        }
        match taken {
            Ok(0) if self.spent => Received::End,
            Ok(0) => Received::Nothing,
            Ok(length) => Received::Bytes(length),
            Err(Failed) => {
                (self.exchange, self.spent) = (None, true);
                Received::End
            }
        }
    }
}

impl Message {
    /// Uses what was sent of a request's body.
    fn advance(
        &mut self,
        inbox: &mut Vec<u8>,
        scanner: &mut RequestScanner,
        connection: &mut Connection,
        key: StreamKey,
    ) -> Result<(), StreamError> {
        self.push(connection, key);
        let mut dropped = Parts::default();
        if !self.read {
            let parts = match &mut self.request {
                Some(request) if request.is_full() => return Ok(()),
                Some(request) => request.parts(),
                None => &mut dropped,
            };
            let Ok(scan) = scanner.body(inbox, parts) else {
                return Err(StreamError::Socket(Errno::PIPE));
            };
            inbox.drain(..scan.consumed);
            self.read = scan.ended;
            self.push(connection, key);
        }
        Ok(())
    }

    /// Sends on what came of the request.
    fn push(&mut self, connection: &mut Connection, key: StreamKey) {
        if let Some(request) = &mut self.request {
            if self.read {
                request.finish();
            }
            // A server that wants no more may still answer: the answer tells.
            if request.advance(connection, key).is_err() {
                self.request = None;
            }
        }
    }

    /// Looks for the answer's head, as [`ClientStream::listen`].
    fn listen(&mut self, connection: &mut Connection, key: StreamKey) -> Result<bool, Failed> {
        let Answer::Awaited(bytes) = &mut self.answer else {
            return Ok(false);
        };
        while let Some(interim) = connection.take_interim(key) {
            heads::write_answer(&interim, true, true, bytes);
        }
        let reading = connection.reading(key);
        let Some(head) = connection.head(key) else {
            return match reading {
                Reading::Failed(_) => Err(Failed),
                _ => Ok(!bytes.is_empty()),
            };
        };
        let mut bytes = std::mem::take(bytes);
        let empty = connection.body(key).is_empty() && !connection.has_trailers(key);
        let ends = reading == Reading::Ended && empty;
        let framing = heads::write_answer(head, self.bodiless, ends, &mut bytes);
        self.answer = Answer::Begun(Inward::new(bytes, framing, ends));
        Ok(true)
    }
}

impl Carried for ClientStream {
    fn send(&mut self, bytes: &[u8]) -> Result<usize, StreamError> {
        if self.spent || self.ended.load(Ordering::Relaxed) {
            return Err(StreamError::Socket(Errno::PIPE));
        }
        self.advance()?;
        if self.inbox.len() >= ROOM {
            return Ok(0);
        }
        self.inbox.extend_from_slice(bytes);
        self.advance()?;
        if self.listen() {
            self.signal.ring();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<(), StreamError> {
        self.advance()
    }

    fn wants_write(&self) -> bool {
        let waits = |exchange: &Exchange| {
            exchange
                .message
                .request
                .as_ref()
                .is_some_and(Outward::has_more)
        };
        self.parsed || !self.inbox.is_empty() || self.exchange.as_ref().is_some_and(waits)
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Received, StreamError> {
        // Room may have come for what waits to be sent.
        self.advance()?;
        self.listen();
        let received = self.take(into);
        self.more = received == Received::Bytes(into.len());
        Ok(received)
    }

    fn holds_bytes(&self) -> bool {
        self.more
    }

    /// A stream that has no more to say ends with its request.
    fn close_write(&mut self) -> Result<bool, StreamError> {
        Ok(true)
    }

    fn signal(&self) -> &Signal {
        &self.signal
    }
}
