//! Runs as a page: for each experiment its numbers over the runs, and the runs with their reports.

use std::fmt::Write as _;

use lab_judgement::MetricValue;
use lab_store::Outcome;
use units::{counted, show_bytes, show_seconds};

use super::{ListedRun, by_name};
use crate::markup::{and_more, escaped, head, in_url};
use crate::sparkline::Frame;
use crate::terminal::word;

/// Most runs of an experiment that are drawn and listed, the latest of them.
const MOST_RUNS: usize = 200;
/// Most charts of an experiment.
const MOST_CHARTS: usize = 24;
/// Size of a chart, and what is left free for the dots at its edges.
const WIDTH: f64 = 200.0;
const HEIGHT: f64 = 44.0;
const EDGE: f64 = 5.0;

const CHARTS: &str = "\
td{white-space:nowrap}td:first-child{white-space:normal;overflow-wrap:anywhere;min-width:9em}.charts{display:flex;flex-wrap:wrap;gap:.4rem 1.6rem}figure{margin:0;width:200px}\
figcaption{font-size:12px;line-height:1.3;overflow-wrap:anywhere}figcaption b{font-weight:600}\
.dot{fill:#0072b2}.dot.no{fill:#b00020}.dot.so{fill:#e69f00}.line{stroke:#0072b2;opacity:.55;fill:none}\
.other{stroke:currentColor;opacity:.45;stroke-dasharray:2 2}";

/// One HTML file that needs nothing else, for the folder that the runs are in: links lead to the
/// reports beside it.
#[must_use]
pub fn html(runs: &[ListedRun]) -> String {
    let names = by_name(runs);
    let mut page = head("Runs", CHARTS);
    let _ = write!(
        page,
        "<h1>Runs</h1><p>{}, {}. Each chart begins at zero and shows one number of the latest runs, in their order; \
         a broken line stands where the plan or the processor was another than before.</p>",
        counted(runs.len() as u64, "run", "runs"),
        show_bytes(runs.iter().map(|run| run.bytes as f64).sum()),
    );
    for (name, runs) in names {
        let name = match name {
            "" => "Not to be read",
            name => name,
        };
        let _ = write!(page, "<h2>{}</h2>", escaped(name));
        let latest = &runs[runs.len().saturating_sub(MOST_RUNS)..];
        page += &charts(latest);
        page += &table(latest);
        let older = runs.len() - latest.len();
        page += &and_more(older, ["run", "runs"], " before them");
    }
    page + "</html>\n"
}

fn class(outcome: Option<Outcome>) -> &'static str {
    match outcome {
        Some(Outcome::Pass) => "",
        Some(Outcome::Fail | Outcome::Error) => "no",
        Some(Outcome::Inconclusive | Outcome::Invalid) | None => "so",
    }
}

fn table(runs: &[&ListedRun]) -> String {
    let mut text =
        "<div class=\"scroll\"><table><tr><th>run<th>outcome<th>held<th>began (UTC)<th>took<th>commit<th>size</tr>"
            .to_owned();
    for run in runs.iter().rev() {
        let id = escaped(&run.run);
        text += "<tr><td>";
        let _ = match run.report {
            true => write!(
                text,
                "<a href=\"{}/report.html\">{id}</a>",
                in_url(&run.run)
            ),
            false => write!(text, "{id}"),
        };
        let outcome = run.how_it_ended(word);
        let why = run.reason.as_deref().unwrap_or_default();
        let commit: String = run
            .git_commit
            .iter()
            .flat_map(|all| all.chars())
            .take(12)
            .collect();
        let _ = write!(
            text,
            "<td class=\"{}\" title=\"{}\">{outcome}<td>{}<td>{}<td>{}<td>{}<td>{}</tr>",
            class(run.outcome),
            escaped(why),
            run.score(),
            run.began,
            run.duration_s.map_or_else(String::new, show_seconds),
            escaped(&commit),
            show_bytes(run.bytes as f64),
        );
    }
    text + "</table></div>"
}

/// A chart of each number that the latest run with numbers measured.
fn charts(runs: &[&ListedRun]) -> String {
    let latest = runs.iter().rev().find(|run| !run.metrics.is_empty());
    let metrics = latest.map_or(&[][..], |run| &run.metrics);
    if metrics.is_empty() {
        return String::new();
    }
    let mut text = "<div class=\"charts\">".to_owned();
    for latest in metrics.iter().take(MOST_CHARTS) {
        text += &chart(latest, runs);
    }
    let more = metrics.len().saturating_sub(MOST_CHARTS);
    let more = and_more(more, ["number", "numbers"], ", which the reports have");
    text + "</div>" + &more
}

fn chart(latest: &MetricValue, runs: &[&ListedRun]) -> String {
    let metric = &latest.metric;
    let value_of = |run: &ListedRun| {
        let found = run
            .metrics
            .iter()
            .find(|one| one.metric.name == metric.name);
        found.map(|one| one.value).filter(|value| value.is_finite())
    };
    let top = runs
        .iter()
        .filter_map(|run| value_of(run))
        .fold(0.0, f64::max);
    let top = if top > 0.0 { top } else { 1.0 };
    let frame = Frame {
        width: WIDTH,
        height: HEIGHT,
        edge: EDGE,
        count: runs.len(),
        bottom: 0.0,
        top,
    };
    let (mut line, mut dots, mut breaks) = (String::new(), String::new(), String::new());
    let mut before: Option<&ListedRun> = None;
    for (at, run) in runs.iter().enumerate() {
        let Some(value) = value_of(run) else { continue };
        let (x, y) = (frame.x(at), frame.y(value));
        // What was measured of another plan or elsewhere is no change of the same thing.
        let another = before.is_some_and(|before| before.alike != run.alike);
        if another {
            let _ = write!(
                breaks,
                "<line class=\"other\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"0\" y2=\"{HEIGHT}\"/>",
                x - frame.step() / 2.0
            );
        }
        let begins = before.is_none() || another;
        let _ = write!(line, "{}{x:.1} {y:.1}", if begins { "M" } else { "L" });
        let _ = write!(
            dots,
            "<a href=\"{}/report.html\"><circle class=\"dot {}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\"><title>{}: {}, \
             {}</title></circle></a>",
            in_url(&run.run),
            class(run.outcome),
            escaped(&run.run),
            escaped(&metric.unit.show(value)),
            run.outcome.map_or("", word),
        );
        before = Some(run);
    }
    let name = escaped(&metric.name);
    format!(
        "<figure><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" role=\"img\" aria-label=\"{name}\">\
         {breaks}<path class=\"line\" d=\"{line}\"/>{dots}</svg><figcaption>{name} <b>{}</b></figcaption></figure>",
        escaped(&metric.unit.show(latest.value)),
    )
}
