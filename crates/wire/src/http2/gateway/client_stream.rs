//! A server's connection as one of HTTP/1.1, whose requests become streams.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use rustix::io::Errno;

use super::heads;
use super::inward::{Failed, Inward};
use super::outward::{Outward, Parts};
use super::{LIMITS, ROOM};
use crate::http1::{RequestBody, RequestHead, RequestScanner};
use crate::http2::{Client, ClientSettings, Http2Error, Progress};
use crate::poller::{Interest, Poller};
use crate::signal::Signal;
use crate::stream::{Carried, Received, Stream, StreamError};

/// The connection below a [`ClientStream`].
pub struct Backend {
    client: Client,
    /// The connection or its stream has ended.
    ended: Arc<AtomicBool>,
    /// The stream's.
    signal: Signal,
}

/// A server's connection as one of HTTP/1.1: its requests come one after the other, each
/// becomes a stream of HTTP/2. It ends where one of HTTP/1.1 would have to.
pub struct ClientStream {
    signal: Signal,
    waker: Waker,
    requests: SendRequest<Bytes>,
    /// The connection below or this stream has ended.
    ended: Arc<AtomicBool>,
    /// The connection's.
    backend: Signal,
    /// What was sent and is not used yet.
    inbox: Vec<u8>,
    scanner: RequestScanner,
    head: RequestHead,
    /// A head that waits for a free stream.
    parsed: bool,
    exchange: Option<Exchange>,
    /// The answer may have more than what was received.
    more: bool,
    /// There will be no other request: the last one is in the way of it.
    spent: bool,
}

/// One request and its answer.
struct Exchange {
    /// `None`: the server wants no more of the request.
    request: Option<Outward>,
    /// All of the request was read.
    read: bool,
    bodiless: bool,
    answer: Answer,
}

enum Answer {
    /// With the interim answers so far.
    Awaited(ResponseFuture, Vec<u8>),
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
        let mut client = Client::start(stream, settings);
        client.watch(poller, token)?;
        poller.add(client.signal(), token, Interest::Read)?;
        let driven = client.drive(false);
        let requests = client.requests().filter(|_| driven.is_ok());
        let requests = requests.ok_or(Errno::CONNRESET)?;
        let (signal, ended) = (Signal::default(), Arc::new(AtomicBool::new(false)));
        let stream = ClientStream {
            waker: signal.waker(),
            signal: signal.clone(),
            requests,
            ended: Arc::clone(&ended),
            backend: client.signal().clone(),
            inbox: Vec::new(),
            scanner: RequestScanner::new(LIMITS),
            head: RequestHead::default(),
            parsed: false,
            exchange: None,
            more: false,
            spent: false,
        };
        let backend = Self {
            client,
            ended,
            signal,
        };
        Ok((backend, stream))
    }

    /// Does everything that can be done without waiting. To be called when its token is
    /// told of, and again when there is more.
    ///
    /// # Errors
    /// When the connection has ended, as its stream hears too: [`Http2Error::Closed`] if
    /// nothing was wrong.
    pub fn drive(&mut self, readable: bool, poller: &Poller) -> Result<Progress, Http2Error> {
        let driven = self.client.drive(readable);
        if self.ended.load(Ordering::Relaxed) {
            return Err(Http2Error::Closed);
        }
        let watched = self.client.rewatch(poller);
        driven.and_then(|progress| match watched {
            Ok(()) => Ok(progress),
            Err(error) => Err(Http2Error::Io(error.kind())),
        })
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
        self.backend.ring();
    }
}

impl ClientStream {
    /// Uses what was sent, as far as the server lets it.
    fn advance(&mut self) -> Result<(), StreamError> {
        if self.exchange.is_none() && !self.begin()? {
            return Ok(());
        }
        self.push();
        let mut dropped = Parts::default();
        if let Some(exchange) = &mut self.exchange
            && !exchange.read
        {
            let parts = match &mut exchange.request {
                Some(request) if request.is_full() => return Ok(()),
                Some(request) => request.parts(),
                None => &mut dropped,
            };
            let Ok(scan) = self.scanner.body(&self.inbox, parts) else {
                return Err(StreamError::Socket(Errno::PIPE));
            };
            self.inbox.drain(..scan.consumed);
            exchange.read = scan.ended;
            self.push();
        }
        Ok(())
    }

    /// Sends on what came of the request.
    fn push(&mut self) {
        if let Some(exchange) = &mut self.exchange
            && let Some(request) = &mut exchange.request
        {
            if exchange.read {
                request.finish();
            }
            // A server that wants no more may still answer: the answer tells.
            let advanced = request.advance(&mut Context::from_waker(&self.waker));
            if advanced.is_err() {
                exchange.request = None;
            }
        }
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
            self.parsed = true;
        }
        let mut context = Context::from_waker(&self.waker);
        match self.requests.poll_ready(&mut context) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(_)) => return Err(unfit),
            Poll::Pending => return Ok(false),
        }
        // Its target or host may have no form in HTTP/2.
        let Ok(request) = heads::request(&self.head) else {
            return Err(unfit);
        };
        let ends = self.head.body() == RequestBody::None;
        let Ok((answer, send)) = self.requests.send_request(request, ends) else {
            return Err(unfit);
        };
        self.parsed = false;
        self.exchange = Some(Exchange {
            request: Some(Outward::new(send, ends)),
            read: ends,
            bodiless: self.head.method() == b"HEAD",
            answer: Answer::Awaited(answer, Vec::new()),
        });
        Ok(true)
    }

    /// Looks for the answer's head; whether there is something new to take. If not, the
    /// signal rings when there is.
    fn listen(&mut self) -> bool {
        let Some(exchange) = &mut self.exchange else {
            return false;
        };
        let Answer::Awaited(answer, bytes) = &mut exchange.answer else {
            return false;
        };
        let mut context = Context::from_waker(&self.waker);
        let mut head = || {
            while let Poll::Ready(Some(interim)) = answer.poll_informational(&mut context) {
                let (head, ()) = interim?.into_parts();
                heads::write_answer(&head, true, true, bytes);
            }
            Pin::new(&mut *answer).poll(&mut context)
        };
        match head() {
            Poll::Ready(Ok(response)) => {
                let (head, body) = response.into_parts();
                let mut bytes = std::mem::take(bytes);
                let ends = body.is_end_stream();
                let framing = heads::write_answer(&head, exchange.bodiless, ends, &mut bytes);
                exchange.answer = Answer::Begun(Inward::new(bytes, body, framing));
            }
            // As a server of HTTP/1.1 that fails: it closes the connection.
            Poll::Ready(Err(_)) => (self.exchange, self.spent) = (None, true),
            Poll::Pending => return !bytes.is_empty(),
        }
        true
    }

    /// Takes what there is of the answer.
    fn take(&mut self, into: &mut [u8]) -> Received {
        let Some(exchange) = &mut self.exchange else {
            return match self.spent || self.ended.load(Ordering::Relaxed) {
                true => Received::End,
                false => Received::Nothing,
            };
        };
        let taken = match &mut exchange.answer {
            Answer::Awaited(_, interim) => {
                let length = interim.len().min(into.len());
                into[..length].copy_from_slice(&interim[..length]);
                interim.drain(..length);
                Ok(length)
            }
            Answer::Begun(inward) => inward.take(into, &mut Context::from_waker(&self.waker)),
        };
        if let Answer::Begun(inward) = &exchange.answer
            && inward.ended()
        {
            let sent = exchange.request.as_ref().is_some_and(Outward::ended);
            // The rest of the request is in the way of the next one.
            self.spent = !exchange.read || !sent;
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
        let waits = |exchange: &Exchange| exchange.request.as_ref().is_some_and(Outward::has_more);
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
