//! Reads a graph's file.

use std::collections::HashMap;
use std::path::Path;

use document::{Entry, Node, Problem, Problems, Source, Span, Value};

use super::amounts::{self, SIZE, TIME};
use super::fields::Fields;
use super::names::{SERVICE_NAME, is_service_name};
use super::steps::{At, WrittenCall, timeout_of};
use super::{
    Background, Connections, Edge, EdgeId, Endpoint, Faults, Placement, Protocol, Response,
    Service, ServiceId, Topology, Tracing, rules, value,
};
use crate::amount::Amount;

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

/// Reads a graph from a file. Files that it names stand in the folder of it.
///
/// # Errors
/// When the file cannot be read; everything that is wrong with it.
pub fn read_file(path: &Path) -> Result<Topology, Problems> {
    let source = Source::read(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    check(&source, folder, None).map(|checked| checked.topology)
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
    protocol: Protocol,
    connections: Connections,
    response: Response,
    workers: u32,
    queue: u32,
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
    names: HashMap<String, ServiceId>,
    edges: Vec<Edge>,
    edge_of: HashMap<(ServiceId, ServiceId), EdgeId>,
    /// Where the connections of an edge were written first.
    edge_spans: Vec<Option<Span>>,
    places: Vec<ServicePlace>,
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
        let mut fields = Fields::of(root).ok()?;
        let problems = &mut self.problems;
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

    /// A table, or none with the problem noted.
    fn fields<'n>(&mut self, node: &'n Node) -> Option<Fields<'n>> {
        match Fields::of(node) {
            Ok(fields) => Some(fields),
            Err(problem) => {
                self.problems.push(problem);
                None
            }
        }
    }

    fn read_defaults(&mut self, node: &Node) {
        let Some(mut fields) = self.fields(node) else {
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

    fn services(&mut self, node: &Node) -> Vec<Service> {
        let Value::Table(entries) = &node.value else {
            let problem = value::expected("services as [services.NAME]", node);
            self.problems.push(problem);
            return Vec::new();
        };
        for (entry, id) in entries.iter().zip(0..) {
            if !is_service_name(&entry.key) {
                let message = format!("expected {SERVICE_NAME}, found \"{}\"", entry.key);
                self.problems
                    .push(Problem::new(entry.key_span.clone(), message));
            }
            self.names.insert(entry.key.clone(), ServiceId(id));
        }
        let services = entries.iter().zip(0..);
        services
            .map(|(entry, id)| self.service(entry, ServiceId(id)))
            .collect()
    }

    fn service(&mut self, entry: &Entry, id: ServiceId) -> Service {
        let mut service = Service {
            name: entry.key.clone(),
            protocol: self.defaults.protocol,
            replicas: 1,
            workers: self.defaults.workers,
            queue: self.defaults.queue,
            endpoints: Vec::new(),
            faults: Faults::default(),
            placement: Placement::default(),
            labels: Vec::new(),
        };
        let mut place = ServicePlace {
            name: entry.key_span.clone(),
            ..ServicePlace::default()
        };
        let Some(mut fields) = self.fields(&entry.node) else {
            self.places.push(place);
            return service;
        };
        let problems = &mut self.problems;
        let is_entry = fields.read("entry", problems, value::flag);
        place.entry = fields
            .entry("entry")
            .filter(|_| is_entry == Some(true))
            .map(|entry| entry.key_span.clone());
        fields.fill("protocol", problems, &mut service.protocol, protocol);
        fields.fill("replicas", problems, &mut service.replicas, |node| {
            value::whole(node, 1..=super::MOST_REPLICAS)
        });
        fields.fill("workers", problems, &mut service.workers, workers);
        fields.fill("queue", problems, &mut service.queue, queue);
        fields.fill("labels", problems, &mut service.labels, labels);
        let placement = &mut service.placement;
        fields.fill("cpus", problems, &mut placement.cpus, value::cpus);
        place.cpus = fields.node("cpus").map(|node| node.span.clone());
        self.places.push(place);
        if let Some(node) = fields.node("limits") {
            self.limits(node, &mut service.placement);
        }
        if let Some(node) = fields.node("faults") {
            service.faults = self.faults(node);
        }
        service.endpoints = self.endpoints(&mut fields, id);
        fields.finish(&mut self.problems);
        service
    }

    /// `steps` are those of `/`; `endpoints` has others.
    fn endpoints(&mut self, fields: &mut Fields<'_>, service: ServiceId) -> Vec<Endpoint> {
        let problems = &mut self.problems;
        let mut model = Endpoint {
            path: "/".to_owned(),
            steps: Vec::new(),
            response: self.defaults.response.clone(),
            latency: Amount::ZERO,
            step: super::StepId(0),
        };
        fields.fill("response", problems, &mut model.response, response);
        fields.fill("latency", problems, &mut model.latency, |node| {
            amounts::read(node, TIME)
        });
        let steps = fields.node("steps");
        let others = fields.entry("endpoints").map(|entry| &entry.node);
        let mut endpoints = Vec::new();
        if steps.is_some() || others.is_none() {
            let mut root = model.clone();
            root.step = self.next_step();
            let at = At {
                service,
                endpoint: 0,
            };
            root.steps = steps.map(|node| self.steps(node, at)).unwrap_or_default();
            endpoints.push(root);
        }
        match others.map(|node| &node.value) {
            Some(Value::Table(entries)) if !entries.is_empty() => {
                for entry in entries {
                    let at = At {
                        service,
                        endpoint: endpoints.len(),
                    };
                    let endpoint = self.endpoint(entry, &model, at);
                    if endpoints.iter().any(|other| other.path == endpoint.path) {
                        let message =
                            "the steps of \"/\" stand here and in the service's \"steps\"";
                        let problem = Problem::new(entry.key_span.clone(), message);
                        self.problems.push(problem.help("keep one of both"));
                    }
                    endpoints.push(endpoint);
                }
            }
            Some(_) => {
                let what = "endpoints by their path, as [services.NAME.endpoints.\"/path\"]";
                let problem = others.map(|node| value::expected(what, node));
                self.problems.extend(problem);
            }
            None => {}
        }
        endpoints
    }

    fn endpoint(&mut self, entry: &Entry, model: &Endpoint, at: At) -> Endpoint {
        let mut endpoint = model.clone();
        endpoint.path.clone_from(&entry.key);
        endpoint.step = self.next_step();
        if entry.key != "*" && !super::steps::is_path(&entry.key) {
            let message = format!(
                "expected a path such as \"/busywork\", or \"*\" for all others, found \"{}\"",
                entry.key
            );
            self.problems
                .push(Problem::new(entry.key_span.clone(), message));
        }
        let Some(mut fields) = self.fields(&entry.node) else {
            return endpoint;
        };
        let problems = &mut self.problems;
        fields.fill("response", problems, &mut endpoint.response, response);
        fields.fill("latency", problems, &mut endpoint.latency, |node| {
            amounts::read(node, TIME)
        });
        if let Some(node) = fields.node("steps") {
            endpoint.steps = self.steps(node, at);
        }
        fields.finish(&mut self.problems);
        endpoint
    }

    fn limits(&mut self, node: &Node, placement: &mut Placement) {
        let Some(mut fields) = self.fields(node) else {
            return;
        };
        let problems = &mut self.problems;
        placement.cpu_limit = fields.read("cpu", problems, value::positive);
        placement.memory_limit = fields.read("memory", problems, value::size);
        fields.finish(problems);
    }

    fn faults(&mut self, node: &Node) -> Faults {
        let mut faults = Faults::default();
        let Some(mut fields) = self.fields(node) else {
            return faults;
        };
        let problems = &mut self.problems;
        let mut status = u32::from(faults.status);
        fields.fill("error", problems, &mut faults.error, value::share);
        fields.fill("status", problems, &mut status, |node| {
            value::whole(node, 400..=599)
        });
        faults.status = u16::try_from(status).unwrap_or(faults.status);
        fields.fill("drop", problems, &mut faults.drop, value::share);
        let delay = fields.node("delay");
        fields.finish(problems);
        if let Some(mut fields) = delay.and_then(|node| self.fields(node)) {
            let problems = &mut self.problems;
            faults.delay_rate = 1.0;
            fields.fill("rate", problems, &mut faults.delay_rate, value::share);
            fields.fill("by", problems, &mut faults.delay, |node| {
                amounts::read(node, TIME)
            });
            fields.finish(problems);
        }
        faults
    }

    fn tracing(&mut self, node: &Node) -> Tracing {
        let mut tracing = Tracing::default();
        let Some(mut fields) = self.fields(node) else {
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
        let nodes = match value::list(node) {
            Ok(nodes) => nodes,
            Err(_) => {
                let what = "a list of tables, as [[background]]";
                self.problems.push(value::expected(what, node));
                return Vec::new();
            }
        };
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
        if let Some(mut fields) = self.fields(node) {
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
        let name = match value::text(node) {
            Ok(name) => name,
            Err(_) => {
                self.problems
                    .push(value::expected("the name of a service", node));
                return None;
            }
        };
        let found = self.names.get(name).copied();
        if found.is_none() {
            let message = format!("there is no service \"{name}\"");
            let mut names: Vec<&str> = self.names.keys().map(String::as_str).collect();
            names.sort_unstable();
            let help = match units::nearest(name, names) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("add it as [services.{name}]"),
            };
            self.problems
                .push(Problem::new(node.span.clone(), message).help(help));
        }
        found
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

fn seed(node: &Node) -> Result<u64, Problem> {
    let seed = match &node.value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        // Numbers of TOML end at 2^63.
        Value::Text(text) => units::parse_count(text).ok(),
        _ => None,
    };
    seed.ok_or_else(|| value::expected("a whole number, 0 or more", node))
}

/// Names of the protocols.
pub(super) const PROTOCOLS: [(&str, Protocol); 3] = [
    ("http1", Protocol::Http1),
    ("http2", Protocol::Http2),
    ("grpc", Protocol::Grpc),
];

fn protocol(node: &Node) -> Result<Protocol, Problem> {
    let name = value::text(node)?;
    let found = PROTOCOLS.iter().find(|(known, _)| *known == name);
    found.map(|(_, protocol)| *protocol).ok_or_else(|| {
        let problem = value::expected("one of http1, http2, grpc", node);
        match units::nearest(name, PROTOCOLS.iter().map(|(known, _)| *known)) {
            Some(near) => problem.help(format!("did you mean \"{near}\"?")),
            None => problem,
        }
    })
}

/// `64`: kept; `"cold"`, `"cold 16"`: a new one for each call.
pub(super) fn connections(node: &Node) -> Result<Connections, Problem> {
    let most = super::MOST_CONNECTIONS;
    if let Value::Text(text) = &node.value {
        let number = match text.strip_prefix("cold") {
            Some("") => Some(super::COLD_CONNECTIONS),
            Some(number) => number.strip_prefix(' ').and_then(|text| text.parse().ok()),
            None => None,
        };
        if let Some(number) = number.filter(|number| (1..=most).contains(number)) {
            return Ok(Connections::Cold(number));
        }
    }
    let what = format!(
        "how many connections are kept, from 1 to {most}, or \"cold\" for a new one each call"
    );
    match value::whole(node, 1..=most) {
        Ok(number) => Ok(Connections::Warm(number)),
        Err(_) => Err(value::expected(&what, node)),
    }
}

fn response(node: &Node) -> Result<Response, Problem> {
    match &node.value {
        Value::Text(text) if text == "echo" => Ok(Response::Echo),
        _ => amounts::read(node, SIZE).map(Response::Bytes),
    }
}

fn workers(node: &Node) -> Result<u32, Problem> {
    value::whole(node, 0..=super::MOST_WORKERS)
}

fn queue(node: &Node) -> Result<u32, Problem> {
    value::whole(node, 0..=super::MOST_QUEUE)
}

fn labels(node: &Node) -> Result<Vec<(String, String)>, Problem> {
    let pairs: Option<Vec<(String, String)>> = match &node.value {
        Value::Table(entries) => entries
            .iter()
            .map(|entry| {
                let text = value::text(&entry.node).ok()?;
                Some((entry.key.clone(), text.to_owned()))
            })
            .collect(),
        _ => None,
    };
    pairs.ok_or_else(|| value::expected("labels such as { tier = \"front\" }", node))
}

/// Which contexts are sent: W3C's, B3.
fn propagation(node: &Node) -> Result<(bool, bool), Problem> {
    let (mut w3c, mut b3) = (false, false);
    for node in value::list(node)? {
        match &node.value {
            Value::Text(text) if text == "w3c" => w3c = true,
            Value::Text(text) if text == "b3" => b3 = true,
            _ => return Err(value::expected("\"w3c\" or \"b3\"", node)),
        }
    }
    Ok((w3c, b3))
}

/// Where spans go.
fn collector(node: &Node) -> Result<url::Url, Problem> {
    let url = url::Url::parse(value::text(node)?).ok();
    url.filter(|url| url.scheme() == "http" && url.host().is_some())
        .ok_or_else(|| {
            value::expected("a URL such as \"http://localhost:9411/api/v2/spans\"", node)
        })
}
