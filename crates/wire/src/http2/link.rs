//! A connection's socket, and what the loop that drives it knows of it.

use std::cell::RefCell;
use std::io::{self, ErrorKind, Read as _, Write};

use super::Http2Error;
use super::codec::{Connection, StreamKey};
use crate::poller::{Interest, Poller, Registration};
use crate::stream::Stream;

/// Bytes that are read at once.
const PIECE: usize = 32 * 1024;

/// Times that a connection is written to in one drive while its streams have more to send.
const TURNS: usize = 32;

thread_local! {
    /// Where bytes are read to; they are taken out of it before anything else is done.
    static PIECES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// What is left to do after a connection was driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Nothing, until the socket is ready again or something is sent.
    Waiting,
    /// More can be done at once: drive again, after others had their turn.
    More,
}

/// Bytes of a connection, within TLS if it has that: frames of every kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Carried {
    /// Handed to the socket.
    pub sent: u64,
    /// Taken from it.
    pub received: u64,
}

/// The socket of a connection.
pub(super) struct Link {
    stream: Stream,
    /// Since the last look.
    bytes: Carried,
    registration: Registration,
    /// Bytes that may be read in one drive.
    read_budget: usize,
    /// A read that gives fewer bytes than asked for has emptied the socket, so that nobody
    /// asks again before the next readiness. Not true of TLS, which reads record by record.
    short_read_drains: bool,
    /// Reading may give something.
    readable: bool,
    /// The last write found the socket full.
    write_blocked: bool,
    /// Nothing is read before something was written: the poller would tell of it again and again.
    paused: bool,
}

/// What a client and a server do alike within a drive.
pub(super) trait Side {
    fn parts(&mut self) -> (&mut Link, &mut Connection);

    /// Something happened to a stream.
    fn turn(&mut self, key: StreamKey);

    /// Gives streams their turns and sends what they have to send, until nothing is left.
    ///
    /// # Errors
    /// When the connection has ended.
    fn give_turns(&mut self) -> Result<Progress, Http2Error> {
        for turns in 1.. {
            let mut touched = false;
            while let Some(key) = self.parts().1.touched() {
                self.turn(key);
                touched = true;
            }
            if turns > 1 && !touched {
                break;
            }
            let (link, connection) = self.parts();
            link.send(connection);
            if turns == TURNS {
                // Whoever looks only at the socket comes back too.
                link.write_blocked = true;
                break;
            }
        }
        let (link, connection) = self.parts();
        connection.end_if_idle();
        match connection.ended() {
            Some(error) => Err(error.clone()),
            None => Ok(link.progress(connection)),
        }
    }
}

impl Link {
    pub(super) fn new(stream: Stream, read_budget: usize) -> Self {
        Self {
            short_read_drains: matches!(stream, Stream::Plain(_)),
            bytes: Carried::default(),
            stream,
            registration: Registration::default(),
            read_budget: read_budget.max(1),
            readable: false,
            write_blocked: false,
            paused: false,
        }
    }

    /// Hands to the connection what there is to read, as much as one drive may take.
    pub(super) fn receive(&mut self, connection: &mut Connection, readable: bool) {
        self.readable |= readable;
        if connection.has_input() {
            connection.receive(&[]);
        }
        let mut bytes = PIECES.take();
        bytes.resize(PIECE, 0);
        let mut budget = self.read_budget;
        while self.readable && budget > 0 && !connection.is_paused() && connection.ended().is_none()
        {
            match self.stream.read(&mut bytes) {
                Ok(0) => connection.close(Http2Error::Closed),
                Ok(read) => {
                    self.readable = read == bytes.len() || !self.short_read_drains;
                    budget = budget.saturating_sub(read);
                    self.bytes.received += read as u64;
                    connection.receive(bytes.get(..read).unwrap_or_default());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => connection.close(Http2Error::of_io(error.kind())),
            }
        }
        PIECES.set(bytes);
    }

    /// What is left once streams had their turn and all was sent that could be.
    pub(super) fn progress(&self, connection: &Connection) -> Progress {
        let more = self.readable || connection.has_input();
        // Reading goes on when something was sent.
        match more && !self.paused {
            true => Progress::More,
            false => Progress::Waiting,
        }
    }

    /// Sends what the connection has to send, as far as the socket takes it.
    pub(super) fn send(&mut self, connection: &mut Connection) {
        self.write(connection);
        self.paused = self.write_blocked && connection.is_paused();
    }

    fn write(&mut self, connection: &mut Connection) {
        self.write_blocked = false;
        while !connection.out().is_empty() {
            match self.stream.write(connection.out()) {
                Ok(0) => return connection.close(Http2Error::Closed),
                Ok(sent) => {
                    self.bytes.sent += sent as u64;
                    connection.sent(sent);
                }
                Err(error) => {
                    if self.has_failed(&error) {
                        return self.lose(connection, &error);
                    }
                    if self.write_blocked {
                        return;
                    }
                }
            }
        }
        if let Err(error) = Write::flush(&mut self.stream)
            && self.has_failed(&error)
        {
            self.lose(connection, &error);
        }
    }

    /// Nothing more can be sent. Answers that came before, and which streams the peer has left out,
    /// may still lie there to be read.
    fn lose(&mut self, connection: &mut Connection, error: &io::Error) {
        let mut bytes = PIECES.take();
        bytes.resize(PIECE, 0);
        let mut budget = self.read_budget;
        while budget > 0
            && connection.ended().is_none()
            && let Ok(read @ 1..) = self.stream.read(&mut bytes)
        {
            budget = budget.saturating_sub(read);
            self.bytes.received += read as u64;
            connection.receive(bytes.get(..read).unwrap_or_default());
        }
        PIECES.set(bytes);
        connection.close(Http2Error::of_io(error.kind()));
    }

    /// Whether this is no matter of waiting.
    fn has_failed(&mut self, error: &io::Error) -> bool {
        self.write_blocked = error.kind() == ErrorKind::WouldBlock;
        !self.write_blocked && error.kind() != ErrorKind::Interrupted
    }

    /// What went over the socket since the last call.
    pub(super) fn take_bytes(&mut self) -> Carried {
        std::mem::take(&mut self.bytes)
    }

    /// Begins to watch the socket.
    pub(super) fn watch(&mut self, poller: &Poller, token: u64) -> io::Result<()> {
        self.registration = Registration::new(token);
        self.rewatch(poller)
    }

    /// Watches for what the last drive left.
    pub(super) fn rewatch(&mut self, poller: &Poller) -> io::Result<()> {
        let wanted = Interest::of(!self.paused, self.write_blocked);
        self.registration.set(&self.stream, Some(wanted), poller)
    }

    /// Whether the last write found the socket full.
    pub(super) fn wants_write(&self) -> bool {
        self.write_blocked
    }
}
