use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::arrivals::{Arrivals, Process, Shape};
use crate::recording::{Phase, Recorded, Span, Timeline};
use crate::segment::{Length, Model, Segment};

fn parse(text: &str) -> Slo {
    Slo::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A second in which `answers` came: latency in milliseconds and how often.
fn seen(answers: &[(u64, u64)], refused: u64, timeouts: u64) -> Recorded {
    let mut total = Span::empty(1);
    total.length = Duration::from_secs(1);
    for (ms, count) in answers {
        let kind = &mut total.kinds[0];
        kind.answered += count;
        kind.intended.record_n(Duration::from_millis(*ms), *count);
        kind.actual.record_n(Duration::from_millis(*ms / 2), *count);
    }
    total.kinds[0].refused = refused;
    (0..timeouts).for_each(|_| total.kinds[0].fail(Phase::Timeout, "timeout"));
    total.kinds[0].sent = total.kinds[0].answered + timeouts;
    total.planned = total.kinds[0].sent;
    let mut timeline = Timeline::default();
    timeline.push(total.clone());
    Recorded {
        segment: Segment {
            model: Model::Open(Arrivals::Rate {
                process: Process::Poisson,
                shape: Shape::Constant(1000.0),
            }),
            length: Length {
                duration: Some(Duration::from_secs(1)),
                requests: None,
            },
            first: 0,
        },
        began_unix_ns: 0,
        total,
        timeline,
        cut: None,
        lost: Vec::new(),
        notes: Vec::new(),
    }
}

#[test]
fn objectives_are_read_and_shown() {
    let cases = [
        ("p99 < 20ms, errors < 0.1%", "p99 < 20ms, errors < 0.1%"),
        ("p99<20ms and errors<=0", "p99 < 20ms, errors <= 0%"),
        ("actual p999 ≤ 1.5s", "actual p999 <= 1s500ms"),
        (
            "intended mean < 250us && max < 1m",
            "mean < 250us, max < 1m",
        ),
        ("sent >= 0.99 , rate > 30/m", "sent >= 99%, rate > 0.5/s"),
        ("rate > 500", "rate > 500/s"),
        ("  p50 < 1ms\tand p9999 < 2s", "p50 < 1ms, p9999 < 2s"),
    ];
    for (text, shown) in cases {
        let slo = parse(text);
        assert_eq!(slo.to_string(), shown);
        assert_eq!(parse(shown), slo);
    }
    assert_eq!("p99 < 20ms".parse(), Ok(parse("p99 < 20ms")));
}

#[test]
fn mistakes_are_placed_and_corrected() {
    let cases: [(&str, &str, Option<&str>, &str); 22] = [
        ("", "found nothing", None, ""),
        ("p99 < 20ms,", "found nothing", None, ""),
        ("p99 < 20ms, , p50 < 1ms", "found nothing", None, ""),
        ("p98 < 20ms", "unknown quantity \"p98\"", Some("p90"), "p98"),
        ("p99.9 < 20ms", "unknown quantity", Some("p999"), "p99.9"),
        ("median < 20ms", "unknown quantity", Some("p50"), "median"),
        (
            "p50 < 1ms, erors < 1%",
            "unknown quantity",
            Some("errors"),
            "erors",
        ),
        (
            "actual erors < 1%",
            "unknown quantity",
            Some("errors"),
            "erors",
        ),
        (
            "actual errors < 1%",
            "unknown quantity",
            Some("errors"),
            "errors",
        ),
        (
            "p99",
            "compared with nothing; expected p99 < 20ms",
            None,
            "p99",
        ),
        ("eror < 1%", "unknown quantity", Some("errors"), "eror"),
        (
            "througput >= 1/s",
            "unknown quantity",
            Some("rate"),
            "througput",
        ),
        ("sent >=", "expected sent >= 99%", None, ">="),
        ("< 20ms", "expected a quantity", None, ""),
        ("p99 > 20ms", "from being too large", Some("<"), ">"),
        ("rate <= 5/s", "from being too small", Some(">="), "<="),
        ("p99 == 20ms", "unknown comparison", None, "=="),
        ("p99 < 20", "needs a unit", Some("20s"), "20"),
        ("errors < 3ms", "expected a share", None, "3ms"),
        ("rate > 500/min", "unknown unit", Some("/m"), "/min"),
        (
            "errors < 0%",
            "can never hold",
            Some("errors <= 0%"),
            "errors < 0%",
        ),
        ("p99 < 0", "can never hold", None, "p99 < 0"),
    ];
    for (text, message, suggestion, place) in cases {
        let error = Slo::parse(text).unwrap_err();
        assert!(error.message.contains(message), "{text}: {error}");
        // Nearest names may tie; where one is meant it must be that one.
        if text != "p98 < 20ms" {
            assert_eq!(error.suggestion.as_deref(), suggestion, "{text}");
        }
        assert_eq!(&text[error.at], place, "{text}");
    }
    let many = vec!["p99 < 1s"; 17].join(", ");
    assert!(
        Slo::parse(&many)
            .unwrap_err()
            .message
            .contains("at most 16")
    );
    assert!(
        Slo::parse(&"x".repeat(2000))
            .unwrap_err()
            .message
            .contains("1000 bytes")
    );
}

#[test]
fn latency_is_judged_by_nearest_rank() {
    let load = seen(&[(10, 990), (100, 10)], 0, 0);
    let judged = parse("p99 < 20ms, p90 < 20ms, max < 50ms, mean < 11ms").judge(&load);
    let holds: Vec<_> = judged.measured.iter().map(|one| one.holds).collect();
    assert_eq!(holds, [Some(true), Some(true), Some(false), Some(true)]);
    assert_eq!(judged.holds, Some(false));
    assert!((judged.measured[0].value.unwrap() - 0.01).abs() < 1e-4);
    assert_eq!(parse("actual max <= 60ms").judge(&load).holds, Some(true));
}

#[test]
fn a_request_without_an_answer_is_slower_than_any_bound() {
    let load = seen(&[(10, 980)], 0, 20);
    let judged = parse("p99 < 20ms").judge(&load);
    assert_eq!(judged.holds, Some(false));
    assert_eq!(judged.measured[0].value, Some(f64::INFINITY));
    assert_eq!(parse("p95 < 20ms").judge(&load).holds, Some(true));
    assert_eq!(parse("max < 1h").judge(&load).holds, Some(false));
    assert_eq!(
        parse("mean < 20ms").judge(&seen(&[], 0, 5)).holds,
        Some(false)
    );
}

#[test]
fn a_percentile_of_few_requests_is_told_only_when_it_is_surely_too_large() {
    let few = seen(&[(10, 400)], 0, 0);
    assert_eq!(parse("p99 < 20ms").judge(&few).holds, None);
    assert_eq!(
        parse("p99 < 20ms, p50 < 5ms").judge(&few).holds,
        Some(false)
    );
    assert_eq!(parse("p99 < 5ms").judge(&few).holds, Some(false));
    assert_eq!(
        parse("p99 < 5ms").judge(&seen(&[(10, 1)], 0, 0)).holds,
        None
    );
    assert_eq!(parse("p99 < 5ms").judge(&seen(&[], 0, 0)).holds, None);
    assert_eq!(
        parse("p99 < 20ms").judge(&seen(&[(10, 1000)], 0, 0)).holds,
        Some(true)
    );
    assert_eq!(parse("p99 < 20ms").samples_needed(), 1000);
    assert_eq!(parse("p999 < 1s, errors < 0.1%").samples_needed(), 10_000);
    assert_eq!(parse("errors <= 0").samples_needed(), 1);
}

#[test]
fn shares_and_rates() {
    let load = seen(&[(10, 980)], 5, 20);
    let judged = parse("errors < 2.5%, errors <= 2.5%, rate >= 975/s, sent > 99%").judge(&load);
    let holds: Vec<_> = judged.measured.iter().map(|one| one.holds).collect();
    assert_eq!(holds, [Some(false), Some(true), Some(true), Some(true)]);
    assert!((judged.measured[0].value.unwrap() - 0.025).abs() < 1e-12);
    assert_eq!(judged.measured[2].value, Some(975.0));

    // Without an error among 100, no one can say that fewer than 1 in 1,000 fail.
    let clean = seen(&[(10, 100)], 0, 0);
    assert_eq!(parse("errors < 0.1%").judge(&clean).holds, None);
    assert_eq!(parse("errors < 2%").judge(&clean).holds, Some(true));
    assert_eq!(parse("errors <= 0").judge(&clean).holds, Some(true));

    let mut unsent = seen(&[(10, 90)], 0, 0);
    unsent.total.planned = 100;
    assert_eq!(parse("sent >= 99%").judge(&unsent).holds, Some(false));
    let nothing = parse("sent >= 99%, errors < 1%").judge(&seen(&[], 0, 0));
    assert_eq!(nothing.holds, None);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_at_a_place_inside(text in "[ -~≤≥µ]{0,40}") {
        match Slo::parse(&text) {
            Ok(slo) => prop_assert_eq!(Slo::parse(&slo.to_string()), Ok(slo)),
            Err(error) => prop_assert!(text.get(error.at).is_some()),
        }
    }

    #[test]
    fn text_keeps_every_objective(
        ms in 1u64..10_000_000,
        thousandths in 1u32..1000,
        rate in 1u32..10_000_000,
        inclusive: bool,
        statistic in 0usize..9,
    ) {
        let statistic = Statistic::ALL[statistic].1;
        let term = |quantity, bound| Term { quantity, inclusive, bound };
        let slo = Slo { terms: vec![
            term(Quantity::Intended(statistic), Duration::from_micros(ms).as_secs_f64()),
            term(Quantity::Actual(statistic), Duration::from_millis(ms).as_secs_f64()),
            term(Quantity::Errors, f64::from(thousandths) / 1000.0),
            term(Quantity::Sent, f64::from(thousandths) / 1000.0),
            term(Quantity::Rate, f64::from(rate) / 100.0),
        ]};
        prop_assert_eq!(Slo::parse(&slo.to_string()), Ok(slo));
    }

    /// More slow requests never turn a broken objective into one that holds.
    #[test]
    fn slower_is_never_better(fast in 0u64..3000, slow in 0u64..100, lost in 0u64..100) {
        let slo = parse("p99 < 20ms, errors < 2%");
        let before = slo.judge(&seen(&[(10, fast), (30, slow)], 0, lost)).holds;
        let after = slo.judge(&seen(&[(10, fast), (30, slow + 20)], 0, lost + 1)).holds;
        prop_assert!(before != Some(false) || after != Some(true));
    }
}
