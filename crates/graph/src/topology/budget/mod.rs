//! What a request is expected to take, service by service and edge by edge.
//!
//! Requests are run in virtual time, without network, processors or neighbours: every
//! request of the real thing has the same draws, calls and work (see [`crate::draw`]), and
//! each step takes what it was asked to. So sums, the longest of parallel branches,
//! quorums, retries and time-outs are those of the script itself, and quantiles need no
//! rule of thumb. What is added to the work is a constant for each hop; what is left out
//! is waiting: for a processor, a worker, a connection, a lock.
//!
//! A [`Summary`] is made of spans: those of [`simulate`] give the budget, those of a real
//! run what was seen, by the same rules.

mod costs;
mod simulation;
mod summary;
#[cfg(test)]
mod tests;
mod text;

pub use costs::Costs;
pub use simulation::{Simulated, Simulation};
pub use summary::{EdgeTime, ServiceTime, Spread, Summary};

use super::Topology;

/// Most calls of one request that are simulated.
pub const MOST_CALLS: usize = 100_000;

/// Most calls that all requests of a budget make together; then it ends with fewer requests.
pub const MOST_CALLS_TOGETHER: usize = 300_000;

/// Why a graph has no budget.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    /// The entry lacks the endpoint.
    #[error("the entry \"{entry}\" has no endpoint \"{path}\"; it has {known}")]
    NoEndpoint {
        /// The service.
        entry: String,
        /// The path that was asked for.
        path: String,
        /// The paths that it has.
        known: String,
    },
    /// A request would not end.
    #[error("request {number} makes more than {MOST_CALLS} calls; lower counts or probabilities")]
    TooLarge {
        /// Counted from 0.
        number: u64,
    },
}

/// What is expected of requests at a path of the entry.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Budget {
    /// The path.
    pub path: String,
    /// What steps and hops were taken to need.
    pub costs: Costs,
    /// What a client sees: the entry's time and a hop, of requests that succeed.
    pub client: Spread,
    /// All requests that were simulated.
    pub requests: u64,
    /// Requests that fail, by faults and time-outs.
    pub failed: u64,
    /// Every service and edge.
    pub parts: Summary,
}

/// Runs the first `requests` requests of a graph at a path of its entry, or as many as make
/// [`MOST_CALLS_TOGETHER`].
///
/// # Errors
/// A path that the entry does not have; a request without an end.
pub fn expect(
    topology: &Topology,
    path: &str,
    costs: &Costs,
    requests: u64,
) -> Result<Budget, BudgetError> {
    let mut simulation = Simulation::new(topology, path, costs)?;
    let mut parts = summary::Gathered::new(topology);
    let mut spans = Vec::new();
    let mut latencies = Vec::new();
    let (mut number, mut failed, mut calls) = (0, 0, 0);
    while number < requests && calls < MOST_CALLS_TOGETHER {
        spans.clear();
        let ended = simulation.request(number, &mut spans)?;
        parts.add(&spans);
        match ended.succeeded() {
            true => latencies.push(ended.latency),
            false => failed += 1,
        }
        calls += ended.calls;
        number += 1;
    }
    Ok(Budget {
        path: path.to_owned(),
        costs: *costs,
        client: Spread::of(&mut latencies),
        requests: number,
        failed,
        parts: parts.summary(number),
    })
}
