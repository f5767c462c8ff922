//! Graphs from the files of others: isotope's topologies, and traces of calls.

mod calls;
mod isotope;
mod rows;
mod spans;

use super::walk::reached;
use super::{ServiceId, Topology};
use crate::Nanos;

pub use isotope::isotope;
pub use rows::{RowError, RowLimits, rows};
pub use spans::spans;

/// Longest time for a call of an imported graph: where it comes from there was no bound,
/// or it is not known.
pub const TIMEOUT: Nanos = 30_000_000_000;

/// A graph from elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The graph.
    pub topology: Topology,
    /// What was left out or guessed, as text.
    pub warnings: Vec<String>,
}

/// Why traces make no graph.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// There is nothing to make it of.
    #[error("no trace has a call between two named services; expected at least one")]
    Nothing,
    /// More services than a graph can have.
    #[error(
        "the traces name {found} services; a graph has at most {}: take fewer traces",
        super::generate::MOST_SERVICES
    )]
    TooMany {
        /// How many.
        found: usize,
    },
}

/// Leaves out the services that no way leads to from the entry, and names them.
fn without_unreachable(topology: &mut Topology) -> Vec<String> {
    let reached = reached(topology, topology.entry);
    let mut left_out = Vec::new();
    let mut new = vec![ServiceId(0); topology.services.len()];
    let mut kept = Vec::with_capacity(reached.len());
    let services = std::mem::take(&mut topology.services);
    for ((service, reached), new) in services.into_iter().zip(reached).zip(&mut new) {
        if reached {
            *new = ServiceId(u32::try_from(kept.len()).unwrap_or(u32::MAX));
            kept.push(service);
        } else {
            left_out.push(service.name);
        }
    }
    topology.services = kept;
    let renamed = |id: ServiceId| new.get(id.0 as usize).copied().unwrap_or(id);
    topology.entry = renamed(topology.entry);
    for edge in &mut topology.edges {
        edge.from = renamed(edge.from);
        edge.to = renamed(edge.to);
    }
    // Drops the edges of those that are gone.
    topology.renumber();
    left_out
}
