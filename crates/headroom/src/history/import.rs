//! Histories and results of other programs.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use lab_judgement::{Direction, Fingerprint, Metric, MetricValue, Record, Unit, read_records};
use measure::Machine;
use serde::Deserialize;

use super::{ImportArgs, read_text};
use crate::gate::{Better, chosen, unit_of};

pub(crate) const AFTER_HELP: &str = "\
Two forms are read:
  the lines of another history (docs/judgement.md)
  [{ \"name\": \"parse\", \"unit\": \"ns/iter\", \"value\": 120 }, …], as many benchmark actions have it: one run, of
  --commit, made on this machine

ns, us, ms and s, bytes and their multiples, % and /s are units, also with /iter or /op behind them; every other one
is a count.";

/// Most metrics of a run.
const METRICS_MOST: usize = 10_000;

/// An entry of a list of metrics.
#[derive(Deserialize)]
struct Entry {
    name: String,
    #[serde(default)]
    unit: String,
    value: f64,
}

pub(super) fn records(args: &ImportArgs) -> Result<Vec<Record>> {
    let text = read_text(&args.results)?;
    let reading = || format!("read {}", args.results.display());
    if !text.trim_start().starts_with('[') {
        let mut records = read_records(&text).with_context(reading)?;
        if let Some(commit) = &args.commit {
            match &mut records[..] {
                [one] => one.commit.clone_from(commit),
                many => bail!(
                    "{}: --commit is that of one run, found {}",
                    reading(),
                    many.len()
                ),
            }
        }
        return Ok(records);
    }
    let entries: Vec<Entry> = serde_json::from_str(&text).with_context(reading)?;
    let Some(commit) = &args.commit else {
        bail!(
            "{}: say with --commit which version was measured",
            reading()
        );
    };
    if entries.is_empty() || entries.len() > METRICS_MOST {
        let count = entries.len();
        bail!(
            "{}: expected 1 to {METRICS_MOST} metrics, found {count}",
            reading()
        );
    }
    let metrics = entries
        .into_iter()
        .map(|entry| metric(entry, args))
        .collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |now| i64::try_from(now.as_nanos()).unwrap_or(i64::MAX));
    let stem = args.results.file_stem();
    let stem = stem.map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    // Several results of a commit are runs of their own.
    let short: String = commit.chars().take(12).collect();
    let run = format!("{stem}-{short}-{}", now / 1_000_000);
    Ok(vec![Record::new(
        run,
        commit.clone(),
        now,
        here(&stem),
        metrics,
    )])
}

fn metric(entry: Entry, args: &ImportArgs) -> MetricValue {
    let word = entry.unit.trim();
    let word = ["/iter", "/op"]
        .iter()
        .find_map(|end| word.strip_suffix(end))
        .unwrap_or(word);
    let (factor, unit) = unit_of(word).unwrap_or((1.0, Unit::Count));
    let direction = match chosen(&args.better, &entry.name) {
        Some(Better::Higher) => Direction::HigherIsBetter,
        Some(Better::Lower) => Direction::LowerIsBetter,
        None if unit == Unit::PerSecond => Direction::HigherIsBetter,
        None => Direction::LowerIsBetter,
    };
    MetricValue {
        value: entry.value * factor,
        metric: Metric {
            name: entry.name,
            unit,
            direction,
        },
        replicates: Vec::new(),
    }
}

/// This machine; results of one name are compared with each other.
fn here(name: &str) -> Fingerprint {
    let machine = Machine::detect();
    Fingerprint {
        plan_hash: name.to_owned(),
        cpu_model: machine.cpu_model,
        cores: machine.cores,
        memory_bytes: machine.memory_bytes,
        kernel: machine.kernel,
        headroom_version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Fingerprint::default()
    }
}
