//! What build servers want: results as JUnit's XML and as Markdown, and a workflow.

mod junit;
mod markdown;
mod workflow;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use lab_judgement::{GateJudgement, Verdict as Judged};
use lab_store::{Outcome, Verdict};

use crate::gate::outcome;
use crate::output::replace;
pub(crate) use workflow::GithubArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum CiCommand {
    /// Print a workflow for GitHub that says of each pull request whether it is slower
    Github(GithubArgs),
}

pub(crate) fn run(command: &CiCommand) -> Result<Outcome> {
    let CiCommand::Github(args) = command;
    workflow::github(args)?;
    Ok(Outcome::Pass)
}

/// Where results are written besides.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ResultFiles {
    /// Also write the result as JUnit's XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Also append the result to this file as Markdown, for instance to "$GITHUB_STEP_SUMMARY"
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
}

/// A result, in the terms of build servers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CiResult {
    /// What was run.
    pub(crate) name: String,
    pub(crate) outcome: Outcome,
    /// The verdict in a sentence.
    pub(crate) sentence: String,
    pub(crate) seconds: f64,
    /// Heads of the columns.
    pub(crate) columns: Vec<&'static str>,
    pub(crate) cases: Vec<Case>,
    /// Where a picture of it is found: a path or an address.
    pub(crate) picture: Option<String>,
}

/// An expectation, or a metric.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) outcome: Outcome,
    /// A cell for each column.
    pub(crate) cells: Vec<String>,
    /// What a person should read when it does not pass.
    pub(crate) text: String,
}

impl CiResult {
    /// That of a run.
    pub(crate) fn of_run(name: &str, verdict: &Verdict) -> Self {
        let mut cases: Vec<Case> = verdict
            .expectations
            .iter()
            .map(|expectation| Case {
                name: expectation.that.clone(),
                outcome: expectation.outcome,
                cells: vec![expectation.measured.clone()],
                text: match expectation.note.as_str() {
                    "" => format!("measured: {}", expectation.measured),
                    note => note.to_owned(),
                },
            })
            .collect();
        if let Some(reason) = &verdict.reason {
            cases.push(Case {
                name: "the run comes to its end".into(),
                outcome: verdict.outcome,
                cells: vec![String::new()],
                text: reason.clone(),
            });
        }
        let held = cases
            .iter()
            .filter(|case| case.outcome == Outcome::Pass)
            .count();
        let count = verdict.expectations.len();
        Self {
            name: name.to_owned(),
            outcome: verdict.outcome,
            sentence: match &verdict.reason {
                Some(reason) => reason.clone(),
                None => format!("{held} of {count} expectations held"),
            },
            seconds: verdict.duration_s,
            columns: vec!["measured"],
            cases,
            picture: None,
        }
    }

    /// That of a gate.
    pub(crate) fn of_gate(name: &str, judgement: &GateJudgement, seconds: f64) -> Self {
        let cases = judgement.metrics.iter().map(|metric| {
            let unit = metric.metric.unit;
            let value = |value: Option<f64>| value.map_or_else(String::new, |it| unit.show(it));
            let effect = metric.effect.as_ref();
            // A gate ends with the first metric that is worse: the others are not judged to their end.
            let open = judgement.verdict == Judged::Worse && metric.verdict == Judged::CannotTell;
            Case {
                name: metric.metric.name.clone(),
                outcome: outcome(metric.verdict),
                cells: vec![
                    value(metric.base_median),
                    value(metric.new_median),
                    effect.map_or_else(String::new, |effect| effect.in_words()),
                ],
                text: match open {
                    true => format!("another metric decided: {}", metric.sentence),
                    false => metric.sentence.clone(),
                },
            }
        });
        Self {
            name: name.to_owned(),
            outcome: outcome(judgement.verdict),
            sentence: judgement.sentence.clone(),
            seconds,
            columns: vec!["base", "new", "change"],
            cases: cases.collect(),
            picture: None,
        }
    }

    /// That of something that could not be done, and why.
    pub(crate) fn of_error(name: &str, why: &str, seconds: f64) -> Self {
        Self {
            name: name.to_owned(),
            outcome: Outcome::Error,
            sentence: why.to_owned(),
            seconds,
            columns: Vec::new(),
            cases: vec![Case {
                name: "it comes to a verdict".into(),
                outcome: Outcome::Error,
                cells: Vec::new(),
                text: why.to_owned(),
            }],
            picture: None,
        }
    }
}

impl ResultFiles {
    /// Before anything is measured for them: whether there is a place for each.
    pub(crate) fn check(&self) -> Result<()> {
        for path in [&self.junit, &self.markdown].into_iter().flatten() {
            let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
            if folder.is_some_and(|folder| !folder.is_dir()) {
                bail!("write {}: there is no such folder", path.display());
            }
        }
        Ok(())
    }

    /// Writes what was asked for.
    pub(crate) fn write(&self, result: &CiResult) -> Result<()> {
        if let Some(path) = &self.junit {
            let text = junit::xml(result).with_context(|| format!("write {}", path.display()))?;
            replace(path, text.as_bytes())?;
        }
        if let Some(path) = &self.markdown {
            let writing = || format!("write {}", path.display());
            let file = OpenOptions::new().create(true).append(true).open(path);
            let text = markdown::table(result);
            file.and_then(|mut file| file.write_all(text.as_bytes()))
                .with_context(writing)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
