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
    }
}

fn answer_of(slo: &str, hold: &Recorded) -> Answer {
    let slo = Slo::parse(slo).unwrap();
    answer(&slo, hold, slo.judge(hold).holds, false)
}

#[test]
fn the_excess_is_that_of_the_odds() {
    let even = hold(&[(980, 20); 10]);
    let Answer::Exactly(excess) = answer_of("p99 < 20ms", &even) else {
        panic!("near the knee");
    };
    // Every second is the same: there is no bias to take away.
    assert!(
        (excess - (0.02f64 / 0.98 * 99.0).ln()).abs() < 1e-9,
        "{excess}"
    );
    assert_eq!(
        answer_of("p99 < 20ms", &hold(&[(900, 100); 10])),
        Answer::Over(LINEAR)
    );
    assert_eq!(
        answer_of("p99 < 20ms", &hold(&[(999, 1); 10])),
        Answer::Under(-LINEAR)
    );
    assert_eq!(
        answer_of("p50 < 20ms", &hold(&[(1, 999); 10])),
        Answer::Over(LINEAR)
    );
}

#[test]
fn the_worst_term_decides() {
    let load = hold(&[(980, 20); 10]);
    let alone = answer_of("p99 < 20ms", &load);
    assert_eq!(answer_of("p90 < 20ms, p99 < 20ms, mean < 1s", &load), alone);
    let Answer::Exactly(excess) = answer_of("mean < 10ms", &load) else {
        panic!("near the knee");
    };
    assert!((excess - 1.18f64.ln()).abs() < 0.01, "{excess}");
}

#[test]
fn a_term_without_an_excess_breaks_all_the_same() {
    let load = hold(&[(1000, 0); 10]);
    assert_eq!(answer_of("p99 < 20ms, max < 5ms", &load), Answer::Over(0.0));
    assert_eq!(
        answer_of("p99 < 20ms, rate > 5000/s", &load),
        Answer::Over(0.0)
    );
    assert_eq!(answer_of("max < 50ms", &load), Answer::Under(0.0));
    assert_eq!(answer_of("p99 < 20ms", &load), Answer::Under(-LINEAR));
    let slo = Slo::parse("p99 < 20ms").unwrap();
    assert_eq!(answer(&slo, &load, Some(false), true), Answer::Over(0.0));
}

/// All slow requests in one second of ten: over many such holds the logarithm of the
/// mean is larger than the mean of logarithms, and the jackknife adds to it.
#[test]
fn lumps_are_corrected_upwards() {
    let mut seconds = [(995, 5); 10];
    seconds[3] = (945, 55);
    let Answer::Exactly(lumpy) = answer_of("p99 < 20ms", &hold(&seconds)) else {
        panic!("near the knee");
    };
    let Answer::Exactly(even) = answer_of("p99 < 20ms", &hold(&[(990, 10); 10])) else {
        panic!("near the knee");
    };
    assert!(even.abs() < 1e-9 && lumpy > 0.1, "{even} {lumpy}");
}
