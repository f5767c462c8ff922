use super::*;
use crate::arrivals::{Arrivals, Process, Shape};
use crate::recording::{Span, Timeline};
use crate::segment::{Length, Model, Segment};

/// A hold of one second for each pair of fast (10 ms) and slow (100 ms) answers.
fn hold(seconds: &[(u64, u64)]) -> Recorded {
    let mut timeline = Timeline::default();
    let mut total = Span::empty(1);
    for (index, (fast, slow)) in seconds.iter().enumerate() {
        let mut span = Span::empty(1);
        span.start = Duration::from_secs(index as u64);
        span.length = Duration::from_secs(1);
        span.planned = fast + slow;
        let kind = &mut span.kinds[0];
        (kind.sent, kind.answered) = (fast + slow, fast + slow);
        for (ms, count) in [(10, *fast), (100, *slow)] {
            kind.intended.record_n(Duration::from_millis(ms), count);
            kind.actual.record_n(Duration::from_millis(ms), count);
        }
        total.append(&span);
        timeline.push(span);
    }
    let model = Model::Open(Arrivals::Rate {
        process: Process::Poisson,
        shape: Shape::Constant(1000.0),
    });
    Recorded {
        segment: Segment {
            model,
            length: Length::default(),
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

fn answer_of(slo: &str, hold: &Recorded) -> Answer {
    let slo = Slo::parse(slo).unwrap();
    answer(&slo, hold, slo.judge(hold).holds, false, true)
}

/// What was seen and allowed, and the share that is allowed.
fn counted(answer: Answer) -> (f64, f64, f64) {
    let Answer::Counted {
        seen,
        allowed,
        share,
    } = answer
    else {
        panic!("{answer:?}");
    };
    (seen, allowed, share)
}

fn near(one: (f64, f64, f64), other: (f64, f64, f64)) -> bool {
    (one.0 - other.0).abs() < 0.01 * other.0.max(1.0)
        && (one.1 - other.1).abs() < 1e-6
        && (one.2 - other.2).abs() < 1e-9
}

#[test]
fn slow_requests_are_counted() {
    let answer = answer_of("p99 < 20ms", &hold(&[(980, 20); 10]));
    assert!(near(counted(answer), (200.0, 100.0, 0.01)));
    let none = answer_of("p99 < 20ms", &hold(&[(1000, 0); 10]));
    assert!(near(counted(none), (0.0, 100.0, 0.01)));
    // A mean is counted in requests as slow as the bound.
    let mean = answer_of("mean < 10ms", &hold(&[(980, 20); 10]));
    assert!(near(counted(mean), (11_800.0, 10_000.0, 0.0)));
}

#[test]
fn what_is_broken_beyond_chance_is_told_apart() {
    for (slo, seconds) in [
        ("p99 < 20ms", [(900, 100); 10]),
        ("p50 < 20ms", [(1, 999); 10]),
        ("max < 5ms", [(1000, 0); 10]),
    ] {
        let answer = answer_of(slo, &hold(&seconds));
        assert!(clearly_over(&answer), "{answer:?}");
    }
    assert!(!clearly_over(&answer_of(
        "p99 < 20ms",
        &hold(&[(980, 20); 10])
    )));
}

#[test]
fn the_worst_term_decides() {
    let load = hold(&[(980, 20); 10]);
    let alone = answer_of("p99 < 20ms", &load);
    assert_eq!(answer_of("p90 < 20ms, p99 < 20ms, mean < 1s", &load), alone);
    // Nothing was slow and nothing failed: the term that allows more says more.
    let load = hold(&[(1000, 0); 10]);
    let alone = answer_of("p99 < 20ms", &load);
    assert_eq!(answer_of("p99 < 20ms, errors < 0.1%", &load), alone);
}

#[test]
fn a_term_without_an_excess_breaks_all_the_same() {
    let load = hold(&[(1000, 0); 10]);
    let over = Answer::Over {
        response: 0.0,
        allowed: 0.0,
    };
    assert_eq!(answer_of("p99 < 20ms, max < 5ms", &load), over);
    assert_eq!(answer_of("p99 < 20ms, rate > 5000/s", &load), over);
    let under = Answer::Under {
        response: 0.0,
        allowed: 0.0,
    };
    assert_eq!(answer_of("max < 50ms", &load), under);
    let slo = Slo::parse("p99 < 20ms").unwrap();
    assert_eq!(answer(&slo, &load, Some(false), true, true), over);
}
