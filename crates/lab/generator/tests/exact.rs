//! The generator against a target whose latencies are known.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod target;
mod workload;

use std::time::Duration;

use lab_load::Pace;
use lab_load::arrivals::Process;
use lab_load::recording::Recording;
use target::{Behaviour, Target};
use workload::{closed, open, plain, run};

const DELAY: f64 = 0.001;

/// Stops of the target, in seconds: begin and end.
type Stops = &'static [(f64, f64)];

/// Share of evenly spread arrivals over `length` that take at most `latency`.
fn share_within(latency: f64, stops: &[(f64, f64)], length: f64) -> f64 {
    let slow: f64 = stops
        .iter()
        .map(|(begin, end)| {
            // Before its stop ends by more than `latency`, an arrival waits longer. One
            // that came so shortly before the stop that its answer fell into it, too.
            let from = begin - DELAY;
            (end - (latency - DELAY).max(0.0) - from).clamp(0.0, end - from)
        })
        .sum();
    1.0 - slow / length
}

/// The latency that the share `quantile` of arrivals does not exceed.
fn expected(quantile: f64, stops: &[(f64, f64)], length: f64) -> f64 {
    let (mut low, mut high) = (DELAY, 10.0);
    if share_within(low, stops, length) >= quantile {
        return low;
    }
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        match share_within(middle, stops, length) >= quantile {
            true => high = middle,
            false => low = middle,
        }
    }
    high
}

fn quantile(recording: &Recording, quantile: f64) -> f64 {
    recording.intended.quantile(quantile).unwrap().as_secs_f64()
}

/// What is wrong with a run against a target that stops, if anything is. A machine that
/// does something else at the wrong moment spoils it, so callers try again.
fn wrong(stops: Stops, rate: f64, threads: u32, floor: f64) -> Option<String> {
    let length = 3.0;
    let behaviour = Behaviour {
        delay: Duration::from_secs_f64(DELAY),
        stops: stops
            .iter()
            .map(|(begin, end)| {
                (
                    Duration::from_secs_f64(*begin),
                    Duration::from_secs_f64(*end),
                )
            })
            .collect(),
        ..Behaviour::default()
    };
    let target = Target::start(0, behaviour).unwrap();
    // As many connections as arrivals can wait: the target alone sets the latencies.
    let longest = stops
        .iter()
        .map(|(begin, end)| end - begin)
        .fold(0.0, f64::max);
    let mut workload = plain(target.address, (longest * rate) as u32 + 20);
    workload.threads = threads;
    workload.share.threads = threads;
    let recorded = run(workload, &open(Process::Constant, rate, length));
    let seen = recorded.total.requests();
    let planned = (rate * length) as u64;
    // Exact whatever the machine does.
    assert_eq!(
        (seen.sent, seen.answered, seen.failed()),
        (planned, planned, 0)
    );
    assert_eq!(recorded.total.planned, planned);
    // Within the resolution of so many arrivals.
    let step = 1.0 / rate;
    [0.5, 0.75, 0.9, 0.95, 0.99].into_iter().find_map(|q| {
        let (found, expected) = (quantile(&seen, q), expected(q, stops, length));
        let allowed = expected * 0.01 + 20e-6 + floor + step;
        ((found - expected).abs() > allowed).then(|| {
            format!("stops {stops:?}, {rate}/s, {threads} threads, p{q}: found {found}, expected {expected}")
        })
    })
}

/// What this machine adds to every latency at the moment, at the 99th percentile.
fn floor() -> f64 {
    let behaviour = Behaviour {
        delay: Duration::from_secs_f64(DELAY),
        ..Behaviour::default()
    };
    let target = Target::start(0, behaviour).unwrap();
    let seen = run(
        plain(target.address, 20),
        &open(Process::Constant, 500.0, 1.0),
    )
    .total;
    (quantile(&seen.requests(), 0.99) - DELAY).max(0.0)
}

#[test]
fn latencies_count_from_the_intended_time_while_the_target_stands_still() {
    let shapes: [Stops; 3] = [
        &[(0.5, 1.0)],
        &[(0.3, 0.5), (1.2, 1.4), (2.1, 2.3)],
        &[(0.2, 0.6), (1.8, 1.85)],
    ];
    for (stops, rate, threads) in [
        (shapes[0], 400.0, 1),
        (shapes[1], 1000.0, 2),
        (shapes[2], 400.0, 4),
    ] {
        let tries: Vec<_> = (0..3)
            .map_while(|_| wrong(stops, rate, threads, floor()))
            .collect();
        assert!(tries.len() < 3, "{tries:#?}");
    }
}

#[test]
fn every_arrival_of_the_plan_is_sent_by_any_number_of_threads() {
    for threads in [1, 3] {
        let behaviour = Behaviour {
            log: true,
            ..Behaviour::default()
        };
        let target = Target::start(0, behaviour).unwrap();
        let mut workload = plain(target.address, 8);
        workload.threads = threads;
        workload.share.threads = threads;
        let recorded = run(workload, &open(Process::Poisson, 3000.0, 1.5));
        let seen = recorded.total.requests();
        assert_eq!(
            (recorded.total.planned, seen.sent, seen.answered),
            (4500, 4500, 4500)
        );
        assert_eq!(seen.lateness.count() + seen.waited, 4500);
        assert_eq!(target.end().len(), 4500);
        let spans = recorded.timeline.spans();
        assert_eq!(spans.len(), 2);
        assert_eq!(recorded.total.length, Duration::from_millis(1500));
        assert_eq!(recorded.total.threads_cpu.len(), threads as usize);
        // Little's law holds exactly, by construction.
        let latencies = seen.actual.sum_seconds();
        let integral = recorded.total.in_flight_seconds;
        assert!(
            (integral / latencies - 1.0).abs() < 0.05,
            "{integral} {latencies}"
        );
    }
}

#[test]
fn users_make_exactly_as_many_requests_as_asked() {
    let target = Target::start(0, Behaviour::default()).unwrap();
    for pace in [Pace::Exact, Pace::Coalesce, Pace::Spin] {
        let mut workload = plain(target.address, 7);
        workload.threads = 3;
        workload.share.threads = 3;
        workload.pace = pace;
        let total = run(workload, &closed(1000)).total;
        let seen = total.requests();
        assert_eq!(
            (total.planned, seen.sent, seen.answered),
            (1000, 1000, 1000)
        );
        assert_eq!(seen.intended, seen.actual, "users have no schedule");
        assert_eq!(total.connections.opened, 7);
    }
}

#[test]
fn ticks_group_requests_and_lose_none() {
    let target = Target::start(0, Behaviour::default()).unwrap();
    let mut workload = plain(target.address, 30);
    workload.pace = Pace::Tick(Duration::from_millis(10));
    let total = run(workload, &open(Process::Constant, 1000.0, 0.5)).total;
    assert_eq!(total.requests().answered, 500);
}

#[test]
fn connections_are_added_while_all_are_busy() {
    let behaviour = Behaviour {
        delay: Duration::from_millis(100),
        ..Behaviour::default()
    };
    let target = Target::start(0, behaviour).unwrap();
    let mut workload = plain(target.address, 2);
    workload.connections.most = 200;
    let total = run(workload, &open(Process::Constant, 500.0, 1.0)).total;
    let seen = total.requests();
    assert_eq!((seen.sent, seen.answered, seen.waited), (500, 500, 0));
    assert!(total.connections.open >= 40, "{:?}", total.connections);
}
