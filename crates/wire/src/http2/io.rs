//! A socket in non-blocking mode, as `h2` wants to see it.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a connection knows of its socket, and the other way round.
#[derive(Debug, Default)]
pub(super) struct SocketState {
    /// Reading may give something.
    pub(super) readable: AtomicBool,
    /// Bytes that may still be read in this drive.
    pub(super) budget: AtomicUsize,
    /// The last write found the socket full.
    pub(super) write_blocked: AtomicBool,
}

/// The socket. Pending means: the socket is empty or full; whoever polls comes back on
/// its own when that has changed, so that no waker is kept.
#[derive(Debug)]
pub(super) struct Socket<S> {
    pub(super) stream: S,
    pub(super) state: Arc<SocketState>,
    pub(super) short_read_drains: bool,
}

impl<S: Read + Unpin> AsyncRead for Socket<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let socket = self.get_mut();
        let state = &socket.state;
        let budget = state.budget.load(Ordering::Relaxed);
        if budget == 0 || !state.readable.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        let asked = buffer.initialize_unfilled();
        let most = asked.len();
        loop {
            return match socket.stream.read(asked) {
                Ok(read) => {
                    if read < most && read > 0 && socket.short_read_drains {
                        state.readable.store(false, Ordering::Relaxed);
                    }
                    state
                        .budget
                        .store(budget.saturating_sub(read), Ordering::Relaxed);
                    buffer.advance(read);
                    Poll::Ready(Ok(()))
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    state.readable.store(false, Ordering::Relaxed);
                    Poll::Pending
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => Poll::Ready(Err(error)),
            };
        }
    }
}

impl<S: Write> Socket<S> {
    fn wrote<T>(&mut self, mut write: impl FnMut(&mut S) -> io::Result<T>) -> Poll<io::Result<T>> {
        loop {
            let result = write(&mut self.stream);
            let blocked = match &result {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => error.kind() == ErrorKind::WouldBlock,
                Ok(_) => false,
            };
            self.state.write_blocked.store(blocked, Ordering::Relaxed);
            return if blocked {
                Poll::Pending
            } else {
                Poll::Ready(result)
            };
        }
    }
}

impl<S: Write + Unpin> AsyncWrite for Socket<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().wrote(|stream| stream.write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().wrote(|stream| stream.write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().wrote(Write::flush)
    }

    /// The stream closes its socket when it is dropped.
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }
}
