//! What a load came to so far: all that is known of it when nobody waits for its end.

use std::sync::{Arc, Mutex, PoisonError};

use lab_load::{Recorded, Segment, Span};
use measure::Clock;

/// The spans of a load that have passed; they share it with the generator's thread.
#[derive(Clone)]
pub(super) struct SoFar {
    clock: Clock,
    recorded: Arc<Mutex<Recorded>>,
}

impl SoFar {
    /// Of a segment that is about to begin.
    pub(super) fn begun(clock: Clock, segment: &Segment) -> Self {
        let recorded = Recorded::begun(segment.clone());
        Self {
            clock,
            recorded: Arc::new(Mutex::new(recorded)),
        }
    }

    pub(super) fn passed(&self, span: &Span) {
        let now_ns = (self.clock.now_s() * 1e9) as i64;
        let now_unix_ns = self.clock.origin_unix_ns().saturating_add(now_ns);
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.pass(span, now_unix_ns);
    }

    /// All of it; `None`: no span has passed.
    pub(super) fn take(&self) -> Option<Recorded> {
        let recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        (!recorded.timeline.spans().is_empty()).then(|| recorded.clone())
    }
}
