//! Requests, one after the other, each fixed by the seed and the number of its arrival.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::time::Duration;

use stats::SplitMix;
use units::UnitError;

use super::answer::Answer;
use super::compile::{CompiledMix, compile};
use super::compiled::{Compiled, Context, Template};
use super::cookies::Cookies;
use super::error::RequestError;
use super::statement::Bound;
use super::{AnswerEnd, Mix};
use crate::workload::Target;

/// Longest value that is taken from an answer; a longer one is a refusal.
pub(super) const LONGEST_VALUE: usize = 64 << 10;

/// A mix made ready. It holds no state of its own: threads share it by reference, and
/// what is written for an arrival depends on the seed, the arrival's number and the
/// answers of its own journey only.
#[derive(Debug)]
pub struct Composer {
    seed: u64,
    mix: CompiledMix,
    kinds: Vec<String>,
}

/// One journey on its way: what it has seen, and at which step it stands.
#[derive(Debug, Clone)]
pub struct Visit {
    arrival: u64,
    journey: usize,
    /// Index over all steps of the mix.
    step: usize,
    /// Made at the first value or cookie.
    memory: Option<Box<Memory>>,
}

impl Visit {
    fn values(&self) -> &[Option<String>] {
        self.memory.as_ref().map_or(&[], |memory| &memory.values)
    }
}

#[derive(Debug, Clone, Default)]
struct Memory {
    values: Vec<Option<String>>,
    cookies: Cookies,
}

/// A request in parts, for protocols that have their own form of head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts<'c> {
    /// Method.
    pub method: &'c str,
    /// Name and port of the target.
    pub authority: Cow<'c, str>,
    /// Path and query.
    pub path: Cow<'c, str>,
    /// Other header fields, names in lower case; without length, `host` and what the
    /// protocol itself demands.
    pub headers: Vec<(&'c str, Cow<'c, str>)>,
    /// Body or message, without framing.
    pub body: Cow<'c, [u8]>,
}

/// What of an answer must be kept until its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// Header lines.
    pub fields: bool,
    /// The first [`Answer::KEPT`] bytes of the body.
    pub body: bool,
}

/// What an answer came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepEnd {
    /// Why the answer is a failure, when it is: an index into [`Composer::refusals`].
    pub refusal: Option<usize>,
    /// How the journey goes on.
    pub next: Next,
}

/// How a journey goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It is over.
    Done,
    /// Its next request follows after this pause, which may be zero.
    After(Duration),
}

impl Composer {
    /// Makes a mix ready.
    ///
    /// # Errors
    /// The first mistake in a template, an assertion or anything else, with its place.
    pub fn new(mix: &Mix, target: &Target, seed: u64) -> Result<Self, RequestError> {
        let mix = compile(mix, target)?;
        Ok(Self {
            seed,
            kinds: mix.steps.iter().map(|step| step.name.clone()).collect(),
            mix,
        })
    }

    /// The bytes of all requests, when every request is the same and of its answers
    /// neither fields nor bodies are needed; as [`write`](Self::write) has them.
    pub fn plain(&self) -> Option<&[u8]> {
        match self.mix.steps.as_slice() {
            [step] if step.needs == Needs::default() => step.whole.as_deref(),
            _ => None,
        }
    }

    /// Names of the kinds of requests: all steps of all journeys, in order.
    pub fn kinds(&self) -> &[String] {
        &self.kinds
    }

    /// Why answers may be failures, in words, without repetition.
    pub fn refusals(&self) -> &[String] {
        &self.mix.refusals
    }

    /// Begins the journey of an arrival: the same one for the same number, always.
    pub fn begin(&self, arrival: u64) -> Visit {
        let journey = match self.mix.weights.as_slice() {
            [_] => 0,
            weights => {
                let total = weights.last().copied().unwrap_or(0.0);
                let point = SplitMix::at(self.seed, [arrival, 0]).unit() * total;
                let index = weights.partition_point(|&upto| upto <= point);
                index.min(weights.len() - 1)
            }
        };
        Visit {
            arrival,
            journey,
            step: self.mix.journeys[journey].0,
            memory: None,
        }
    }

    fn step(&self, visit: &Visit) -> &Compiled {
        &self.mix.steps[visit.step]
    }

    /// The kind of the request that comes next: an index into [`kinds`](Self::kinds).
    pub fn kind(&self, visit: &Visit) -> usize {
        visit.step
    }

    /// Appends the next request: HTTP/1.1 with its head, for other protocols the message
    /// alone.
    ///
    /// # Errors
    /// A value from an earlier answer that may not be sent, such as one with a line break
    /// in a header field. Nothing is appended then.
    pub fn write(&self, visit: &Visit, out: &mut Vec<u8>) -> Result<(), RequestError> {
        let step = self.step(visit);
        let cookies = self.cookies(visit);
        match (&step.whole, cookies) {
            (Some(whole), None) => {
                out.extend_from_slice(whole);
                Ok(())
            }
            _ => step
                .write(self.context(visit), cookies, out)
                .map_err(|message| refused(step, message)),
        }
    }

    /// The next request as a statement with its values, if it is one.
    pub fn statement<'c>(&'c self, visit: &'c Visit) -> Option<Bound<'c>> {
        let statement = self.step(visit).statement.as_ref()?;
        let context = self.context(visit);
        Some(Bound { statement, context })
    }

    /// The next request in parts.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn parts(&self, visit: &Visit) -> Result<Parts<'_>, RequestError> {
        let step = self.step(visit);
        let context = self.context(visit);
        let bytes = |template| render(template, context).map_err(|message| refused(step, message));
        let text = |template| bytes(template).map(text);
        let mut headers = Vec::with_capacity(step.fields.len() + 1);
        for (name, value) in &step.fields {
            headers.push((name.as_str(), text(value)?));
        }
        if let Some(cookies) = self.cookies(visit) {
            let mut value = Vec::new();
            cookies.write(&mut value);
            headers.push((
                "cookie",
                Cow::Owned(String::from_utf8_lossy(&value).into_owned()),
            ));
        }
        Ok(Parts {
            method: &step.method,
            authority: text(&step.authority)?,
            path: text(&step.path)?,
            headers,
            body: bytes(&step.body)?,
        })
    }

    /// What of the next answer must be kept.
    pub fn needs(&self, visit: &Visit) -> Needs {
        self.step(visit).needs
    }

    /// Whether the next answer has no body whatever its fields say (HEAD).
    pub fn no_body(&self, visit: &Visit) -> bool {
        self.step(visit).method == "HEAD"
    }

    /// Whether the next request may be sent again when its connection closes before
    /// anything of the answer (RFC 9110, 9.2.2).
    pub fn idempotent(&self, visit: &Visit) -> bool {
        let method = self.step(visit).method.as_str();
        matches!(
            method,
            "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE"
        )
    }

    /// Whether the next message was given as text (WebSocket sends it as such).
    pub fn is_text(&self, visit: &Visit) -> bool {
        self.step(visit).text
    }

    /// How the end of the next answer is told over TCP.
    pub fn answer_end(&self, visit: &Visit) -> &AnswerEnd {
        &self.step(visit).answer
    }

    /// Judges the answer to the request that was written last, takes values and cookies
    /// from it, and moves the journey to its next step.
    ///
    /// A refused answer ends the journey: what follows would ask for something that
    /// does not exist, and its latency would say nothing.
    pub fn finish(&self, visit: &mut Visit, answer: &Answer<'_>) -> StepEnd {
        let step = self.step(visit);
        if let Some(refusal) = self.judge(visit, answer) {
            return StepEnd {
                refusal: Some(refusal),
                next: Next::Done,
            };
        }
        visit.step += usize::from(step.has_next);
        StepEnd {
            refusal: None,
            next: match step.has_next {
                true => Next::After(step.think),
                false => Next::Done,
            },
        }
    }

    /// The refusal of an answer, if any; what the journey needs of it is kept.
    fn judge(&self, visit: &mut Visit, answer: &Answer<'_>) -> Option<usize> {
        let step = self.step(visit);
        let cut = answer.is_cut();
        for (check, refusal) in &step.checks {
            if check.needs_body() && cut {
                return Some(step.too_long);
            }
            if !check.holds(answer) {
                return Some(*refusal);
            }
        }
        let json = OnceCell::new();
        for (place, index, refusal) in &step.takes {
            if place.needs_body() && cut {
                return Some(step.too_long);
            }
            let found = place.find(answer, &json);
            let Some(value) = found.filter(|value| value.len() <= LONGEST_VALUE) else {
                return Some(*refusal);
            };
            let memory = self.memory(visit);
            if let Some(slot) = memory.values.get_mut(*index) {
                *slot = Some(value);
            }
        }
        if step.has_next && step.needs.fields && answer.values("set-cookie").next().is_some() {
            self.memory(visit).cookies.keep(answer);
        }
        None
    }

    fn memory<'v>(&self, visit: &'v mut Visit) -> &'v mut Memory {
        let values = self.mix.journeys[visit.journey].1;
        visit.memory.get_or_insert_with(|| {
            Box::new(Memory {
                values: vec![None; values],
                cookies: Cookies::default(),
            })
        })
    }

    fn context<'v>(&self, visit: &'v Visit) -> Context<'v> {
        Context {
            seed: self.seed,
            arrival: visit.arrival,
            values: visit.values(),
        }
    }

    /// The cookies that go with the next request.
    fn cookies<'v>(&self, visit: &'v Visit) -> Option<&'v Cookies> {
        let memory = visit.memory.as_ref().filter(|_| self.step(visit).cookies)?;
        Some(&memory.cookies).filter(|cookies| !cookies.is_empty())
    }
}

fn refused(step: &Compiled, message: String) -> RequestError {
    let place = format!("step \"{}\"", step.name);
    RequestError::new(place, "", UnitError::new(0..0, message))
}

fn render<'c>(template: &'c Template, context: Context<'_>) -> Result<Cow<'c, [u8]>, String> {
    match template.constant() {
        Some(text) => Ok(Cow::Borrowed(text)),
        None => {
            let mut out = Vec::new();
            template.write(context, &mut out)?;
            Ok(Cow::Owned(out))
        }
    }
}

/// Bytes of a template as text; they are UTF-8, because all of their pieces are.
fn text(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }),
    }
}
