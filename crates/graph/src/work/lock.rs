//! Locks that steps of several services share.

use std::sync::{Condvar, Mutex, PoisonError};

use super::error::WorkError;
use super::stop::Stop;
use crate::Nanos;
use crate::lock;

/// A lock with a name, held by one at a time. Who waits longest need not be next, as with
/// the locks of most programs.
#[derive(Debug, Default)]
pub(crate) struct NamedLock {
    held: Mutex<bool>,
    freed: Condvar,
}

/// Frees the lock when it is dropped.
pub(crate) struct Held<'a>(&'a NamedLock);

impl NamedLock {
    /// Waits for it, but not beyond the deadline on the monotonic clock.
    ///
    /// # Errors
    /// When the deadline passed or the wait was stopped.
    pub(crate) fn take(&self, deadline: Nanos, stop: &Stop) -> Result<Held<'_>, WorkError> {
        let mut held = lock(&self.held);
        while *held {
            let longest = stop.patience(deadline, "wait for a lock")?;
            let waited = self.freed.wait_timeout(held, longest);
            held = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *held = true;
        Ok(Held(self))
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut held = lock(&self.0.held);
        *held = false;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn one_holds_it_at_a_time() {
        let lock = NamedLock::default();
        let (inside, total) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let _held = lock.take(Nanos::MAX, &Stop::default()).unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        total.fetch_add(1, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(total.into_inner(), 4000);
    }

    #[test]
    fn a_wait_ends_at_its_deadline_or_when_stopped() {
        let lock = NamedLock::default();
        let _held = lock.take(Nanos::MAX, &Stop::default()).unwrap();
        let soon = wire::clock::now() + 1_000_000;
        let late = lock.take(soon, &Stop::default()).err().unwrap();
        assert_eq!(late.cause(), "late");
        let stop = Stop::default();
        stop.request();
        let stopped = lock.take(Nanos::MAX, &stop).err().unwrap();
        assert_eq!(stopped.cause(), "stopped");
    }
}
