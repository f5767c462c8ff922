//! Times of which some were not waited for to the end.

use crate::quantile_ranks;

/// A length of time, or how long it was at least.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lasted {
    /// It ended after so long.
    For(f64),
    /// It had not ended after so long, when nobody looked any more.
    AtLeast(f64),
}

impl Lasted {
    /// So long, or at least so long.
    #[must_use]
    pub fn least(self) -> f64 {
        match self {
            Self::For(length) | Self::AtLeast(length) => length,
        }
    }

    fn most(self) -> f64 {
        match self {
            Self::For(length) => length,
            Self::AtLeast(_) => f64::INFINITY,
        }
    }
}

/// The median of times some of which are censored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianLasted {
    /// Where the estimate of Kaplan and Meier falls to a half ("Nonparametric estimation from
    /// incomplete observations", 1958), or, if it never does, the longest time that was
    /// waited.
    pub median: Lasted,
    /// Lower end of the interval; `None`: too few times for one.
    pub low: Option<f64>,
    /// Upper end; infinite where the times that were not waited for leave it open. `None`: too few times.
    pub high: Option<f64>,
}

/// The median of these times, and an interval for it. The interval holds whatever the
/// distribution and whatever decided for how long was waited: its lower end is an order
/// statistic of the times with what was not waited for taken as short as it can be, its upper
/// end one with that taken as endless. `None` without times, or when one is not a number.
#[must_use]
pub fn median_lasted(times: &[Lasted], confidence: f64) -> Option<MedianLasted> {
    if times.is_empty() || times.iter().any(|time| time.least().is_nan()) {
        return None;
    }
    let (low, high) = quantile_ranks(times.len() as u64, 0.5, confidence).unwrap_or((None, None));
    let ranked = |length: fn(Lasted) -> f64, rank: Option<u64>| {
        let mut lengths: Vec<f64> = times.iter().map(|time| length(*time)).collect();
        lengths.sort_by(f64::total_cmp);
        let rank = usize::try_from(rank?).ok()?;
        lengths.get(rank - 1).copied()
    };
    Some(MedianLasted {
        median: kaplan_meier_median(times),
        low: ranked(Lasted::least, low),
        high: ranked(Lasted::most, high),
    })
}

fn kaplan_meier_median(times: &[Lasted]) -> Lasted {
    let mut ordered = times.to_vec();
    // Of equal times, those that ended were still at risk when the others were given up.
    ordered.sort_by(|a, b| {
        let ended = |time: &Lasted| matches!(time, Lasted::AtLeast(_));
        a.least()
            .total_cmp(&b.least())
            .then(ended(a).cmp(&ended(b)))
    });
    let mut surviving = 1.0;
    for (before, time) in ordered.iter().enumerate() {
        if let Lasted::For(_) = time {
            surviving *= 1.0 - 1.0 / (ordered.len() - before) as f64;
            // Rounding must not carry the median one time further.
            if surviving <= 0.5 + 1e-12 {
                return *time;
            }
        }
    }
    let longest = ordered.last().map_or(0.0, |time| time.least());
    Lasted::AtLeast(longest)
}

#[cfg(test)]
mod tests {
    use Lasted::{AtLeast, For};
    use proptest::prelude::*;

    use super::*;
    use crate::SplitMix;

    #[test]
    fn the_estimate_of_the_published_example() {
        // Remission times of 21 patients given 6-MP (Freireich et al. 1963): median 23 weeks.
        let ended = [6.0, 6.0, 6.0, 7.0, 10.0, 13.0, 16.0, 22.0, 23.0].map(For);
        let given_up = [
            6.0, 9.0, 10.0, 11.0, 17.0, 19.0, 20.0, 25.0, 32.0, 32.0, 34.0, 35.0,
        ]
        .map(AtLeast);
        let times = [&ended[..], &given_up[..]].concat();
        let found = median_lasted(&times, 0.95).unwrap();
        assert_eq!(found.median, For(23.0));
        assert_eq!(found.high, Some(f64::INFINITY));
    }

    #[test]
    fn what_never_ended_leaves_the_median_open() {
        let found = median_lasted(&[For(3.0), AtLeast(300.0), AtLeast(300.0)], 0.9).unwrap();
        assert_eq!(found.median, AtLeast(300.0));
        assert_eq!((found.low, found.high), (None, None));
        assert_eq!(median_lasted(&[], 0.9), None);
        assert_eq!(median_lasted(&[For(f64::NAN)], 0.9), None);
    }

    #[test]
    fn five_times_have_an_interval_of_nine_tenths() {
        let found = median_lasted(&[4.0, 2.0, 5.0, 3.0, 9.0].map(For), 0.9).unwrap();
        assert_eq!(found.median, For(4.0));
        assert_eq!((found.low, found.high), (Some(2.0), Some(9.0)));
    }

    #[test]
    fn the_interval_holds_the_median_also_when_some_were_given_up() {
        let held = (0..400).filter(|seed| {
            let mut random = SplitMix::new(*seed);
            let times: Vec<Lasted> = (0..15)
                .map(|_| {
                    let (length, waited) = (random.exponential(), 1.5 * random.exponential());
                    if length <= waited {
                        For(length)
                    } else {
                        AtLeast(waited)
                    }
                })
                .collect();
            let found = median_lasted(&times, 0.9).unwrap();
            let truth = std::f64::consts::LN_2;
            found.low.unwrap() <= truth && truth <= found.high.unwrap()
        });
        let held = held.count();
        assert!(held >= 360, "{held} of 400");
    }

    proptest! {
        #[test]
        fn without_censoring_it_is_the_nearest_rank(lengths in prop::collection::vec(0u32..1000, 1..40)) {
            let times: Vec<Lasted> = lengths.iter().map(|length| For(f64::from(*length))).collect();
            let mut sorted: Vec<f64> = lengths.iter().copied().map(f64::from).collect();
            sorted.sort_by(f64::total_cmp);
            let median = crate::nearest_rank(&sorted, 0.5).unwrap();
            prop_assert_eq!(median_lasted(&times, 0.9).unwrap().median, For(median));
        }
    }
}
