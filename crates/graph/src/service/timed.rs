//! Values by key, and when to look at each of them again.

use wire::deadlines::Deadlines;
use wire::poller::{Interest, Poller};
use wire::slab::{Key, Slab};
use wire::stream::Stream;

use crate::Nanos;

/// See the module. Whoever owns one keeps both parts in step.
pub(super) struct Timed<T> {
    pub(super) values: Slab<T>,
    pub(super) deadlines: Deadlines,
}

impl<T> Default for Timed<T> {
    fn default() -> Self {
        Self {
            values: Slab::default(),
            deadlines: Deadlines::default(),
        }
    }
}

impl<T> Timed<T> {
    /// A place for a connection, by which the poller tells of it; `None`: it cannot be
    /// watched.
    pub(super) fn watch(
        &mut self,
        stream: &Stream,
        kind: u32,
        interest: Interest,
        poller: &Poller,
    ) -> Option<Key> {
        let key = self.values.reserve();
        if poller.add(stream, key.token(kind), interest).is_err() {
            self.values.release(key);
            return None;
        }
        Some(key)
    }

    /// Gives a place free, with what is in it.
    pub(super) fn release(&mut self, key: Key) {
        self.deadlines.clear(key.index());
        self.values.release(key);
    }

    /// One whose deadline is over, which it has no more.
    pub(super) fn late(&mut self, now: Nanos) -> Option<Key> {
        loop {
            let (place, _) = self.deadlines.expired(now)?;
            if let Some(key) = self.values.key_at(place as usize) {
                return Some(key);
            }
        }
    }

    /// All that are there now.
    pub(super) fn keys(&self) -> Vec<Key> {
        self.values.keys().collect()
    }
}
