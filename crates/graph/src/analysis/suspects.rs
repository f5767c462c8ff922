//! Who is behind what the figures show: a service that stands still, a network, a machine
//! that has too much to do.

use super::Analysis;
use super::cause::Cause;
use super::report::{Component, ServiceTime};
use super::sentences::{WORTH_SAYING, WORTH_SAYING_OF_TAIL, percent, time};
use crate::topology::Topology;

/// A suspect holds at least this share of the tail.
const HOLDS: f64 = 0.5;

/// Two ways of an edge are both slow if the faster one holds this share of what both hold.
const BOTH_WAYS: f64 = 0.25;

/// Work that was ready and did not run for this share of its time was contended.
const CONTENDED: f64 = 0.1;

/// One service is contended alone if it lost this share of what all lost, but did not do
/// as much of the work,
const ALONE: f64 = 0.8;

/// and if so much of all that came late came late there: short work loses little, and shows
/// a busy machine by its wake-ups.
const LATE: f64 = 0.7;

/// The part of all components that `of` chooses, of the tail.
fn share(analysis: &Analysis, of: impl Fn(&Component) -> bool) -> f64 {
    let parts = analysis.components.iter().filter(|one| of(one));
    parts.filter_map(|one| one.figures.tail_share).sum()
}

/// An edge both ways of which are slow in the tail: one end alone cannot do that.
pub(super) fn network(analysis: &Analysis) -> Option<String> {
    let way = |from: &str, to: &str, cause: Cause| {
        share(analysis, |one| {
            one.cause == cause && one.service == from && one.peer.as_deref() == Some(to)
        })
    };
    let edges = analysis.edges.iter().filter_map(|edge| {
        let out = way(&edge.from, &edge.to, Cause::WireOut);
        let back = way(&edge.from, &edge.to, Cause::WireBack);
        let both = out + back;
        (both >= HOLDS && out.min(back) >= both * BOTH_WAYS).then_some((edge, both))
    });
    let (edge, both) = edges.max_by(|one, other| one.1.total_cmp(&other.1))?;
    Some(format!(
        "Both ways between `{}` and `{}` hold {} of what is above p50: the network there, or wake-ups at both ends.",
        edge.from,
        edge.to,
        percent(both)
    ))
}

/// The service that does not run when it should: its own time and what waits to arrive. A
/// service's own time alone is in the sentence of the tail already.
pub(super) fn held_up(analysis: &Analysis) -> Option<String> {
    let held = |one: &ServiceTime| {
        let own = one.figures.tail_share.unwrap_or(0.0);
        own + one.arrivals.tail_share.unwrap_or(0.0)
    };
    let services = analysis.services.iter().map(|one| (one, held(one)));
    let (most, held) = services.max_by(|one, other| one.1.total_cmp(&other.1))?;
    let arrivals = most.arrivals.tail_share.unwrap_or(0.0);
    if held < HOLDS || arrivals < WORTH_SAYING_OF_TAIL {
        return None;
    }
    let name = Some(most.name.as_str());
    let left = share(analysis, |one| match one.cause {
        Cause::WireOut => Some(one.service.as_str()) == name,
        Cause::WireBack => one.peer.as_deref() == name,
        _ => false,
    });
    let begin = format!(
        "With what was on its way to it, `{}` holds {} of what is above p50",
        most.name,
        percent(held)
    );
    Some(match left < arrivals * BOTH_WAYS {
        true => format!(
            "{begin}; what left it took no longer, so it stood still, or its way in was held up."
        ),
        false => format!("{begin}."),
    })
}

/// Processor time that was wanted and not had: of one service, or of all.
pub(super) fn contended(analysis: &Analysis, topology: Option<&Topology>) -> Option<String> {
    let mean = |of: &dyn Fn(&Component) -> bool| -> f64 {
        let parts = analysis.components.iter().filter(|one| of(one));
        parts.map(|one| one.figures.mean_ns).sum()
    };
    let cpu = mean(&|one| one.cause == Cause::Cpu);
    let stolen = mean(&|one| one.cause == Cause::Stolen);
    if stolen < (cpu + stolen) * CONTENDED || stolen < analysis.latency.mean_ns * WORTH_SAYING {
        return None;
    }
    let services = analysis.services.iter().map(|service| {
        let lost = |one: &Component| one.cause == Cause::Stolen && one.service == service.name;
        (service, mean(&lost))
    });
    let (most, lost) = services.max_by(|one, other| one.1.total_cmp(&other.1))?;
    let own = mean(&|one| one.cause == Cause::Cpu && one.service == most.name);
    let all = analysis
        .services
        .iter()
        .map(|one| late(analysis, &one.name));
    let alone = lost >= stolen * ALONE
        && own < cpu * ALONE
        && late(analysis, &most.name) >= all.sum::<f64>() * LATE;
    if !alone {
        return Some(format!(
            "Work that was ready did not run for {} of its time ({} a request): processors were busy with others. Workers, handling and hops wait for processors too, so theirs is part of this.",
            percent(stolen / (cpu + stolen)),
            time(stolen)
        ));
    }
    let service = topology.and_then(|one| one.service(one.find(&most.name)?));
    let why = match service.and_then(|one| one.placement.cpu_limit) {
        Some(limit) => format!("its limit of {} processors", units::show_count(limit)),
        None => "a neighbour, a limit or a pause there".to_owned(),
    };
    Some(format!(
        "Of the services `{}` alone lacked a processor, for {} of its work's time: {why}.",
        most.name,
        percent(lost / (own + lost))
    ))
}

/// What a service did later than it could have: work, handling, reading what arrived.
fn late(analysis: &Analysis, service: &str) -> f64 {
    let there = |one: &&Component| match one.cause {
        Cause::Stolen | Cause::Queue | Cause::Own | Cause::WireBack => one.service == service,
        Cause::WireOut => one.peer.as_deref() == Some(service),
        _ => false,
    };
    let parts = analysis.components.iter().filter(there);
    let beyond = parts.map(|one| one.figures.surplus_ns.unwrap_or(one.figures.mean_ns));
    beyond.map(|length| length.max(0.0)).sum()
}
