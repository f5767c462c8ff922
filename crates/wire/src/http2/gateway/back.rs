//! A connection of HTTP/1.1 whose requests become streams to a server.

use std::future::Future as _;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use h2::client::ResponseFuture;

use super::heads;
use super::inward::Inward;
use super::outward::{Outward, Parts};
use super::{ROOM, interest, watch};
use crate::http1::{Limits, RequestBody, RequestHead, RequestScanner};
use crate::http2::wake::ConnectionWaker;
use crate::http2::{Client, ClientSettings, Http2Error, Progress};
use crate::poller::{Interest, Poller};
use crate::stream::{Received, Stream};

/// Tokens of both sockets.
const CONNECTION: u64 = 0;
const PAIR: u64 = 1;

/// A connection of HTTP/2 to a server that is used as one of HTTP/1.1: its requests come
/// one after the other, each becomes a stream. See the [module](super).
pub struct Back {
    poller: Poller,
    client: Client<Stream>,
    /// The connection's socket once more, to watch it by.
    socket: OwnedFd,
    interest: Interest,
    /// TLS may hold bytes that no event tells of.
    readable: bool,
    /// Why the connection has ended. What came before may still be on its way.
    ended: Option<Http2Error>,
    lane: Lane,
}

/// The connection of HTTP/1.1.
struct Lane {
    pair: Stream,
    interest: Interest,
    readable: bool,
    inbox: Vec<u8>,
    scanner: RequestScanner,
    head: RequestHead,
    /// A head that waits for a free stream.
    parsed: bool,
    exchange: Option<Exchange>,
    woken: Arc<ConnectionWaker>,
    waker: Waker,
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
    Awaited(ResponseFuture),
    Begun(Inward),
}

impl Back {
    /// Begins to use a connection whose TLS handshake is done, for the requests that come
    /// from `near`: one end of a [pair](crate::socket::pair).
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn start(stream: Stream, near: OwnedFd, settings: ClientSettings) -> io::Result<Self> {
        let near = Stream::Plain(near);
        let poller = Poller::new()?;
        let socket = rustix::io::fcntl_dupfd_cloexec(&stream, 0)?;
        poller.add(&socket, CONNECTION, Interest::Read)?;
        poller.add(&near, PAIR, Interest::Read)?;
        let woken = Arc::new(ConnectionWaker::default());
        Ok(Self {
            poller,
            client: Client::start(stream, settings),
            socket,
            interest: Interest::Read,
            readable: true,
            ended: None,
            lane: Lane {
                pair: near,
                interest: Interest::Read,
                readable: true,
                inbox: Vec::new(),
                scanner: RequestScanner::new(Limits {
                    head_bytes: 2 * 1024 * 1024,
                    ..Limits::default()
                }),
                head: RequestHead::default(),
                parsed: false,
                exchange: None,
                waker: Waker::from(Arc::clone(&woken)),
                woken,
            },
        })
    }

    /// Does everything that can be done without waiting. To be called once at first,
    /// whenever the descriptor can be read, and again when it says that there is more.
    ///
    /// # Errors
    /// When either side has ended: [`Http2Error::Closed`] if nothing was wrong. Drop it;
    /// the other side then ends too.
    pub fn turn(&mut self) -> Result<Progress, Http2Error> {
        let events = self.poller.wait(Some(Duration::ZERO)).map_err(broken)?;
        let mut readable = std::mem::take(&mut self.readable);
        for index in 0..events {
            let Some(event) = self.poller.event(index) else {
                break;
            };
            match event.token {
                PAIR => self.lane.readable |= event.readable,
                _ => readable |= event.readable,
            }
        }
        let mut progress = self.drive(readable);
        loop {
            self.lane.woken.take();
            self.lane.advance(&mut self.client)?;
            if !self.client.is_woken() && !self.lane.woken.is_set() {
                break;
            }
            progress = self.drive(false);
        }
        if let Some(error) = &self.ended
            && self.lane.exchange.is_none()
        {
            return Err(error.clone());
        }
        let open = self.ended.is_none();
        let wanted = interest(open, open && self.client.wants_write());
        if wanted != self.interest {
            self.poller
                .change(&self.socket, CONNECTION, wanted)
                .map_err(broken)?;
            self.interest = wanted;
        }
        let wanted = self.lane.wanted();
        let Lane { pair, interest, .. } = &mut self.lane;
        watch(&self.poller, pair, PAIR, interest, wanted).map_err(broken)?;
        Ok(progress)
    }
}

impl Back {
    fn drive(&mut self, readable: bool) -> Progress {
        if self.ended.is_some() {
            return Progress::Waiting;
        }
        self.client.drive(readable).unwrap_or_else(|error| {
            self.ended = Some(error);
            Progress::Waiting
        })
    }
}

impl AsFd for Back {
    /// Can be read when [`Back::turn`] has something to do.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

fn broken(error: io::Error) -> Http2Error {
    Http2Error::Io(error.kind())
}

impl Lane {
    fn wanted(&self) -> Interest {
        let write = match &self.exchange {
            Some(Exchange {
                answer: Answer::Begun(inward),
                ..
            }) => inward.wants_write(),
            _ => false,
        };
        interest(self.takes(), write)
    }

    /// Whether more of the request is read. Without a request it is, to notice the end.
    fn takes(&self) -> bool {
        match &self.exchange {
            Some(Exchange {
                request: Some(request),
                ..
            }) => !request.is_full() && self.inbox.len() < ROOM,
            _ => self.inbox.len() < 2 * 1024 * 1024 + ROOM,
        }
    }

    fn advance(&mut self, client: &mut Client<Stream>) -> Result<(), Http2Error> {
        loop {
            let mut moved = self.readable && self.takes();
            if moved {
                self.read()?;
            }
            moved |= match self.exchange {
                None => self.begin(client)?,
                Some(_) => self.go_on()?,
            };
            if !moved {
                return Ok(());
            }
        }
    }

    /// Takes in what the router says, once.
    fn read(&mut self) -> Result<(), Http2Error> {
        let mut buffer = [0; ROOM / 4];
        match self.pair.receive(&mut buffer) {
            Ok(Received::Bytes(length)) => {
                self.readable = length == buffer.len();
                self.inbox.extend_from_slice(&buffer[..length]);
            }
            Ok(Received::Nothing) => self.readable = false,
            // Nobody waits for an answer any more.
            Ok(Received::End) | Err(_) => return Err(Http2Error::Closed),
        }
        Ok(())
    }

    /// Opens a stream for the next request, if its head is there and a stream is free.
    fn begin(&mut self, client: &mut Client<Stream>) -> Result<bool, Http2Error> {
        if !self.parsed {
            if self.inbox.is_empty() {
                return Ok(false);
            }
            let length = self
                .scanner
                .head(&self.inbox, &mut self.head)
                .map_err(|error| Http2Error::Request(error.to_string()))?;
            let Some(length) = length else {
                return Ok(false);
            };
            self.inbox.drain(..length);
            self.parsed = true;
        }
        let request = heads::request(&self.head).map_err(|_| {
            Http2Error::Request("its target or host has no form in HTTP/2".to_owned())
        })?;
        let ends = self.head.body() == RequestBody::None;
        let (answer, send) = match client.request(request, ends) {
            Ok(opened) => opened,
            Err(Http2Error::Full) => return Ok(false),
            Err(error) => return Err(error),
        };
        self.parsed = false;
        self.exchange = Some(Exchange {
            request: Some(Outward::new(send, ends)),
            read: ends,
            bodiless: self.head.method() == b"HEAD",
            answer: Answer::Awaited(answer),
        });
        Ok(true)
    }

    /// Moves what can be moved of the exchange; whether it has ended.
    fn go_on(&mut self) -> Result<bool, Http2Error> {
        let Some(exchange) = &mut self.exchange else {
            return Ok(false);
        };
        let mut context = Context::from_waker(&self.waker);
        exchange.send(&mut self.scanner, &mut self.inbox, &mut context)?;
        if let Answer::Awaited(answer) = &mut exchange.answer {
            while let Poll::Ready(Some(interim)) = answer.poll_informational(&mut context) {
                let (head, ()) = interim.map_err(failed)?.into_parts();
                let mut bytes = Vec::new();
                heads::write_answer(&head, true, true, &mut bytes);
                // A line and a few fields into a pair that nothing else waits for.
                if !matches!(self.pair.send(&bytes), Ok(sent) if sent == bytes.len()) {
                    return Err(Http2Error::Closed);
                }
            }
            let Poll::Ready(response) = Pin::new(answer).poll(&mut context) else {
                return Ok(false);
            };
            let (head, body) = response.map_err(failed)?.into_parts();
            let mut bytes = Vec::new();
            let ends = body.is_end_stream();
            let framing = heads::write_answer(&head, exchange.bodiless, ends, &mut bytes);
            exchange.answer = Answer::Begun(Inward::new(bytes, body, framing));
        }
        let Answer::Begun(inward) = &mut exchange.answer else {
            return Ok(false);
        };
        inward
            .advance(&mut self.pair, &mut context)
            .map_err(|_| Http2Error::Closed)?;
        if !inward.ended() {
            return Ok(false);
        }
        let sent = exchange.request.as_ref().is_some_and(Outward::ended);
        if !exchange.read || !sent {
            // The rest of the request is in the way of the next one.
            return Err(Http2Error::Closed);
        }
        self.exchange = None;
        Ok(true)
    }
}

impl Exchange {
    /// Sends on what came of the request.
    fn send(
        &mut self,
        scanner: &mut RequestScanner,
        inbox: &mut Vec<u8>,
        context: &mut Context<'_>,
    ) -> Result<(), Http2Error> {
        let mut dropped = Parts::default();
        if !self.read {
            let parts = match &mut self.request {
                Some(request) => request.parts(),
                None => &mut dropped,
            };
            let scan = scanner
                .body(inbox, parts)
                .map_err(|error| Http2Error::Request(error.to_string()))?;
            inbox.drain(..scan.consumed);
            self.read = scan.ended;
        }
        if let Some(request) = &mut self.request {
            if self.read {
                request.finish();
            }
            // A server that wants no more may still answer: the answer tells.
            if request.advance(context).is_err() {
                self.request = None;
            }
        }
        Ok(())
    }
}

/// Why an exchange failed, as the end of its connection of HTTP/1.1.
fn failed(error: h2::Error) -> Http2Error {
    Http2Error::from(&error)
}
