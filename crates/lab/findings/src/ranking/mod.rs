//! Which finding comes first, and which explains which.

use crate::finding::{Finding, Kind};

/// Share of the explained finding's time that the other must cover.
const COVERED: f64 = 0.5;

/// A finding in its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    /// What was found.
    pub finding: Finding,
    /// Place in the list of the finding that explains this one; always one before it.
    pub explained_by: Option<usize>,
}

/// Findings by how much they matter, by the lower end of their effects: the generator first, as it casts doubt on the
/// others; then causes, each followed by what it explains.
///
/// One explains another when it is a cause of such things, in the same system, over most of the same time. A pool
/// explains the queue before it; what is explained may still be worth mending.
#[must_use]
pub fn rank(findings: Vec<Finding>) -> Vec<Ranked> {
    let mut order = findings;
    let first = |finding: &Finding| finding.kind != Kind::Generator;
    order.sort_by(|a, b| {
        let by_effect = b.effect.low.total_cmp(&a.effect.low);
        first(a)
            .cmp(&first(b))
            .then(by_effect)
            .then(a.kind.cmp(&b.kind))
    });
    let causes: Vec<Option<usize>> = order.iter().map(|one| cause_of(one, &order)).collect();
    let mut ranked: Vec<Ranked> = Vec::with_capacity(order.len());
    for root in (0..order.len()).filter(|at| causes[*at].is_none()) {
        place(root, None, &order, &causes, &mut ranked);
    }
    ranked
}

fn place(
    at: usize,
    explained_by: Option<usize>,
    order: &[Finding],
    causes: &[Option<usize>],
    ranked: &mut Vec<Ranked>,
) {
    let here = ranked.len();
    ranked.push(Ranked {
        finding: order[at].clone(),
        explained_by,
    });
    for next in (0..order.len()).filter(|next| causes[*next] == Some(at)) {
        place(next, Some(here), order, causes, ranked);
    }
}

/// The cause with the largest effect.
fn cause_of(finding: &Finding, all: &[Finding]) -> Option<usize> {
    all.iter().position(|cause| {
        // A generator asks all systems.
        let near = cause.kind == Kind::Generator || cause.system == finding.system;
        near && makes(cause.kind).contains(&finding.kind) && covers(cause, finding)
    })
}

fn covers(cause: &Finding, finding: &Finding) -> bool {
    let from_s = cause.from_s.max(finding.from_s);
    let together_s = cause.to_s.min(finding.to_s) - from_s;
    together_s >= COVERED * (finding.to_s - finding.from_s)
}

/// What a cause makes. Each stands after its causes in the order of the arms, so that nothing explains itself
/// in a circle.
fn makes(cause: Kind) -> &'static [Kind] {
    use Kind::{
        Connections, Drops, Exhaustion, Generator, Growth, Handshakes, Machine, Pool, Processor,
        Queue, Retries, Stalls,
    };
    match cause {
        Generator => &[Stalls],
        Machine => &[Queue, Stalls, Drops, Retries],
        Connections => &[Handshakes, Exhaustion, Processor],
        Handshakes | Growth => &[Processor, Queue],
        Processor => &[Queue, Drops, Retries],
        Exhaustion => &[Queue, Drops, Retries],
        Stalls => &[Queue, Drops, Retries],
        Pool => &[Queue, Drops, Retries],
        Queue => &[Drops, Retries],
        Drops => &[Retries],
        Retries => &[],
    }
}

#[cfg(test)]
mod tests;
