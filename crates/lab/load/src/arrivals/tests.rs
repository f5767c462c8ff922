//! Schedules against the arithmetic and the statistics that they promise.

use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;

fn constant(rate: f64) -> Arrivals {
    Arrivals::Rate {
        process: Process::Constant,
        shape: Shape::Constant(rate),
    }
}

fn lasting(seconds: u64) -> Length {
    Length {
        duration: Some(Duration::from_secs(seconds)),
        requests: None,
    }
}

fn counting(requests: u64) -> Length {
    Length {
        duration: None,
        requests: Some(requests),
    }
}

fn with(process: Process, shape: Shape) -> Arrivals {
    Arrivals::Rate { process, shape }
}

fn read(text: &str) -> Arrivals {
    Arrivals::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Largest distance between the distribution of the sample and a given one, times the
/// square root of the sample's size.
fn kolmogorov_smirnov(mut sample: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    sample.sort_by(f64::total_cmp);
    let n = sample.len() as f64;
    let distance = sample
        .iter()
        .enumerate()
        .map(|(rank, &x)| {
            let (below, upto) = (rank as f64 / n, (rank + 1) as f64 / n);
            (cdf(x) - below).abs().max((upto - cdf(x)).abs())
        })
        .fold(0.0, f64::max);
    distance * n.sqrt()
}

/// What a right sample exceeds once in 10,000 times.
const CRITICAL: f64 = 2.23;

fn gaps(schedule: impl Iterator<Item = u64>) -> Vec<f64> {
    let mut before = 0;
    schedule
        .map(|at| (at - std::mem::replace(&mut before, at)) as f64 / 1e9)
        .collect()
}

#[test]
fn gaps_of_poisson_arrivals_are_exponential() {
    for (rate, seed) in [(1_000.0, 1), (50_000.0, 2), (37.5, 3)] {
        let arrivals = Arrivals::poisson(rate);
        for length in [lasting(20), counting(20_000), Length::default()] {
            let sample = gaps(arrivals.schedule(&length, seed).take(100_000));
            let statistic = kolmogorov_smirnov(sample, |gap| 1.0 - (-rate * gap).exp());
            assert!(
                statistic < CRITICAL,
                "{rate}/s, {length:?}, seed {seed}: {statistic}"
            );
        }
    }
}

/// Computed apart from this code: a seed means the same times for ever.
#[test]
fn the_times_of_a_seed_stay_as_they_are() {
    let endless = Length {
        duration: None,
        requests: None,
    };
    let times: Vec<u64> = Arrivals::poisson(1.0)
        .schedule(&endless, 1)
        .take(4)
        .collect();
    assert_eq!(
        times,
        [525_492_331, 1_415_450_569, 1_467_039_657, 3_296_939_115]
    );
}

#[test]
fn poisson_arrivals_are_spread_evenly_whatever_their_number() {
    // Given their number, the points of a Poisson process are uniform: also a few of
    // them, where a wrong last gap would show.
    for (count, runs) in [(1, 5_000), (3, 3_000), (1_000, 10)] {
        let sample: Vec<f64> = (0..runs)
            .flat_map(|seed| Arrivals::poisson(count as f64).schedule(&lasting(1), seed))
            .map(|at| at as f64 / 1e9)
            .collect();
        assert_eq!(sample.len() as u64, count * runs);
        let statistic = kolmogorov_smirnov(sample, |at| at);
        assert!(statistic < CRITICAL, "{count} points: {statistic}");
    }
}

#[test]
fn arrivals_follow_their_shape() {
    // Points of any shape are uniform in the integral of its rate.
    let shapes = [
        "0/s..5000/s over 10s",
        "5000/s..10/s over 7s",
        "sine 2000/s +- 2000/s period 3s",
        "100/s for 2s, 0/s for 3s, 3000/s for 5s",
    ];
    for text in shapes {
        let arrivals = read(text);
        let total = arrivals.planned(&lasting(10)).unwrap();
        let until = |at: f64| {
            let within = Length {
                duration: Some(Duration::from_secs_f64(at)),
                requests: None,
            };
            arrivals.planned(&within).unwrap() / total
        };
        let sample = arrivals
            .schedule(&lasting(10), 5)
            .map(|at| at as f64 / 1e9)
            .collect();
        let statistic = kolmogorov_smirnov(sample, until);
        assert!(statistic < CRITICAL, "{text}: {statistic}");
    }
}

#[test]
fn even_arrivals_are_exact_and_do_not_drift() {
    let day = 24 * 3600;
    let schedule = constant(1_000.0).schedule(&lasting(day), 0);
    assert_eq!(schedule.size_hint().0 as u64, 1_000 * day);
    for (k, at) in (0..10_000).zip(schedule) {
        assert_eq!(at, k * 1_000_000);
    }
    // A third of a second has no exact form; the last of a day is right to the nanosecond.
    let third = constant(3.0).schedule(&lasting(day), 0);
    let (count, last) = third.fold((0_u64, 0), |(count, _), at| (count + 1, at));
    assert_eq!(count, 3 * day);
    assert_eq!(last, (count - 1) * SECOND / 3 + 1);
    let fast = constant(1e7).schedule(&counting(1_000_000), 0);
    assert!(fast.enumerate().all(|(k, at)| at == k as u64 * 100));
}

#[test]
fn slow_rates_and_long_waits_are_kept() {
    let hourly = read("constant 1/h").schedule(&lasting(24 * 3600), 0);
    let times: Vec<u64> = hourly.collect();
    assert_eq!(times.len(), 24);
    assert_eq!(times[23], 23 * 3600 * SECOND);
    assert_eq!(Arrivals::poisson(0.01).schedule(&lasting(10), 0).count(), 0);
}

#[test]
fn bursts_come_at_the_same_moment() {
    let times: Vec<u64> = read("burst 50 1000/s").schedule(&lasting(1), 0).collect();
    assert_eq!(times.len(), 1_000);
    for (index, group) in times.chunks(50).enumerate() {
        assert!(group.iter().all(|&at| at == index as u64 * SECOND / 20));
    }
}

#[test]
fn ramps_have_the_area_of_a_trapezium() {
    let ramp = read("100/s..5000/s over 60s");
    assert_eq!(ramp.planned(&lasting(60)), Some(153_000.0));
    assert_eq!(ramp.planned(&lasting(61)), Some(158_000.0));
    assert_eq!(ramp.schedule(&lasting(60), 3).count(), 153_000);
    assert_eq!(ramp.rate_at(Duration::from_secs(30)), Some(2_550.0));
    assert_eq!(ramp.rate_at(Duration::from_secs(90)), Some(5_000.0));
}

#[test]
fn a_rate_that_ends_at_nothing_ends_the_schedule() {
    let stop = read("100/s for 1s, 0/s for 1s");
    assert_eq!(stop.planned(&Length::default()), Some(100.0));
    assert_eq!(stop.schedule(&Length::default(), 1).count(), 100);
    assert_eq!(stop.schedule(&counting(1_000), 1).count(), 100);
    assert!(stop.schedule(&lasting(5), 1).all(|at| at < SECOND));
}

#[test]
fn whichever_end_comes_first_counts() {
    let both = |requests| Length {
        duration: Some(Duration::from_secs(1)),
        requests: Some(requests),
    };
    for arrivals in [Arrivals::poisson(100.0), constant(100.0)] {
        assert_eq!(arrivals.schedule(&both(30), 1).count(), 30);
        assert_eq!(arrivals.schedule(&both(300), 1).count(), 100);
        assert_eq!(arrivals.planned(&both(300)), Some(100.0));
        assert!(arrivals.planned(&Length::default()).is_none());
        let last = arrivals.schedule(&both(30), 1).last().unwrap();
        assert!(
            last < 3 * SECOND / 10,
            "30 requests at 100/s take 0.3 s, not {last} ns"
        );
    }
}

/// Rates are over this.
#[test]
fn a_segment_lasts_as_long_as_its_rate_needs() {
    let lasts = |text: &str, length: Length| read(text).lasts(&length).map(|all| all.as_secs_f64());
    for text in ["100/s", "constant 100/s", "burst 100 100/s"] {
        assert_eq!(lasts(text, counting(200)), Some(2.0), "{text}");
        assert_eq!(lasts(text, counting(3)), Some(0.03), "{text}");
        assert_eq!(lasts(text, lasting(7)), Some(7.0), "{text}");
        let mut both = lasting(1);
        for (requests, expected) in [(30, 0.3), (300, 1.0)] {
            both.requests = Some(requests);
            assert_eq!(lasts(text, both), Some(expected), "{text}");
        }
        assert_eq!(lasts(text, Length::default()), None, "{text}");
    }
    // As many as there are, and what follows on them.
    let ends = "100/s for 2s, 0/s for 1s";
    assert_eq!(lasts(ends, Length::default()), Some(3.0));
    assert_eq!(lasts(ends, counting(500)), Some(3.0));
    assert_eq!(lasts(ends, counting(150)), Some(1.5));
}

#[test]
fn a_trace_lasts_until_its_next_moment_would_be() {
    let lasts = |text: &str, length: Length| {
        let trace = trace::parse(text).unwrap();
        trace.lasts(&length).map(|all| all.as_secs_f64())
    };
    // Evenly spaced, and two bursts.
    assert_eq!(lasts("0\n0.5\n1\n1.5\n", Length::default()), Some(2.0));
    assert_eq!(lasts("0\n0\n1\n1\n1\n", Length::default()), Some(2.0));
    assert_eq!(lasts("0\n0\n1\n1\n1\n", counting(2)), Some(1.0));
    assert_eq!(lasts("0\n0.5\n1\n1.5\n", lasting(9)), Some(9.0));
    assert_eq!(lasts("3\n", Length::default()), Some(4.0));
}

#[test]
fn traces_are_replayed_as_they_are() {
    let trace = trace::parse("# times\n0\n\n0.5\n0.5\n1.000000001\n").unwrap();
    let times = |length| trace.schedule(&length, 9).collect::<Vec<_>>();
    let all = vec![0, SECOND / 2, SECOND / 2, SECOND + 1];
    assert_eq!(times(Length::default()), all);
    assert_eq!(times(lasting(1)), all[..3]);
    assert_eq!(times(counting(2)), all[..2]);
    assert_eq!(trace.planned(&lasting(1)), Some(3.0));
    assert_eq!(trace.describe(), "trace of 4 requests over 1 s");
    let stored = serde_json::to_string(&trace).unwrap();
    assert_eq!(serde_json::from_str::<Arrivals>(&stored).unwrap(), trace);
}

#[test]
fn unix_times_count_from_the_first() {
    let trace = trace::parse("1700000000.123456789\n1700000001.123456790\n").unwrap();
    let times: Vec<u64> = trace.schedule(&Length::default(), 0).collect();
    assert_eq!(times, [0, SECOND + 1]);
}

#[test]
fn wrong_traces_say_where() {
    let message = |text| trace::parse(text).unwrap_err().to_string();
    assert!(message("1\n2x\n").starts_with("line 2: expected a time in seconds"));
    assert!(message("1\n-2\n").starts_with("line 2"));
    assert!(message("1\n\n0.5\n").starts_with("line 3: 0.5 is earlier"));
    assert!(message("1700000000\n5\n").starts_with("line 2: 5 is earlier"));
    assert!(message("# nothing\n").contains("has no times"));
    assert!(message("99999999999999999999\n").starts_with("line 1"));
    assert!(message("0\n99999999\n").contains("366 days"));
}

#[test]
fn texts_mean_what_they_say() {
    let described = [
        ("5000/s", "poisson 5000/s"),
        ("poisson 5000/s", "poisson 5000/s"),
        ("constant 1/m", "constant 1/m"),
        ("burst 50 1000/s", "burst 50 1000/s"),
        ("100/s..5000/s over 60s", "poisson 100/s..5000/s over 1m"),
        (
            "constant 0/s..0.5/s over 1m30s",
            "constant 0/s..0.5/s over 1m30s",
        ),
        (
            "1/s..1000/s in 4 steps of 20s",
            "poisson 1/s for 20s, 10/s for 20s, 100/s for 20s, 1000/s for 20s",
        ),
        ("10/s for 1s, 0/s for 2s", "poisson 10/s for 1s, 0/s for 2s"),
        (
            "sine 1000/s ± 500/s period 60s",
            "poisson sine 1000/s +- 500/s period 1m",
        ),
    ];
    for (text, expected) in described {
        assert_eq!(read(text).describe(), expected, "{text}");
        assert_eq!(read(expected), read(text));
    }
    let Arrivals::Rate {
        shape: Shape::Steps(steps),
        ..
    } = read("100/s..5000/s steps of 20s")
    else {
        panic!("not steps");
    };
    assert_eq!(steps.len(), 10);
    assert_eq!(steps[1].0, 154.0);
    assert_eq!(steps[9], (5_000.0, Duration::from_secs(20)));
}

#[test]
fn wrong_texts_say_what_is_wrong_and_where() {
    let wrong = [
        ("", "found nothing", "", None),
        ("posson 5/s", "not understood", "posson", Some("poisson")),
        ("5000/d", "unknown unit of a rate", "/d", None),
        ("0/s", "above 0", "0/s", None),
        ("1e9/s", "rate", "1e9/s", None),
        ("20000000/s", "at most 10,000,000", "20000000/s", None),
        (
            "1/s..2/s",
            "needs its length",
            "1/s..2/s",
            Some("1/s..2/s over 60s"),
        ),
        ("1/s..2/s ovr 5s", "comes \"over", "ovr", Some("over")),
        ("1/s..2/s over 5", "needs a unit", "5", Some("5s")),
        ("1/s..x over 5s", "not understood", "x", None),
        (
            "0/s..5/s steps of 5s",
            "above 0",
            "0/s..5/s steps of 5s",
            None,
        ),
        (
            "0/s..0/s over 5s",
            "0 all the time",
            "0/s..0/s over 5s",
            None,
        ),
        ("burst 0 5/s", "a burst has", "burst 0 5/s", None),
        ("burst x 5/s", "whole number", "x", None),
        ("5/s for 1s 6/s for 2s", "commas", "6/s", None),
        ("5/s for 1s,", "missing", "1s,", None),
        (
            "sine 5/s +- 6/s period 1s",
            "below 0",
            "sine 5/s +- 6/s period 1s",
            None,
        ),
        ("sine 5/s", "a wave is written", "sine 5/s", None),
        ("5/s frr 1s", "after a rate", "frr", Some("for")),
    ];
    for (text, part, place, suggestion) in wrong {
        let error = Arrivals::parse(text).expect_err(text);
        assert!(error.message.contains(part), "{text}: {error}");
        assert_eq!(&text[error.at.clone()], place, "{text}: {error}");
        assert_eq!(error.suggestion.as_deref(), suggestion, "{text}: {error}");
    }
}

#[test]
fn unchecked_arrivals_neither_hang_nor_panic() {
    for rate in [f64::NAN, f64::INFINITY, -5.0, 0.0] {
        assert!(Arrivals::poisson(rate).check().is_err());
        for process in [Process::Poisson, Process::Constant, Process::Burst(0)] {
            let ramp = Shape::Ramp {
                from: rate,
                to: rate,
                over: Duration::ZERO,
            };
            for shape in [Shape::Constant(rate), ramp, Shape::Steps(Vec::new())] {
                let arrivals = with(process, shape);
                let _ = arrivals.schedule(&lasting(1), 0).take(100).count();
                let _ = arrivals.schedule(&Length::default(), 0).take(100).count();
            }
        }
    }
}

fn shapes() -> impl Strategy<Value = Shape> {
    // As people write them: with few digits.
    let rate = || (1_000_u32..20_000_000).prop_map(|thousandths| f64::from(thousandths) / 1e3);
    let millis = || (1_u64..5_000).prop_map(Duration::from_millis);
    prop_oneof![
        rate().prop_map(Shape::Constant),
        (prop_oneof![Just(0.0), rate()], rate(), millis())
            .prop_map(|(from, to, over)| Shape::Ramp { from, to, over }),
        prop::collection::vec((rate(), millis()), 1..6).prop_map(Shape::Steps),
        (rate(), 0_u32..=4, millis()).prop_map(|(mean, quarters, period)| Shape::Sine {
            mean,
            amplitude: (mean * f64::from(quarters) / 4.0).floor(),
            period,
        }),
    ]
}

fn processes() -> impl Strategy<Value = Process> {
    prop_oneof![
        Just(Process::Poisson),
        Just(Process::Constant),
        (1_u32..100).prop_map(Process::Burst),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn schedules_ascend_and_have_the_planned_number(
        process in processes(), shape in shapes(), millis in 1_u64..3_000, seed: u64,
    ) {
        let arrivals = with(process, shape);
        prop_assert_eq!(arrivals.check(), Ok(()));
        let length = Length { duration: Some(Duration::from_millis(millis)), requests: None };
        let times: Vec<u64> = arrivals.schedule(&length, seed).collect();
        prop_assert!(times.is_sorted());
        prop_assert_eq!(times.len() as f64, arrivals.planned(&length).unwrap());
        prop_assert!(times.iter().all(|&at| at < millis * 1_000_000));
        let again: Vec<u64> = arrivals.schedule(&length, seed).collect();
        prop_assert_eq!(&times, &again);
        let mut copied = arrivals.schedule(&length, seed);
        let half = times.len() / 2;
        copied.by_ref().take(half).for_each(drop);
        prop_assert_eq!(copied.clone().collect::<Vec<_>>(), &times[half..]);
    }

    #[test]
    fn the_inverse_undoes_the_integral(shape in shapes(), share in 0.0..1.0_f64) {
        let curve = curve::Curve::of(&shape);
        let requests = share * curve.integral(20.0);
        let back = curve.integral(curve.inverse(requests));
        prop_assert!((back - requests).abs() <= 1e-4 + 1e-9 * requests, "{} {}", requests, back);
    }

    #[test]
    fn the_integral_is_that_of_the_rate(shape in shapes(), end in 0.1..20.0_f64) {
        // Midpoint rule.
        let curve = curve::Curve::of(&shape);
        let parts = 5_000;
        let width = end / f64::from(parts);
        let sum: f64 = (0..parts).map(|i| curve.rate((f64::from(i) + 0.5) * width) * width).sum();
        prop_assert!((sum - curve.integral(end)).abs() <= 2e-3 * sum + 60.0, "{} {}", sum, curve.integral(end));
    }

    #[test]
    fn descriptions_are_read_back(process in processes(), shape in shapes()) {
        let arrivals = with(process, shape);
        let text = arrivals.describe();
        prop_assert_eq!(Arrivals::parse(&text), Ok(arrivals), "{}", text);
    }

    #[test]
    fn any_text_is_read_or_refused_in_place(text in "[a-z0-9/ .,+±-]{0,40}") {
        if let Err(error) = Arrivals::parse(&text) {
            prop_assert!(text.get(error.at.clone()).is_some());
        }
    }
}
