//! A client's connection.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::Poll;

use bytes::Bytes;
use h2::SendStream;
use h2::client::{self, ResponseFuture, SendRequest};
use http::Request;

use super::Http2Error;
use super::driver::{Driver, Progress};
use super::io::Socket;
use super::malformed::Heads;
use crate::poller::Poller;
use crate::signal::Signal;
use crate::stream::Stream;

type Wire = client::Connection<Socket, Bytes>;
type Handshake =
    Pin<Box<dyn Future<Output = Result<(SendRequest<Bytes>, Wire), h2::Error>> + Send>>;

/// What a client wants of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientSettings {
    /// Most streams open at once; the peer may allow fewer. Default 100.
    pub streams: usize,
    /// Streams opened before the peer has said how many it allows; with 0, requests wait
    /// for its first word, and none is refused for being one too many. Default 100.
    pub early_streams: usize,
    /// Bytes that the peer may send ahead, on one stream and on the connection. Default and
    /// most 2^31 - 1: the window is never what limits a load.
    pub window: u32,
    /// Bytes of a request that wait for the server. Default 400 KiB.
    pub send_buffer: usize,
    /// Bytes of one answer's fields, as RFC 9113 section 6.5.2 counts them, and of its
    /// trailers. Default 64 KiB.
    pub head_bytes: u32,
    /// Bytes read in one drive before it returns [`Progress::More`]. Default 1 MiB.
    pub read_budget: usize,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            streams: 100,
            early_streams: 100,
            window: i32::MAX as u32,
            send_buffer: 400 * 1024,
            head_bytes: 64 * 1024,
            read_budget: 1024 * 1024,
        }
    }
}

/// A client's connection, whose TCP connection and TLS handshake are done. The parts of its
/// exchanges are the caller's; [`Exchanges`](super::Exchanges) keeps them whole. It works
/// within [`Client::drive`] and nowhere else.
pub struct Client {
    stage: Stage,
    driver: Driver,
}

enum Stage {
    Handshake(Handshake),
    Open(SendRequest<Bytes>, Box<Wire>),
    Ended(Http2Error),
}

impl Client {
    /// A connection on which nothing was sent yet; [`drive`](Self::drive) begins.
    pub fn start(stream: Stream, settings: ClientSettings) -> Self {
        let (driver, socket) = Driver::new(stream, settings.read_budget, Heads::default());
        let window = settings.window.min(i32::MAX as u32);
        let mut builder = client::Builder::new();
        builder
            .initial_window_size(window)
            .initial_connection_window_size(window)
            .initial_max_send_streams(settings.early_streams.min(settings.streams))
            .max_header_list_size(settings.head_bytes)
            .max_send_buffer_size(settings.send_buffer)
            .enable_push(false);
        Self {
            stage: Stage::Handshake(Box::pin(async move { builder.handshake(socket).await })),
            driver,
        }
    }

    /// Sends what waits to be sent, and reads what there is if the socket is `readable`
    /// (true too when that is not known). To be called when the socket became ready, and
    /// while [`is_woken`](Self::is_woken).
    ///
    /// # Errors
    /// When the connection has ended.
    pub fn drive(&mut self, readable: bool) -> Result<Progress, Http2Error> {
        self.driver.begin(readable);
        let polled = self.advance();
        let driven = self.driver.end(polled);
        if let Err(error) = &driven {
            self.stage = Stage::Ended(error.clone());
        }
        driven
    }

    fn advance(&mut self) -> Result<(), Http2Error> {
        let mut context = self.driver.context();
        loop {
            self.driver.take_woken();
            match &mut self.stage {
                Stage::Handshake(handshake) => match handshake.as_mut().poll(&mut context) {
                    Poll::Ready(Ok((send, wire))) => {
                        self.stage = Stage::Open(send, Box::new(wire));
                    }
                    Poll::Ready(Err(error)) => return Err(Http2Error::from(&error)),
                    Poll::Pending => return Ok(()),
                },
                Stage::Open(_, wire) => match Pin::new(wire).poll(&mut context) {
                    Poll::Ready(Ok(())) => return Err(Http2Error::Closed),
                    Poll::Ready(Err(error)) => return Err(Http2Error::from(&error)),
                    Poll::Pending if !self.driver.take_woken() => return Ok(()),
                    Poll::Pending => {}
                },
                Stage::Ended(error) => return Err(error.clone()),
            }
        }
    }

    /// Most streams that the peer lets be open at once, as far as it has said.
    pub fn most_streams(&self) -> usize {
        match &self.stage {
            Stage::Open(send, _) => send.current_max_send_streams(),
            Stage::Handshake(_) | Stage::Ended(_) => 0,
        }
    }

    /// Whether a stream is free now.
    ///
    /// # Errors
    /// [`Http2Error::Full`] if none is; others when the connection takes no more.
    pub fn ready(&mut self) -> Result<(), Http2Error> {
        let send = match &mut self.stage {
            Stage::Open(send, _) => send,
            Stage::Handshake(_) => return Err(Http2Error::Full),
            Stage::Ended(error) => return Err(error.clone()),
        };
        match send.poll_ready(&mut self.driver.context()) {
            Poll::Ready(ready) => ready.map_err(|error| Http2Error::from(&error)),
            Poll::Pending => Err(Http2Error::Full),
        }
    }

    /// Opens a stream for a request, whose URI must be absolute. `ends`: it has no body.
    /// The bytes go out with the next [`drive`](Self::drive).
    ///
    /// # Errors
    /// [`Http2Error::Full`] if no stream is free now, [`Http2Error::Request`] if the
    /// request cannot be sent as it is, others when the connection takes no more.
    pub fn request(
        &mut self,
        request: Request<()>,
        ends: bool,
    ) -> Result<(ResponseFuture, SendStream<Bytes>), Http2Error> {
        self.ready()?;
        let Stage::Open(send, _) = &mut self.stage else {
            return Err(Http2Error::Full);
        };
        let uri = request.uri();
        if uri.scheme().is_none() || uri.authority().is_none() {
            // Section 8.3.1: `:scheme` and `:authority` come from there.
            return Err(Http2Error::Request(format!(
                "its URI is {uri}, expected an absolute one"
            )));
        }
        let opened = send
            .send_request(request, ends)
            .map_err(|error| Http2Error::Request(error.to_string()))?;
        self.driver.wake();
        Ok(opened)
    }

    /// Begins to watch the socket, with this token.
    ///
    /// # Errors
    /// As [`Poller::add`].
    pub fn watch(&mut self, poller: &Poller, token: u64) -> io::Result<()> {
        self.driver.watch(poller, token)
    }

    /// Watches for what the last drive left to do. To be called after drives.
    ///
    /// # Errors
    /// As [`Poller::change`].
    pub fn rewatch(&mut self, poller: &Poller) -> io::Result<()> {
        self.driver.rewatch(poller)
    }

    /// Whether streams have left something to do for [`drive`](Self::drive).
    pub fn is_woken(&self) -> bool {
        self.driver.is_woken()
    }

    /// Whether the socket was full: drive again when it can be written to.
    pub fn wants_write(&self) -> bool {
        self.driver.wants_write()
    }

    /// Rings when streams have left something to do, for a poller to watch.
    pub fn signal(&self) -> &Signal {
        self.driver.signal()
    }

    pub(super) fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Opens streams beside this; `None` before the connection has begun.
    pub(super) fn requests(&self) -> Option<SendRequest<Bytes>> {
        match &self.stage {
            Stage::Open(send, _) => Some(send.clone()),
            Stage::Handshake(_) | Stage::Ended(_) => None,
        }
    }
}
