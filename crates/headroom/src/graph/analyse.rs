//! `headroom graph analyse` and `headroom graph compare`: where latency comes from, and
//! what moved.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use graph::analysis::{Analysis, Comparison, Question, Run, Verdict, compare as compare_runs};
use graph::noise::Noise;
use graph::topology::Topology;
use graph::topology::budget::Costs;
use graph::trace::Span;
use graph::work::Calibration;
use lab_store::Outcome;
use serde::Serialize;

use super::args::{AnalyseArgs, CompareArgs};
use super::make::whole;
use super::spans::{self, Running};
use crate::output::print;

/// Longest file of a machine's noise; it has a few kilobytes.
const NOISE_BYTES: u64 = 1 << 20;

/// The answer of `/analysis`.
pub(super) fn live(
    topology: &Topology,
    calibration: &Calibration,
    traces: Vec<Vec<Span>>,
) -> Result<serde_json::Value, String> {
    let question = Question {
        topology: Some(topology),
        costs: Costs {
            op: calibration.op_ns,
            ..Costs::default()
        },
        ..Question::default()
    };
    let analysis = question.analyse(&traces.concat());
    serde_json::to_value(analysis).map_err(|error| format!("write the analysis: {error}"))
}

/// Says where the latency of a running graph's requests, or of a file's, comes from.
pub(super) fn analyse(args: &AnalyseArgs) -> Result<()> {
    let (spans, running) = match is_address(&args.source) {
        true => of_running(args)?,
        false => (spans::of_file(Path::new(&args.source))?, None),
    };
    let topology = match &args.topology {
        Some(file) => Some(of_file(file)?),
        None => running,
    };
    let noise = args.noise.as_deref().map(noise).transpose()?;
    let question = Question {
        topology: topology.as_ref(),
        noise: noise.as_ref(),
        costs: super::costs(args.hop),
        path: args.path.as_deref(),
    };
    let analysis: Analysis = question.analyse(&spans);
    show(&analysis, args.json)
}

fn is_address(source: &str) -> bool {
    source.starts_with("http://")
}

/// The last spans of a running graph, and its topology.
fn of_running(args: &AnalyseArgs) -> Result<(Vec<Span>, Option<Topology>)> {
    let running = Running::at(&args.source);
    let (bytes, topology) = super::serving::runtime()?.block_on(async {
        let bytes = running.spans(args.last, args.path.as_deref()).await?;
        let topology = match args.topology {
            Some(_) => None,
            None => Some(running.topology().await?),
        };
        anyhow::Ok((bytes, topology))
    })?;
    if let Some(file) = &args.save {
        std::fs::write(file, &bytes)
            .with_context(|| format!("keep the spans in {}", file.display()))?;
    }
    let spans = spans::read(&bytes, &graph::trace::Origin::unix())
        .with_context(|| format!("read the spans of {}", args.source))?;
    Ok((spans, topology))
}

/// A topology that need not run here.
fn of_file(file: &Path) -> Result<Topology> {
    let source = document::Source::read(file)?;
    let checked = super::checked(&source, None)?;
    Ok(checked.topology)
}

fn noise(file: &Path) -> Result<Noise> {
    let bytes = whole(file, NOISE_BYTES)?;
    serde_json::from_slice(&bytes).with_context(|| {
        format!(
            "read {}: expected what `headroom graph noise --json` prints",
            file.display()
        )
    })
}

/// Says whether B is slower than A: pass, unless it is.
pub(super) fn compare(args: &CompareArgs) -> Result<Outcome> {
    let runs = |files: &[PathBuf]| -> Result<Vec<Run>> {
        let each = files.iter().map(|file| {
            let spans = spans::of_file(file)?;
            Ok(Run::of_spans(&spans, None))
        });
        each.collect()
    };
    let comparison: Comparison = compare_runs(&runs(&args.a)?, &runs(&args.b)?);
    show(&comparison, args.json)?;
    Ok(match comparison.verdict {
        _ if comparison.changes.is_empty() => Outcome::Inconclusive,
        Verdict::Worse => Outcome::Fail,
        Verdict::Better | Verdict::NoDifferenceResolvable => Outcome::Pass,
    })
}

/// Text, or JSON.
fn show(what: &(impl Serialize + std::fmt::Display), json: bool) -> Result<()> {
    let text = match json {
        true => serde_json::to_string_pretty(what)?,
        false => what.to_string(),
    };
    print(&(text.trim_end().to_owned() + "\n"))
}
