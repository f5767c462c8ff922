//! What build servers want: results as JUnit's XML and as Markdown, and a workflow.

mod junit;
mod markdown;
mod workflow;

use std::cell::Cell;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use lab_judgement::{GateJudgement, Verdict as Judged};
use lab_report::sweep::{SweepAnswer, SweepRecord};
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
    /// A result was written, or tried to be: there is one for each command.
    #[arg(skip)]
    pub(crate) done: Cell<bool>,
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

/// What became of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CaseResult {
    Judged(Outcome),
    /// This machine lacks what it is about.
    LeftOut,
}

/// An expectation, or a metric.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) became: CaseResult,
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
                became: CaseResult::Judged(expectation.outcome),
                cells: vec![expectation.measured.clone()],
                text: match expectation.note.as_str() {
                    "" => format!("measured: {}", expectation.measured),
                    note => note.to_owned(),
                },
            })
            .collect();
        cases.extend(verdict.left_out.iter().map(|expectation| Case {
            name: expectation.that.clone(),
            became: CaseResult::LeftOut,
            cells: vec![String::new()],
            text: expectation.why.clone(),
        }));
        if let Some(reason) = &verdict.reason {
            cases.push(Case {
                name: "the run comes to its end".into(),
                became: CaseResult::Judged(verdict.outcome),
                cells: vec![String::new()],
                text: reason.clone(),
            });
        }
        let held = cases
            .iter()
            .filter(|case| case.became == CaseResult::Judged(Outcome::Pass))
            .count();
        let count = verdict.expectations.len();
        let left_out = match verdict.left_out.len() {
            0 => String::new(),
            left_out => format!(", {left_out} left out"),
        };
        Self {
            name: name.to_owned(),
            outcome: verdict.outcome,
            sentence: match &verdict.reason {
                Some(reason) => reason.clone(),
                None => format!("{held} of {count} expectations held{left_out}"),
            },
            seconds: verdict.duration_s,
            columns: vec!["measured"],
            cases,
            picture: None,
        }
    }

    /// That of a sweep: a case for each expectation of each run, named by its setting. Of a search, which
    /// needs runs that fail, its answer.
    pub(crate) fn of_sweep(sweep: &SweepRecord, seconds: f64) -> Self {
        let (cases, sentence) = match &sweep.answer {
            Some(answer) => (vec![answered(answer)], answer.text.clone()),
            None => {
                let made = sweep.runs.len();
                let passed = sweep.runs.iter();
                let passed = passed.filter(|run| run.verdict.outcome == Outcome::Pass);
                let planned = sweep.settings.len() * sweep.times as usize;
                let sentence = format!(
                    "{} of {made} runs passed, {planned} planned",
                    passed.count()
                );
                (cases(sweep), sentence)
            }
        };
        Self {
            name: sweep.name.clone(),
            outcome: sweep.outcome(),
            sentence,
            seconds,
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
                became: CaseResult::Judged(outcome(metric.verdict)),
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
                became: CaseResult::Judged(Outcome::Error),
                cells: Vec::new(),
                text: why.to_owned(),
            }],
            picture: None,
        }
    }
}

fn answered(answer: &SweepAnswer) -> Case {
    Case {
        name: "the highest value is found".into(),
        became: CaseResult::Judged(answer.outcome),
        cells: vec![answer.text.clone()],
        text: answer.text.clone(),
    }
}

/// Those of every run of a sweep, setting by setting.
fn cases(sweep: &SweepRecord) -> Vec<Case> {
    let mut cases = Vec::new();
    for (at, values) in sweep.settings.iter().enumerate() {
        let constants = sweep.over.iter().zip(values);
        let constants: Vec<String> = constants
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let runs = sweep.runs.iter().filter(|run| run.setting == at);
        for (number, run) in (1..).zip(runs) {
            let setting = match sweep.times {
                0..=1 => constants.join(" "),
                _ => format!("{}, run {number}", constants.join(" ")),
            };
            let own = CiResult::of_run(&run.folder, &run.verdict).cases;
            cases.extend(own.into_iter().map(|case| Case {
                name: format!("{setting}: {}", case.name),
                ..case
            }));
        }
    }
    cases
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
        self.done.set(true);
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
