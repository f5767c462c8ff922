//! Numbers about a table: how long phases take, and which one matters.

use std::sync::Arc;

use stats::{Steps, nearest_rank, share_of_variance};

use crate::table::{Row, Table};

/// What a table says as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Name of the lifecycle.
    pub name: String,
    /// Rows, complete or not.
    pub entities: u64,
    /// Rows with a time at every point.
    pub complete: u64,
    /// Complete rows among all; `None` when there are no rows.
    pub complete_share: Option<f64>,
    /// Rows in which at least one phase ends before it starts.
    pub skewed: u64,
    /// By point: its name, and how many rows have no time there.
    pub missing: Vec<(String, u64)>,
    /// One for each pair of adjacent points.
    pub phases: Vec<Phase>,
    /// From the first point to the last; `None`: no row has both, or there are
    /// fewer than two points.
    pub total: Option<Durations>,
}

/// The time between two adjacent points.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// Name of the point where it starts.
    pub from: String,
    /// Name of the point where it ends.
    pub to: String,
    /// How long it took, over all rows with both points; `None`: no row has both.
    pub durations: Option<Durations>,
    /// Its part of the time of all complete rows: the sum of its durations divided
    /// by the sum of the totals. The shares of all phases add up to 1. `None` when
    /// no row is complete or the totals add up to nothing.
    pub share_of_time: Option<f64>,
    /// Its part in why some complete rows take longer than others,
    /// `cov(phase, total) / var(total)`. The shares of all phases add up to 1.
    /// `None` when no two complete rows differ.
    pub share_of_variance: Option<f64>,
    /// Most entities that were in it at the same time; see [`concurrency`].
    pub max_concurrency: u64,
}

/// A distribution of durations. Percentiles are by nearest rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Durations {
    /// How many rows.
    pub count: u64,
    /// How many of them are negative: the clocks of two machines disagree, or the
    /// points do not come in this order. They are part of every number here.
    pub negative: u64,
    /// The shortest, in nanoseconds.
    pub min_ns: i64,
    /// Median.
    pub p50_ns: i64,
    /// Nine of ten are not longer.
    pub p90_ns: i64,
    /// 99 of 100 are not longer.
    pub p99_ns: i64,
    /// The longest.
    pub max_ns: i64,
    /// Id of the entity with the longest one; of several, the first in the table.
    pub worst: Arc<str>,
}

/// The time between any two points, over all rows that have both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// In ascending order, in nanoseconds.
    pub sorted_ns: Vec<i64>,
    /// How many are negative.
    pub negative: u64,
    /// Rows that lack one of the two points, or both.
    pub missing: u64,
    /// From the first time at the first point to the last time at the second, over
    /// all rows with that point; `None` when one of the points has no time at all.
    pub makespan_ns: Option<i64>,
    /// Id of the entity with the longest duration.
    pub worst: Option<Arc<str>>,
}

/// A point that the table does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("lifecycle `{lifecycle}` has no point `{point}`; it has {}", known.join(", "))]
pub struct UnknownPoint {
    /// Name of the lifecycle.
    pub lifecycle: String,
    /// The point that was asked for.
    pub point: String,
    /// The points that it has.
    pub known: Vec<String>,
}

/// Summarises a table. No row is left out: an incomplete one counts wherever it has
/// the points, a negative duration counts as it is.
pub fn summarise(table: &Table) -> Summary {
    let complete: Vec<&Row> = table.rows.iter().filter(|row| is_complete(row)).collect();
    let last = table.points.len().saturating_sub(1);
    let totals = seconds(&complete, 0, last);

    let phases = table.points.windows(2).enumerate().map(|(phase, names)| {
        let parts = seconds(&complete, phase, phase + 1);
        let whole: f64 = totals.iter().sum();
        Phase {
            from: names[0].clone(),
            to: names[1].clone(),
            durations: Durations::of(table, phase, phase + 1),
            share_of_time: (whole != 0.0).then(|| parts.iter().sum::<f64>() / whole),
            share_of_variance: share_of_variance(&parts, &totals),
            max_concurrency: steps(table, phase).maximum(),
        }
    });
    let missing = table.points.iter().enumerate().map(|(point, name)| {
        let rows = table.rows.iter().filter(|row| time(row, point).is_none());
        (name.clone(), rows.count() as u64)
    });
    let (entities, complete) = (table.rows.len() as u64, complete.len() as u64);
    Summary {
        name: table.name.clone(),
        entities,
        complete,
        complete_share: (entities > 0).then(|| complete as f64 / entities as f64),
        skewed: table.rows.iter().filter(|row| is_skewed(row)).count() as u64,
        missing: missing.collect(),
        phases: phases.collect(),
        total: (last > 0).then(|| Durations::of(table, 0, last)).flatten(),
    }
}

/// Measures between two points, given by name, in either order.
pub fn span(table: &Table, from: &str, to: &str) -> Result<Span, UnknownPoint> {
    let (from, to) = (index(table, from)?, index(table, to)?);
    let sorted = sorted(table, from, to);
    let times = |point: usize| table.rows.iter().filter_map(move |row| time(row, point));
    let makespan = times(from).min().zip(times(to).max());
    Ok(Span {
        negative: negative(&sorted),
        missing: (table.rows.len() - sorted.len()) as u64,
        makespan_ns: makespan.map(|(first, last)| last.saturating_sub(first)),
        worst: longest(table, from, to),
        sorted_ns: sorted,
    })
}

/// How many entities were in a phase over time: for each of `buckets` equal pieces
/// of time, beginning at `start_ns` and `width_ns` long, the highest number at any
/// instant in it. Phase `i` goes from point `i` to point `i + 1`; a phase that does
/// not exist gives zeros.
///
/// An entity is in a phase from its first point until, but not including, the
/// second. One that passed the first point and none after is in it until after the
/// last time in the table. One that lacks only the second point left at an unknown
/// time and is not counted; neither is one whose phase is negative.
pub fn concurrency(
    table: &Table,
    phase: usize,
    start_ns: i64,
    width_ns: i64,
    buckets: usize,
) -> Vec<u64> {
    steps(table, phase).maxima(start_ns, width_ns, buckets)
}

fn steps(table: &Table, phase: usize) -> Steps {
    let last = table
        .rows
        .iter()
        .flat_map(|row| row.at_ns.iter().flatten())
        .max();
    let after_all = last.map_or(0, |last| last.saturating_add(1));
    Steps::of_intervals(table.rows.iter().filter_map(|row| {
        let start = time(row, phase)?;
        match time(row, phase + 1) {
            Some(end) => Some((start, end)),
            None if phase + 1 >= row.at_ns.len() => None,
            None => row.at_ns[phase + 1..]
                .iter()
                .all(Option::is_none)
                .then_some((start, after_all)),
        }
    }))
}

impl Durations {
    fn of(table: &Table, from: usize, to: usize) -> Option<Self> {
        let sorted = sorted(table, from, to);
        Some(Self {
            count: sorted.len() as u64,
            negative: negative(&sorted),
            min_ns: *sorted.first()?,
            p50_ns: nearest_rank(&sorted, 0.50)?,
            p90_ns: nearest_rank(&sorted, 0.90)?,
            p99_ns: nearest_rank(&sorted, 0.99)?,
            max_ns: *sorted.last()?,
            worst: longest(table, from, to)?,
        })
    }
}

fn time(row: &Row, point: usize) -> Option<i64> {
    row.at_ns.get(point).copied().flatten()
}

fn duration(row: &Row, from: usize, to: usize) -> Option<i64> {
    Some(time(row, to)?.saturating_sub(time(row, from)?))
}

pub(crate) fn is_complete(row: &Row) -> bool {
    row.at_ns.iter().all(Option::is_some)
}

fn is_skewed(row: &Row) -> bool {
    (1..row.at_ns.len()).any(|to| duration(row, to - 1, to).is_some_and(|ns| ns < 0))
}

fn sorted(table: &Table, from: usize, to: usize) -> Vec<i64> {
    let mut all: Vec<i64> = table
        .rows
        .iter()
        .filter_map(|row| duration(row, from, to))
        .collect();
    all.sort_unstable();
    all
}

fn negative(sorted: &[i64]) -> u64 {
    sorted.partition_point(|ns| *ns < 0) as u64
}

fn longest(table: &Table, from: usize, to: usize) -> Option<Arc<str>> {
    let all = table
        .rows
        .iter()
        .filter_map(|row| Some((duration(row, from, to)?, &row.id)));
    let worst = all.reduce(|worst, next| if next.0 > worst.0 { next } else { worst });
    worst.map(|(_, id)| Arc::clone(id))
}

fn seconds(rows: &[&Row], from: usize, to: usize) -> Vec<f64> {
    rows.iter()
        .filter_map(|row| duration(row, from, to))
        .map(|ns| ns as f64 / 1e9)
        .collect()
}

fn index(table: &Table, name: &str) -> Result<usize, UnknownPoint> {
    table
        .points
        .iter()
        .position(|point| point == name)
        .ok_or_else(|| UnknownPoint {
            lifecycle: table.name.clone(),
            point: name.to_owned(),
            known: table.points.clone(),
        })
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
