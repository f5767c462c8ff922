//! What history keeps of a run: its metrics, at which commit, where.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Direction, Metric};

/// Version of the form of a line.
const SCHEMA: u32 = 1;

/// A line longer than this is none of ours.
const LINE_BYTES_MOST: usize = 16 << 20;

/// A run in a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of this form; 1 where it is missing.
    #[serde(default = "schema")]
    pub schema: u32,
    /// Identity of the run.
    pub run: String,
    /// What was measured: a commit of the system, or another name that says which version.
    pub commit: String,
    /// Start of the run in nanoseconds since the Unix epoch; 0: unknown.
    #[serde(default)]
    pub started_at_unix_ns: i64,
    /// Where and with what it was measured.
    #[serde(default)]
    pub environment: Fingerprint,
    /// What was measured.
    pub metrics: Vec<MetricValue>,
}

fn schema() -> u32 {
    SCHEMA
}

/// A metric of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricValue {
    /// Which.
    #[serde(flatten)]
    pub metric: Metric,
    /// Of the whole run, in the metric's unit.
    pub value: f64,
    /// Values from within the run, in order of time: what one run can be compared with another
    /// by. May be empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replicates: Vec<f64>,
}

/// Where and with what a run was made. What is empty, or 0, is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fingerprint {
    /// Hash of the experiment's plan, seed included.
    pub plan_hash: String,
    /// Model of the processor.
    pub cpu_model: String,
    /// Processors that the run could use.
    pub cores: u32,
    /// Memory of the machine in bytes.
    pub memory_bytes: u64,
    /// Kernel name and release.
    pub kernel: String,
    /// Version of the laboratory.
    pub headroom_version: String,
    /// Version of each further part, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, String>,
    /// What somebody did to the run while it was under way, in words: it is not the experiment
    /// that its plan says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_hand: Vec<String>,
}

impl Record {
    /// A record of this version's form.
    #[must_use]
    pub fn new(
        run: String,
        commit: String,
        started_at_unix_ns: i64,
        environment: Fingerprint,
        metrics: Vec<MetricValue>,
    ) -> Self {
        Self {
            schema: SCHEMA,
            run,
            commit,
            started_at_unix_ns,
            environment,
            metrics,
        }
    }

    /// What was measured of a metric.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<&MetricValue> {
        self.metrics.iter().find(|value| value.metric.name == name)
    }
}

/// How much a difference between two runs weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// To be said beside the comparison.
    Mentioned,
    /// The runs must not be compared: what differs is not only the program.
    Forbids,
}

/// Something in which two runs differ besides what they measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// How much it weighs.
    pub weight: Weight,
    /// In a sentence.
    pub sentence: String,
}

/// Metrics of any of the records, each as the first one that has it says.
#[must_use]
pub fn metrics_of<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<&'a Metric> {
    let mut found: Vec<&Metric> = Vec::new();
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for value in records.into_iter().flat_map(|record| &record.metrics) {
        if known.insert(&value.metric.name) {
            found.push(&value.metric);
        }
    }
    found
}

/// In what two runs differ that bears on comparing them, the weightiest first. They are comparable
/// when nothing forbids it. What only one of them measured is not told here.
#[must_use]
pub fn differences(base: &Record, new: &Record) -> Vec<Difference> {
    let (a, b) = (&base.environment, &new.environment);
    let mut found = [done_by_hand(base), done_by_hand(new)].concat();
    let mut differ = |weight, what: &str, a: &str, b: &str| {
        if a != b {
            let name = |text: &str| match text {
                "" => "unknown".to_owned(),
                text => text.to_owned(),
            };
            let sentence = format!("{what} differs: {} and {}", name(a), name(b));
            found.push(Difference { weight, sentence });
        }
    };
    let forbids = Weight::Forbids;
    differ(
        forbids,
        "the plan of the experiment",
        &a.plan_hash,
        &b.plan_hash,
    );
    differ(forbids, "the processor", &a.cpu_model, &b.cpu_model);
    let known = |number: u64, shown: String| match number {
        0 => String::new(),
        _ => shown,
    };
    let cores = [a, b].map(|at| known(at.cores.into(), at.cores.to_string()));
    differ(forbids, "the number of cores", &cores[0], &cores[1]);
    for one in &base.metrics {
        let Some(other) = new.metric(&one.metric.name) else {
            continue;
        };
        let name = &one.metric.name;
        let units = [one.metric.unit.word(), other.metric.unit.word()];
        differ(forbids, &format!("the unit of {name}"), units[0], units[1]);
        let ways = [&one.metric, &other.metric].map(|metric| match metric.direction {
            Direction::LowerIsBetter => "lower is better",
            Direction::HigherIsBetter => "higher is better",
        });
        differ(
            forbids,
            &format!("the direction of {name}"),
            ways[0],
            ways[1],
        );
    }
    let mentioned = Weight::Mentioned;
    let memory = [a, b].map(|at| known(at.memory_bytes, units::show_bytes(at.memory_bytes as f64)));
    differ(mentioned, "the memory", &memory[0], &memory[1]);
    differ(mentioned, "the kernel", &a.kernel, &b.kernel);
    differ(
        mentioned,
        "the version of headroom",
        &a.headroom_version,
        &b.headroom_version,
    );
    let parts: BTreeSet<&String> = a.versions.keys().chain(b.versions.keys()).collect();
    for part in parts {
        let version = |at: &Fingerprint| at.versions.get(part).cloned().unwrap_or_default();
        differ(
            mentioned,
            &format!("the version of {part}"),
            &version(a),
            &version(b),
        );
    }
    found
}

/// What was done by hand to a run, each in a sentence: it is another experiment than its plan says,
/// whatever it is compared with.
#[must_use]
pub fn done_by_hand(record: &Record) -> Vec<Difference> {
    let run = &record.run;
    let each = record.environment.by_hand.iter().map(|text| Difference {
        weight: Weight::Forbids,
        sentence: format!("{run} was changed by hand: {text}"),
    });
    each.collect()
}

/// Why a history cannot be read or written.
#[derive(Debug, Error)]
pub enum RecordError {
    /// A line that is no record.
    #[error(
        "line {line} of the history: expected the record of a run as JSON, found: {problem}; mend or remove the line"
    )]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A record that could not be read back.
    #[error("run \"{run}\" cannot be recorded: {problem}")]
    Unwritable {
        /// Its identity.
        run: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// Reads JSON Lines, a record each; empty lines are skipped, and so is a record that is there
/// already. Keys that are not known are ignored, so that an older version reads what a newer one added.
///
/// # Errors
/// The first line that is no record, has a metric twice or a later schema, or is of a run that an
/// earlier line says something else of.
pub fn read_records(text: &str) -> Result<Vec<Record>, RecordError> {
    let lines = text
        .lines()
        .zip(1..)
        .filter(|(line, _)| !line.trim().is_empty());
    let mut records: Vec<Record> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (text, line) in lines {
        let wrong = |problem| RecordError::Line { line, problem };
        let record = read_record(text).map_err(wrong)?;
        match places.get(&record.run) {
            None => {
                places.insert(record.run.clone(), records.len());
                records.push(record);
            }
            Some(at) if records[*at] == record => {}
            Some(_) => {
                let problem = format!("the run \"{}\" again, with other values", record.run);
                return Err(wrong(problem));
            }
        }
    }
    Ok(records)
}

fn read_record(text: &str) -> Result<Record, String> {
    #[derive(Deserialize)]
    struct SchemaOnly {
        #[serde(default = "schema")]
        schema: u32,
    }
    if text.len() > LINE_BYTES_MOST {
        return Err(format!("{} bytes, more than {LINE_BYTES_MOST}", text.len()));
    }
    let SchemaOnly { schema } = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if schema != SCHEMA {
        return Err(format!(
            "schema {schema}, and this version of headroom reads {SCHEMA}"
        ));
    }
    let record: Record = serde_json::from_str(text).map_err(|error| error.to_string())?;
    check(&record).map(|()| record)
}

/// A record as a line, its end included.
///
/// # Errors
/// A record that could not be read back: a value that is not finite, a metric twice, or
/// too long; and one of which a run, commit or metric has no name, or one of several lines.
pub fn write_record(record: &Record) -> Result<String, RecordError> {
    let unwritable = |problem| RecordError::Unwritable {
        run: record.run.clone(),
        problem,
    };
    check(record).map_err(unwritable)?;
    named(record).map_err(unwritable)?;
    let mut line = serde_json::to_string(record).map_err(|error| unwritable(error.to_string()))?;
    if line.len() > LINE_BYTES_MOST {
        let problem = format!("{} bytes, more than {LINE_BYTES_MOST}", line.len());
        return Err(unwritable(problem));
    }
    line.push('\n');
    Ok(line)
}

/// Whether people can tell by their names what is meant.
fn named(record: &Record) -> Result<(), String> {
    let metrics = record.metrics.iter().map(|value| &value.metric.name);
    let metrics = metrics.map(|name| ("metric", name));
    let all = [("run", &record.run), ("commit", &record.commit)];
    for (what, name) in all.into_iter().chain(metrics) {
        if name.trim().is_empty() || name.contains(char::is_control) {
            return Err(format!(
                "expected the name of a {what} on one line, found {name:?}"
            ));
        }
    }
    Ok(())
}

fn check(record: &Record) -> Result<(), String> {
    for (at, value) in record.metrics.iter().enumerate() {
        let name = &value.metric.name;
        if record.metrics[..at]
            .iter()
            .any(|before| before.metric.name == *name)
        {
            return Err(format!("metric \"{name}\" twice"));
        }
        if let Some(found) = std::iter::once(&value.value)
            .chain(&value.replicates)
            .find(|value| !value.is_finite())
        {
            return Err(format!(
                "metric \"{name}\" has the value {found}; leave it out"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
