//! From a mix to steps that are ready to be written; every mistake is found here.

pub(super) mod judgement;
mod rules;
mod texts;

use std::collections::BTreeMap;

use units::UnitError;

use self::rules::{check_field, method};
use super::compiled::{Compiled, Context, Escape, Template};
use super::composer::Needs;
use super::error::RequestError;
use super::variable::Scope;
use super::{AnswerEnd, Body, Journey, Mix, Step};
use crate::workload::{Protocol, Target};

/// Most steps over all journeys.
const MOST_STEPS: usize = 1_000;
/// Most bytes of all texts and bodies together.
const MOST_BYTES: usize = 64 << 20;
/// Most bytes of a datagram.
const MOST_DATAGRAM: usize = 65_507;

const USER_AGENT: &str = concat!("headroom/", env!("CARGO_PKG_VERSION"));

/// Header fields with their names as given.
type Fields<'s> = Vec<(&'s str, Template)>;

/// A mix made ready.
#[derive(Debug)]
pub(super) struct CompiledMix {
    pub(super) steps: Vec<Compiled>,
    /// For each journey: its first step, and how many values it takes.
    pub(super) journeys: Vec<(usize, usize)>,
    /// For each journey: the sum of weights up to it.
    pub(super) weights: Vec<f64>,
    /// Names of refusals.
    pub(super) refusals: Vec<String>,
}

pub(super) fn compile(mix: &Mix, target: &Target) -> Result<CompiledMix, RequestError> {
    check_mix(mix)?;
    let mut compiler = Compiler {
        target,
        position: 0,
        refusals: Vec::new(),
        scope: Scope {
            tables: &mix.tables,
            columns: BTreeMap::new(),
            taken: Vec::new(),
            known: 0,
        },
    };
    let (mut steps, mut journeys, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    let mut sum = 0.0;
    for journey in &mix.journeys {
        sum += journey.weight;
        weights.push(sum);
        journeys.push((
            steps.len(),
            journey.steps.iter().map(|s| s.take.len()).sum(),
        ));
        compiler.journey(journey, &mut steps)?;
    }
    Ok(CompiledMix {
        steps,
        journeys,
        weights,
        refusals: compiler.refusals,
    })
}

fn wrong(place: impl Into<String>, message: impl Into<String>) -> RequestError {
    RequestError::new(place, "", UnitError::new(0..0, message))
}

fn check_mix(mix: &Mix) -> Result<(), RequestError> {
    let steps: usize = mix.journeys.iter().map(|journey| journey.steps.len()).sum();
    if steps == 0 || steps > MOST_STEPS {
        return Err(wrong(
            "requests",
            format!("there are 1 to 1,000 kinds of requests, found {steps}"),
        ));
    }
    let mut bytes = 0;
    let mut names = std::collections::BTreeSet::new();
    for journey in &mix.journeys {
        let place = || format!("journey \"{}\"", journey.name);
        if journey.steps.is_empty() {
            return Err(wrong(place(), "it has no requests"));
        }
        if !(journey.weight > 0.0 && journey.weight.is_finite()) {
            let message = format!("a weight is a number above 0, found {}", journey.weight);
            return Err(wrong(place(), message));
        }
        for step in &journey.steps {
            if step.name.is_empty() || !names.insert(&step.name) {
                let message = "each kind of request needs a name of its own";
                return Err(wrong(format!("step \"{}\"", step.name), message));
            }
            let fields: usize = step.headers.iter().map(|(n, v)| n.len() + v.len()).sum();
            bytes += step.path.len() + fields + body_bytes(&step.body).len();
        }
    }
    match bytes > MOST_BYTES {
        true => Err(wrong(
            "requests",
            "all requests together have at most 64 MiB",
        )),
        false => Ok(()),
    }
}

fn body_bytes(body: &Body) -> &[u8] {
    match body {
        Body::Empty => b"",
        Body::Template(text) => text.as_bytes(),
        Body::Bytes(bytes) => bytes,
    }
}

pub(super) struct Compiler<'m> {
    target: &'m Target,
    /// Number of the latest variable.
    position: u64,
    refusals: Vec<String>,
    scope: Scope<'m>,
}

impl Compiler<'_> {
    fn journey(&mut self, journey: &Journey, out: &mut Vec<Compiled>) -> Result<(), RequestError> {
        let takes = journey.steps.iter().flat_map(|step| &step.take);
        self.scope.taken = takes.map(|take| take.name.clone()).collect();
        self.scope.known = 0;
        for (index, step) in journey.steps.iter().enumerate() {
            let has_next = index + 1 < journey.steps.len();
            out.push(self.step(step, index > 0, has_next)?);
        }
        Ok(())
    }

    fn step(&mut self, step: &Step, later: bool, has_next: bool) -> Result<Compiled, RequestError> {
        let protocol = self.target.protocol;
        let http = protocol.has_fields();
        let place = |part: &str| format!("step \"{}\", {part}", step.name);
        let method = method(step, protocol)
            .map_err(|fault| RequestError::new(place("method"), &step.method, fault))?;
        let path = match protocol {
            Protocol::Tcp | Protocol::Udp | Protocol::Redis | Protocol::Postgres => {
                Template::default()
            }
            _ => self
                .path(&step.path)
                .map_err(|fault| RequestError::new(place("path"), &step.path, fault))?,
        };
        if protocol == Protocol::Grpc && path.constant() == Some(b"/") {
            let message = "a call names its method in the path: /package.Service/Method";
            let error = UnitError::new(0..step.path.len(), message);
            return Err(RequestError::new(place("path"), &step.path, error));
        }
        let (authority, fields) = self.fields(step)?;
        let command = match protocol {
            Protocol::Redis => Some(self.command(step)?),
            _ => None,
        };
        let statement = match protocol {
            Protocol::Postgres => Some(self.statement(step)?),
            _ => None,
        };
        let body = match protocol.has_rows() {
            true => Template::default(),
            false => self.body(step)?,
        };
        if matches!(&step.answer, AnswerEnd::Delimiter(bytes) if bytes.is_empty()) {
            return Err(wrong(
                place("answer"),
                "the bytes that end an answer are missing",
            ));
        }
        if step.answer == AnswerEnd::Bytes(0) {
            let message = "an answer of 0 bytes never comes; expected bytes 1 or more";
            return Err(wrong(place("answer"), message));
        }
        let head = (protocol == Protocol::Http1).then(|| head(&method, &path, &authority, &fields));
        let own_cookies = fields
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("cookie"));
        let lower = |(name, value): (&str, Template)| (name.to_ascii_lowercase(), value);
        let mut compiled = Compiled {
            name: step.name.clone(),
            sized: body.constant() != Some(b"")
                || matches!(method.as_str(), "POST" | "PUT" | "PATCH"),
            method,
            path,
            authority,
            fields: fields.into_iter().map(lower).collect(),
            body,
            command,
            statement,
            text: matches!(step.body, Body::Template(_)),
            head,
            cookies: http && later && !own_cookies,
            whole: None,
            needs: Needs {
                fields: http && has_next,
                body: false,
            },
            think: step.think,
            answer: step.answer.clone(),
            checks: Vec::new(),
            takes: Vec::new(),
            too_long: 0,
            has_next,
        };
        self.judgement(step, &mut compiled)?;
        compiled.whole = whole(&compiled);
        Ok(compiled)
    }

    /// Name and port as the target is told, and the other header fields.
    fn fields<'s>(&mut self, step: &'s Step) -> Result<(Template, Fields<'s>), RequestError> {
        let mut authority = Template::text(self.target.authority.as_str());
        let mut fields = Vec::new();
        for (name, value) in &step.headers {
            let place = || format!("step \"{}\", header {name}", step.name);
            check_field(name, self.target.protocol)
                .map_err(|fault| RequestError::new(place(), name, fault))?;
            let value = self
                .template(value, Escape::Field)
                .map_err(|fault| RequestError::new(place(), value, fault))?;
            match name.eq_ignore_ascii_case("host") {
                true => authority = value,
                false => fields.push((name.as_str(), value)),
            }
        }
        if !fields
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("user-agent"))
        {
            fields.push(("User-Agent", Template::text(USER_AGENT)));
        }
        Ok((authority, fields))
    }

    fn body(&mut self, step: &Step) -> Result<Template, RequestError> {
        let place = || format!("step \"{}\", body", step.name);
        let body = match &step.body {
            Body::Empty => Template::default(),
            Body::Bytes(bytes) => Template::text(bytes.as_slice()),
            Body::Template(text) => self
                .template(text, Escape::None)
                .map_err(|fault| RequestError::new(place(), text, fault))?,
        };
        match (self.target.protocol, body.constant().map(<[u8]>::len)) {
            (Protocol::Tcp | Protocol::Udp, Some(0)) => {
                let message = "nothing would be sent; give the bytes of a request";
                Err(wrong(place(), message))
            }
            (Protocol::Udp, Some(size)) if size > MOST_DATAGRAM => {
                let message = format!("a datagram has at most 65,507 bytes, found {size}");
                Err(wrong(place(), message))
            }
            _ => Ok(body),
        }
    }
}

/// The head of HTTP/1.1, without `Cookie`, `Content-Length` and the empty line.
fn head(method: &str, path: &Template, authority: &Template, fields: &Fields<'_>) -> Template {
    let mut head = Template::text(format!("{method} "));
    head.append(path);
    head.push_text(" HTTP/1.1\r\nHost: ");
    head.append(authority);
    head.push_text("\r\n");
    for (name, value) in fields {
        head.push_text(&format!("{name}: "));
        head.append(value);
        head.push_text("\r\n");
    }
    head
}

/// All bytes of a step whose templates have no variables.
fn whole(step: &Compiled) -> Option<Vec<u8>> {
    step.body.constant()?;
    if let Some(command) = &step.command
        && !command.is_constant()
    {
        return None;
    }
    if let Some(head) = &step.head {
        head.constant()?;
    }
    let nothing = Context {
        seed: 0,
        arrival: 0,
        values: &[],
    };
    let mut bytes = Vec::new();
    step.write(nothing, None, &mut bytes).ok()?;
    bytes.shrink_to_fit();
    Some(bytes)
}
