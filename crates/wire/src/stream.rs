//! A connection that never blocks: a socket, plain or inside TLS, or what carries bytes as
//! one does.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::poller::{Watch, Watched};
use crate::signal::Signal;
use crate::socket;
use crate::tls::{self, TlsFailure, TlsStream};

/// A connection.
pub enum Stream {
    /// Bytes as they are (or datagrams, each sent and taken whole).
    Plain(OwnedFd),
    /// Inside TLS.
    Tls(Box<TlsStream>),
    /// Within a connection that others share.
    Carried(Box<dyn Carried>),
}

/// A connection within another one. Its methods are those of [`Stream`].
pub trait Carried: Send {
    /// As [`Stream::send`].
    ///
    /// # Errors
    /// When the connection is gone.
    fn send(&mut self, bytes: &[u8]) -> Result<usize, StreamError>;
    /// As [`Stream::flush`].
    ///
    /// # Errors
    /// When the connection is gone.
    fn flush(&mut self) -> Result<(), StreamError>;
    /// As [`Stream::wants_write`].
    fn wants_write(&self) -> bool;
    /// As [`Stream::receive`].
    ///
    /// # Errors
    /// When the connection broke.
    fn receive(&mut self, into: &mut [u8]) -> Result<Received, StreamError>;
    /// As [`Stream::holds_bytes`].
    fn holds_bytes(&self) -> bool;
    /// As [`Stream::close_write`].
    ///
    /// # Errors
    /// When the connection is gone.
    fn close_write(&mut self) -> Result<bool, StreamError>;
    /// Rings when there may be something to receive, or room to send.
    fn signal(&self) -> &Signal;
}

/// What [`Stream::receive`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// So many bytes.
    Bytes(usize),
    /// None yet.
    Nothing,
    /// The peer will send no more.
    End,
}

/// Why a stream is of no further use.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StreamError {
    /// The socket failed.
    #[error("{}", socket::cause(*.0))]
    Socket(Errno),
    /// TLS failed.
    #[error("TLS: {0}")]
    Tls(Box<rustls::Error>),
}

impl StreamError {
    /// A short constant text, to count errors by.
    pub fn cause(&self) -> &'static str {
        match self {
            Self::Socket(errno) => socket::cause(*errno),
            Self::Tls(error) => tls::cause(error),
        }
    }

    /// What went wrong with TLS; `None`: it was the socket.
    pub fn tls_failure(&self) -> Option<TlsFailure> {
        match self {
            Self::Socket(_) => None,
            Self::Tls(error) => Some(TlsFailure::from(&**error)),
        }
    }
}

impl From<Errno> for StreamError {
    fn from(errno: Errno) -> Self {
        Self::Socket(errno)
    }
}

impl From<rustls::Error> for StreamError {
    fn from(error: rustls::Error) -> Self {
        Self::Tls(Box::new(error))
    }
}

impl Stream {
    /// Goes on with the handshake of TLS, and says whether it is finished. Without TLS
    /// it always is.
    ///
    /// # Errors
    /// When the peer is not who it should be, speaks no TLS, or went away.
    pub fn handshake(&mut self) -> Result<bool, StreamError> {
        match self {
            Self::Plain(_) | Self::Carried(_) => Ok(true),
            Self::Tls(stream) => stream.handshake(),
        }
    }

    /// Sends as many bytes as can be taken now, and says how many. When these are not
    /// all, or [`Stream::wants_write`], call again (or [`Stream::flush`]) as soon as
    /// the socket can be written.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn send(&mut self, bytes: &[u8]) -> Result<usize, StreamError> {
        match self {
            Self::Plain(socket) => loop {
                match send(&*socket, bytes, SendFlags::NOSIGNAL) {
                    Ok(sent) => return Ok(sent),
                    Err(Errno::AGAIN) => return Ok(0),
                    Err(Errno::INTR) => {}
                    Err(errno) => return Err(errno.into()),
                }
            },
            Self::Tls(stream) => stream.send(bytes),
            Self::Carried(stream) => stream.send(bytes),
        }
    }

    /// Sends what TLS holds back, as far as that can be done now.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn flush(&mut self) -> Result<(), StreamError> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(stream) => stream.flush(),
            Self::Carried(stream) => stream.flush(),
        }
    }

    /// Whether bytes that were taken by [`Stream::send`] still wait to be written.
    pub fn wants_write(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.wants_write(),
            Self::Carried(stream) => stream.wants_write(),
        }
    }

    /// Takes bytes that came in.
    ///
    /// # Errors
    /// When the connection broke.
    pub fn receive(&mut self, into: &mut [u8]) -> Result<Received, StreamError> {
        match self {
            Self::Plain(socket) => loop {
                match recv(&*socket, &mut *into, RecvFlags::empty()) {
                    Ok((_, 0)) => return Ok(Received::End),
                    Ok((_, received)) => return Ok(Received::Bytes(received)),
                    Err(Errno::AGAIN) => return Ok(Received::Nothing),
                    Err(Errno::INTR) => {}
                    Err(errno) => return Err(errno.into()),
                }
            },
            Self::Tls(stream) => stream.receive(into),
            Self::Carried(stream) => stream.receive(into),
        }
    }

    /// Whether there may be bytes that the poller does not know of: TLS has decrypted
    /// them already.
    pub fn holds_bytes(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.holds_bytes(),
            Self::Carried(stream) => stream.holds_bytes(),
        }
    }

    /// Says that nothing more will be sent (within TLS too), while the peer may go on.
    /// `false`: bytes wait before it; call again when the socket can be written.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn close_write(&mut self) -> Result<bool, StreamError> {
        let done = match self {
            Self::Plain(_) => true,
            Self::Tls(stream) => stream.close_write()?,
            Self::Carried(stream) => return stream.close_write(),
        };
        if done && let Some(socket) = self.socket() {
            rustix::net::shutdown(socket, rustix::net::Shutdown::Write)?;
        }
        Ok(done)
    }

    /// What is known of the other side by TLS; `None`: there is no TLS.
    pub fn tls(&self) -> Option<&TlsStream> {
        match self {
            Self::Plain(_) | Self::Carried(_) => None,
            Self::Tls(stream) => Some(stream),
        }
    }

    /// The protocol that both sides agreed on within TLS (ALPN).
    pub fn protocol(&self) -> Option<&[u8]> {
        match self {
            Self::Plain(_) | Self::Carried(_) => None,
            Self::Tls(stream) => stream.protocol(),
        }
    }

    /// Whether its TLS took up an earlier session; `None`: it has no TLS.
    pub fn is_resumed(&self) -> Option<bool> {
        match self {
            Self::Plain(_) | Self::Carried(_) => None,
            Self::Tls(stream) => Some(stream.is_resumed()),
        }
    }

    /// Its own socket, if it has one.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Plain(socket) => Some(socket.as_fd()),
            Self::Tls(stream) => Some(stream.as_fd()),
            Self::Carried(_) => None,
        }
    }

    /// The outcome of its connection, once it can be written.
    ///
    /// # Errors
    /// Why it could not be made.
    pub fn outcome(&self) -> Result<(), Errno> {
        self.socket().map_or(Ok(()), socket::outcome)
    }
}

impl Watched for &Stream {
    fn watch(&self) -> Watch<'_> {
        match self {
            Stream::Plain(socket) => Watch::Socket(socket.as_fd()),
            Stream::Tls(stream) => Watch::Socket(stream.as_fd()),
            Stream::Carried(stream) => Watch::Signal(stream.signal()),
        }
    }
}

impl io::Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.receive(into).map_err(io_error)? {
            Received::Bytes(received) => Ok(received),
            Received::Nothing => Err(io::ErrorKind::WouldBlock.into()),
            Received::End => Ok(0),
        }
    }
}

impl io::Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.send(bytes).map_err(io_error)? {
            0 if !bytes.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
            sent => Ok(sent),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Stream::flush(self).map_err(io_error)?;
        if self.wants_write() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(())
    }
}

fn io_error(error: StreamError) -> io::Error {
    match error {
        StreamError::Socket(errno) => errno.into(),
        StreamError::Tls(error) => io::Error::new(io::ErrorKind::InvalidData, *error),
    }
}
