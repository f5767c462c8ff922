use proptest::prelude::*;

use super::*;

fn of(micros: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    for us in micros {
        histogram.record(Duration::from_micros(*us));
    }
    histogram
}

#[test]
fn values_beyond_the_bounds_count_at_the_bound() {
    let mut histogram = of(&[u64::MAX, 0]);
    histogram.record_ns(u64::MAX);
    histogram.record(Duration::MAX);
    assert_eq!(histogram.count(), 4);
    let highest = histogram.quantile(1.0).unwrap().as_secs_f64();
    assert!((highest / HIGHEST.as_secs_f64() - 1.0).abs() < 0.001);
}

#[test]
fn nothing_counted_has_no_numbers() {
    let empty = of(&[]);
    assert_eq!(empty.quantile(0.5), None);
    assert_eq!(empty.mean(), None);
    assert_eq!(empty.stddev(), None);
    assert_eq!((empty.min(), empty.max()), (None, None));
}

#[test]
fn a_duration_counts_at_the_nearest_microsecond() {
    for (nanos, us) in [
        (499, 0),
        (500, 1),
        (1_499, 1),
        (1_500, 2),
        (999_999_500, 1_000_000),
    ] {
        let mut histogram = Histogram::new();
        histogram.record_ns(nanos);
        let mut other = Histogram::new();
        other.record(Duration::from_nanos(nanos));
        assert_eq!(histogram, of(&[us]), "{nanos}");
        assert_eq!(other, histogram, "{nanos}");
    }
}

#[test]
fn a_rank_that_falls_on_a_value_is_that_value() {
    // In floating point 0.07 of 100 is above 7.
    let histogram = of(&(1..=100).collect::<Vec<_>>());
    assert_eq!(histogram.quantile(0.07), Some(Duration::from_micros(7)));
    assert_eq!(histogram.count_above(Duration::from_micros(7)), 93);
}

#[test]
fn moments() {
    let histogram = of(&[2, 4, 4, 4, 5, 5, 7, 9]);
    assert_eq!(histogram.mean(), Some(Duration::from_micros(5)));
    assert_eq!(histogram.stddev(), Some(Duration::from_micros(2)));
    assert!((histogram.sum_seconds() - 40e-6).abs() < 1e-12);
}

#[test]
fn other_text_is_refused() {
    assert!(Histogram::from_base64("not base64!").is_err());
    assert!(Histogram::from_base64("AAAA").is_err());
}

#[test]
fn a_finer_histogram_of_another_tool_is_read() {
    let mut theirs = hdrhistogram::Histogram::<u64>::new(5).unwrap();
    for value in [1, 1_000_000, 7_200_000_000] {
        theirs.record(value).unwrap();
    }
    let mut bytes = Vec::new();
    use hdrhistogram::serialization::{Serializer, V2Serializer};
    V2Serializer::new().serialize(&theirs, &mut bytes).unwrap();
    let read = Histogram::from_v2(&bytes).unwrap();
    assert_eq!(read, of(&[1, 1_000_000, 3_600_000_000]));
}

fn micros() -> impl Strategy<Value = Vec<u64>> {
    // Every octave as likely as another.
    let value = (0u32..32).prop_flat_map(|bits| (1u64 << bits)..(2u64 << bits));
    proptest::collection::vec(value.prop_map(|value| value.min(3_600_000_000)), 1..200)
}

proptest! {
    #[test]
    fn text_keeps_everything(micros in micros()) {
        let histogram = of(&micros);
        let read = Histogram::from_base64(&histogram.to_base64().unwrap()).unwrap();
        prop_assert_eq!(&read, &histogram);
        let json = serde_json::to_string(&histogram).unwrap();
        prop_assert_eq!(serde_json::from_str::<Histogram>(&json).unwrap(), histogram);
    }

    #[test]
    fn packed_is_the_same(micros in micros(), more in micros()) {
        let open = of(&micros);
        let mut packed = open.clone();
        packed.pack();
        prop_assert_eq!(&packed, &open);
        prop_assert!(packed.bins().eq(open.bins()));
        packed.merge(&of(&more));
        prop_assert_eq!(packed, of(&[micros, more].concat()));
    }

    #[test]
    fn merged_is_as_if_counted_together(a in micros(), b in micros()) {
        let mut merged = of(&a);
        merged.merge(&of(&b));
        prop_assert_eq!(&merged, &of(&[a.clone(), b.clone()].concat()));
        merged.subtract(&of(&b));
        prop_assert_eq!(&merged, &of(&a));
        merged.reset();
        prop_assert_eq!(merged, Histogram::new());
    }

    /// The library that other tools use says the same.
    #[test]
    fn agrees_with_hdrhistogram(micros in micros()) {
        let ours = of(&micros);
        let mut theirs =
            hdrhistogram::Histogram::<u64>::new_with_bounds(1, 3_600_000_000, 3).unwrap();
        for us in &micros {
            theirs.record(*us).unwrap();
        }
        let us = |duration: Option<Duration>| duration.unwrap().as_micros() as u64;
        for quantile in [0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0] {
            prop_assert_eq!(us(ours.quantile(quantile)), theirs.value_at_quantile(quantile));
        }
        prop_assert_eq!(us(ours.max()), theirs.max());
        prop_assert_eq!(us(ours.min()), theirs.min());
        // Its middle of a bin lies half a microsecond above the middle.
        let close = |a: f64, b: f64| (a - b).abs() <= 0.502 + 1e-9 * b.abs();
        prop_assert!(close(ours.mean().unwrap().as_secs_f64() * 1e6, theirs.mean()));
        prop_assert!(close(ours.stddev().unwrap().as_secs_f64() * 1e6, theirs.stdev()));
    }

    #[test]
    fn the_median_is_right_to_three_digits(mut micros in micros()) {
        let got = of(&micros).quantile(0.5).unwrap().as_micros() as f64;
        micros.sort_unstable();
        let exact = micros[micros.len().div_ceil(2) - 1] as f64;
        prop_assert!((got / exact - 1.0).abs() < 0.001, "{} {}", got, exact);
    }
}
