//! `headroom traces`: where the latency of requests of any system comes from, and what got
//! worse, from the spans that the system sends to its collector.

mod collect;
mod output_file;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use lab_store::Outcome;
use traces::analysis::{
    Question, Run, Verdict, compare as compare_runs, entered_paths, shared_path,
};
use traces::{Origin, Span, join_paths, normalise, part_requests};
use units::grouped;

use crate::graph::whole;
use crate::output::{eprint, show};

/// Longest file of spans.
const FILE_BYTES: u64 = 1 << 30;

#[derive(Debug, Subcommand)]
pub(crate) enum TracesCommand {
    /// Show where the latency of requests comes from, for each kind of request
    #[command(after_help = FORMS)]
    Analyse(AnalyseArgs),
    /// Decide whether B is worse than A for any kind of request, and name the service that caused it
    #[command(after_help = COMPARE)]
    Compare(CompareArgs),
    /// Receive spans as a collector, keep the newest, and analyse them
    #[command(after_help = collect::AFTER_HELP)]
    Collect(collect::CollectArgs),
}

const FORMS: &str = "\
A file holds spans of whole traces: OTLP (JSON or protobuf, as exporters post them and Tempo answers), Zipkin's
JSON, or Jaeger's (what its API and its \"Download Results\" give), packed by gzip or not. Services, kinds, failures
and clocks are made the same whatever form they come in.

Requests that enter at one place and reach the same endpoints are one kind.";

pub(crate) const COMPARE: &str = "\
Exit codes:
  0  B is not slower, as far as can be told
  1  B is slower, fails more, or requests of some kind wait for a service that does worse
  2  B may fail more or have more slow requests, or there are too few requests to tell
  4  error

Runs that took turns: --a a1.json a2.json a3.json --b b1.json b2.json b3.json";

#[derive(Debug, Args)]
pub(crate) struct AnalyseArgs {
    /// Files of spans, analysed together
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Only requests to this path of the entry (or to the entry's span of this name)
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Treat all requests of the most frequent entry as one kind, and show every part
    #[arg(long)]
    together: bool,
    /// Print JSON, times in nanoseconds
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Spans of before and of after
    #[arg(value_names = ["A", "B"], num_args = 2, conflicts_with_all = ["a", "b"], required_unless_present_all = ["a", "b"])]
    both: Vec<PathBuf>,
    /// Spans of the first environment, a file for each run
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "b")]
    a: Vec<PathBuf>,
    /// Spans of the second one, from runs that alternated with the first
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "a")]
    b: Vec<PathBuf>,
    /// Print JSON, times in nanoseconds
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: &TracesCommand) -> Result<Outcome> {
    match command {
        TracesCommand::Analyse(args) => analyse(args).map(|()| Outcome::Pass),
        TracesCommand::Collect(args) => collect::collect(args).map(|()| Outcome::Pass),
        TracesCommand::Compare(args) => match args.both.as_slice() {
            [a, b] => compare(std::slice::from_ref(a), std::slice::from_ref(b), args.json),
            _ => compare(&args.a, &args.b, args.json),
        },
    }
}

fn analyse(args: &AnalyseArgs) -> Result<()> {
    let spans = of_files(&args.files)?;
    let question = Question {
        path: args.path.as_deref(),
        ..Question::default()
    };
    if let Some(path) = &args.path {
        is_entered(path, &spans)?;
    }
    match args.together {
        true => show(&question.analyse(&spans), args.json),
        false => show(&question.analyse_groups(&spans), args.json),
    }
}

/// Most paths that are named.
const PATHS: usize = 8;

/// Refuses a path at which no request entered.
fn is_entered(path: &str, spans: &[Span]) -> Result<()> {
    let paths = entered_paths(spans);
    if paths.iter().any(|(known, _)| known == path) {
        return Ok(());
    }
    let named: Vec<String> = paths
        .iter()
        .take(PATHS)
        .map(|(known, requests)| format!("`{known}` ({})", grouped(*requests)))
        .collect();
    let more = match paths.len().saturating_sub(PATHS) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    match named.is_empty() {
        true => bail!("--path {path}: no request entered anywhere"),
        false => bail!(
            "--path {path}: no request entered there; expected one of {}{more}",
            named.join(", ")
        ),
    }
}

/// Says whether B is slower than A, or fails more, or who is behind what got worse: pass,
/// unless it does.
pub(crate) fn compare(a: &[PathBuf], b: &[PathBuf], json: bool) -> Result<Outcome> {
    let spans = |files: &[PathBuf]| -> Result<Vec<Vec<Span>>> {
        files.iter().map(|file| of_file(file)).collect()
    };
    let mut all = spans(a)?;
    all.extend(spans(b)?);
    // What is one path in one file is one in all.
    join_paths(all.iter_mut().flatten());
    let path = shared_path(&all, None);
    let runs: Vec<Run> = all
        .iter()
        .map(|spans| Run::of_spans(spans, None, path.as_deref()))
        .collect();
    let (runs_a, runs_b) = runs.split_at(a.len());
    let comparison = compare_runs(runs_a, runs_b);
    show(&comparison, json)?;
    Ok(match comparison.verdict {
        Verdict::Worse => Outcome::Fail,
        Verdict::PossiblyWorse => Outcome::Inconclusive,
        _ if comparison.changes.is_empty() => Outcome::Inconclusive,
        Verdict::Better | Verdict::NoDifferenceResolvable => Outcome::Pass,
    })
}

/// The spans of a file.
pub(crate) fn of_file(file: &Path) -> Result<Vec<Span>> {
    of_files(&[file])
}

/// The spans of several files together: a trace may be in more than one.
fn of_files(files: &[impl AsRef<Path>]) -> Result<Vec<Span>> {
    let each: Result<Vec<Vec<Span>>> = files.iter().map(|file| decoded(file.as_ref())).collect();
    let mut spans = each?.concat();
    let parted = part_requests(&mut spans);
    if parted > 0 {
        eprint(format_args!(
            "{} traces hold several requests that share their id: each is one of its own",
            grouped(parted)
        ));
    }
    normalise(&mut spans);
    Ok(spans)
}

/// The spans of a file, as its writer means them.
fn decoded(file: &Path) -> Result<Vec<Span>> {
    let bytes = whole(file, FILE_BYTES)?;
    if bytes.is_empty() {
        bail!("read {}: it is empty; expected spans", file.display());
    }
    // Wherever it comes from, its times count from 1970.
    let decoded = traces::decode(&bytes, &Origin::unix()).with_context(|| {
        let file = file.display();
        format!("read {file}: expected spans of OTLP, Zipkin or Jaeger")
    })?;
    if let Some(left_out) = decoded.left_out() {
        eprint(format_args!("{}: left out are {left_out}", file.display()));
    }
    if decoded.spans.is_empty() && decoded.refused() > 0 {
        bail!("read {}: no span of it can be used", file.display());
    }
    Ok(decoded.spans)
}
