//! The page of a history: what `show` says, drawn.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use lab_judgement::Record;
use lab_report::history::{HistoryMetric, HistoryRun, HistoryStatement, html};
use lab_store::Outcome;

use super::HistoryFile;
use super::show::{MetricHistory, Shown, commit_range, commits, counted_runs, judged};
use super::store::stored;
use crate::output::{print, replace};

#[derive(Debug, Args)]
pub(crate) struct PageArgs {
    #[command(flatten)]
    history: HistoryFile,
    /// Draw this metric only; may be repeated
    #[arg(long = "metric", value_name = "NAME")]
    metrics: Vec<String>,
    /// The git repository whose commits were measured
    #[arg(long, value_name = "DIR", default_value = ".")]
    repository: PathBuf,
    /// Where the page is written; without it, beside the file, or history.html with --store
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Writes the page, whatever it shows.
pub(super) fn page(args: &PageArgs) -> Result<Outcome> {
    let records = stored(&args.history)?;
    let log = |from: &str, to: &str| commits(&args.repository, from, to);
    let shown = judged(&records, &args.metrics, &log)?;
    let beside = || match args.history.store {
        None => args.history.file.with_extension("html"),
        Some(_) => PathBuf::from("history.html"),
    };
    let out = args.out.clone().unwrap_or_else(beside);
    replace(&out, drawn(&records, &shown).as_bytes())?;
    print(&format!("{}\n", out.display()))?;
    Ok(Outcome::Pass)
}

/// What was judged of the records, as a page.
fn drawn(records: &[Record], shown: &Shown) -> String {
    let by_run: HashMap<&str, &Record> = records
        .iter()
        .map(|record| (record.run.as_str(), record))
        .collect();
    let of_run = |run: &String| by_run.get(run.as_str()).copied();
    let runs: Vec<HistoryRun> = shown
        .runs
        .iter()
        .map(|run| HistoryRun {
            run: run.clone(),
            commit: of_run(run).map_or_else(String::new, |record| record.commit.clone()),
        })
        .collect();
    let metrics: Vec<HistoryMetric> = shown
        .metrics
        .iter()
        .map(|found| {
            let value = |run| Some(of_run(run)?.metric(&found.metric.name)?.value);
            HistoryMetric {
                metric: found.metric.clone(),
                values: shown.runs.iter().map(value).collect(),
                judgement: found.judgement.clone(),
                said: statements(found, &shown.runs),
            }
        })
        .collect();
    html(&counted_runs(shown), &runs, &metrics)
}

/// What `show` prints below a metric.
fn statements(found: &MetricHistory, runs: &[String]) -> Vec<HistoryStatement> {
    let judgement = &found.judgement;
    let changes = judgement.changes.iter().zip(&found.between);
    let changes = changes.map(|(change, between)| HistoryStatement {
        sentence: change.sentence.clone(),
        below: commit_range(between)
            .lines()
            .map(|line| line.trim().to_owned())
            .collect(),
        worse: change.worse,
    });
    let drifts = judgement.drifts.iter().map(|drift| HistoryStatement {
        sentence: drift.sentence.clone(),
        below: Vec::new(),
        worse: drift.worse,
    });
    let alarm = judgement.alarm.iter().map(|alarm| {
        let since = runs.get(alarm.since_index);
        HistoryStatement {
            sentence: alarm.sentence.clone(),
            below: since
                .map(|run| format!("since {run}"))
                .into_iter()
                .collect(),
            worse: alarm.worse,
        }
    });
    changes.chain(drifts).chain(alarm).collect()
}
