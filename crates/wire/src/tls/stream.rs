//! TLS over a socket that never blocks, for both sides.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustls::{Connection, HandshakeKind};

use super::hello::looks_like_http;
use crate::stream::{Received, StreamError};

/// TLS over a connected socket.
pub struct TlsStream {
    socket: OwnedFd,
    connection: Connection,
    first: First,
}

/// The first bytes that came: those of a record's header, if it is TLS.
#[derive(Debug, Clone, Copy, Default)]
struct First {
    bytes: [u8; 5],
    known: usize,
}

impl First {
    fn note(&mut self, came: &[u8]) {
        for (place, byte) in self.bytes.iter_mut().skip(self.known).zip(came) {
            *place = *byte;
            self.known += 1;
        }
    }

    fn is_http(&self) -> bool {
        looks_like_http(&self.bytes)
    }
}

impl TlsStream {
    pub(super) fn new(socket: OwnedFd, connection: Connection) -> Self {
        Self {
            socket,
            connection,
            first: First::default(),
        }
    }

    /// Takes bytes as if they came from the socket.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Result<(), StreamError> {
        self.first.note(bytes);
        while !bytes.is_empty() {
            if let Err(error) = self.connection.read_tls(&mut bytes) {
                return Err(socket_error(&error));
            }
            self.process()?;
        }
        Ok(())
    }

    /// See [`Stream::handshake`](crate::stream::Stream::handshake).
    pub(crate) fn handshake(&mut self) -> Result<bool, StreamError> {
        loop {
            self.flush()?;
            if !self.connection.is_handshaking() {
                return Ok(!self.connection.wants_write());
            }
            if self.connection.wants_write() {
                return Ok(false);
            }
            match self.take_records()? {
                Received::Bytes(_) => {}
                Received::Nothing => return Ok(false),
                Received::End => return Err(Errno::PIPE.into()),
            }
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<usize, StreamError> {
        // Takes what fits into its buffer of 64 KiB.
        let taken = self.connection.writer().write(bytes).unwrap_or(0);
        self.flush()?;
        Ok(taken)
    }

    pub(crate) fn flush(&mut self) -> Result<(), StreamError> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Raw(&self.socket)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(socket_error(&error)),
            }
        }
        Ok(())
    }

    pub(crate) fn wants_write(&self) -> bool {
        self.connection.wants_write()
    }

    pub(crate) fn receive(&mut self, into: &mut [u8]) -> Result<Received, StreamError> {
        loop {
            match self.connection.reader().read(into) {
                Ok(0) => return Ok(Received::End),
                Ok(received) => return Ok(Received::Bytes(received)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // An end without the farewell of TLS: the codec above knows whether the
                // answer was whole.
                Err(_) => return Ok(Received::End),
            }
            match self.take_records()? {
                Received::Nothing => return Ok(Received::Nothing),
                // The reader has the last word: it tells an end after all bytes.
                Received::Bytes(_) | Received::End => {}
            }
        }
    }

    pub(crate) fn holds_bytes(&self) -> bool {
        !self.connection.wants_read()
    }

    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        self.connection.alpn_protocol()
    }

    /// Whether the peer began to speak HTTP instead of TLS. It was told nothing: it would not
    /// understand an alert.
    pub fn heard_http(&self) -> bool {
        self.first.is_http()
    }

    /// The certificate that the peer proved itself with (DER); `None`: it showed none.
    pub fn peer_certificate(&self) -> Option<&[u8]> {
        let leaf = self.connection.peer_certificates()?.first()?;
        Some(leaf)
    }

    /// The name that the client asked for (SNI), in lower case; on the client's side
    /// `None`.
    pub fn server_name(&self) -> Option<&str> {
        match &self.connection {
            Connection::Server(connection) => connection.server_name(),
            Connection::Client(_) => None,
        }
    }

    /// The suite that both sides agreed on, by IANA's name; `None` before that.
    pub fn cipher_suite(&self) -> Option<&'static str> {
        let suite = self.connection.negotiated_cipher_suite()?;
        suite.suite().as_str()
    }

    /// Whether an earlier session was taken up again.
    pub fn is_resumed(&self) -> bool {
        self.connection.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    pub(crate) fn close_write(&mut self) -> Result<bool, StreamError> {
        self.connection.send_close_notify();
        self.flush()?;
        Ok(!self.connection.wants_write())
    }

    fn take_records(&mut self) -> Result<Received, StreamError> {
        let taken = match self
            .connection
            .read_tls(&mut FirstBytesReader(&self.socket, &mut self.first))
        {
            Ok(0) => Received::End,
            Ok(taken) => Received::Bytes(taken),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Received::Nothing,
            Err(error) => return Err(socket_error(&error)),
        };
        self.process()?;
        Ok(taken)
    }

    fn process(&mut self) -> Result<(), StreamError> {
        if let Err(error) = self.connection.process_new_packets() {
            // The peer is told why, if it still listens.
            if !self.first.is_http() {
                let _ = self.flush();
            }
            return Err(error.into());
        }
        Ok(())
    }
}

impl AsFd for TlsStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The socket as rustls takes it.
struct Raw<'a>(&'a OwnedFd);

impl io::Write for Raw<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The same to read from, with a memory of how it began.
struct FirstBytesReader<'a>(&'a OwnedFd, &'a mut First);

impl io::Read for FirstBytesReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let came = recv(self.0, &mut *into, RecvFlags::empty())?.1;
        self.1.note(into.get(..came).unwrap_or_default());
        Ok(came)
    }
}

fn socket_error(error: &io::Error) -> StreamError {
    StreamError::Socket(Errno::from_io_error(error).unwrap_or(Errno::IO))
}
