//! Runs put together from reports that come one by one, those of many nodes in between. A run is over some time after
//! its end came, as datagrams overtake each other, or when nothing of it came for long. Time is given by whoever calls,
//! in milliseconds since whatever moment.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use thiserror::Error;

use crate::reports::runlog::{Report, ReportKind, write_report};

/// How much is put together at once, and how long it may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Runs that are not over.
    pub runs: usize,
    /// Bytes of one of them, as text.
    pub run_bytes: usize,
    /// Bytes of all of them.
    pub bytes: usize,
    /// Milliseconds after the end of a run came, until it is over.
    pub settle: u64,
    /// Milliseconds after its last report, until a run without an end is over.
    pub silence: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            runs: 20_000,
            run_bytes: 8 << 20,
            bytes: 256 << 20,
            settle: 2_000,
            silence: 300_000,
        }
    }
}

/// Why a report is in no run.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum NotTaken {
    /// There are too many runs that are not over, or too much of them, or of this one.
    #[error("putting a run together: there is no room for its next report")]
    NoRoom,
    /// It would be read as another.
    #[error("putting a run together: a report of it would be read as another")]
    Broken,
}

/// A run that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverRun {
    /// The node.
    pub node: String,
    /// Its log, as an agent would have sent it.
    pub text: String,
    /// Reports in it.
    pub reports: u64,
}

#[derive(Debug, Default)]
struct Open {
    text: String,
    reports: u64,
    /// When the last report came.
    last: u64,
    /// When its end came.
    ended: Option<u64>,
}

impl Open {
    fn is_over(&self, bounds: &Bounds, now: u64) -> bool {
        match self.ended {
            Some(ended) => now.saturating_sub(ended) >= bounds.settle,
            None => now.saturating_sub(self.last) >= bounds.silence,
        }
    }
}

/// Puts runs together.
#[derive(Debug, Default)]
pub struct Runs {
    bounds: Bounds,
    /// By node and start.
    open: BTreeMap<(String, i64), Open>,
    bytes: usize,
}

impl Runs {
    /// Within bounds.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            ..Self::default()
        }
    }

    /// Takes a report that came now.
    ///
    /// # Errors
    /// It is in no run; nothing else changes.
    pub fn take(&mut self, report: &Report<'_>, now: u64) -> Result<(), NotTaken> {
        let mut line = String::new();
        write_report(&mut line, report).map_err(|_| NotTaken::Broken)?;
        let key = (
            report.node_id.to_owned(),
            report.start_datetime.unix_millis(),
        );
        let known = self.open.get(&key);
        let length = known.map_or(0, |open| open.text.len()) + line.len();
        let room = length <= self.bounds.run_bytes
            && self.bytes + line.len() <= self.bounds.bytes
            && (known.is_some() || self.open.len() < self.bounds.runs);
        if !room {
            return Err(NotTaken::NoRoom);
        }
        self.bytes += line.len();
        let open = self.open.entry(key).or_default();
        open.text += &line;
        open.reports += 1;
        open.last = now;
        if report.kind() == ReportKind::Control && report.component == "end" {
            open.ended.get_or_insert(now);
        }
        Ok(())
    }

    /// At most so many runs that are over by now.
    pub fn over(&mut self, now: u64, most: usize) -> Vec<OverRun> {
        let bounds = self.bounds;
        self.remove(most, |open| open.is_over(&bounds, now))
    }

    /// At most so many runs, whether they are over or not.
    pub fn all(&mut self, most: usize) -> Vec<OverRun> {
        self.remove(most, |_| true)
    }

    fn remove(&mut self, most: usize, wanted: impl Fn(&Open) -> bool) -> Vec<OverRun> {
        let found = self.open.iter().filter(|(_, open)| wanted(open));
        let found: Vec<_> = found.take(most).map(|(key, _)| key.clone()).collect();
        let mut over = Vec::with_capacity(found.len());
        for key in found {
            let Some(Open { text, reports, .. }) = self.open.remove(&key) else {
                continue;
            };
            self.bytes -= text.len();
            let (node, _) = key;
            over.push(OverRun {
                node,
                text,
                reports,
            });
        }
        over
    }
}
