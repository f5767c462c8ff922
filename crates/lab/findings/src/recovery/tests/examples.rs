use proptest::prelude::*;
use stats::Lasted;

use super::noise::{Noise, Source};
use crate::recovery::{
    Effect, Recovery, RecoveryError, Return, Signal, Window, Worse, recovery, repeated,
};

const WINDOW: Window = Window {
    hold_begin_s: 0.0,
    fault_begin_s: 30.0,
    fault_end_s: 40.0,
    until_s: 330.0,
    steady_s: 10.0,
};

/// 4,000 instances, of which 400 are gone from 32 s to 71 s.
fn instances(at: f64) -> f64 {
    if (32.0..71.0).contains(&at) {
        3600.0
    } else {
        4000.0
    }
}

fn points(level: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    (0..330)
        .map(|at| (f64::from(at), level(f64::from(at))))
        .collect()
}

fn seen(points: &[(f64, f64)], worse: Worse) -> Recovery {
    match recovery(Signal::Samples(points), &WINDOW, worse).unwrap() {
        Effect::Seen(recovery) => recovery,
        Effect::None(unseen) => panic!("{unseen}"),
    }
}

#[test]
fn a_number_of_instances_that_falls_and_comes_back() {
    let found = seen(&points(instances), Worse::Lower);
    assert_eq!(
        (found.reference, found.band, found.depth),
        (4000.0, 40.0, 400.0)
    );
    assert_eq!((found.detected_s, found.detected_resolution_s), (2.0, 1.0));
    let back = Return::After {
        from_begin_s: 41.0,
        from_end_s: 31.0,
        resolution_s: 1.0,
    };
    assert_eq!(found.returned, back);
    assert_eq!((found.lost, found.lost_noise), (39.0 * 400.0, 0.0));
    assert_eq!(
        Effect::Seen(found).to_string(),
        "fell by 10 %, first seen after 2 s (± 1 s); recovered 41 s (± 1 s) after the fault began, \
         31 s after it ended; lost 15600 ± 0"
    );
}

#[test]
fn slots_lose_what_was_not_counted() {
    let values: Vec<f64> = (0..330)
        .map(|at| instances(f64::from(at)) / 100.0)
        .collect();
    let slots = Signal::Slots {
        start_s: 0.0,
        width_s: 1.0,
        values: &values,
    };
    let Effect::Seen(found) = recovery(slots, &WINDOW, Worse::Lower).unwrap() else {
        panic!("unseen")
    };
    assert_eq!((found.detected_s, found.lost), (2.0, 39.0 * 4.0));
}

#[test]
fn a_latency_that_rises_is_an_excess_and_no_fall() {
    let rising = points(|at| 8000.0 - instances(at));
    let found = seen(&rising, Worse::Higher);
    assert!(!found.fell && found.depth == 400.0);
    assert_eq!(found, seen(&rising, Worse::Either));
    let other = recovery(Signal::Samples(&rising), &WINDOW, Worse::Lower).unwrap();
    assert!(matches!(other, Effect::None(_)));
}

#[test]
fn what_is_not_back_is_told_as_at_least() {
    let found = seen(
        &points(|at| if at < 31.0 { 100.0 } else { 50.0 }),
        Worse::Lower,
    );
    assert_eq!(
        found.returned,
        Return::NotBefore {
            from_begin_s: 299.0,
            from_end_s: 289.0
        }
    );
    assert!(
        found.to_string().contains("not recovered: ≥ 4.98 min"),
        "{found}"
    );
    // Back for less than the steady time: it is not known whether it stays.
    let short = points(|at| {
        if (31.0..325.0).contains(&at) {
            50.0
        } else {
            100.0
        }
    });
    let found = seen(&short, Worse::Lower);
    assert!(
        matches!(found.returned, Return::NotBefore { from_begin_s, .. } if from_begin_s == 294.0)
    );
}

#[test]
fn a_return_that_nobody_watched_is_told_by_the_next_look() {
    let mut points = points(instances);
    points.retain(|(at, _)| *at < 73.0 || *at > 82.0);
    let next = Return::After {
        from_begin_s: 53.0,
        from_end_s: 43.0,
        resolution_s: 13.0,
    };
    assert_eq!(seen(&points, Worse::Lower).returned, next);
    // Whoever always looks so seldom does not know that it stays.
    points.retain(|(at, _)| *at < 73.0 || *at % 6.0 == 0.0);
    let found = seen(&points, Worse::Lower);
    assert!(
        matches!(found.returned, Return::NotBefore { from_begin_s, .. } if from_begin_s == 40.0),
        "{found:?}"
    );
}

#[test]
fn nothing_seen_says_what_would_have_been() {
    let mut source = Source::new(Noise::Alike(0.0), 2.0, 9);
    let quiet = points(|_| 100.0);
    let quiet: Vec<(f64, f64)> = quiet
        .iter()
        .map(|(at, level)| (*at, source.around(*level)))
        .collect();
    let Effect::None(unseen) = recovery(Signal::Samples(&quiet), &WINDOW, Worse::Either).unwrap()
    else {
        panic!("seen")
    };
    // And it would: in most series with as large a fall.
    let found = (0..100).filter(|seed| {
        let mut source = Source::new(Noise::Alike(0.0), 2.0, *seed);
        let lasting = 40.0..40.0 + unseen.lasting_s + 2.0;
        let fallen = points(|at| {
            if lasting.contains(&at) {
                100.0 - unseen.smallest
            } else {
                100.0
            }
        });
        let fallen: Vec<_> = fallen
            .iter()
            .map(|(at, level)| (*at, source.around(*level)))
            .collect();
        let found = recovery(Signal::Samples(&fallen), &WINDOW, Worse::Lower);
        matches!(found, Ok(Effect::Seen(_)))
    });
    let found = found.count();
    assert!(found >= 50, "{found} of 100");
    assert!(
        unseen
            .to_string()
            .starts_with("no effect seen; a change by "),
        "{unseen}"
    );
}

/// A slow return crosses a band that noise made: the resolution says how well it is known.
#[test]
fn the_resolution_of_a_slow_return_holds_the_truth() {
    let right = (0..200).filter(|seed| {
        let mut source = Source::new(Noise::Alike(0.0), 2.0, *seed);
        let back_s = 3.0 + (*seed % 10) as f64;
        let level = |at: f64| match at {
            at if at < 35.0 => 100.0,
            at if at < 50.0 => 30.0,
            at => 100.0 - 70.0 * (-(at - 50.0) / back_s).exp(),
        };
        let points: Vec<_> = points(level)
            .iter()
            .map(|(at, level)| (*at, source.around(*level)))
            .collect();
        let found = seen(&points, Worse::Lower);
        let truth = 50.0 + back_s * (70.0_f64 / 6.0).ln();
        let Return::After {
            from_begin_s,
            resolution_s,
            ..
        } = found.returned
        else {
            return false;
        };
        (from_begin_s + 30.0 - truth).abs() <= 2.0 * resolution_s
    });
    let right = right.count();
    assert!(right >= 190, "{right} of 200");
}

#[test]
fn faults_that_are_repeated_have_a_median_with_an_interval() {
    let found = seen(&points(instances), Worse::Lower);
    let after = |from_begin_s: f64| {
        let returned = Return::After {
            from_begin_s,
            from_end_s: 0.0,
            resolution_s: 1.0,
        };
        Effect::Seen(Recovery { returned, ..found })
    };
    let never = Effect::Seen(Recovery {
        returned: Return::NotBefore {
            from_begin_s: 300.0,
            from_end_s: 290.0,
        },
        ..found
    });
    let effects = [
        after(41.0),
        after(39.0),
        never.clone(),
        after(44.0),
        after(40.0),
    ];
    let found = repeated(&lasted(&effects), 0.9);
    let recovery = found.recovery.unwrap();
    assert_eq!(recovery.median, Lasted::For(41.0));
    assert_eq!(
        (recovery.low, recovery.high),
        (Some(39.0), Some(f64::INFINITY))
    );
    assert_eq!(
        found.to_string(),
        "median 41 s (39 s to open) of 5 faults, 1 of them not over when the wait ended"
    );
    let few = repeated(&lasted(&effects[..4]), 0.5).recovery.unwrap();
    assert_eq!((few.low, few.high), (None, None));
    assert!(
        repeated(&[never.lasted()], 0.9)
            .to_string()
            .starts_with("median ≥ 5 min")
    );
}

#[test]
fn what_contradicts_itself_is_refused() {
    let good = points(instances);
    let errors = [
        (
            Window {
                steady_s: 0.0,
                ..WINDOW
            },
            &good[..],
        ),
        (
            Window {
                until_s: f64::NAN,
                ..WINDOW
            },
            &good[..],
        ),
        (
            Window {
                hold_begin_s: 30.0,
                ..WINDOW
            },
            &good[..],
        ),
        (
            Window {
                hold_begin_s: 25.0,
                ..WINDOW
            },
            &good[..],
        ),
        (WINDOW, &good[..30]),
        (WINDOW, &[]),
    ];
    for (window, points) in errors {
        let found = recovery(Signal::Samples(points), &window, Worse::Lower);
        assert!(found.is_err(), "{window:?} {}", points.len());
    }
    let backwards = [(1.0, 1.0), (1.0, 2.0)];
    let found = recovery(Signal::Samples(&backwards), &WINDOW, Worse::Lower);
    assert_eq!(found, Err(RecoveryError::Disordered { number: 1 }));
    let wild = [f64::INFINITY];
    let found = recovery(Signal::Instants(&wild), &WINDOW, Worse::Lower);
    assert_eq!(found, Err(RecoveryError::Disordered { number: 0 }));
    let slots = Signal::Slots {
        start_s: 0.0,
        width_s: 0.0,
        values: &[1.0],
    };
    assert!(recovery(slots, &WINDOW, Worse::Lower).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever was measured, nothing panics and every time is within the window.
    #[test]
    fn any_series_is_judged_within_its_window(
        values in prop::collection::vec(prop_oneof![-1e9f64..1e9, Just(0.0), Just(7.0)], 0..80),
        begin in 0.0f64..40.0, length in 0.0f64..20.0, steady_s in 0.1f64..20.0, good in any::<u64>(),
    ) {
        let window = Window {
            hold_begin_s: -1.0,
            fault_begin_s: begin,
            fault_end_s: begin + length,
            until_s: begin + length + 10.0,
            steady_s,
        };
        let points: Vec<_> = values.iter().enumerate().map(|(at, value)| (at as f64, *value)).collect();
        let instants: Vec<f64> = points.iter().map(|point| point.0).collect();
        let requests: Vec<_> = instants.iter().map(|at| (*at, good >> (*at as u64 % 64) & 1 == 1)).collect();
        let slots = Signal::Slots { start_s: 0.0, width_s: 0.7, values: &values };
        for signal in [Signal::Samples(&points), slots, Signal::Instants(&instants), Signal::Requests(&requests)] {
            for worse in [Worse::Lower, Worse::Either] {
                if let Ok(Effect::Seen(found)) = recovery(signal, &window, worse) {
                    prop_assert!(found.detected_s >= 0.0 && found.detected_s <= length + 10.0);
                    let least = found.returned.lasted().least();
                    prop_assert!(least >= found.detected_s && least <= length + 10.0 + 1e-6);
                    prop_assert!(found.depth.is_finite() && found.lost.is_finite() && found.lost_noise >= 0.0);
                }
            }
        }
    }
}

fn lasted(effects: &[Effect]) -> Vec<Option<stats::Lasted>> {
    effects.iter().map(Effect::lasted).collect()
}
