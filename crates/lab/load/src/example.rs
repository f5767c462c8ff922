//! Loads that could have been, for tests.

use std::time::Duration;

use stats::SplitMix;

use crate::arrivals::Arrivals;
use crate::recording::{Phase, Recorded, Span, Timeline};
use crate::request::{Journey, Mix, Step};
use crate::segment::{Length, Model, Segment};
use crate::workload::{
    Connections, GuardLimits, Pace, Protocol, Share, Target, TlsSettings, Workload,
};

pub(crate) fn between(random: &mut SplitMix, low: f64, high: f64) -> f64 {
    low + (high - low) * random.unit()
}

fn step(name: &str) -> Step {
    Step::new(name, "GET", "/")
}

/// One step for each kind, every one a journey of its own.
pub(crate) fn workload(kinds: &[&str]) -> Workload {
    let journeys = kinds.iter().map(|name| Journey {
        name: (*name).into(),
        weight: 1.0,
        steps: vec![step(name)],
    });
    Workload {
        target: Target {
            protocol: Protocol::Http1,
            tls: false,
            host: "127.0.0.1".into(),
            port: 8080,
            authority: "127.0.0.1:8080".into(),
            login: Default::default(),
        },
        mix: Mix {
            journeys: journeys.collect(),
            ..Mix::default()
        },
        connections: Connections {
            held: 16,
            most: 256,
            requests_each: None,
            streams: 1,
            connect_within: Duration::from_secs(5),
        },
        timeout: Duration::from_secs(5),
        pace: Pace::Exact,
        threads: 2,
        share: Share {
            first: 0,
            threads: 2,
        },
        cpus: Vec::new(),
        seed: 1,
        tls: TlsSettings::default(),
        guard: GuardLimits::default(),
    }
}

/// An open load of `seconds` that nothing is wrong with: about `rate` requests a second,
/// their latencies exponential around `mean`, some sends late, some answers missing.
pub(crate) fn recorded(seed: u64, seconds: u64, rate: f64, mean: Duration) -> Recorded {
    let mut draws = SplitMix::new(seed);
    let late = between(&mut draws, 0.0, 0.004);
    let broken = between(&mut draws, 0.0, 0.004);
    let cpu = [
        between(&mut draws, 0.05, 0.75),
        between(&mut draws, 0.05, 0.75),
    ];
    let mut timeline = Timeline::default();
    let mut total = Span::empty(1);
    for at in 0..seconds {
        let span = second(at, rate, mean, (late, broken, cpu), &mut draws);
        total.append(&span);
        timeline.push(span);
    }
    Recorded {
        segment: Segment {
            model: Model::Open(Arrivals::poisson(rate)),
            length: Length {
                duration: Some(Duration::from_secs(seconds)),
                requests: None,
            },
            first: 0,
        },
        began_unix_ns: 1_700_000_000_000_000_000,
        total,
        timeline,
        cut: None,
        lost: Vec::new(),
        notes: Vec::new(),
    }
}

fn second(
    at: u64,
    rate: f64,
    mean: Duration,
    (late, broken, cpu): (f64, f64, [f64; 2]),
    draws: &mut SplitMix,
) -> Span {
    let mut span = Span::empty(1);
    span.start = Duration::from_secs(at);
    span.length = Duration::from_secs(1);
    span.planned = (rate * between(draws, 0.97, 1.03)) as u64;
    for _ in 0..span.planned {
        let service = mean.mul_f64(draws.exponential());
        let lateness = match draws.unit() < late {
            true => Duration::from_micros(2500),
            false => Duration::from_micros(40).mul_f64(draws.exponential()),
        };
        let kind = &mut span.kinds[0];
        kind.sent += 1;
        kind.bytes_sent += 120;
        kind.lateness.record(lateness);
        if draws.unit() < broken {
            kind.fail(Phase::Timeout, "timeout");
            span.in_flight_seconds += 5.0;
            continue;
        }
        let status = if draws.unit() < 0.001 { 503 } else { 200 };
        if status == 503 {
            kind.refuse("status");
        }
        kind.answered += 1;
        kind.bytes_received += 1_300;
        kind.intended.record(service + lateness);
        kind.actual.record(service);
        *kind.statuses.entry(status).or_default() += 1;
        span.in_flight_seconds += service.as_secs_f64();
    }
    span.connections.reused = span.planned;
    span.connections.open = 16;
    span.in_flight = 9;
    span.threads_cpu = cpu.map(Duration::from_secs_f64).to_vec();
    span.machine.steal = between(draws, 0.0, 0.01);
    span
}
