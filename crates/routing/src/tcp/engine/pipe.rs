//! Long transfers through a pipe, where the kernel moves pages instead of bytes.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use wire::stream::{Received, Stream, StreamError};

/// Bytes that a pipe is asked to hold.
const CAPACITY: usize = 256 * 1024;

/// Pipes of a thread that wait for their next use; more are closed.
const SPARE: usize = 16;

/// Pipes of a thread at once. Other transfers go on by copying.
const MOST: usize = 1024;

/// Full pieces after which a transfer goes on through a pipe.
const PIECES: u32 = 8;

/// The pipes of a thread.
pub(super) struct Pipes {
    on: bool,
    spare: Vec<Pipe>,
    out: usize,
}

impl Pipes {
    /// `on`: whether there are any.
    pub(super) fn new(on: bool) -> Self {
        Self {
            on,
            spare: Vec::new(),
            out: 0,
        }
    }

    /// Whether a transfer of so many full pieces should go through a pipe.
    pub(super) fn pays_after(&self, pieces: u32) -> bool {
        self.on && pieces >= PIECES && self.out < MOST
    }

    /// An empty pipe; `None` when the process can have no more.
    pub(super) fn take(&mut self) -> Option<Pipe> {
        let pipe = self.spare.pop().or_else(|| Pipe::new().ok())?;
        self.out += 1;
        Some(pipe)
    }

    /// Takes a pipe back. One that still holds bytes is closed with them.
    pub(super) fn give_back(&mut self, pipe: Pipe) {
        self.out -= 1;
        if pipe.held == 0 && self.spare.len() < SPARE {
            self.spare.push(pipe);
        }
    }
}

/// A pipe, and how much is in it.
pub(super) struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
    held: usize,
}

impl Pipe {
    fn new() -> Result<Self, Errno> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Refused when this user has many pipes: a smaller one does as well.
        let _ = fcntl_setpipe_size(&write, CAPACITY);
        let held = 0;
        Ok(Self { read, write, held })
    }

    /// Bytes inside.
    pub(super) fn holds(&self) -> usize {
        self.held
    }

    /// Takes what a socket has, as far as there is room.
    pub(super) fn fill_from(&mut self, stream: &Stream) -> Result<Received, StreamError> {
        let socket = stream.socket().ok_or(Errno::NOTSOCK)?;
        match moved(socket, &self.write, CAPACITY)? {
            Some(0) => Ok(Received::End),
            Some(count) => {
                self.held += count;
                Ok(Received::Bytes(count))
            }
            None => Ok(Received::Nothing),
        }
    }

    /// Gives a socket what is inside, as far as it takes it.
    pub(super) fn empty_into(&mut self, stream: &Stream) -> Result<(), StreamError> {
        let socket = stream.socket().ok_or(Errno::NOTSOCK)?;
        while self.held > 0 {
            match moved(&self.read, socket, self.held)? {
                None | Some(0) => return Ok(()),
                Some(count) => self.held -= count,
            }
        }
        Ok(())
    }
}

fn moved(from: impl AsFd, to: impl AsFd, most: usize) -> Result<Option<usize>, StreamError> {
    let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
    loop {
        match splice(&from, None, &to, None, most, flags) {
            Ok(count) => return Ok(Some(count)),
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}
