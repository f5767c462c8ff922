//! A run while it goes on, as far as its folder does not tell yet.

use std::sync::Arc;

use lab_lifecycle::Changes;
use serde::Serialize;

use crate::{LoopTurn, StoredLoad};

/// The rate of a load that runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadRate {
    /// Its name.
    pub load: String,
    /// Requests per second.
    pub per_s: f64,
}

/// What a run holds in memory that its folder has only at the end. With the records that
/// are written while it goes on ([`crate::RunFolder::records_so_far`]) it is what a report
/// of this moment is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct SoFar {
    /// Seconds since the run began.
    pub now_s: f64,
    /// What the run does or waits for now, in words.
    pub doing: String,
    /// What has changed of the timelines of lifecycles since it was told before, in order: of each lifecycle, in
    /// the order of the plan, and once more where there was time to.
    pub changes: Vec<Changes>,
    /// The turns of all loops.
    pub turns: Arc<Vec<LoopTurn>>,
    /// What loads under way have come to. Of one that is stored already the stored result
    /// counts.
    pub loads: Vec<StoredLoad>,
    /// The rates that those may change who watch the run.
    pub rates: Vec<LoadRate>,
    /// What those may do who watch the run, in the words of the experiment file.
    pub may: Vec<&'static str>,
}
