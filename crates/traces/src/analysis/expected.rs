//! What requests would have spent their time on without contention.

use super::floors::Floors;
use super::forest::{Tree, by_trace, traces};
use super::known::Budget;
use super::ledger::Ledger;
use super::path::Unawaited;

/// Takes the requests of a budget apart as real ones are.
pub(super) fn run(
    budget: &dyn Budget,
    path: &str,
    floors: &Floors,
    unawaited: &Unawaited,
) -> Result<Ledger, String> {
    let mut ledger = Ledger::default();
    budget.requests(path, floors, &mut |spans| {
        let mut tree = Tree::default();
        let order = by_trace(spans);
        let root = traces(&order)
            .next()
            .and_then(|trace| tree.build(trace, None));
        if let Some(root) = root.filter(|root| !tree.node(*root).span.has_failed()) {
            ledger.add(&tree, root, unawaited);
        }
    })?;
    Ok(ledger)
}
