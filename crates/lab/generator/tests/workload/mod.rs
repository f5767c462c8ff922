//! Workloads for tests, and what they came to.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::net::SocketAddr;
use std::time::Duration;

use lab_generator::Local;
use lab_load::arrivals::{Arrivals, Process, Shape};
use lab_load::recording::{Phase, Recording};
use lab_load::request::{Mix, Step};
use lab_load::{
    Connections, Flow, Generate as _, Length, Model, Pace, Protocol, Recorded, Segment, Share,
    Target, Workload,
};

/// A workload of plain requests over so many connections.
pub fn plain(address: SocketAddr, connections: u32) -> Workload {
    Workload {
        target: Target {
            protocol: Protocol::Http1,
            tls: false,
            host: address.ip().to_string(),
            port: address.port(),
            authority: address.to_string(),
            login: Default::default(),
        },
        mix: Mix::of(Step::new("get", "GET", "/")),
        connections: Connections {
            held: connections,
            most: connections,
            requests_each: None,
            streams: 1,
            connect_within: Duration::from_secs(5),
        },
        timeout: Duration::from_secs(10),
        pace: Pace::Exact,
        threads: 1,
        share: Share {
            first: 0,
            threads: 1,
        },
        cpus: Vec::new(),
        seed: 1,
        tls: Default::default(),
        guard: Default::default(),
    }
}

/// Requests at a rate for a time.
pub fn open(process: Process, rate: f64, seconds: f64) -> Segment {
    Segment {
        model: Model::Open(Arrivals::Rate {
            process,
            shape: Shape::Constant(rate),
        }),
        length: Length {
            duration: Some(Duration::from_secs_f64(seconds)),
            requests: None,
        },
        first: 0,
    }
}

/// So many requests, each user one after the other.
pub fn closed(requests: u64) -> Segment {
    Segment {
        model: Model::Closed {
            think: Duration::ZERO,
        },
        length: Length {
            duration: None,
            requests: Some(requests),
        },
        first: 0,
    }
}

/// Runs a segment to its end.
pub fn run(workload: Workload, segment: &Segment) -> Recorded {
    let mut local = Local::start(workload).unwrap();
    local.run(segment, &mut |_| Flow::Continue).unwrap()
}

/// Why a workload cannot start.
pub fn refusal(workload: Workload) -> String {
    match Local::start(workload) {
        Ok(_) => panic!("it started"),
        Err(error) => error.to_string(),
    }
}

/// Failures as `phase: cause`, with their numbers.
pub fn failures(recording: &Recording) -> Vec<(Phase, &str, u64)> {
    let errors = recording.errors.iter();
    errors
        .map(|(failure, count)| (failure.phase, failure.cause.as_str(), *count))
        .collect()
}
