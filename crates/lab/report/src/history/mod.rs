//! A history as a page: every metric over its runs, with what was judged of it.

mod chart;

use std::fmt::Write as _;

use lab_judgement::{HistoryJudgement, Metric};
use units::counted;

use crate::markup::{and_more, escaped, head};
use chart::chart;

/// Most runs that are drawn, the latest of them.
const MOST_RUNS: usize = 2_000;
/// Most metrics that are drawn, those that changed first.
const MOST_METRICS: usize = 200;

const STYLE: &str = "\
section{margin:0 0 2.2rem}h2{overflow-wrap:anywhere;margin:1.6rem 0 .2rem}p{margin:.2rem 0}\
svg.over{width:100%;max-width:720px;height:auto;display:block}\
.value{fill:none;stroke:#0072b2;opacity:.55}.dot{fill:#0072b2}.level{stroke:currentColor;stroke-width:1.5;opacity:.6}\
.band{fill:#e69f00;opacity:.16}.step{stroke:#009e73;stroke-width:2}.step.no{stroke:#d55e00}.step.open{stroke-dasharray:4 3}\
.drift{fill:none;stroke:#009e73;stroke-width:2;stroke-dasharray:6 3}.drift.no{stroke:#d55e00}\
.hit{fill:transparent}.hit:hover{fill:currentColor;fill-opacity:.12}\
ul{margin:.3rem 0;padding-left:1.2rem}li{overflow-wrap:anywhere}li li{font-size:13px;opacity:.85}\
.key i.step{background:#009e73}.key i.no{background:#d55e00}.key i.band{background:#e69f00;opacity:.4}";

/// A run of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRun {
    /// Its identity.
    pub run: String,
    /// What was measured.
    pub commit: String,
}

/// A metric over the runs.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryMetric {
    /// Which.
    pub metric: Metric,
    /// Of each run, in order; `None`: it was not measured.
    pub values: Vec<Option<f64>>,
    /// What was judged of these values.
    pub judgement: HistoryJudgement,
    /// The judgement in words, a change each.
    pub said: Vec<HistoryStatement>,
}

/// A statement of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryStatement {
    /// In a sentence.
    pub sentence: String,
    /// Where it lies, and which commits that are.
    pub below: Vec<String>,
    /// Whether it is for the worse.
    pub worse: bool,
}

/// One HTML file that needs nothing else. `about` says what was left out.
#[must_use]
pub fn html(about: &str, runs: &[HistoryRun], metrics: &[HistoryMetric]) -> String {
    let mut page = head("History", STYLE);
    let _ = write!(
        page,
        "<h1>History</h1><p>{}. Charts do not begin at zero; each dot is a run, told with its commit where \
         the pointer is.</p>\
         <p class=\"key\"><span><i class=\"no\"></i>worse since</span><span><i class=\"step\"></i>better since</span>\
         <span><i class=\"band\"></i>where that may have begun</span></p>",
        escaped(about)
    );
    let older = runs.len().saturating_sub(MOST_RUNS);
    if older > 0 {
        let _ = write!(
            page,
            "<p>Drawn are the latest; {} before them were judged as well.</p>",
            counted(older as u64, "run", "runs")
        );
    }
    let mut order: Vec<&HistoryMetric> = metrics.iter().collect();
    order.sort_by_key(|metric| match metric.said.iter().any(|said| said.worse) {
        true => 0,
        false if !metric.said.is_empty() => 1,
        false => 2,
    });
    for metric in order.iter().take(MOST_METRICS) {
        page += &section(metric, runs, older);
    }
    let more = order.len().saturating_sub(MOST_METRICS);
    let told = ", of which headroom history show tells";
    page + &and_more(more, ["metric", "metrics"], told) + "</html>\n"
}

fn section(found: &HistoryMetric, runs: &[HistoryRun], older: usize) -> String {
    let name = escaped(&found.metric.name);
    let latest = found.values.iter().rev().flatten().next();
    let latest = latest.map_or_else(String::new, |value| {
        escaped(&found.metric.unit.show(*value))
    });
    let mut text = format!(
        "<section><h2>{name}</h2><p>{latest}</p>{}",
        chart(found, runs, older)
    );
    if found.said.is_empty() {
        let points = counted(found.judgement.points as u64, "value", "values");
        let _ = write!(text, "<p>no change in {points}</p>");
    } else {
        text += "<ul>";
        for said in &found.said {
            let class = if said.worse { "no" } else { "" };
            let _ = write!(text, "<li class=\"{class}\">{}", escaped(&said.sentence));
            if !said.below.is_empty() {
                text += "<ul>";
                for line in &said.below {
                    let _ = write!(text, "<li>{}", escaped(line));
                }
                text += "</ul>";
            }
        }
        text += "</ul>";
    }
    text + "</section>"
}

#[cfg(test)]
mod tests;
