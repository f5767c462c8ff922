//! How much memory large heads may hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Heads up to this are not counted: a connection's streams bound them.
const SMALL: usize = 16 * 1024;
/// Bytes of larger heads that may wait at the same time.
const MOST: usize = 64 * 1024 * 1024;

/// Memory for large heads of all connections that share it. In HTTP/2 a few hundred bytes
/// can stand for a megabyte of fields, on each of many streams; those for which there is no
/// memory are refused. Cheap to clone; clones are the same budget.
#[derive(Debug, Clone, Default)]
pub struct HeadBudget(Arc<AtomicUsize>);

/// A head's share, given back when it is dropped.
#[derive(Debug)]
pub(super) struct HeadShare {
    budget: HeadBudget,
    bytes: usize,
}

impl HeadBudget {
    /// A share for a head of so many bytes; `None`: there is no memory for it.
    pub(super) fn take(&self, bytes: usize) -> Option<HeadShare> {
        let bytes = if bytes > SMALL { bytes } else { 0 };
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        // Dropped, and so given back, if it is too much.
        let share = HeadShare {
            budget: self.clone(),
            bytes,
        };
        (before + bytes <= MOST || bytes == 0).then_some(share)
    }
}

impl Drop for HeadShare {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_heads_share_what_there_is() {
        let budget = HeadBudget::default();
        let half = budget.take(MOST / 2).unwrap();
        let other = budget.clone().take(MOST / 2).unwrap();
        assert!(budget.take(SMALL + 1).is_none());
        let small = budget.take(SMALL);
        assert!(small.is_some());
        drop(half);
        assert!(budget.take(SMALL + 1).is_some());
        drop((other, small));
        assert_eq!(budget.0.load(Ordering::Relaxed), 0);
    }
}
