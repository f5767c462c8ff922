//! The buckets of histograms of time.

use crate::Nanos;

const US: Nanos = 1_000;
const MS: Nanos = 1_000_000;
const S: Nanos = 1_000_000_000;

/// Places in a decade: each is 1.2 to 1.5 times the one before (the steps of
/// `OpenCensus`' default bounds).
const STEPS: [Nanos; 10] = [10, 13, 16, 20, 25, 30, 40, 50, 65, 80];

/// Bounds that the decades lack: those that the seed's metrics ask for, and a minute.
const EXTRA: [Nanos; 9] = [
    6 * MS,
    7 * MS,
    9 * MS,
    11 * MS,
    12 * MS,
    14 * MS,
    15 * MS,
    18 * MS,
    60 * S,
];

/// Bounds of a histogram.
pub(super) const BOUNDS: usize = 8 * STEPS.len() + EXTRA.len() + 1;

/// Upper bounds of the buckets, in rising order: 1 µs to 100 s. Above the last is one
/// more bucket.
pub(super) static UPPER: [Nanos; BOUNDS] = {
    let mut bounds = [0; BOUNDS];
    let (mut at, mut extra, mut decade) = (0, 0, US / 10);
    while decade < 10 * S {
        let mut step = 0;
        while step < STEPS.len() {
            let next = decade * STEPS[step];
            while extra < EXTRA.len() && EXTRA[extra] < next {
                bounds[at] = EXTRA[extra];
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

/// The bounds that our own pages show.
pub(super) const SHOWN: [Nanos; 31] = [
    10 * US,
    20 * US,
    30 * US,
    50 * US,
    80 * US,
    130 * US,
    200 * US,
    300 * US,
    500 * US,
    800 * US,
    1300 * US,
    2 * MS,
    3 * MS,
    5 * MS,
    8 * MS,
    13 * MS,
    20 * MS,
    30 * MS,
    50 * MS,
    80 * MS,
    130 * MS,
    200 * MS,
    300 * MS,
    500 * MS,
    800 * MS,
    1300 * MS,
    2 * S,
    5 * S,
    10 * S,
    30 * S,
    60 * S,
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
        for bound in seeds.chain(SHOWN).filter(|bound| *bound > 0) {
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
