use super::*;
use crate::example::{Draws, recorded, workload};
use crate::recording::{Failure, Phase};

const GOOD: Duration = Duration::from_millis(4);

fn broken(validity: &Validity) -> Vec<&str> {
    validity
        .reasons
        .iter()
        .map(|reason| reason.check.as_str())
        .collect()
}

/// Some load that is as it should be, of any rate and latency.
fn good(seed: u64) -> Recorded {
    let mut draws = Draws::new(seed ^ 0x5eed);
    let rate = draws.between(150.0, 900.0);
    let mean = Duration::from_secs_f64(draws.between(20e-6, 80e-3));
    recorded(seed, 4, rate, mean)
}

/// Changes every kind of request in the total.
fn spoil(recorded: &mut Recorded, change: impl Fn(&mut Recording)) {
    recorded.total.kinds.iter_mut().for_each(change);
}

/// A way to spoil a load, by so much, and the reason that must be given.
type Spoiler = (&'static str, fn(&mut Recorded, f64));

const SPOILERS: [Spoiler; 10] = [
    ("late-sends", |recorded, by| {
        spoil(recorded, |kind| {
            let late = (kind.sent as f64 * (0.012 + 0.3 * by)) as u64 + 1;
            kind.lateness.record_n(Duration::from_micros(1_100), late);
        });
    }),
    ("generator-cpu", |recorded, by| {
        recorded.total.threads_cpu[1] = recorded.total.length.mul_f64(0.81 + 0.19 * by);
    }),
    ("in-flight-cap", |recorded, by| {
        spoil(recorded, |kind| {
            kind.waited = (kind.sent as f64 * (0.02 + 0.9 * by)) as u64
        });
    }),
    ("under-sent", |recorded, by| {
        let planned = recorded.total.planned as f64;
        recorded.total.planned = (planned * (1.02 + by)) as u64;
    }),
    ("steal", |recorded, by| {
        recorded.total.machine.steal = 0.021 + 0.5 * by
    }),
    ("throttled", |recorded, by| {
        recorded.total.machine.throttled = 1 + (20.0 * by) as u64
    }),
    ("no-ports", |recorded, _| {
        spoil(recorded, |kind| kind.fail(Phase::Connect, NO_PORTS))
    }),
    ("no-descriptors", |recorded, _| {
        spoil(recorded, |kind| kind.fail(Phase::Connect, NO_DESCRIPTORS));
    }),
    // Requests in flight that no latency accounts for, and latencies too long for what
    // was in flight.
    ("little", |recorded, by| {
        let requests = recorded.total.requests();
        let answered = requests.actual.sum_seconds() + 2e-6 * requests.answered as f64;
        let untold = 5.0 * requests.failed() as f64;
        recorded.total.in_flight_seconds = match by < 0.5 {
            true => (answered + untold) * (1.07 + by),
            false => (answered * (1.4 - by)).min(answered * 0.9) - 4e-6 * requests.answered as f64,
        };
    }),
    ("worker-lost", |recorded, _| {
        recorded.lost.push("worker-3".into())
    }),
];

#[test]
fn spoiled_loads_are_flagged_with_the_reason() {
    for seed in 0..100 {
        let (check_name, spoil) = SPOILERS[seed as usize % SPOILERS.len()];
        let mut recorded = good(seed);
        spoil(&mut recorded, Draws::new(seed).unit());
        let validity = check(&workload(&["a"]), &recorded);
        assert!(!validity.valid, "seed {seed}: {check_name} was not seen");
        assert_eq!(broken(&validity), [check_name], "seed {seed}");
    }
}

#[test]
fn good_loads_are_left_alone() {
    let flagged: Vec<_> = (1_000..1_100)
        .map(|seed| check(&workload(&["a"]), &good(seed)))
        .filter(|validity| !validity.valid)
        .collect();
    assert!(flagged.len() <= 1, "{flagged:#?}");
}

#[test]
fn a_reason_says_what_was_found_against_which_limit_and_what_to_do() {
    let mut recorded = recorded(1, 4, 500.0, GOOD);
    recorded.total.machine.steal = 0.054;
    let validity = check(&workload(&["a"]), &recorded);
    assert_eq!(
        validity.reasons,
        [Reason {
            check: "steal".into(),
            found: "the hypervisor gave 5.4 % of the processors to others, limit 2 %".into(),
            help: "repeat on a machine that is not shared, or when it is quiet".into(),
        }]
    );
}

#[test]
fn loosened_limits_are_told_and_obeyed() {
    let mut recorded = recorded(1, 4, 500.0, GOOD);
    recorded.total.machine.steal = 0.054;
    let mut workload = workload(&["a"]);
    workload.guard.steal_share = 0.1;
    let validity = check(&workload, &recorded);
    assert!(validity.valid, "{validity:?}");
    assert_eq!(validity.loosened, ["steal up to 10 % (usually 2 %)"]);
}

#[test]
fn a_target_that_refuses_is_no_fault_of_the_generator() {
    let mut recorded = recorded(1, 4, 500.0, GOOD);
    spoil(&mut recorded, |kind| {
        let refused = Failure {
            phase: Phase::Connect,
            cause: "refused".into(),
        };
        *kind = Recording::empty();
        kind.errors.insert(refused, 2_000);
    });
    recorded.total.planned = 2_000;
    recorded.total.in_flight_seconds = 0.0;
    let validity = check(&workload(&["a"]), &recorded);
    assert!(validity.valid, "{validity:?}");
}

#[test]
fn requests_that_run_into_their_timeout_are_in_flight_until_a_little_later() {
    let mut recorded = recorded(1, 4, 500.0, GOOD);
    let mut workload = workload(&["a"]);
    workload.timeout = Duration::from_secs(2);
    spoil(&mut recorded, |kind| {
        for _ in 0..400 {
            kind.sent += 1;
            kind.fail(Phase::Timeout, "timeout");
        }
    });
    recorded.total.planned += 400;
    recorded.total.in_flight_seconds += 400.0 * 2.002;
    let validity = check(&workload, &recorded);
    assert!(validity.valid, "{validity:?}");
    recorded.total.in_flight_seconds += 400.0 * 0.2;
    assert_eq!(broken(&check(&workload, &recorded)), ["little"]);
}

#[test]
fn a_closed_loop_may_use_its_processor_and_wait() {
    let mut recorded = recorded(1, 4, 500.0, GOOD);
    recorded.segment.model = Model::Closed {
        think: Duration::ZERO,
    };
    recorded.total.threads_cpu[0] = recorded.total.length;
    spoil(&mut recorded, |kind| kind.waited = kind.sent);
    assert!(check(&workload(&["a"]), &recorded).valid);
}

#[test]
fn a_spinning_thread_may_use_its_processor() {
    let mut recorded = recorded(1, 4, 500.0, GOOD);
    recorded.total.threads_cpu[0] = recorded.total.length;
    let mut workload = workload(&["a"]);
    assert_eq!(broken(&check(&workload, &recorded)), ["generator-cpu"]);
    workload.pace = Pace::Spin;
    assert!(check(&workload, &recorded).valid);
}

#[test]
fn a_tick_delays_on_purpose_and_is_told() {
    let mut recorded = recorded(1, 4, 500.0, GOOD);
    spoil(&mut recorded, |kind| {
        kind.lateness.reset();
        kind.lateness
            .record_n(Duration::from_micros(4_900), kind.sent);
    });
    let mut workload = workload(&["a"]);
    workload.pace = Pace::Tick(Duration::from_millis(5));
    let validity = check(&workload, &recorded);
    assert!(validity.valid, "{validity:?}");
    assert_eq!(validity.loosened.len(), 1);
}

#[test]
fn waiting_for_answers_after_the_end_does_not_hide_a_busy_thread() {
    let mut recorded = recorded(1, 4, 500.0, GOOD);
    recorded.total.threads_cpu[0] = Duration::from_millis(3_600);
    recorded.total.length = Duration::from_secs(30);
    assert_eq!(
        broken(&check(&workload(&["a"]), &recorded)),
        ["generator-cpu"]
    );
}

#[test]
fn only_the_first_step_of_a_journey_is_planned() {
    let mut workload = workload(&["a", "b"]);
    let second = workload.mix.journeys.remove(1);
    workload.mix.journeys[0].steps.extend(second.steps);
    let mut recorded = recorded(1, 4, 500.0, GOOD);
    // Half of the journeys begin; the many requests of later steps must not hide it.
    let mut later = recorded.total.kinds[0].clone();
    later.merge(&recorded.total.kinds[0].clone());
    recorded.total.planned *= 2;
    recorded.total.in_flight_seconds *= 3.0;
    recorded.total.kinds.push(later);
    assert_eq!(broken(&check(&workload, &recorded)), ["under-sent"]);
}
