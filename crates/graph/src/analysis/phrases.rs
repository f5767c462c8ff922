//! Components as parts of sentences.

use super::Analysis;
use super::cause::Cause;
use super::report::Component;
use crate::topology::Topology;

/// A profile explains a service's own time if the budget has this share of it.
const EXPLAINED: f64 = 0.5;

/// Work that waits while so much of its service's workers' time is free waits for wake-ups.
const FULL: f64 = 0.5;

/// A component, as a part of a sentence.
pub(super) fn phrase(one: &Component, analysis: &Analysis) -> String {
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
        Cause::Queue if one.work.is_some() => worker(service, analysis),
        Cause::Queue => format!("waiting for `{service}` to read the request"),
        Cause::WireOut => format!("requests on their way from `{service}` to `{peer}`"),
        Cause::WireBack => format!("answers on their way from `{peer}` to `{service}`"),
        Cause::Sibling => format!("answers of `{peer}` that waited for `{service}`'s own work"),
        Cause::Backoff => format!("`{service}` pausing before it calls again"),
        Cause::Unseen => format!("calls from `{service}` to `{peer}`, which left no span"),
        Cause::Own if one.work.is_some() => format!("`{service}`'s `{work}`"),
        Cause::Own => format!("`{service}`'s own handling"),
    }
}

/// Waiting for a worker: for one that was busy, or for one that was free and had to wake up.
fn worker(service: &str, analysis: &Analysis) -> String {
    let levels = analysis.concurrency.iter();
    let mut levels = levels.filter(|one| one.service == service);
    let full = levels.find_map(|one| one.waited_while_full);
    match full.is_some_and(|share| share < FULL) {
        true => format!("a worker of `{service}` that was free and slow to run"),
        false => format!("waiting for a worker of `{service}`"),
    }
}

/// Whether a service's own time, of this length, is what its profile adds: an injected
/// delay, or a least time to the answer. What is beyond the budget never is, and neither is
/// what is far below it: no delay struck there.
pub(super) fn is_held_back(one: &Component, topology: Option<&Topology>, length: f64) -> bool {
    let services = topology.map_or(&[][..], |topology| &topology.services);
    let adds = services.iter().any(|service| {
        let faults = &service.faults;
        service.name == one.service
            && (faults.delay_rate > 0.0 && !faults.delay.is_zero()
                || service.endpoints.iter().any(|one| !one.latency.is_zero()))
    });
    let explains =
        |expected| expected >= one.figures.mean_ns * EXPLAINED && length >= expected * EXPLAINED;
    one.cause == Cause::Own && adds && one.figures.expected_ns.is_none_or(explains)
}
