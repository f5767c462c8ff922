//! What is written once a run is over.

use std::collections::BTreeSet;
use std::time::Duration;

use lab_lifecycle::{Table, Turn, Turns, span};
use lab_store::{LoopTurn, RunFile, RunFolder, StoreError, StoredHistogram};
use measure::{Histogram, HistogramError};

use crate::mine::Mined;

const SECOND_NS: f64 = 1e9;

/// Something could not be stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeepError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("write {name}: {cause}")]
    Table { name: String, cause: std::io::Error },
    #[error(transparent)]
    Histogram(#[from] HistogramError),
}

/// Writes timelines, turns of loops, and distributions.
pub(crate) fn keep(folder: &RunFolder, mined: &Mined) -> Result<(), KeepError> {
    for table in &mined.tables {
        let mut text = Vec::new();
        table
            .write_csv(&mut text)
            .map_err(|cause| KeepError::Table {
                name: table.name.clone(),
                cause,
            })?;
        folder.write(RunFile::Lifecycle(&table.name), &text)?;
    }
    let mut loops = folder.appender::<LoopTurn>()?;
    for turn in turns(&mined.loops, &mined.copies) {
        loops.append(&turn)?;
    }
    loops.flush()?;
    folder.write_json(RunFile::Histograms, &histograms(mined)?)?;
    Ok(())
}

/// The turns of loops as they are stored; `copies` names the processes that made them.
pub(crate) fn turns(
    loops: &[(String, Turns)],
    copies: &[String],
) -> impl Iterator<Item = LoopTurn> {
    loops.iter().flat_map(move |(name, turns)| {
        let apart = processes(turns).len() > 1;
        turns.turns.iter().map(move |turn| LoopTurn {
            name: match apart {
                true => apart_by(name, copies, turn.process),
                false => name.clone(),
            },
            t_s: turn.start_ns as f64 / SECOND_NS,
            duration_s: length(turn).as_secs_f64(),
        })
    })
}

/// Numbers of the processes whose turns these are.
fn processes(turns: &Turns) -> BTreeSet<u32> {
    turns.turns.iter().map(|turn| turn.process).collect()
}

/// A loop as one process made it.
pub(crate) fn apart_by(name: &str, copies: &[String], process: u32) -> String {
    let copy = copies.get(process as usize);
    format!("{name} of {}", copy.map_or("?", String::as_str))
}

fn length(turn: &Turn) -> Duration {
    Duration::from_nanos(u64::try_from(turn.end_ns - turn.start_ns).unwrap_or(0))
}

/// A distribution for each phase, each whole life, and each loop.
fn histograms(mined: &Mined) -> Result<Vec<StoredHistogram>, HistogramError> {
    let mut stored = Vec::new();
    for table in &mined.tables {
        let adjacent = table.points.windows(2).map(|pair| (&pair[0], &pair[1]));
        let whole = table.points.first().zip(table.points.last());
        // With two points the only phase is the whole life.
        let whole = whole.filter(|_| table.points.len() > 2);
        for (from, to) in adjacent.chain(whole) {
            stored.push(of_interval(table, from, to)?);
        }
    }
    for (name, turns) in &mined.loops {
        let lengths = turns.turns.iter().map(length);
        stored.push(of(format!("loop.{name}"), lengths)?);
        let processes = processes(turns);
        for process in processes.iter().filter(|_| processes.len() > 1) {
            let own = turns.turns.iter().filter(|turn| turn.process == *process);
            let name = apart_by(name, &mined.copies, *process);
            stored.push(of(format!("loop.{name}"), own.map(length))?);
        }
    }
    Ok(stored)
}

fn of_interval(table: &Table, from: &str, to: &str) -> Result<StoredHistogram, HistogramError> {
    let lengths = span(table, from, to).map_or(Vec::new(), |found| found.sorted_ns);
    // A histogram holds no negative time; the table does, and says how many.
    let lengths = lengths.into_iter().filter_map(|ns| u64::try_from(ns).ok());
    of(
        format!("{}.{from}..{to}", table.name),
        lengths.map(Duration::from_nanos),
    )
}

fn of(
    name: String,
    lengths: impl Iterator<Item = Duration>,
) -> Result<StoredHistogram, HistogramError> {
    let mut histogram = Histogram::new();
    lengths.for_each(|length| histogram.record(length));
    Ok(StoredHistogram {
        name,
        unit: "us".to_owned(),
        hdr: histogram.to_base64()?,
    })
}
