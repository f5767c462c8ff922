//! How far figures of a run would differ if other stretches of it had been seen.
//!
//! Requests close in time share their fate, so they are not independent observations. The
//! run is cut into stretches of equally many requests, and stretches are drawn anew with
//! replacement (the block bootstrap). Draws are seeded: the same spans give the same
//! intervals.

use stats::{SplitMix, nearest_rank};

use super::figures::{Bands, TAILS, TYPICAL};
use super::ledger::Ledger;
use crate::Nanos;

/// Fewest requests that can be cut into stretches.
const FEWEST: usize = 40;

/// Requests of a stretch, and how many stretches there are at least and at most.
const STRETCH: usize = 20;
const STRETCHES: (usize, usize) = (8, 30);

const DRAWS: usize = 400;

/// What is said of a figure holds in all but this share of the draws, on the side that
/// matters.
const DOUBT: f64 = 0.01;

/// A figure, and where it lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Estimate {
    /// Of a figure and what it was in the draws.
    pub(super) fn new(value: f64, mut draws: Vec<f64>) -> Self {
        draws.sort_unstable_by(f64::total_cmp);
        let at = |share| nearest_rank(&draws, share).unwrap_or(value);
        Self {
            value,
            low: at(DOUBT),
            high: at(1.0 - DOUBT),
        }
    }

    /// Less a constant.
    pub(super) fn less(self, constant: f64) -> Self {
        Self {
            value: self.value - constant,
            low: self.low - constant,
            high: self.high - constant,
        }
    }
}

/// Stretches of a run, and draws of them.
pub(super) struct Resamples {
    /// The stretch of each request.
    stretch: Vec<usize>,
    /// Requests of each stretch.
    requests: Vec<f64>,
    /// How often each stretch was drawn.
    draws: Vec<Vec<f64>>,
}

impl Resamples {
    /// Of requests that began at these times; `None`: there are too few.
    pub(super) fn of(starts: &[Nanos]) -> Option<Self> {
        Self::seeded(starts, 0x5eed)
    }

    /// With draws of their own: for two runs that are compared.
    pub(super) fn seeded(starts: &[Nanos], seed: u64) -> Option<Self> {
        let count = starts.len();
        if count < FEWEST {
            return None;
        }
        let stretches = (count / STRETCH).clamp(STRETCHES.0, STRETCHES.1);
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_unstable_by_key(|at| (starts[*at], *at));
        let mut stretch = vec![0; count];
        let mut requests = vec![0.0; stretches];
        for (rank, at) in order.into_iter().enumerate() {
            let own = rank * stretches / count;
            stretch[at] = own;
            requests[own] += 1.0;
        }
        let mut random = SplitMix::new(seed);
        let draw = |_| {
            let mut often = vec![0.0; stretches];
            for _ in 0..stretches {
                often[random.below(stretches)] += 1.0;
            }
            often
        };
        Some(Self {
            stretch,
            requests,
            draws: (0..DRAWS).map(draw).collect(),
        })
    }

    pub(super) fn stretches(&self) -> usize {
        self.requests.len()
    }

    /// Sums over stretches of what requests have: its place, the request, and how much.
    pub(super) fn sums(
        &self,
        places: usize,
        of: impl Iterator<Item = (usize, usize, Nanos)>,
    ) -> Vec<Vec<f64>> {
        let mut sums = vec![vec![0.0; self.stretches()]; places];
        for (place, request, more) in of {
            sums[place][self.stretch[request]] += more as f64;
        }
        sums
    }

    /// Sums over stretches of the lengths of requests.
    pub(super) fn totals(&self, ledger: &Ledger) -> Vec<f64> {
        let mut sums = vec![0.0; self.stretches()];
        for (stretch, total) in self.stretch.iter().zip(&ledger.totals) {
            sums[*stretch] += *total as f64;
        }
        sums
    }

    /// A function of sums over stretches: as the run has them, and as the draws have them.
    pub(super) fn estimate<const N: usize>(
        &self,
        sums: [&[f64]; N],
        of: impl Fn([f64; N]) -> f64,
    ) -> Estimate {
        let value = of(sums.map(|sum| sum.iter().sum()));
        let drawn = |often: &Vec<f64>| {
            let weighted = |sum: &[f64]| -> f64 {
                let pairs = sum.iter().zip(often);
                pairs.map(|(one, often)| one * often).sum()
            };
            of(sums.map(weighted))
        };
        Estimate::new(value, self.draws.iter().map(drawn).collect())
    }

    /// How the mean differs from that of another run.
    pub(super) fn difference(&self, sums: &[f64], other: (&Self, &[f64])) -> Estimate {
        let mean = |of: &Self, sums: &[f64], often: Option<&Vec<f64>>| {
            let weighted = |all: &[f64]| -> f64 {
                let pairs = all.iter().enumerate();
                pairs
                    .map(|(at, one)| one * often.map_or(1.0, |often| often[at]))
                    .sum()
            };
            weighted(sums) / weighted(&of.requests).max(1.0)
        };
        let (before, before_sums) = other;
        let value = mean(self, sums, None) - mean(before, before_sums, None);
        let pairs = self.draws.iter().zip(&before.draws);
        let draws = pairs.map(|(own, others)| {
            mean(self, sums, Some(own)) - mean(before, before_sums, Some(others))
        });
        Estimate::new(value, draws.collect())
    }

    /// The mean over requests of something whose sums over stretches are given.
    pub(super) fn mean(&self, sums: &[f64]) -> Estimate {
        self.estimate([sums, &self.requests], |[sum, count]| sum / count.max(1.0))
    }

    /// What shares of the tail groups of parts are: for each group the length that it has in
    /// each request.
    pub(super) fn tail_shares(&self, ledger: &Ledger, groups: &[Vec<f64>]) -> Vec<Estimate> {
        let totals = &ledger.totals;
        let Some((_, around)) = TAILS
            .iter()
            .find(|(quantile, _)| super::figures::is_enough(totals.len(), *quantile))
        else {
            return Vec::new();
        };
        let mut order: Vec<usize> = (0..totals.len()).collect();
        order.sort_unstable_by_key(|at| (totals[*at], *at));
        let shares = |often: &dyn Fn(usize) -> f64| -> Vec<f64> {
            let whole: f64 = order.iter().map(|at| often(*at)).sum();
            let mut bands = Bands::new(groups.len(), [TYPICAL, *around], whole);
            for at in &order {
                let value = totals[*at] as f64;
                bands.add(often(*at), value, |group| groups[group][*at]);
            }
            bands.shares()
        };
        let seen = shares(&|_| 1.0);
        let mut drawn = vec![Vec::with_capacity(self.draws.len()); groups.len()];
        for often in &self.draws {
            let of = |at: usize| often[self.stretch[at]];
            for (group, share) in shares(&of).into_iter().enumerate() {
                drawn[group].push(share);
            }
        }
        let pairs = seen.into_iter().zip(drawn);
        pairs
            .map(|(value, draws)| Estimate::new(value, draws))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hit_one_stretch_is_no_property_of_the_run() {
        let starts: Vec<Nanos> = (0..1_000).collect();
        let resamples = Resamples::of(&starts).unwrap();
        let stretches = resamples.stretches();
        assert_eq!(stretches, 30);
        let mut burst = vec![0.0; stretches];
        burst[3] = 1_000_000.0;
        let burst = resamples.mean(&burst);
        assert!(burst.value > 999.0 && burst.low == 0.0, "{burst:?}");
        let steady = vec![1_000_000.0 / 30.0; stretches];
        let steady = resamples.mean(&steady);
        assert!(steady.low > 950.0 && steady.high < 1_050.0, "{steady:?}");
        assert!(Resamples::of(&starts[..39]).is_none());
    }
}
