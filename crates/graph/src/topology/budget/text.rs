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
        let services = self.parts.services.iter().map(|one| {
            let work = time(one.work.mean);
            let cells = [
                middle(&one.latency),
                high(&one.latency),
                work,
                time(one.cpu),
            ];
            (one.service.clone(), one.visits, cells)
        });
        table(
            out,
            ["service", "visits", "p50", "p99", "own work", "processor"],
            services.collect(),
        )?;
        let edges = self.parts.edges.iter().map(|one| {
            let cells = [middle(&one.latency), high(&one.latency)];
            (format!("{}>{}", one.from, one.to), one.calls, cells)
        });
        table(out, ["edge", "calls", "p50", "p99"], edges.collect())
    }
}

/// Rows with a name, how often for each request, and texts; columns as wide as they must be.
fn table<const TEXTS: usize, const COLUMNS: usize>(
    out: &mut fmt::Formatter<'_>,
    heads: [&str; COLUMNS],
    rows: Vec<(String, f64, [String; TEXTS])>,
) -> fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    let cells = rows.into_iter().map(|(name, often, texts)| {
        let often = units::show_count(often);
        [name, often].into_iter().chain(texts).collect()
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
    Ok(())
}
