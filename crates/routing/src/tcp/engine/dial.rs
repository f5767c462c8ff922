//! Reaching a backend: one attempt after the other.

use std::sync::Arc;

use crate::table::Nanos;
use crate::tcp::table::{Backend, Pool, Turn};

/// One connection's way to a backend.
pub(super) struct Dial {
    pub(super) pool: Arc<Pool>,
    turn: Turn,
    attempts: u32,
    /// The backend of this attempt, and when it began.
    pub(super) backend: Option<Arc<Backend>>,
    pub(super) began: Nanos,
}

impl Dial {
    pub(super) fn new(pool: Arc<Pool>, now: Nanos) -> Self {
        Self {
            turn: pool.turn(),
            pool,
            attempts: 0,
            backend: None,
            began: now,
        }
    }

    /// The backend of the next attempt; `None` when there was one for each backend, or
    /// `most` in all.
    pub(super) fn next(&mut self, most: u32, now: Nanos) -> Option<Arc<Backend>> {
        if self.attempts >= most.max(1) {
            return None;
        }
        let backend = Arc::clone(self.pool.next(&mut self.turn, now)?);
        self.attempts += 1;
        self.began = now;
        self.backend = Some(Arc::clone(&backend));
        Some(backend)
    }
}
