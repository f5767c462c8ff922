//! The part of a load that its numbers are about.

use std::time::Duration;

use super::Steady;
use crate::recording::{Recorded, Span};
use crate::steady;
use crate::validity::sending_time;

/// What is left out at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmUp {
    /// What a statistical test finds unlike the rest.
    Auto,
    /// So much, to the next slot of the timeline; 0: nothing.
    Fixed(Duration),
}

/// Where the steady part lies, and the sum of its spans.
pub(super) fn steady_part(warm_up: WarmUp, recorded: &Recorded) -> (Steady, Span) {
    let steady = match warm_up {
        WarmUp::Auto => steady::find(recorded),
        WarmUp::Fixed(length) => after(length, recorded),
    };
    let part = steady::part(recorded, &steady).total;
    (steady, part)
}

/// All that began after `length`.
fn after(length: Duration, recorded: &Recorded) -> Steady {
    let total = &recorded.total;
    let end = total.start.as_secs_f64() + sending_time(recorded, total);
    let mut spans = recorded.timeline.spans().iter();
    let first = spans.find(|span| span.start >= length);
    let (from, state) = match first {
        Some(span) => (span.start, "steady"),
        // Nothing would be left.
        None if !length.is_zero() => (total.start, "short"),
        None => (total.start, "steady"),
    };
    Steady {
        from_s: from.as_secs_f64(),
        to_s: end,
        state: state.to_owned(),
    }
}
