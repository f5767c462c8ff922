//! Reads a graph's file.
//!
//! | table | keys |
//! |---|---|
//! | top | `name`, `seed` |
//! | `[defaults]` | `timeout`, `protocol`, `connections`, `response`, `workers`, `queue` |
//! | `[trace]` | `sample`, `propagate`, `zipkin`, `otlp` |
//! | `[services.NAME]` | `entry`, `protocol`, `replicas`, `workers`, `queue`, `labels`, `cpus`, `limits` (`cpu`, `memory`), `faults` (`error`, `status`, `drop`, `delay` of `rate` and `by`), `response`, `latency`, `steps` |
//! | `[services.NAME.endpoints."/PATH"]` | `response`, `latency`, `steps` |
//! | `[[background]]` | `name`, `cpus`, `cpu`, `threads`, `memory`, `from`, `for` |
//!
//! | step | keys beside |
//! |---|---|
//! | `call = "NAME"` | `path`, `probability`, `count`, `request`, `timeout`, `retries`, `backoff`, `wait`, `connections` |
//! | `parallel = [STEPS]` | `join`: `"all"`, `"any"` or how many must end well |
//! | `steps = [STEPS]` | |
//! | `cpu`, `sleep` = a time; `ops` = a count; `primes` = a number; `fork` = a program and its arguments | |
//! | `memory` = a size | `touches` |
//! | `disk` = `read`, `write`, `sync` | |
//! | `lock = "NAME"` | `cpu` |
//! | `stress-ng = "FILE"`, `stress-ng-status = true` | `wait` (of the first) |

use std::collections::HashMap;
use std::path::Path;

use document::{Node, Problem, Problems, Source, Span};

use super::fields::{Fields, noted};
use super::names::named;
use super::settings::{
    collector, connections, propagation, protocol, queue, response, seed, workers,
};
use super::steps::{WrittenCall, timeout_of};
use super::{
    Background, Connections, Edge, EdgeId, Protocol, Response, ServiceId, Topology, Tracing, rules,
    value,
};

/// The machine that a graph shall run on, for the checks that need it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// How many processors it has.
    pub cpus: u32,
    /// Requests a second that clients will send; `None`: not known.
    pub rate: Option<f64>,
}

/// A graph that can run, and what is doubtful about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The graph.
    pub topology: Topology,
    /// What will likely not do what was meant, as text with its place.
    pub warnings: Vec<String>,
}

/// Reads a graph. Files that it names (`stress-ng`) stay as they are written.
///
/// # Errors
/// Everything that is wrong with it, each at its place. Nothing is done by halves.
pub fn read(source: &Source) -> Result<Topology, Problems> {
    check(source, Path::new(""), None).map(|checked| checked.topology)
}

/// A graph of a test, in which nothing is wrong.
#[cfg(test)]
pub(crate) fn of_text(text: &str) -> Topology {
    let source = Source {
        name: "graph.toml".to_owned(),
        text: text.to_owned(),
    };
    read(&source).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Reads a graph for a machine. Files that it names are looked up from `folder` on.
///
/// # Errors
/// Everything that is wrong with it, each at its place; also what this machine lacks.
pub fn check(
    source: &Source,
    folder: &Path,
    machine: Option<&Machine>,
) -> Result<Checked, Problems> {
    let root = document::parse_toml(source).map_err(|all| Problems::of(source, all))?;
    let mut reader = Reader::new(folder);
    let topology = reader.topology(&root);
    let found = rules::Places {
        services: &reader.places,
        calls: &reader.calls,
        backgrounds: &reader.background_cpus,
    };
    let mut problems = reader.problems;
    let Some(mut topology) = topology else {
        return Err(Problems::of(source, problems));
    };
    rules::graph(&mut topology, &found, &mut problems);
    if let Some(machine) = machine {
        rules::processors(&topology, &found, machine, &mut problems);
    }
    if !problems.is_empty() {
        return Err(Problems::of(source, problems));
    }
    let warnings = rules::doubts(&topology, &found, machine);
    let warnings = warnings.iter().map(|doubt| source.show(doubt)).collect();
    Ok(Checked { topology, warnings })
}

/// What services and calls have that say nothing of it.
pub(super) struct Defaults {
    pub(super) timeout: u64,
    pub(super) protocol: Protocol,
    pub(super) connections: Connections,
    pub(super) response: Response,
    pub(super) workers: u32,
    pub(super) queue: u32,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            timeout: super::TIMEOUT,
            protocol: Protocol::Http1,
            connections: super::CONNECTIONS,
            response: super::RESPONSE,
            workers: super::WORKERS,
            queue: super::QUEUE,
        }
    }
}

/// Where a service stands in the file.
#[derive(Debug, Default)]
pub(super) struct ServicePlace {
    pub(super) name: Span,
    pub(super) entry: Option<Span>,
    pub(super) cpus: Option<Span>,
}

/// An edge that a call needs.
pub(super) struct Connected {
    pub(super) from: ServiceId,
    pub(super) to: ServiceId,
    pub(super) written: Option<(Connections, Span)>,
}

/// What has been read so far.
pub(super) struct Reader<'a> {
    pub(super) problems: Vec<Problem>,
    pub(super) defaults: Defaults,
    pub(super) folder: &'a Path,
    pub(super) last_step: u32,
    pub(super) calls: Vec<WrittenCall>,
    pub(super) names: HashMap<String, ServiceId>,
    edges: Vec<Edge>,
    edge_of: HashMap<(ServiceId, ServiceId), EdgeId>,
    /// Where the connections of an edge were written first.
    edge_spans: Vec<Option<Span>>,
    pub(super) places: Vec<ServicePlace>,
    background_cpus: Vec<Option<Span>>,
}

impl<'a> Reader<'a> {
    fn new(folder: &'a Path) -> Self {
        Self {
            problems: Vec::new(),
            defaults: Defaults::default(),
            folder,
            last_step: 0,
            calls: Vec::new(),
            names: HashMap::new(),
            edges: Vec::new(),
            edge_of: HashMap::new(),
            edge_spans: Vec::new(),
            places: Vec::new(),
            background_cpus: Vec::new(),
        }
    }

    fn topology(&mut self, root: &Node) -> Option<Topology> {
        let problems = &mut self.problems;
        let mut fields = Fields::of(root, problems)?;
        let name = fields.read("name", problems, value::text);
        let seed = fields.read("seed", problems, seed);
        if let Some(node) = fields.node("defaults") {
            self.read_defaults(node);
        }
        let tracing = fields.node("trace").map(|node| self.tracing(node));
        let services = fields.node("services");
        let background = fields.node("background").map(|node| self.background(node));
        fields.finish(&mut self.problems);
        let Some(services) = services else {
            let message = "there are no services; expected at least one, as [services.NAME]";
            self.problems.push(Problem::new(0..0, message));
            return None;
        };
        let services = self.services(services);
        Some(Topology {
            name: name.unwrap_or("graph").to_owned(),
            seed: seed.unwrap_or(0),
            services,
            edges: std::mem::take(&mut self.edges),
            // The check of entries puts the one that was named.
            entry: ServiceId(0),
            tracing: tracing.unwrap_or_default(),
            background: background.unwrap_or_default(),
        })
    }

    fn read_defaults(&mut self, node: &Node) {
        let Some(mut fields) = Fields::of(node, &mut self.problems) else {
            return;
        };
        let (defaults, problems) = (&mut self.defaults, &mut self.problems);
        fields.fill("timeout", problems, &mut defaults.timeout, timeout_of);
        fields.fill("protocol", problems, &mut defaults.protocol, protocol);
        fields.fill(
            "connections",
            problems,
            &mut defaults.connections,
            connections,
        );
        fields.fill("response", problems, &mut defaults.response, response);
        fields.fill("workers", problems, &mut defaults.workers, workers);
        fields.fill("queue", problems, &mut defaults.queue, queue);
        fields.finish(problems);
    }

    fn tracing(&mut self, node: &Node) -> Tracing {
        let mut tracing = Tracing::default();
        let Some(mut fields) = Fields::of(node, &mut self.problems) else {
            return tracing;
        };
        let problems = &mut self.problems;
        fields.fill("sample", problems, &mut tracing.sample, value::share);
        if let Some((w3c, b3)) = fields.read("propagate", problems, propagation) {
            (tracing.w3c, tracing.b3) = (w3c, b3);
        }
        tracing.zipkin = fields.read("zipkin", problems, collector);
        tracing.otlp = fields.read("otlp", problems, collector);
        fields.finish(problems);
        tracing
    }

    fn background(&mut self, node: &Node) -> Vec<Background> {
        let nodes = value::list(node, "a list of tables, as [[background]]");
        let nodes = noted(nodes, &mut self.problems).unwrap_or_default();
        nodes.iter().map(|node| self.one_background(node)).collect()
    }

    fn one_background(&mut self, node: &Node) -> Background {
        let mut background = Background {
            name: "background".to_owned(),
            cpus: Vec::new(),
            cpu_share: 0.0,
            threads: 1,
            memory: 0,
            from: 0,
            lasts: None,
        };
        let mut place = None;
        if let Some(mut fields) = Fields::of(node, &mut self.problems) {
            let problems = &mut self.problems;
            if let Some(name) = fields.read("name", problems, value::text) {
                name.clone_into(&mut background.name);
            }
            fields.fill("cpus", problems, &mut background.cpus, value::cpus);
            place = fields.node("cpus").map(|node| node.span.clone());
            fields.fill("cpu", problems, &mut background.cpu_share, value::share);
            fields.fill("threads", problems, &mut background.threads, |node| {
                value::whole(node, 1..=super::MOST_WORKERS)
            });
            fields.fill("memory", problems, &mut background.memory, value::size);
            fields.fill("from", problems, &mut background.from, value::time);
            background.lasts = fields.read("for", problems, value::time);
            fields.finish(problems);
        }
        self.background_cpus.push(place);
        background
    }

    /// The service that a call names.
    pub(super) fn service_named(&mut self, node: &Node) -> Option<ServiceId> {
        let name = value::text_of(node, "the name of a service");
        let name = noted(name, &mut self.problems)?;
        let add = Some(format!("add it as [services.{name}]"));
        named(&self.names, name, node, add, &mut self.problems)
    }

    /// The edge between two services, which all calls between them share.
    pub(super) fn edge(&mut self, wanted: Connected) -> EdgeId {
        let pair = (wanted.from, wanted.to);
        let id = match self.edge_of.get(&pair) {
            Some(id) => *id,
            None => {
                let id = EdgeId(u32::try_from(self.edges.len()).unwrap_or(u32::MAX));
                self.edges.push(Edge {
                    from: wanted.from,
                    to: wanted.to,
                    connections: self.defaults.connections,
                });
                self.edge_spans.push(None);
                self.edge_of.insert(pair, id);
                id
            }
        };
        let at = id.0 as usize;
        if let (Some((connections, span)), Some(edge), Some(first)) = (
            wanted.written,
            self.edges.get_mut(at),
            self.edge_spans.get_mut(at),
        ) {
            if first.is_some() && edge.connections != connections {
                let message = "another call of the same service by this one has other connections";
                let problem = Problem::new(span, message);
                self.problems
                    .push(problem.help("all calls between two services share their connections"));
            } else {
                edge.connections = connections;
                *first = Some(span);
            }
        }
        id
    }
}
