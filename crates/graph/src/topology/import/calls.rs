//! Many traces as one graph: services and endpoints are merged by their names, calls by
//! who calls whom.
//!
//! - The n-th call of an endpoint by another is a step. Its probability is the share of the
//!   caller's visits that made it.
//! - Steps stand in the order in which they mostly began; those that mostly ran at the same
//!   time are parallel.
//! - An endpoint works for as long as no call of it runs: it sleeps, or computes if the
//!   traces tell of processor time.
//! - A service may call itself. A visit below one of the same endpoint, all in one service, is
//!   of an endpoint of its own, `/path~2` for the second: so recursion has an end here, too.
//! - Services that call each other in a circle lose the rarest call of it.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Imported, TraceError};
use crate::Nanos;
use crate::amount::Amount;
use crate::script::bound;
use crate::topology::draft::{Draft, endpoint, step};
use crate::topology::generate::MOST_SERVICES;
use crate::topology::names::service_name;
use crate::topology::steps::is_path;
use crate::topology::walk::along_calls;
use crate::topology::{Action, Call, Edge, Faults, Join, Service, ServiceId, Step, Work};

/// Endpoints of a service that are told apart; more share `*`.
const MOST_ENDPOINTS: usize = 64;

/// Calls of one endpoint by one visit of another that are steps of their own; more are
/// repeats of the last.
const MOST_REPEATS: usize = 16;

/// Calls of a visit that are compared with each other for running at the same time.
const MOST_COMPARED: usize = 64;

/// Times that are kept of an endpoint; later ones are left out.
const MOST_SAMPLES: usize = 10_000;

/// Visits of one endpoint below each other, within one service, that are told apart; deeper ones
/// are a circle.
const MOST_AGAIN: usize = 8;

/// Visits above one that are looked at for that.
const MOST_ABOVE: usize = 256;

/// The path that stands for all others of a service.
const OTHER: &str = "/other";

/// What one service did for one request.
#[derive(Debug, Default, Clone)]
pub(super) struct Visit {
    /// As it is called there.
    pub(super) service: String,
    /// As it is called there; empty: not known.
    pub(super) path: String,
    pub(super) begun: Nanos,
    pub(super) ended: Nanos,
    /// Own work, if the trace tells of any.
    pub(super) work: Option<OwnWork>,
    /// It failed, and no call of it did.
    pub(super) failed: bool,
    pub(super) calls: Vec<Made>,
}

/// How long a visit computed and slept.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct OwnWork {
    pub(super) cpu: Nanos,
    pub(super) sleep: Nanos,
}

/// A call of a visit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Made {
    /// What was called, by its place in the trace.
    pub(super) visit: usize,
    pub(super) begun: Nanos,
    pub(super) ended: Nanos,
    /// Whether the caller waited for the answer.
    pub(super) waits: bool,
}

/// The visits of one trace.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub(super) visits: Vec<Visit>,
    /// Those that no visit called.
    pub(super) roots: Vec<usize>,
}

impl Trace {
    /// Adds a visit, and gives its place.
    pub(super) fn add(&mut self, visit: Visit) -> usize {
        self.visits.push(visit);
        self.visits.len() - 1
    }

    /// The path of each visit's endpoint; of those below one of the same path, within one
    /// service, with a number.
    fn paths(&self) -> Vec<String> {
        let mut above: Vec<Option<usize>> = vec![None; self.visits.len()];
        for (at, visit) in self.visits.iter().enumerate() {
            for call in &visit.calls {
                if let Some(above) = above.get_mut(call.visit) {
                    *above = Some(at);
                }
            }
        }
        let plain: Vec<String> = self.visits.iter().map(|one| path(&one.path)).collect();
        let numbered = |at: usize| {
            let is_within = |upper: &usize| self.visits[*upper].service == self.visits[at].service;
            let callers = std::iter::successors(Some(at), |at| above[*at].filter(is_within));
            // Spans that name each other as their parents go round and round.
            let callers = callers.skip(1).take(MOST_ABOVE);
            let again = callers.filter(|upper| plain[*upper] == plain[at]);
            match again.take(MOST_AGAIN).count() {
                0 => plain[at].clone(),
                again => format!("{}~{}", plain[at], again + 1),
            }
        };
        (0..self.visits.len()).map(numbered).collect()
    }
}

/// What all traces so far amount to.
#[derive(Default)]
pub(super) struct Merged {
    services: Vec<MergedService>,
    service_of: HashMap<String, usize>,
    endpoints: Vec<Endpoint>,
    endpoint_of: HashMap<(usize, String), usize>,
    /// Visits that took longer by themselves than a step may.
    too_long: u64,
}

/// A service as all traces so far show it.
struct MergedService {
    name: String,
    visits: u64,
    failed: u64,
    /// How often it was where a trace begins.
    roots: u64,
    endpoints: Vec<usize>,
}

#[derive(Default)]
struct Endpoint {
    service: usize,
    path: String,
    visits: u64,
    /// Time in which no call ran.
    own: Vec<Nanos>,
    cpu: Vec<Nanos>,
    sleep: Vec<Nanos>,
    /// By the endpoint that is called and which call of it this is.
    calls: BTreeMap<(usize, usize), Calls>,
    /// How often two of the calls were made by one visit, and ran at the same time.
    pairs: HashMap<[(usize, usize); 2], (u64, u64)>,
}

#[derive(Default, Clone, Copy)]
struct Calls {
    made: u64,
    /// Repeats beyond those that are steps of their own.
    more: u64,
    waits: u64,
    /// Sum of the times from the caller's start to the call's.
    offsets: f64,
}

impl Merged {
    /// Adds a trace. A visit is called once at most.
    pub(super) fn add(&mut self, trace: &Trace) {
        let paths = trace.paths();
        let named = trace.visits.iter().zip(paths);
        let places: Vec<usize> = named
            .map(|(visit, path)| self.endpoint(&visit.service, path))
            .collect();
        for root in &trace.roots {
            let place = places
                .get(*root)
                .and_then(|place| self.endpoints.get(*place));
            if let Some(service) = place.and_then(|one| self.services.get_mut(one.service)) {
                service.roots += 1;
            }
        }
        for (visit, place) in trace.visits.iter().zip(&places) {
            self.visit(visit, *place, &places);
        }
    }

    fn endpoint(&mut self, service: &str, path: String) -> usize {
        let service = *self
            .service_of
            .entry(service.to_owned())
            .or_insert_with(|| {
                self.services.push(MergedService {
                    name: service.to_owned(),
                    visits: 0,
                    failed: 0,
                    roots: 0,
                    endpoints: Vec::new(),
                });
                self.services.len() - 1
            });
        let key = (service, path);
        if let Some(known) = self.endpoint_of.get(&key) {
            return *known;
        }
        let full = self.services[service].endpoints.len() >= MOST_ENDPOINTS;
        let name = if full { OTHER.to_owned() } else { key.1 };
        *self
            .endpoint_of
            .entry((service, name))
            .or_insert_with_key(|(service, path)| {
                self.endpoints.push(Endpoint {
                    service: *service,
                    path: path.clone(),
                    ..Endpoint::default()
                });
                let place = self.endpoints.len() - 1;
                self.services[*service].endpoints.push(place);
                place
            })
    }

    fn visit(&mut self, visit: &Visit, place: usize, places: &[usize]) {
        let into = &mut self.endpoints[place];
        let service = &mut self.services[into.service];
        service.visits += 1;
        service.failed += u64::from(visit.failed);
        into.visits += 1;
        let own = own_time(visit);
        self.too_long += u64::from(own > bound::TIME);
        if into.own.len() < MOST_SAMPLES {
            into.own.push(own.min(bound::TIME));
            if let Some(work) = visit.work {
                into.cpu.push(work.cpu.min(bound::TIME));
                into.sleep.push(work.sleep.min(bound::TIME));
            }
        }
        let mut made: Vec<&Made> = visit.calls.iter().collect();
        made.sort_by_key(|call| (call.begun, call.ended));
        let mut repeats: HashMap<usize, usize> = HashMap::new();
        let mut keys = Vec::with_capacity(made.len());
        for call in &made {
            let Some(callee) = places.get(call.visit).copied() else {
                continue;
            };
            let repeat = repeats.entry(callee).or_default();
            *repeat += 1;
            if *repeat > MOST_REPEATS {
                into.calls.entry((callee, MOST_REPEATS)).or_default().more += 1;
                continue;
            }
            let key = (callee, *repeat);
            let calls = into.calls.entry(key).or_default();
            calls.made += 1;
            calls.waits += u64::from(call.waits);
            calls.offsets += call.begun.saturating_sub(visit.begun) as f64;
            keys.push((key, *call));
        }
        keys.truncate(MOST_COMPARED);
        for (at, (key, call)) in keys.iter().enumerate() {
            for (other, later) in &keys[at + 1..] {
                let pair = [*key.min(other), *key.max(other)];
                let (together, overlapping) = into.pairs.entry(pair).or_default();
                *together += 1;
                *overlapping += u64::from(later.begun < call.ended);
            }
        }
    }

    /// The graph that all traces together are.
    ///
    /// # Errors
    /// There is no call, or too many services.
    pub(super) fn graph(mut self, name: &str) -> Result<Imported, TraceError> {
        if self.endpoints.iter().all(|one| one.calls.is_empty()) {
            return Err(TraceError::Nothing);
        }
        if self.services.len() > MOST_SERVICES as usize {
            return Err(TraceError::TooMany {
                found: self.services.len(),
            });
        }
        let mut warnings = self.break_cycles();
        if self.too_long > 0 {
            warnings.push(format!(
                "{} visits take longer than an hour beside their calls; a step takes an hour at most",
                self.too_long
            ));
        }
        let mut draft = Draft::new(name, 0);
        let mut taken = HashSet::new();
        let ids: Vec<ServiceId> = self
            .services
            .iter()
            .map(|service| draft.service(free_name(&service.name, &mut taken)))
            .collect();
        for (service, id) in self.services.iter().zip(&ids) {
            let endpoints = self.ordered(service);
            let endpoints = endpoints.map(|one| self.built(&mut draft, *id, one, &ids));
            let endpoints = endpoints.collect();
            if let Some(built) = draft.topology.services.get_mut(id.0 as usize) {
                fill(built, service, endpoints);
            }
        }
        let roots = self.services.iter().zip(&ids);
        let entry = roots.rev().max_by_key(|(service, _)| service.roots);
        let entry = entry.map_or(ServiceId(0), |(_, id)| *id);
        let mut topology = draft.finish(entry);
        for name in super::without_unreachable(&mut topology) {
            warnings.push(format!(
                "\"{name}\" is left out: no call leads to it from the entry"
            ));
        }
        Ok(Imported { topology, warnings })
    }

    /// The endpoints of a service, those that are asked for most first.
    fn ordered<'a>(&'a self, service: &MergedService) -> impl Iterator<Item = &'a Endpoint> {
        let mut places = service.endpoints.clone();
        places.sort_by_key(|place| (u64::MAX - self.endpoints[*place].visits, *place));
        places.into_iter().map(|place| &self.endpoints[place])
    }

    /// Drops the rarest call of each circle until there is none: of services, then of endpoints
    /// within one.
    fn break_cycles(&mut self) -> Vec<String> {
        let mut warnings = Vec::new();
        for within in [false, true] {
            loop {
                let rarest = self.rarest_of_cycles(within);
                if rarest.is_empty() {
                    break;
                }
                for ((from, to), count) in rarest {
                    warnings.push(format!(
                        "calls of {} by {} are left out ({count} of them): they lead back in a circle",
                        self.called(to, within),
                        self.called(from, within),
                    ));
                    self.drop_calls(from, to, within);
                }
            }
        }
        warnings
    }

    /// What a call within a service or between services leads from and to.
    fn ends(&self, from: usize, to: usize, within: bool) -> Option<(usize, usize)> {
        let (caller, callee) = (self.endpoints[from].service, self.endpoints[to].service);
        match within {
            true => (caller == callee).then_some((from, to)),
            false => (caller != callee).then_some((caller, callee)),
        }
    }

    /// The rarest call of each circle, by its ends, with how often it was made.
    fn rarest_of_cycles(&self, within: bool) -> BTreeMap<(usize, usize), u64> {
        let mut counts: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        for (at, one) in self.endpoints.iter().enumerate() {
            for ((callee, _), calls) in &one.calls {
                if let Some(ends) = self.ends(at, *callee, within) {
                    *counts.entry(ends).or_default() += calls.made;
                }
            }
        }
        let id = |at: usize| ServiceId(u32::try_from(at).unwrap_or(u32::MAX));
        let edge = |pair: &(usize, usize)| Edge {
            from: id(pair.0),
            to: id(pair.1),
            connections: crate::topology::CONNECTIONS,
        };
        let edges: Vec<Edge> = counts.keys().map(edge).collect();
        let nodes = match within {
            true => self.endpoints.len(),
            false => self.services.len(),
        };
        let mut rarest = BTreeMap::new();
        for cycle in along_calls(nodes, &edges).cycles {
            let pairs = cycle.iter().filter_map(|edge| edges.get(edge.0 as usize));
            let pairs = pairs.map(|edge| (edge.from.0 as usize, edge.to.0 as usize));
            let counted = pairs.map(|pair| (pair, counts.get(&pair).copied().unwrap_or(0)));
            rarest.extend(counted.min_by_key(|(_, count)| *count));
        }
        rarest
    }

    fn called(&self, at: usize, within: bool) -> String {
        match within {
            true => {
                let one = &self.endpoints[at];
                format!(
                    "\"{}\" of \"{}\"",
                    one.path, self.services[one.service].name
                )
            }
            false => format!("\"{}\"", self.services[at].name),
        }
    }

    fn drop_calls(&mut self, from: usize, to: usize, within: bool) {
        let service_of: Vec<usize> = self.endpoints.iter().map(|one| one.service).collect();
        let place = |endpoint: usize| {
            if within {
                endpoint
            } else {
                service_of[endpoint]
            }
        };
        for (at, one) in self.endpoints.iter_mut().enumerate() {
            if place(at) == from {
                one.calls.retain(|(callee, _), _| place(*callee) != to);
            }
        }
    }

    fn built(
        &self,
        draft: &mut Draft,
        own: ServiceId,
        from: &Endpoint,
        ids: &[ServiceId],
    ) -> crate::topology::Endpoint {
        let mut steps = own_steps(from);
        let mut ordered: Vec<(&(usize, usize), &Calls)> = from.calls.iter().collect();
        ordered.sort_by(|(_, one), (_, other)| {
            let offset = |calls: &Calls| calls.offsets / calls.made.max(1) as f64;
            offset(one).total_cmp(&offset(other))
        });
        // Calls that run at the same time, so far, and whether they are waited for.
        let mut group: Vec<((usize, usize), bool, Step)> = Vec::new();
        for (key, calls) in ordered {
            let Some(callee) = self.endpoints.get(key.0) else {
                continue;
            };
            let waits = calls.waits * 2 >= calls.made;
            let repeats = 1.0 + calls.more as f64 / calls.made.max(1) as f64;
            let call = Call {
                path: (callee.path != from.path).then(|| callee.path.clone()),
                probability: rounded(calls.made as f64 / from.visits.max(1) as f64),
                count: Amount::Constant(repeats.round().min(f64::from(bound::COUNT))),
                timeout: super::TIMEOUT,
                wait: waits,
                ..draft.call(own, ids[callee.service])
            };
            let held_up = |(other, waits, _): &_| *waits && from.at_once(key, other);
            if !group.iter().any(held_up) {
                steps.extend(joined(&mut group));
            }
            group.push((*key, waits, step(Action::Call(call))));
        }
        steps.extend(joined(&mut group));
        crate::topology::Endpoint {
            steps,
            ..endpoint(if from.path == OTHER { "*" } else { &from.path })
        }
    }
}

impl Endpoint {
    /// Whether two calls mostly ran at the same time when both were made.
    fn at_once(&self, one: &(usize, usize), other: &(usize, usize)) -> bool {
        let pair = [*one.min(other), *one.max(other)];
        let seen = self.pairs.get(&pair);
        seen.is_some_and(|(together, overlapping)| overlapping * 2 > *together)
    }
}

/// The step of calls that run at the same time, if there are any.
fn joined(group: &mut Vec<((usize, usize), bool, Step)>) -> Option<Step> {
    let mut steps: Vec<Step> = group.drain(..).map(|(_, _, step)| step).collect();
    match steps.len() {
        0 | 1 => steps.pop(),
        _ => Some(step(Action::Parallel {
            branches: steps,
            join: Join::All,
        })),
    }
}

fn own_steps(from: &Endpoint) -> Vec<Step> {
    let works = match from.cpu.is_empty() {
        true => vec![Work::Sleep(amount(&from.own))],
        false => vec![
            Work::Cpu(amount(&from.cpu)),
            Work::Sleep(amount(&from.sleep)),
        ],
    };
    let something = |work: &Work| match work {
        Work::Cpu(amount) | Work::Sleep(amount) => !amount.is_zero(),
        _ => true,
    };
    let works = works.into_iter().filter(something);
    works.map(|work| step(Action::Work(work))).collect()
}

fn fill(built: &mut Service, service: &MergedService, endpoints: Vec<crate::topology::Endpoint>) {
    built.endpoints = endpoints;
    built.faults = Faults {
        error: rounded(service.failed as f64 / service.visits.max(1) as f64),
        ..Faults::default()
    };
}

/// A share in six digits, as a person would write it. One that was seen is not zero.
fn rounded(share: f64) -> f64 {
    (share * 1e6).ceil().min(1e6) / 1e6
}

/// The amount that times came from.
fn amount(times: &[Nanos]) -> Amount {
    /// Fewer times do not have so many quantiles.
    const FEW: usize = 20;
    let mut times = times.to_vec();
    times.sort_unstable();
    let at = |q| stats::nearest_rank(&times, q).unwrap_or(0) as f64;
    let (least, most) = (at(0.0), at(1.0));
    if least == most {
        return Amount::Constant(most);
    }
    if times.len() < FEW {
        return Amount::Uniform {
            from: least,
            to: most,
        };
    }
    // The first line begins at zero: it should be short.
    let quantiles = [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0];
    Amount::Quantiles(quantiles.map(|q| (q, at(q))).to_vec())
}

/// Time of a visit in which no call ran that it waited for.
fn own_time(visit: &Visit) -> Nanos {
    let within = |time: Nanos| time.clamp(visit.begun, visit.ended.max(visit.begun));
    let waited = visit.calls.iter().filter(|call| call.waits);
    let mut spans: Vec<(Nanos, Nanos)> = waited
        .map(|call| (within(call.begun), within(call.ended)))
        .collect();
    spans.sort_unstable();
    let mut own = visit.ended.saturating_sub(visit.begun);
    let mut until = visit.begun;
    for (begun, ended) in spans {
        own = own.saturating_sub(ended.saturating_sub(begun.max(until)));
        until = until.max(ended);
    }
    own
}

/// A path of HTTP for the name of an interface.
fn path(foreign: &str) -> String {
    /// Longer ones differ in what no one reads.
    const MOST: usize = 200;
    // "GET /path" is the name of a span.
    let foreign = foreign.split_once(" /").map_or(foreign, |(_, rest)| rest);
    let plain = foreign.split(['?', '#']).next().unwrap_or_default();
    let letters = plain.chars().take(MOST);
    let letters = letters.map(|one| if one.is_ascii_graphic() { one } else { '-' });
    let letters: String = letters.collect();
    let path = format!("/{}", letters.trim_start_matches('/'));
    if is_path(&path) { path } else { "/".to_owned() }
}

/// A name that no other service has.
fn free_name(foreign: &str, taken: &mut HashSet<String>) -> String {
    let base = match service_name(foreign) {
        name if name.is_empty() => "service".to_owned(),
        name => name,
    };
    let mut name = base.clone();
    let mut number = 1;
    while !taken.insert(name.clone()) {
        number += 1;
        let end = format!("-{number}");
        let room = base.len().min(63 - end.len());
        name = format!("{}{end}", base[..room].trim_end_matches('-'));
    }
    name
}
