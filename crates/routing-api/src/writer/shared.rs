//! What readers see.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use crate::model::ApiError;
use crate::state::State;

/// The state as readers see it.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Seen>);

struct Seen {
    state: RwLock<State>,
    current: AtomicBool,
}

impl Shared {
    pub(super) fn new(state: State) -> Self {
        Self(Arc::new(Seen {
            state: RwLock::new(state),
            current: AtomicBool::new(true),
        }))
    }

    /// Everything that is durable. The guard must be short-lived: the writer waits for it.
    ///
    /// # Errors
    /// While the database is out of reach.
    pub(crate) fn read(&self) -> Result<RwLockReadGuard<'_, State>, ApiError> {
        if self.0.current.load(Ordering::Acquire) {
            Ok(self.look())
        } else {
            Err(ApiError::database("the database is out of reach"))
        }
    }

    /// What is in memory, even when it may be out of date.
    pub(crate) fn look(&self) -> RwLockReadGuard<'_, State> {
        let state = &self.0.state;
        state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes it; for the writer alone.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let state = &self.0.state;
        change(&mut state.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Says whether it is what is stored, and returns what was said before.
    pub(super) fn set_current(&self, current: bool) -> bool {
        self.0.current.swap(current, Ordering::AcqRel)
    }
}
