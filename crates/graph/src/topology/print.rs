//! A graph as a file that reads back to the same.

use std::cell::RefCell;
use std::fmt::{self, Write};
use std::time::Duration;

use document::Kind;

use super::amounts::{self, CALLS, SIZE, STEPS, TIME};
use super::read::Defaults;
use super::{
    Action, Background, Call, Connections, EdgeId, Endpoint, Faults, Join, Protocol, Response,
    Service, ServiceId, Step, Topology, Tracing, Work,
};
use crate::amount::Amount;

impl Topology {
    /// The graph as TOML. [`super::read`] makes the same graph of it if its times and sizes
    /// are whole nanoseconds and bytes.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let printer = Printer::new(self);
        // A String takes all that is written to it.
        let _ = printer.graph(&mut text);
        text
    }
}

/// A graph, and what calls and services mostly have: only what differs is printed with them.
struct Printer<'a> {
    graph: &'a Topology,
    defaults: Defaults,
    /// For each edge, whether its connections still have to be told.
    untold: RefCell<Vec<bool>>,
}

/// The value that stands most often, of the first hundred different ones.
fn most_common<T: PartialEq + Clone>(values: impl Iterator<Item = T>, otherwise: T) -> T {
    const DIFFERENT: usize = 100;
    let mut counts: Vec<(T, usize)> = Vec::new();
    for value in values {
        let known = counts.iter().position(|(known, _)| *known == value);
        match known {
            Some(at) => counts[at].1 += 1,
            None if counts.len() < DIFFERENT => counts.push((value, 1)),
            None => {}
        }
    }
    let most = counts.iter().map(|(_, count)| *count).max();
    let first = counts.into_iter().find(|(_, count)| Some(*count) == most);
    first.map_or(otherwise, |(value, _)| value)
}

impl<'a> Printer<'a> {
    fn new(graph: &'a Topology) -> Self {
        let endpoints = || graph.services.iter().flat_map(|one| &one.endpoints);
        let calls = endpoints().flat_map(|endpoint| endpoint.calls());
        let services = || graph.services.iter();
        let edges = || graph.edges.iter().map(|edge| edge.connections);
        let usual = Defaults::default();
        let defaults = Defaults {
            timeout: most_common(calls.map(|(_, call)| call.timeout), usual.timeout),
            protocol: most_common(services().map(|one| one.protocol), usual.protocol),
            connections: most_common(edges(), usual.connections),
            response: most_common(endpoints().map(|one| one.response.clone()), usual.response),
            workers: most_common(services().map(|one| one.workers), usual.workers),
            queue: most_common(services().map(|one| one.queue), usual.queue),
        };
        let untold = edges().map(|one| one != defaults.connections);
        Self {
            graph,
            untold: RefCell::new(untold.collect()),
            defaults,
        }
    }

    fn graph(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "name = {}", self.graph.name.write())?;
        match i64::try_from(self.graph.seed) {
            Ok(seed) => writeln!(out, "seed = {seed}")?,
            Err(_) => writeln!(out, "seed = \"{}\"", self.graph.seed)?,
        }
        writeln!(out, "\n[defaults]")?;
        let defaults = &self.defaults;
        writeln!(out, "timeout = {}", duration(defaults.timeout))?;
        writeln!(out, "protocol = {}", protocol(defaults.protocol))?;
        writeln!(out, "connections = {}", connections(defaults.connections))?;
        writeln!(out, "response = {}", response(&defaults.response))?;
        writeln!(out, "workers = {}", defaults.workers)?;
        writeln!(out, "queue = {}", defaults.queue)?;
        if self.graph.tracing != Tracing::default() {
            tracing(&self.graph.tracing, out)?;
        }
        for (service, id) in self.graph.services.iter().zip(0..) {
            self.service(service, ServiceId(id), out)?;
        }
        for one in &self.graph.background {
            background(one, out)?;
        }
        Ok(())
    }

    fn service(&self, service: &Service, id: ServiceId, out: &mut String) -> fmt::Result {
        writeln!(out, "\n[services.{}]", service.name)?;
        let (usual, placement) = (&self.defaults, &service.placement);
        let limits = joined([
            ("cpu", placement.cpu_limit.map(share)),
            ("memory", placement.memory_limit.map(size)),
        ]);
        let settings = [
            ("entry", unless(id == self.graph.entry, false, plain)),
            (
                "protocol",
                unless(service.protocol, usual.protocol, protocol),
            ),
            ("replicas", unless(service.replicas, 1, plain)),
            ("workers", unless(service.workers, usual.workers, plain)),
            ("queue", unless(service.queue, usual.queue, plain)),
            ("cpus", unless(&placement.cpus[..], &[], cpus)),
            ("limits", unless(&*limits, "", braced)),
            (
                "faults",
                unless(&service.faults, &Faults::default(), faults),
            ),
            ("labels", unless(&service.labels, &Vec::new(), Kind::write)),
        ];
        for (key, value) in settings {
            if let Some(value) = value {
                writeln!(out, "{key} = {value}")?;
            }
        }
        self.endpoints(service, out)
    }

    fn endpoints(&self, service: &Service, out: &mut String) -> fmt::Result {
        let (first, others) = match service.endpoints.split_first() {
            Some((first, others)) if first.path == "/" => (Some(first), others),
            _ => (None, service.endpoints.as_slice()),
        };
        // What stands with the service holds for all its endpoints that say nothing.
        let (mut body, mut latency) = (&self.defaults.response, &Amount::ZERO);
        if let Some(first) = first {
            self.endpoint(first, body, latency, !others.is_empty(), out)?;
            (body, latency) = (&first.response, &first.latency);
        }
        for endpoint in others {
            let path = endpoint.path.write();
            writeln!(out, "\n[services.{}.endpoints.{path}]", service.name)?;
            self.endpoint(endpoint, body, latency, false, out)?;
        }
        Ok(())
    }

    fn endpoint(
        &self,
        endpoint: &Endpoint,
        body: &Response,
        latency: &Amount,
        steps_needed: bool,
        out: &mut String,
    ) -> fmt::Result {
        if endpoint.response != *body {
            writeln!(out, "response = {}", response(&endpoint.response))?;
        }
        if endpoint.latency != *latency {
            writeln!(out, "latency = {}", time(&endpoint.latency))?;
        }
        if endpoint.steps.is_empty() {
            return match steps_needed {
                true => writeln!(out, "steps = []"),
                false => Ok(()),
            };
        }
        write!(out, "steps = ")?;
        self.list(&endpoint.steps, 0, out)?;
        writeln!(out)
    }

    fn list(&self, steps: &[Step], depth: usize, out: &mut String) -> fmt::Result {
        if steps.is_empty() {
            return write!(out, "[]");
        }
        writeln!(out, "[")?;
        for step in steps {
            write!(out, "{:1$}", "", 2 * depth + 2)?;
            self.step(step, depth + 1, out)?;
            writeln!(out, ",")?;
        }
        write!(out, "{:1$}]", "", 2 * depth)
    }

    fn step(&self, step: &Step, depth: usize, out: &mut String) -> fmt::Result {
        match &step.action {
            Action::Work(one) => write!(out, "{{ {} }}", work(one)),
            Action::Call(call) => write!(out, "{{ {} }}", self.call(call)),
            Action::Sequence(steps) => {
                write!(out, "{{ steps = ")?;
                self.list(steps, depth, out)?;
                write!(out, " }}")
            }
            Action::Parallel { branches, join } => {
                write!(out, "{{ parallel = ")?;
                self.list(branches, depth, out)?;
                match join {
                    Join::All => write!(out, " }}"),
                    Join::Quorum(1) => write!(out, ", join = \"any\" }}"),
                    Join::Quorum(number) => write!(out, ", join = {number} }}"),
                }
            }
        }
    }

    fn call(&self, call: &Call) -> String {
        let edge = self.graph.edge(call.edge);
        let to = edge.and_then(|edge| self.graph.service(edge.to));
        let told = edge.filter(|_| self.is_untold(call.edge));
        let name = to.map_or("", |to| to.name.as_str());
        let count = |count: &Amount| amounts::write(count, CALLS);
        joined([
            ("call", Some(quoted(name))),
            ("path", call.path.as_ref().map(Kind::write)),
            ("probability", unless(call.probability, 1.0, share)),
            ("count", unless(&call.count, &Amount::Constant(1.0), count)),
            ("request", unless(&call.request, &Amount::ZERO, bytes)),
            (
                "timeout",
                unless(call.timeout, self.defaults.timeout, duration),
            ),
            ("retries", unless(call.retries, 0, plain)),
            ("backoff", unless(call.backoff, 0, duration)),
            ("wait", unless(call.wait, true, plain)),
            (
                "connections",
                told.map(|edge| connections(edge.connections)),
            ),
        ])
    }

    /// Whether the connections of an edge have to be told; true once.
    fn is_untold(&self, edge: EdgeId) -> bool {
        let mut untold = self.untold.borrow_mut();
        untold.get_mut(edge.0 as usize).is_some_and(std::mem::take)
    }
}

/// Settings in one line; those without a value are left out.
fn joined<const N: usize>(settings: [(&str, Option<String>); N]) -> String {
    let settings = settings.into_iter();
    let told = settings.filter_map(|(key, value)| Some(format!("{key} = {}", value?)));
    told.collect::<Vec<_>>().join(", ")
}

/// A setting, unless it is the usual one.
fn unless<T: PartialEq>(value: T, usual: T, write: impl FnOnce(T) -> String) -> Option<String> {
    (value != usual).then(|| write(value))
}

fn plain(value: impl ToString) -> String {
    value.to_string()
}

fn quoted(text: impl fmt::Display) -> String {
    format!("\"{text}\"")
}

fn braced(settings: &str) -> String {
    format!("{{ {settings} }}")
}

fn share(share: f64) -> String {
    format!("{share:?}")
}

fn cpus(cpus: &[u32]) -> String {
    quoted(units::write_cpus(cpus))
}

fn size(bytes: u64) -> String {
    quoted(units::write_bytes(bytes))
}

fn time(time: &Amount) -> String {
    amounts::write(time, TIME)
}

fn bytes(bytes: &Amount) -> String {
    amounts::write(bytes, SIZE)
}

fn duration(nanos: u64) -> String {
    quoted(units::write_duration(Duration::from_nanos(nanos)))
}

fn protocol(protocol: Protocol) -> String {
    quoted(protocol.name())
}

fn connections(connections: Connections) -> String {
    match connections {
        Connections::Warm(number) => number.to_string(),
        Connections::Cold(super::COLD_CONNECTIONS) => quoted("cold"),
        Connections::Cold(number) => quoted(format_args!("cold {number}")),
    }
}

fn response(response: &Response) -> String {
    match response {
        Response::Echo => quoted("echo"),
        Response::Bytes(amount) => bytes(amount),
    }
}

fn faults(faults: &Faults) -> String {
    let delay = joined([
        ("rate", Some(share(faults.delay_rate))),
        ("by", Some(time(&faults.delay))),
    ]);
    let delayed = faults.delay_rate != 0.0 || !faults.delay.is_zero();
    braced(&joined([
        ("error", unless(faults.error, 0.0, share)),
        (
            "status",
            unless(faults.status, Faults::default().status, plain),
        ),
        ("drop", unless(faults.drop, 0.0, share)),
        ("delay", delayed.then(|| braced(&delay))),
    ]))
}

fn work(work: &Work) -> String {
    let job = |path: &std::path::PathBuf| format!("stress-ng = {}", path.write());
    match work {
        Work::Cpu(length) => format!("cpu = {}", time(length)),
        Work::Ops(ops) => format!("ops = {}", amounts::write(ops, STEPS)),
        Work::Primes(most) => format!("primes = {most}"),
        Work::Memory { set, touches } => {
            let touches = amounts::write(touches, STEPS);
            format!("memory = {}, touches = {touches}", size(*set))
        }
        Work::Fork(words) => format!("fork = {}", words.write()),
        Work::Disk { read, write, sync } => {
            let parts = joined([
                ("read", unless(read, &Amount::ZERO, bytes)),
                ("write", unless(write, &Amount::ZERO, bytes)),
                ("sync", unless(*sync, false, plain)),
            ]);
            format!("disk = {}", braced(&parts))
        }
        Work::Lock { name, hold } => format!("lock = {}, cpu = {}", name.write(), time(hold)),
        Work::Sleep(length) => format!("sleep = {}", time(length)),
        Work::StressNg { job: path } => job(path),
        Work::StressNgBackground { job: path } => format!("{}, wait = false", job(path)),
        Work::StressNgStatus => "stress-ng-status = true".to_owned(),
    }
}

fn tracing(tracing: &Tracing, out: &mut String) -> fmt::Result {
    writeln!(out, "\n[trace]")?;
    writeln!(out, "sample = {:?}", tracing.sample)?;
    let contexts = [("w3c", tracing.w3c), ("b3", tracing.b3)];
    let sent = contexts.into_iter().filter(|(_, sent)| *sent);
    let sent: Vec<String> = sent.map(|(name, _)| name.to_owned()).collect();
    writeln!(out, "propagate = {}", sent.write())?;
    for (key, url) in [("zipkin", &tracing.zipkin), ("otlp", &tracing.otlp)] {
        if let Some(url) = url {
            writeln!(out, "{key} = {}", url.to_string().write())?;
        }
    }
    Ok(())
}

fn background(one: &Background, out: &mut String) -> fmt::Result {
    writeln!(out, "\n[[background]]")?;
    writeln!(out, "name = {}", one.name.write())?;
    if !one.cpus.is_empty() {
        writeln!(out, "cpus = {}", cpus(&one.cpus))?;
    }
    writeln!(out, "cpu = {}", share(one.cpu_share))?;
    writeln!(out, "threads = {}", one.threads)?;
    if one.memory != 0 {
        writeln!(out, "memory = {}", size(one.memory))?;
    }
    writeln!(out, "from = {}", duration(one.from))?;
    match one.lasts {
        Some(lasts) => writeln!(out, "for = {}", duration(lasts)),
        None => Ok(()),
    }
}
