//! Isotope's topologies (istio/tools at 0f2e902fd0, `isotope/`): YAML, one file for the
//! whole graph.
//!
//! | there | here |
//! |---|---|
//! | `script`, a list within it | steps, parallel steps |
//! | `probability` in percent; 0 and none: always | `probability` |
//! | `size`, `responseSize`: units are powers of 1024 | `request`, `response` |
//! | `errorRate`: every so-manieth request | `faults.error`, by chance; status 500 |
//! | no bound | a time-out of [`super::TIMEOUT`] |
//!
//! Keys that isotope does not know are ignored there, and here with a warning.

use std::collections::HashMap;

use document::{Entry, Kind, Node, Problem, Problems, Source, Value};

use super::Imported;
use crate::amount::Amount;
use crate::script::bound;
use crate::topology::draft::{Draft, step};
use crate::topology::fields::{Fields, noted};
use crate::topology::names::{SERVICE_NAME, is_service_name, named};
use crate::topology::steps::{At, WrittenCall};
use crate::topology::walk::{along_calls, uncalled};
use crate::topology::{
    Action, Call, Faults, Join, MOST_REPLICAS, Protocol, Response, ServiceId, Step, Work, rules,
    value,
};

/// Status of an answer by `errorRate`.
const ERROR_STATUS: u16 = 500;

/// Reads a topology of isotope.
///
/// # Errors
/// Everything that is wrong with it, each at its place: what isotope refuses, and cycles,
/// which it runs into.
pub fn isotope(source: &Source) -> Result<Imported, Problems> {
    let root = document::parse_yaml(source).map_err(|all| Problems::of(source, all))?;
    let mut reader = Reader {
        draft: Draft::new("isotope", 0),
        problems: Vec::new(),
        warnings: Vec::new(),
        names: HashMap::new(),
        calls: Vec::new(),
    };
    let entry = reader.read(&root);
    let Some(entry) = entry.filter(|_| reader.problems.is_empty()) else {
        return Err(Problems::of(source, reader.problems));
    };
    let mut topology = reader.draft.finish(entry);
    reader.warnings.sort_by_key(|warning| warning.span.start);
    let warnings = reader.warnings.iter();
    let mut warnings: Vec<String> = warnings.map(|warning| source.show(warning)).collect();
    for name in super::without_unreachable(&mut topology) {
        warnings.push(format!(
            "{}: \"{name}\" is left out: no call leads to it from the entry",
            source.name
        ));
    }
    Ok(Imported { topology, warnings })
}

/// What a service has that says nothing of it.
#[derive(Clone)]
struct Defaults<'a> {
    protocol: Protocol,
    error: f64,
    request: f64,
    response: f64,
    script: Option<&'a Node>,
    replicas: u32,
}

struct Reader {
    draft: Draft,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
    names: HashMap<String, ServiceId>,
    calls: Vec<WrittenCall>,
}

impl Reader {
    /// Reads all services into the draft, and gives the entry.
    fn read(&mut self, root: &Node) -> Option<ServiceId> {
        let mut fields = Fields::of(root, &mut self.problems)?;
        let mut defaults = Defaults {
            protocol: Protocol::Http1,
            error: 0.0,
            request: 0.0,
            response: 0.0,
            script: None,
            replicas: 1,
        };
        // The code reads `defaults`; its description says `default`.
        for key in ["defaults", "default"] {
            if let Some(node) = fields.node(key) {
                self.overrides(node, &mut defaults);
            }
        }
        let services = fields.node("services");
        fields.finish(&mut self.warnings);
        if let Some(Value::List(nodes)) = services.map(|node| &node.value)
            && !nodes.is_empty()
        {
            return self.graph(nodes, &defaults);
        }
        let span = services.map_or(0..0, |node| node.span.clone());
        let message = "expected a list of services with at least one";
        self.problems.push(Problem::new(span, message));
        None
    }

    fn graph(&mut self, nodes: &[Node], defaults: &Defaults<'_>) -> Option<ServiceId> {
        let mut tables = Vec::with_capacity(nodes.len());
        for node in nodes {
            let Some(mut fields) = Fields::of(node, &mut self.problems) else {
                continue;
            };
            let Some(name) = self.name(node, &mut fields) else {
                continue;
            };
            let id = self.draft.service(name.to_owned());
            self.names.insert(name.to_owned(), id);
            tables.push((id, node, fields));
        }
        let mut entries = Vec::new();
        for (id, node, mut fields) in tables {
            let is_entry = fields.read("isEntrypoint", &mut self.problems, bool::of);
            if is_entry == Some(true) {
                let span = fields.entry("isEntrypoint");
                let span = span.map(|entry: &Entry| entry.key_span.clone());
                entries.push((id, span.unwrap_or_else(|| node.span.clone())));
            }
            let labels = fields.read("labels", &mut self.problems, labels);
            let mut own = defaults.clone();
            self.settings(&mut fields, &mut own);
            self.without_effect(&mut fields, &["namespace", "cluster"]);
            fields.finish(&mut self.warnings);
            self.service(id, &own, labels.unwrap_or_default());
        }
        let topology = &self.draft.topology;
        let found = along_calls(topology.services.len(), &topology.edges);
        rules::cycles(topology, &self.calls, &found, &mut self.problems);
        self.entry(&entries, nodes)
    }

    fn name<'a>(&mut self, node: &'a Node, fields: &mut Fields<'a>) -> Option<&'a str> {
        let Some(place) = fields.node("name") else {
            let message = "a service needs a name";
            self.problems.push(Problem::new(node.span.clone(), message));
            return None;
        };
        let problem = match value::text(place) {
            Ok(name) if !is_service_name(name) => {
                let message = format!("expected {SERVICE_NAME}, found \"{name}\"");
                Problem::new(place.span.clone(), message)
            }
            Ok(name) if self.names.contains_key(name) => {
                let message = format!("there is a service \"{name}\" already");
                Problem::new(place.span.clone(), message)
            }
            Ok(name) => return Some(name),
            Err(problem) => problem,
        };
        self.problems.push(problem);
        None
    }

    /// The first that is marked; without a mark the only one that no other calls.
    fn entry(
        &mut self,
        marked: &[(ServiceId, document::Span)],
        nodes: &[Node],
    ) -> Option<ServiceId> {
        let topology = &self.draft.topology;
        let name = |id: ServiceId| rules::name(topology, id);
        if let Some(((entry, _), others)) = marked.split_first() {
            for (other, span) in others {
                let message = format!(
                    "\"{}\" is no entry here: \"{}\" is one already, and a graph has one",
                    name(*other),
                    name(*entry)
                );
                self.warnings.push(Problem::new(span.clone(), message));
            }
            return Some(*entry);
        }
        let uncalled = uncalled(topology);
        if let [only] = uncalled.as_slice() {
            return Some(*only);
        }
        let place = nodes.first().map(|node| node.span.clone());
        let problem = rules::no_entry(topology, place, "isEntrypoint: true");
        self.problems.push(problem);
        None
    }

    /// Says of each of these keys that is there that nothing follows from it.
    fn without_effect(&mut self, fields: &mut Fields<'_>, keys: &[&'static str]) {
        for key in keys {
            if let Some(entry) = fields.entry(key) {
                let message = format!("\"{key}\" has no effect here");
                let warning = Problem::new(entry.key_span.clone(), message);
                self.warnings.push(warning);
            }
        }
    }

    fn overrides<'a>(&mut self, node: &'a Node, into: &mut Defaults<'a>) {
        let Some(mut fields) = Fields::of(node, &mut self.problems) else {
            return;
        };
        fields.fill("requestSize", &mut self.problems, &mut into.request, size);
        self.settings(&mut fields, into);
        fields.finish(&mut self.warnings);
    }

    /// What both the defaults and a service can say.
    fn settings<'a>(&mut self, fields: &mut Fields<'a>, into: &mut Defaults<'a>) {
        let problems = &mut self.problems;
        fields.fill("type", problems, &mut into.protocol, protocol);
        fields.fill("errorRate", problems, &mut into.error, value::share);
        fields.fill("responseSize", problems, &mut into.response, size);
        fields.fill("numReplicas", problems, &mut into.replicas, |node| {
            value::whole(node, 1..=MOST_REPLICAS)
        });
        if let Some(script) = fields.node("script") {
            into.script = Some(script);
        }
    }

    fn service(&mut self, id: ServiceId, own: &Defaults<'_>, labels: Vec<(String, String)>) {
        let script = own.script.map(|node| value::list(node, "a list"));
        let script = script.and_then(|nodes| noted(nodes, &mut self.problems));
        let each = script.unwrap_or_default().iter();
        let steps: Vec<Step> = each.filter_map(|node| self.step(id, own, node)).collect();
        let Some(service) = self.draft.topology.services.get_mut(id.0 as usize) else {
            return;
        };
        service.protocol = own.protocol;
        service.replicas = own.replicas;
        service.labels = labels;
        service.faults = Faults {
            error: own.error,
            status: if own.error > 0.0 {
                ERROR_STATUS
            } else {
                Faults::default().status
            },
            ..Faults::default()
        };
        if let Some(endpoint) = service.endpoints.first_mut() {
            endpoint.response = Response::Bytes(Amount::Constant(own.response));
            endpoint.steps = steps;
        }
    }

    /// A step, or a list of those that run at once.
    fn step(&mut self, id: ServiceId, own: &Defaults<'_>, node: &Node) -> Option<Step> {
        let Value::List(nodes) = &node.value else {
            return self.command(id, own, node);
        };
        let mut branches = Vec::with_capacity(nodes.len());
        for node in nodes {
            if let Value::List(_) = &node.value {
                let message = "steps that run at once cannot hold a list of others";
                self.problems.push(Problem::new(node.span.clone(), message));
                continue;
            }
            branches.extend(self.command(id, own, node));
        }
        let join = Join::All;
        (!branches.is_empty()).then(|| step(Action::Parallel { branches, join }))
    }

    fn command(&mut self, id: ServiceId, own: &Defaults<'_>, node: &Node) -> Option<Step> {
        let command = match &node.value {
            Value::Table(entries) if entries.len() == 1 => entries.first(),
            _ => None,
        };
        let command = command.map(|only| (only.key.as_str(), &only.node));
        match command {
            Some(("sleep", length)) => noted(sleep(length), &mut self.problems),
            Some(("call", call)) => {
                let call = self.call(id, own, call)?;
                Some(step(Action::Call(call)))
            }
            Some((other, _)) => {
                let message = format!("unknown command \"{other}\"; expected sleep or call");
                self.problems.push(Problem::new(node.span.clone(), message));
                None
            }
            None => {
                let what = "a command with one key, sleep or call, or a list of those";
                self.problems.push(value::expected(what, node));
                None
            }
        }
    }

    fn call(&mut self, from: ServiceId, own: &Defaults<'_>, node: &Node) -> Option<Call> {
        let (mut size_of, mut probability) = (own.request, 1.0);
        let callee = match &node.value {
            Value::Table(_) => {
                let mut fields = Fields::of(node, &mut self.problems)?;
                let callee = fields.node("service");
                fields.fill("size", &mut self.problems, &mut size_of, size);
                fields.fill("probability", &mut self.problems, &mut probability, percent);
                self.without_effect(&mut fields, &["hostname", "extra-header"]);
                fields.finish(&mut self.warnings);
                callee
            }
            _ => Some(node),
        };
        let Some(callee) = callee else {
            let message = "a call needs the name of a service, as \"service\"";
            self.problems.push(Problem::new(node.span.clone(), message));
            return None;
        };
        let to = self.service_named(callee)?;
        let at = At {
            service: from,
            endpoint: 0,
        };
        self.calls.push(WrittenCall {
            at,
            to,
            span: callee.span.clone(),
            path: None,
            timeout: None,
        });
        Some(Call {
            probability,
            request: Amount::Constant(size_of),
            timeout: super::TIMEOUT,
            ..self.draft.call(from, to)
        })
    }

    fn service_named(&mut self, node: &Node) -> Option<ServiceId> {
        let name = noted(value::text(node), &mut self.problems)?;
        named(&self.names, name, node, None, &mut self.problems)
    }
}

fn sleep(node: &Node) -> Result<Step, Problem> {
    let time = match &node.value {
        Value::Text(text) => document::parse_go_duration(text),
        _ => None,
    };
    let time = time.ok_or_else(|| value::expected("a length of time such as 10ms", node))?;
    if time.as_nanos() > u128::from(bound::TIME) {
        return Err(value::expected("a length of time of at most 1h", node));
    }
    let nanos = Amount::Constant(time.as_nanos() as f64);
    Ok(step(Action::Work(Work::Sleep(nanos))))
}

fn protocol(node: &Node) -> Result<Protocol, Problem> {
    match value::text(node)? {
        "http" => Ok(Protocol::Http1),
        "grpc" => Ok(Protocol::Grpc),
        _ => Err(value::expected("http or grpc", node)),
    }
}

/// A whole percentage; 0 is as if it were not there: always.
fn percent(node: &Node) -> Result<f64, Problem> {
    match value::whole(node, 0..=100)? {
        0 => Ok(1.0),
        percent => Ok(f64::from(percent) / 100.0),
    }
}

/// Bytes: a number, or a text such as "10K", "1 KB" or "1.5MiB"; units are powers of 1024.
fn size(node: &Node) -> Result<f64, Problem> {
    const MOST: f64 = (1_u64 << 30) as f64;
    let bytes = match &node.value {
        Value::Integer(number) => Some(*number as f64),
        Value::Text(text) => bytes(text),
        _ => None,
    };
    bytes
        .filter(|bytes| (0.0..=MOST).contains(bytes))
        .ok_or_else(|| value::expected("a size such as 128 or \"10K\", to 1G", node))
}

fn bytes(text: &str) -> Option<f64> {
    let text = text.trim();
    let digits = text
        .bytes()
        .take_while(|byte| byte.is_ascii_digit() || *byte == b'.');
    let (number, unit) = text.split_at(digits.count());
    let unit = unit.trim_start().to_ascii_lowercase();
    let power = match unit.trim_end_matches('b').trim_end_matches('i') {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        _ => return None,
    };
    // No unit has only a part of its letters.
    let known = ["", "b"].contains(&unit.as_str()) || {
        let rest = unit.get(1..).unwrap_or_default();
        power > 0 && ["", "b", "ib", "i"].contains(&rest)
    };
    let number: f64 = number.parse().ok().filter(|_| known)?;
    Some((number * 1024_f64.powi(power)).round())
}

fn labels(node: &Node) -> Result<Vec<(String, String)>, Problem> {
    let Value::Table(entries) = &node.value else {
        return Err(value::expected("labels by their names", node));
    };
    let text = |entry: &Entry| match &entry.node.value {
        Value::Text(text) => Ok((entry.key.clone(), text.clone())),
        _ => Err(value::expected("a text", &entry.node)),
    };
    entries.iter().map(text).collect()
}
