//! What requests would have spent their time on without contention.

use super::forest::{Tree, by_trace, traces};
use super::ledger::Ledger;
use super::path::Unawaited;
use crate::topology::Topology;
use crate::topology::budget::{BudgetError, Costs, MOST_CALLS_TOGETHER, Simulation};

/// Requests that are run in virtual time.
const REQUESTS: u64 = 2_000;

/// Runs requests of the entry at a path in virtual time, and takes their spans apart as
/// those of real ones are.
pub(super) fn run(
    topology: &Topology,
    path: &str,
    costs: &Costs,
    unawaited: &Unawaited,
) -> Result<Ledger, BudgetError> {
    let mut simulation = Simulation::new(topology, path, costs)?;
    let mut ledger = Ledger::default();
    let (mut number, mut calls) = (0, 0);
    while number < REQUESTS && calls < MOST_CALLS_TOGETHER {
        let mut spans = Vec::new();
        calls += simulation.request(number, &mut spans)?.calls;
        number += 1;
        let mut tree = Tree::default();
        let order = by_trace(&spans);
        let root = traces(&order)
            .next()
            .and_then(|trace| tree.build(trace, None));
        if let Some(root) = root.filter(|root| !tree.node(*root).span.has_failed()) {
            ledger.add(&tree, root, unawaited);
        }
    }
    Ok(ledger)
}
