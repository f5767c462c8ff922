//! A client's connection whose exchanges are streamed both ways.

use std::future::Future;
use std::io::{Read, Write};
use std::pin::Pin;
use std::task::Poll;

use bytes::Bytes;
use h2::SendStream;
use h2::client::{self, ResponseFuture, SendRequest};
use http::Request;

use super::Http2Error;
use super::driver::{Driver, Progress};
use super::io::Socket;

type Wire<S> = client::Connection<Socket<S>, Bytes>;
type Handshake<S> =
    Pin<Box<dyn Future<Output = Result<(SendRequest<Bytes>, Wire<S>), h2::Error>> + Send>>;

/// What a client wants of a connection whose exchanges are streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientSettings {
    /// Bytes that the server may send ahead, on a stream and on the connection: so much is
    /// kept at most. Default 1 MiB.
    pub window: u32,
    /// Bytes of a request that wait for the server. Default 64 KiB.
    pub send_buffer: usize,
    /// Bytes of one answer's fields, as RFC 9113 section 6.5.2 counts them. Default 1 MiB.
    pub head_bytes: u32,
    /// Bytes read in one [`Client::drive`]. Default 256 KiB.
    pub read_budget: usize,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            window: 1024 * 1024,
            send_buffer: 64 * 1024,
            head_bytes: 1024 * 1024,
            read_budget: 256 * 1024,
        }
    }
}

/// A client's connection over a stream in non-blocking mode, whose TLS handshake is done.
/// Unlike [`Connection`](super::Connection), which keeps whole exchanges, it leaves their
/// parts to the caller. It works within [`Client::drive`] and nowhere else.
pub struct Client<S> {
    stage: Stage<S>,
    driver: Driver,
}

enum Stage<S> {
    Handshake(Handshake<S>),
    Open(SendRequest<Bytes>, Box<Wire<S>>),
    Ended(Http2Error),
}

impl<S: Read + Write + Unpin + Send + 'static> Client<S> {
    /// A connection on which nothing was sent yet; [`drive`](Self::drive) begins.
    pub fn start(stream: S, settings: ClientSettings) -> Self {
        let (driver, socket) = Driver::new(stream, settings.read_budget, false);
        let window = settings.window.min(i32::MAX as u32);
        let mut builder = client::Builder::new();
        builder
            .initial_window_size(window)
            .initial_connection_window_size(window)
            .max_header_list_size(settings.head_bytes)
            .max_send_buffer_size(settings.send_buffer)
            .enable_push(false);
        Self {
            stage: Stage::Handshake(Box::pin(async move { builder.handshake(socket).await })),
            driver,
        }
    }

    /// Sends what waits to be sent, and reads what there is if the socket is `readable`.
    /// To be called when the socket became ready, and while [`is_woken`](Self::is_woken).
    ///
    /// # Errors
    /// When the connection has ended.
    pub fn drive(&mut self, readable: bool) -> Result<Progress, Http2Error> {
        self.driver.begin(readable);
        if let Err(error) = self.advance() {
            self.stage = Stage::Ended(error.clone());
            return Err(error);
        }
        Ok(self.driver.progress())
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
        let send = match &mut self.stage {
            Stage::Open(send, _) => send,
            Stage::Handshake(_) => return Err(Http2Error::Full),
            Stage::Ended(error) => return Err(error.clone()),
        };
        match send.poll_ready(&mut self.driver.context()) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => return Err(Http2Error::from(&error)),
            Poll::Pending => return Err(Http2Error::Full),
        }
        let opened = send
            .send_request(request, ends)
            .map_err(|error| Http2Error::Request(error.to_string()))?;
        self.driver.wake();
        Ok(opened)
    }

    /// Whether streams have left something to do for [`drive`](Self::drive).
    pub fn is_woken(&self) -> bool {
        self.driver.is_woken()
    }

    /// Whether the socket was full: drive again when it can be written to.
    pub fn wants_write(&self) -> bool {
        self.driver.wants_write()
    }
}
