//! From a recording to the numbers that people read.

use measure::HistogramError;
use units::write_duration;

use super::{
    Bytes, Counts, Distribution, ErrorCount, GeneratorUse, Histograms, KindSummary, Latency, Rates,
    SCHEMA, Summary,
};
use crate::recording::{Recorded, Recording, Span};
use crate::segment::Model;
use crate::validity::{self, Between, sending_time};
use crate::workload::{Pace, Workload};

use super::part::{WarmUp, steady_part};

impl Summary {
    /// The result of a load, its warm-up found automatically.
    ///
    /// `name` and `target` are as people wrote them. `capacity`, `floor` and `notes`
    /// stay empty; whoever knows them adds them.
    ///
    /// # Errors
    /// When a histogram cannot be written.
    pub fn of(
        name: &str,
        target: &str,
        workload: &Workload,
        recorded: &Recorded,
    ) -> Result<Self, HistogramError> {
        Self::after(WarmUp::Auto, name, target, workload, recorded)
    }

    /// As [`Summary::of`], with a warm-up that was asked for.
    ///
    /// # Errors
    /// When a histogram cannot be written.
    pub fn after(
        warm_up: WarmUp,
        name: &str,
        target: &str,
        workload: &Workload,
        recorded: &Recorded,
    ) -> Result<Self, HistogramError> {
        let (steady, part) = steady_part(warm_up, recorded);
        let requests = part.requests();
        let open = matches!(recorded.segment.model, Model::Open(_));
        let seconds = (steady.to_s - steady.from_s).max(f64::MIN_POSITIVE);
        Ok(Self {
            schema: SCHEMA,
            name: name.to_owned(),
            target: target.to_owned(),
            model: if open { "open" } else { "closed" }.to_owned(),
            arrivals: arrivals(workload, &recorded.segment.model),
            began_unix_ns: recorded.began_unix_ns,
            duration_s: recorded.total.length.as_secs_f64(),
            partial: recorded.cut.clone(),
            validity: validity::check(workload, recorded),
            rate: Rates {
                asked: open.then(|| part.planned as f64 / seconds),
                sent: requests.sent as f64 / seconds,
                good: requests.good() as f64 / seconds,
            },
            requests: Counts::of(part.planned, &requests),
            latency: Latency::of(workload, &requests),
            lateness: (&requests.lateness).into(),
            statuses: requests.statuses.clone(),
            errors: errors(&requests),
            refusals: requests.refusals.clone(),
            bytes: Bytes {
                sent: requests.bytes_sent,
                received: requests.bytes_received,
            },
            connections: recorded.total.connections.clone(),
            generator: generator(workload, recorded, &part, &requests),
            kinds: kinds(workload, &part),
            timeline: recorded.timeline.spans().iter().map(Into::into).collect(),
            histograms: Histograms {
                intended: requests.intended.to_base64()?,
                actual: requests.actual.to_base64()?,
                lateness: requests.lateness.to_base64()?,
            },
            capacity: None,
            floor: None,
            notes: Vec::new(),
            steady,
        })
    }
}

/// Arrivals in words.
fn arrivals(workload: &Workload, model: &Model) -> String {
    match model {
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

impl Counts {
    fn of(planned: u64, requests: &Recording) -> Self {
        Self {
            planned,
            sent: requests.sent,
            waited: requests.waited,
            answered: requests.answered,
            refused: requests.refused,
            errors: requests.failed(),
            retried: requests.retried,
        }
    }
}

impl Latency {
    fn of(workload: &Workload, requests: &Recording) -> Self {
        let told =
            |all, doubt| Distribution::of(&Between::of(all, doubt), workload.guard.late_after);
        Self {
            intended: told(&requests.intended, &requests.intended_doubt),
            actual: told(&requests.actual, &requests.actual_doubt),
        }
    }
}

/// The most frequent first.
fn errors(requests: &Recording) -> Vec<ErrorCount> {
    let mut errors: Vec<ErrorCount> = requests
        .errors
        .iter()
        .map(|(failure, count)| ErrorCount {
            phase: failure.phase,
            cause: failure.cause.clone(),
            count: *count,
        })
        .collect();
    errors.sort_by_key(|error| std::cmp::Reverse(error.count));
    errors
}

fn generator(
    workload: &Workload,
    recorded: &Recorded,
    part: &Span,
    requests: &Recording,
) -> GeneratorUse {
    let threads = recorded.total.threads_cpu.len();
    let threads = match u32::try_from(threads) {
        Ok(0) | Err(_) => workload.share.threads,
        Ok(threads) => threads,
    };
    let cpu_s: f64 = recorded
        .total
        .threads_cpu
        .iter()
        .map(|cpu| cpu.as_secs_f64())
        .sum();
    let sent: u64 = recorded.total.kinds.iter().map(|kind| kind.sent).sum();
    let busiest = part.threads_cpu.iter().max().copied().unwrap_or_default();
    let sending = sending_time(recorded, part).max(f64::MIN_POSITIVE);
    let length = part.length.as_secs_f64().max(f64::MIN_POSITIVE);
    let slots = recorded.timeline.spans().iter();
    GeneratorUse {
        threads,
        workers: threads.div_ceil(workload.threads.max(1)),
        cpu_s,
        cpu_per_request_s: (sent > 0).then(|| cpu_s / sent as f64),
        busiest_thread: busiest.as_secs_f64() / sending,
        pace: pace(workload.pace),
        steal: slots.map(|span| span.machine.steal).fold(0.0, f64::max),
        in_flight: part.in_flight_seconds / length,
        in_flight_little: (requests.actual.sum_seconds() + requests.retried_seconds) / length,
        waited_s: recorded.total.delays.waited.as_secs_f64(),
        stopped_s: recorded.total.delays.stopped.as_secs_f64(),
        read_late_s: recorded.total.delays.longest.as_secs_f64(),
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
    let steps = workload
        .mix
        .journeys
        .iter()
        .flat_map(|journey| &journey.steps);
    let named = steps.zip(&part.kinds);
    named
        .map(|(step, requests)| KindSummary {
            name: step.name.clone(),
            requests: Counts::of(requests.sent, requests),
            latency: Latency::of(workload, requests),
            statuses: requests.statuses.clone(),
        })
        .collect()
}
