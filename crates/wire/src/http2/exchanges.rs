//! A client's connection that keeps whole exchanges.

use std::io;
use std::task::Poll;

use super::answer::{Answer, Exchange};
use super::client::{Client, ClientSettings};
use super::driver::Progress;
use super::payload::{Payload, Sending};
use super::slots::{Slots, StreamKey};
use super::{Http2Error, StreamError};
use crate::poller::Poller;
use crate::stream::Stream;

/// A [`Client`] whose requests are sent whole, and whose answers come whole.
pub struct Exchanges {
    client: Client,
    streams: usize,
    /// Why nothing more can be sent.
    ended: Option<Http2Error>,
    slots: Slots<Exchange>,
    finished: Vec<(StreamKey, Result<Answer, StreamError>)>,
}

impl Exchanges {
    /// A connection on which nothing was sent yet; [`drive`](Self::drive) begins.
    pub fn start(stream: Stream, settings: ClientSettings) -> Self {
        Self {
            client: Client::start(stream, settings),
            streams: settings.streams,
            ended: None,
            slots: Slots::new(),
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
    pub fn drive(&mut self, mut readable: bool) -> Result<Progress, Http2Error> {
        loop {
            let driven = self.client.drive(readable);
            readable = false;
            // What came before the end counts.
            let finished = &mut self.finished;
            self.slots.poll_woken(|key, exchange, context| {
                let Poll::Ready(outcome) = exchange.poll(context) else {
                    return false;
                };
                finished.push((key, outcome));
                true
            });
            match driven {
                Ok(progress) if !self.client.is_woken() => return Ok(progress),
                // Exchanges may have left something to send.
                Ok(_) => {}
                Err(error) => {
                    self.fail(&error);
                    return Err(error);
                }
            }
        }
    }

    fn fail(&mut self, error: &Http2Error) {
        let of_stream = match error {
            Http2Error::Io(kind) => StreamError::Io(*kind),
            Http2Error::GoAway(reason) => StreamError::GoAway(*reason),
            Http2Error::Protocol(reason) => StreamError::Protocol(*reason),
            Http2Error::Closed | Http2Error::Request(_) | Http2Error::Full => StreamError::Closed,
        };
        // Streams hear of the end of the connection first, the reason comes behind.
        for (_, outcome) in &mut self.finished {
            if *outcome == Err(StreamError::Closed) {
                *outcome = Err(of_stream);
            }
        }
        self.finished
            .extend(self.slots.clear().map(|key| (key, Err(of_stream))));
        self.ended = Some(error.clone());
    }

    /// Whether [`send`](Self::send) finds a free stream.
    pub fn can_send(&mut self) -> bool {
        !self.is_full() && self.ready().is_ok()
    }

    /// Whether no further request can ever be sent: the peer said that it goes away, or
    /// the numbers of streams are used up. Open exchanges may still end well.
    pub fn is_draining(&mut self) -> bool {
        matches!(self.ready(), Err(error) if error != Http2Error::Full)
    }

    fn is_full(&self) -> bool {
        self.slots.open() >= self.streams.min(self.client.most_streams())
    }

    fn ready(&mut self) -> Result<(), Http2Error> {
        if let Some(error) = &self.ended {
            return Err(error.clone());
        }
        let ready = self.client.ready();
        self.ended = ready
            .clone()
            .err()
            .filter(|error| *error != Http2Error::Full);
        ready
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
        if self.is_full() {
            return Err(self.ended.clone().unwrap_or(Http2Error::Full));
        }
        let body = body.into();
        let bodiless = body.is_empty();
        let (response, stream) = self.client.request(request, bodiless)?;
        let mut request = Sending::new(stream, body, None, bodiless);
        // What the peer lets through goes out with the head.
        if let Poll::Ready(sent) = request.advance(&mut self.client.driver().context()) {
            sent.map_err(|error| Http2Error::Request(error.to_string()))?;
        }
        Ok(self.slots.insert(Exchange::new(request, response, keep)))
    }

    /// Gives up an exchange; the peer is told with the next [`drive`](Self::drive). It
    /// will not be among the finished ones. Nothing happens if it has ended.
    pub fn cancel(&mut self, key: StreamKey) {
        if let Some(exchange) = self.slots.remove(key) {
            exchange.cancel();
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
        self.slots.open()
    }

    /// As [`Client::watch`].
    ///
    /// # Errors
    /// As there.
    pub fn watch(&mut self, poller: &Poller, token: u64) -> io::Result<()> {
        self.client.watch(poller, token)
    }

    /// As [`Client::rewatch`].
    ///
    /// # Errors
    /// As there.
    pub fn rewatch(&mut self, poller: &Poller) -> io::Result<()> {
        self.client.rewatch(poller)
    }

    /// Whether the socket was full: drive again when it can be written to.
    pub fn wants_write(&self) -> bool {
        self.client.wants_write()
    }
}
