//! A server's connection that takes whole requests and gives whole answers.

use std::io;

use http::request::Parts;
use http::{HeaderMap, Response};

use super::codec::{Connection, Reading, StreamKey};
use super::link::{Link, Progress, Side};
use super::payload::{self, Payload};
use super::server::ServerSettings;
use super::{Http2Error, Reason, StreamError, maps};
use crate::poller::Poller;
use crate::stream::Stream;

/// A server's connection over a stream in non-blocking mode, whose TLS handshake is done.
/// Bodies of requests are read to their end, and their first bytes kept; one that is too
/// long is answered with 413 here.
pub struct Serving {
    connection: Connection,
    link: Link,
    keep: usize,
    most: u64,
    /// Streams that are open, by slot.
    streams: Vec<Option<ServedStream>>,
    events: Vec<(StreamKey, Served)>,
}

/// What happened to a stream.
#[derive(Debug)]
pub enum Served {
    /// A request is there, to be answered with [`Serving::answer`] or given up with
    /// [`Serving::reset`].
    Asked(Box<ReceivedRequest>),
    /// The answer was handed to the connection, as a whole.
    Answered,
    /// The client gave the request up, or the connection has ended: no answer reaches it.
    Gone,
}

/// A whole request.
#[derive(Debug)]
pub struct ReceivedRequest {
    /// Its head.
    pub head: Parts,
    /// The start of its body, as much as is kept.
    pub body: Vec<u8>,
    /// Bytes of the body.
    pub body_bytes: u64,
}

/// One stream.
struct ServedStream {
    key: StreamKey,
    stage: Stage,
}

enum Stage {
    Asking(Box<ReceivedRequest>),
    Asked,
    Answering(Payload, Option<HeaderMap>),
}

impl Serving {
    /// A connection on which nothing was received yet. Of a request's body `keep` bytes
    /// are kept, and `most` are taken.
    pub fn start(stream: Stream, settings: ServerSettings, keep: usize, most: u64) -> Self {
        Self {
            connection: settings.connection(),
            link: Link::new(stream, settings.read_budget),
            keep,
            most,
            streams: Vec::new(),
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
    pub fn drive(&mut self, readable: bool) -> Result<Progress, Http2Error> {
        self.link.receive(&mut self.connection, readable);
        while let Some(key) = self.connection.opened() {
            self.open(key);
        }
        self.give_turns()
    }

    /// A client has opened a stream.
    fn open(&mut self, key: StreamKey) {
        let Some(head) = self.connection.head(key).and_then(maps::request) else {
            self.connection.reset(key, Reason::PROTOCOL_ERROR);
            self.connection.release(key);
            return;
        };
        let asked = Box::new(ReceivedRequest {
            head,
            body: Vec::new(),
            body_bytes: 0,
        });
        if self.streams.len() <= key.slot() {
            self.streams.resize_with(key.slot() + 1, || None);
        }
        let stage = Stage::Asking(asked);
        self.streams[key.slot()] = Some(ServedStream { key, stage });
        self.turn(key);
    }

    fn remove(&mut self, key: StreamKey) {
        let place = self.streams.get_mut(key.slot());
        if let Some(place) = place
            && place.as_ref().is_some_and(|lane| lane.key == key)
        {
            *place = None;
            self.connection.release(key);
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
        let Some(Some(lane)) = self.streams.get_mut(key.slot()) else {
            return Ok(());
        };
        if lane.key != key {
            return Ok(());
        }
        let all = [Some(head.headers()), trailers.as_ref()];
        if all
            .into_iter()
            .flatten()
            .any(|it| maps::of_connection(it).is_some())
        {
            let reason = Reason::INTERNAL_ERROR;
            self.connection.reset(key, reason);
            self.remove(key);
            self.events.push((key, Served::Gone));
            return Err(StreamError::Reset(reason));
        }
        let ends = body.is_empty() && trailers.is_none();
        self.connection.answer(key, ends, |block| {
            block.status(head.status().as_u16());
            maps::write(head.headers(), block);
        });
        lane.stage = Stage::Answering(body, trailers);
        // What the client lets through goes out with the head.
        self.turn(key);
        Ok(())
    }

    /// Gives a request up: the client is told with the next [`drive`](Self::drive).
    /// Nothing more is told of it here.
    pub fn reset(&mut self, key: StreamKey, reason: Reason) {
        let lane = self.streams.get(key.slot()).and_then(Option::as_ref);
        if lane.is_some_and(|lane| lane.key == key) {
            self.connection.reset(key, reason);
            self.remove(key);
        }
        self.events.retain(|(told, _)| *told != key);
    }

    /// Tells the client to open no more streams. The connection ends with the last one.
    pub fn shut_down(&mut self) {
        self.connection.shut_down();
    }

    /// Streams that are open.
    pub fn open_streams(&self) -> usize {
        self.streams.iter().flatten().count()
    }

    /// Begins to watch the socket, with this token.
    ///
    /// # Errors
    /// As there.
    pub fn watch(&mut self, poller: &Poller, token: u64) -> io::Result<()> {
        self.link.watch(poller, token)
    }

    /// Watches for what the last drive left to do. To be called after drives.
    ///
    /// # Errors
    /// As there.
    pub fn rewatch(&mut self, poller: &Poller) -> io::Result<()> {
        self.link.rewatch(poller)
    }

    /// Whether the socket was full: drive again when it can be written to.
    pub fn wants_write(&self) -> bool {
        self.link.wants_write()
    }
}

impl Side for Serving {
    fn parts(&mut self) -> (&mut Link, &mut Connection) {
        (&mut self.link, &mut self.connection)
    }

    fn turn(&mut self, key: StreamKey) {
        let Some(Some(lane)) = self.streams.get_mut(key.slot()) else {
            return;
        };
        let connection = &mut self.connection;
        let event = match &mut lane.stage {
            _ if connection.failure(key).is_some() => match lane.stage {
                // Nobody has heard of it.
                Stage::Asking(_) => None,
                _ => Some(Served::Gone),
            },
            Stage::Asking(asked) => match read(asked, self.keep, self.most, connection, key) {
                Read::More => return,
                Read::Whole => {
                    let stage = std::mem::replace(&mut lane.stage, Stage::Asked);
                    if let Stage::Asking(asked) = stage {
                        self.events.push((key, Served::Asked(asked)));
                    }
                    return;
                }
                Read::TooLong => {
                    connection.answer(key, true, |block| block.status(413));
                    None
                }
            },
            Stage::Asked => return,
            Stage::Answering(body, trailers) => {
                match payload::send(body, trailers.as_ref(), connection, key) {
                    true => Some(Served::Answered),
                    false => return,
                }
            }
        };
        self.events.extend(event.map(|event| (key, event)));
        self.remove(key);
    }
}

/// How far a body is.
enum Read {
    More,
    Whole,
    TooLong,
}

/// Takes in what came of a body.
fn read(
    asked: &mut ReceivedRequest,
    keep: usize,
    most: u64,
    connection: &mut Connection,
    key: StreamKey,
) -> Read {
    let body = connection.body(key);
    let length = body.len();
    asked.body_bytes = asked.body_bytes.saturating_add(length as u64);
    if asked.body_bytes > most {
        return Read::TooLong;
    }
    let room = keep.saturating_sub(asked.body.len());
    asked
        .body
        .extend_from_slice(body.get(..room).unwrap_or(body));
    connection.use_body(key, length);
    match connection.reading(key) {
        Reading::Ended => Read::Whole,
        _ => Read::More,
    }
}

#[cfg(test)]
mod tests;
