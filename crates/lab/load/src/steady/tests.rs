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
        notes: Vec::new(),
    }
}

fn warm(length: usize) -> Vec<f64> {
    let mut factors = vec![1.0; length];
    factors[..3].copy_from_slice(&[8.0, 4.0, 2.0]);
    factors
}

#[test]
fn the_steady_part_begins_after_the_warm_up() {
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
    assert_eq!(state(Shape::Constant(200.0), &growing), "growing");
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
    tail.after_end = true;
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

/// Answers of some seconds become failures.
fn fail(recorded: &mut Recorded, seconds: std::ops::Range<usize>) {
    let mut timeline = Timeline::default();
    let mut total = Span::empty(1);
    for (at, span) in recorded.timeline.spans().iter().enumerate() {
        let mut span = span.clone();
        if seconds.contains(&at) {
            let kind = &mut span.kinds[0];
            let sent = std::mem::take(&mut kind.answered);
            (kind.intended, kind.actual) = Default::default();
            (0..sent).for_each(|_| kind.fail(crate::recording::Phase::Read, "reset"));
        }
        total.append(&span);
        timeline.push(span);
    }
    (recorded.total, recorded.timeline) = (total, timeline);
}

#[test]
fn an_outage_or_a_stall_is_no_warm_up() {
    for (from, to) in [(3, 7), (1, 2), (5, 9)] {
        let mut outage = load(Shape::Constant(200.0), &[1.0; 20]);
        fail(&mut outage, from..to);
        assert_eq!(
            find(&outage).from_s,
            0.0,
            "an outage from {from} s to {to} s"
        );
        let mut factors = [1.0; 20];
        factors[from..to].fill(200.0);
        let stall = load(Shape::Constant(200.0), &factors);
        assert_eq!(find(&stall).from_s, 0.0, "a stall from {from} s to {to} s");
    }
}

#[test]
fn a_slow_start_with_failures_is_one() {
    let mut recorded = load(Shape::Constant(200.0), &warm(20));
    fail(&mut recorded, 0..2);
    let steady = find(&recorded);
    assert_eq!((steady.from_s, steady.state.as_str()), (3.0, "steady"));
}

#[test]
fn what_is_judged_keeps_every_failure_of_a_warm_up() {
    let mut recorded = load(Shape::Constant(200.0), &warm(20));
    fail(&mut recorded, 1..2);
    let judged = judged(&recorded, Duration::from_secs(3));
    let (all, kept) = (recorded.total.requests(), judged.total.requests());
    assert_eq!(kept.tried(), all.tried());
    assert_eq!((kept.answered, kept.failed()), (all.answered, 200));
    assert_eq!(kept.intended.count(), 17 * 200);
    assert!(kept.intended.max() < Some(Duration::from_millis(12)));
    // Nothing is cut where nothing was asked for, or where nothing would be left.
    for none in [0, 30] {
        let whole = super::judged(&recorded, Duration::from_secs(none));
        assert_eq!(*whole, recorded);
    }
}

#[test]
fn a_latency_that_grows_is_said_to_with_its_slope() {
    // 10 ms more each second, from 10 ms.
    let growing: Vec<f64> = (1..=30).map(f64::from).collect();
    let steady = find(&load(Shape::Constant(200.0), &growing));
    assert_eq!((steady.state.as_str(), steady.from_s), ("growing", 0.0));
    let growth = steady.growth.unwrap();
    assert!((growth.per_s / 0.0105 - 1.0).abs() < 0.05, "{growth:?}");
    assert!(growth.low < growth.per_s && growth.per_s < growth.high);
}

/// It once was "steady" from the stall's end on.
#[test]
fn a_latency_that_grows_is_said_to_whatever_stall_it_has() {
    for stalled in [0..1, 0..3, 10..12, 27..30] {
        let mut growing: Vec<f64> = (1..=30).map(f64::from).collect();
        growing[stalled.clone()].fill(80.0);
        let steady = find(&load(Shape::Constant(200.0), &growing));
        assert_eq!(steady.state, "growing", "stalled at {stalled:?}");
        let growth = steady.growth.unwrap();
        assert!((growth.per_s / 0.0105 - 1.0).abs() < 0.2, "{growth:?}");
        let mut flat = [1.0; 30];
        flat[stalled.clone()].fill(80.0);
        let steady = find(&load(Shape::Constant(200.0), &flat));
        assert_ne!(steady.state, "growing", "stalled at {stalled:?}");
    }
}

/// On a busy machine neighbours are slow together, by little beside the growth. It once was "not-steady".
#[test]
fn a_latency_that_grows_is_said_to_where_the_machine_is_slow_for_a_while() {
    for (slow, by) in [(3..9, 0.8), (8..14, 0.8), (0..10, 0.6), (10..20, 0.6)] {
        let mut growing: Vec<f64> = (1..=20).map(f64::from).collect();
        growing[slow.clone()].iter_mut().for_each(|it| *it += by);
        let steady = find(&load(Shape::Constant(200.0), &growing));
        assert_eq!(steady.state, "growing", "slow at {slow:?} by {by}");
        let growth = steady.growth.unwrap();
        assert!(growth.low <= 0.0105 && 0.0105 <= growth.high, "{growth:?}");
    }
}

#[test]
fn a_step_up_is_no_growth() {
    for at in [8, 14, 20, 25] {
        let mut step = [1.0; 30];
        step[at..].fill(3.0);
        let steady = find(&load(Shape::Constant(200.0), &step));
        assert_ne!(steady.state, "growing", "a step at {at} s");
    }
}

/// Each second's latency depends on the one before, as queues have it.
#[test]
fn a_latency_that_wanders_is_not_said_to_grow() {
    for alike in [0.0, 0.5, 0.8] {
        for seconds in [12, 30, 90] {
            let growing = (0..100).filter(|seed| {
                let mut random = stats::SplitMix::new(*seed);
                let mut noise = random.normal();
                let wander = |_| {
                    noise = alike * noise + f64::sqrt(1.0 - alike * alike) * random.normal();
                    (0.3 * noise).exp()
                };
                let factors: Vec<f64> = (0..seconds).map(wander).collect();
                find(&load(Shape::Constant(200.0), &factors)).state == "growing"
            });
            let growing = growing.count();
            assert!(growing <= 3, "{growing} of 100 with {alike}, {seconds} s");
        }
    }
}

/// The same load with requests that were due in its third second and ended so many seconds later.
fn with_late_ends(later: usize) -> Recorded {
    let recorded = load(Shape::Constant(200.0), &warm(30));
    let (mut timeline, mut total) = (Timeline::default(), Span::empty(1));
    for span in recorded.timeline.spans() {
        let mut span = span.clone();
        let index = span.start.as_secs() as usize;
        // Each span has ends of requests that were due just before it, and the late ones.
        span.ended(Some(span.start.saturating_sub(Duration::from_millis(9))));
        if (3..3 + later).contains(&index) {
            span.ended(Some(Duration::from_millis(2_900)));
            let kind = &mut span.kinds[0];
            for _ in 0..15 {
                kind.answered += 1;
                kind.intended.record(Duration::from_millis(200));
            }
        }
        total.append(&span);
        timeline.push(span);
    }
    Recorded {
        timeline,
        total,
        ..recorded
    }
}

#[test]
fn the_steady_part_has_no_answers_to_requests_of_the_warm_up() {
    for (later, least_s) in [(1, 4.0), (5, 8.0)] {
        let recorded = with_late_ends(later);
        let steady = find(&recorded);
        // Those that were under way when it begins cost a second, and late ends move medians.
        assert_eq!(steady.state, "steady");
        assert!((least_s..15.0).contains(&steady.from_s), "{steady:?}");
        let part = part(&recorded, &steady);
        let requests = part.total.requests();
        assert_eq!(requests.answered, part.total.planned);
        assert!(requests.intended.max() < Some(Duration::from_millis(12)));
        // What a user asked for to be left out is, too.
        let judged = judged(&recorded, Duration::from_secs(3));
        let requests = judged.total.requests();
        assert!(requests.intended.max() < Some(Duration::from_millis(12)));
    }
}

#[test]
fn a_load_whose_warm_up_does_not_end_has_no_steady_part() {
    let recorded = with_late_ends(20);
    let steady = find(&recorded);
    assert_eq!((steady.state.as_str(), steady.from_s), ("short", 0.0));
    // What is asked for is left out all the same.
    assert_eq!(
        after(&recorded, Duration::from_secs(3)),
        Some(Duration::from_secs(3))
    );
}
