//! A server's connection that takes whole requests and gives whole answers.

use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode};

use super::driver::Progress;
use super::payload::{Payload, Sending};
use super::server::{Accepted, Server, ServerSettings};
use super::slots::{Slots, StreamKey};
use super::{Http2Error, StreamError};
use crate::poller::Poller;
use crate::stream::Stream;

/// A server's connection over a stream in non-blocking mode, whose TLS handshake is done.
/// Bodies of requests are read to their end, and their first bytes kept; one that is too
/// long is answered with 413 here.
pub struct Serving {
    server: Server,
    keep: usize,
    most: u64,
    slots: Slots<Lane>,
    accepted: Vec<Accepted>,
    events: Vec<(StreamKey, Served)>,
}

/// What happened to a stream.
#[derive(Debug)]
pub enum Served {
    /// A request is there, to be answered with [`Serving::answer`] or given up with
    /// [`Serving::reset`].
    Asked(Box<Asked>),
    /// The answer was handed to the connection, as a whole.
    Answered,
    /// The client gave the request up, or the connection has ended: no answer reaches it.
    Gone,
}

/// A whole request.
#[derive(Debug)]
pub struct Asked {
    /// Its head.
    pub head: Parts,
    /// The start of its body, as much as is kept.
    pub body: Vec<u8>,
    /// Bytes of the body.
    pub body_bytes: u64,
}

/// One stream.
struct Lane {
    respond: SendResponse<Bytes>,
    stage: Stage,
}

enum Stage {
    Asking(RecvStream, Box<Asked>),
    Asked,
    Answering(Sending),
}

impl Serving {
    /// A connection on which nothing was received yet. Of a request's body `keep` bytes
    /// are kept, and `most` are taken.
    pub fn start(stream: Stream, settings: ServerSettings, keep: usize, most: u64) -> Self {
        Self {
            server: Server::start(stream, settings),
            keep,
            most,
            slots: Slots::new(),
            accepted: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Sends what waits to be sent, and reads what there is if the socket is `readable`
    /// (true too when that is not known). To be called when the socket became ready, and
    /// after [`answer`](Self::answer), [`reset`](Self::reset) and
    /// [`shut_down`](Self::shut_down).
    ///
    /// # Errors
    /// When the connection has ended: [`Http2Error::Closed`] if nothing was wrong. Every
    /// open stream is then gone, as [`served`](Self::served) tells.
    pub fn drive(&mut self, mut readable: bool) -> Result<Progress, Http2Error> {
        loop {
            let driven = self.server.drive(readable, &mut self.accepted);
            readable = false;
            // What came before the end counts.
            for (request, respond) in self.accepted.drain(..) {
                let (head, body) = request.into_parts();
                let asked = Box::new(Asked {
                    head,
                    body: Vec::new(),
                    body_bytes: 0,
                });
                let stage = Stage::Asking(body, asked);
                self.slots.insert(Lane { respond, stage });
            }
            let (keep, most, events) = (self.keep, self.most, &mut self.events);
            self.slots.poll_woken(|key, lane, context| {
                let event = lane.poll(keep, most, context);
                let ends = lane.is_over(&event);
                if let Poll::Ready(Some(event)) = event {
                    events.push((key, event));
                }
                ends
            });
            match driven {
                Ok(progress) if !self.server.is_woken() => return Ok(progress),
                Ok(_) => {}
                Err(error) => {
                    let gone = self.slots.clear().map(|key| (key, Served::Gone));
                    self.events.extend(gone);
                    return Err(error);
                }
            }
        }
    }

    /// What has happened since the last call.
    pub fn served(&mut self) -> impl Iterator<Item = (StreamKey, Served)> + '_ {
        self.events.drain(..)
    }

    /// Answers a request. The bytes go out with the next [`drive`](Self::drive). Nothing
    /// happens if the stream is gone.
    ///
    /// # Errors
    /// The head cannot stand in an answer; the stream is reset.
    pub fn answer(
        &mut self,
        key: StreamKey,
        head: Response<()>,
        body: Payload,
        trailers: Option<HeaderMap>,
    ) -> Result<(), StreamError> {
        let Some((lane, mut context)) = self.slots.touch(key) else {
            return Ok(());
        };
        let ends = body.is_empty() && trailers.is_none();
        let send = lane.respond.send_response(head, ends).map_err(|error| {
            lane.respond.send_reset(Reason::INTERNAL_ERROR);
            StreamError::from(&error)
        })?;
        let mut sending = Sending::new(send, body, trailers, ends);
        // What the client lets through goes out with the head. How that went is told when
        // the stream is polled.
        let _ = sending.advance(&mut context);
        lane.stage = Stage::Answering(sending);
        Ok(())
    }

    /// Gives a request up: the client is told with the next [`drive`](Self::drive).
    /// Nothing more is told of it here.
    pub fn reset(&mut self, key: StreamKey, reason: Reason) {
        if let Some(mut lane) = self.slots.remove(key) {
            match &mut lane.stage {
                Stage::Answering(sending) => sending.reset(reason),
                _ => lane.respond.send_reset(reason),
            }
        }
        self.events.retain(|(told, _)| *told != key);
    }

    /// Tells the client to open no more streams. The connection ends with the last one.
    pub fn shut_down(&mut self) {
        self.server.shut_down();
    }

    /// Streams that are open.
    pub fn open_streams(&self) -> usize {
        self.slots.open()
    }

    /// As [`Server::watch`].
    ///
    /// # Errors
    /// As there.
    pub fn watch(&mut self, poller: &Poller, token: u64) -> io::Result<()> {
        self.server.watch(poller, token)
    }

    /// As [`Server::rewatch`].
    ///
    /// # Errors
    /// As there.
    pub fn rewatch(&mut self, poller: &Poller) -> io::Result<()> {
        self.server.rewatch(poller)
    }

    /// Whether the socket was full: drive again when it can be written to.
    pub fn wants_write(&self) -> bool {
        self.server.wants_write()
    }
}

impl Lane {
    /// Goes on as far as it can; ready without an event: it is over, and nobody asked.
    fn poll(&mut self, keep: usize, most: u64, context: &mut Context<'_>) -> Poll<Option<Served>> {
        match &mut self.stage {
            Stage::Asking(body, asked) => {
                let Some(ended) = read(body, asked, keep, most, context) else {
                    return Poll::Pending;
                };
                match ended {
                    Ended::Whole => {
                        let stage = std::mem::replace(&mut self.stage, Stage::Asked);
                        let Stage::Asking(_, asked) = stage else {
                            return Poll::Pending;
                        };
                        // From now on the end of the stream is what wakes it.
                        if self.respond.poll_reset(context).is_ready() {
                            context.waker().wake_by_ref();
                        }
                        Poll::Ready(Some(Served::Asked(asked)))
                    }
                    Ended::TooLong => {
                        let mut answer = Response::new(());
                        *answer.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
                        // Fails only when the client has reset the stream.
                        let _ = self.respond.send_response(answer, true);
                        Poll::Ready(None)
                    }
                    Ended::Broken => Poll::Ready(None),
                }
            }
            Stage::Asked => self.respond.poll_reset(context).map(|_| Some(Served::Gone)),
            Stage::Answering(sending) => {
                if sending.is_reset(context) {
                    return Poll::Ready(Some(Served::Gone));
                }
                sending.advance(context).map(|sent| {
                    Some(match sent {
                        Ok(()) => Served::Answered,
                        Err(_) => Served::Gone,
                    })
                })
            }
        }
    }

    /// Whether nothing more happens to it.
    fn is_over(&self, event: &Poll<Option<Served>>) -> bool {
        !matches!(event, Poll::Pending | Poll::Ready(Some(Served::Asked(_))))
    }
}

/// How a body ended.
enum Ended {
    Whole,
    TooLong,
    Broken,
}

/// Takes in what came of a body.
fn read(
    body: &mut RecvStream,
    asked: &mut Asked,
    keep: usize,
    most: u64,
    context: &mut Context<'_>,
) -> Option<Ended> {
    loop {
        match body.poll_data(context) {
            Poll::Ready(Some(Ok(part))) => {
                asked.body_bytes = asked.body_bytes.saturating_add(part.len() as u64);
                if asked.body_bytes > most {
                    return Some(Ended::TooLong);
                }
                let room = keep.saturating_sub(asked.body.len());
                asked
                    .body
                    .extend_from_slice(part.get(..room).unwrap_or(&part));
                // Refused only when the stream has failed, which the next look tells.
                let _ = body.flow_control().release_capacity(part.len());
            }
            Poll::Ready(None) => match body.poll_trailers(context) {
                Poll::Ready(Ok(_)) => return Some(Ended::Whole),
                Poll::Ready(Err(_)) => return Some(Ended::Broken),
                Poll::Pending => return None,
            },
            Poll::Ready(Some(Err(_))) => return Some(Ended::Broken),
            Poll::Pending => return None,
        }
    }
}

#[cfg(test)]
mod tests;
