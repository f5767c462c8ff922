//! Reading the numbers of a run.

use std::collections::BTreeMap;

use lab_store::{
    EntityCount, Event, EventKind, LoopTurn, ProbeSample, ProcessSample, RunFolder, StoredLoad,
};

use super::{
    CORES, DESCRIPTORS, ENTITIES, FAULT, LOAD_BACKLOG, LOAD_IN_FLIGHT, LOAD_LATENCY, LOAD_RATE,
    LOOP, Labels, MEMORY, METRICS, Metric, PROBE_LATENCY, PROBE_UP, PROBE_VALUE, STEP, Sample,
    Series, THREADS,
};
use crate::ReportError;

/// A number that holds is said again after so long: Prometheus takes one for gone that it has not
/// heard of for five minutes.
const AGAIN_NS: i64 = 60_000_000_000;
const MILLISECOND_NS: i64 = 1_000_000;

/// Every number of a run that has ended, by metric and labels. Each series has the label `run`, the
/// run's identity, and ends with the run, or with its own last sample if that came later; those of a
/// load end with the load.
///
/// # Errors
/// When the run cannot be read.
pub fn gather(run: &RunFolder) -> Result<Vec<Series>, ReportError> {
    let environment = run.environment()?;
    let end_s = run.verdict()?.duration_s;
    let mut numbers = Numbers::default();
    steps(run, end_s, &mut numbers)?;
    for count in run.records::<EntityCount>()? {
        let of = [("state", count.state), ("what", count.what)];
        numbers.add(ENTITIES, of, count.t_s, count.count as f64);
    }
    loads(run, environment.started_at_unix_ns, &mut numbers)?;
    for try_ in run.records::<ProbeSample>()? {
        let of = || [("of", try_.of.clone()), ("probe", try_.probe.clone())];
        let ended_s = try_.t_s + try_.latency_s;
        let up = f64::from(u8::from(try_.is_ok()));
        numbers.add(PROBE_UP, of(), ended_s, up);
        numbers.add(PROBE_LATENCY, of(), ended_s, try_.latency_s);
        if let Some(value) = try_.value {
            numbers.add(PROBE_VALUE, of(), ended_s, value);
        }
    }
    for turn in run.records::<LoopTurn>()? {
        let of = [("loop", turn.name)];
        numbers.add(LOOP, of, turn.t_s + turn.duration_s, turn.duration_s);
    }
    for sample in run.records::<ProcessSample>()? {
        let of = || [("system", sample.system.clone())];
        numbers.add(CORES, of(), sample.t_s, sample.cpu_cores);
        numbers.add(MEMORY, of(), sample.t_s, sample.rss_bytes as f64);
        numbers.add(DESCRIPTORS, of(), sample.t_s, sample.fds as f64);
        numbers.add(THREADS, of(), sample.t_s, sample.threads as f64);
    }
    Ok(numbers.into_series(environment.started_at_unix_ns, end_s, &environment.run_id))
}

/// Steps and faults: 1 from their start, 0 from their end.
fn steps(run: &RunFolder, end_s: f64, numbers: &mut Numbers) -> Result<(), ReportError> {
    let mut begun: Option<Event> = None;
    let mut over = |begun: Option<Event>, end_s: f64| {
        if let Some(event) = begun {
            let of = || [("step", event.name.clone())];
            numbers.add(STEP, of(), event.t_s, 1.0);
            numbers.add(STEP, of(), end_s, 0.0);
        }
    };
    for event in run.records::<Event>()? {
        let now_s = event.t_s;
        match event.kind {
            EventKind::StepStarted => over(begun.replace(event), now_s),
            EventKind::StepEnded | EventKind::StepFailed | EventKind::TearDown => {
                over(begun.take(), now_s);
            }
            _ => {}
        }
    }
    over(begun, end_s);
    for fault in run.faults()? {
        let of = || {
            let targets = fault.targets.join(", ");
            [("kind", fault.kind.clone()), ("targets", targets)]
        };
        numbers.add(FAULT, of(), fault.begin_s, 1.0);
        numbers.add(FAULT, of(), fault.end_s.unwrap_or(end_s), 0.0);
    }
    Ok(())
}

/// What is known of a stretch of time is told at its end.
fn loads(run: &RunFolder, origin_ns: i64, numbers: &mut Numbers) -> Result<(), ReportError> {
    for name in run.load_names()? {
        // The names of the file's own fields: its name is made of them, and cut.
        let StoredLoad { step, summary } = run.load(&name)?;
        let began_s = (summary.began_unix_ns - origin_ns) as f64 / 1e9;
        let own = [("load", summary.name.clone())].into_iter();
        let own: Labels = own.chain(step.map(|step| ("step", step))).collect();
        let of = |name, value: &str| {
            let mut labels = own.clone();
            labels.insert(1, (name, value.to_owned()));
            labels
        };
        for slot in summary.timeline.iter().filter(|slot| !slot.after_end) {
            let at = began_s + slot.t_s + slot.length_s;
            numbers.loads_end_s.insert(own.clone(), at);
            for (outcome, count) in [
                ("planned", slot.planned),
                ("sent", slot.sent),
                ("good", slot.good),
                ("failed", slot.failed),
            ] {
                // A stretch without a length has no rate, which is left out.
                let rate = count as f64 / slot.length_s;
                numbers.add(LOAD_RATE, of("outcome", outcome), at, rate);
            }
            for (quantile, latency) in [("0.5", slot.p50), ("0.99", slot.p99), ("1", slot.max)] {
                let latency = latency.unwrap_or(f64::NAN);
                numbers.add(LOAD_LATENCY, of("quantile", quantile), at, latency);
            }
            numbers.add(LOAD_IN_FLIGHT, own.clone(), at, slot.in_flight as f64);
            numbers.add(LOAD_BACKLOG, own.clone(), at, slot.backlog as f64);
        }
    }
    Ok(())
}

/// The labels by which loads are told apart: those that go on over steps have no step.
const OF_LOADS: [&str; 2] = ["load", "step"];

/// Numbers by metric and labels, as they are found.
#[derive(Default)]
struct Numbers {
    found: BTreeMap<(&'static str, Labels), Vec<(f64, f64)>>,
    /// When each load ended, by its labels.
    loads_end_s: BTreeMap<Labels, f64>,
}

impl Numbers {
    /// Adds a number at a time of the run; what is not finite is left out. Labels come sorted.
    fn add(
        &mut self,
        metric: Metric,
        labels: impl IntoIterator<Item = (&'static str, String)>,
        at_s: f64,
        value: f64,
    ) {
        if at_s.is_finite() && value.is_finite() {
            let series = self
                .found
                .entry((metric.name, labels.into_iter().collect()))
                .or_default();
            series.push((at_s, value));
        }
    }

    fn into_series(self, origin_ns: i64, end_s: f64, run: &str) -> Vec<Series> {
        let unix_ns = |at_s: f64| origin_ns.saturating_add((at_s * 1e9).round() as i64);
        let loads_end_s = self.loads_end_s;
        let all = self
            .found
            .into_iter()
            .filter_map(|((name, mut labels), found)| {
                let metric = *METRICS.iter().find(|metric| metric.name == name)?;
                let of_load = labels.iter().filter(|(name, _)| OF_LOADS.contains(name));
                let of_load = loads_end_s.get(&of_load.cloned().collect::<Labels>());
                let end_ns = unix_ns(of_load.copied().unwrap_or(end_s));
                labels.push(("run", run.to_owned()));
                labels.sort_unstable();
                let found = found
                    .into_iter()
                    .map(|(at_s, value)| (unix_ns(at_s), value));
                Some(Series {
                    metric,
                    labels,
                    samples: samples(found.collect(), metric.held, end_ns),
                })
            });
        all.collect()
    }
}

/// What was found, as samples: in order, of each millisecond the last, and what holds said again.
fn samples(mut found: Vec<(i64, f64)>, held: bool, end_ns: i64) -> Vec<Sample> {
    found.sort_by_key(|(at, _)| *at);
    let mut samples: Vec<Sample> = Vec::with_capacity(found.len() + 1);
    let mut push = |unix_ns: i64, value: Option<f64>| {
        let sample = Sample { unix_ns, value };
        match samples.last_mut() {
            Some(last) if last.unix_ns / MILLISECOND_NS >= unix_ns / MILLISECOND_NS => {
                *last = sample;
            }
            _ => samples.push(sample),
        }
    };
    let nexts = found.iter().skip(1).map(|(at, _)| *at);
    for ((at, value), next) in found.iter().zip(nexts.chain([end_ns])) {
        push(*at, Some(*value));
        if held {
            let mut again = at.saturating_add(AGAIN_NS);
            while again < next {
                push(again, Some(*value));
                again = again.saturating_add(AGAIN_NS);
            }
        }
    }
    let last_ns = found.last().map_or(end_ns, |(at, _)| *at);
    push(end_ns.max(last_ns).saturating_add(MILLISECOND_NS), None);
    samples
}
