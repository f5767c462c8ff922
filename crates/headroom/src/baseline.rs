//! `headroom baseline`: what runs measured, as one small file that is kept beside the code.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use lab_judgement::{Fingerprint, Metric, MetricValue, Record, Weight, differences, done_by_hand};
use lab_report::terminal::printable;
use lab_store::Outcome;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::load::read_text;
use crate::output::{eprint, json, print};
use crate::recorded::{Recorded, recorded};

/// Version of the file.
const SCHEMA: u32 = 1;
/// Largest file that is read, in bytes.
const BYTES_MOST: u64 = 16 << 20;
/// Most runs of a baseline.
const RUNS_MOST: usize = 1_000;

pub(crate) const AFTER_HELP: &str = "\
Several runs of the version that is good, once; then each new version against them:
  headroom baseline runs/web-* > baseline.json
  headroom compare --baseline baseline.json runs/web-20260102-120000 runs/web-20260102-120500

All runs are of one plan, on one kind of machine: what the file says is compared with runs of these only.";

#[derive(Debug, Args)]
pub(crate) struct BaselineArgs {
    /// Folders of the runs
    #[arg(value_name = "RUN", required = true, num_args = 1..=RUNS_MOST)]
    runs: Vec<PathBuf>,
}

/// The file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Baseline {
    schema: u32,
    /// What was measured, each version once.
    commits: Vec<String>,
    /// Start of the first run, in nanoseconds since 1970.
    started_at_unix_ns: i64,
    /// Where, with what and by which plan.
    environment: Fingerprint,
    /// Identities of the runs.
    runs: Vec<String>,
    metrics: Vec<BaselineMetric>,
}

/// A metric with its value in each run; `None`: it was not measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct BaselineMetric {
    #[serde(flatten)]
    metric: Metric,
    values: Vec<Option<f64>>,
}

/// Prints the file.
pub(crate) fn baseline(args: &BaselineArgs) -> Result<Outcome> {
    let records: Result<Vec<Record>> = args
        .runs
        .iter()
        .map(|run| Ok(recorded(run)?.record))
        .collect();
    let baseline = of(&records?)?;
    if let [only] = &baseline.runs[..] {
        eprint(format_args!(
            "headroom: {} alone shows no noise, so nothing can be told beside it; give several runs",
            printable(only)
        ));
    }
    print(&json(&baseline)?)?;
    Ok(Outcome::Pass)
}

fn of(records: &[Record]) -> Result<Baseline> {
    let Some(first) = records.first() else {
        bail!("baseline: there is no run");
    };
    let mut commits: Vec<String> = Vec::new();
    let mut metrics: Vec<BaselineMetric> = Vec::new();
    for (at, record) in records.iter().enumerate() {
        if let Some(other) = records[..at].iter().find(|other| other.run == record.run) {
            bail!("baseline: the run {} is given twice", other.run);
        }
        if let Some(done) = done_by_hand(record).first() {
            bail!("baseline: {}: nobody can repeat that", done.sentence);
        }
        let differ = differences(first, record).into_iter();
        let mut forbids = differ.filter(|one| one.weight == Weight::Forbids);
        if let Some(one) = forbids.next() {
            bail!(
                "baseline: {} and {} are not of the same: {}",
                first.run,
                record.run,
                one.sentence
            );
        }
        if !commits.contains(&record.commit) {
            commits.push(record.commit.clone());
        }
        for found in &record.metrics {
            if metrics
                .iter()
                .all(|known| known.metric.name != found.metric.name)
            {
                metrics.push(BaselineMetric {
                    metric: found.metric.clone(),
                    values: Vec::new(),
                });
            }
        }
    }
    for metric in &mut metrics {
        let values = records
            .iter()
            .map(|record| record.metric(&metric.metric.name));
        metric.values = values.map(|found| found.map(|found| found.value)).collect();
    }
    Ok(Baseline {
        schema: SCHEMA,
        commits,
        started_at_unix_ns: first.started_at_unix_ns,
        environment: first.environment.clone(),
        runs: records.iter().map(|record| record.run.clone()).collect(),
        metrics,
    })
}

/// The runs that a file tells of. Their plan is known by its hash only.
pub(crate) fn runs_of(file: &Path) -> Result<Vec<Recorded>> {
    let text = read_text(file, BYTES_MOST, "the baseline")?;
    read(&text).with_context(|| format!("read the baseline {}", file.display()))
}

fn read(text: &str) -> Result<Vec<Recorded>> {
    #[derive(Deserialize)]
    struct SchemaOnly {
        schema: u32,
    }
    let SchemaOnly { schema } = serde_json::from_str(text)?;
    if schema != SCHEMA {
        bail!("it is of schema {schema}, and this version of headroom reads {SCHEMA}");
    }
    let found: Baseline = serde_json::from_str(text)?;
    if found.runs.is_empty() || found.runs.len() > RUNS_MOST {
        bail!(
            "it has {} runs, expected 1 to {RUNS_MOST}",
            found.runs.len()
        );
    }
    for metric in &found.metrics {
        if metric.values.len() != found.runs.len() {
            bail!(
                "it has {} runs and {} values of {}",
                found.runs.len(),
                metric.values.len(),
                metric.metric.name
            );
        }
    }
    let runs = found.runs.iter().enumerate().map(|(at, run)| {
        let metrics = found.metrics.iter().filter_map(|metric| {
            Some(MetricValue {
                metric: metric.metric.clone(),
                value: metric.values[at].filter(|value| value.is_finite())?,
                replicates: Vec::new(),
            })
        });
        Recorded {
            record: Record::new(
                run.clone(),
                found.commits.join(", "),
                found.started_at_unix_ns,
                found.environment.clone(),
                metrics.collect(),
            ),
            plan: Value::Null,
        }
    });
    Ok(runs.collect())
}

#[cfg(test)]
mod tests {
    use lab_judgement::{Direction, Unit};

    use super::*;

    fn record(run: &str, commit: &str, plan: &str, values: &[(&str, f64)]) -> Record {
        let environment = Fingerprint {
            plan_hash: plan.to_owned(),
            cores: 2,
            ..Fingerprint::default()
        };
        let metrics = values.iter().map(|(name, value)| MetricValue {
            metric: Metric {
                name: (*name).to_owned(),
                unit: Unit::Seconds,
                direction: Direction::LowerIsBetter,
            },
            value: *value,
            replicates: vec![*value; 3],
        });
        let metrics = metrics.collect();
        Record::new(run.to_owned(), commit.to_owned(), 7, environment, metrics)
    }

    #[test]
    fn what_runs_measured_is_read_back_without_their_parts() {
        let runs = [
            record("a", "c1", "p", &[("p50", 0.1), ("p99", 0.5)]),
            record("b", "c1", "p", &[("p99", 0.6), ("max", 2.0)]),
        ];
        let text = serde_json::to_string(&of(&runs).unwrap()).unwrap();
        let back = read(&text).unwrap();
        assert_eq!(back.len(), 2);
        let value = |at: usize, name: &str| Some(back[at].record.metric(name)?.value);
        assert_eq!(value(0, "p50"), Some(0.1));
        assert_eq!((value(1, "p50"), value(1, "max")), (None, Some(2.0)));
        assert_eq!((value(0, "p99"), value(1, "p99")), (Some(0.5), Some(0.6)));
        assert_eq!(back[0].record.environment, runs[0].environment);
        assert_eq!(back[1].record.commit, "c1");
        assert!(back[0].record.metrics[0].replicates.is_empty());
    }

    #[test]
    fn what_is_not_of_the_same_is_no_baseline() {
        let one = record("a", "c", "p", &[("p50", 0.1)]);
        let other = record("b", "c", "q", &[("p50", 0.1)]);
        let error = of(&[one.clone(), other]).unwrap_err().to_string();
        assert!(
            error.contains("the plan of the experiment differs"),
            "{error}"
        );
        assert!(
            of(&[one.clone(), one])
                .unwrap_err()
                .to_string()
                .contains("twice")
        );
        assert!(of(&[]).is_err());
    }

    #[test]
    fn a_file_that_is_not_what_it_says_is_refused() {
        let runs = [record("a", "c", "p", &[("p50", 0.1)])];
        let good = serde_json::to_string(&of(&runs).unwrap()).unwrap();
        for (from, to, why) in [
            ("\"schema\":1", "\"schema\":2", "schema 2"),
            ("[0.1]", "[0.1,0.2]", "1 runs and 2 values of p50"),
            ("[\"a\"]", "[]", "0 runs"),
            ("{", "", "column"),
        ] {
            let bad = good.replacen(from, to, 1);
            assert_ne!(good, bad, "{from}");
            let error = format!("{:#}", read(&bad).err().unwrap());
            assert!(error.contains(why), "{error}");
        }
    }
}
