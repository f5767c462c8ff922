//! `http` of a step: requests that it makes once each, and what is kept of answers and of
//! the output of a step's command.

use std::time::Duration;

use document::Problem;
use lab_load::Protocol;
use lab_load::request::{AnswerEnd, Source, Take};
use toml::de::DeValue;

use super::super::fields::{Field, Fields, Value};
use super::super::process::{LONGEST, SHORTEST};
use super::super::values::{Reader, all};
use super::content::{body, headers};
use super::requests::{of_http, path_of_url, taken_name_problem};
use super::{Address, address_of, answers, language, tls_of};
use crate::plan::{Call, LoadTls, Request, RequestBody, Template, WHOLE_OUTPUT};
use crate::text::Text;

/// Most requests of one step.
const MOST: usize = 100;
/// Longest wait for an answer, when a file does not say.
const WITHIN: Duration = Duration::from_secs(10);
/// Keys of a request.
const KEYS: [&str; 8] = [
    "request",
    "header",
    "body",
    "body_file",
    "expect",
    "within",
    "tls",
    "keep",
];
/// Keys of one that a fault makes, which keeps nothing.
const KEYS_OF_FAULTS: &[&str] = KEYS.split_at(KEYS.len() - 1).0;

/// Where a value is kept from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum CaptureSource {
    /// The answer to a request.
    Answer,
    /// What a command prints.
    Output,
}

/// Reads `http = "POST http://{web.addr}/orders"`, `http = { request = "...", ... }`, or a
/// list of these.
pub(in super::super) fn calls(
    reader: &mut Reader<'_>,
    step: &Fields<'_>,
    name: &str,
) -> Option<Vec<Call>> {
    let Some(field) = step.get("http") else {
        return Some(Vec::new());
    };
    let values: Vec<&Value<'_>> = match field.value.get_ref() {
        DeValue::Table(_) | DeValue::String(_) => vec![field.value],
        DeValue::Array(items) if items.len() <= MOST => items.iter().collect(),
        DeValue::Array(items) => {
            let message = format!(
                "a step has at most {MOST} requests, this has {}",
                items.len()
            );
            return reader.refuse(Problem::new(field.span(), message));
        }
        _ => return reader.mismatch(field, "a request such as \"GET http://{NAME.addr}/\""),
    };
    all(values.into_iter().map(|value| call(reader, value, name)))
}

/// Reads the table of a request by which a fault is done or undone.
pub(in super::super) fn call_of_fault(
    reader: &mut Reader<'_>,
    field: Field<'_>,
    step: &str,
) -> Option<Call> {
    let label = format!("\"{}\"", field.key);
    let open = Fields::open(field.value, &label, KEYS_OF_FAULTS, reader);
    call_of_table(reader, &open?, step)
}

fn call(reader: &mut Reader<'_>, value: &Value<'_>, step: &str) -> Option<Call> {
    if value.get_ref().is_str() {
        let mut texts = Vec::new();
        let field = Field { key: "http", value };
        let address = address(reader, field)?;
        let path = path_of_url(reader, &address.path, &mut texts);
        let method = method(reader, &address, false);
        let request = request(step, method?, path?);
        let tls = address.is_https().then(LoadTls::default);
        return checked(reader, &address, request, (WITHIN, tls), &texts);
    }
    let fields = Fields::open(value, "\"http\"", &KEYS, reader)?;
    call_of_table(reader, &fields, step)
}

fn call_of_table(reader: &mut Reader<'_>, fields: &Fields<'_>, step: &str) -> Option<Call> {
    let mut texts = Vec::new();
    let example = "\"GET http://{NAME.addr}/\"";
    let field = fields.require("request", example, reader);
    let address = field.and_then(|field| address(reader, field));
    let path = address
        .as_ref()
        .and_then(|address| path_of_url(reader, &address.path, &mut texts));
    let headers = headers(reader, fields, &mut texts);
    let body = body(reader, fields, &mut texts);
    let assertions = match fields.get("expect") {
        None => Some(Vec::new()),
        Some(field) => {
            let items = match field.value.get_ref() {
                DeValue::Array(_) => reader.list(field, "a list")?,
                _ => vec![field],
            };
            answers::each_assertion(reader, items, &mut texts)
        }
    };
    let within = fields.value_or("within", WITHIN, |field| {
        reader.duration(field, SHORTEST..=LONGEST)
    });
    let take = keep(reader, fields, step, CaptureSource::Answer);
    let tls = tls_of(reader, fields, address.as_ref().map(Address::is_https));
    let (address, body) = (address?, body?);
    let method = method(reader, &address, body != RequestBody::Empty);
    let request = Request {
        headers: headers?,
        body,
        take: take?,
        assertions: assertions?,
        ..request(step, method?, path?)
    };
    checked(reader, &address, request, (within?, tls?), &texts)
}

fn address(reader: &mut Reader<'_>, field: Field<'_>) -> Option<Address> {
    address_of(
        reader,
        field,
        ("request", Protocol::Http1, &["http", "https"]),
    )
}

/// The method that is given; else GET, or POST where there is a body.
fn method(reader: &mut Reader<'_>, address: &Address, has_body: bool) -> Option<String> {
    match &address.method {
        Some(given) => of_http(reader, given),
        None if has_body => Some("POST".to_owned()),
        None => Some("GET".to_owned()),
    }
}

fn request(step: &str, method: String, path: Template) -> Request {
    Request {
        name: step.to_owned(),
        method,
        path,
        headers: Vec::new(),
        body: RequestBody::Empty,
        think: Duration::ZERO,
        take: Vec::new(),
        assertions: Vec::new(),
        answer: AnswerEnd::Close,
    }
}

fn checked(
    reader: &mut Reader<'_>,
    address: &Address,
    request: Request,
    (within, tls): (Duration, Option<LoadTls>),
    texts: &[Text],
) -> Option<Call> {
    let call = Call {
        target: address.target.clone(),
        request,
        within,
        tls,
    };
    language::ok_or_report(reader, call.check(), &address.shown, texts).then_some(call)
}

/// `keep = { order = "json /id" }`: values for what comes after.
pub(in super::super) fn keep(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    step: &str,
    place: CaptureSource,
) -> Option<Vec<Take>> {
    let Some(field) = fields.get("keep") else {
        return Some(Vec::new());
    };
    let table = Fields::open_any(field.value, "\"keep\"", reader)?;
    let mut kept = Vec::new();
    let mut good = true;
    for (span, field) in table.fields() {
        let is_taken = reader
            .scope
            .kept_so_far
            .iter()
            .any(|name| name == field.key);
        let other = reader.scope.kept.get(field.key);
        let problem = match other {
            _ if let Some(message) = taken_name_problem(reader, field.key) => Some(message),
            Some(other) if is_taken || other != step => Some(format!(
                "the step {other:?} keeps {{{}}} already; choose another name",
                field.key
            )),
            _ => None,
        };
        if let Some(message) = problem {
            reader.problem(Problem::new(span, message));
            good = false;
            continue;
        }
        match from(reader, field, place) {
            Some(take) => kept.push(take),
            None => good = false,
        }
    }
    // Also what is wrong otherwise has a name.
    let names = table.keys().map(|(key, _)| key.to_owned());
    reader.scope.kept_so_far.extend(names);
    good.then_some(kept)
}

/// Where a value comes from.
fn from(reader: &mut Reader<'_>, field: Field<'_>, place: CaptureSource) -> Option<Take> {
    let expected = match place {
        CaptureSource::Answer => {
            "a place such as \"json /id\", \"header location\", \"regex id=([0-9]+)\" or \"text\""
        }
        CaptureSource::Output => {
            "a place such as \"json /rows\", \"regex rows=([0-9]+)\" or \"text\""
        }
    };
    let text = reader.verbatim(field, expected)?;
    let name = field.key.to_owned();
    if text.as_str().trim() == "text" {
        let from = Source::Regex(WHOLE_OUTPUT.to_owned());
        return Some(Take { name, from });
    }
    let word = text.as_str().split_whitespace().next().unwrap_or_default();
    if !["json", "header", "regex"].contains(&word)
        || place == CaptureSource::Output && word == "header"
    {
        let message = match place {
            CaptureSource::Answer => "a value comes from json, header, regex or text",
            CaptureSource::Output => "a value of an output comes from json, regex or text",
        };
        let known = ["json", "header", "regex", "text"].into_iter();
        let known = known.filter(|known| place == CaptureSource::Answer || *known != "header");
        let problem = Problem::new(text.whole(), message);
        return reader.refuse(problem.suggest_from(word, "sources", known));
    }
    let before = format!("{name} = ");
    let take = Take::parse(&format!("{before}{}", text.as_str()));
    let take = answers::ok_or_report(reader, &text, before.len(), take)?;
    let checked = take.check().map(|()| take);
    answers::ok_or_report(reader, &text, before.len(), checked)
}

/// Names of the values that a step keeps, wherever it does.
pub(in super::super) fn kept_names<'t>(step: &'t Value<'t>) -> Vec<&'t str> {
    let Some(table) = step.get_ref().as_table() else {
        return Vec::new();
    };
    let http = table.get("http").into_iter();
    let requests = http.flat_map(|http| match http.get_ref() {
        DeValue::Array(items) => items.iter().collect(),
        _ => vec![http],
    });
    let tables = requests.filter_map(|request| request.get_ref().as_table());
    let keeps = tables.chain([table]).filter_map(|table| table.get("keep"));
    let keeps = keeps.filter_map(|keep| keep.get_ref().as_table());
    keeps
        .flat_map(|keep| keep.keys().map(|name| name.get_ref().as_ref()))
        .collect()
}
