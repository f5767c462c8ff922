//! Components as parts of sentences.

use super::cause::Cause;
use super::report::Component;
use crate::topology::Topology;

/// A profile explains a service's own time if the budget has this share of it.
const EXPLAINED: f64 = 0.5;

/// A component, as a part of a sentence.
pub(super) fn phrase(one: &Component) -> String {
    let service = &one.service;
    let peer = one.peer.as_deref().unwrap_or("");
    let work = one.work.as_deref().unwrap_or("");
    match one.cause {
        Cause::Cpu => format!("`{service}`'s {work} work itself"),
        Cause::Stolen => {
            format!("processor time taken from `{service}`'s {work} work by others (stolen)")
        }
        Cause::Sleep => format!("`{service}`'s sleep"),
        Cause::Wait => format!("`{service}` waiting in its {work} step"),
        Cause::Queue if one.peer.is_some() => {
            format!("`{service}` waiting for a connection to `{peer}`")
        }
        Cause::Queue if one.work.is_some() => format!("waiting for a worker of `{service}`"),
        Cause::Queue => format!("waiting for `{service}` to read the request"),
        Cause::WireOut => format!("requests on their way from `{service}` to `{peer}`"),
        Cause::WireBack => format!("answers on their way from `{peer}` to `{service}`"),
        Cause::Sibling => format!("answers of `{peer}` that waited for `{service}`'s own work"),
        Cause::Unseen => format!("calls from `{service}` to `{peer}`, which left no span"),
        Cause::Own => format!("`{service}`'s own handling"),
    }
}

/// Whether a service's own time is what its profile adds: an injected delay, or a least
/// time to the answer. What is beyond the budget never is.
pub(super) fn is_held_back(one: &Component, topology: Option<&Topology>) -> bool {
    let services = topology.map_or(&[][..], |topology| &topology.services);
    let adds = services.iter().any(|service| {
        let faults = &service.faults;
        service.name == one.service
            && (faults.delay_rate > 0.0 && !faults.delay.is_zero()
                || service.endpoints.iter().any(|one| !one.latency.is_zero()))
    });
    let explains = |expected| expected >= one.figures.mean_ns * EXPLAINED;
    one.cause == Cause::Own && adds && one.figures.expected_ns.is_none_or(explains)
}
