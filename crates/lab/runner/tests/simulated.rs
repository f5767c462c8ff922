//! Generators without a network: one server with a queue, whose answers follow from the
//! rate alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab_load::recording::{Phase, Timeline};
use lab_load::{Flow, Generate, GenerateError, Model, Recorded, Segment, Span, Workload};
use lab_runner::Generator;

/// Requests a second that the simulated server can answer.
pub(crate) const CAPACITY: f64 = 1000.0;
/// Longest span.
const SECOND: Duration = Duration::from_secs(1);

struct Simulated {
    kinds: usize,
    users: u32,
    /// Time by which every send is late.
    late: Duration,
    /// The share of requests that no answer comes to.
    lost: f64,
    /// The share of time that the hypervisor gives to others.
    stolen: f64,
    stopped: Arc<AtomicBool>,
}

/// A generator that keeps up with any rate.
pub(crate) fn healthy(workload: Workload) -> Result<Generator, GenerateError> {
    start(workload, Duration::ZERO, 0.0)
}

/// A generator to whose requests, one in twenty, no answer comes.
pub(crate) fn losing(workload: Workload) -> Result<Generator, GenerateError> {
    start(workload, Duration::ZERO, 0.05)
}

/// A generator that sends everything late, except to a target whose path has "fine".
pub(crate) fn late(workload: Workload) -> Result<Generator, GenerateError> {
    let path = &workload.mix.journeys[0].steps[0].path;
    let late = if path.contains("fine") { 0 } else { 50 };
    start(workload, Duration::from_millis(late), 0.0)
}

/// A generator on a machine that stands still for a tenth of the time.
pub(crate) fn robbed(workload: Workload) -> Result<Generator, GenerateError> {
    let healthy = Simulated::of(&workload);
    Ok(Simulated {
        stolen: 0.1,
        ..healthy
    }
    .generator())
}

/// A generator that cannot reach its target.
pub(crate) fn refused(_: Workload) -> Result<Generator, GenerateError> {
    Err(
        GenerateError::new("connect to 127.0.0.1:1", "connection refused")
            .help("start the target first"),
    )
}

fn start(workload: Workload, late: Duration, lost: f64) -> Result<Generator, GenerateError> {
    let healthy = Simulated::of(&workload);
    Ok(Simulated {
        late,
        lost,
        ..healthy
    }
    .generator())
}

impl Simulated {
    fn of(workload: &Workload) -> Self {
        Self {
            kinds: workload.mix.journeys.iter().map(|j| j.steps.len()).sum(),
            users: workload.connections.held,
            late: Duration::ZERO,
            lost: 0.0,
            stolen: 0.0,
            stopped: Arc::default(),
        }
    }

    fn generator(self) -> Generator {
        let stop = Arc::clone(&self.stopped);
        Generator {
            generate: Box::new(self),
            stop: Box::new(move || stop.store(true, Ordering::Relaxed)),
            relay: None,
        }
    }

    fn span(&self, start: Duration, length: Duration, rate: f64) -> Span {
        let mut span = Span::empty(self.kinds);
        span.start = start;
        span.length = length;
        span.planned = (rate * length.as_secs_f64()).round() as u64;
        // Time in a queue with one server, exponential in all respects.
        let mean = match rate < 0.99 * CAPACITY {
            true => 1.0 / (CAPACITY - rate),
            false => 2.0,
        };
        let kind = &mut span.kinds[0];
        let lost = (span.planned as f64 * self.lost).round() as u64;
        (0..lost).for_each(|_| kind.fail(Phase::Timeout, "timeout"));
        (kind.sent, kind.answered) = (span.planned, span.planned - lost);
        for request in 0..kind.answered {
            let share = (request as f64 + 0.5) / span.planned as f64;
            let time = Duration::from_secs_f64(-mean * (1.0 - share).ln());
            kind.intended.record(time + self.late);
            kind.actual.record(time);
            if !self.late.is_zero() {
                let late = self.late.as_nanos() as u64;
                let seen = time.as_nanos() as u64 + late;
                kind.intended_doubt.record_ns(seen, late);
            }
            kind.lateness.record(self.late);
        }
        kind.statuses.insert(200, kind.answered);
        span.in_flight_seconds = span.planned as f64 * mean;
        span.threads_cpu = vec![length / 10];
        span.machine.steal = self.stolen;
        span
    }
}

impl Generate for Simulated {
    fn run(
        &mut self,
        segment: &Segment,
        watch: &mut dyn FnMut(&Span) -> Flow,
    ) -> Result<Recorded, GenerateError> {
        self.stopped.store(false, Ordering::Relaxed);
        let mut total = Span::empty(self.kinds);
        let mut timeline = Timeline::default();
        let mut now = Duration::ZERO;
        let end = segment.length.duration.unwrap_or(Duration::MAX);
        let mut cut = None;
        while now < end && cut.is_none() {
            let rate = match &segment.model {
                Model::Open(arrivals) => arrivals.rate_at(now).unwrap_or(1.0),
                Model::Closed { .. } => f64::from(self.users),
            };
            let span = self.span(now, SECOND.min(end - now), rate);
            let flow = watch(&span);
            total.append(&span);
            timeline.push(span);
            now += SECOND;
            if flow == Flow::Stop || self.stopped.load(Ordering::Relaxed) {
                cut = Some("stopped".to_owned());
            }
            // What has no end of its own must not spin while others wait for it.
            if segment.length.duration.is_none() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        Ok(Recorded {
            segment: segment.clone(),
            began_unix_ns: 1,
            total,
            timeline,
            cut,
            lost: Vec::new(),
            notes: Vec::new(),
        })
    }
}
