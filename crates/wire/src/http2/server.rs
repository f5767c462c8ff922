//! A server's connection.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::Poll;

use bytes::Bytes;
use h2::RecvStream;
use h2::server::{self, SendResponse};
use http::Request;

use super::Http2Error;
use super::driver::{Driver, Progress};
use super::io::Socket;
use super::malformed::Heads;
use crate::poller::Poller;
use crate::signal::Signal;
use crate::stream::Stream;

type Wire = server::Connection<Socket, Bytes>;
type Handshake = Pin<Box<dyn Future<Output = Result<Wire, h2::Error>> + Send>>;

/// A request whose head is there, and the way to answer it.
pub type Accepted = (Request<RecvStream>, SendResponse<Bytes>);

/// What a client may do. A client that exceeds a limit loses the stream, and one that does
/// so often (streams that are opened and reset, as in CVE-2023-44487, among them) loses
/// the connection, with `ENHANCE_YOUR_CALM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerSettings {
    /// Most streams open at once. Default 250, as Go's server allows.
    pub streams: u32,
    /// Bytes that a client may send ahead on one stream. Default 256 KiB.
    pub stream_window: u32,
    /// The same for the connection, which bounds what is kept of bodies. Default 1 MiB.
    pub connection_window: u32,
    /// Bytes of an answer that wait for the client, on one stream. Default 64 KiB.
    pub send_buffer: usize,
    /// Bytes of one request's fields, as RFC 9113 section 6.5.2 counts them. Default 1 MiB.
    pub head_bytes: u32,
    /// Streams that the client opened and reset before anybody looked at them. Default 20.
    pub early_resets: usize,
    /// Streams that were reset because the client broke a rule on them. Default 128.
    pub broken_streams: usize,
    /// Bytes read in one [`Server::drive`]. Default 256 KiB.
    pub read_budget: usize,
    /// Let clients open WebSockets on streams (extended CONNECT, RFC 8441). Default false.
    pub extended_connect: bool,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            streams: 250,
            stream_window: 256 * 1024,
            connection_window: 1024 * 1024,
            send_buffer: 64 * 1024,
            head_bytes: 1024 * 1024,
            early_resets: 20,
            broken_streams: 128,
            read_budget: 256 * 1024,
            extended_connect: false,
        }
    }
}

/// A server's connection over a stream in non-blocking mode, whose TLS handshake is done.
/// It works within [`Server::drive`] and nowhere else.
pub struct Server {
    stage: Stage,
    driver: Driver,
    /// To be shut down as soon as its handshake is done.
    shutting: bool,
}

enum Stage {
    Handshake(Handshake),
    Open(Box<Wire>),
    Ended(Http2Error),
}

impl Server {
    /// A connection on which nothing was received yet.
    pub fn start(stream: Stream, settings: ServerSettings) -> Self {
        let (driver, socket) = Driver::new(stream, settings.read_budget, Heads::of_client());
        let most = i32::MAX as u32;
        let mut builder = server::Builder::new();
        builder
            .initial_window_size(settings.stream_window.min(most))
            .initial_connection_window_size(settings.connection_window.min(most))
            .max_concurrent_streams(settings.streams)
            .max_header_list_size(settings.head_bytes)
            .max_send_buffer_size(settings.send_buffer)
            .max_pending_accept_reset_streams(settings.early_resets)
            .max_local_error_reset_streams(Some(settings.broken_streams));
        if settings.extended_connect {
            builder.enable_connect_protocol();
        }
        Self {
            stage: Stage::Handshake(Box::pin(async move { builder.handshake(socket).await })),
            driver,
            shutting: false,
        }
    }

    /// Sends what waits to be sent, reads what there is if the socket is `readable`, and
    /// adds the requests whose heads came. To be called when the socket became ready, and
    /// while [`is_woken`](Self::is_woken).
    ///
    /// # Errors
    /// When the connection has ended: [`Http2Error::Closed`] if nothing was wrong.
    pub fn drive(
        &mut self,
        readable: bool,
        accepted: &mut Vec<Accepted>,
    ) -> Result<Progress, Http2Error> {
        self.driver.begin(readable);
        let polled = self.advance(accepted);
        let driven = self.driver.end(polled);
        if let Err(error) = &driven {
            self.stage = Stage::Ended(error.clone());
        }
        driven
    }

    fn advance(&mut self, accepted: &mut Vec<Accepted>) -> Result<(), Http2Error> {
        let mut context = self.driver.context();
        loop {
            self.driver.take_woken();
            match &mut self.stage {
                Stage::Handshake(handshake) => match handshake.as_mut().poll(&mut context) {
                    Poll::Ready(Ok(mut wire)) => {
                        if self.shutting {
                            wire.graceful_shutdown();
                        }
                        self.stage = Stage::Open(Box::new(wire));
                    }
                    Poll::Ready(Err(error)) => return Err(Http2Error::from(&error)),
                    Poll::Pending => return Ok(()),
                },
                Stage::Open(wire) => match wire.poll_accept(&mut context) {
                    Poll::Ready(Some(Ok(request))) => accepted.push(request),
                    Poll::Ready(Some(Err(error))) => return Err(Http2Error::from(&error)),
                    Poll::Ready(None) => return Err(Http2Error::Closed),
                    Poll::Pending if !self.driver.take_woken() => return Ok(()),
                    Poll::Pending => {}
                },
                Stage::Ended(error) => return Err(error.clone()),
            }
        }
    }

    /// Whether streams have left something to do for [`drive`](Self::drive).
    pub fn is_woken(&self) -> bool {
        self.driver.is_woken()
    }

    /// Tells the client to open no more streams (GOAWAY). The connection ends with the
    /// last one that is open. Requests that are on their way are still served, also those
    /// of a client whose handshake is not done.
    pub fn shut_down(&mut self) {
        match &mut self.stage {
            Stage::Open(wire) => wire.graceful_shutdown(),
            Stage::Handshake(_) => self.shutting = true,
            Stage::Ended(_) => {}
        }
        self.driver.wake();
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

    /// Rings when streams have left something to do, for a poller to watch.
    pub fn signal(&self) -> &Signal {
        self.driver.signal()
    }

    /// Whether the socket was full: drive again when it can be written to.
    pub fn wants_write(&self) -> bool {
        self.driver.wants_write()
    }
}
