//! The same fault several times.

use stats::{MedianLasted, median_lasted};

use super::Effect;

/// Fewest faults of which a median is told with an interval.
const FEWEST: usize = 5;

/// Recovery from a fault that was repeated.
#[derive(Debug, Clone, PartialEq)]
pub struct Repeated {
    /// So many faults there were.
    pub faults: usize,
    /// Of these, so many without an effect that was seen; they are not in the medians.
    pub unseen: usize,
    /// So many that were not over when nobody looked any more.
    pub unfinished: usize,
    /// Time to recover, from the faults' begins; `None`: no effect was ever seen. Its interval is there from
    /// five effects on.
    pub recovery: Option<MedianLasted>,
}

/// Of the effects of one fault, repeated, at this confidence: 0.9 needs five of them for an interval,
/// 0.95 six.
#[must_use]
pub fn repeated(effects: &[Effect], confidence: f64) -> Repeated {
    let seen = effects.iter().filter_map(|effect| match effect {
        Effect::Seen(recovery) => Some(recovery.returned.lasted()),
        Effect::None(_) => None,
    });
    let times: Vec<_> = seen.collect();
    let unfinished = |time: &&stats::Lasted| matches!(time, stats::Lasted::AtLeast(_));
    let mut recovery = median_lasted(&times, confidence);
    if let Some(median) = recovery.as_mut().filter(|_| times.len() < FEWEST) {
        (median.low, median.high) = (None, None);
    }
    Repeated {
        faults: effects.len(),
        unseen: effects.len() - times.len(),
        unfinished: times.iter().filter(unfinished).count(),
        recovery,
    }
}
