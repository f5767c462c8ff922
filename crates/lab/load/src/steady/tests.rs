use std::time::Duration;

use super::*;
use crate::arrivals::Process;
use crate::segment::{Length, Segment};

fn second(index: u64, latency_ms: &[f64]) -> Span {
    let mut span = Span::empty(1);
    span.start = Duration::from_secs(index);
    span.length = Duration::from_secs(1);
    span.planned = latency_ms.len() as u64;
    let kind = &mut span.kinds[0];
    kind.sent = span.planned;
    for ms in latency_ms {
        kind.answered += 1;
        kind.intended.record(Duration::from_secs_f64(ms / 1e3));
        kind.actual.record(Duration::from_secs_f64(ms / 1e3));
    }
    span
}

/// A load of one second for each factor on latency, with noise.
fn load(shape: Shape, factors: &[f64]) -> Recorded {
    let mut random = stats::SplitMix::new(1);
    let mut timeline = Timeline::default();
    let mut total = Span::empty(1);
    for (index, factor) in factors.iter().enumerate() {
        let noisy = |_| 10.0 * factor * (1.0 + 0.1 * random.uniform());
        let latencies: Vec<f64> = (0..200).map(noisy).collect();
        let span = second(index as u64, &latencies);
        total.append(&span);
        timeline.push(span);
    }
    let model = Model::Open(Arrivals::Rate {
        process: Process::Poisson,
        shape,
    });
    Recorded {
        segment: Segment {
            model,
            length: Length {
                duration: Some(Duration::from_secs(factors.len() as u64)),
                requests: None,
            },
            first: 0,
        },
        began_unix_ns: 0,
        total,
        timeline,
        cut: None,
        lost: Vec::new(),
    }
}

fn warm(length: usize) -> Vec<f64> {
    let mut factors = vec![1.0; length];
    factors[..3].copy_from_slice(&[8.0, 4.0, 2.0]);
    factors
}

#[test]
fn the_warm_up_is_left_out() {
    let recorded = load(Shape::Constant(200.0), &warm(30));
    let steady = find(&recorded);
    assert_eq!(steady.state, "steady");
    assert_eq!((steady.from_s, steady.to_s), (3.0, 30.0));
    let part = part(&recorded, &steady);
    assert_eq!(part.total.planned, 27 * 200);
    assert_eq!(part.timeline.spans().len(), 27);
    assert_eq!(part.total.start, Duration::from_secs(3));
    assert_eq!(part.total.end(), recorded.total.end());
    assert!(part.total.requests().intended.max() < Some(Duration::from_millis(12)));
}

#[test]
fn a_load_that_is_steady_from_the_start_keeps_all_of_it() {
    let recorded = load(Shape::Constant(200.0), &[1.0; 30]);
    let steady = find(&recorded);
    assert_eq!((steady.from_s, steady.state.as_str()), (0.0, "steady"));
    assert_eq!(part(&recorded, &steady), recorded);
}

#[test]
fn nothing_is_left_out_where_nothing_can_be_told() {
    let state = |shape, factors: &[f64]| {
        let steady = find(&load(shape, factors));
        assert_eq!(steady.from_s, 0.0);
        steady.state
    };
    assert_eq!(state(Shape::Constant(200.0), &warm(9)), "short");
    let growing: Vec<f64> = (1..31).map(f64::from).collect();
    assert_eq!(state(Shape::Constant(200.0), &growing), "not-steady");
    let steps = vec![
        (200.0, Duration::from_secs(20)),
        (400.0, Duration::from_secs(20)),
    ];
    assert_eq!(state(Shape::Steps(steps), &warm(30)), "ramp");
}

#[test]
fn a_wait_for_the_last_answers_is_no_time_of_sending() {
    let mut recorded = load(Shape::Constant(200.0), &[1.0; 20]);
    let mut tail = second(20, &[900.0; 5]);
    tail.planned = 0;
    tail.kinds[0].sent = 0;
    recorded.total.append(&tail);
    recorded.timeline.push(tail);
    assert_eq!(sending(&recorded).length, Duration::from_secs(20));
    let steady = find(&recorded);
    assert_eq!((steady.to_s, steady.state.as_str()), (20.0, "steady"));
    // Its answers belong to the load all the same.
    assert_eq!(
        part(&recorded, &steady).total.requests().answered,
        20 * 200 + 5
    );
}

/// A cut that followed the slowest spans would make percentiles too small.
#[test]
fn bad_luck_is_not_taken_for_warm_up() {
    let cut = (0..200).filter(|seed| {
        let mut random = stats::SplitMix::new(*seed);
        let factors: Vec<f64> = (0..20).map(|_| (0.4 * random.normal()).exp()).collect();
        find(&load(Shape::Constant(200.0), &factors)).from_s > 0.0
    });
    let cut = cut.count();
    assert!(cut <= 10, "{cut} of 200");
}
