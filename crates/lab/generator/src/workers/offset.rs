//! How far another machine's clock is from this one's, by ping-pong (Cristian, 1989).

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Exchanges that are remembered. Crystals drift by some 50 µs each second apart, so
/// old ones must go, however good they were.
const REMEMBERED: usize = 128;

/// A clock as seen from another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offset {
    /// What must be added to the own time to get the other's, in nanoseconds.
    pub ns: i64,
    /// The truth is at most this far from it: half of the round trip.
    pub uncertainty: Duration,
}

/// The last exchanges with one clock.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exchanges(VecDeque<Offset>);

impl Exchanges {
    /// Counts an exchange: asked and answered by the own clock, came by the other's, all
    /// in nanoseconds of Unix time. One that ends before it began says nothing and is
    /// left out.
    pub(crate) fn count(&mut self, asked: i64, came: i64, answered: i64) {
        let [asked, came, answered] = [asked, came, answered].map(i128::from);
        let ns = came - (asked + answered).div_euclid(2);
        let (Ok(under_way), Ok(ns)) = (u64::try_from(answered - asked), i64::try_from(ns)) else {
            return;
        };
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(Offset {
            ns,
            uncertainty: Duration::from_nanos(under_way.div_ceil(2)),
        });
    }

    /// How many are remembered.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The best of them: the one with the shortest way.
    pub(crate) fn best(&self) -> Option<Offset> {
        self.0.iter().copied().min_by_key(|each| each.uncertainty)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_truth_is_within_the_uncertainty(
            truth in -1_000_000_000_000i64..1_000_000_000_000,
            ways in proptest::collection::vec((0i64..50_000_000, 0i64..50_000_000), 1..100),
        ) {
            let mut exchanges = Exchanges::default();
            let mut now = 1_700_000_000_000_000_000;
            for (there, back) in ways {
                exchanges.count(now, now + there + truth, now + there + back);
                now += 500_000_000;
            }
            let best = exchanges.best().unwrap();
            let error = (best.ns - truth).unsigned_abs();
            prop_assert!(u128::from(error) <= best.uncertainty.as_nanos() + 1);
        }

        #[test]
        fn no_times_break_it(times in any::<[i64; 3]>()) {
            let mut exchanges = Exchanges::default();
            let [asked, came, answered] = times;
            exchanges.count(asked, came, answered);
            prop_assert!(exchanges.len() <= 1);
        }
    }

    #[test]
    fn the_shortest_way_wins_and_old_ones_go() {
        let mut exchanges = Exchanges::default();
        exchanges.count(0, 105, 10);
        assert_eq!(exchanges.best().unwrap().ns, 100);
        for _ in 0..REMEMBERED {
            exchanges.count(0, 1_300, 1_000);
        }
        assert_eq!(exchanges.best().unwrap().ns, 800);
        assert_eq!(exchanges.len(), REMEMBERED);
    }
}
