//! What threads of the data path gather for a thread that writes or sends it.
//!
//! No request waits for that one. A thread hands over a buffer at a time; when the other is so
//! far behind that it takes none, what it holds is dropped, and counted by who gathered it.

use std::ops::AddAssign;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::mpsc::Sender;

use crate::table::Nanos;

/// A buffer is handed over when it has so many bytes: each time costs two switches of threads
/// where both share a processor, and 32 KiB are 500 times a second at 50,000 requests,
const BATCH: usize = 128 * 1024;
/// or when its first entry is so old.
const PATIENCE: Nanos = 20_000_000;
/// Buffers that may wait, from all threads (with [`BATCH`]: 32 MiB).
pub(super) const WAITING: usize = 256;
/// Empty buffers that are kept (4 MiB).
const SPARE: usize = 32;
/// Longest wait for the last entries.
pub(super) const FAREWELL: Duration = Duration::from_secs(2);

/// The entries of one thread: lines of the access log, or envelopes.
pub(crate) struct Batches {
    bytes: Vec<u8>,
    entries: u64,
    since: Nanos,
    full: Sender<Vec<u8>>,
    spare: BufferPool,
}

/// What became of entries.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchCounts {
    pub(crate) taken: u64,
    pub(crate) dropped: u64,
}

impl AddAssign for BatchCounts {
    fn add_assign(&mut self, more: Self) {
        self.taken += more.taken;
        self.dropped += more.dropped;
    }
}

impl Batches {
    /// Entries that go into `full`, in buffers of `spare`.
    pub(super) fn new(full: Sender<Vec<u8>>, spare: BufferPool) -> Self {
        Self {
            bytes: Vec::new(),
            entries: 0,
            since: 0,
            full,
            spare,
        }
    }

    /// Where to write so many entries.
    pub(crate) fn entry(&mut self, now: Nanos, entries: u64) -> &mut Vec<u8> {
        if self.bytes.is_empty() {
            self.since = now;
        }
        self.entries += entries;
        &mut self.bytes
    }

    /// When [`Batches::hand_over`] is to be called at the latest.
    pub(crate) fn due(&self) -> Nanos {
        match self.bytes.len() {
            0 => Nanos::MAX,
            1..BATCH => self.since.saturating_add(PATIENCE),
            _ => 0,
        }
    }

    /// Gives the entries away, or drops them when nobody takes them.
    pub(crate) fn hand_over(&mut self) -> BatchCounts {
        let entries = std::mem::take(&mut self.entries);
        if self.bytes.is_empty() {
            return BatchCounts::default();
        }
        let bytes = std::mem::replace(&mut self.bytes, self.spare.take());
        let Err(refused) = self.full.try_send(bytes) else {
            return BatchCounts {
                taken: entries,
                dropped: 0,
            };
        };
        let mut bytes = refused.into_inner();
        bytes.clear();
        self.bytes = bytes;
        BatchCounts {
            taken: 0,
            dropped: entries,
        }
    }
}

/// Waits until threads have passed everything on, but not for ever: nobody may be taking it.
pub(super) fn finish(threads: Vec<JoinHandle<()>>) {
    let mut waited = Duration::ZERO;
    while !threads.iter().all(JoinHandle::is_finished) && waited < FAREWELL {
        std::thread::sleep(FAREWELL / 1000);
        waited += FAREWELL / 1000;
    }
    for thread in threads.into_iter().filter(JoinHandle::is_finished) {
        // A panic there has lost entries, and nothing else.
        let _ = thread.join();
    }
}

/// Buffers that were emptied, for those who fill them.
#[derive(Debug, Clone, Default)]
pub(super) struct BufferPool(Arc<Mutex<Vec<Vec<u8>>>>);

impl BufferPool {
    fn take(&self) -> Vec<u8> {
        let spare = self.0.try_lock().ok().and_then(|mut spare| spare.pop());
        spare.unwrap_or_default()
    }

    /// Keeps a buffer, which must be empty.
    pub(super) fn put(&self, buffer: Vec<u8>) {
        if let Ok(mut spare) = self.0.lock()
            && spare.len() < SPARE
        {
            spare.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::channel;

    use super::*;

    #[test]
    fn one_that_is_behind_costs_entries_and_not_time() {
        let (full, mut waiting) = channel(1);
        let mut lines = Batches::new(full, BufferPool::default());
        assert_eq!(lines.due(), Nanos::MAX);
        let mut handed = BatchCounts::default();
        for text in [&b"kept\n"[..], b"dropped\n", b"dropped\n"] {
            lines.entry(7, 1).extend_from_slice(text);
            lines.entry(8, 1).extend_from_slice(text);
            assert_eq!(lines.due(), 7 + PATIENCE);
            handed += lines.hand_over();
        }
        assert_eq!((handed.taken, handed.dropped), (2, 4));
        assert_eq!(waiting.try_recv().unwrap(), b"kept\nkept\n");
        lines.entry(9, 1).resize(BATCH, b'x');
        assert_eq!(lines.due(), 0);
    }
}
