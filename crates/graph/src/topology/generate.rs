//! Graphs of any size.

use stats::SplitMix;

use super::draft::{Draft, step};
use super::{Action, Call, Join, ServiceId, Topology, Work};
use crate::amount::Amount;

/// Most services of a generated graph: its file stays within what can be read.
pub const MOST_SERVICES: u32 = 10_000;

/// Why there is no such graph.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GenerateError {
    /// Too few or too many services.
    #[error("a graph has 1 to {MOST_SERVICES} services; this one would have {found}")]
    Size {
        /// How many were asked for; `u64::MAX` stands for more than can be counted.
        found: u64,
    },
    /// A number of the shape that has no meaning.
    #[error("the shape's {name} is {found}; expected {expected}")]
    Shape {
        /// The field of [`RandomShape`].
        name: &'static str,
        /// What it is.
        found: f64,
        /// What it can be.
        expected: &'static str,
    },
}

fn sized(services: u64) -> Result<(), GenerateError> {
    match (1..=u64::from(MOST_SERVICES)).contains(&services) {
        true => Ok(()),
        false => Err(GenerateError::Size { found: services }),
    }
}

/// `services` that call each other in a line, and do nothing else: `s1` to `sN`.
///
/// # Errors
/// No service, or more than [`MOST_SERVICES`].
pub fn chain(services: u32) -> Result<Topology, GenerateError> {
    sized(u64::from(services))?;
    let mut draft = Draft::new(&format!("chain-{services}"), 1);
    let ids: Vec<ServiceId> = (1..=services)
        .map(|number| draft.service(format!("s{number}")))
        .collect();
    for pair in ids.windows(2) {
        if let [from, to] = *pair {
            let call = draft.call(from, to);
            draft.push(from, Action::Call(call));
        }
    }
    Ok(draft.finish(ServiceId(0)))
}

/// A tree of `levels` levels: every service but those of the last level calls `branches`
/// others at once. One level is a single service.
///
/// # Errors
/// No service, or more than [`MOST_SERVICES`].
pub fn tree(levels: u32, branches: u32) -> Result<Topology, GenerateError> {
    let mut services: u64 = 0;
    let mut level: u64 = 1;
    for _ in 0..levels {
        services = services.saturating_add(level);
        // Deeper levels only make it larger, or are empty.
        if level == 0 || services > u64::from(MOST_SERVICES) {
            break;
        }
        level = level.saturating_mul(u64::from(branches));
    }
    sized(services)?;
    let mut draft = Draft::new(&format!("tree-{levels}-{branches}"), 1);
    let mut last = vec![draft.service("s1".to_owned())];
    let mut number = 1;
    for _ in 1..levels {
        let mut next = Vec::new();
        for from in last {
            let mut calls = Vec::new();
            for _ in 0..branches {
                number += 1;
                let to = draft.service(format!("s{number}"));
                calls.push(draft.call(from, to));
                next.push(to);
            }
            push_calls(&mut draft, from, calls, true);
        }
        last = next;
    }
    Ok(draft.finish(ServiceId(0)))
}

fn push_calls(draft: &mut Draft, from: ServiceId, mut calls: Vec<Call>, at_once: bool) {
    if at_once && calls.len() > 1 {
        let branches = calls.into_iter().map(|call| step(Action::Call(call)));
        let branches = branches.collect();
        let join = Join::All;
        draft.push(from, Action::Parallel { branches, join });
    } else {
        for call in calls.drain(..) {
            draft.push(from, Action::Call(call));
        }
    }
}

/// What a random graph looks like. The defaults follow what was published of the calls
/// between the microservices of Alibaba:
///
/// - **Trees**: most services are called by one other; how many a service calls, and so
///   the size of a request's graph, has a heavy tail (Luo et al., "Characterizing
///   Microservice Dependency and Performance: Alibaba Trace Analysis", `SoCC` 2021).
/// - **Hot services**: a few are shared by a large part of all requests (the same paper).
/// - **Depth**: mostly 3 to 5 calls below each other (the call graphs of
///   cluster-trace-microservices-v2021).
/// - **Leaves**: about 39 % of the services call no other (Winchester et al., "Complexity
///   at Scale", 2025, of the trace of 2022). Here that follows from the tail.
///
/// How many calls a request makes, which of them run at once and what work is done is not
/// in these papers; those defaults are our choice.
#[derive(Debug, Clone, PartialEq)]
pub struct RandomShape {
    /// How many; 1 to [`MOST_SERVICES`].
    pub services: u32,
    /// Mean distance of a service from the entry, in calls: 1 to 20. Distances are Poisson,
    /// at least 1.
    pub depth: f64,
    /// Exponent of the tail of how many others a service calls (Pareto): above 1. Smaller
    /// is heavier.
    pub tail: f64,
    /// Share of the services that are hot: 0 to 1.
    pub hot: f64,
    /// Share of the other services that call a hot one besides: 0 to 1.
    pub sharing: f64,
    /// Calls that a request makes in a service that calls others, by expectation: above 0.
    /// Each call has the probability that gives it, at most 1.
    pub calls: f64,
    /// Share of the services that make their calls at once: 0 to 1.
    pub at_once: f64,
    /// Processor time of each service, in nanoseconds.
    pub cpu: Amount,
}

impl Default for RandomShape {
    fn default() -> Self {
        Self {
            services: 1000,
            depth: 4.0,
            tail: 1.3,
            hot: 0.02,
            sharing: 0.3,
            calls: 1.5,
            at_once: 0.5,
            cpu: Amount::LogNormal {
                median: 50_000.0,
                p99: 500_000.0,
            },
        }
    }
}

impl RandomShape {
    fn check(&self) -> Result<(), GenerateError> {
        sized(u64::from(self.services))?;
        let share = |value: f64| (0.0..=1.0).contains(&value);
        let above = |value: f64, least: f64| value > least && value.is_finite();
        let deep = (1.0..=20.0).contains(&self.depth);
        let fields = [
            ("depth", self.depth, deep, "1 to 20"),
            ("tail", self.tail, above(self.tail, 1.0), "a number above 1"),
            ("hot", self.hot, share(self.hot), "0 to 1"),
            ("sharing", self.sharing, share(self.sharing), "0 to 1"),
            (
                "calls",
                self.calls,
                above(self.calls, 0.0),
                "a number above 0",
            ),
            ("at_once", self.at_once, share(self.at_once), "0 to 1"),
        ];
        match fields.into_iter().find(|(_, _, right, _)| !right) {
            None => Ok(()),
            Some((name, found, _, expected)) => Err(GenerateError::Shape {
                name,
                found,
                expected,
            }),
        }
    }
}

/// A random graph. The same shape and seed give the same graph.
///
/// # Errors
/// A number of the shape that has no meaning.
pub fn random(shape: &RandomShape, seed: u64) -> Result<Topology, GenerateError> {
    shape.check()?;
    let mut random = SplitMix::new(seed);
    let layers = layers(shape, &mut random);
    let callees = callees(shape, &layers, &mut random);
    let mut draft = Draft::new(&format!("random-{}-{seed}", shape.services), seed);
    for number in 1..=layers.len() {
        draft.service(format!("s{number}"));
    }
    for (from, callees) in (0..).map(ServiceId).zip(&callees) {
        if !shape.cpu.is_zero() {
            draft.push(from, Action::Work(Work::Cpu(shape.cpu.clone())));
        }
        let probability = (shape.calls / callees.len() as f64).min(1.0);
        // A file says it in few digits.
        let probability = (probability * 1e4).ceil() / 1e4;
        let calls = callees.iter().map(|to| Call {
            probability,
            ..draft.call(from, *to)
        });
        let calls = calls.collect();
        let at_once = random.uniform() < shape.at_once;
        push_calls(&mut draft, from, calls, at_once);
    }
    Ok(draft.finish(ServiceId(0)))
}

/// The distance of each service from the entry, rising, without a gap; the first is 0.
fn layers(shape: &RandomShape, random: &mut SplitMix) -> Vec<u32> {
    let mut layers: Vec<u32> = (1..shape.services)
        .map(|_| 1 + poisson(shape.depth - 1.0, random))
        .collect();
    layers.push(0);
    layers.sort_unstable();
    let (mut before, mut layer) = (0, 0);
    for one in &mut layers {
        if *one > before {
            before = *one;
            layer += 1;
        }
        *one = layer;
    }
    layers
}

/// A Poisson number (Knuth, "Seminumerical Algorithms", section 3.4.1).
fn poisson(mean: f64, random: &mut SplitMix) -> u32 {
    let floor = (-mean).exp();
    let mut product = random.uniform();
    let mut number = 0;
    while product > floor {
        product *= random.uniform();
        number += 1;
    }
    number
}

/// Whom each service calls: one of the layer above calls each service, those with a heavy
/// weight more often; and many call a hot service, which is deeper than they.
fn callees(shape: &RandomShape, layers: &[u32], random: &mut SplitMix) -> Vec<Vec<ServiceId>> {
    let services = layers.len();
    // Sums of the weights, so that a weighted choice is a search.
    let mut sum = 0.0;
    let sums: Vec<f64> = layers
        .iter()
        .map(|_| {
            sum += random.uniform().powf(-1.0 / shape.tail) - 1.0;
            sum
        })
        .collect();
    let before = |at: usize| if at == 0 { 0.0 } else { sums[at - 1] };
    let mut callees: Vec<Vec<ServiceId>> = vec![Vec::new(); services];
    let id = |at: usize| ServiceId(u32::try_from(at).unwrap_or(u32::MAX));
    for (at, layer) in layers.iter().enumerate().skip(1) {
        let from = layers.partition_point(|one| *one < layer - 1);
        let to = layers.partition_point(|one| *one < *layer);
        let low = before(from);
        let place = low + random.uniform() * (before(to) - low);
        let parent = sums.partition_point(|sum| *sum < place);
        callees[parent.clamp(from, to - 1)].push(id(at));
    }
    let hot = hot_services(shape, services, random);
    for at in 0..services {
        if random.uniform() >= shape.sharing {
            continue;
        }
        // Those deeper than this one; the pick is even among them.
        let deeper = hot.partition_point(|hot| layers[*hot] <= layers[at]);
        let choice = deeper + random.below(hot.len() - deeper);
        let Some(to) = hot.get(choice).map(|hot| id(*hot)) else {
            continue;
        };
        if !callees[at].contains(&to) {
            callees[at].push(to);
        }
    }
    callees
}

/// Which services are hot, rising: of the deeper half, so that many are above them.
fn hot_services(shape: &RandomShape, services: usize, random: &mut SplitMix) -> Vec<usize> {
    let count = (shape.hot * services as f64).round() as usize;
    let half = services / 2;
    let mut hot: Vec<usize> = (0..count)
        .map(|_| half + random.below(services - half))
        .collect();
    hot.sort_unstable();
    hot.dedup();
    hot
}
