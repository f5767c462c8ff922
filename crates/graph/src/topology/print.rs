//! A graph as a file that reads back to the same.

use std::fmt::{self, Write};
use std::time::Duration;

use document::Kind;

use super::amounts::{self, CALLS, SIZE, STEPS, TIME};
use super::settings::PROTOCOLS;
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

/// What calls and services mostly have; only what differs is printed with them.
struct Printer<'a> {
    graph: &'a Topology,
    timeout: u64,
    connections: Connections,
    protocol: Protocol,
    response: Response,
    workers: u32,
    queue: u32,
    /// For each edge, whether its connections still have to be told.
    untold: std::cell::RefCell<Vec<bool>>,
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
        let connections = most_common(
            graph.edges.iter().map(|edge| edge.connections),
            super::CONNECTIONS,
        );
        Self {
            graph,
            timeout: most_common(calls.map(|(_, call)| call.timeout), super::TIMEOUT),
            connections,
            protocol: most_common(services().map(|one| one.protocol), Protocol::Http1),
            response: most_common(endpoints().map(|one| one.response.clone()), super::RESPONSE),
            workers: most_common(services().map(|one| one.workers), super::WORKERS),
            queue: most_common(services().map(|one| one.queue), super::QUEUE),
            untold: graph
                .edges
                .iter()
                .map(|edge| edge.connections != connections)
                .collect::<Vec<_>>()
                .into(),
        }
    }

    fn graph(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "name = {}", self.graph.name.write())?;
        match i64::try_from(self.graph.seed) {
            Ok(seed) => writeln!(out, "seed = {seed}")?,
            Err(_) => writeln!(out, "seed = \"{}\"", self.graph.seed)?,
        }
        writeln!(out, "\n[defaults]")?;
        writeln!(out, "timeout = {}", duration(self.timeout))?;
        writeln!(out, "protocol = {}", protocol(self.protocol))?;
        writeln!(out, "connections = {}", connections(self.connections))?;
        writeln!(out, "response = {}", response(&self.response))?;
        writeln!(out, "workers = {}", self.workers)?;
        writeln!(out, "queue = {}", self.queue)?;
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
        if id == self.graph.entry {
            writeln!(out, "entry = true")?;
        }
        if service.protocol != self.protocol {
            writeln!(out, "protocol = {}", protocol(service.protocol))?;
        }
        if service.replicas != 1 {
            writeln!(out, "replicas = {}", service.replicas)?;
        }
        if service.workers != self.workers {
            writeln!(out, "workers = {}", service.workers)?;
        }
        if service.queue != self.queue {
            writeln!(out, "queue = {}", service.queue)?;
        }
        let placement = &service.placement;
        if !placement.cpus.is_empty() {
            writeln!(out, "cpus = \"{}\"", units::write_cpus(&placement.cpus))?;
        }
        let cpu = placement.cpu_limit.map(|cpus| format!("cpu = {cpus:?}"));
        let memory = placement
            .memory_limit
            .map(|bytes| format!("memory = \"{}\"", units::write_bytes(bytes)));
        let limits: Vec<String> = cpu.into_iter().chain(memory).collect();
        if !limits.is_empty() {
            writeln!(out, "limits = {{ {} }}", limits.join(", "))?;
        }
        if service.faults != Faults::default() {
            writeln!(out, "faults = {}", faults(&service.faults))?;
        }
        if !service.labels.is_empty() {
            writeln!(out, "labels = {}", service.labels.write())?;
        }
        self.endpoints(service, out)
    }

    fn endpoints(&self, service: &Service, out: &mut String) -> fmt::Result {
        let (first, others) = match service.endpoints.split_first() {
            Some((first, others)) if first.path == "/" => (Some(first), others),
            _ => (None, service.endpoints.as_slice()),
        };
        // What stands with the service holds for all its endpoints that say nothing.
        let (mut body, mut latency) = (&self.response, &Amount::ZERO);
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
            writeln!(out, "latency = {}", amounts::write(&endpoint.latency, TIME))?;
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
        let mut text = format!("call = \"{}\"", to.map_or("", |to| to.name.as_str()));
        let mut add = |key: &str, value: String| text += &format!(", {key} = {value}");
        if let Some(path) = &call.path {
            add("path", path.write());
        }
        if call.probability != 1.0 {
            add("probability", format!("{:?}", call.probability));
        }
        if call.count != Amount::Constant(1.0) {
            add("count", amounts::write(&call.count, CALLS));
        }
        if !call.request.is_zero() {
            add("request", amounts::write(&call.request, SIZE));
        }
        if call.timeout != self.timeout {
            add("timeout", duration(call.timeout));
        }
        if call.retries != 0 {
            add("retries", call.retries.to_string());
        }
        if call.backoff != 0 {
            add("backoff", duration(call.backoff));
        }
        if !call.wait {
            add("wait", "false".to_owned());
        }
        if let Some(edge) = edge.filter(|_| self.is_untold(call.edge)) {
            add("connections", connections(edge.connections));
        }
        text
    }

    /// Whether the connections of an edge have to be told; true once.
    fn is_untold(&self, edge: EdgeId) -> bool {
        let mut untold = self.untold.borrow_mut();
        untold.get_mut(edge.0 as usize).is_some_and(std::mem::take)
    }
}

fn duration(nanos: u64) -> String {
    format!("\"{}\"", units::write_duration(Duration::from_nanos(nanos)))
}

fn protocol(protocol: Protocol) -> String {
    let name = PROTOCOLS.iter().find(|(_, known)| *known == protocol);
    format!("\"{}\"", name.map_or("", |(name, _)| name))
}

fn connections(connections: Connections) -> String {
    match connections {
        Connections::Warm(number) => number.to_string(),
        Connections::Cold(super::COLD_CONNECTIONS) => "\"cold\"".to_owned(),
        Connections::Cold(number) => format!("\"cold {number}\""),
    }
}

fn response(response: &Response) -> String {
    match response {
        Response::Echo => "\"echo\"".to_owned(),
        Response::Bytes(bytes) => amounts::write(bytes, SIZE),
    }
}

fn faults(faults: &Faults) -> String {
    let mut parts = Vec::new();
    if faults.error != 0.0 {
        parts.push(format!("error = {:?}", faults.error));
    }
    if faults.status != Faults::default().status {
        parts.push(format!("status = {}", faults.status));
    }
    if faults.drop != 0.0 {
        parts.push(format!("drop = {:?}", faults.drop));
    }
    if faults.delay_rate != 0.0 || !faults.delay.is_zero() {
        let by = amounts::write(&faults.delay, TIME);
        parts.push(format!(
            "delay = {{ rate = {:?}, by = {by} }}",
            faults.delay_rate
        ));
    }
    format!("{{ {} }}", parts.join(", "))
}

fn work(work: &Work) -> String {
    let job = |path: &std::path::PathBuf| format!("stress-ng = {}", path.write());
    match work {
        Work::Cpu(time) => format!("cpu = {}", amounts::write(time, TIME)),
        Work::Ops(ops) => format!("ops = {}", amounts::write(ops, STEPS)),
        Work::Primes(most) => format!("primes = {most}"),
        Work::Memory { set, touches } => format!(
            "memory = \"{}\", touches = {}",
            units::write_bytes(*set),
            amounts::write(touches, STEPS)
        ),
        Work::Fork(words) => format!("fork = {}", words.write()),
        Work::Disk { read, write, sync } => {
            let mut parts = Vec::new();
            for (key, size) in [("read", read), ("write", write)] {
                if !size.is_zero() {
                    parts.push(format!("{key} = {}", amounts::write(size, SIZE)));
                }
            }
            if *sync {
                parts.push("sync = true".to_owned());
            }
            format!("disk = {{ {} }}", parts.join(", "))
        }
        Work::Lock { name, hold } => {
            let hold = amounts::write(hold, TIME);
            format!("lock = {}, cpu = {hold}", name.write())
        }
        Work::Sleep(time) => format!("sleep = {}", amounts::write(time, TIME)),
        Work::StressNg { job: path } => job(path),
        Work::StressNgBackground { job: path } => format!("{}, wait = false", job(path)),
        Work::StressNgStatus => "stress-ng-status = true".to_owned(),
    }
}

fn tracing(tracing: &Tracing, out: &mut String) -> fmt::Result {
    writeln!(out, "\n[trace]")?;
    writeln!(out, "sample = {:?}", tracing.sample)?;
    let contexts = [("\"w3c\"", tracing.w3c), ("\"b3\"", tracing.b3)];
    let sent: Vec<&str> = contexts
        .iter()
        .filter_map(|(name, sent)| sent.then_some(*name))
        .collect();
    writeln!(out, "propagate = [{}]", sent.join(", "))?;
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
        writeln!(out, "cpus = \"{}\"", units::write_cpus(&one.cpus))?;
    }
    writeln!(out, "cpu = {:?}", one.cpu_share)?;
    writeln!(out, "threads = {}", one.threads)?;
    if one.memory != 0 {
        writeln!(out, "memory = \"{}\"", units::write_bytes(one.memory))?;
    }
    writeln!(out, "from = {}", duration(one.from))?;
    match one.lasts {
        Some(lasts) => writeln!(out, "for = {}", duration(lasts)),
        None => Ok(()),
    }
}
