//! Many stored runs: as a table for the terminal, as a list for programs, and as a page with a
//! small chart of each number over the runs of an experiment.

mod page;
mod table;

use std::hash::{DefaultHasher, Hash, Hasher};

use lab_judgement::MetricValue;
use lab_store::{FoundRun, Outcome, RunFile, StoredRun, Verdict};
use serde::Serialize;

pub use page::html;
pub use table::terminal;

/// A run among others, as it is listed.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ListedRun {
    /// Name of its folder.
    pub run: String,
    /// Name of the experiment; empty of what cannot be read.
    pub name: String,
    /// When it began, as `2026-01-02 03:04` in UTC.
    pub began: String,
    /// The same in nanoseconds since 1970.
    pub started_at_unix_ns: i64,
    /// What it is.
    pub state: RunState,
    /// How it ended; `None` unless it did.
    pub outcome: Option<Outcome>,
    /// Why it ended early, why nothing was decided, or why it cannot be read.
    pub reason: Option<String>,
    /// Length in seconds.
    pub duration_s: Option<f64>,
    /// Expectations that held.
    pub held: usize,
    /// All that were judged.
    pub expectations: usize,
    /// Those that were not: the machine lacked what they are about.
    pub left_out: usize,
    /// The commit it was made at.
    pub git_commit: Option<String>,
    /// Size of its files.
    pub bytes: u64,
    /// What it measured.
    pub metrics: Vec<MetricValue>,
    /// The same for runs of the same plan on the same processor.
    #[serde(skip)]
    pub alike: u64,
    /// Whether it has a report.
    pub report: bool,
}

/// What a run is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It came to an end.
    Ended,
    /// It goes on, or was killed.
    Unfinished,
    /// It ended, and its result could not be stored.
    Broken,
    /// Its files are not what their formats say, or of a newer version.
    #[default]
    Unreadable,
}

impl ListedRun {
    /// What is to be told of a stored run.
    #[must_use]
    pub fn of(run: &StoredRun) -> Self {
        let mut listed = Self {
            run: run.folder.id(),
            bytes: run.bytes,
            report: run.folder.file(RunFile::Report).is_file(),
            ..Self::default()
        };
        match &run.found {
            Ok(found) => listed.read(run, found),
            Err(error) => listed.reason = Some(error.to_string()),
        }
        listed
    }

    fn read(&mut self, run: &StoredRun, found: &FoundRun) {
        found.name().clone_into(&mut self.name);
        self.began = found.began();
        self.started_at_unix_ns = found.environment.started_at_unix_ns;
        self.git_commit.clone_from(&found.environment.git_commit);
        self.state = match found.is_broken {
            true => RunState::Broken,
            false => RunState::Unfinished,
        };
        let Some(verdict) = &found.verdict else {
            return;
        };
        self.ended(verdict);
        // Numbers of a run that was not made to its end are of something else.
        if verdict.outcome != Outcome::Error {
            self.metrics = run.folder.metrics().unwrap_or_default();
        }
        let mut alike = DefaultHasher::new();
        let plan = run.folder.read_text(RunFile::Plan);
        plan.unwrap_or_default().hash(&mut alike);
        found.environment.cpu_model.hash(&mut alike);
        found.environment.cores.hash(&mut alike);
        self.alike = alike.finish();
    }

    fn ended(&mut self, verdict: &Verdict) {
        self.state = RunState::Ended;
        self.outcome = Some(verdict.outcome);
        self.reason.clone_from(&verdict.reason);
        self.duration_s = Some(verdict.duration_s);
        let outcomes = verdict.expectations.iter().map(|one| one.outcome);
        self.held = outcomes.filter(|outcome| *outcome == Outcome::Pass).count();
        self.expectations = verdict.expectations.len();
        self.left_out = verdict.left_out.len();
    }

    /// How it ended, by the word for its outcome if it has one.
    fn how_it_ended(&self, word: fn(Outcome) -> &'static str) -> &'static str {
        match (self.state, self.outcome) {
            (RunState::Ended, Some(outcome)) => word(outcome),
            (RunState::Unreadable, _) => "unreadable",
            (RunState::Broken, _) => "could not be stored",
            _ => "goes on or was killed",
        }
    }

    /// `3 of 4`, or `3 of 4, 2 left out`; empty where nothing was expected.
    fn score(&self) -> String {
        match (self.expectations, self.left_out) {
            (0, 0) => String::new(),
            (0, left_out) => format!("{left_out} left out"),
            (all, 0) => format!("{} of {all}", self.held),
            (all, left_out) => format!("{} of {all}, {left_out} left out", self.held),
        }
    }
}

/// Runs of each experiment, in the order of their start; the experiment that was run last first.
fn by_name(runs: &[ListedRun]) -> Vec<(&str, Vec<&ListedRun>)> {
    let mut names: Vec<(&str, Vec<&ListedRun>)> = Vec::new();
    for run in runs.iter().rev() {
        match names.iter_mut().find(|(name, _)| *name == run.name) {
            Some((_, of)) => of.push(run),
            None => names.push((&run.name, vec![run])),
        }
    }
    for (_, runs) in &mut names {
        runs.reverse();
    }
    names
}

#[cfg(test)]
mod tests;
