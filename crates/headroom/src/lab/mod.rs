//! `run`, `check` and `report`.

mod again;
mod sweep;

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use lab_experiment::plan::{Network, Plan};
use lab_experiment::{Source, check as check_file};
use lab_report::terminal::{Style, ending, printable};
use lab_report::{Growing, Page};
use lab_runner::{Finished, Options, Underway};
use lab_store::{FindingRecord, MadeFrom, Outcome, RunFile, RunFolder, Verdict};
use serde::Serialize;

use crate::catalogue::catalogue;
use crate::ci::CiResult;
use crate::cli::{CheckArgs, ReportArgs, RunArgs};
use crate::gate;
use crate::output::{eprint, explained, json, print};
use crate::page::{LivePage, PageActions, PageSource};
use crate::ready::{self, Unpacked};
use crate::runs::print_ending;

pub(crate) use again::again;

/// Longest experiment file that is read, a byte more than the checker accepts, so
/// that it is the checker that says what is wrong.
const FILE_BYTES: u64 = (1 << 20) + 1;

pub(crate) fn check(args: &CheckArgs) -> Result<Outcome> {
    let Some(checked) = read_plan(args)? else {
        return Ok(Outcome::Error);
    };
    let mut lacking = lab_runner::lacking(&checked.plan, &checked.file.folder);
    let mut also = |plan: &Plan| {
        for lacks in lab_runner::lacking(plan, &checked.file.folder) {
            if !lacking.contains(&lacks) {
                lacking.push(lacks);
            }
        }
    };
    // A mistake that only a variant has.
    for variant in &checked.plan.variants {
        let set = [&args.set[..], &variant.set].concat();
        let Some(plan) = checked.file.plan(&set) else {
            eprint(format_args!("in the variant \"{}\"", variant.name));
            return Ok(Outcome::Error);
        };
        also(&plan);
    }
    // Or a setting of the sweep.
    if let Some(planned) = &checked.plan.sweep {
        let Some(plans) = sweep::plans(&checked.file, &args.set, planned) else {
            return Ok(Outcome::Error);
        };
        plans.iter().for_each(|(plan, _)| also(plan));
    }
    // Names may be anything.
    let explained = checked.plan.explain();
    print(
        &explained
            .lines()
            .map(|line| printable(line) + "\n")
            .collect::<String>(),
    )?;
    for lacks in lacking {
        eprint(format_args!("headroom: on this machine, {lacks}"));
    }
    Ok(Outcome::Pass)
}

pub(crate) fn run(args: &RunArgs) -> Result<Outcome> {
    let name = args.check.file.display().to_string();
    gate::errors_too(&name, &args.files, || run_checked(args, &name))
}

fn run_checked(args: &RunArgs, name: &str) -> Result<Outcome> {
    let Some(checked) = read_plan(&args.check)? else {
        return gate::mistaken(name, &args.files);
    };
    let gates = checked.plan.gates.as_ref();
    let one = gates.is_none_or(|gates| gates.sides.is_none()) && checked.plan.sweep.is_none();
    if args.page && !one {
        bail!(
            "{}: --page shows one run, and this file makes many (it has [variants] with a [[gate]], or a [sweep]); run it without --page",
            checked.file.source.name
        );
    }
    if args.page && checked.plan.network == Network::Own {
        bail!(
            "{}: --page shows a run to a browser, which cannot reach into the network of its own that this file has (network = \"own\"); run it without --page",
            checked.file.source.name
        );
    }
    if gates.is_some_and(|gates| gates.sides.is_some()) {
        return gate::run_file(&checked.file, args);
    }
    if let Some(planned) = checked.plan.sweep.clone() {
        return sweep::run(args, &checked, &planned);
    }
    one_run(args, &checked)
}

/// Makes one run, and tells what came of it.
fn one_run(args: &RunArgs, checked: &Checked) -> Result<Outcome> {
    let underway = match args.page {
        true => Underway::visible(),
        false => Underway::default(),
    };
    let live = match args.page {
        true => {
            let look = look(underway.clone());
            Some(LivePage::start(args.page_port, look, underway.clone())?)
        }
        false => None,
    };
    if let Some(live) = &live {
        eprint(format_args!("headroom: the run's page is {}", live.url()));
    }
    let set = &args.check.set;
    let finished = made(args, &checked.file, checked.plan.clone(), set, underway)?;
    // The verdict stands whether or not the report can be written.
    let report = report_or_note(&finished.folder);
    if args.json {
        print(&json(&JsonOutput {
            verdict: &finished.verdict,
            findings: finished.folder.findings()?,
        })?)?;
    } else {
        let style = Style::of_stdout();
        print_ending(&finished.folder, &finished.verdict, style)?;
        if let Some((path, _)) = &report {
            print(&ending(path))?;
        }
    }
    // The verdict does not wait for those who have the page open.
    if let (Some(live), Some((_, page))) = (live, report) {
        live.finish(page);
    }
    let name = finished.folder.id();
    args.files
        .write(&CiResult::of_run(&name, &finished.verdict))?;
    Ok(finished.verdict.outcome)
}

impl PageActions for Underway {
    fn mark(&self, note: &str) -> Result<(), String> {
        Self::mark(self, note).map_err(|error| error.to_string())
    }

    fn rate(&self, load: &str, rate: f64) -> Result<(), String> {
        Self::rate(self, load, rate).map_err(|error| error.to_string())
    }

    fn stop(&self) -> Result<(), String> {
        Self::stop(self).map_err(|error| error.to_string())
    }
}

/// The page of a run as far as it has come.
fn look(underway: Underway) -> impl PageSource {
    let growing = Growing::default();
    move || {
        let (folder, so_far) = underway.look()?;
        // Also when the rest cannot be told: changes come once.
        growing.take(&so_far.changes);
        Some(Page::so_far(&folder, &so_far, &growing))
    }
}

/// Makes a run of a plan, which the file is with these constants, and tells what a person should know
/// besides its verdict.
fn made(
    args: &RunArgs,
    file: &ExperimentFile,
    plan: Plan,
    set: &[(String, String)],
    underway: Underway,
) -> Result<Finished> {
    let mut options = Options::for_this_binary(&args.out).context("find the own binary")?;
    options.keep = args.keep;
    options.underway = underway;
    options.base.clone_from(&file.folder);
    options.made_from = Some(file.made_from(set));
    let finished = lab_runner::run(plan, &file.source.text, options)?;
    for note in &finished.notes {
        eprint(format_args!("headroom: {note}"));
    }
    if let Some(work) = &finished.kept {
        let work = work.display();
        eprint(format_args!(
            "headroom: the systems' working files are in {work}"
        ));
    }
    Ok(finished)
}

/// What `--json` prints.
#[derive(Serialize)]
struct JsonOutput<'a> {
    #[serde(flatten)]
    verdict: &'a Verdict,
    /// What limited the run, the most important first.
    findings: Vec<FindingRecord>,
}

pub(crate) fn report(args: &ReportArgs) -> Result<Outcome> {
    let folder = RunFolder::open(&args.run)?;
    let (report, _) = write_report(&folder)?;
    print(&format!("{}\n", report.display()))?;
    Ok(Outcome::Pass)
}

/// Writes the report; returns where it is, and the page that it holds.
fn write_report(folder: &RunFolder) -> Result<(PathBuf, Page)> {
    let page = Page::of(folder).context("build the report")?;
    folder.write(RunFile::Report, page.html().as_bytes())?;
    Ok((folder.file(RunFile::Report), page))
}

/// The same after a run: what it came to does not depend on it, so that it is missing is only told.
fn report_or_note(folder: &RunFolder) -> Option<(PathBuf, Page)> {
    let written = write_report(folder);
    if let Err(error) = &written {
        eprint(format_args!(
            "headroom: there is no report: {}; make it with: headroom report {}",
            explained(error),
            folder.path().display()
        ));
    }
    written.ok()
}

/// An experiment without a mistake.
struct Checked {
    file: ExperimentFile,
    plan: Plan,
}

/// The file of an experiment, as it was read.
pub(crate) struct ExperimentFile {
    pub(crate) source: Source,
    /// The folder that its relative paths start from.
    pub(crate) folder: PathBuf,
    /// What it uses, if it is a ready one: gone with it.
    _ready: Option<Unpacked>,
    /// How a run of it tells where it is from.
    from: MadeFrom,
}

impl ExperimentFile {
    /// Reads a file, or a ready experiment by its name.
    pub(crate) fn read(name: &Path) -> Result<Self> {
        // A file in the way of a ready experiment is what was meant.
        let ready = match name.exists() {
            true => None,
            false => ready::unpack(name)?,
        };
        let file = ready.as_ref().map_or(name, |ready| &ready.file);
        let text = read_text(file).map_err(|error| match name.exists() || ready.is_some() {
            true => error,
            false => not_there(name, &error),
        })?;
        let whence = match ready {
            Some(_) => name.to_owned(),
            None => std::path::absolute(name)
                .with_context(|| format!("find the experiment file {}", name.display()))?,
        };
        Ok(Self {
            source: Source {
                name: file.display().to_string(),
                text,
            },
            folder: folder_of(file),
            from: MadeFrom {
                file: whence.to_string_lossy().into_owned(),
                ready: ready.is_some(),
                set: Vec::new(),
                side: None,
                variant: None,
            },
            _ready: ready,
        })
    }

    /// What a run of it with these constants is made from.
    pub(crate) fn made_from(&self, set: &[(String, String)]) -> MadeFrom {
        MadeFrom {
            set: set.to_vec(),
            ..self.from.clone()
        }
    }

    /// Its plan with these constants; `None` once every mistake was shown.
    pub(crate) fn plan(&self, set: &[(String, String)]) -> Option<Plan> {
        planned(&self.source, set)
    }
}

/// The folder that a file's relative paths start from.
fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// What a file says; `None` once every mistake was shown.
fn read_plan(args: &CheckArgs) -> Result<Option<Checked>> {
    let file = ExperimentFile::read(&args.file)?;
    let plan = file.plan(&args.set);
    Ok(plan.map(|plan| Checked { file, plan }))
}

/// The plan of a file with these constants; `None` once every mistake was shown.
fn planned(source: &Source, set: &[(String, String)]) -> Option<Plan> {
    let mistakes = match check_file(source, set, &catalogue()) {
        Ok(plan) => return Some(plan),
        Err(mistakes) => mistakes,
    };
    let color = std::io::stderr().is_terminal() && console::colors_enabled_stderr();
    for mistake in &mistakes {
        eprint(format_args!("{}\n", mistake.render(color)));
    }
    let count = mistakes.len();
    let noun = if count == 1 { "mistake" } else { "mistakes" };
    eprint(format_args!(
        "{count} {noun} in {}; nothing was started",
        source.name
    ));
    None
}

/// What to do about a file that there is not.
fn not_there(name: &Path, error: &anyhow::Error) -> anyhow::Error {
    let help = match ready::meant(name) {
        Some(meant) => format!("did you mean the ready experiment {meant}?"),
        None => "headroom list names those that are ready".to_owned(),
    };
    anyhow!("{}; {help}", explained(error))
}

fn read_text(path: &Path) -> Result<String> {
    let reading = || format!("read the experiment file {}", path.display());
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .with_context(reading)?
        .take(FILE_BYTES)
        .read_to_end(&mut bytes)
        .with_context(reading)?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        anyhow!("{}: it is not UTF-8 text, from byte {at} on", reading())
    })
}
