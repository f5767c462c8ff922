//! Requests one by one, for those who ask for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};

use lab_load::recording::Phase;
use wire::resp::ErrorCode;

/// Samples that are handed over together.
const BATCH: usize = 512;

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Its kind, as an index.
    pub(crate) kind: usize,
    /// When it was due, in nanoseconds from the start of the segment.
    pub(crate) intended: u64,
    /// When it was sent, counted in the same way; `None`: it was not.
    pub(crate) sent: Option<u64>,
    /// Whether it had to wait for a connection before it could be sent.
    pub(crate) waited: bool,
    pub(crate) end: End,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// With a whole answer.
    Answered {
        /// From the start of the segment, in nanoseconds.
        at: u64,
        status: Option<u16>,
        /// What made it a failure, as an index.
        refusal: Option<usize>,
        /// The code of a database's error.
        code: Option<ErrorCode>,
    },
    /// Without one.
    Failed(Phase, &'static str),
}

/// Hands over samples, and never waits: what cannot be taken is counted and lost.
pub(crate) struct Sampler {
    to: SyncSender<Vec<Sample>>,
    batch: Vec<Sample>,
    lost: Arc<AtomicU64>,
}

impl Sampler {
    pub(crate) fn new(to: SyncSender<Vec<Sample>>, lost: Arc<AtomicU64>) -> Self {
        let batch = Vec::with_capacity(BATCH);
        Self { to, batch, lost }
    }

    pub(super) fn take(&mut self, sample: Sample) {
        self.batch.push(sample);
        if self.batch.len() == BATCH {
            self.hand_over();
        }
    }

    /// Hands over what there is.
    pub(super) fn hand_over(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        if let Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) =
            self.to.try_send(batch)
        {
            self.lost.fetch_add(batch.len() as u64, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    fn sample(intended: u64) -> Sample {
        Sample {
            kind: 0,
            intended,
            sent: None,
            waited: false,
            end: End::Failed(Phase::Connect, "refused"),
        }
    }

    #[test]
    fn what_cannot_be_taken_is_counted() {
        let (to, from) = sync_channel(1);
        let lost = Arc::new(AtomicU64::new(0));
        let mut sampler = Sampler::new(to, Arc::clone(&lost));
        (0..2 * BATCH as u64 + 3).for_each(|number| sampler.take(sample(number)));
        assert_eq!(lost.load(Ordering::Relaxed), BATCH as u64);
        assert_eq!(from.recv().unwrap().len(), BATCH);
        sampler.hand_over();
        sampler.hand_over();
        assert_eq!(from.try_iter().map(|batch| batch.len()).sum::<usize>(), 3);
        drop(from);
        sampler.take(sample(0));
        sampler.hand_over();
        assert_eq!(lost.load(Ordering::Relaxed), BATCH as u64 + 1);
    }
}
