//! The same fault several times.

use stats::{Lasted, MedianLasted, median_lasted};

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

/// Of the times to recover from one fault, repeated, of which `None` had no effect that was
/// seen; at this confidence: 0.9 needs five of them for an interval, 0.95 six.
#[must_use]
pub fn repeated(effects: &[Option<Lasted>], confidence: f64) -> Repeated {
    let times: Vec<Lasted> = effects.iter().flatten().copied().collect();
    let unfinished = |time: &&Lasted| matches!(time, Lasted::AtLeast(_));
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
