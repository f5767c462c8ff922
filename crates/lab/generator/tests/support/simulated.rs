//! A generator without a network: what it "sees" follows from the numbers of the
//! arrivals alone, so parts of a load must add up to the whole.

use std::time::Duration;

use lab_load::arrivals::{Arrivals, Process, Shape};
use lab_load::recording::Timeline;
use lab_load::request::{AnswerEnd, Body, Journey, Mix, Step};
use lab_load::{
    Connections, Flow, Generate, GenerateError, GuardLimits, Length, Model, Pace, Protocol,
    Recorded, Segment, Share, Span, Target, TlsSettings, Workload,
};

/// Arrivals in each second.
pub const RATE: u64 = 1000;

pub struct Simulated {
    pub workload: Workload,
    /// Real time that a simulated second takes.
    pub second: Duration,
}

impl Generate for Simulated {
    fn run(
        &mut self,
        segment: &Segment,
        watch: &mut dyn FnMut(&Span) -> Flow,
    ) -> Result<Recorded, GenerateError> {
        let seconds = segment
            .length
            .duration
            .map_or(u64::MAX, |length| length.as_secs());
        let mut total = Span::empty(2);
        let mut timeline = Timeline::default();
        let mut cut = None;
        for second in 0..seconds {
            std::thread::sleep(self.second);
            let span = self.span(second);
            total.append(&span);
            timeline.push(span.clone());
            if watch(&span) == Flow::Stop {
                cut = Some("told to stop".to_owned());
                break;
            }
        }
        Ok(Recorded {
            segment: segment.clone(),
            began_unix_ns: 0,
            total,
            timeline,
            cut,
            lost: Vec::new(),
            notes: vec!["simulated".to_owned()],
        })
    }
}

impl Simulated {
    fn span(&self, second: u64) -> Span {
        let mut span = Span::empty(2);
        span.start = Duration::from_secs(second);
        span.length = Duration::from_secs(1);
        let Share { first, threads } = self.workload.share;
        let own = u64::from(first)..u64::from(first + self.workload.threads);
        span.threads_cpu = own.clone().map(Duration::from_millis).collect();
        for arrival in second * RATE..(second + 1) * RATE {
            if !own.contains(&(arrival % u64::from(threads))) {
                continue;
            }
            span.planned += 1;
            let mixed = arrival.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            let kind = &mut span.kinds[usize::from(mixed % 3 == 0)];
            kind.sent += 1;
            kind.answered += 1;
            kind.intended
                .record(Duration::from_micros(mixed % 1_000_000));
            kind.actual.record(Duration::from_micros(mixed % 1_000));
            *kind.statuses.entry(200).or_default() += 1;
        }
        span
    }
}

fn step(name: &str, body: Body) -> Step {
    Step {
        name: name.into(),
        method: "GET".into(),
        path: "/".into(),
        headers: Vec::new(),
        body,
        think: Duration::ZERO,
        take: Vec::new(),
        assertions: Vec::new(),
        answer: AnswerEnd::Close,
    }
}

/// A workload of one generator with so many threads, and a body of so many bytes.
pub fn workload(threads: u32, body_bytes: usize) -> Workload {
    let steps = vec![
        step("a", Body::Template("x".repeat(body_bytes))),
        step("b", Body::Empty),
    ];
    Workload {
        target: Target {
            protocol: Protocol::Http1,
            tls: false,
            host: "127.0.0.1".into(),
            port: 1,
            authority: "127.0.0.1:1".into(),
            login: Default::default(),
        },
        mix: Mix {
            journeys: vec![Journey {
                name: "j".into(),
                weight: 1.0,
                steps,
            }],
            ..Mix::default()
        },
        connections: Connections {
            held: 10,
            most: 20,
            requests_each: None,
            streams: 1,
            connect_within: Duration::from_secs(1),
        },
        timeout: Duration::from_secs(1),
        pace: Pace::Exact,
        threads,
        share: Share { first: 0, threads },
        cpus: Vec::new(),
        seed: 1,
        tls: TlsSettings::default(),
        guard: GuardLimits::default(),
    }
}

/// So many seconds of load.
pub fn segment(seconds: u64) -> Segment {
    Segment {
        model: Model::Open(Arrivals::Rate {
            process: Process::Constant,
            shape: Shape::Constant(RATE as f64),
        }),
        length: Length {
            duration: Some(Duration::from_secs(seconds)),
            requests: None,
        },
        first: 0,
    }
}
