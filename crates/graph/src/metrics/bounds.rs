//! The buckets of histograms of time.

use crate::Nanos;

pub(super) const US: Nanos = 1_000;
const MS: Nanos = 1_000_000;
const S: Nanos = 1_000_000_000;

/// Places in a decade: each is 1.2 to 1.5 times the one before (the steps of
/// `OpenCensus`' default bounds).
const STEPS: [Nanos; 10] = [10, 13, 16, 20, 25, 30, 40, 50, 65, 80];

/// Bounds that the decades lack: those that the seed's metrics ask for, and a minute.
const EXTRA_MS: [Nanos; 9] = [6, 7, 9, 11, 12, 14, 15, 18, 60_000];

/// Bounds of a histogram.
pub(super) const BOUNDS: usize = 8 * STEPS.len() + EXTRA_MS.len() + 1;

/// Upper bounds of the buckets, in rising order: 1 µs to 100 s. Above the last is one
/// more bucket.
pub(super) static UPPER: [Nanos; BOUNDS] = {
    let mut bounds = [0; BOUNDS];
    let (mut at, mut extra, mut decade) = (0, 0, US / 10);
    while decade < 10 * S {
        let mut step = 0;
        while step < STEPS.len() {
            let next = decade * STEPS[step];
            while extra < EXTRA_MS.len() && EXTRA_MS[extra] * MS < next {
                bounds[at] = EXTRA_MS[extra] * MS;
                (at, extra) = (at + 1, extra + 1);
            }
            bounds[at] = next;
            (at, step) = (at + 1, step + 1);
        }
        decade *= 10;
    }
    bounds[at] = 100 * S;
    bounds
};

/// The bounds that our own pages show, in microseconds.
pub(super) const SHOWN_US: [Nanos; 31] = [
    10, 20, 30, 50, 80, 130, 200, 300, 500, 800, 1_300, 2_000, 3_000, 5_000, 8_000, 13_000, 20_000,
    30_000, 50_000, 80_000, 130_000, 200_000, 300_000, 500_000, 800_000, 1_300_000, 2_000_000,
    5_000_000, 10_000_000, 30_000_000, 60_000_000,
];

/// `ochttp`'s default latency bounds, in milliseconds.
pub(super) const OPENCENSUS_MS: [Nanos; 35] = [
    0, 1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 30, 40, 50, 65, 80, 100, 130, 160, 200, 250, 300,
    400, 500, 650, 800, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000,
];

/// Bounds of testapi's `prime_latency`, in milliseconds: each up to 16, then to 400.
pub(super) const PRIME_MS: [Nanos; 31] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 25, 30, 40, 50, 65, 80, 100,
    130, 160, 200, 250, 300, 400,
];

/// Where a time is counted: the first bucket whose bound is not below it.
pub(super) fn bucket_of(time: Nanos) -> usize {
    UPPER.partition_point(|bound| *bound < time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_rise_in_small_steps() {
        assert_eq!((UPPER[0], UPPER[BOUNDS - 1]), (US, 100 * S));
        for pair in UPPER.windows(2) {
            assert!(
                pair[0] < pair[1] && pair[1] * 10 <= pair[0] * 15,
                "{pair:?}"
            );
        }
    }

    #[test]
    fn every_bound_that_is_shown_is_the_bound_of_a_bucket() {
        let seeds = OPENCENSUS_MS.iter().chain(&PRIME_MS).map(|ms| ms * MS);
        for bound in seeds
            .chain(SHOWN_US.map(|bound| bound * US))
            .filter(|bound| *bound > 0)
        {
            assert!(UPPER.contains(&bound), "{bound}");
        }
    }

    #[test]
    fn a_time_is_in_the_bucket_whose_bound_it_reaches() {
        assert_eq!((bucket_of(0), bucket_of(US), bucket_of(US + 1)), (0, 0, 1));
        assert_eq!(bucket_of(100 * S), BOUNDS - 1);
        assert_eq!(bucket_of(u64::MAX), BOUNDS);
    }
}
