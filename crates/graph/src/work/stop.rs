//! The wish that work ends early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::error::WorkError;
use crate::Nanos;

/// Longest time that a wait goes on before it looks whether it shall end.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// Clones share the wish. Work that computes looks at it every 20 µs or so, work that
/// waits every [`LOOK`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// How long a wait may go on before it looks again.
    ///
    /// # Errors
    /// When it shall end, or the deadline on the monotonic clock has passed.
    pub(crate) fn patience(
        &self,
        deadline: Nanos,
        doing: &'static str,
    ) -> Result<Duration, WorkError> {
        match deadline.saturating_sub(wire::clock::now()) {
            _ if self.is_requested() => Err(WorkError::Stopped),
            0 => Err(WorkError::Late { doing }),
            left => Ok(Duration::from_nanos(left).min(LOOK)),
        }
    }
}
