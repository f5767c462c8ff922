//! The services of a graph's file.

use document::{Entry, Kind, Node, Problem, Value};

use super::amounts::{self, TIME};
use super::fields::Fields;
use super::names::{SERVICE_NAME, is_service_name};
use super::read::{Reader, ServicePlace};
use super::settings::{labels, protocol, queue, response, workers};
use super::steps::{At, is_path};
use super::{Endpoint, Faults, MOST_REPLICAS, Placement, Service, ServiceId, draft, value};

impl Reader<'_> {
    pub(super) fn services(&mut self, node: &Node) -> Vec<Service> {
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
            protocol: self.defaults.protocol,
            workers: self.defaults.workers,
            queue: self.defaults.queue,
            endpoints: Vec::new(),
            ..draft::service(entry.key.clone())
        };
        let mut place = ServicePlace {
            name: entry.key_span.clone(),
            ..ServicePlace::default()
        };
        let Some(mut fields) = Fields::of(&entry.node, &mut self.problems) else {
            self.places.push(place);
            return service;
        };
        let problems = &mut self.problems;
        let is_entry = fields.read("entry", problems, bool::of);
        place.entry = fields
            .entry("entry")
            .filter(|_| is_entry == Some(true))
            .map(|entry| entry.key_span.clone());
        fields.fill("protocol", problems, &mut service.protocol, protocol);
        fields.fill("replicas", problems, &mut service.replicas, |node| {
            value::whole(node, 1..=MOST_REPLICAS)
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
            response: self.defaults.response.clone(),
            ..draft::endpoint("/")
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
        if entry.key != "*" && !is_path(&entry.key) {
            let message = format!(
                "expected a path such as \"/busywork\", or \"*\" for all others, found \"{}\"",
                entry.key
            );
            self.problems
                .push(Problem::new(entry.key_span.clone(), message));
        }
        let Some(mut fields) = Fields::of(&entry.node, &mut self.problems) else {
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
        let Some(mut fields) = Fields::of(node, &mut self.problems) else {
            return;
        };
        let problems = &mut self.problems;
        placement.cpu_limit = fields.read("cpu", problems, value::positive);
        placement.memory_limit = fields.read("memory", problems, memory_limit);
        fields.finish(problems);
    }

    fn faults(&mut self, node: &Node) -> Faults {
        let mut faults = Faults::default();
        let Some(mut fields) = Fields::of(node, &mut self.problems) else {
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
        if let Some(mut fields) = delay.and_then(|node| Fields::of(node, &mut self.problems)) {
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
}

/// Without any memory nothing starts.
fn memory_limit(node: &Node) -> Result<u64, Problem> {
    match value::size(node)? {
        0 => Err(value::expected("a size above 0", node)),
        size => Ok(size),
    }
}
