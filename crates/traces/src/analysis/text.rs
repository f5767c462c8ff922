//! The answer for a terminal.

use std::fmt::{Display, Formatter, Result};

use units::{grouped, show_count};

use super::figures::Figures;
use super::report::Component;
use super::sentences::{percent, time, whole};
use super::{Analysis, Latency};
use units::columns::table;

/// Components that are shown; the JSON has all.
const MOST: usize = 16;

/// Services and edges that are shown, of large graphs.
const MOST_ROWS: usize = 40;

impl Display for Analysis {
    fn fmt(&self, text: &mut Formatter<'_>) -> Result {
        for sentence in &self.sentences {
            writeln!(text, "{sentence}")?;
        }
        writeln!(text)?;
        self.heading(text)?;
        let causes = self.causes.iter();
        let rows = causes.map(|one| (vec![one.cause.name().to_owned()], one.figures));
        figures(text, &["cause"], rows.collect())?;
        let services = self.services.iter();
        let rows = services.map(|one| {
            let cells = vec![one.name.clone(), often(one.visits), percent(one.on_path)];
            (cells, one.figures)
        });
        figures(text, &["service", "visits", "critical"], rows.collect())?;
        let rows = self.edges.iter().map(|one| {
            let cells = vec![one.id.clone(), often(one.calls), percent(one.on_path)];
            (cells, one.figures)
        });
        figures(text, &["edge", "calls", "critical"], rows.collect())?;
        let rows = self.components.iter().take(MOST);
        let rows = rows.map(|one| (vec![place(one), one.cause.name().to_owned()], one.figures));
        figures(text, &["part", "cause"], rows.collect())?;
        self.branches(text)?;
        self.levels(text)?;
        if !self.notes.is_empty() {
            writeln!(text)?;
        }
        for note in &self.notes {
            writeln!(text, "{note}")?;
        }
        Ok(())
    }
}

impl Analysis {
    fn heading(&self, text: &mut Formatter<'_>) -> Result {
        let Some(entry) = &self.entry else {
            return writeln!(text, "No requests.");
        };
        writeln!(
            text,
            "{} {}: {} requests, {} failed",
            entry.service,
            entry.path,
            grouped(entry.requests),
            grouped(self.counts.failed)
        )?;
        let mut rows = vec![quantiles("seen", &self.latency)];
        let expected = self.expected.as_ref();
        rows.extend(expected.map(|one| quantiles("expected", one)));
        let heads = ["", "mean", "p50", "p90", "p99", "p99.9", "longest"];
        table(text, &heads, &rows)
    }

    fn branches(&self, text: &mut Formatter<'_>) -> Result {
        let rows = self.slack.iter().take(MOST_ROWS).map(|one| {
            let what = one.peer.as_ref().or(one.work.as_ref());
            let what = what.map_or("", String::as_str);
            let mean = |nanos: Option<f64>| nanos.map_or_else(|| "-".to_owned(), time);
            vec![
                format!("{} {what}", one.service),
                percent(one.critical),
                mean(one.alone_mean_ns),
                mean(one.slack_mean_ns),
                whole(one.slack_p50_ns),
            ]
        });
        let heads = [
            "branch at once",
            "waited for",
            "alone",
            "slack mean",
            "slack p50",
        ];
        table(text, &heads, &rows.collect::<Vec<_>>())
    }

    fn levels(&self, text: &mut Formatter<'_>) -> Result {
        let rows = self.concurrency.iter().take(MOST_ROWS).map(|one| {
            let plateau = one.plateau.as_ref();
            vec![
                one.service.clone(),
                show_count((one.mean * 100.0).round() / 100.0),
                one.maximum.to_string(),
                plateau.map_or_else(
                    || "-".to_owned(),
                    |it| format!("{}: {}", it.limit, it.level),
                ),
            ]
        });
        let heads = ["at once", "mean", "most", "limit"];
        table(text, &heads, &rows.collect::<Vec<_>>())
    }
}

fn quantiles(name: &str, latency: &Latency) -> Vec<String> {
    vec![
        name.to_owned(),
        time(latency.mean_ns),
        time(latency.p50_ns as f64),
        whole(latency.p90_ns),
        whole(latency.p99_ns),
        whole(latency.p999_ns),
        time(latency.max_ns as f64),
    ]
}

fn often(count: f64) -> String {
    show_count((count * 1000.0).round() / 1000.0)
}

/// `root>price`, `price cpu`, `price`.
pub(super) fn place(one: &Component) -> String {
    match (&one.peer, &one.work) {
        (Some(peer), _) => format!("{}>{peer}", one.service),
        (None, Some(work)) => format!("{} {work}", one.service),
        (None, None) => one.service.clone(),
    }
}

/// Rows of names and figures. Columns of which nothing is known are left out.
fn figures(text: &mut Formatter<'_>, names: &[&str], rows: Vec<(Vec<String>, Figures)>) -> Result {
    let some = |value: Option<f64>, show: &dyn Fn(f64) -> String| {
        value.map_or_else(|| "-".to_owned(), show)
    };
    let columns = [
        "mean", "typical", "tail", "of tail", "variance", "expected", "surplus",
    ];
    let left_out = rows.len().saturating_sub(MOST_ROWS);
    let mut cells: Vec<Vec<String>> = Vec::new();
    for (names, one) in rows.into_iter().take(MOST_ROWS) {
        let mut row = names;
        row.extend([
            time(one.mean_ns),
            time(one.typical_ns),
            some(one.tail_ns, &time),
            some(one.tail_share, &percent),
            some(one.variance_share, &percent),
            some(one.expected_ns, &time),
            some(one.surplus_ns, &time),
        ]);
        cells.push(row);
    }
    let mut heads: Vec<&str> = names.iter().chain(&columns).copied().collect();
    for column in (names.len()..heads.len()).rev() {
        if cells.iter().all(|row| row[column] == "-") {
            heads.remove(column);
            cells.iter_mut().for_each(|row| {
                row.remove(column);
            });
        }
    }
    table(text, &heads, &cells)?;
    match left_out {
        0 => Ok(()),
        more => writeln!(text, "and {} more", grouped(more as u64)),
    }
}
