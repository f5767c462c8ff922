//! A stored run as a trace for Perfetto (ui.perfetto.dev) and whatever else reads Chrome's trace
//! events in JSON.
//!
//! Format: "Trace Event Format", Google, 2016; times are microseconds, here since the start of the
//! run. What is no process has the place of one, so that each kind of thing can be folded away.

mod events;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;

use lab_lifecycle::{Row, Table};
use lab_store::{
    EntityCount, Event, EventKind, LoopTurn, ProbeSample, ProcessSample, RunFile, RunFolder,
};
use serde_json::json;

use crate::{ReportError, timelines};
use events::Events;

/// Places of what is no process; those of lifecycles and systems come after them.
const RUN: u64 = 1;
const LOADS: u64 = 2;
const PROBES: u64 = 3;
const LOOPS: u64 = 4;
const FIRST: u64 = 10;
/// The track of the steps.
const STEPS: u64 = 1;

/// What was left out of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The lifecycle.
    pub lifecycle: String,
    /// Entities of it that are not in the trace.
    pub entities: usize,
}

/// Writes a run that has ended as a trace: steps, faults and what happened to the run, entities with
/// their phases, loads, probes, loops and processes. Of each lifecycle it takes the `most` entities
/// whose life took longest, and says how many it left out.
///
/// # Errors
/// When the run cannot be read, and when `out` takes no more.
pub fn perfetto(
    run: &RunFolder,
    most: usize,
    out: impl Write,
) -> Result<Vec<LeftOut>, ReportError> {
    let environment = run.environment()?;
    let end_s = run.verdict()?.duration_s;
    let mut events = Events::begin(out)?;
    run_events(run, end_s, &mut events)?;
    faults(run, end_s, &mut events)?;
    counts(run, &mut events)?;
    loads(run, environment.started_at_unix_ns, &mut events)?;
    probes(run, &mut events)?;
    loops(run, &mut events)?;
    let mut place = FIRST;
    let left_out = lifecycles(run, most, &mut place, &mut events)?;
    processes(run, &mut place, &mut events)?;
    events.end()?;
    Ok(left_out)
}

type Done = Result<(), ReportError>;

/// Steps as slices, everything else that happened to the run as a moment.
fn run_events(run: &RunFolder, end_s: f64, events: &mut Events<impl Write>) -> Done {
    events.process(RUN, "run")?;
    events.thread(RUN, STEPS, "steps")?;
    let mut begun: Option<Event> = None;
    for event in run.records::<Event>()? {
        match event.kind {
            EventKind::StepStarted => {
                step(begun.replace(event.clone()), event.t_s, events)?;
            }
            EventKind::StepEnded | EventKind::StepFailed | EventKind::TearDown => {
                step(begun.take(), event.t_s, events)?;
            }
            _ => {}
        }
        let kind = serde_json::to_value(event.kind).map_err(ReportError::Encode)?;
        let kind = kind.as_str().unwrap_or_default();
        let name = match event.name.is_empty() {
            true => kind.to_owned(),
            false => format!("{kind}: {}", event.name),
        };
        events.moment(RUN, &name, event.t_s, json!({"text": event.text}))?;
    }
    step(begun, end_s, events)
}

fn step(begun: Option<Event>, end_s: f64, events: &mut Events<impl Write>) -> Done {
    let Some(begun) = begun else { return Ok(()) };
    let length = end_s - begun.t_s;
    events.slice((RUN, STEPS), &begun.name, begun.t_s, length, json!({}))
}

/// Faults may overlap, so each has a track of its own.
fn faults(run: &RunFolder, end_s: f64, events: &mut Events<impl Write>) -> Done {
    for (number, fault) in (STEPS + 1..).zip(run.faults()?) {
        let name = format!("{} {}", fault.kind, fault.targets.join(", "));
        events.thread(RUN, number, "fault")?;
        let length = fault.end_s.unwrap_or(end_s) - fault.begin_s;
        let effects: Vec<String> = fault.effects.into_iter().map(|one| one.text).collect();
        let about = json!({"step": fault.step, "ended": fault.text, "effects": effects});
        events.slice((RUN, number), &name, fault.begin_s, length, about)?;
    }
    Ok(())
}

/// How many entities are in each state.
fn counts(run: &RunFolder, events: &mut Events<impl Write>) -> Done {
    for count in run.records::<EntityCount>()? {
        let value = json!({count.state: count.count});
        events.counter(RUN, &count.what, count.t_s, value)?;
    }
    Ok(())
}

fn loads(run: &RunFolder, origin_ns: i64, events: &mut Events<impl Write>) -> Done {
    let names = run.load_names()?;
    if !names.is_empty() {
        events.process(LOADS, "loads")?;
    }
    for name in names {
        let summary = run.load(&name)?.summary;
        let began_s = (summary.began_unix_ns - origin_ns) as f64 / 1e9;
        let rates = format!("{name} rate (/s)");
        let latency = format!("{name} latency (ms)");
        let (mut ended_s, mut has_latency) = (None, false);
        for slot in summary.timeline.iter().filter(|slot| !slot.after_end) {
            let at = began_s + slot.t_s;
            ended_s = Some(at + slot.length_s);
            let rate = |count: u64| count as f64 / slot.length_s.max(f64::MIN_POSITIVE);
            let value = json!({"good": rate(slot.good), "failed": rate(slot.failed)});
            events.counter(LOADS, &rates, at, value)?;
            let ms = |seconds: Option<f64>| seconds.filter(|s| s.is_finite()).map(|s| s * 1e3);
            if let (Some(p50), Some(p99)) = (ms(slot.p50), ms(slot.p99)) {
                events.counter(LOADS, &latency, at, json!({"p50": p50, "p99": p99}))?;
                has_latency = true;
            }
        }
        // A counter holds its value until the next one, and has no gaps.
        if let Some(at) = ended_s {
            events.counter(LOADS, &rates, at, json!({"good": 0.0, "failed": 0.0}))?;
            if has_latency {
                events.counter(LOADS, &latency, at, json!({"p50": 0.0, "p99": 0.0}))?;
            }
        }
    }
    Ok(())
}

/// Tries as slices, a track for each copy that was asked; values as counters.
fn probes(run: &RunFolder, events: &mut Events<impl Write>) -> Done {
    let mut tracks: BTreeMap<(String, String), u64> = BTreeMap::new();
    for try_ in run.records::<ProbeSample>()? {
        if tracks.is_empty() {
            events.process(PROBES, "probes")?;
        }
        let named = match try_.of.is_empty() {
            true => try_.probe.clone(),
            false => format!("{} of {}", try_.probe, try_.of),
        };
        let next = tracks.len() as u64 + 1;
        let key = (try_.probe.clone(), try_.of.clone());
        let track = *tracks.entry(key).or_insert(next);
        if track == next {
            events.thread(PROBES, track, &named)?;
        }
        let name = if try_.is_ok() { "ok" } else { "failed" };
        let about = json!({"answer": try_.text, "error": try_.error});
        events.slice((PROBES, track), name, try_.t_s, try_.latency_s, about)?;
        if let Some(value) = try_.value.filter(|value| value.is_finite()) {
            events.counter(PROBES, &named, try_.t_s, json!({"value": value}))?;
        }
    }
    Ok(())
}

fn loops(run: &RunFolder, events: &mut Events<impl Write>) -> Done {
    let mut tracks: Vec<String> = Vec::new();
    for turn in run.records::<LoopTurn>()? {
        if tracks.is_empty() {
            events.process(LOOPS, "loops")?;
        }
        let known = tracks.iter().position(|name| *name == turn.name);
        let track = known.unwrap_or(tracks.len()) as u64 + 1;
        if known.is_none() {
            events.thread(LOOPS, track, &turn.name)?;
            tracks.push(turn.name.clone());
        }
        events.slice(
            (LOOPS, track),
            &turn.name,
            turn.t_s,
            turn.duration_s,
            json!({}),
        )?;
    }
    Ok(())
}

/// A lifecycle has the place of a process, an entity that of a thread, a phase is a slice.
fn lifecycles(
    run: &RunFolder,
    most: usize,
    place: &mut u64,
    events: &mut Events<impl Write>,
) -> Result<Vec<LeftOut>, ReportError> {
    let mut left_out = Vec::new();
    for name in run.lifecycle_names()? {
        let table = timelines::read(&name, &run.file(RunFile::Lifecycle(&name)))?;
        events.process(*place, &table.name)?;
        let rows = longest(&table, most);
        if rows.len() < table.rows.len() {
            left_out.push(LeftOut {
                lifecycle: name,
                entities: table.rows.len() - rows.len(),
            });
        }
        for (track, row) in (1..).zip(rows) {
            entity((*place, track), &table.points, row, events)?;
        }
        *place += 1;
    }
    Ok(left_out)
}

/// The rows whose lives took longest, in the order of the table.
fn longest(table: &Table, most: usize) -> Vec<&Row> {
    let mut order: Vec<usize> = (0..table.rows.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(table.rows[at].length_ns()));
    let chosen: BTreeSet<usize> = order.into_iter().take(most).collect();
    chosen.into_iter().map(|at| &table.rows[at]).collect()
}

fn entity(
    place: (u64, u64),
    points: &[String],
    row: &Row,
    events: &mut Events<impl Write>,
) -> Done {
    events.thread(place.0, place.1, &row.id)?;
    let seen = points.iter().zip(&row.at_ns);
    let mut seen = seen.filter_map(|(point, at)| Some((point, (*at)?)));
    let Some(mut before) = seen.next() else {
        return Ok(());
    };
    for now in seen {
        let name = format!("{} → {}", before.0, now.0);
        let (at, length) = (before.1 as f64 / 1e9, (now.1 - before.1) as f64 / 1e9);
        let about = json!({"group": row.group.as_deref()});
        // What runs backwards has no length, and says so.
        let about = if length < 0.0 {
            json!({"backwards_s": -length})
        } else {
            about
        };
        events.slice(place, &name, at, length, about)?;
        before = now;
    }
    Ok(())
}

/// What each system used, a process each.
fn processes(run: &RunFolder, place: &mut u64, events: &mut Events<impl Write>) -> Done {
    let mut places: BTreeMap<String, u64> = BTreeMap::new();
    for sample in run.records::<ProcessSample>()? {
        let known = places.get(&sample.system).copied();
        let at = match known {
            Some(at) => at,
            None => {
                events.process(*place, &sample.system)?;
                places.insert(sample.system.clone(), *place);
                *place += 1;
                *place - 1
            }
        };
        let t = sample.t_s;
        events.counter(at, "processors", t, json!({"cores": sample.cpu_cores}))?;
        events.counter(at, "memory (bytes)", t, json!({"rss": sample.rss_bytes}))?;
        events.counter(at, "descriptors", t, json!({"open": sample.fds}))?;
        events.counter(at, "threads", t, json!({"count": sample.threads}))?;
    }
    Ok(())
}

/// The file that a trace is written to.
///
/// # Errors
/// When the run cannot be read, and when the file cannot be written.
pub fn perfetto_file(
    run: &RunFolder,
    most: usize,
    path: &std::path::Path,
) -> Result<Vec<LeftOut>, ReportError> {
    let file = File::create(path).map_err(|cause| ReportError::Write {
        path: path.to_owned(),
        cause,
    })?;
    let mut out = std::io::BufWriter::new(file);
    let left_out = perfetto(run, most, &mut out)?;
    out.flush().map_err(ReportError::Trace)?;
    Ok(left_out)
}

#[cfg(test)]
mod tests;
