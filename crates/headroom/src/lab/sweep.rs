//! A sweep: the experiment in every setting of its constants, one run after the other.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use lab_experiment::highest::{Answer, Highest, Next, RunVerdict};
use lab_experiment::plan::{Plan, Range, Setting, Sweep};
use lab_report::sweep::{SweepAnswer, SweepRecord, SweepRun, html, terminal};
use lab_report::terminal::Style;
use lab_runner::{RunError, Underway};
use lab_store::{Outcome, Verdict};

use super::{Checked, ExperimentFile, made, report_or_note};
use crate::ci::CiResult;
use crate::cli::RunArgs;
use crate::gate;
use crate::output::{eprint, explained, json, print, replace};

/// Makes every run of the sweep. What was found is stored after each, so a sweep that is cut
/// off leaves what it has.
pub(super) fn run(args: &RunArgs, checked: &Checked, planned: &Sweep) -> Result<Outcome> {
    let begin = Instant::now();
    let mut sweep = Sweeping {
        args,
        checked,
        found: SweepRecord {
            name: checked.plan.name.clone(),
            seed: checked.plan.seed,
            over: names(planned),
            settings: Vec::new(),
            times: planned.times,
            runs: Vec::new(),
            answer: None,
        },
        files: None,
    };
    let is_made = match &planned.highest {
        // Both ends are checked before anything starts.
        Some(_) if plans(&checked.file, &args.check.set, planned).is_none() => false,
        Some((name, range)) => sweep.highest(name, range)?,
        None => sweep.every(planned)?,
    };
    if !is_made {
        return gate::mistaken(&checked.file.source.name, &args.files);
    }
    let (found, files) = (sweep.found, sweep.files);
    match (args.json, &files) {
        (true, _) => print(&json(&found)?)?,
        (false, Some(files)) => {
            let style = Style::of_stdout();
            let page = files.page.display();
            print(&format!("{}\nreport  {page}\n", terminal(&found, style)))?;
        }
        (false, None) => {}
    }
    let seconds = begin.elapsed().as_secs_f64();
    args.files.write(&CiResult::of_sweep(&found, seconds))?;
    Ok(found.outcome())
}

fn names(planned: &Sweep) -> Vec<String> {
    let highest = planned.highest.iter().map(|(name, _)| name.clone());
    let over = planned.over.iter().map(|(name, _)| name.clone());
    over.chain(highest).collect()
}

/// A plan, with the constants that it has.
pub(super) type Planned = (Plan, Vec<(String, String)>);

/// The plans that are known before anything starts, with these constants besides: of each
/// combination in its order, and of a search both ends. `None` once the mistakes of one were shown.
pub(super) fn plans(
    file: &ExperimentFile,
    set: &[(String, String)],
    planned: &Sweep,
) -> Option<Vec<Planned>> {
    let settings = match &planned.highest {
        Some((name, range)) => [range.to, range.from]
            .map(|end| vec![(name.clone(), range.written(end))])
            .to_vec(),
        None => planned.settings(),
    };
    let each = settings.iter();
    each.map(|setting| plan(file, set, setting)).collect()
}

/// The plan of a setting; `None` once its mistakes were shown.
fn plan(file: &ExperimentFile, set: &[(String, String)], setting: &Setting) -> Option<Planned> {
    let set = [set, setting].concat();
    let plan = file.plan(&set);
    if plan.is_none() {
        eprint(format_args!("the mistakes come of {}", shown(setting)));
    }
    plan.map(|plan| (plan, set))
}

/// A sweep that goes on.
struct Sweeping<'a> {
    args: &'a RunArgs,
    checked: &'a Checked,
    found: SweepRecord,
    files: Option<Files>,
}

impl Sweeping<'_> {
    /// Runs every combination; false: one has mistakes, which were shown.
    fn every(&mut self, planned: &Sweep) -> Result<bool> {
        let settings = planned.settings();
        self.found.settings = settings.iter().map(values).collect();
        let Some(plans) = plans(&self.checked.file, &self.args.check.set, planned) else {
            return Ok(false);
        };
        let order = planned.order(self.checked.plan.seed);
        for (number, at) in (1..).zip(&order) {
            eprint(format_args!(
                "\nsweep, run {number} of {}: {}",
                order.len(),
                shown(&settings[*at])
            ));
            if self.one(plans[*at].clone(), *at)? {
                break;
            }
        }
        Ok(true)
    }

    /// Looks for the highest value with which all holds; false: a value has mistakes, which
    /// were shown.
    fn highest(&mut self, name: &str, range: &Range) -> Result<bool> {
        let mut search = Highest::new(range.clone());
        loop {
            let value = match search.next() {
                Next::Run(value) => value,
                Next::Done(answer) => {
                    self.answer(answered(name, range, &answer))?;
                    return Ok(true);
                }
            };
            let setting = vec![(name.to_owned(), range.written(value))];
            eprint(format_args!(
                "\nsearch, run {}: {}",
                self.found.runs.len() + 1,
                shown(&setting)
            ));
            let Some(plan) = plan(&self.checked.file, &self.args.check.set, &setting) else {
                return Ok(false);
            };
            let at = self.place_of(values(&setting));
            let is_cut_off = self.one(plan, at)?;
            if is_cut_off {
                return Ok(true);
            }
            let said = self.found.runs.last().map(|run| run.verdict.outcome);
            search.take(
                value,
                match said {
                    Some(Outcome::Pass) => RunVerdict::Held,
                    Some(Outcome::Fail) => RunVerdict::Failed,
                    _ => RunVerdict::Unclear,
                },
            );
        }
    }

    fn place_of(&mut self, setting: Vec<String>) -> usize {
        let settings = &mut self.found.settings;
        match settings.iter().position(|known| *known == setting) {
            Some(at) => at,
            None => {
                settings.push(setting);
                settings.len() - 1
            }
        }
    }

    /// Makes a run and stores what is known then; true: a person ended it.
    fn one(&mut self, plan: Planned, setting: usize) -> Result<bool> {
        let (run, is_cut_off) = one(self.args, self.checked, plan, setting);
        self.found.runs.push(run);
        self.store()?;
        if is_cut_off {
            eprint("sweep: interrupted; what was found until then is kept");
        }
        Ok(is_cut_off)
    }

    fn answer(&mut self, answer: SweepAnswer) -> Result<()> {
        self.found.answer = Some(answer);
        self.store()
    }

    fn store(&mut self) -> Result<()> {
        let beside = || Files::beside(&self.args.out, &self.found);
        self.files.get_or_insert_with(beside).write(&self.found)
    }
}

fn answered(name: &str, range: &Range, answer: &Answer) -> SweepAnswer {
    let written = |value: f64| range.written(value);
    let (text, outcome) = match *answer {
        Answer::Between(holds, fails) => (
            format!("holds at {}, fails at {}", written(holds), written(fails)),
            Outcome::Pass,
        ),
        Answer::AtLeast(value) => (
            format!(
                "holds at {}, the highest that was asked for",
                written(value)
            ),
            Outcome::Pass,
        ),
        Answer::Below(value) => (
            format!("fails at {} already", written(value)),
            Outcome::Fail,
        ),
        Answer::Unclear(value) => (
            format!(
                "cannot be told: at {} three runs neither held nor failed",
                written(value)
            ),
            Outcome::Inconclusive,
        ),
    };
    SweepAnswer {
        text: format!("{name} {text}"),
        outcome,
    }
}

/// One run, and whether a person ended it.
fn one(
    args: &RunArgs,
    checked: &Checked,
    (plan, set): Planned,
    setting: usize,
) -> (SweepRun, bool) {
    let finished = match made(args, &checked.file, plan, &set, Underway::default()) {
        Ok(finished) => finished,
        Err(error) => {
            let reason = explained(&error);
            eprint(format_args!("headroom: {reason}"));
            let early = error.downcast_ref();
            let interrupted = matches!(
                early,
                Some(RunError::Early {
                    interrupted: true,
                    ..
                })
            );
            return (broken(setting, reason), interrupted);
        }
    };
    report_or_note(&finished.folder);
    let run = SweepRun {
        setting,
        folder: finished.folder.id(),
        verdict: finished.verdict,
    };
    (run, finished.interrupted)
}

/// A run that could not be made: the others are made all the same.
fn broken(setting: usize, reason: String) -> SweepRun {
    SweepRun {
        setting,
        folder: String::new(),
        verdict: Verdict {
            outcome: Outcome::Error,
            reason: Some(reason),
            duration_s: 0.0,
            expectations: Vec::new(),
            probes: Vec::new(),
            left_out: Vec::new(),
            notes: Vec::new(),
        },
    }
}

fn values(setting: &Setting) -> Vec<String> {
    setting.iter().map(|(_, value)| value.clone()).collect()
}

fn shown(setting: &Setting) -> String {
    let pairs = setting
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    pairs.collect::<Vec<_>>().join(" ")
}

/// The record and the page, beside the folders of the runs and called as the first of them.
struct Files {
    record: PathBuf,
    page: PathBuf,
}

impl Files {
    fn beside(out: &Path, found: &SweepRecord) -> Self {
        let out = std::path::absolute(out).unwrap_or_else(|_| out.to_owned());
        let first = found.runs.iter().find(|run| !run.folder.is_empty());
        let name = match first {
            Some(run) => run.folder.clone(),
            None => unused(&out, &found.name),
        };
        Self {
            record: out.join(format!("{name}.sweep.json")),
            page: out.join(format!("{name}.sweep.html")),
        }
    }

    fn write(&self, found: &SweepRecord) -> Result<()> {
        if let Some(folder) = self.record.parent() {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("make the folder {}", folder.display()))?;
        }
        replace(
            &self.record,
            serde_json::to_string_pretty(found)?.as_bytes(),
        )?;
        replace(&self.page, html(found).as_bytes())
    }
}

/// A name of which there is no record yet: an earlier sweep whose first run could not start either
/// keeps what its other runs found.
fn unused(out: &Path, name: &str) -> String {
    let is_free = |name: &String| !out.join(format!("{name}.sweep.json")).exists();
    let numbered = (2_u32..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(is_free).unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_that_begins_badly_replaces_no_other() {
        let out = tempfile::tempdir().unwrap();
        let found = SweepRecord {
            name: "sizes".to_owned(),
            seed: 1,
            over: vec!["size".to_owned()],
            settings: vec![vec!["5".to_owned()]],
            times: 1,
            runs: vec![broken(0, "no such program".to_owned())],
            answer: None,
        };
        let names = [(); 3].map(|()| {
            let files = Files::beside(out.path(), &found);
            files.write(&found).unwrap();
            let name = files.record.file_name().unwrap();
            name.to_string_lossy().into_owned()
        });
        let expected = ["sizes", "sizes-2", "sizes-3"].map(|name| format!("{name}.sweep.json"));
        assert_eq!(names, expected);
    }
}
