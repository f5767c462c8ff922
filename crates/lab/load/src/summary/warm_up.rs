//! What is made of the start of a load.

use std::time::Duration;

use super::{Counts, Latency, PartNumbers, Rates, Steady};
use crate::recording::Recorded;
use crate::steady;
use crate::validity::most_good;
use crate::workload::Workload;

/// What is made of the start of a load. Only [`WarmUp::Fixed`] leaves anything out of what
/// is judged, and that is latency alone: failures and rates are those of the whole load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmUp {
    /// A statistical test looks for a start that is unlike the rest; what comes after it is
    /// told beside the whole.
    Auto,
    /// Nobody looks for one: the load goes on where another one ended.
    None,
    /// Latency leaves out so much, to the next slot of the timeline in which no request of it ends
    /// any more.
    Fixed(Duration),
}

impl WarmUp {
    /// What the latency that is judged leaves out.
    pub fn left_out(self) -> Duration {
        match self {
            Self::Auto | Self::None => Duration::ZERO,
            Self::Fixed(length) => length,
        }
    }

    /// Where the steady part lies, with its numbers if it is not the whole.
    pub(super) fn steady(self, workload: &Workload, recorded: &Recorded) -> Steady {
        let mut steady = match self {
            Self::Auto => steady::find(recorded),
            Self::None => Steady {
                state: "whole".to_owned(),
                ..after(Duration::ZERO, recorded)
            },
            Self::Fixed(length) => after(length, recorded),
        };
        if steady.from_s > recorded.total.start.as_secs_f64() {
            let part = steady::part(recorded, &steady);
            let all = part.total.requests();
            steady.numbers = Some(PartNumbers {
                rate: Rates::of(&part),
                requests: Counts::of(part.total.planned, &all),
                latency: Latency::of(workload, &all),
            });
        }
        steady
    }
}

impl Steady {
    /// The part between two times, in a state; nothing else is known of it yet.
    pub(crate) fn between(from: Duration, to: Duration, state: &str) -> Self {
        Self {
            from_s: from.as_secs_f64(),
            to_s: to.as_secs_f64(),
            state: state.to_owned(),
            growth: None,
            numbers: None,
        }
    }
}

impl Rates {
    /// Those of a load, or of a part of it, without what came after the end.
    pub(super) fn of(recorded: &Recorded) -> Self {
        let own = recorded.sending();
        let seconds = own.length.as_secs_f64().max(f64::MIN_POSITIVE);
        let requests = own.requests();
        let good = requests.good();
        let most = most_good(recorded, &recorded.total.requests(), good);
        Self {
            asked: (recorded.segment.model.is_open()).then(|| own.planned as f64 / seconds),
            sent: requests.sent as f64 / seconds,
            good: good as f64 / seconds,
            good_at_best: (most > good as f64).then(|| (most / seconds).min(f64::MAX)),
        }
    }
}

/// All that began after `length`.
fn after(length: Duration, recorded: &Recorded) -> Steady {
    let own = recorded.sending();
    let (from, state) = match steady::after(recorded, length) {
        // Nothing would be left.
        None => (recorded.total.start, "short"),
        Some(from) => (from, "asked"),
    };
    Steady::between(from, own.end(), state)
}
