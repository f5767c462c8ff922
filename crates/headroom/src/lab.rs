//! `run`, `check` and `report`.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use lab_experiment::plan::Plan;
use lab_experiment::{Source, check as check_file};
use lab_report::terminal::{Style, ending, faults, said, verdict_table};
use lab_runner::Options;
use lab_store::{Event, FaultRecord, Outcome, RunFile, RunFolder};

use crate::catalogue::catalogue;
use crate::cli::{CheckArgs, ReportArgs, RunArgs};
use crate::output::{print, tell};
use crate::ready::{self, Unpacked};

/// Longest experiment file that is read, a byte more than the checker accepts, so
/// that it is the checker that says what is wrong.
const FILE_BYTES: u64 = (1 << 20) + 1;

pub(crate) fn check(args: &CheckArgs) -> Result<Outcome> {
    let Some(checked) = read_plan(args)? else {
        return Ok(Outcome::Error);
    };
    print(&checked.plan.explain())?;
    Ok(Outcome::Pass)
}

pub(crate) fn run(args: &RunArgs) -> Result<Outcome> {
    let Some(checked) = read_plan(&args.check)? else {
        return Ok(Outcome::Error);
    };
    let mut options = Options::for_this_binary(&args.out).context("find the own binary")?;
    options.keep = args.keep;
    options.base.clone_from(&checked.folder);
    let finished = lab_runner::run(checked.plan, &checked.text, options)?;
    for note in &finished.notes {
        tell(format_args!("headroom: {note}"));
    }
    if let Some(work) = &finished.kept {
        let work = work.display();
        tell(format_args!(
            "headroom: the systems' working files are in {work}"
        ));
    }
    // The verdict is told even when the report cannot be written.
    let report = write_report(&finished.folder);
    if args.json {
        let json = serde_json::to_string_pretty(&finished.verdict)?;
        print(&(json + "\n"))?;
    } else {
        let style = Style::of_stdout();
        let events: Vec<Event> = finished.folder.records().unwrap_or_default();
        print(&said(&events, style))?;
        print(&faults(&made_faults(&finished.folder)?, style))?;
        print(&match &report {
            Ok(path) => ending(&finished.verdict, path, style),
            Err(_) => verdict_table(&finished.verdict, style),
        })?;
    }
    report.map(|_| finished.verdict.outcome)
}

/// What the faults of a run did; a run without any has no file of them.
fn made_faults(folder: &RunFolder) -> Result<Vec<FaultRecord>> {
    match folder.file(RunFile::Faults).exists() {
        true => Ok(folder.read_json(RunFile::Faults)?),
        false => Ok(Vec::new()),
    }
}

pub(crate) fn report(args: &ReportArgs) -> Result<Outcome> {
    let folder = RunFolder::open(&args.run)?;
    let report = write_report(&folder)?;
    print(&format!("{}\n", report.display()))?;
    Ok(Outcome::Pass)
}

fn write_report(folder: &RunFolder) -> Result<std::path::PathBuf> {
    let html = lab_report::html(folder).context("build the report")?;
    folder.write(RunFile::Report, html.as_bytes())?;
    Ok(folder.file(RunFile::Report))
}

/// An experiment without a mistake.
struct Checked {
    text: String,
    plan: Plan,
    /// The folder that its relative paths start from.
    folder: PathBuf,
    /// What it uses, if it is a ready one: gone with it.
    _ready: Option<Unpacked>,
}

/// What a file says; `None` once every mistake was shown.
fn read_plan(args: &CheckArgs) -> Result<Option<Checked>> {
    // A file in the way of a ready experiment is what was meant.
    let ready = match args.file.exists() {
        true => None,
        false => ready::unpack(&args.file)?,
    };
    let file = ready.as_ref().map_or(&args.file, |ready| &ready.file);
    let text = read_text(file)?;
    let source = Source {
        name: file.display().to_string(),
        text,
    };
    match check_file(&source, &args.set, &catalogue()) {
        Ok(plan) => Ok(Some(Checked {
            text: source.text,
            plan,
            folder: match file.parent() {
                Some(folder) if folder != Path::new("") => folder.to_owned(),
                _ => PathBuf::from("."),
            },
            _ready: ready,
        })),
        Err(mistakes) => {
            let color = std::io::stderr().is_terminal() && console::colors_enabled_stderr();
            for mistake in &mistakes {
                tell(format_args!("{}\n", mistake.render(color)));
            }
            let count = mistakes.len();
            let noun = if count == 1 { "mistake" } else { "mistakes" };
            tell(format_args!(
                "{count} {noun} in {}; nothing was started",
                source.name
            ));
            Ok(None)
        }
    }
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
