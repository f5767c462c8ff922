//! Two runs, or two groups of runs, as a page: what differs, what was judged, and the lifecycles of
//! both on one scale.

mod interval;
mod lives;

use std::fmt::Write as _;

use lab_judgement::{Comparison, Verdict};
use lab_lifecycle::Table;
use lab_store::{RunFile, RunFolder};
use units::counted;

use crate::markup::{escaped, head};
use crate::{ReportError, timelines};

/// Most runs of a side that are named.
const NAMED: usize = 10;

const STYLE: &str = "\
td{white-space:nowrap}svg.lives rect{shape-rendering:crispEdges}\
h3{font-size:.95rem;margin:1rem 0 .2rem}svg.lives{width:100%;max-width:960px;height:auto;display:block}\
.zero{stroke:currentColor;opacity:.6}.limit{stroke:#d55e00;stroke-dasharray:2 2}.range{fill:#0072b2;opacity:.5}\
.best{fill:currentColor}p,li{overflow-wrap:anywhere}";

/// What a page of a comparison shows.
#[derive(Debug, Clone, Copy)]
pub struct Compared<'a> {
    /// Identities of the runs of the base.
    pub base: &'a [String],
    /// And of what may be worse.
    pub new: &'a [String],
    /// In what they differ besides what was measured, a sentence each, the weightiest first.
    pub differences: &'a [String],
    /// Of all metrics together.
    pub verdict: Verdict,
    /// The same in a sentence.
    pub sentence: &'a str,
    /// What was measured.
    pub metrics: &'a [Comparison],
}

/// A lifecycle in a run of either side.
#[derive(Debug, Clone, PartialEq)]
pub struct LifecyclePair {
    /// Its name.
    pub name: String,
    /// In the base; `None`: that run has none of this name.
    pub base: Option<Table>,
    /// In what may be worse.
    pub new: Option<Table>,
}

/// The lifecycles of two runs, those of the base first.
///
/// # Errors
/// When the file of one cannot be read or is not what its format says.
pub fn lifecycles(base: &RunFolder, new: &RunFolder) -> Result<Vec<LifecyclePair>, ReportError> {
    let known = [base.lifecycle_names()?, new.lifecycle_names()?];
    let only_new = known[1].iter().filter(|name| !known[0].contains(name));
    let names: Vec<String> = known[0].iter().chain(only_new).cloned().collect();
    let table = |run: &RunFolder, known: &[String], name: &String| {
        let file = known
            .contains(name)
            .then(|| run.file(RunFile::Lifecycle(name)));
        file.map(|file| timelines::read(name, &file)).transpose()
    };
    let pairs = names.into_iter().map(|name| {
        Ok(LifecyclePair {
            base: table(base, &known[0], &name)?,
            new: table(new, &known[1], &name)?,
            name,
        })
    });
    pairs.collect()
}

/// One HTML file that needs nothing else.
#[must_use]
pub fn html(compared: &Compared, lifecycles: &[LifecyclePair]) -> String {
    let word = compared.verdict.in_words();
    let mut page = head(&format!("Comparison: {word}"), STYLE);
    let _ = write!(
        page,
        "<h1>{}</h1><p>base: {}</p><p>new: {}</p><h2>What differs</h2>",
        escaped(compared.sentence),
        named(compared.base),
        named(compared.new)
    );
    page += &match compared.differences {
        [] => "<p>nothing in file, environment and machine</p>".to_owned(),
        all => {
            let items = all.iter().map(|one| format!("<li>{}", escaped(one)));
            format!("<ul>{}</ul>", items.collect::<String>())
        }
    };
    page += &table(compared.metrics);
    page += &licences(compared.metrics);
    if !lifecycles.is_empty() {
        page += "<h2>Lifecycles</h2><p>Of the first run of each side. A row is an entity, the quickest at the top and \
                 the slowest at the bottom; all begin at the left edge, and both pictures have the same scale.</p>";
    }
    for pair in lifecycles {
        page += &lives::of(pair);
    }
    page + "</html>\n"
}

fn named(runs: &[String]) -> String {
    let mut text = runs
        .iter()
        .take(NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    let more = runs.len().saturating_sub(NAMED);
    if more > 0 {
        let _ = write!(text, " and {more} more");
    }
    escaped(&text)
}

fn table(metrics: &[Comparison]) -> String {
    let scale = interval::scale(metrics);
    let mut text = "<h2>Metrics</h2><div class=\"scroll\"><table><tr><th>metric<th>base<th>new<th>change<th><th>verdict</tr>"
        .to_owned();
    for found in metrics {
        let value = |value: Option<f64>| {
            value.map_or_else(|| "–".to_owned(), |it| escaped(&found.metric.unit.show(it)))
        };
        let effect = found.effect.as_ref();
        let class = match found.verdict {
            Verdict::Worse => "no",
            Verdict::NotWorse => "",
            Verdict::CannotTell => "so",
        };
        let word = found.verdict.in_words();
        let _ = write!(
            text,
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td class=\"{class}\">{word}</tr>",
            escaped(&found.metric.name),
            value(found.base_median),
            value(found.new_median),
            effect.map_or_else(
                || "unknown".to_owned(),
                |effect| escaped(&effect.in_words())
            ),
            interval::drawn(found, scale),
        );
    }
    text + "</table></div><p>A bar is the interval of 95 %, to the right of the line is worse, the broken line is the limit.</p>"
}

/// What the answers can be held to, each sentence once.
fn licences(metrics: &[Comparison]) -> String {
    let mut all: Vec<String> = Vec::new();
    for licence in metrics.iter().map(Comparison::licence_in_words) {
        if !all.contains(&licence) {
            all.push(licence);
        }
    }
    let all = all
        .iter()
        .map(|licence| format!("<p>{}</p>", escaped(licence)));
    all.collect()
}

/// `4,000 entities`, or why there is no picture.
fn entities(table: Option<&Table>) -> String {
    match table {
        None => "has no such lifecycle".to_owned(),
        Some(table) => counted(table.rows.len() as u64, "entity", "entities"),
    }
}

#[cfg(test)]
mod tests;
