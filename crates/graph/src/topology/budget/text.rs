//! A budget for people.

use std::fmt;

use units::{grouped, show_seconds};

use super::{Budget, Spread};

fn time(nanos: f64) -> String {
    show_seconds(nanos / 1e9)
}

fn middle(spread: &Spread) -> String {
    match spread.count {
        0 => "-".to_owned(),
        _ => time(spread.p50 as f64),
    }
}

fn high(spread: &Spread) -> String {
    // Below, a single request decides.
    const ENOUGH: u64 = 1000;
    match spread.count >= ENOUGH {
        true => time(spread.p99 as f64),
        false => "-".to_owned(),
    }
}

impl fmt::Display for Budget {
    /// What a client should see, and the services and edges in columns.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{}: p50 {}, mean {}, p99 {} without contention, {} a hop",
            self.path,
            middle(&self.client),
            time(self.client.mean),
            high(&self.client),
            time(self.costs.hop as f64),
        )?;
        writeln!(
            out,
            "({} requests in virtual time, {} of them fail)",
            grouped(self.requests),
            grouped(self.failed),
        )?;
        let services = self.parts.services.iter().map(|one| Row {
            name: one.service.clone(),
            often: one.visits,
            weight: one.visits * one.work.mean.max(1.0),
            cells: [
                middle(&one.latency),
                high(&one.latency),
                time(one.work.mean),
                time(one.cpu),
            ],
        });
        let heads = ["service", "visits", "p50", "p99", "own work", "processor"];
        table(out, heads, services.collect())?;
        let edges = self.parts.edges.iter().map(|one| Row {
            name: format!("{}>{}", one.from, one.to),
            often: one.calls,
            weight: one.calls * one.latency.mean,
            cells: [middle(&one.latency), high(&one.latency)],
        });
        table(out, ["edge", "calls", "p50", "p99"], edges.collect())
    }
}

struct Row<const TEXTS: usize> {
    name: String,
    /// For each request.
    often: f64,
    /// What decides if there are too many rows.
    weight: f64,
    cells: [String; TEXTS],
}

/// The rows that weigh most, in their order, and how many were left out.
fn weightiest<const TEXTS: usize>(rows: Vec<Row<TEXTS>>) -> (Vec<Row<TEXTS>>, usize) {
    const MOST: usize = 40;
    let left_out = rows.len().saturating_sub(MOST);
    let mut weights: Vec<(f64, usize)> = rows.iter().map(|row| row.weight).zip(0..).collect();
    weights.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    weights.truncate(MOST);
    let mut shown: Vec<usize> = weights.into_iter().map(|(_, at)| at).collect();
    shown.sort_unstable();
    let rows = rows.into_iter().zip(0..);
    let rows = rows.filter(|(_, at)| shown.binary_search(at).is_ok());
    (rows.map(|(row, _)| row).collect(), left_out)
}

/// Columns as wide as they must be.
fn table<const TEXTS: usize, const COLUMNS: usize>(
    out: &mut fmt::Formatter<'_>,
    heads: [&str; COLUMNS],
    rows: Vec<Row<TEXTS>>,
) -> fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    let (rows, left_out) = weightiest(rows);
    let cells = rows.into_iter().map(|row| {
        let often = units::show_count(row.often);
        [row.name, often].into_iter().chain(row.cells).collect()
    });
    let cells: Vec<Vec<String>> = cells.collect();
    let wide = |column: usize| {
        let widths = cells.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0).max(heads[column].len())
    };
    let widths: Vec<usize> = (0..COLUMNS.min(TEXTS + 2)).map(wide).collect();
    writeln!(out)?;
    let mut line = |row: &[&str]| {
        let mut text = String::new();
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            match at {
                0 => text += &format!("{cell:<width$}"),
                _ => text += &format!("  {cell:>width$}"),
            }
        }
        writeln!(out, "{}", text.trim_end())
    };
    line(&heads)?;
    for row in &cells {
        let row: Vec<&str> = row.iter().map(String::as_str).collect();
        line(&row)?;
    }
    match left_out {
        0 => Ok(()),
        _ => writeln!(out, "and {left_out} more that weigh less"),
    }
}
