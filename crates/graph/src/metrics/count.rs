//! Numbers that one thread changes and any thread reads, without locked instructions.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Such a number.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds `more`. Only for the owning thread: two writers would lose counts.
    pub(super) fn add(&self, more: u64) {
        self.0.store(self.get().wrapping_add(more), Relaxed);
    }

    /// Takes one away, of a number that goes up and down. Only for the owning thread.
    pub(super) fn less(&self) {
        self.0.store(self.get().saturating_sub(1), Relaxed);
    }

    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
