//! A connection that never blocks, as `h2` wants to see it.

use std::io::{self, ErrorKind, Read, Write};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::malformed::Heads;
use crate::stream::Stream;

/// Bytes of frames that are sent together: those of many streams cost one call into the
/// kernel, and make whole records of TLS. Longer parts of bodies go as they are.
const TOGETHER: usize = 32 * 1024;

/// The socket, and what the connection and its loop tell each other of it. All in one
/// thread: the locks are never waited for.
pub(super) struct Shared {
    stream: Mutex<Stream>,
    frames: Mutex<Frames>,
    /// A read that gives fewer bytes than asked for has emptied the socket, so that nobody
    /// asks again before the next readiness. Not true of TLS, which reads record by record.
    short_read_drains: bool,
    /// Reading may give something.
    pub(super) readable: AtomicBool,
    /// Bytes that may still be read in this drive.
    pub(super) budget: AtomicUsize,
    /// The last write found the socket full.
    pub(super) write_blocked: AtomicBool,
}

/// Frames that wait to be sent together. Their memory is given back when they were, so that
/// a connection at rest holds none.
#[derive(Default)]
struct Frames {
    bytes: Vec<u8>,
    sent: usize,
}

fn locked<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            short_read_drains: matches!(stream, Stream::Plain(_)),
            stream: Mutex::new(stream),
            frames: Mutex::default(),
            readable: AtomicBool::default(),
            budget: AtomicUsize::default(),
            write_blocked: AtomicBool::default(),
        }
    }

    pub(super) fn stream(&self) -> MutexGuard<'_, Stream> {
        locked(&self.stream)
    }

    fn wrote<T>(&self, mut write: impl FnMut(&mut Stream) -> io::Result<T>) -> Poll<io::Result<T>> {
        loop {
            let result = write(&mut self.stream());
            let blocked = match &result {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => error.kind() == ErrorKind::WouldBlock,
                Ok(_) => false,
            };
            self.write_blocked.store(blocked, Ordering::Relaxed);
            return if blocked {
                Poll::Pending
            } else {
                Poll::Ready(result)
            };
        }
    }

    /// Reads what there is, within the budget of this drive; 0: the peer sends no more.
    fn read(&self, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let budget = self.budget.load(Ordering::Relaxed);
        if budget == 0 || !self.readable.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        loop {
            let read = self.stream().read(into);
            return match read {
                Ok(read) => {
                    if read < into.len() && read > 0 && self.short_read_drains {
                        self.readable.store(false, Ordering::Relaxed);
                    }
                    self.budget
                        .store(budget.saturating_sub(read), Ordering::Relaxed);
                    Poll::Ready(Ok(read))
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.readable.store(false, Ordering::Relaxed);
                    Poll::Pending
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => Poll::Ready(Err(error)),
            };
        }
    }

    /// Sends the frames that wait; ready when all are on their way.
    pub(super) fn send(&self) -> Poll<io::Result<()>> {
        let frames = &mut *locked(&self.frames);
        while frames.sent < frames.bytes.len() {
            match ready!(self.wrote(|stream| stream.write(&frames.bytes[frames.sent..])))? {
                0 => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                written => frames.sent += written,
            }
        }
        *frames = Frames::default();
        self.wrote(Write::flush)
    }

    /// Takes bytes of frames; pending when there is no room for more.
    fn take(&self, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if locked(&self.frames).bytes.len() + bytes.len() > TOGETHER {
            ready!(self.send())?;
            if bytes.len() > TOGETHER / 2 {
                return self.wrote(|stream| stream.write(bytes));
            }
        }
        let frames = &mut locked(&self.frames).bytes;
        if frames.capacity() == 0 {
            frames.reserve(TOGETHER);
        }
        frames.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }
}

/// The protocol's hold on the socket. Pending means: the socket is empty or full; whoever
/// polls comes back on its own when that has changed, so that no waker is kept.
pub(super) struct Socket {
    pub(super) shared: Arc<Shared>,
    /// Reads what comes before the protocol does.
    pub(super) heads: Heads,
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { shared, heads } = self.get_mut();
        loop {
            let asked = buffer.initialize_unfilled();
            let given = heads.give(asked);
            if given > 0 {
                buffer.advance(given);
                return Poll::Ready(Ok(()));
            }
            let read = ready!(shared.read(asked))?;
            if read == 0 {
                heads.end();
                let given = heads.give(asked);
                buffer.advance(given);
                return Poll::Ready(Ok(()));
            }
            let passed = heads.pass(&asked[..read]);
            if passed > 0 {
                buffer.advance(passed);
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.shared.take(bytes)
    }

    /// The protocol asks for this behind every frame with a body. The loop sends when all
    /// streams had their turn.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// The stream closes its socket when it is dropped.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shared.send()
    }
}
