//! `headroom graph analyse`: where the latency of a graph's requests comes from.

use std::fmt::{self, Display, Formatter};
use std::path::Path;

use anyhow::{Context, Result};
use graph::analysis::Question;
use graph::noise::Noise;
use graph::topology::Topology;
use graph::topology::budget::Costs;
use graph::work::Calibration;
use serde::Serialize;
use serde_json::Value;
use traces::Span;
use traces::analysis::{Analysis, Floors};

use super::args::AnalyseArgs;
use super::make::whole;
use super::spans::{self, Running};
use crate::output::{replace, show};
use crate::server::control_runtime;
use crate::traces::of_file as spans_of_file;

/// Longest file of a machine's noise; it has a few kilobytes.
const NOISE_BYTES: u64 = 1 << 20;

/// The answer of `/analysis`.
pub(super) fn live(
    topology: &Topology,
    calibration: &Calibration,
    machine: Option<&Floors>,
    traces: Vec<Vec<Span>>,
) -> Result<Value, String> {
    let question = Question {
        topology: Some(topology),
        costs: Costs {
            op: calibration.op_ns,
            ..Costs::default()
        },
        machine,
        ..Question::default()
    };
    let analysis = question.analyse(&traces.concat());
    serde_json::to_value(analysis).map_err(|error| format!("write the analysis: {error}"))
}

/// Says where the latency of a running graph's requests, or of a file's, comes from.
pub(super) fn analyse(args: &AnalyseArgs) -> Result<()> {
    let given = args.topology.as_deref().map(of_file).transpose()?;
    let (spans, running, graph, incomplete) = match is_address(&args.source) {
        true => {
            let (spans, (running, graph, incomplete)) = of_running(args)?;
            (spans, Some(running), Some(graph), Some(incomplete))
        }
        false => (spans_of_file(Path::new(&args.source))?, None, None, None),
    };
    let topology = given.or(running);
    let noise = args.noise.as_deref().map(noise).transpose()?;
    // Where the graph runs, it has measured what hops take there.
    let measured = graph.as_ref().and_then(|graph| {
        let floors = graph.pointer("/deployment/floors")?;
        serde_json::from_value::<Floors>(floors.clone()).ok()
    });
    let question = Question {
        topology: topology.as_ref(),
        noise: noise.as_ref(),
        costs: super::costs(Costs::default().hop),
        hop: args.hop.map(super::nanos),
        machine: measured.as_ref(),
        path: args.path.as_deref(),
    };
    let answer = Answer {
        analysis: question.analyse(&spans),
        graph,
        incomplete_traces: incomplete,
        baseline: noise.as_ref(),
    };
    show(&answer, args.json)
}

/// An analysis with what it is of, so that it can be understood and made again.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    analysis: Analysis,
    /// What ran, and where; nothing of a file.
    graph: Option<Value>,
    /// Traces that lack spans, after a wait for those on their way; nothing of a file.
    incomplete_traces: Option<usize>,
    /// The machine's noise, if it was given.
    baseline: Option<&'a Noise>,
}

impl Display for Answer<'_> {
    fn fmt(&self, text: &mut Formatter<'_>) -> fmt::Result {
        self.analysis.fmt(text)?;
        if let Some(some) = self.incomplete_traces.filter(|some| *some > 0) {
            writeln!(
                text,
                "\nOf {} traces {some} lack spans: they are still on their way, were dropped, or their process ended.",
                self.analysis.counts.traces
            )?;
        }
        let Some(graph) = &self.graph else {
            return Ok(());
        };
        let said = |path: &str| match graph.pointer(path) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => "unknown".to_owned(),
            Some(value) => value.to_string(),
        };
        writeln!(
            text,
            "\nOf `{}`: profile {}, seed {}, mode {}, rung {}; {} on {} processors ({}), load average {} at its start.",
            said("/name"),
            said("/fingerprint"),
            said("/seed"),
            said("/deployment/mode"),
            said("/deployment/rung"),
            said("/deployment/machine/kernel"),
            said("/deployment/machine/cpus"),
            said("/deployment/machine/cpu_model"),
            said("/deployment/machine/load/m1"),
        )
    }
}

fn is_address(source: &str) -> bool {
    source.starts_with("http://")
}

/// The last spans of a running graph, and how many of their traces are incomplete; its
/// topology, and what it says of itself.
fn of_running(args: &AnalyseArgs) -> Result<(Vec<Span>, (Topology, Value, usize))> {
    let running = Running::at(&args.source);
    let (bytes, topology, graph) = control_runtime()?.block_on(net::local(async {
        let topology = running.topology().await?;
        running.quiet().await?;
        let bytes = running.spans(args.last, args.path.as_deref()).await?;
        anyhow::Ok((bytes, topology, running.described().await?))
    }))?;
    if let Some(file) = &args.save {
        replace(file, &bytes)?;
    }
    let spans = traces::read(&bytes, &traces::Origin::unix())
        .with_context(|| format!("read the spans of {}", args.source))?;
    let incomplete = spans::incomplete(&spans, &topology);
    Ok((spans, (topology, graph, incomplete)))
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
