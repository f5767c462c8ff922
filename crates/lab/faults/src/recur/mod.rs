//! When a fault that recurs begins and ends.

use std::ops::Range;
use std::time::Duration;

use stats::SplitMix;

use crate::seed;

/// Most times that one fault may come in a run.
pub const MOST_TURNS: usize = 100_000;

/// The time from the end of one turn to the beginning of the next, and from the beginning of
/// the run to the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gaps {
    /// Always the same.
    Fixed(Duration),
    /// Drawn from an exponential distribution of this mean: turns come without memory, as
    /// failures of independent parts do.
    Exponential(Duration),
}

impl Gaps {
    fn mean(self) -> Duration {
        match self {
            Self::Fixed(gap) | Self::Exponential(gap) => gap,
        }
    }
}

/// Why no turns can be drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecurError {
    /// There would be no time between two turns.
    #[error(
        "plan when \"{fault}\" recurs: the gap is zero; give the time between the end of one turn and the next, or one fault without gaps"
    )]
    NoGap {
        /// The fault.
        fault: String,
    },
    /// It would come too often.
    #[error(
        "plan when \"{fault}\" recurs: it would come about {turns} times; at most {MOST_TURNS} are planned; choose longer gaps"
    )]
    TooMany {
        /// The fault.
        fault: String,
        /// About how many.
        turns: u64,
    },
}

/// The turns of the fault named `fault` that begin within `window`, each with its beginning and
/// end since the beginning of the run. They do not overlap; one that the window's end would cut
/// ends there. At least one nanosecond lies between two.
///
/// # Errors
/// When the gap is zero, or more than [`MOST_TURNS`] would come; nothing is cut in silence.
pub fn turns(
    gaps: Gaps,
    length: Duration,
    window: Range<Duration>,
    seed: u64,
    fault: &str,
) -> Result<Vec<Range<Duration>>, RecurError> {
    if gaps.mean().is_zero() {
        return Err(RecurError::NoGap {
            fault: fault.into(),
        });
    }
    let span = window.end.saturating_sub(window.start);
    let each = (gaps.mean().saturating_add(length)).as_nanos();
    let too_many = |turns: u128| RecurError::TooMany {
        fault: fault.into(),
        turns: u64::try_from(turns).unwrap_or(u64::MAX),
    };
    let expected = span.as_nanos() / each;
    // Draws are not even begun for what cannot fit.
    if expected > 2 * MOST_TURNS as u128 {
        return Err(too_many(expected));
    }
    let mut random = SplitMix::new(seed::named(seed, fault));
    let mut found = Vec::new();
    let mut at = window.start;
    loop {
        let gap = match gaps {
            Gaps::Fixed(gap) => gap,
            Gaps::Exponential(mean) => exponential(mean, &mut random),
        };
        let begin = at.saturating_add(gap);
        if begin >= window.end {
            return Ok(found);
        }
        if found.len() == MOST_TURNS {
            return Err(too_many(expected.max(MOST_TURNS as u128 + 1)));
        }
        at = begin.saturating_add(length).min(window.end);
        found.push(begin..at);
    }
}

/// An exponential length of time of this mean, at least a nanosecond.
pub(crate) fn exponential(mean: Duration, random: &mut SplitMix) -> Duration {
    let nanos = random.exponential() * mean.as_nanos() as f64;
    // A float beyond the largest integer becomes that.
    Duration::from_nanos((nanos as u64).max(1))
}

#[cfg(test)]
mod tests;
