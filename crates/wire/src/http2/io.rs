//! A connection that never blocks, as `h2` wants to see it.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::stream::Stream;

/// The socket, and what the connection and its loop tell each other of it. All in one
/// thread: the lock is never waited for.
pub(super) struct Shared {
    stream: Mutex<Stream>,
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

impl Shared {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            short_read_drains: matches!(stream, Stream::Plain(_)),
            stream: Mutex::new(stream),
            readable: AtomicBool::default(),
            budget: AtomicUsize::default(),
            write_blocked: AtomicBool::default(),
        }
    }

    pub(super) fn stream(&self) -> MutexGuard<'_, Stream> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
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
}

/// The protocol's hold on the socket. Pending means: the socket is empty or full; whoever
/// polls comes back on its own when that has changed, so that no waker is kept.
pub(super) struct Socket(pub(super) Arc<Shared>);

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let shared = &self.0;
        let budget = shared.budget.load(Ordering::Relaxed);
        if budget == 0 || !shared.readable.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        let asked = buffer.initialize_unfilled();
        let most = asked.len();
        loop {
            let read = shared.stream().read(asked);
            return match read {
                Ok(read) => {
                    if read < most && read > 0 && shared.short_read_drains {
                        shared.readable.store(false, Ordering::Relaxed);
                    }
                    shared
                        .budget
                        .store(budget.saturating_sub(read), Ordering::Relaxed);
                    buffer.advance(read);
                    Poll::Ready(Ok(()))
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    shared.readable.store(false, Ordering::Relaxed);
                    Poll::Pending
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => Poll::Ready(Err(error)),
            };
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.wrote(|stream| stream.write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.wrote(|stream| stream.write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.wrote(Write::flush)
    }

    /// The stream closes its socket when it is dropped.
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }
}
