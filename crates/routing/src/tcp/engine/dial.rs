//! Reaching a backend: one attempt after the other.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::table::Nanos;
use crate::tcp::table::{Backend, Pool, Turn};

/// One connection's way to a backend.
pub(super) struct Dial {
    pub(super) pool: Arc<Pool>,
    turn: Turn,
    attempts: u32,
    /// The backend of this attempt, its address if that is known, and when it began.
    pub(super) backend: Option<Arc<Backend>>,
    pub(super) address: Option<SocketAddr>,
    pub(super) began: Nanos,
}

impl Dial {
    pub(super) fn new(pool: Arc<Pool>, now: Nanos) -> Self {
        Self {
            turn: pool.turn(),
            pool,
            attempts: 0,
            backend: None,
            address: None,
            began: now,
        }
    }

    /// Turns to the next attempt. `None` when there was one for each address of each backend,
    /// or `most` in all.
    pub(super) fn next(&mut self, most: u32, now: Nanos) -> Option<()> {
        if self.attempts >= most.max(1) {
            return None;
        }
        let backend = self.pool.next(&mut self.turn, now)?;
        self.attempts += 1;
        self.began = now;
        self.address = backend.address();
        self.backend = Some(Arc::clone(backend));
        Some(())
    }
}
