//! Histories and results of other programs.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use lab_judgement::{Direction, Fingerprint, Metric, MetricValue, Record, Unit, read_records};
use measure::{Clock, Machine};
use serde::Deserialize;

use super::{ImportArgs, New, read_text};
use crate::gate::{ForMetric, chosen, unit_of};

pub(crate) const AFTER_HELP: &str = "\
Two forms are read:
  the lines of another history (docs/judgement.md)
  [{ \"name\": \"parse\", \"unit\": \"ns/iter\", \"value\": 120 }, …], as many benchmark actions have it: one run, of
  --commit, made on this machine

ns, us, ms and s, bytes and their multiples, and % are units, also with /iter or /op behind them. What ends with /s
or /sec is a rate, of which more is better: ops/s, MiB/s. Every other unit is a count.

Whatever its file is called, a list can be compared with others of its --name, made on the same machine.";

/// Most metrics of a run.
const METRICS_MOST: usize = 10_000;

/// Most names of metrics that an error lists.
const NAMES_SHOWN: usize = 20;

/// An entry of a list of metrics.
#[derive(Deserialize)]
struct Entry {
    name: String,
    #[serde(default)]
    unit: String,
    value: f64,
}

pub(super) fn records(args: &ImportArgs) -> Result<New> {
    let text = read_text(&args.results)?;
    // Some editors and shells put a mark before a text.
    let text = text.trim_start_matches('\u{feff}');
    let reading = || format!("read {}", args.results.display());
    if !text.trim_start().starts_with('[') {
        let mut records = read_records(text).with_context(reading)?;
        if !args.better.is_empty() {
            bail!(
                "{}: a history says itself which way its metrics get better; leave --better out",
                reading()
            );
        }
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
        return Ok(New {
            records,
            lines: Some((args.results.clone(), first_lines(text))),
        });
    }
    let entries: Vec<Entry> = serde_json::from_str(text).with_context(reading)?;
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
    let known = |name: &String| entries.iter().any(|entry| entry.name == *name);
    let mut named = args.better.iter().filter_map(ForMetric::metric);
    if let Some(name) = named.find(|name| !known(name)) {
        let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        let shown = names[..names.len().min(NAMES_SHOWN)].join(", ");
        bail!(
            "{}: no metric is called \"{name}\"; there is {shown}",
            reading()
        );
    }
    let metrics = entries
        .into_iter()
        .map(|entry| metric(entry, args))
        .collect();
    let now = Clock::start().origin_unix_ns();
    // Several results of a commit are runs of their own, also those of one moment.
    let short: String = commit.chars().take(12).collect();
    let run = format!("{}-{short}-{now}", args.name);
    Ok(New::one(Record::new(
        run,
        commit.clone(),
        now,
        here(&args.name),
        metrics,
    )))
}

/// The number of the first line about each run, in the order of a history that can be read.
fn first_lines(text: &str) -> Vec<usize> {
    #[derive(Deserialize)]
    struct OfRun {
        run: String,
    }
    let mut runs = BTreeSet::new();
    let numbered = (1..).zip(text.lines());
    let first = numbered.filter(|(_, line)| {
        let of = serde_json::from_str::<OfRun>(line);
        of.is_ok_and(|of| runs.insert(of.run))
    });
    first.map(|(number, _)| number).collect()
}

/// A unit of rates as how much a second it is: `MiB/s`, `req/sec`. Of what is no size, 1 each.
fn rate_of(word: &str) -> Option<f64> {
    let ends = ["/s", "/sec", "/second", " per second"];
    let of = ends.iter().find_map(|end| word.strip_suffix(end));
    if let Some(of) = of {
        return match unit_of(of.trim()) {
            Some((factor, Unit::Bytes)) => Some(factor),
            // A time in a time is a share of it, and no rate.
            Some((_, Unit::Seconds)) => None,
            _ => Some(1.0),
        };
    }
    ["rps", "qps", "tps"].contains(&word).then_some(1.0)
}

fn metric(entry: Entry, args: &ImportArgs) -> MetricValue {
    let word = entry.unit.trim();
    let word = ["/iter", "/op"]
        .iter()
        .find_map(|end| word.strip_suffix(end))
        .unwrap_or(word);
    let rate = rate_of(word).map(|factor| (factor, Unit::PerSecond));
    let (factor, unit) = rate.or_else(|| unit_of(word)).unwrap_or((1.0, Unit::Count));
    let usual = match unit {
        Unit::PerSecond => Direction::HigherIsBetter,
        _ => Direction::LowerIsBetter,
    };
    MetricValue {
        value: entry.value * factor,
        metric: Metric {
            direction: chosen(&args.better, &entry.name).unwrap_or(usual),
            name: entry.name,
            unit,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(unit: &str) -> (f64, Unit, Direction) {
        let args = ImportArgs {
            results: "r.json".into(),
            commit: None,
            name: "imported".into(),
            better: Vec::new(),
            history: crate::history::HistoryFile {
                file: "h.jsonl".into(),
                store: None,
            },
        };
        let entry = Entry {
            name: "it".into(),
            unit: unit.into(),
            value: 2.0,
        };
        let found = metric(entry, &args);
        (found.value, found.metric.unit, found.metric.direction)
    }

    #[test]
    fn the_lines_of_runs_are_the_first_about_each() {
        let line =
            |run: &str| format!("{{\"run\": \"{run}\", \"commit\": \"c\", \"metrics\": []}}\n");
        let text = format!("{}\n{}{}{}", line("a"), line("b"), line("a"), line("c"));
        assert_eq!(first_lines(&text), [1, 3, 5]);
        assert_eq!(first_lines(""), Vec::<usize>::new());
    }

    #[test]
    fn of_rates_more_is_better_and_of_all_else_less() {
        let (higher, lower) = (Direction::HigherIsBetter, Direction::LowerIsBetter);
        for unit in [
            "/s",
            "ops/s",
            "req/s",
            "ops/sec",
            "events/s",
            "1/s",
            "rows per second",
            "rps",
        ] {
            assert_eq!(read(unit), (2.0, Unit::PerSecond, higher), "{unit}");
        }
        assert_eq!(read("MB/s"), (2e6, Unit::PerSecond, higher));
        assert_eq!(read("MiB/s"), (2_097_152.0, Unit::PerSecond, higher));
        for (unit, value, of) in [
            ("ns/iter", 2e-9, Unit::Seconds),
            ("B/op", 2.0, Unit::Bytes),
            ("bytes", 2.0, Unit::Bytes),
            ("TiB", 2.0 * 1024_f64.powi(4), Unit::Bytes),
            ("allocs/op", 2.0, Unit::Count),
            ("%", 0.02, Unit::Share),
            ("ms/s", 2.0, Unit::Count),
            ("", 2.0, Unit::Count),
        ] {
            let found = read(unit);
            assert!((found.0 / value - 1.0).abs() < 1e-12, "{unit} {found:?}");
            assert_eq!((found.1, found.2), (of, lower), "{unit}");
        }
    }
}
