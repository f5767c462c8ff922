//! The state that is on the disk, in memory.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// The state, for the one that changes it.
#[derive(Debug)]
pub struct Model<S>(Arc<RwLock<S>>);

impl<S> Model<S> {
    /// A model of this state.
    pub fn new(state: S) -> Self {
        Self(Arc::new(RwLock::new(state)))
    }

    /// The state as it is.
    pub fn read(&self) -> RwLockReadGuard<'_, S> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes it; waits until nobody reads.
    pub fn change<T>(&self, change: impl FnOnce(&mut S) -> T) -> T {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// A way to read it.
    pub fn view(&self) -> View<S> {
        View(Self(Arc::clone(&self.0)))
    }
}

/// The state, for those who read it; cheap to clone.
#[derive(Debug)]
pub struct View<S>(Model<S>);

impl<S> Clone for View<S> {
    fn clone(&self) -> Self {
        self.0.view()
    }
}

impl<S> View<S> {
    /// Everything that is durable. The guard must be short-lived: the writer waits for it.
    pub fn read(&self) -> RwLockReadGuard<'_, S> {
        self.0.read()
    }
}
