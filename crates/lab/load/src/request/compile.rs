//! From a mix to steps that are ready to be written; every mistake is found here.

use std::collections::BTreeMap;

use super::answer::{Check, Place};
use super::compiled::{Compiled, Context, Escape, Piece, Template};
use super::error::{Fault, RequestError};
use super::field;
use super::rules::{
    check_assertion, check_field, check_source, check_value_name, method, source_text,
};
use super::template::{self, Part};
use super::variable::{Scope, Variable};
use super::{AnswerEnd, Assertion, Body, Journey, Mix, Source, Step};
use crate::workload::{Protocol, Target};

/// Most steps over all journeys.
const MOST_STEPS: usize = 1_000;
/// Most bytes of all texts and bodies together.
const MOST_BYTES: usize = 64 << 20;
/// Most bytes of a datagram.
const MOST_DATAGRAM: usize = 65_507;

const USER_AGENT: &str = concat!("headroom/", env!("CARGO_PKG_VERSION"));

/// A mix made ready.
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
    Fault::new(0..0, message).within(place, "")
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

struct Compiler<'m> {
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
        let place = |part: &str| format!("step \"{}\", {part}", step.name);
        let http = matches!(protocol, Protocol::Http1 | Protocol::Http2 | Protocol::Grpc);
        let pathless = matches!(protocol, Protocol::Tcp | Protocol::Udp);
        let method =
            method(step, protocol).map_err(|fault| fault.within(place("method"), &step.method))?;
        let path = match pathless {
            true => Template::default(),
            false => self
                .path(&step.path)
                .map_err(|fault| fault.within(place("path"), &step.path))?,
        };
        let mut authority = Template::text(self.target.authority.as_str());
        let mut fields = Vec::new();
        let mut own_cookies = false;
        let mut head = Template::default();
        for (name, value) in &step.headers {
            let place = || place(&format!("header {name}"));
            check_field(name, protocol).map_err(|fault| fault.within(place(), name))?;
            let value = self
                .template(value, Escape::Field)
                .map_err(|fault| fault.within(place(), value))?;
            if name.eq_ignore_ascii_case("host") {
                authority = value;
                continue;
            }
            own_cookies |= name.eq_ignore_ascii_case("cookie");
            head.push_text(&format!("{name}: "));
            head.append(&value);
            head.push_text("\r\n");
            fields.push((name.to_ascii_lowercase(), value));
        }
        if !fields.iter().any(|(name, _)| name == "user-agent") {
            head.push_text(&format!("User-Agent: {USER_AGENT}\r\n"));
            fields.push(("user-agent".to_owned(), Template::text(USER_AGENT)));
        }
        let body = match &step.body {
            Body::Empty => Template::default(),
            Body::Bytes(bytes) => Template::text(bytes.as_slice()),
            Body::Template(text) => self
                .template(text, Escape::None)
                .map_err(|fault| fault.within(place("body"), text))?,
        };
        let constant = body.constant().map(<[u8]>::len);
        if pathless && constant == Some(0) {
            return Err(wrong(
                place("body"),
                "nothing would be sent; give the bytes of a request",
            ));
        }
        if protocol == Protocol::Udp && constant.is_some_and(|size| size > MOST_DATAGRAM) {
            return Err(wrong(place("body"), "a datagram has at most 65,507 bytes"));
        }
        if matches!(&step.answer, AnswerEnd::Delimiter(bytes) if bytes.is_empty()) {
            return Err(wrong(
                place("answer"),
                "the bytes that end an answer are missing",
            ));
        }
        let sized = constant != Some(0) || matches!(method.as_str(), "POST" | "PUT" | "PATCH");
        let head = (protocol == Protocol::Http1).then(|| {
            let mut whole = Template::text(format!("{method} "));
            whole.append(&path);
            whole.push_text(" HTTP/1.1\r\nHost: ");
            whole.append(&authority);
            whole.push_text("\r\n");
            whole.append(&head);
            whole
        });
        let mut compiled = Compiled {
            name: step.name.clone(),
            method,
            path,
            authority,
            fields,
            body,
            text: matches!(step.body, Body::Template(_)),
            head,
            sized,
            cookies: http && later && !own_cookies,
            whole: None,
            needs_fields: http && has_next,
            needs_body: false,
            think: step.think,
            answer: step.answer.clone(),
            checks: Vec::new(),
            takes: Vec::new(),
            too_long: self.refusal("body above 1 MiB, not searched".to_owned()),
            has_next,
        };
        self.judge(step, &mut compiled)?;
        compiled.whole = whole(&compiled);
        Ok(compiled)
    }

    /// Assertions and values.
    fn judge(&mut self, step: &Step, compiled: &mut Compiled) -> Result<(), RequestError> {
        let protocol = self.target.protocol;
        let place = |part: &str| format!("step \"{}\", {part}", step.name);
        let http = matches!(protocol, Protocol::Http1 | Protocol::Http2 | Protocol::Grpc);
        let status = |assertion: &Assertion| matches!(assertion, Assertion::Status(_));
        if !step.assertions.iter().any(status) {
            match protocol {
                Protocol::Http1 | Protocol::Http2 => {
                    let refusal = self.refusal("status 400 or above".to_owned());
                    compiled.checks.push((Check::StatusBelow400, refusal));
                }
                Protocol::Grpc => {
                    let refusal = self.refusal("grpc-status above 0".to_owned());
                    compiled.checks.push((Check::StatusZero, refusal));
                }
                Protocol::WebSocket | Protocol::Tcp | Protocol::Udp => {}
            }
        }
        for assertion in &step.assertions {
            let text = assertion.describe();
            let place = || place("assertion");
            if !http && matches!(assertion, Assertion::Status(_) | Assertion::Header(..)) {
                let message = "answers of this protocol have neither status nor header fields";
                return Err(wrong(place(), message));
            }
            check_assertion(assertion).map_err(|message| wrong(place(), message))?;
            let check = Check::of(assertion)
                .map_err(|message| Fault::new(0..text.len(), message).within(place(), &text))?;
            compiled.needs_fields |= check.needs_fields();
            compiled.needs_body |= check.needs_body();
            compiled.checks.push((check, self.refusal(text)));
        }
        for take in &step.take {
            let text = take.describe();
            let place = || place(&format!("value \"{}\"", take.name));
            let fault = |message: String| Fault::new(0..text.len(), message).within(place(), &text);
            check_value_name(&take.name).map_err(fault)?;
            if !http && matches!(take.from, Source::Header(_)) {
                return Err(fault(
                    "answers of this protocol have no header fields".to_owned(),
                ));
            }
            check_source(&take.from)
                .map_err(|problem| problem.within(place(), source_text(&take.from)))?;
            let found = Place::of(&take.from).map_err(fault)?;
            compiled.needs_fields |= !found.needs_body();
            compiled.needs_body |= found.needs_body();
            let refusal = self.refusal(format!("no value for {text}"));
            compiled.takes.push((found, self.scope.known, refusal));
            self.scope.known += 1;
        }
        Ok(())
    }

    /// The number of a refusal.
    fn refusal(&mut self, name: String) -> usize {
        match self.refusals.iter().position(|known| *known == name) {
            Some(index) => index,
            None => {
                self.refusals.push(name);
                self.refusals.len() - 1
            }
        }
    }

    fn template(&mut self, text: &str, escape: Escape) -> Result<Template, Fault> {
        let mut template = Template::default();
        for part in template::split(text)? {
            match part {
                Part::Text(literal, at) => {
                    if escape == Escape::Field {
                        field::check_value(&literal).map_err(|fault| fault.shifted(at.start))?;
                    }
                    template.push(Piece::Text(literal.into_bytes()));
                }
                Part::Variable(at) => template.push(self.variable(text, at, escape)?),
            }
        }
        Ok(template)
    }

    fn path(&mut self, text: &str) -> Result<Template, Fault> {
        let parts = template::split(text)?;
        let mut template = Template::default();
        for (index, part) in parts.into_iter().enumerate() {
            match part {
                Part::Text(literal, at) => {
                    if index == 0 && !literal.starts_with(['/', '?']) && literal != "*" {
                        let first: String = literal.chars().take(1).collect();
                        let at = at.start..at.start + first.len();
                        let fault = Fault::new(at, "a path begins with /");
                        return Err(fault.suggest(format!("/{first}")));
                    }
                    if index == 0 && literal.starts_with('?') {
                        template.push_text("/");
                    }
                    let escaped = literal.len() != at.len();
                    let literal = field::literal_path(&literal).map_err(|fault| match escaped {
                        // Doubled braces shift places; the whole part is near enough.
                        true => fault.over(at.clone()),
                        false => fault.shifted(at.start),
                    })?;
                    template.push(Piece::Text(literal.into_bytes()));
                }
                Part::Variable(at) => {
                    let escape = if index == 0 {
                        Escape::Link
                    } else {
                        Escape::Path
                    };
                    template.push(self.variable(text, at, escape)?);
                }
            }
        }
        if text.is_empty() {
            template.push_text("/");
        }
        Ok(template)
    }

    fn variable(
        &mut self,
        text: &str,
        at: std::ops::Range<usize>,
        escape: Escape,
    ) -> Result<Piece, Fault> {
        let variable = Variable::parse(&text[at.clone()], &mut self.scope)
            .map_err(|fault| fault.shifted(at.start))?;
        let fault = |message: String| Err(Fault::new(at.clone(), message));
        match (&variable, escape) {
            (Variable::Line { column, .. }, Escape::Field) => {
                if let Some((row, _)) = column.find(|value| !field::may_be_value(value)) {
                    return fault(format!(
                        "row {row} of this column has a line break or control character, \
                         which cannot stand in a header field"
                    ));
                }
            }
            (Variable::Line { column, .. }, Escape::Link) => {
                if let Some((row, _)) =
                    column.find(|value| !field::write_link(value, &mut Vec::new()))
                {
                    return fault(format!(
                        "a path begins with /, but row {row} of this column does not"
                    ));
                }
            }
            (Variable::Taken(_), Escape::Link)
            | (_, Escape::None | Escape::Path | Escape::Field) => {}
            (_, Escape::Link) => {
                return fault("a path begins with /, not with this variable".to_owned());
            }
        }
        self.position += 1;
        Ok(Piece::Variable {
            variable,
            position: self.position,
            escape,
        })
    }
}

/// All bytes of a step whose templates have no variables.
fn whole(step: &Compiled) -> Option<Vec<u8>> {
    step.body.constant()?;
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
