//! From a recording to the numbers that people read.

use std::collections::BTreeMap;
use std::time::Duration;

use measure::HistogramError;
use units::write_duration;

use super::{
    AfterEnd, Bytes, Counts, Distribution, ErrorCount, GeneratorUse, Histograms, KindSummary,
    Latency, Rates, SCHEMA, Slot, Summary, WarmUp, notes,
};
use crate::arrivals::{Arrivals, Shape};
use crate::recording::{Recorded, Recording, Span, Tried};
use crate::segment::Model;
use crate::steady;
use crate::validity::{self, Between};
use crate::workload::{Pace, Protocol, Workload};

impl Summary {
    /// The result of a load; `warm_up` says what is made of its start.
    ///
    /// `name` and `target` are as people wrote them. `capacity` and `floor` stay empty, and
    /// `notes` has what was seen alone; whoever knows more adds it.
    ///
    /// # Errors
    /// When a histogram cannot be written.
    pub fn of(
        warm_up: WarmUp,
        name: &str,
        target: &str,
        workload: &Workload,
        recorded: &Recorded,
    ) -> Result<Self, HistogramError> {
        let judged = steady::judged(recorded, warm_up.left_out());
        let requests = judged.total.requests();
        let own = recorded.sending();
        let steady = warm_up.steady(workload, recorded);
        let asked = matches!(warm_up, WarmUp::Fixed(_));
        let rate = Rates::of(recorded);
        Ok(Self {
            schema: SCHEMA,
            name: name.to_owned(),
            target: target.to_owned(),
            model: if recorded.segment.model.is_open() {
                "open"
            } else {
                "closed"
            }
            .to_owned(),
            arrivals: arrivals(workload, &recorded.segment.model),
            began_unix_ns: recorded.began_unix_ns,
            duration_s: recorded.total.length.as_secs_f64(),
            partial: recorded.cut.clone(),
            validity: validity::check(workload, recorded),
            sending_s: own.length.as_secs_f64(),
            warm_up_s: if asked { steady.from_s } else { 0.0 },
            after_end: AfterEnd::of(recorded),
            notes: notes::redirects(workload, &requests)
                .into_iter()
                .chain(notes::stopped(recorded, &rate))
                .chain(notes::surplus(recorded))
                .chain(notes::unserved(recorded))
                .chain(recorded.notes.iter().cloned())
                .collect(),
            rate,
            requests: Counts::of(judged.total.planned, &requests),
            latency: Latency::of(workload, &requests),
            lateness: (&requests.lateness).into(),
            statuses: requests.statuses.clone(),
            status_names: status_names(workload, &requests),
            errors: errors(&requests),
            refusals: requests.refusals.clone(),
            bytes: Bytes {
                sent: requests.bytes_sent,
                received: requests.bytes_received,
            },
            connections: recorded.total.connections.clone(),
            generator: generator(workload, recorded, &own),
            kinds: kinds(workload, &judged.total),
            timeline: recorded
                .timeline
                .spans()
                .iter()
                .map(|span| Slot::of(span, workload.guard.late_after))
                .collect(),
            tenths: own.tenths,
            histograms: Histograms {
                intended: requests.intended.to_base64()?,
                actual: requests.actual.to_base64()?,
                lateness: requests.lateness.to_base64()?,
            },
            capacity: None,
            floor: None,
            steady,
        })
    }
}

/// Arrivals in words.
fn arrivals(workload: &Workload, model: &Model) -> String {
    match model {
        // The digits of a rate that a search or an expression found say nothing.
        Model::Open(Arrivals::Rate {
            process,
            shape: Shape::Constant(rate),
        }) if rate.fract() != 0.0 => {
            let shape = Shape::Constant(units::rate(*rate, 5).value);
            let process = *process;
            Arrivals::Rate { process, shape }.describe()
        }
        Model::Open(arrivals) => arrivals.describe(),
        Model::Closed { think } => {
            let users = workload.connections.held;
            let noun = if users == 1 { "user" } else { "users" };
            match think.is_zero() {
                true => format!("{users} {noun}"),
                false => format!("{users} {noun}, thinking {}", write_duration(*think)),
            }
        }
    }
}

/// gRPC's statuses have names that people know better than the numbers.
fn status_names(workload: &Workload, requests: &Recording) -> BTreeMap<u16, String> {
    let grpc = workload.target.protocol == Protocol::Grpc;
    let seen = requests.statuses.keys().filter(|_| grpc);
    seen.filter_map(|code| Some((*code, grpc_name(*code)?.to_owned())))
        .collect()
}

/// The name of a gRPC status.
fn grpc_name(code: u16) -> Option<&'static str> {
    const NAMES: [&str; 17] = [
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    ];
    NAMES.get(usize::from(code)).copied()
}

impl AfterEnd {
    fn of(recorded: &Recorded) -> Self {
        let after = recorded.after_end();
        let requests = after.requests();
        Self {
            length_s: after.length.as_secs_f64(),
            sent: requests.sent,
            answered: requests.answered,
            good: requests.good(),
            failed: requests.tried().failed,
        }
    }
}

impl Counts {
    pub(super) fn of(planned: u64, requests: &Recording) -> Self {
        let tried = requests.tried();
        Self {
            planned,
            sent: requests.sent,
            waited: requests.waited,
            answered: requests.answered,
            refused: requests.refused,
            errors: requests.failed(),
            retried: requests.retried,
            tried: tried.all,
            failed: tried.failed,
            failed_share: tried.share(),
            starved: requests.starved(),
        }
    }

    /// Fills in what an older version did not write.
    pub(super) fn complete(&mut self, unsendable: u64) {
        let tried = Tried {
            all: self.sent + unsendable,
            failed: self.refused + self.errors,
        };
        (self.tried, self.failed) = (tried.all, tried.failed);
        self.failed_share = tried.share();
    }
}

impl Latency {
    pub(super) fn of(workload: &Workload, requests: &Recording) -> Self {
        let told = |between| Distribution::of(&between, workload.guard.late_after);
        Self {
            intended: told(Between::intended(requests)),
            actual: told(Between::actual(requests)),
        }
    }
}

/// The most frequent first.
fn errors(requests: &Recording) -> Vec<ErrorCount> {
    let errors = requests.errors.iter();
    let errors = errors.map(|(failure, count)| ErrorCount {
        phase: failure.phase,
        cause: failure.cause.clone(),
        count: *count,
    });
    let mut errors: Vec<ErrorCount> = errors.collect();
    errors.sort_by_key(|error| std::cmp::Reverse(error.count));
    errors
}

fn generator(workload: &Workload, recorded: &Recorded, own: &Span) -> GeneratorUse {
    let threads = match u32::try_from(recorded.total.threads_cpu.len()) {
        Ok(0) | Err(_) => workload.share.threads,
        Ok(threads) => threads,
    };
    let total = &recorded.total;
    let cpu_s: f64 = total.threads_cpu.iter().map(Duration::as_secs_f64).sum();
    let sent: u64 = total.kinds.iter().map(|kind| kind.sent).sum();
    let busiest = own.threads_cpu.iter().max().copied().unwrap_or_default();
    let sending = own.length.as_secs_f64().max(f64::MIN_POSITIVE);
    // Each request is in flight as long as it takes, also beyond the end.
    let length = total.length.as_secs_f64().max(f64::MIN_POSITIVE);
    let latencies = total
        .kinds
        .iter()
        .map(|kind| kind.actual.sum_seconds() + kind.retried_seconds);
    let slots = recorded.timeline.spans().iter();
    GeneratorUse {
        threads,
        workers: threads.div_ceil(workload.threads.max(1)),
        cpu_s,
        cpu_per_request_s: (sent > 0).then(|| cpu_s / sent as f64),
        busiest_thread: busiest.as_secs_f64() / sending,
        pace: pace(workload.pace),
        steal: slots.map(|span| span.machine.steal).fold(0.0, f64::max),
        in_flight: total.in_flight_seconds / length,
        in_flight_little: latencies.sum::<f64>() / length,
        in_flight_most: recorded.segment.model.is_open().then(|| {
            let held = &workload.connections;
            u64::from(held.most) * u64::from(held.streams)
        }),
        waited_s: total.delays.waited.as_secs_f64(),
        stopped_s: total.delays.stopped.as_secs_f64(),
        read_late_s: total.delays.longest.as_secs_f64(),
    }
}

fn pace(pace: Pace) -> String {
    match pace {
        Pace::Exact => "exact".to_owned(),
        Pace::Spin => "spin".to_owned(),
        Pace::Tick(tick) => format!("tick {}", write_duration(tick)),
        Pace::Coalesce => "coalesce".to_owned(),
    }
}

/// Nothing when there is only one kind: it would say the same again.
fn kinds(workload: &Workload, part: &Span) -> Vec<KindSummary> {
    if part.kinds.len() < 2 {
        return Vec::new();
    }
    let journeys = workload.mix.journeys.iter();
    let steps = journeys.flat_map(|journey| &journey.steps);
    steps
        .zip(&part.kinds)
        .map(|(step, requests)| KindSummary {
            name: step.name.clone(),
            requests: Counts::of(requests.sent, requests),
            latency: Latency::of(workload, requests),
            statuses: requests.statuses.clone(),
        })
        .collect()
}
