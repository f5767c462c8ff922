//! Where a thread puts its spans, and where the collector takes them from.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, TryLockError};

use traces::Span;

use crate::lock;

/// Most spans that wait for the collector, of each thread and buffer; further ones are
/// dropped and counted. The collector comes ten times a second.
const BUFFERED: usize = 32 * 1024;

/// Takes the spans of one thread. Recording never waits.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<SpanBuffers>,
}

/// Two buffers of spans. The collector holds one at a time, for as long as it takes to
/// swap a vector, so the thread always finds the other one free.
#[derive(Debug, Default)]
pub(super) struct SpanBuffers {
    buffers: [Mutex<Vec<Span>>; 2],
    recorded: AtomicU64,
    dropped: AtomicU64,
}

impl Recorder {
    /// A recorder, and where its spans are taken from.
    pub(super) fn new() -> (Self, Arc<SpanBuffers>) {
        let shared = Arc::new(SpanBuffers::default());
        let recorder = Self {
            shared: Arc::clone(&shared),
        };
        (recorder, shared)
    }

    /// Keeps a span. It is dropped, and counted, when the collector is far behind.
    pub fn record(&mut self, span: Span) {
        let mut span = Some(span);
        // The collector may move on from one buffer to the other while the thread does
        // the same, but not for ever.
        for buffer in self.shared.buffers.iter().cycle().take(8) {
            let mut buffer = match buffer.try_lock() {
                Ok(buffer) => buffer,
                Err(TryLockError::Poisoned(buffer)) => buffer.into_inner(),
                Err(TryLockError::WouldBlock) => continue,
            };
            if buffer.len() < BUFFERED {
                buffer.extend(span.take());
            }
            break;
        }
        let counter = match span {
            None => &self.shared.recorded,
            Some(_) => &self.shared.dropped,
        };
        // Only this thread writes.
        counter.store(counter.load(Relaxed) + 1, Relaxed);
    }
}

impl SpanBuffers {
    /// Moves all spans behind those of `into`. `spare` is empty, before and after; its
    /// memory and that of the buffers go round.
    pub(super) fn take(&self, into: &mut Vec<Span>, spare: &mut Vec<Span>) {
        for buffer in &self.buffers {
            std::mem::swap(&mut *lock(buffer), spare);
            into.append(spare);
        }
    }

    /// Whether the recorder is gone and nothing is left.
    pub(super) fn deserted(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1
    }

    /// Spans so far: kept, and dropped.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.recorded.load(Relaxed), self.dropped.load(Relaxed))
    }
}
