use super::*;
use stats::SplitMix;

use crate::example::{between, recorded, workload};
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
    let mut draws = SplitMix::new(seed ^ 0x5eed);
    let rate = between(&mut draws, 150.0, 900.0);
    let mean = Duration::from_secs_f64(between(&mut draws, 20e-6, 80e-3));
    recorded(seed, 4, rate, mean)
}

/// Changes every kind of request in the total.
fn spoil(recorded: &mut Recorded, change: impl Fn(&mut Recording)) {
    recorded.total.kinds.iter_mut().for_each(change);
}

/// A way to spoil a load, by so much, and the reason that must be given.
type Spoiler = (&'static str, fn(&mut Recorded, f64));

const SPOILERS: [Spoiler; 7] = [
    ("generator-late", |recorded, by| {
        spoil(recorded, |kind| doubt(kind, 0.55 + 0.4 * by))
    }),
    ("under-sent", |recorded, by| {
        let planned = recorded.total.planned as f64;
        recorded.total.planned = (planned * (1.02 + by)) as u64;
    }),
    ("steal", |recorded, by| {
        recorded.total.machine.steal = 0.021 + 0.5 * by
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
        spoil(&mut recorded, SplitMix::new(seed).unit());
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
        *kind = Recording::default();
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

/// Of this share of the answers, from the shortest on, the generator may have made all.
fn doubt(kind: &mut Recording, share: f64) {
    let mut left = (kind.intended.count() as f64 * share) as u64;
    let bins: Vec<_> = kind.intended.bins().collect();
    for bin in bins {
        let count = bin.count.min(left);
        left -= count;
        let nanos = bin.lowest.as_nanos() as u64;
        (0..count).for_each(|_| kind.intended_doubt.record_ns(nanos, nanos));
    }
}

fn judged(objective: &str, recorded: &Recorded) -> (Option<bool>, Validity) {
    let slo: crate::Slo = objective.parse().unwrap();
    let judged = slo.judge(recorded);
    let validity = check_for(&workload(&["a"]), recorded, &judged);
    (judged.holds, validity)
}

/// 2,000 answers of 15 ms of which the generator may have made half, and 40 slow ones.
fn noisy() -> Recorded {
    let mut recorded = recorded(1, 4, 500.0, GOOD);
    spoil(&mut recorded, |kind| {
        *kind = Recording::default();
        (kind.sent, kind.answered) = (2_000, 2_000);
        kind.intended.record_n(Duration::from_millis(5), 1_960);
        kind.intended.record_n(Duration::from_millis(15), 40);
        kind.actual = kind.intended.clone();
        (0..40).for_each(|_| kind.intended_doubt.record_ns(15_000_000, 10_000_000));
    });
    let told = recorded.total.requests().actual.sum_seconds();
    recorded.total.in_flight_seconds = told;
    recorded.total.planned = 2_000;
    recorded
}

#[test]
fn what_the_generator_may_have_added_counts_where_it_could_turn_the_conclusion_round() {
    let recorded = noisy();
    // Whatever part of the 15 ms is the generator's: below 50 ms is below 50 ms, and 5 ms
    // are above 4.
    let (holds, validity) = judged("p99 < 50ms", &recorded);
    assert_eq!((holds, validity.valid), (Some(true), true), "{validity:?}");
    let (holds, validity) = judged("p99 < 4ms", &recorded);
    assert_eq!((holds, validity.valid), (Some(false), true), "{validity:?}");
    // Between the two, nobody can tell.
    let (holds, validity) = judged("p99 < 10ms", &recorded);
    assert_eq!((holds, broken(&validity)), (None, vec![GENERATOR_LATE]));
    assert!(
        validity.reasons[0]
            .found
            .starts_with("p99 may be 5 ms to 15 ms: the generator was late"),
        "{validity:?}"
    );
    assert!(!validity.spoiled());
    // One term that surely fails is enough.
    let (holds, validity) = judged("p99 < 10ms, p50 < 1ms", &recorded);
    assert_eq!((holds, validity.valid), (Some(false), true), "{validity:?}");
    // Nothing asked: the median stands.
    assert!(check(&workload(&["a"]), &recorded).valid);
}

#[test]
fn what_kept_the_generator_from_being_in_time_is_named() {
    let mut recorded = recorded(1, 4, 500.0, Duration::from_millis(20));
    spoil(&mut recorded, |kind| doubt(kind, 0.9));
    recorded.total.delays.stopped = Duration::from_secs(1);
    recorded.total.delays.waited = Duration::from_millis(300);
    recorded.total.threads_cpu[0] = Duration::from_millis(3_800);
    let validity = check(&workload(&["a"]), &recorded);
    let found = &validity.reasons[0].found;
    let why = "the generator was stopped for 1 s and waited 300 ms for a processor and had 95 % \
               of a processor to do";
    assert!(found.ends_with(why), "{found}");
    recorded.total.machine.throttled = 3;
    let validity = check(&workload(&["a"]), &recorded);
    assert!(validity.reasons[0].help.contains("quota"), "{validity:?}");
}

#[test]
fn a_closed_loop_that_was_kept_waiting_could_have_been_faster() {
    let mut recorded = noisy();
    recorded.segment.model = crate::Model::Closed {
        think: Duration::ZERO,
    };
    spoil(&mut recorded, |kind| {
        (0..1_000).for_each(|_| kind.actual_doubt.record_ns(5_000_000, 2_500_000));
    });
    recorded.total.kinds[0].good();
    let rate = 500.0;
    let (holds, _) = judged("rate >= 400/s", &recorded);
    let part = crate::steady::sending(&recorded);
    let seen = part.requests().good() as f64 / part.length.as_secs_f64();
    assert!((seen - rate).abs() < 30.0, "{seen}");
    assert_eq!(holds, Some(true));
    let (holds, validity) = judged("rate >= 600/s", &recorded);
    assert_eq!((holds, broken(&validity)), (None, vec![GENERATOR_LATE]));
    let found = &validity.reasons[0].found;
    let said = format!("rate may be {} to ", units::show_rate(seen));
    assert!(found.starts_with(&said), "{found}");
    let (holds, validity) = judged("rate >= 1000/s", &recorded);
    assert_eq!((holds, validity.valid), (Some(false), true));
}

#[test]
fn a_tick_is_told() {
    let mut workload = workload(&["a"]);
    workload.pace = crate::Pace::Tick(Duration::from_millis(5));
    let validity = check(&workload, &recorded(1, 4, 500.0, GOOD));
    assert!(validity.valid, "{validity:?}");
    assert_eq!(validity.loosened.len(), 1);
}

#[test]
fn a_target_that_holds_every_connection_has_itself_to_blame() {
    let mut recorded = recorded(1, 4, 500.0, GOOD);
    spoil(&mut recorded, |kind| {
        kind.waited = kind.sent;
        (0..300).for_each(|_| kind.fail(Phase::Connect, crate::recording::NONE_FREE));
    });
    recorded.total.planned += 300;
    let validity = check(&workload(&["a"]), &recorded);
    assert!(validity.valid, "{validity:?}");
}

#[test]
fn a_load_that_keeps_every_connection_itself_has_tried_too_little() {
    let mut recorded = recorded(1, 4, 500.0, GOOD);
    spoil(&mut recorded, |kind| {
        (0..300).for_each(|_| kind.fail(Phase::Connect, crate::recording::KEPT));
    });
    recorded.total.planned += 300;
    let validity = check(&workload(&["a"]), &recorded);
    assert_eq!(broken(&validity), ["under-sent"]);
    assert!(validity.reasons[0].found.contains("journey that pauses"));
}

#[test]
fn a_load_of_nothing_says_nothing_unless_it_was_ended_early() {
    let segment = recorded(1, 4, 500.0, GOOD).segment;
    let mut nothing = Recorded::begun(segment);
    assert!(check(&workload(&["a"]), &nothing).valid);
    nothing.cut = None;
    assert_eq!(broken(&check(&workload(&["a"]), &nothing)), ["nothing-due"]);
    nothing.total.planned = 1;
    nothing.total.kinds = vec![Recording::default()];
    nothing.total.kinds[0].sent = 1;
    assert!(check(&workload(&["a"]), &nothing).valid);
}

#[test]
fn tries_that_were_made_again_were_in_flight() {
    let mut recorded = recorded(1, 4, 500.0, GOOD);
    recorded.total.in_flight_seconds *= 1.3;
    assert_eq!(broken(&check(&workload(&["a"]), &recorded)), ["little"]);
    let more = recorded.total.in_flight_seconds * 0.3 / 1.3;
    recorded.total.kinds[0].retried = 200;
    recorded.total.kinds[0].retried_seconds = more;
    let validity = check(&workload(&["a"]), &recorded);
    assert!(validity.valid, "{validity:?}");
}

#[test]
fn every_step_of_a_journey_that_came_due_is_planned() {
    let mut workload = workload(&["a", "b"]);
    let second = workload.mix.journeys.remove(1);
    workload.mix.journeys[0].steps.extend(second.steps);
    let mut recorded = recorded(1, 4, 500.0, GOOD);
    let later = recorded.total.kinds[0].clone();
    recorded.total.kinds.push(later);
    recorded.total.in_flight_seconds *= 2.0;
    recorded.total.planned *= 2;
    assert!(check(&workload, &recorded).valid);
    recorded.total.planned += recorded.total.planned / 10;
    assert_eq!(broken(&check(&workload, &recorded)), ["under-sent"]);
}
