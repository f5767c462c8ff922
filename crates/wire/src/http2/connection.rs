//! A client's connection.

use std::future::Future;
use std::io::{Read, Write};
use std::pin::Pin;
use std::task::Poll;

use bytes::Bytes;
use h2::client::{self, SendRequest};

use super::answer::{Answer, Exchange};
use super::driver::{Driver, Progress};
use super::io::Socket;
use super::payload::{Payload, Sending};
use super::slots::{Slots, StreamKey};
use super::{Http2Error, Settings, StreamError};

type Wire<S> = client::Connection<Socket<S>, Bytes>;
type Handshake<S> =
    Pin<Box<dyn Future<Output = Result<(SendRequest<Bytes>, Wire<S>), h2::Error>> + Send>>;

/// A client's connection over a stream in non-blocking mode, whose TCP connection and
/// TLS handshake are done.
pub struct Connection<S> {
    stage: Stage<S>,
    settings: Settings,
    driver: Driver,
    slots: Slots<Exchange>,
    finished: Vec<(StreamKey, Result<Answer, StreamError>)>,
}

enum Stage<S> {
    Handshake(Handshake<S>),
    Open {
        send: SendRequest<Bytes>,
        wire: Box<Wire<S>>,
        draining: bool,
    },
    Ended(Http2Error),
}

impl<S: Read + Write + Unpin + Send + 'static> Connection<S> {
    /// A connection on which nothing was sent yet; [`drive`](Self::drive) begins.
    pub fn start(stream: S, settings: Settings) -> Self {
        let Settings {
            read_budget,
            short_read_drains,
            ..
        } = settings;
        let (driver, socket) = Driver::new(stream, read_budget, short_read_drains);
        let most = i32::MAX as u32;
        let mut builder = client::Builder::new();
        builder
            .initial_window_size(settings.stream_window.min(most))
            .initial_connection_window_size(settings.connection_window.min(most))
            .initial_max_send_streams(settings.early_streams.min(settings.streams))
            .max_header_list_size(settings.head_bytes)
            .enable_push(false);
        Self {
            stage: Stage::Handshake(Box::pin(async move { builder.handshake(socket).await })),
            settings,
            driver,
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
    pub fn drive(&mut self, readable: bool) -> Result<Progress, Http2Error> {
        self.driver.begin(readable);
        let result = self.advance();
        if let Err(error) = &result {
            self.fail(error);
        }
        result?;
        Ok(self.driver.progress())
    }

    fn advance(&mut self) -> Result<(), Http2Error> {
        let mut context = self.driver.context();
        loop {
            self.driver.take_woken();
            match &mut self.stage {
                Stage::Handshake(handshake) => match handshake.as_mut().poll(&mut context) {
                    Poll::Ready(Ok((send, wire))) => {
                        self.stage = Stage::Open {
                            send,
                            wire: Box::new(wire),
                            draining: false,
                        };
                        continue;
                    }
                    Poll::Ready(Err(error)) => return Err(Http2Error::from(&error)),
                    Poll::Pending => return Ok(()),
                },
                Stage::Open { wire, .. } => {
                    let polled = Pin::new(wire).poll(&mut context);
                    // What came before the end counts.
                    let finished = &mut self.finished;
                    self.slots.poll_woken(|key, exchange, context| {
                        let Poll::Ready(outcome) = exchange.poll(context) else {
                            return false;
                        };
                        finished.push((key, outcome));
                        true
                    });
                    match polled {
                        Poll::Ready(Ok(())) => return Err(Http2Error::Closed),
                        Poll::Ready(Err(error)) => return Err(Http2Error::from(&error)),
                        Poll::Pending if !self.driver.take_woken() => return Ok(()),
                        // Exchanges may have left something to send.
                        Poll::Pending => {}
                    }
                }
                Stage::Ended(error) => return Err(error.clone()),
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
        self.stage = Stage::Ended(error.clone());
    }

    /// Whether [`send`](Self::send) finds a free stream.
    pub fn can_send(&mut self) -> bool {
        let open = self.slots.open();
        match &mut self.stage {
            Stage::Open { send, draining, .. } => {
                if *draining || open >= self.settings.streams.min(send.current_max_send_streams()) {
                    return false;
                }
                match send.poll_ready(&mut self.driver.context()) {
                    Poll::Ready(Ok(())) => true,
                    Poll::Ready(Err(_)) => {
                        *draining = true;
                        false
                    }
                    Poll::Pending => false,
                }
            }
            Stage::Handshake(_) | Stage::Ended(_) => false,
        }
    }

    /// Whether no further request can ever be sent: the peer said that it goes away, or
    /// the numbers of streams are used up. Open exchanges may still end well.
    pub fn is_draining(&mut self) -> bool {
        match &mut self.stage {
            Stage::Open { send, draining, .. } => {
                let ready = send.poll_ready(&mut self.driver.context());
                *draining |= matches!(ready, Poll::Ready(Err(_)));
                *draining
            }
            Stage::Handshake(_) => false,
            Stage::Ended(_) => true,
        }
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
        if !self.can_send() {
            return Err(match &self.stage {
                Stage::Ended(error) => error.clone(),
                _ => Http2Error::Full,
            });
        }
        let Stage::Open { send, .. } = &mut self.stage else {
            return Err(Http2Error::Full);
        };
        let uri = request.uri();
        if uri.scheme().is_none() || uri.authority().is_none() {
            // Section 8.3.1: `:scheme` and `:authority` come from there.
            return Err(Http2Error::Request(format!(
                "its URI is {uri}, expected an absolute one"
            )));
        }
        let body = body.into();
        let bodiless = body.is_empty();
        let refused = |error: h2::Error| Http2Error::Request(error.to_string());
        let (response, stream) = send.send_request(request, bodiless).map_err(refused)?;
        let mut request = Sending::new(stream, body, None, bodiless);
        // What the peer lets through goes out with the head.
        if let Poll::Ready(sent) = request.advance(&mut self.driver.context()) {
            sent.map_err(refused)?;
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

    /// Whether the socket was full: drive again when it can be written to.
    pub fn wants_write(&self) -> bool {
        self.driver.wants_write()
    }

    /// Whether the connection waits for the peer, which it always does until it ends.
    pub fn wants_read(&self) -> bool {
        !matches!(self.stage, Stage::Ended(_))
    }
}
