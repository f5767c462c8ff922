//! What must hold of a graph as a whole.

use document::{Problem, Span};

use super::read::{Machine, ServicePlace};
use super::steps::WrittenCall;
use super::walk::{Found, between_services, each_step_mut, endless_within, reached, uncalled};
use super::{Action, ServiceId, Topology, budget, demand};

/// Where the parts of a graph stand in its file.
pub(super) struct Places<'a> {
    /// In the order of the services.
    pub(super) services: &'a [ServicePlace],
    /// In the order of the steps.
    pub(super) calls: &'a [WrittenCall],
    /// Of each background load, where its processors are listed.
    pub(super) backgrounds: &'a [Option<Span>],
}

/// Checks a graph whose parts were read; sets its entry, and bounds the time-outs that
/// were not written by those of their callers.
pub(super) fn graph(topology: &mut Topology, places: &Places<'_>, problems: &mut Vec<Problem>) {
    if topology.services.is_empty() {
        if problems.is_empty() {
            let message = "there are no services; expected at least one, as [services.NAME]";
            problems.push(Problem::new(0..0, message));
        }
        return;
    }
    let entry = entry(topology, places, problems);
    let mut found = between_services(topology);
    found
        .cycles
        .extend(endless_within(topology).map(|edge| vec![edge]));
    cycles(topology, places.calls, &found, problems);
    paths(topology, places, problems);
    let Some(entry) = entry else { return };
    topology.entry = entry;
    let reached = reached(topology, entry);
    for ((service, place), reached) in topology.services.iter().zip(places.services).zip(reached) {
        if !reached {
            let name = &service.name;
            let message = format!("\"{name}\" is not the entry, and no call leads to it");
            let help = "call it, make it the entry, or leave it out";
            problems.push(Problem::new(place.name.clone(), message).help(help));
        }
    }
    if found.cycles.is_empty() {
        timeouts(topology, &found.order, places, problems);
    }
}

/// The one service where requests enter.
fn entry(
    topology: &Topology,
    places: &Places<'_>,
    problems: &mut Vec<Problem>,
) -> Option<ServiceId> {
    let mut entries = (0..)
        .zip(places.services)
        .filter_map(|(id, place)| Some((ServiceId(id), place.entry.clone()?)));
    let Some((entry, _)) = entries.next() else {
        let place = places.services.first().map(|place| place.name.clone());
        problems.push(no_entry(topology, place, "entry = true"));
        return None;
    };
    let mut single = Some(entry);
    for (other, span) in entries {
        let message = format!(
            "\"{}\" is a second entry, beside \"{}\"; expected one",
            name(topology, other),
            name(topology, entry)
        );
        problems.push(Problem::new(span, message));
        single = None;
    }
    single
}

/// Says that no service is the entry, and which ones may be.
pub(super) fn no_entry(topology: &Topology, place: Option<Span>, mark: &str) -> Problem {
    let message = format!("no service is the entry; expected one with {mark}");
    let problem = Problem::new(place.unwrap_or_default(), message);
    let uncalled = uncalled(topology);
    let names: Vec<&str> = uncalled
        .iter()
        .take(5)
        .map(|id| name(topology, *id))
        .collect();
    match names.is_empty() {
        true => problem,
        false => problem.help(format!("no other calls {}", names.join(", "))),
    }
}

pub(super) fn name(topology: &Topology, id: ServiceId) -> &str {
    topology.service(id).map_or("", |one| one.name.as_str())
}

/// Notes every cycle, at the call that closes it.
pub(super) fn cycles(
    topology: &Topology,
    calls: &[WrittenCall],
    found: &Found,
    problems: &mut Vec<Problem>,
) {
    let found = found.cycles.iter();
    problems.extend(found.filter_map(|cycle| cyclic(topology, calls, cycle)));
}

fn cyclic(topology: &Topology, calls: &[WrittenCall], cycle: &[super::EdgeId]) -> Option<Problem> {
    /// Names that are shown of a long cycle.
    const SHOWN: usize = 12;
    let edges: Vec<_> = cycle.iter().filter_map(|id| topology.edge(*id)).collect();
    let last = edges.last()?;
    let mut names: Vec<&str> = edges.iter().map(|edge| name(topology, edge.from)).collect();
    if names.len() > SHOWN {
        let left_out = names.len() - SHOWN;
        names.truncate(SHOWN / 2);
        names.push("…");
        let tail = edges.iter().skip(SHOWN / 2 + left_out);
        names.extend(tail.map(|edge| name(topology, edge.from)));
    }
    names.push(name(topology, last.to));
    let is_it = |call: &&WrittenCall| call.at.service == last.from && call.to == last.to;
    let call = calls.iter().find(is_it)?;
    let message = format!("these calls form a cycle: {}", names.join(" -> "));
    let help = "a request would never end; take one of these calls out";
    Some(Problem::new(call.span.clone(), message).help(help))
}

/// Every path that is asked for must have an answer.
fn paths(topology: &Topology, places: &Places<'_>, problems: &mut Vec<Problem>) {
    for call in places.calls {
        let (Some(caller), Some(callee)) =
            (topology.service(call.at.service), topology.service(call.to))
        else {
            continue;
        };
        let (path, span) = match &call.path {
            Some((path, span)) => (path.as_str(), span),
            None => match caller.endpoints.get(call.at.endpoint) {
                Some(endpoint) if endpoint.path != "*" => (endpoint.path.as_str(), &call.span),
                _ => continue,
            },
        };
        if callee.endpoint(path).is_some() {
            continue;
        }
        let message = format!("\"{}\" has no endpoint \"{path}\"", callee.name);
        let known: Vec<&str> = callee
            .endpoints
            .iter()
            .map(|one| one.path.as_str())
            .collect();
        let help = match units::nearest(path, known.iter().copied()) {
            Some(near) => format!("did you mean path = \"{near}\"?"),
            None => format!(
                "its endpoints: {}; a call names one with path = \"…\", or has the path of its own",
                known.join(", ")
            ),
        };
        problems.push(Problem::new(span.clone(), message).help(help));
    }
}

/// A call cannot wait for longer than its callers do. A time-out that was not written
/// shrinks to theirs; one that was written is a mistake. A call that nobody waits for is
/// bounded by its own time alone.
fn timeouts(
    topology: &mut Topology,
    order: &[ServiceId],
    places: &Places<'_>,
    problems: &mut Vec<Problem>,
) {
    let mut limits = Vec::with_capacity(places.calls.len());
    for endpoint in topology.services.iter().flat_map(|one| &one.endpoints) {
        let calls = endpoint.calls().into_iter();
        limits.extend(calls.map(|(_, call)| (call.timeout, call.wait)));
    }
    let mut calls_of: Vec<Vec<usize>> = vec![Vec::new(); topology.services.len()];
    for (at, call) in places.calls.iter().enumerate() {
        calls_of[call.at.service.0 as usize].push(at);
    }
    // The longest that anybody waits for a service.
    let mut waits = vec![0; topology.services.len()];
    waits[topology.entry.0 as usize] = u64::MAX;
    for caller in order {
        let patience = waits[caller.0 as usize];
        for &at in &calls_of[caller.0 as usize] {
            let (call, Some((limit, wait))) = (&places.calls[at], limits.get_mut(at)) else {
                continue;
            };
            if *wait && *limit > patience && patience > 0 {
                if let Some(span) = &call.timeout {
                    let duration =
                        |nanos| units::write_duration(std::time::Duration::from_nanos(nanos));
                    let message = format!(
                        "this call may take {}, but \"{}\" is given up by its callers after {}",
                        duration(*limit),
                        name(topology, *caller),
                        duration(patience)
                    );
                    let help = "a time-out is at most that of the calls above it";
                    problems.push(Problem::new(span.clone(), message).help(help));
                }
                *limit = patience;
            }
            let callee = &mut waits[call.to.0 as usize];
            *callee = (*callee).max(*limit);
        }
    }
    let mut limits = limits.into_iter();
    for endpoint in topology
        .services
        .iter_mut()
        .flat_map(|one| &mut one.endpoints)
    {
        each_step_mut(&mut endpoint.steps, &mut |step| {
            if let Action::Call(call) = &mut step.action {
                call.timeout = limits.next().map_or(call.timeout, |(limit, _)| limit);
            }
        });
    }
}

/// Every processor that is named must be there.
pub(super) fn processors(
    topology: &Topology,
    places: &Places<'_>,
    machine: &Machine,
    problems: &mut Vec<Problem>,
) {
    let services = topology.services.iter().map(|one| &one.placement.cpus);
    let services = services.zip(places.services.iter().map(|place| &place.cpus));
    let background = topology.background.iter().map(|one| &one.cpus);
    for (cpus, place) in services.chain(background.zip(places.backgrounds)) {
        let missing = cpus.iter().find(|cpu| **cpu >= machine.cpus);
        if let (Some(missing), Some(span)) = (missing, place) {
            let message = format!(
                "this machine has no processor {missing}; it has {}, counted from 0",
                machine.cpus
            );
            problems.push(Problem::new(span.clone(), message));
        }
    }
}

/// What can be, but is likely not meant.
pub(super) fn doubts(
    topology: &Topology,
    places: &Places<'_>,
    machine: Option<&Machine>,
) -> Vec<Problem> {
    let mut doubts = Vec::new();
    let visits = demand::visits(topology, 0);
    let calls: f64 = visits.iter().flatten().sum::<f64>() - 1.0;
    if calls > budget::MOST_CALLS as f64 {
        let place = places.services.get(topology.entry.0 as usize);
        let message = format!("one request makes about {calls:.0} calls over all services");
        let span = place.map(|place| place.name.clone()).unwrap_or_default();
        doubts.push(Problem::new(span, message).help("lower counts, probabilities or the depth"));
    }
    if let Some((machine, rate)) = machine.and_then(|machine| Some((machine, machine.rate?))) {
        overloads(topology, places, machine, rate, &mut doubts);
    }
    doubts
}

/// What cannot keep up with a rate of requests: the machine, a processor to which services
/// are pinned, a service's own threads.
fn overloads(
    topology: &Topology,
    places: &Places<'_>,
    machine: &Machine,
    rate: f64,
    doubts: &mut Vec<Problem>,
) {
    let at = units::show_rate(rate);
    let busy = demand::busy(topology, rate);
    let background = topology.background.iter();
    let background = background.map(|one| one.cpu_share * f64::from(one.threads));
    let all = busy.iter().sum::<f64>() + background.sum::<f64>();
    let place = |id: usize| places.services.get(id);
    let name_of = |id: usize| {
        place(id)
            .map(|place| place.name.clone())
            .unwrap_or_default()
    };
    if all > f64::from(machine.cpus) {
        let message = format!(
            "the work of all services would take {all:.1} processors at {at}; there are {}",
            machine.cpus
        );
        let entry = name_of(topology.entry.0 as usize);
        doubts.push(Problem::new(entry, message).help("ask for less, or give them less work"));
    }
    for ((service, busy), id) in topology.services.iter().zip(busy).zip(0..) {
        // Without workers the one thread of each instance does the work.
        let threads = f64::from(service.workers.max(1)) * f64::from(service.replicas);
        if busy > threads {
            let message = format!(
                "the work of \"{}\" would keep {busy:.1} threads busy at {at}; it has {threads:.0}",
                service.name
            );
            let help = "raise its workers or replicas, or ask for less";
            doubts.push(Problem::new(name_of(id), message).help(help));
        }
    }
    for (cpu, load) in demand::pinned(topology, rate) {
        if load.busy <= 1.0 {
            continue;
        }
        let names = load.services.iter().map(|id| name(topology, *id));
        let message = format!(
            "processor {cpu} would have to do {:.1} times what it can: {} at {at}",
            load.busy,
            names.collect::<Vec<_>>().join(", "),
        );
        let place = load
            .services
            .first()
            .and_then(|id| places.services.get(id.0 as usize));
        let span = place
            .and_then(|place| place.cpus.clone())
            .unwrap_or_default();
        doubts
            .push(Problem::new(span, message).help("pin them to more processors, or ask for less"));
    }
}
