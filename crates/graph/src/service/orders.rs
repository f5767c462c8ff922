//! What a host tells its threads, and they each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arc_swap::ArcSwap;

use super::plan::Plan;

/// What all threads are told.
pub(super) struct Orders {
    /// The number of the newest revision.
    pub(super) newest: AtomicU64,
    /// The newest is the first.
    pub(super) revisions: ArcSwap<Vec<Arc<Revision>>>,
    /// How much each thread has in hand, while the host drains.
    pub(super) busy: Vec<AtomicUsize>,
}

/// What all instances do under one topology.
pub(super) struct Revision {
    pub(super) number: u64,
    /// By thread, and by instance in it.
    pub(super) plans: Vec<Vec<Arc<Plan>>>,
}

impl Orders {
    /// Reports how much a thread has in hand. Whether no thread has any.
    pub(super) fn report_busy(&self, thread: usize, busy: usize) -> bool {
        if let Some(own) = self.busy.get(thread) {
            own.store(busy, Ordering::SeqCst);
        }
        let mut all = self.busy.iter();
        all.all(|busy| busy.load(Ordering::SeqCst) == 0)
    }
}
