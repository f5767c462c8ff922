//! Who asked to be polled again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Wake;

/// Wakers set flags here; [`Connection::drive`](super::Connection::drive) reads them.
/// Everything happens on one thread; the atomics are what [`Wake`] asks for.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    streams: Mutex<Vec<u32>>,
}

impl Wakes {
    /// Moves the slots that were woken into `woken`, which is cleared before.
    pub(super) fn take(&self, woken: &mut Vec<u32>) {
        woken.clear();
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *streams, woken);
    }
}

/// The waker of one slot. It lives as long as the slot, over many streams.
#[derive(Debug)]
pub(super) struct SlotWaker {
    slot: u32,
    queued: AtomicBool,
    wakes: Arc<Wakes>,
}

impl SlotWaker {
    pub(super) fn new(slot: u32, wakes: Arc<Wakes>) -> Arc<Self> {
        Arc::new(Self {
            slot,
            queued: AtomicBool::new(false),
            wakes,
        })
    }

    /// To be called before the slot is polled: a wake from then on counts anew.
    pub(super) fn reset(&self) {
        self.queued.store(false, Ordering::Relaxed);
    }
}

impl Wake for SlotWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            let mut streams = self
                .wakes
                .streams
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            streams.push(self.slot);
        }
    }
}

/// The waker of the connection itself.
#[derive(Debug, Default)]
pub(super) struct ConnectionWaker(AtomicBool);

impl ConnectionWaker {
    /// Whether the connection was woken since the last call.
    pub(super) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }

    /// The same, without forgetting it.
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for ConnectionWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}
