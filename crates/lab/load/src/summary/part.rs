//! The part of a load that its numbers are about.

use std::time::Duration;

use super::Steady;
use crate::guard::sending_time;
use crate::recording::{Recorded, Span};
use crate::segment::Model;

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
    let (state, from) = match (&recorded.segment.model, warm_up) {
        (Model::Open(arrivals), WarmUp::Auto) if arrivals.varies() => ("ramp", Duration::ZERO),
        (_, WarmUp::Auto) => ("short", Duration::ZERO),
        (_, WarmUp::Fixed(length)) => ("steady", length),
    };
    let spans = recorded.timeline.spans();
    let first = spans.iter().position(|span| span.start >= from);
    let part = match first {
        // Nothing is left out, or nothing would be left.
        Some(0) | None => recorded.total.clone(),
        Some(first) => {
            let mut part = Span::empty(recorded.total.kinds.len());
            spans[first..].iter().for_each(|span| part.append(span));
            part
        }
    };
    let from_s = part.start.as_secs_f64();
    let steady = Steady {
        from_s,
        to_s: from_s + sending_time(recorded, &part),
        state: match first {
            None if !from.is_zero() => "short",
            _ => state,
        }
        .to_owned(),
    };
    (steady, part)
}
