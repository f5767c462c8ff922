//! What a subscription received and nobody took yet: a queue with bounds.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;

use super::Client;
use crate::codec;
use crate::server::Local;

/// How much may wait in a subscription. The defaults are gorouter's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLimits {
    /// Messages.
    pub messages: usize,
    /// Bytes of their subjects, replies and payloads.
    pub bytes: usize,
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self {
            messages: 131_072,
            bytes: 131_072 * 1024,
        }
    }
}

/// What one read from a socket brought for one subscription.
#[derive(Debug, Clone)]
pub struct Batch {
    bytes: Bytes,
    entries: Vec<Entry>,
}

/// A batch that is being made of copies, so that messages hold no memory of others.
#[derive(Debug)]
pub(crate) struct Draft {
    bytes: BytesMut,
    entries: Vec<Entry>,
}

impl Draft {
    /// One with room for so many bytes.
    pub(crate) fn new(room: usize) -> Self {
        Self {
            bytes: BytesMut::with_capacity(room),
            entries: Vec::new(),
        }
    }

    /// Adds a message.
    pub(crate) fn add(&mut self, subject: &[u8], reply: &[u8], payload: &[u8]) {
        let mut copy = |part: &[u8]| {
            let start = self.bytes.len() as u32;
            self.bytes.extend_from_slice(part);
            Span {
                start,
                bytes: part.len() as u32,
            }
        };
        let entry = Entry {
            subject: copy(subject),
            reply: copy(reply),
            payload: copy(payload),
        };
        self.entries.push(entry);
    }
}

/// A message in the bytes of its batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    subject: Span,
    reply: Span,
    payload: Span,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    start: u32,
    bytes: u32,
}

/// A message that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received<'a> {
    /// Where it was published to.
    pub subject: &'a [u8],
    /// Where an answer is awaited; empty: nowhere.
    pub reply: &'a [u8],
    /// What was published.
    pub payload: &'a [u8],
}

impl Batch {
    /// Its messages, in the order in which they came.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Received<'_>> {
        self.entries.iter().map(|entry| Received {
            subject: entry.subject.of(&self.bytes),
            reply: entry.reply.of(&self.bytes),
            payload: entry.payload.of(&self.bytes),
        })
    }

    /// How many messages it has; never 0.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Always false; here because of [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn payload_bytes(&self) -> usize {
        self.entries.iter().map(Entry::bytes).sum()
    }
}

impl Entry {
    /// Where the parts of `message` are in `buffer`, which they were scanned from.
    pub(super) fn new(buffer: &[u8], message: &codec::Message<'_>) -> Self {
        Self {
            subject: Span::new(buffer, message.subject),
            reply: Span::new(buffer, message.reply),
            payload: Span::new(buffer, message.payload),
        }
    }

    /// Bytes that count for the queue's bound.
    fn bytes(&self) -> usize {
        (self.subject.bytes + self.reply.bytes + self.payload.bytes) as usize
    }
}

impl Span {
    fn new(buffer: &[u8], part: &[u8]) -> Self {
        if part.is_empty() {
            return Self { start: 0, bytes: 0 };
        }
        // A buffer holds one frame at most beyond what is read at once: far below 4 GiB.
        Self {
            start: (part.as_ptr().addr() - buffer.as_ptr().addr()) as u32,
            bytes: part.len() as u32,
        }
    }

    fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start as usize..][..self.bytes as usize]
    }
}

/// Numbers of a subscription's queue, as they are now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Messages that wait.
    pub buffered: usize,
    /// Their bytes.
    pub buffered_bytes: usize,
    /// Messages that were received, dropped ones included.
    pub received: u64,
    /// Messages that found the queue full.
    pub dropped: u64,
}

/// Reads the numbers of a subscription from anywhere.
#[derive(Clone)]
pub struct QueueGauge(Arc<Queue>);

impl QueueGauge {
    /// The numbers as they are now.
    pub fn read(&self) -> QueueStats {
        QueueStats {
            buffered: self.0.messages.load(Ordering::Relaxed),
            buffered_bytes: self.0.bytes.load(Ordering::Relaxed),
            received: self.0.received.load(Ordering::Relaxed),
            dropped: self.0.dropped.load(Ordering::Relaxed),
        }
    }
}

/// A subscription's queue, between the connection and who takes from it.
pub(crate) struct Queue {
    pub(super) subject: Box<str>,
    pub(super) group: Box<str>,
    limits: QueueLimits,
    batches: Mutex<VecDeque<Batch>>,
    messages: AtomicUsize,
    bytes: AtomicUsize,
    received: AtomicU64,
    dropped: AtomicU64,
    closed: AtomicBool,
    arrived: Notify,
    /// Less waits than before.
    drained: Notify,
}

impl Queue {
    pub(crate) fn new(subject: &str, group: &str, limits: QueueLimits) -> Self {
        Self {
            subject: subject.into(),
            group: group.into(),
            limits,
            batches: Mutex::default(),
            messages: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            received: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            arrived: Notify::new(),
            drained: Notify::new(),
        }
    }

    /// Adds a draft, as far as it fits. Whether more than half of a bound waits now.
    pub(crate) fn push_draft(&self, draft: Draft) -> bool {
        // A few bytes do not hold the room that was made for a whole read.
        let bytes = match draft.bytes.len() * 2 < draft.bytes.capacity() {
            true => Bytes::copy_from_slice(&draft.bytes),
            false => draft.bytes.freeze(),
        };
        self.push(bytes, draft.entries);
        self.is_half_full()
    }

    fn is_half_full(&self) -> bool {
        let room = self.room();
        room.messages < self.limits.messages / 2 || room.bytes < self.limits.bytes / 2
    }

    /// Waits until at most half of each bound waits, or nobody will take anything.
    pub(crate) async fn half_empty(&self) {
        loop {
            let drained = self.drained.notified();
            tokio::pin!(drained);
            drained.as_mut().enable();
            if !self.is_half_full() || self.closed.load(Ordering::Acquire) {
                return;
            }
            drained.await;
        }
    }

    /// Adds what fits; the rest is dropped and counted, the newest first.
    pub(super) fn push(&self, bytes: Bytes, mut entries: Vec<Entry>) {
        let came = entries.len();
        self.received.fetch_add(came as u64, Ordering::Relaxed);
        let mut room = self.room();
        let fit = entries
            .iter()
            .take_while(|entry| {
                let taken = room
                    .messages
                    .checked_sub(1)
                    .zip(room.bytes.checked_sub(entry.bytes()));
                if let Some((messages, bytes)) = taken {
                    room = QueueLimits { messages, bytes };
                }
                taken.is_some()
            })
            .count();
        if fit < came {
            self.dropped
                .fetch_add((came - fit) as u64, Ordering::Relaxed);
            entries.truncate(fit);
        }
        if entries.is_empty() {
            return;
        }
        let batch = Batch { bytes, entries };
        self.messages.fetch_add(fit, Ordering::Relaxed);
        self.bytes
            .fetch_add(batch.payload_bytes(), Ordering::Relaxed);
        self.lock().push_back(batch);
        self.arrived.notify_one();
    }

    /// Nothing more will come.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.arrived.notify_one();
        self.drained.notify_waiters();
    }

    fn room(&self) -> QueueLimits {
        let (messages, bytes) = (
            self.messages.load(Ordering::Relaxed),
            self.bytes.load(Ordering::Relaxed),
        );
        QueueLimits {
            messages: self.limits.messages.saturating_sub(messages),
            bytes: self.limits.bytes.saturating_sub(bytes),
        }
    }

    fn pop(&self) -> Option<Batch> {
        let batch = self.lock().pop_front()?;
        self.messages.fetch_sub(batch.len(), Ordering::Relaxed);
        self.bytes
            .fetch_sub(batch.payload_bytes(), Ordering::Relaxed);
        self.drained.notify_waiters();
        Some(batch)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Batch>> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A subscription of a client, or of the process that embeds an endpoint. Ends when it is
/// dropped.
pub struct Subscription {
    queue: Arc<Queue>,
    source: Source,
}

/// Where the messages of a subscription come from.
pub(crate) enum Source {
    /// A client's connection.
    Client { client: Client, sid: u64 },
    /// An endpoint of this process; ends with this value.
    Endpoint { _local: Local },
}

impl Subscription {
    pub(crate) fn new(queue: Arc<Queue>, source: Source) -> Self {
        Self { queue, source }
    }

    /// Waits for messages and takes those of one read; `None` once the client is closed (or
    /// the endpoint stopped) and everything was taken. May be cancelled without a loss.
    pub async fn next(&mut self) -> Option<Batch> {
        loop {
            let closed = self.queue.closed.load(Ordering::Acquire);
            if let Some(batch) = self.queue.pop() {
                return Some(batch);
            }
            if closed {
                return None;
            }
            self.queue.arrived.notified().await;
        }
    }

    /// What is there already.
    pub fn try_next(&mut self) -> Option<Batch> {
        self.queue.pop()
    }

    /// The numbers of its queue, to be read from anywhere.
    pub fn gauge(&self) -> QueueGauge {
        QueueGauge(Arc::clone(&self.queue))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Source::Client { client, sid } = &self.source {
            client.unsubscribe(*sid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(bytes: &Bytes, count: usize) -> Vec<Entry> {
        let message = codec::Message {
            subject: &bytes[0..1],
            reply: b"",
            headers: b"",
            payload: &bytes[2..12],
        };
        vec![Entry::new(bytes, &message); count]
    }

    #[test]
    fn what_does_not_fit_is_dropped_and_counted() {
        let bytes = Bytes::from_static(b"s 0123456789");
        for (limits, fit) in [
            (
                QueueLimits {
                    messages: 5,
                    bytes: 1000,
                },
                5,
            ),
            (
                QueueLimits {
                    messages: 100,
                    bytes: 11 * 4 + 10,
                },
                4,
            ),
        ] {
            let queue = Arc::new(Queue::new("s", "", limits));
            let gauge = QueueGauge(Arc::clone(&queue));
            queue.push(bytes.clone(), entries(&bytes, 3));
            queue.push(bytes.clone(), entries(&bytes, 3));
            queue.push(bytes.clone(), entries(&bytes, 3));
            let stats = gauge.read();
            assert_eq!((stats.buffered, stats.buffered_bytes), (fit, fit * 11));
            assert_eq!((stats.received, stats.dropped), (9, 9 - fit as u64));
            let mut taken = 0;
            while let Some(batch) = queue.pop() {
                assert!(
                    batch
                        .iter()
                        .all(|m| m.subject == b"s" && m.payload == b"0123456789")
                );
                taken += batch.len();
            }
            assert_eq!(taken, fit);
            let stats = gauge.read();
            assert_eq!((stats.buffered, stats.buffered_bytes), (0, 0));
        }
    }
}
