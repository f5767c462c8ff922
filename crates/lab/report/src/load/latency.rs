//! Percentiles from the intended and from the actual send, side by side.

use lab_load::Summary;
use lab_load::summary::Distribution;

use super::words::{LATE, LOST, ONLY_KNOWN, WITHHELD, grouped, seconds, time};
use super::{LABEL, Page};

/// Width of a column of times.
const COLUMN: usize = 12;
/// Ratio of the two from which the gap between them is explained.
const APART: f64 = 1.1;

pub(super) fn lines(page: &Page, summary: &Summary) -> Vec<String> {
    let (intended, actual) = (&summary.latency.intended, &summary.latency.actual);
    if intended.count == 0 {
        return vec!["no whole answer came, so there is no latency".to_owned()];
    }
    let open = summary.model == "open";
    let head = match open {
        true => format!(
            "{:LABEL$}{:>COLUMN$}{:>COLUMN$}",
            "latency", "intended", "actual"
        ),
        false => format!("{:LABEL$}{:>COLUMN$}", "latency", "actual"),
    };
    let mut lines = vec![page.paint.dim(&head)];
    for (name, of) in rows() {
        let shown = |distribution| match withheld(distribution, name) {
            true => format!("{:>COLUMN$}", WITHHELD),
            false => format!("{:>COLUMN$}", number(distribution, name, of)),
        };
        let one = shown(actual);
        let row = match open {
            true => format!("{}{one}", page.paint.bold(&shown(intended))),
            false => page.paint.bold(&one),
        };
        lines.push(format!("  {name:<width$}{row}", width = LABEL - 2));
    }
    if intended.unanswered > 0 {
        let lost = grouped(intended.unanswered);
        let all = grouped(intended.count + intended.unanswered);
        let text = format!("{lost} of {all} {LOST}");
        lines.extend(page.labelled("", &text));
    }
    if let Some(gap) = gap(summary).filter(|_| open) {
        lines.extend(page.labelled("", &gap));
    }
    for (sort, distribution) in [("intended", intended), ("actual", actual)] {
        if open || sort == "actual" {
            lines.extend(doubtful(page, sort, distribution));
        }
    }
    if let Some(name) = too_few(intended) {
        let why = format!("- : {name} and beyond need ten requests beyond them to be told");
        lines.push(page.paint.dim(&why));
    }
    lines
}

pub(super) type Of = fn(&Distribution) -> Option<f64>;

fn rows() -> [(&'static str, Of); 10] {
    [
        ("min", |d| d.min),
        ("mean", |d| d.mean),
        ("p50", |d| d.p50),
        ("p75", |d| d.p75),
        ("p90", |d| d.p90),
        ("p95", |d| d.p95),
        ("p99", |d| d.p99),
        ("p99.9", |d| d.p999),
        ("p99.99", |d| d.p9999),
        ("max", |d| d.max),
    ]
}

/// A number, by the name of its row.
pub(super) fn number(distribution: &Distribution, name: &str, of: Of) -> String {
    match distribution.lost(&key(name)) {
        true => time(Some(f64::INFINITY)),
        false => time(of(distribution)),
    }
}

/// The name of a row's bounds.
fn key(name: &str) -> String {
    name.replace('.', "")
}

/// Whether a number was measured and is not told.
fn withheld(distribution: &Distribution, name: &str) -> bool {
    let absent = rows()
        .iter()
        .any(|(row, of)| *row == name && of(distribution).is_none());
    absent && distribution.bounds.contains_key(&key(name))
}

/// Between which two values those numbers lie that the generator may have spoiled.
fn doubtful(page: &Page, sort: &str, distribution: &Distribution) -> Vec<String> {
    let between = rows().into_iter().filter_map(|(name, _)| {
        let [low, high] = distribution.bounds.get(&key(name))?;
        Some(format!("{name} {} to {}", seconds(*low), seconds(*high)))
    });
    let between: Vec<String> = between.collect();
    match between.is_empty() {
        true => Vec::new(),
        false => {
            let text = format!("{LATE} {sort} {ONLY_KNOWN} {}", between.join(", "));
            page.labelled("", &text)
        }
    }
}

/// Why the two columns differ, at the percentile where they do most of those of which it is known.
pub(super) fn gap(summary: &Summary) -> Option<String> {
    let (intended, actual) = (&summary.latency.intended, &summary.latency.actual);
    let apart = rows()
        .into_iter()
        .filter(|(name, _)| name.starts_with('p'))
        .filter_map(|(name, of)| {
            let (felt, took) = (of(intended)?, of(actual)?);
            let passed = felt - took;
            let why = held_up(summary, beyond(name), of, passed)?;
            (felt > took * APART).then(|| (name, why, passed, felt / took))
        });
    let (name, why, passed, _) = apart.max_by(|a, b| a.3.total_cmp(&b.3))?;
    let why = match why {
        SendDelay::Waited => {
            "before the request could be sent, for no connection was free: intended is what a \
             user feels, actual what the target took"
        }
        SendDelay::Late => {
            "before the generator sent the request, although nothing held it up: it was late \
             itself, which is part of intended and not of actual"
        }
        SendDelay::Both => {
            "before the request was sent: for some no connection was free, and the generator was \
             late itself; both are part of intended and not of actual"
        }
    };
    Some(format!("at {name}, {} passed {why}", seconds(passed)))
}

/// Share of requests that lie beyond a percentile, by the name of its row.
fn beyond(name: &str) -> f64 {
    let percent: f64 = name.trim_start_matches('p').parse().unwrap_or(0.0);
    1.0 - percent / 100.0
}

/// What requests waited for before they were sent.
#[derive(Debug, PartialEq)]
enum SendDelay {
    /// A connection, which those before them had.
    Waited,
    /// Nothing: the generator was late.
    Late,
    Both,
}

/// Why so much passed before requests were sent at a percentile, beyond which lies this share;
/// `None`: too few waited, and none was sent as late.
fn held_up(summary: &Summary, beyond: f64, of: Of, passed_s: f64) -> Option<SendDelay> {
    let lateness = &summary.lateness;
    // Of those that waited for a connection no lateness is known.
    let held = summary.requests.sent.saturating_sub(lateness.count);
    let enough = held as f64 >= beyond * summary.requests.sent as f64;
    let late = of(lateness).or(lateness.max).unwrap_or(0.0) >= passed_s / 2.0;
    match (held, enough, late) {
        (0, ..) | (_, false, true) => Some(SendDelay::Late),
        (_, true, true) => Some(SendDelay::Both),
        (_, true, false) => Some(SendDelay::Waited),
        (_, false, false) => None,
    }
}

/// The first percentile that is not told.
fn too_few(distribution: &Distribution) -> Option<&'static str> {
    let percentiles = rows().into_iter().filter(|(name, _)| name.starts_with('p'));
    percentiles
        .filter(|(name, of)| of(distribution).is_none() && !withheld(distribution, name))
        .map(|(name, _)| name)
        .find(|name| !distribution.lost(&key(name)))
}
