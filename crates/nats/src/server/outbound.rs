//! What waits to be sent to one client.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;

/// Small frames gather in blocks of this size; a block is one write.
const BLOCK_BYTES: usize = 256 * 1024;

/// Payloads from this size on are shared by all receivers. Below it a copy costs less
/// than counting references and writing in pieces.
pub(super) const SHARED_BYTES: usize = 4096;

/// A payload on its way to many.
#[derive(Clone)]
pub(super) enum Payload<'a> {
    Copied(&'a [u8]),
    Shared(Bytes),
}

impl Payload<'_> {
    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Copied(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.as_slice().len()
    }
}

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pushed {
    /// It waits.
    Waits,
    /// It waits, and more than half of the bound does.
    HalfFull,
    /// It broke the bound: the client is cut off now.
    CutOff,
    /// The client is gone already.
    Gone,
}

/// What waits to be sent to one client.
pub(super) struct Outbound {
    most: usize,
    waiting: Mutex<Waiting>,
    /// There is something to send, or nothing more will come.
    filled: Notify,
    /// Less waits than before.
    drained: Notify,
    /// Too much waited.
    cut: Notify,
}

#[derive(Default)]
struct Waiting {
    blocks: VecDeque<Bytes>,
    tail: BytesMut,
    /// Bytes of all blocks and the tail, and of the block that is being written.
    bytes: usize,
    closed: bool,
}

impl Outbound {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            waiting: Mutex::default(),
            filled: Notify::new(),
            drained: Notify::new(),
            cut: Notify::new(),
        }
    }

    /// Adds a frame: a beginning that `write` appends, and a payload with its end of line.
    pub(super) fn push(
        &self,
        write: impl FnOnce(&mut BytesMut),
        payload: Option<Payload<'_>>,
    ) -> Pushed {
        let (pushed, wake) = {
            let mut waiting = self.lock();
            if waiting.closed {
                return Pushed::Gone;
            }
            let wake = waiting.blocks.is_empty() && waiting.tail.is_empty();
            waiting.append(write, payload);
            if waiting.bytes > self.most {
                waiting.close();
                (Pushed::CutOff, true)
            } else if waiting.bytes > self.most / 2 {
                (Pushed::HalfFull, wake)
            } else {
                (Pushed::Waits, wake)
            }
        };
        if wake {
            self.filled.notify_one();
        }
        if pushed == Pushed::CutOff {
            self.cut.notify_one();
            self.drained.notify_waiters();
        }
        pushed
    }

    /// Waits until too much waited. For one caller.
    pub(super) async fn cut_off(&self) {
        self.cut.notified().await;
    }

    /// Waits for the next bytes to write; `None` once the client is cut off or nothing
    /// more will come.
    pub(super) async fn take(&self) -> Option<Bytes> {
        loop {
            {
                let mut waiting = self.lock();
                if let Some(block) = waiting.blocks.pop_front() {
                    return Some(block);
                }
                if !waiting.tail.is_empty() {
                    return Some(waiting.tail.split().freeze());
                }
                if waiting.closed {
                    return None;
                }
            }
            self.filled.notified().await;
        }
    }

    /// So many of the bytes that were taken are written.
    pub(super) fn written(&self, bytes: usize) {
        {
            let mut waiting = self.lock();
            waiting.bytes = waiting.bytes.saturating_sub(bytes);
        }
        self.drained.notify_waiters();
    }

    /// Waits until at most half of the bound waits, or the client is gone.
    pub(super) async fn half_empty(&self) {
        loop {
            let drained = self.drained.notified();
            tokio::pin!(drained);
            drained.as_mut().enable();
            {
                let waiting = self.lock();
                if waiting.closed || waiting.bytes <= self.most / 2 {
                    return;
                }
            }
            drained.await;
        }
    }

    /// Nothing more is added; what waits is still sent.
    pub(super) fn end(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
        self.drained.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn append(&mut self, write: impl FnOnce(&mut BytesMut), payload: Option<Payload<'_>>) {
        let before = self.tail.len();
        write(&mut self.tail);
        match payload {
            None => {}
            Some(Payload::Copied(payload)) => {
                self.tail.extend_from_slice(payload);
                self.tail.extend_from_slice(b"\r\n");
            }
            Some(Payload::Shared(payload)) => {
                self.bytes += self.tail.len() - before + payload.len() + 2;
                let head = self.tail.split().freeze();
                self.blocks.push_back(head);
                self.blocks.push_back(payload);
                self.tail.extend_from_slice(b"\r\n");
                return;
            }
        }
        self.bytes += self.tail.len() - before;
        if self.tail.len() >= BLOCK_BYTES {
            let block = self.tail.split().freeze();
            self.blocks.push_back(block);
        }
    }

    /// Forgets everything.
    fn close(&mut self) {
        *self = Self {
            closed: true,
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(outbound: &Outbound) -> Vec<u8> {
        let mut found = Vec::new();
        while let Some(block) = outbound.take().await {
            outbound.written(block.len());
            found.extend_from_slice(&block);
        }
        found
    }

    #[tokio::test]
    async fn frames_leave_in_order_and_are_counted() {
        let outbound = Outbound::new(1 << 20);
        let line = |out: &mut BytesMut| out.extend_from_slice(b"LINE\r\n");
        let large = Bytes::from(vec![b'x'; SHARED_BYTES]);
        assert_eq!(
            outbound.push(line, Some(Payload::Copied(b"small"))),
            Pushed::Waits
        );
        assert_eq!(
            outbound.push(line, Some(Payload::Shared(large.clone()))),
            Pushed::Waits
        );
        assert_eq!(outbound.push(line, None), Pushed::Waits);
        let expected = [b"LINE\r\nsmall\r\nLINE\r\n", &large[..], b"\r\nLINE\r\n"].concat();
        assert_eq!(outbound.lock().bytes, expected.len());
        outbound.end();
        assert_eq!(outbound.push(line, None), Pushed::Gone);
        assert_eq!(all(&outbound).await, expected);
        assert_eq!(outbound.lock().bytes, 0);
    }

    #[tokio::test]
    async fn above_the_bound_the_client_is_cut_off() {
        let outbound = Outbound::new(100);
        let push = |bytes| outbound.push(|_| {}, Some(Payload::Copied(&[0; 98][..bytes])));
        assert_eq!(push(48), Pushed::Waits);
        assert_eq!(push(48), Pushed::HalfFull);
        assert_eq!(push(0), Pushed::CutOff);
        assert_eq!(push(0), Pushed::Gone);
        assert_eq!(outbound.take().await, None);
        outbound.half_empty().await;
    }
}
