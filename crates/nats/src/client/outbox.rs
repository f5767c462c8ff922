//! Bytes that wait to be sent.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;
use tokio::sync::Notify;

use super::error::{DialError, PublishError};
use crate::codec::encode;

/// Answers to PINGs may wait up to this many bytes: about ten thousand of them. A server
/// that sends more and reads none is cut off.
const MOST_ANSWER_BYTES: usize = 64 * 1024;

/// Bytes that wait for the connection's writer.
pub(super) struct Outbox {
    most: usize,
    waiting: Mutex<Waiting>,
    /// There is something to send.
    filled: Notify,
    /// There is room again.
    drained: Notify,
}

#[derive(Default)]
struct Waiting {
    /// Frames that outlive a connection: messages, subscriptions.
    frames: BytesMut,
    /// Frames that belong to this connection: PING and PONG.
    liveness: BytesMut,
    closed: bool,
}

impl Outbox {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            waiting: Mutex::default(),
            filled: Notify::new(),
            drained: Notify::new(),
        }
    }

    /// Adds the frame that `write` appends, of about `bytes`, unless too much waits.
    pub(super) fn add(
        &self,
        bytes: usize,
        write: impl FnOnce(&mut BytesMut),
    ) -> Result<(), PublishError> {
        let was_empty = {
            let mut waiting = self.lock();
            if waiting.closed {
                return Err(PublishError::Closed);
            }
            if !waiting.frames.is_empty() && waiting.frames.len() + bytes > self.most {
                return Err(PublishError::Full(waiting.frames.len()));
            }
            let was_empty = waiting.frames.is_empty();
            write(&mut waiting.frames);
            was_empty
        };
        if was_empty {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Adds a PING or PONG, ahead of nothing and behind everything.
    pub(super) fn add_liveness(&self, frame: &[u8]) -> Result<(), DialError> {
        {
            let mut waiting = self.lock();
            if waiting.liveness.len() > MOST_ANSWER_BYTES {
                return Err(DialError::Unread);
            }
            waiting.liveness.extend_from_slice(frame);
        }
        self.filled.notify_one();
        Ok(())
    }

    /// Forgets PINGs and PONGs of the connection that ended.
    pub(super) fn forget_liveness(&self) {
        self.lock().liveness.clear();
    }

    /// Waits until there is something to send and takes it all, in place of `sent`.
    pub(super) async fn take(&self, sent: &mut BytesMut) {
        sent.clear();
        loop {
            {
                let mut waiting = self.lock();
                std::mem::swap(&mut waiting.frames, sent);
                sent.extend_from_slice(&waiting.liveness);
                waiting.liveness.clear();
            }
            if !sent.is_empty() {
                self.drained.notify_waiters();
                return;
            }
            self.filled.notified().await;
        }
    }

    /// Tries `add` until there is room for it.
    pub(super) async fn when_room(
        &self,
        mut add: impl FnMut() -> Result<(), PublishError>,
    ) -> Result<(), PublishError> {
        loop {
            // Mostly there is, and to wait for it costs more than to add.
            match add() {
                Err(PublishError::Full(_)) => {}
                other => return other,
            }
            let drained = self.drained.notified();
            tokio::pin!(drained);
            // From here on no room is missed.
            drained.as_mut().enable();
            match add() {
                Err(PublishError::Full(_)) => drained.await,
                other => return other,
            }
        }
    }

    /// Nothing is taken any more; who waits for room is told.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.drained.notify_waiters();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A PUB frame.
pub(super) fn publish(
    outbox: &Outbox,
    subject: &[u8],
    reply: &[u8],
    payload: &[u8],
) -> Result<(), PublishError> {
    let bytes = subject.len() + reply.len() + payload.len() + 32;
    outbox.add(bytes, |out| encode::publish(out, subject, reply, payload))
}
