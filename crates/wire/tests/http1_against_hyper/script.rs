//! A connection that follows a script.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection whose peer answers the first write with the parts, one a read, and then
/// closes or stays silent.
#[derive(Clone)]
pub(crate) struct Script(Arc<Mutex<ScriptState>>);

struct ScriptState {
    parts: VecDeque<Vec<u8>>,
    closes: bool,
    asked: bool,
    reader: Option<Waker>,
}

impl Script {
    /// Without empty parts, which would end the stream. `closes`: behind the parts.
    pub(crate) fn new(parts: &[Vec<u8>], closes: bool) -> Self {
        let parts = parts
            .iter()
            .filter(|part| !part.is_empty())
            .cloned()
            .collect();
        Self(Arc::new(Mutex::new(ScriptState {
            parts,
            closes,
            asked: false,
            reader: None,
        })))
    }
}

impl AsyncRead for Script {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let mut state = self.0.lock().unwrap();
        if state.asked
            && let Some(mut part) = state.parts.pop_front()
        {
            let rest = part.split_off(part.len().min(buffer.remaining()));
            buffer.put_slice(&part);
            if !rest.is_empty() {
                state.parts.push_front(rest);
            }
            return Poll::Ready(Ok(()));
        }
        if state.asked && state.closes {
            return Poll::Ready(Ok(()));
        }
        state.reader = Some(context.waker().clone());
        Poll::Pending
    }
}

impl AsyncWrite for Script {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let mut state = self.0.lock().unwrap();
        state.asked = true;
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(bytes.len()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
