//! A connection that gives up when its peer stops reading, or never says what it has to say first.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// Fails a write or flush that makes no progress for `limit`. Once the [opening](Self::opened_within)
/// has come reads wait as long as they like: an idle peer is the business of the layer above.
pub(crate) struct StallGuard<S> {
    inner: S,
    limit: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    opening: Option<Opening>,
}

/// What a peer has to send before anything else.
struct Opening {
    bytes_left: usize,
    late: Pin<Box<Sleep>>,
}

impl<S> StallGuard<S> {
    pub(crate) fn new(inner: S, limit: Duration) -> Self {
        Self {
            inner,
            limit,
            stalled: None,
            opening: None,
        }
    }

    /// Also fails a read when the first `bytes` have not come within `limit` from now.
    pub(crate) fn opened_within(self, bytes: usize, limit: Duration) -> Self {
        let opening = Opening {
            bytes_left: bytes,
            late: Box::pin(sleep_until(Instant::now() + limit)),
        };
        Self {
            opening: Some(opening),
            ..self
        }
    }

    fn watch<T>(
        &mut self,
        cx: &mut Context<'_>,
        progress: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.stalled = None;
            return progress;
        }
        let limit = self.limit;
        let timer = self
            .stalled
            .get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + limit)));
        match timer.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallGuard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buf);
        if let Some(opening) = &mut self.opening {
            if read.is_pending() {
                let late = opening.late.as_mut().poll(cx);
                return late.map(|()| Err(io::ErrorKind::TimedOut.into()));
            }
            let came = buf.filled().len() - before;
            opening.bytes_left = opening.bytes_left.saturating_sub(came);
            if opening.bytes_left == 0 {
                self.opening = None;
            }
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallGuard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.watch(cx, progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.watch(cx, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.inner).poll_flush(cx);
        self.watch(cx, progress)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.watch(cx, progress)
    }
}
