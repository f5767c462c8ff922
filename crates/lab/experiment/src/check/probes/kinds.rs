//! What a probe asks, kind by kind.

use std::collections::BTreeMap;

use document::Problem;
use regex::Regex;

use super::super::fields::{Field, Fields};
use super::super::lifecycles::{matcher, unreadable};
use super::super::loads::{assertions, source};
use super::super::process::Found as FoundSystem;
use super::super::values::{Reader, all};
use crate::names::Place;
use crate::plan::{Aggregation, CommandValue, ProbeKind, Segment, Template};
use crate::text::Text;
use lab_load::request::{Assertion, Source};

/// Reads the kind of probe that `field` names.
pub(super) fn read(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    field: Field<'_>,
    place: Place,
    systems: &[FoundSystem],
) -> Option<ProbeKind> {
    match field.key {
        "http" => http(reader, fields, field, place),
        "tcp" => Some(ProbeKind::Tcp {
            address: address(reader, field, place, "tcp")?.0,
        }),
        "grpc" => {
            let (address, service) = address(reader, field, place, "grpc")?;
            Some(ProbeKind::Grpc { address, service })
        }
        "command" => command(reader, fields, field, place),
        "prom" => prom(reader, fields, field, place),
        "postgres" => postgres(reader, fields, field, place),
        _ => log(reader, fields, field, systems),
    }
}

fn http(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    field: Field<'_>,
    place: Place,
) -> Option<ProbeKind> {
    let request = request(reader, field, place);
    let url = request.as_ref().map(|(_, url)| url);
    let tls = super::super::loads::tls_of(reader, fields, url.map(is_https));
    let headers = headers(reader, fields, place);
    let body = fields.value_or("body", Template::default(), |field| {
        reader.template(field, place)
    });
    let asserts = assertions(reader, fields, &mut Vec::new()).filter(|asserts| {
        let patterns = asserts.iter().filter_map(|assert| match assert {
            Assertion::BodyMatches(pattern) => Some(pattern),
            _ => None,
        });
        let wrong = patterns.filter_map(|pattern| Regex::new(pattern).err());
        let wrong: Vec<String> = wrong.map(|error| unreadable(&error)).collect();
        if let (Some(message), Some(field)) = (wrong.first(), fields.get("assert")) {
            reader.problem(Problem::new(field.span(), message));
        }
        wrong.is_empty()
    });
    let value = fields.optional("value", |field| part(reader, field));
    let (method, url) = request?;
    Some(ProbeKind::Http {
        method,
        url,
        tls: tls?,
        headers: headers?,
        body: body?,
        asserts: asserts?,
        value: value?,
    })
}

/// `GET http://{web.addr}/`; the method may be left out.
fn request(reader: &mut Reader<'_>, field: Field<'_>, place: Place) -> Option<(String, Template)> {
    let expected = "a request such as \"GET http://{NAME.addr}/\"";
    let words = reader.command(field, place)?;
    let (method, url) = match words.as_slice() {
        [url] => (None, url),
        [method, url] => (Some(method), url),
        _ => return reader.mismatch(field, expected),
    };
    let method = method.map_or("GET".to_owned(), |method| method.filled.to_string());
    if !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        let message = format!("\"{method}\" is no method of HTTP");
        return reader.refuse(Problem::new(field.span(), message));
    }
    let url = web(reader, field, url.filled.clone(), field.key)?;
    Some((method, url))
}

fn is_https(url: &Template) -> bool {
    url.to_string().starts_with("https://")
}

/// An address that must begin with `http://` or `https://`.
fn web(reader: &mut Reader<'_>, field: Field<'_>, url: Template, kind: &str) -> Option<Template> {
    let shown = url.to_string();
    if shown.starts_with("http://") || shown.starts_with("https://") {
        return Some(url);
    }
    let problem = match shown.split_once("://") {
        Some((scheme, _)) => {
            let message = format!("the scheme of a {kind} target cannot be \"{scheme}\"");
            Problem::new(field.span(), message).help("write http:// or https://")
        }
        None => {
            let message = format!("\"{shown}\" has no scheme");
            Problem::new(field.span(), message).suggest(format!("http://{shown}"))
        }
    };
    reader.refuse(problem)
}

/// Host and port of `tcp://{db.addr}`, and what follows a slash.
fn address(
    reader: &mut Reader<'_>,
    field: Field<'_>,
    place: Place,
    scheme: &str,
) -> Option<(Template, Template)> {
    let template = reader.template(field, place)?;
    let shown = template.to_string();
    let prefix = format!("{scheme}://");
    let mut segments = template.0;
    let rest = match segments.first_mut() {
        Some(Segment::Text(text)) => text.strip_prefix(&prefix).map(str::to_owned),
        _ => None,
    };
    let (Some(rest), Some(first)) = (rest, segments.first_mut()) else {
        let message = format!("\"{shown}\" does not begin with {prefix}");
        let problem = Problem::new(field.span(), message);
        let bare = shown.split_once("://").map_or(&*shown, |(_, bare)| bare);
        return reader.refuse(problem.suggest(format!("{prefix}{bare}")));
    };
    *first = Segment::Text(rest);
    let (host, after) = split_at_slash(segments);
    if host.to_string().is_empty() || (scheme == "tcp" && !after.to_string().is_empty()) {
        let message = format!("expected {prefix}HOST:PORT, found \"{shown}\"");
        return reader.refuse(Problem::new(field.span(), message));
    }
    Some((host, after))
}

/// What stands before the first slash, and after it.
fn split_at_slash(segments: Vec<Segment>) -> (Template, Template) {
    let (mut host, mut after) = (Vec::new(), None);
    for segment in segments {
        match (&mut after, segment) {
            (Some(after), segment) => Vec::push(after, segment),
            (None, Segment::Text(text)) if text.contains('/') => {
                let (before, behind) = text.split_once('/').unwrap_or((&text, ""));
                host.push(Segment::Text(before.to_owned()));
                after = Some(vec![Segment::Text(behind.to_owned())]);
            }
            (None, segment) => host.push(segment),
        }
    }
    let not_empty = |segments: Vec<Segment>| {
        let is_empty = |segment: &Segment| *segment == Segment::Text(String::new());
        Template(segments.into_iter().filter(|one| !is_empty(one)).collect())
    };
    (not_empty(host), not_empty(after.unwrap_or_default()))
}

fn headers(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    place: Place,
) -> Option<Vec<(String, Template)>> {
    let Some(field) = fields.get("header") else {
        return Some(Vec::new());
    };
    let table = Fields::open_any(field.value, "\"header\"", reader)?;
    all(table.fields().map(|(span, field)| {
        if !super::super::loads::is_header_name(field.key) {
            let message = format!("\"{}\" is no name of a header field", field.key);
            return reader.refuse(Problem::new(span, message));
        }
        Some((field.key.to_owned(), reader.template(field, place)?))
    }))
}

/// A part of an answer: `json /token`, `regex id=([0-9]+)`, `header location`.
fn part(reader: &mut Reader<'_>, field: Field<'_>) -> Option<Source> {
    let expected = "a place such as \"json /token\" or \"regex id=([0-9]+)\"";
    let text = reader.verbatim(field, expected)?;
    source(reader, &text)
}

fn command(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    field: Field<'_>,
    place: Place,
) -> Option<ProbeKind> {
    let program = reader.program(field, place);
    let value = match fields.get("value") {
        None => Some(CommandValue::Output),
        Some(field) if field.value.get_ref().as_str() == Some("exit") => Some(CommandValue::Exit),
        Some(field) => match part(reader, field) {
            Some(Source::Header(_)) => {
                let message = "what a program prints has no header";
                let problem = Problem::new(field.span(), message);
                reader
                    .refuse(problem.help("write \"exit\", \"json /POINTER\" or \"regex PATTERN\""))
            }
            part => part.map(CommandValue::Part),
        },
    };
    let (program, args) = program?;
    Some(ProbeKind::Command {
        program,
        args,
        value: value?,
    })
}

fn prom(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    field: Field<'_>,
    place: Place,
) -> Option<ProbeKind> {
    let url = reader.template(field, place);
    let url = url.and_then(|url| web(reader, field, url, field.key));
    let tls = super::super::loads::tls_of(reader, fields, url.as_ref().map(is_https));
    let metric = fields
        .require("metric", "\"requests_total\", the name of a metric", reader)
        .and_then(|field| metric_name(reader, field));
    let labels = labels(reader, fields);
    let all = [
        ("sum", Aggregation::Sum),
        ("max", Aggregation::Max),
        ("min", Aggregation::Min),
    ];
    let series = fields.value_or("series", Aggregation::Sum, |field| {
        reader.choice(field, &all)
    });
    let is_rate = fields.value_or("value", false, |field| {
        reader.choice(field, &[("last", false), ("rate", true)])
    });
    Some(ProbeKind::Prom {
        url: url?,
        tls: tls?,
        metric: metric?,
        labels: labels?,
        series: series?,
        is_rate: is_rate?,
    })
}

/// The data model's rule: letters, digits, `_` and `:`, and no digit first.
fn metric_name(reader: &mut Reader<'_>, field: Field<'_>) -> Option<String> {
    let text: Text = reader.text(field, "the name of a metric")?;
    let in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
    let name = text.as_str();
    if name.is_empty()
        || name.starts_with(|c: char| c.is_ascii_digit())
        || !name.chars().all(in_name)
    {
        let message = format!("\"{name}\" is no name of a metric");
        let problem = Problem::new(text.whole(), message);
        return reader.refuse(problem.help(
            "it has letters, digits, _ and :, and no digit first; labels = { code = \"200\" } \
             chooses among its series",
        ));
    }
    Some(name.to_owned())
}

fn labels(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<BTreeMap<String, String>> {
    let Some(field) = fields.get("labels") else {
        return Some(BTreeMap::new());
    };
    let table = Fields::open_any(field.value, "\"labels\"", reader)?;
    all(table.fields().map(|(_, field)| {
        let text = reader.text(field, "the value of a label")?;
        Some((field.key.to_owned(), text.as_str().to_owned()))
    }))
}

fn postgres(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    field: Field<'_>,
    place: Place,
) -> Option<ProbeKind> {
    let url = reader.template(field, place);
    let url = url.filter(|url| names_a_database(reader, field, &url.to_string()));
    let expected = "\"SELECT count(*) FROM jobs\", a statement";
    let sql = fields.require("sql", expected, reader);
    let sql = sql.and_then(|field| reader.template(field, place));
    let password_file = fields.optional("password_file", |field| {
        reader.line(field, "the path of a file")
    });
    Some(ProbeKind::Postgres {
        url: url?,
        sql: sql?,
        password_file: password_file?,
    })
}

/// Whether a text is the URL of a database, and holds no password: plans are kept in results.
fn names_a_database(reader: &mut Reader<'_>, field: Field<'_>, shown: &str) -> bool {
    let rest = ["postgres://", "postgresql://"]
        .into_iter()
        .find_map(|scheme| shown.strip_prefix(scheme));
    let problem = match rest {
        None => {
            let message = "this is no address of a PostgreSQL database";
            let example = "postgres = \"postgres://app@{NAME.addr}/shop\"";
            Problem::new(field.span(), message).help(format!("write {example}"))
        }
        Some(rest) if has_password(rest) => {
            let message = "a password does not belong into a file that is kept with each result";
            let help = "give it by the variable PGPASSWORD, or by `password_file`";
            Problem::new(field.span(), message).help(help)
        }
        Some(_) => return true,
    };
    reader.problem(problem);
    false
}

/// Whether `user:secret@host/name`, or `host/name?password=secret`, has a password.
fn has_password(rest: &str) -> bool {
    let (authority, after) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    let query = after.split_once('?').map_or("", |(_, query)| query);
    user.is_some_and(|user| user.contains(':'))
        || query.split('&').any(|pair| pair.starts_with("password="))
}

fn log(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    field: Field<'_>,
    systems: &[FoundSystem],
) -> Option<ProbeKind> {
    let system = super::system(reader, field, systems);
    let pattern = fields
        .require("pattern", "\"text of a line\" or \"/expression/\"", reader)
        .and_then(|field| matcher(reader, field));
    Some(ProbeKind::Log {
        system: system?.system.name.clone(),
        pattern: pattern?,
    })
}
