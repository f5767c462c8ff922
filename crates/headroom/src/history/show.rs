//! What changed, since when, and which commits lie between.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};
use console::style;
use lab_judgement::{
    Change, HistoryJudgement, HistorySettings, Metric, MetricValue, Record, Weight, differences,
    judge_history,
};
use lab_report::terminal::printable;
use lab_store::Outcome;
use serde::{Deserialize, Serialize};
use units::counted;

use super::ShowArgs;
use super::store::stored;
use crate::output::{json, print};

/// A change as recent as this many runs makes the exit code.
const RECENT: usize = 10;
/// Most commits that are named at a change.
const COMMITS_MOST: usize = 20;
/// Version of the JSON.
const SCHEMA: u32 = 1;

/// The JSON of a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Shown {
    pub(super) schema: u32,
    /// Identities of the runs that were looked at; indices of the judgements count in this list.
    pub(super) runs: Vec<String>,
    /// Runs that cannot be compared with the latest.
    pub(super) left_out: usize,
    /// Whether a metric got worse lately, or may have.
    pub(super) got_worse: bool,
    pub(super) metrics: Vec<MetricHistory>,
}

/// A metric over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct MetricHistory {
    #[serde(flatten)]
    pub(super) metric: Metric,
    #[serde(flatten)]
    pub(super) judgement: HistoryJudgement,
    /// What lies between, for each change.
    pub(super) between: Vec<Between>,
    /// Latest runs that did not measure it.
    #[serde(default)]
    pub(super) not_since: usize,
}

/// Where a change lies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Between {
    /// The last run before it, as early as that may be.
    pub(super) last_before: Option<String>,
    /// Its commit.
    pub(super) last_before_commit: Option<String>,
    /// The first run after it, as late as that may be.
    pub(super) first_after: String,
    /// Its commit.
    pub(super) first_after_commit: String,
    /// Commits after the one up to the other, the oldest first, each with its subject; empty where git
    /// does not know them.
    pub(super) commits: Vec<String>,
    /// How many more there are.
    pub(super) more_commits: usize,
    /// Why it may be none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) not_a_commit: Option<String>,
}

pub(super) fn show(args: &ShowArgs) -> Result<Outcome> {
    let records = stored(&args.history)?;
    let log = |from: &str, to: &str| commits(&args.repository, from, to);
    let shown = judged(&records, &args.metrics, &log)?;
    print(&match args.json {
        true => json(&shown)?,
        false => text(&shown),
    })?;
    Ok(match shown.got_worse {
        true => Outcome::Fail,
        false => Outcome::Pass,
    })
}

/// What a history says; `log` tells the commits after one up to another.
pub(super) fn judged(
    records: &[Record],
    wanted: &[String],
    log: &dyn Fn(&str, &str) -> Vec<String>,
) -> Result<Shown> {
    let Some(latest) = records.last() else {
        bail!("show: the history is empty; add a run with headroom history add RUN");
    };
    // One that somebody changed by hand is like no other.
    let untouched = |record: &&Record| record.environment.by_hand.is_empty();
    let latest = records.iter().rfind(untouched).unwrap_or(latest);
    // Metrics that the latest run lacks are those of the newest one that has them.
    let mut like = latest.clone();
    let comparable = |record: &&Record| {
        let mut found = differences(record, latest).into_iter();
        !found.any(|difference| difference.weight == Weight::Forbids)
    };
    for record in records.iter().rev().filter(comparable) {
        let more = record.metrics.iter();
        let more = more.filter(|value| like.metric(&value.metric.name).is_none());
        let more: Vec<MetricValue> = more.cloned().collect();
        like.metrics.extend(more);
    }
    let alike = |record: &&Record| {
        let mut found = differences(record, &like).into_iter();
        record.run == latest.run || !found.any(|it| it.weight == Weight::Forbids)
    };
    let alike: Vec<&Record> = records.iter().filter(alike).collect();
    let known: Vec<&Metric> = like.metrics.iter().map(|value| &value.metric).collect();
    for name in wanted {
        if !known.iter().any(|metric| metric.name == *name) {
            let known: Vec<&str> = known.iter().map(|metric| metric.name.as_str()).collect();
            let known = known.join(", ");
            bail!("show: no run has a metric \"{name}\"; there is {known}");
        }
    }
    let asked = |metric: &&Metric| wanted.is_empty() || wanted.contains(&metric.name);
    let metrics: Vec<MetricHistory> = known
        .into_iter()
        .filter(asked)
        .map(|metric| history_of(metric, &alike, log))
        .collect();
    let got_worse = metrics.iter().any(|found| {
        let recent = recent(&found.metric, &alike);
        let changes = found.judgement.changes.iter();
        let mut changes = changes.filter(|change| change.certain && change.index >= recent);
        let alarm = found.judgement.alarm.as_ref();
        let alarm = alarm.filter(|alarm| alarm.index >= recent);
        // A drift that goes on: no single run will ever be the one that got worse.
        let mut drifts = found.judgement.drifts.iter();
        changes.any(|change| change.worse)
            || alarm.is_some_and(|alarm| alarm.worse)
            || drifts.any(|drift| drift.worse && drift.last_index >= recent)
    });
    Ok(Shown {
        schema: SCHEMA,
        left_out: records.len() - alike.len(),
        runs: alike.iter().map(|record| record.run.clone()).collect(),
        got_worse,
        metrics,
    })
}

/// The first of the last runs that measured a metric, as many as count as lately. What none of the
/// latest runs measures any more is not of lately.
fn recent(metric: &Metric, records: &[&Record]) -> usize {
    let each = records.iter().enumerate().rev();
    let mut with = each.filter(|(_, record)| record.metric(&metric.name).is_some());
    let Some((newest, _)) = with.next() else {
        return records.len();
    };
    match newest + RECENT < records.len() {
        true => records.len(),
        // One of them is taken already.
        false => with.nth(RECENT - 2).map_or(0, |(at, _)| at),
    }
}

fn history_of(
    metric: &Metric,
    records: &[&Record],
    log: &dyn Fn(&str, &str) -> Vec<String>,
) -> MetricHistory {
    let values: Vec<Option<f64>> = records
        .iter()
        .map(|record| record.metric(&metric.name).map(|found| found.value))
        .collect();
    let judgement = judge_history(metric, &values, &HistorySettings::default());
    let between = judgement
        .changes
        .iter()
        .map(|change| between(metric, change, records, log));
    MetricHistory {
        not_since: values.iter().rev().take_while(|it| it.is_none()).count(),
        between: between.collect(),
        metric: metric.clone(),
        judgement,
    }
}

fn between(
    metric: &Metric,
    change: &Change,
    records: &[&Record],
    log: &dyn Fn(&str, &str) -> Vec<String>,
) -> Between {
    // What runs in between did not measure may have changed with their commits, too.
    let mut earlier = records[..change.earliest_index.min(records.len())].iter();
    let before = earlier.rfind(|record| record.metric(&metric.name).is_some());
    let before = before.copied();
    let after = records[change.latest_index.min(records.len() - 1)];
    let mut commits = before.map_or_else(Vec::new, |before| log(&before.commit, &after.commit));
    let not_a_commit = before.and_then(|before| {
        // That the later run's commit is the older one.
        let is_older = || commits.is_empty() && !log(&after.commit, &before.commit).is_empty();
        not_a_commit(&before.commit, &after.commit, is_older)
    });
    let more_commits = commits.len().saturating_sub(COMMITS_MOST);
    commits.truncate(COMMITS_MOST);
    Between {
        not_a_commit,
        last_before: before.map(|record| record.run.clone()),
        last_before_commit: before.map(|record| record.commit.clone()),
        first_after: after.run.clone(),
        first_after_commit: after.commit.clone(),
        commits,
        more_commits,
    }
}

/// What is behind the commit of a tree that had changes which no commit has.
const DIRTY: &str = "-dirty";

/// Why it may be none of the commits that lie between, or that none does.
fn not_a_commit(before: &str, after: &str, is_older: impl FnOnce() -> bool) -> Option<String> {
    let is_dirty = |commit: &str| commit.ends_with(DIRTY);
    if before == after && !before.is_empty() && !is_dirty(before) {
        return Some("the same commit before and after: it was not the program".into());
    }
    if is_dirty(before) || is_dirty(after) {
        return Some("measured with changes that no commit has: these may be it, too".into());
    }
    is_older().then(|| "the later run is of an older commit: none lies between".into())
}

/// Commits after one up to another, as git has them, the oldest first; none where it knows either not.
pub(super) fn commits(repository: &Path, from: &str, to: &str) -> Vec<String> {
    /// More than these are no answer to which one it was.
    const MOST: &str = "--max-count=10000";
    let [from, to] = [from, to].map(|commit| commit.trim_end_matches(DIRTY));
    let is_hash = |text: &str| {
        (7..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    if !is_hash(from) || !is_hash(to) {
        return Vec::new();
    }
    let range = format!("{from}..{to}");
    let log = Command::new("git")
        .arg("-C")
        .arg(repository)
        .args(["log", "--reverse", MOST, "--format=%h %s", &range, "--"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    match log {
        Ok(log) if log.status.success() => {
            let text = String::from_utf8_lossy(&log.stdout);
            text.lines().map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// How many runs were looked at, and how many were not.
pub(super) fn counted_runs(shown: &Shown) -> String {
    let (count, left_out) = (shown.runs.len(), shown.left_out);
    let mut out = counted(count as u64, "run", "runs");
    if left_out > 0 {
        out += &format!(
            "; left out, with another plan, processor or unit, or changed by hand: {left_out}"
        );
    }
    out
}

pub(super) fn text(shown: &Shown) -> String {
    let mut out = counted_runs(shown) + "\n";
    for found in &shown.metrics {
        out += &format!("\n{}\n", style(printable(&found.metric.name)).bold());
        let judgement = &found.judgement;
        if found.not_since > 0 {
            let runs = counted(found.not_since as u64, "run", "runs");
            out += &format!("  not measured in the last {runs}\n");
        }
        for (change, between) in judgement.changes.iter().zip(&found.between) {
            out += &format!("  {}\n", change.sentence);
            out += &commit_range(between);
        }
        for drift in &judgement.drifts {
            out += &format!("  {}\n", drift.sentence);
        }
        if let Some(alarm) = &judgement.alarm {
            let since = shown.runs.get(alarm.since_index);
            out += &format!("  {}\n", alarm.sentence);
            out += &since.map_or_else(String::new, |run| format!("    since {}\n", printable(run)));
        }
        if judgement.changes.is_empty() && judgement.drifts.is_empty() && judgement.alarm.is_none()
        {
            let values = counted(judgement.points as u64, "value", "values");
            out += &format!("  no change in {values}\n");
        }
    }
    out
}

pub(super) fn commit_range(between: &Between) -> String {
    let short = |commit: &str| {
        let (hash, dirty) = match commit.strip_suffix(DIRTY) {
            Some(hash) => (hash, DIRTY),
            None => (commit, ""),
        };
        match hash.is_ascii() && hash.len() > 12 {
            true => format!("{}{dirty}", &hash[..12]),
            false => printable(commit),
        }
    };
    let run = |run: &str, commit: &str| format!("{} ({})", printable(run), short(commit));
    let after = run(&between.first_after, &between.first_after_commit);
    let mut out = match (&between.last_before, &between.last_before_commit) {
        (Some(before), Some(commit)) => {
            format!(
                "    after {}, with {after} at the latest\n",
                run(before, commit)
            )
        }
        _ => format!("    with {after} at the latest\n"),
    };
    if let Some(why) = &between.not_a_commit {
        out += &format!("      {why}\n");
    }
    for commit in &between.commits {
        out += &format!("      {}\n", printable(commit));
    }
    if between.more_commits > 0 {
        out += &format!("      and {} more commits\n", between.more_commits);
    }
    out
}
