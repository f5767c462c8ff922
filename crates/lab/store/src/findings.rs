//! What limited a run, as it is stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// `findings.json`, one entry: a thing that limited a system, with its evidence. Entries
/// stand in the order of their importance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FindingRecord {
    /// What: `pool`, `processor`, `queue`, `exhaustion`, `growth`, `stalls`, `connections`,
    /// `handshakes`, `drops`, `retries`, `generator`.
    pub kind: String,
    /// Of which system; of the generator, the load.
    pub system: String,
    /// Which part of it: a phase, a thread, a queue, a loop.
    pub part: String,
    /// In words.
    pub text: String,
    /// Where the evidence begins.
    pub from_s: f64,
    /// And ends.
    pub to_s: f64,
    /// How much it matters: a share of 0 to 1.
    pub effect: f64,
    /// The interval of `effect`, at 95 %.
    pub interval: [f64; 2],
    /// Of what the effect is a share: `time`, `latency` or `work`.
    pub of: String,
    /// The numbers from which it follows, by name: seconds, cores, shares, counts.
    pub evidence: BTreeMap<String, f64>,
    /// Where it is drawn.
    pub mark: Mark,
    /// Place in the list of the finding that explains this one; always one before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained_by: Option<usize>,
}

/// The chart that shows the evidence of a finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// `lifecycle`, `processors`, `descriptors`, `rate`, `latency`, `in-flight`, `loop`, or
    /// `run`: the axis of time alone.
    pub chart: String,
    /// Of what: the name of a lifecycle, a system, a load or a loop.
    pub name: String,
    /// Number of the phase of the lifecycle, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<usize>,
    /// The value at which a line is drawn, in the chart's unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<f64>,
}
