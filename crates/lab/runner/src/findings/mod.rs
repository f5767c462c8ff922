//! What limited a run: what was recorded of it, given to the detectors part by part, and
//! what they found in the order of its importance.
//!
//! A function of the records of the run: nothing is measured here.

mod entities;
mod grid;
mod loads;
mod machine;
mod repeats;

use lab_experiment::plan::Plan;
use lab_findings::{Chart, Finding, Kind, Ranked, rank};
use lab_lifecycle::{Table, Turns};
use lab_store::{FaultRecord, FindingRecord, Mark, ProcessSample, RunFolder, StoreError};

use crate::judge::Judged;
use crate::loads::Outcome;
use crate::mine::Repeated;

/// Most findings that are stored: those after them matter less.
const MOST: usize = 30;

/// What was recorded of a run, as far as it is judged.
pub(crate) struct Recorded<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) folder: &'a RunFolder,
    pub(crate) judged: Judged,
    pub(crate) tables: &'a [Table],
    /// Lines that showed a point once more, by table.
    pub(crate) repeated: &'a [Repeated],
    pub(crate) loops: &'a [(String, Turns)],
    /// Names of the copies of systems, by the numbers of the processes in the turns.
    pub(crate) copies: &'a [String],
    pub(crate) samples: &'a [ProcessSample],
    pub(crate) loads: &'a [Outcome],
    pub(crate) faults: &'a [FaultRecord],
}

/// A finding and the chart on which it is marked.
struct Marked {
    finding: Finding,
    mark: Mark,
}

impl Marked {
    /// Marks what shows on the chart of `name`.
    fn on(name: &str, finding: Finding) -> Self {
        let level = |number: &str| finding.number(number);
        let (chart, level) = match (finding.kind, finding.chart) {
            (Kind::Pool, _) => ("lifecycle", level("level")),
            (_, Chart::Lifecycle) => ("lifecycle", None),
            (_, Chart::Processors) => ("processors", level("limit_cores")),
            (Kind::Exhaustion, _) if finding.part == "descriptors" => {
                ("descriptors", level("limit"))
            }
            (Kind::Queue, _) => ("in-flight", None),
            (_, Chart::Load | Chart::Connections) => ("rate", None),
            (_, Chart::Latency) => ("latency", level("stall_latency_s")),
            (_, Chart::Loops) => ("loop", None),
            (_, Chart::Resources | Chart::Datagrams) => ("run", None),
        };
        let mark = Mark {
            chart: chart.to_owned(),
            name: name.to_owned(),
            phase: None,
            level,
        };
        Self { finding, mark }
    }

    /// Marks what shows in a phase of a lifecycle.
    fn in_phase(name: &str, phase: usize, finding: Finding) -> Self {
        let mut marked = Self::on(name, finding);
        marked.mark.phase = Some(phase);
        marked
    }
}

/// Everything that limited the run, the most important first.
///
/// # Errors
/// When a series of the run cannot be read.
pub(crate) fn findings(of: &Recorded<'_>) -> Result<Vec<FindingRecord>, StoreError> {
    let mut marked = loads::findings(of)?;
    marked.extend(machine::findings(of)?);
    marked.extend(entities::findings(of)?);
    marked.extend(repeats::findings(of));
    let marks: Vec<(Finding, Mark)> = marked
        .iter()
        .map(|one| (one.finding.clone(), one.mark.clone()))
        .collect();
    let ranked = rank(marked.into_iter().map(|one| one.finding).collect());
    let mark = |finding: &Finding| {
        let mut same = marks.iter().filter(|(other, _)| other == finding);
        same.next().map(|(_, mark)| mark.clone())
    };
    let stored = ranked.into_iter().take(MOST);
    Ok(stored
        .filter_map(|one| Some(record(mark(&one.finding)?, one)))
        .collect())
}

fn record(mark: Mark, ranked: Ranked) -> FindingRecord {
    let finding = ranked.finding;
    let evidence = finding.evidence.iter();
    let evidence = evidence.filter(|number| number.value.is_finite());
    FindingRecord {
        kind: finding.kind.name().to_owned(),
        evidence: evidence
            .map(|number| (number.name.to_owned(), number.value))
            .collect(),
        system: finding.system,
        part: finding.part,
        text: finding.sentence,
        from_s: finding.from_s,
        to_s: finding.to_s,
        effect: finding.effect.value,
        interval: [finding.effect.low, finding.effect.high],
        of: finding.of.name().to_owned(),
        mark,
        explained_by: ranked.explained_by,
    }
}
