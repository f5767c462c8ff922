//! `headroom runs`: the stored runs of a folder.

mod again;
mod export;
mod prune;
mod push;
mod which;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use lab_report::metrics;
use lab_report::runs::{ListedRun, html, terminal};
use lab_report::terminal::{Style, ending, faults, findings, printed_by_steps, verdict_table};
use lab_store::{Event, Outcome, RunFile, RunFolder, StoredRun, Verdict, runs_in};
use units::show_bytes;

use crate::output::{eprint, json, print, replace};

pub(crate) const AFTER_HELP: &str = "\
  headroom runs                              list the runs
  headroom runs show                         the result of the latest run
  headroom runs open web-20260102-030405     its report, in the browser
  headroom runs again web-20260102-030405    make it again, from the same plan
  headroom runs page                         a page of all, with every number over the runs
  headroom runs export --perfetto run.json   the latest, for ui.perfetto.dev
  headroom runs export --remote-write http://127.0.0.1:9090/api/v1/write
                                             its numbers, for Prometheus
  headroom runs dashboard > dashboard.json   for Grafana, over these numbers
  headroom runs prune --keep 20              what would be removed; --yes removes it

A run is named by its folder, by a path to that, or by the beginning of its name.";

#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    command: Option<RunsCommand>,
    #[command(flatten)]
    list: ListRunsArgs,
}

#[derive(Debug, Subcommand)]
enum RunsCommand {
    /// List the runs, the latest last
    List(ListRunsArgs),
    /// Print the result of a run again
    Show(RunArgs),
    /// Open the report of a run in the browser
    Open(RunArgs),
    /// Make a run again, from the same plan
    #[command(after_help = again::AFTER_HELP)]
    Again(again::AgainArgs),
    /// Export a run to another program: Perfetto, Prometheus, an OpenTelemetry collector
    Export(export::ExportArgs),
    /// Print a dashboard for Grafana that shows exported numbers
    Dashboard,
    /// Write index.html: a small chart of every number over the runs of its experiment, and links
    Page(InArgs),
    /// Remove old runs
    #[command(after_help = prune::AFTER_HELP)]
    Prune(prune::PruneArgs),
}

#[derive(Debug, Args)]
struct InArgs {
    /// The folder in which the runs are
    #[arg(long = "in", value_name = "DIR", default_value = "runs")]
    folder: PathBuf,
}

#[derive(Debug, Args)]
struct ListRunsArgs {
    #[command(flatten)]
    within: InArgs,
    /// Runs of this experiment only
    #[arg(long, value_name = "EXPERIMENT")]
    name: Option<String>,
    /// Print JSON, with what was measured
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct RunArgs {
    /// The run [default: the latest that has ended]
    run: Option<PathBuf>,
    #[command(flatten)]
    within: InArgs,
}

pub(crate) fn run(args: &RunsArgs) -> Result<Outcome> {
    match &args.command {
        None => list(&args.list),
        Some(RunsCommand::List(args)) => list(args),
        Some(RunsCommand::Show(args)) => show(args),
        Some(RunsCommand::Open(args)) => open(args),
        Some(RunsCommand::Again(args)) => again::again(args),
        Some(RunsCommand::Export(args)) => export::export(args),
        Some(RunsCommand::Dashboard) => {
            print(&json(&metrics::dashboard())?)?;
            Ok(Outcome::Pass)
        }
        Some(RunsCommand::Page(args)) => page(&args.folder),
        Some(RunsCommand::Prune(args)) => prune::prune(args),
    }
}

/// The runs in a folder; one that is not there holds none.
fn stored(folder: &Path) -> Result<Vec<StoredRun>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    Ok(runs_in(folder)?)
}

fn list(args: &ListRunsArgs) -> Result<Outcome> {
    let folder = &args.within.folder;
    let runs = stored(folder)?;
    let mut runs: Vec<ListedRun> = runs.iter().map(ListedRun::of).collect();
    if let Some(name) = &args.name {
        runs.retain(|run| run.name == *name);
    }
    if args.json {
        print(&json(&runs)?)?;
        return Ok(Outcome::Pass);
    }
    if runs.is_empty() {
        print(&format!("no runs in {}\n", folder.display()))?;
        return Ok(Outcome::Pass);
    }
    let bytes: u64 = runs.iter().map(|run| run.bytes).sum();
    let noun = if runs.len() == 1 { "run" } else { "runs" };
    print(&format!(
        "{}\n{} {noun} in {}, {}\n",
        terminal(&runs, Style::of_stdout()),
        runs.len(),
        folder.display(),
        show_bytes(bytes as f64)
    ))?;
    Ok(Outcome::Pass)
}

fn show(args: &RunArgs) -> Result<Outcome> {
    let folder = RunFolder::open(&which::path(args.run.as_deref(), &args.within.folder)?)?;
    let style = Style::of_stdout();
    let environment = folder.environment()?;
    let words: Vec<&str> = environment.command.iter().map(String::as_str).collect();
    let command = lab_report::terminal::printable(&words.join(" "));
    print(&format!("{}: {command}\n", folder.id()))?;
    if let Some(from) = &environment.made_from {
        let of = again::made_from_in_words(from);
        if !of.is_empty() {
            print(&format!("{}\n", lab_report::terminal::printable(&of)))?;
        }
        print(&format!("again: headroom runs again {}\n", shown(&folder)))?;
    }
    print("\n")?;
    print_ending(&folder, &folder.verdict()?, style)?;
    let report = folder.file(RunFile::Report);
    if report.is_file() {
        print(&ending(&report))?;
    }
    Ok(Outcome::Pass)
}

/// How a shell is told of a run.
fn shown(folder: &RunFolder) -> String {
    let path = folder.path().display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+~".contains(c);
    match path.chars().all(plain) {
        true => path,
        false => format!(
            "'{}'",
            lab_report::terminal::printable(&path).replace('\'', "'\\''")
        ),
    }
}

/// What a run says at its end, but for where its report is.
pub(crate) fn print_ending(folder: &RunFolder, verdict: &Verdict, style: Style) -> Result<()> {
    let events: Vec<Event> = folder.records().unwrap_or_default();
    print(&printed_by_steps(&events, style))?;
    print(&faults(&folder.faults()?, style))?;
    print(&(verdict_table(verdict, style) + "\n"))?;
    print(&findings(&folder.findings()?, style))
}

fn open(args: &RunArgs) -> Result<Outcome> {
    let folder = RunFolder::open(&which::path(args.run.as_deref(), &args.within.folder)?)?;
    let report = folder.file(RunFile::Report);
    if !report.is_file() {
        bail!(
            "{} has no report; make it with: headroom report {}",
            folder.id(),
            folder.path().display()
        );
    }
    let report = report
        .canonicalize()
        .with_context(|| format!("open {}", report.display()))?;
    print(&format!("{}\n", report.display()))?;
    if !opened(&report) {
        eprint(
            "headroom: no browser could be started (BROWSER, xdg-open, open); open that file in one",
        );
    }
    Ok(Outcome::Pass)
}

/// Hands a file to whatever opens pages here. Says whether somebody took it.
fn opened(file: &Path) -> bool {
    let chosen = std::env::var_os("BROWSER").filter(|program| !program.is_empty());
    let usual = ["xdg-open", "open"].map(Into::into);
    let programs = match chosen {
        Some(program) => vec![program],
        None => usual.to_vec(),
    };
    programs.into_iter().any(|program| {
        let mut command = Command::new(program);
        let quiet = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        quiet
            .arg(file)
            .status()
            .is_ok_and(|status| status.success())
    })
}

fn page(folder: &Path) -> Result<Outcome> {
    let runs = stored(folder)?;
    if runs.is_empty() {
        bail!(
            "no runs in {}; a run of an experiment makes the first",
            folder.display()
        );
    }
    let listed: Vec<ListedRun> = runs.iter().map(ListedRun::of).collect();
    let index = folder.join("index.html");
    replace(&index, html(&listed).as_bytes())?;
    print(&format!("{}\n", index.display()))?;
    Ok(Outcome::Pass)
}
