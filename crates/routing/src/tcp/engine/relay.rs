//! Carries bytes between the two sides of a session, one direction at a time.
//!
//! Bytes go through one buffer of the thread; a direction has a buffer of its own only
//! while its target does not take what it should, and then nothing more is read for it.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use wire::poller::{Interest, Poller, Registration};
use wire::stream::{Received, Stream, StreamError};
use wire::tls::TlsStream;

use super::pipe::{Pipe, Pipes};

/// Bytes that one call takes from a socket at most.
pub(super) const PIECE: usize = 64 * 1024;

/// Buffers of a thread that wait for their next use; more are given back to the allocator.
const SPARE_BUFFERS: usize = 16;

/// What the directions of a thread share.
pub(super) struct Carriers {
    scratch: Box<[u8]>,
    buffers: Vec<Vec<u8>>,
    pub(super) pipes: Pipes,
}

impl Carriers {
    pub(super) fn new(splice: bool) -> Self {
        Self {
            scratch: vec![0; PIECE].into(),
            buffers: Vec::new(),
            pipes: Pipes::new(splice),
        }
    }

    /// Room for what comes from a socket.
    pub(super) fn scratch(&mut self) -> &mut [u8] {
        &mut self.scratch
    }

    fn give_back(&mut self, mut buffer: Vec<u8>) {
        if self.buffers.len() < SPARE_BUFFERS && buffer.capacity() > 0 {
            buffer.clear();
            self.buffers.push(buffer);
        }
    }
}

/// One side of a session.
pub(super) struct Side {
    pub(super) stream: Stream,
    registration: Registration,
}

impl Side {
    /// A side that the poller does not watch yet.
    pub(super) fn new(stream: Stream, token: u64) -> Self {
        Self {
            stream,
            registration: Registration::new(token),
        }
    }

    /// The same side inside TLS; `None` when TLS does not begin.
    pub(super) fn within(
        self,
        begin: impl FnOnce(OwnedFd) -> Option<Result<TlsStream, StreamError>>,
    ) -> Option<Self> {
        let Stream::Plain(socket) = self.stream else {
            return None;
        };
        let stream = begin(socket)?.ok()?;
        Some(Self {
            stream: Stream::Tls(Box::new(stream)),
            registration: self.registration,
        })
    }

    /// Watches it for what is wanted now; does nothing when that is the case already.
    pub(super) fn watch(&mut self, poller: &Poller, read: bool, write: bool) -> io::Result<()> {
        let wanted = (read || write).then(|| Interest::of(read, write));
        self.registration.set(&self.stream, wanted, poller)
    }
}

/// Which side broke.
#[derive(Debug)]
pub(super) enum Broken {
    /// The one that bytes come from.
    Source,
    /// The one that they go to.
    Target,
}

impl Broken {
    fn source(_: StreamError) -> Self {
        Self::Source
    }

    fn target(_: StreamError) -> Self {
        Self::Target
    }
}

/// What of a direction waits for its target.
#[derive(Default)]
enum Waiting {
    #[default]
    Nothing,
    /// Bytes from a place in a buffer on.
    Bytes(Vec<u8>, usize),
    /// Bytes inside a pipe, or an empty pipe that is in use.
    Pipe(Pipe),
}

/// One direction of a session.
#[derive(Default)]
pub(super) struct Flow {
    waiting: Waiting,
    /// The target takes no more now.
    blocked: bool,
    /// The source has sent all.
    ended: bool,
    /// And the target knows.
    finished: bool,
    /// The other direction has finished: with this one, both sockets close.
    last: bool,
    /// Bytes carried, and not yet counted.
    carried: u64,
    /// Full pieces one after the other.
    full_pieces: u32,
}

impl Flow {
    /// Whether it wants to read from its source.
    pub(super) fn reads(&self) -> bool {
        !self.blocked && !self.ended
    }

    /// Whether it waits for its target.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Whether all bytes and the end are with the target.
    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    /// The other direction has finished.
    pub(super) fn is_last(&mut self) {
        self.last = true;
    }

    /// Bytes carried since the last call.
    pub(super) fn take_carried(&mut self) -> u64 {
        std::mem::take(&mut self.carried)
    }

    /// Bytes that were read from the source before this direction began.
    pub(super) fn begin_with(&mut self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.carried += bytes.len() as u64;
            self.waiting = Waiting::Bytes(bytes, 0);
            self.blocked = true;
        }
    }

    /// Carries what the source has: once, or, when TLS holds more that the poller does not
    /// know of, until that is gone.
    pub(super) fn pump(
        &mut self,
        from: &mut Side,
        to: &mut Side,
        carriers: &mut Carriers,
    ) -> Result<(), Broken> {
        while self.reads() {
            if let Waiting::Pipe(_) = self.waiting {
                return self.splice(from, to, carriers);
            }
            let received = from.stream.receive(&mut carriers.scratch);
            let count = match received.map_err(Broken::source)? {
                Received::Bytes(count) => count,
                Received::Nothing => return Ok(()),
                Received::End => {
                    self.ended = true;
                    return self.finish(to);
                }
            };
            let piece = &carriers.scratch[..count];
            let sent = to.stream.send(piece).map_err(Broken::target)?;
            self.carried += count as u64;
            if sent < count {
                let mut buffer = carriers.buffers.pop().unwrap_or_default();
                buffer.extend_from_slice(&piece[sent..]);
                self.waiting = Waiting::Bytes(buffer, 0);
            }
            self.blocked = sent < count || to.stream.wants_write();
            self.notice_length(count, from, to, carriers);
            if !from.stream.holds_bytes() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Carries what the source said before it went away, as far as the target takes it.
    pub(super) fn pump_rest(&mut self, from: &mut Side, to: &mut Side, carriers: &mut Carriers) {
        while self.reads() {
            let before = self.carried;
            if self.pump(from, to, carriers).is_err() || self.carried == before {
                return;
            }
        }
    }

    /// Goes on after the target became writable.
    pub(super) fn drain(&mut self, to: &mut Side, carriers: &mut Carriers) -> Result<(), Broken> {
        to.stream.flush().map_err(Broken::target)?;
        if !self.blocked || to.stream.wants_write() {
            return Ok(());
        }
        match &mut self.waiting {
            Waiting::Nothing => {}
            Waiting::Bytes(bytes, start) => {
                *start += to.stream.send(&bytes[*start..]).map_err(Broken::target)?;
                if *start < bytes.len() || to.stream.wants_write() {
                    return Ok(());
                }
                if let Waiting::Bytes(buffer, _) = std::mem::take(&mut self.waiting) {
                    carriers.give_back(buffer);
                }
            }
            Waiting::Pipe(pipe) => {
                pipe.empty_into(&to.stream).map_err(Broken::target)?;
                if pipe.holds() > 0 {
                    return Ok(());
                }
            }
        }
        self.blocked = false;
        if self.ended { self.finish(to) } else { Ok(()) }
    }

    /// Gives back what it took from the thread.
    pub(super) fn release(&mut self, carriers: &mut Carriers) {
        match std::mem::take(&mut self.waiting) {
            Waiting::Nothing => {}
            Waiting::Bytes(buffer, _) => carriers.give_back(buffer),
            Waiting::Pipe(pipe) => carriers.pipes.give_back(pipe),
        }
    }

    /// A transfer of many full pieces is a long one: it goes on through a pipe, where the
    /// kernel moves pages instead of bytes.
    fn notice_length(&mut self, count: usize, from: &Side, to: &Side, carriers: &mut Carriers) {
        self.full_pieces = match count {
            PIECE => self.full_pieces.saturating_add(1),
            _ => 0,
        };
        let plain = matches!(
            (&from.stream, &to.stream),
            (Stream::Plain(_), Stream::Plain(_))
        );
        if plain
            && !self.blocked
            && carriers.pipes.pays_after(self.full_pieces)
            && let Some(pipe) = carriers.pipes.take()
        {
            self.waiting = Waiting::Pipe(pipe);
        }
    }

    fn splice(
        &mut self,
        from: &mut Side,
        to: &mut Side,
        carriers: &mut Carriers,
    ) -> Result<(), Broken> {
        let Waiting::Pipe(pipe) = &mut self.waiting else {
            return Ok(());
        };
        match pipe.fill_from(&from.stream).map_err(Broken::source)? {
            Received::Bytes(count) => self.carried += count as u64,
            Received::Nothing => {}
            Received::End => self.ended = true,
        }
        let filled = pipe.holds();
        pipe.empty_into(&to.stream).map_err(Broken::target)?;
        self.blocked = pipe.holds() > 0;
        // Small pieces again: the transfer is over, or slow.
        if !self.blocked && filled < PIECE / 4 {
            self.full_pieces = 0;
            self.release(carriers);
        }
        if self.ended && !self.blocked {
            return self.finish(to);
        }
        Ok(())
    }

    /// Tells the target that nothing more comes, as soon as it has everything.
    fn finish(&mut self, to: &mut Side) -> Result<(), Broken> {
        if self.blocked {
            return Ok(());
        }
        // Closing the socket tells a plain one's peer, without a call for it.
        if self.last && matches!(to.stream, Stream::Plain(_)) {
            self.finished = true;
            return Ok(());
        }
        match to.stream.close_write() {
            // TLS has something to send first.
            Ok(false) => self.blocked = true,
            Ok(true) => self.finished = true,
            // Not connected: the target is gone, and so is whoever would miss the end.
            Err(StreamError::Socket(Errno::NOTCONN)) => self.finished = true,
            Err(_) => return Err(Broken::Target),
        }
        Ok(())
    }
}
