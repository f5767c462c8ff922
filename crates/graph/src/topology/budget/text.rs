//! A budget for people.

use std::fmt;

use units::{grouped, show_count, show_seconds};

use super::{Budget, Spread};
use units::columns::table;

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
        for edge in &self.parts.edges {
            if edge.failed > 0 && edge.latency.count == 0 {
                writeln!(
                    out,
                    "every call from {} to {} fails without contention already: its timeout is shorter than what it waits for, or faults fail it",
                    edge.from, edge.to,
                )?;
            }
        }
        let services = self.parts.services.iter().map(|one| {
            let cells = vec![
                one.service.clone(),
                show_count(one.visits),
                middle(&one.latency),
                high(&one.latency),
                time(one.work.mean),
                time(one.cpu),
            ];
            (one.visits * one.work.mean.max(1.0), cells)
        });
        let heads = ["service", "visits", "p50", "p99", "own work", "processor"];
        weightiest(out, &heads, services.collect())?;
        let edges = self.parts.edges.iter().map(|one| {
            let cells = vec![
                format!("{}>{}", one.from, one.to),
                show_count(one.calls),
                middle(&one.latency),
                high(&one.latency),
            ];
            (one.calls * one.latency.mean, cells)
        });
        weightiest(out, &["edge", "calls", "p50", "p99"], edges.collect())
    }
}

/// The rows that weigh most, in their order, and how many were left out.
fn weightiest(
    out: &mut fmt::Formatter<'_>,
    heads: &[&str],
    mut rows: Vec<(f64, Vec<String>)>,
) -> fmt::Result {
    const MOST: usize = 40;
    let left_out = rows.len().saturating_sub(MOST);
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|one, other| rows[*other].0.total_cmp(&rows[*one].0));
    order.truncate(MOST);
    order.sort_unstable();
    let shown = order.into_iter().map(|at| std::mem::take(&mut rows[at].1));
    table(out, heads, &shown.collect::<Vec<_>>())?;
    match left_out {
        0 => Ok(()),
        _ => writeln!(out, "and {left_out} more that weigh less"),
    }
}
