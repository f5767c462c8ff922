//! A client's connection that keeps whole exchanges.

use std::io;

use http::Method;

use super::answer::Answer;
use super::client::ClientSettings;
use super::codec::{Connection, Reading, StreamKey};
use super::link::{Carried, Link, Progress, Side};
use super::payload::{self, Payload};
use super::{Http2Error, StreamError, maps};
use crate::poller::Poller;
use crate::stream::Stream;

/// A client's connection, whose TCP connection and TLS handshake are done. Its requests are
/// sent whole, and answers come whole. It works within [`Exchanges::drive`] and nowhere else.
pub struct Exchanges {
    connection: Connection,
    link: Link,
    /// Those that have no whole answer yet, by slot.
    exchanges: Vec<Option<Exchange>>,
    finished: Vec<(StreamKey, Result<Answer, StreamError>)>,
}

/// An exchange that has no whole answer yet.
struct Exchange {
    key: StreamKey,
    request: Payload,
    keep: usize,
    /// What is known of the answer's body.
    answer: Answer,
}

impl Exchanges {
    /// A connection on which nothing was sent yet; [`drive`](Self::drive) begins.
    pub fn start(stream: Stream, settings: ClientSettings) -> Self {
        Self {
            connection: settings.connection(),
            link: Link::new(stream, settings.read_budget),
            exchanges: Vec::new(),
            finished: Vec::new(),
        }
    }

    /// Sends what waits to be sent, and reads what there is if the socket is
    /// `readable` (true too when that is not known). To be called when the socket became
    /// ready, and after [`send`](Self::send) and [`cancel`](Self::cancel).
    ///
    /// # Errors
    /// When the connection has ended. Every open stream is then among the
    /// [`finished`](Self::finished) ones.
    pub fn drive(&mut self, readable: bool) -> Result<Progress, Http2Error> {
        self.link.receive(&mut self.connection, readable);
        self.give_turns()
    }

    /// Whether [`send`](Self::send) finds a free stream.
    pub fn can_send(&mut self) -> bool {
        self.connection.ready().is_ok()
    }

    /// Whether no further request can ever be sent: the peer said that it goes away, or
    /// the numbers of streams are used up. Open exchanges may still end well.
    pub fn is_draining(&mut self) -> bool {
        matches!(self.connection.ready(), Err(error) if error != Http2Error::Full)
    }

    /// Opens a stream for a request, whose URI must be absolute. The bytes go out with
    /// the next [`drive`](Self::drive). At most `keep` bytes of the answer's body are
    /// kept.
    ///
    /// # Errors
    /// [`Http2Error::Full`] if no stream is free, [`Http2Error::Request`] if the request
    /// cannot be sent as it is, others when the connection has ended.
    pub fn send(
        &mut self,
        request: http::Request<()>,
        body: impl Into<Payload>,
        keep: usize,
    ) -> Result<StreamKey, Http2Error> {
        self.connection.ready()?;
        maps::check(&request)?;
        let mut body = body.into();
        let bodiless = request.method() == Method::HEAD;
        let key = self.connection.open(body.is_empty(), bodiless, |block| {
            maps::write_request(&request, block);
        })?;
        // What the peer lets through goes out with the head.
        payload::send(&mut body, None, &mut self.connection, key);
        if self.exchanges.len() <= key.slot() {
            self.exchanges.resize_with(key.slot() + 1, || None);
        }
        self.exchanges[key.slot()] = Some(Exchange {
            key,
            request: body,
            keep,
            answer: Answer::default(),
        });
        Ok(key)
    }

    /// Gives up an exchange; the peer is told with the next [`drive`](Self::drive). It
    /// will not be among the finished ones. Nothing happens if it has ended.
    pub fn cancel(&mut self, key: StreamKey) {
        let place = self.exchanges.get_mut(key.slot());
        if let Some(place) = place
            && place.as_ref().is_some_and(|exchange| exchange.key == key)
        {
            *place = None;
            self.connection.release(key);
        }
        self.finished.retain(|(finished, _)| *finished != key);
    }

    /// Exchanges that have ended since the last call.
    pub fn finished(
        &mut self,
    ) -> impl Iterator<Item = (StreamKey, Result<Answer, StreamError>)> + '_ {
        self.finished.drain(..)
    }

    /// Exchanges that have not ended.
    pub fn open_streams(&self) -> usize {
        self.exchanges.iter().flatten().count()
    }

    /// Bytes that went over the connection since the last call.
    pub fn take_bytes(&mut self) -> Carried {
        self.link.take_bytes()
    }

    /// Begins to watch the socket, with this token.
    ///
    /// # Errors
    /// As [`Poller::add`].
    pub fn watch(&mut self, poller: &Poller, token: u64) -> io::Result<()> {
        self.link.watch(poller, token)
    }

    /// Watches for what the last drive left to do. To be called after drives.
    ///
    /// # Errors
    /// As [`Poller::change`].
    pub fn rewatch(&mut self, poller: &Poller) -> io::Result<()> {
        self.link.rewatch(poller)
    }

    /// Whether the socket was full: drive again when it can be written to.
    pub fn wants_write(&self) -> bool {
        self.link.wants_write()
    }
}

impl Side for Exchanges {
    fn parts(&mut self) -> (&mut Link, &mut Connection) {
        (&mut self.link, &mut self.connection)
    }

    fn turn(&mut self, key: StreamKey) {
        let Some(Some(exchange)) = self.exchanges.get_mut(key.slot()) else {
            return;
        };
        let connection = &mut self.connection;
        // A server that takes no more of the request may still answer: the answer tells.
        payload::send(&mut exchange.request, None, connection, key);
        let (body, answer) = (connection.body(key), &mut exchange.answer);
        let length = body.len();
        answer.body_bytes = answer.body_bytes.saturating_add(length as u64);
        let room = exchange.keep.saturating_sub(answer.body.len());
        answer.body.extend_from_slice(&body[..room.min(length)]);
        connection.use_body(key, length);
        while connection.take_interim(key).is_some() {}
        let outcome = match connection.reading(key) {
            Reading::Open => return,
            Reading::Failed(error) => Err(error),
            Reading::Ended => {
                let mut answer = std::mem::take(answer);
                if let Some(head) = connection.head(key) {
                    answer.status = head.status().unwrap_or_default();
                    answer.headers = maps::map(head);
                }
                answer.trailers = connection.take_trailers(key).as_ref().map(maps::map);
                Ok(answer)
            }
        };
        self.connection.release(key);
        self.exchanges[key.slot()] = None;
        self.finished.push((key, outcome));
    }
}
