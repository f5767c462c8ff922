//! Where the processor time of systems went in the worst seconds of a run, as it is stored.

use serde::{Deserialize, Serialize};

/// `profile.json`: what the stacks in `stacks.folded` are of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProfileRecord {
    /// Where the sampled seconds begin.
    pub from_s: f64,
    /// And end.
    pub to_s: f64,
    /// Why these: `in which most requests of front failed`.
    pub why: String,
    /// Samples of a processor that a system's process runs on, a second.
    pub per_second: u64,
    /// Samples of all systems in these seconds.
    pub samples: u64,
    /// Samples of the whole run that found no room.
    pub lost: u64,
    /// Those of each system, the most first.
    pub systems: Vec<SystemSamples>,
    /// Why nothing or not all was sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Samples of one system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SystemSamples {
    /// Its name, with the number of the copy.
    pub system: String,
    /// How many.
    pub samples: u64,
}

impl ProfileRecord {
    /// That of a run of which nothing could be sampled.
    pub fn without(note: &str) -> Self {
        Self {
            note: Some(note.to_owned()),
            ..Self::default()
        }
    }
}
