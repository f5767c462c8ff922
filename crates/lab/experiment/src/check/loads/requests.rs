//! What a load asks: one request, kinds of request, journeys.

use std::time::Duration;

use document::Problem;

use super::super::fields::{Field, Fields};
use super::super::values::{Reader, all, name_problem};
use super::content::{body, headers};
use super::{Address, answers, commands};
use crate::plan::{Journey, Request, Segment, Template};
use crate::text::Text;
use lab_load::Protocol;
use lab_load::request::{AnswerEnd, Assertion};

/// Keys of a request that a load can have itself.
pub(super) const KEYS: [&str; 5] = ["header", "body", "body_file", "answer", "sql"];
/// Most requests of a load, over all journeys.
const MOST: usize = 1_000;
/// Longest pause between two requests of a journey.
const LONGEST_THINK: Duration = Duration::from_secs(3600);

/// What a load asks, with every text of the language of requests.
pub(super) struct LoadRequests {
    pub(super) journeys: Vec<Journey>,
    pub(super) texts: Vec<Text>,
}

/// What the requests of a load have in common.
struct Common<'a> {
    address: &'a Address,
    headers: Vec<(String, Template)>,
    assertions: Vec<Assertion>,
    answer: Option<AnswerEnd>,
    texts: Vec<Text>,
    /// Names of requests so far.
    names: Vec<String>,
}

/// Splits what may stand before a URL or a path from it.
pub(super) fn method(text: &Text) -> (Option<Text>, Text) {
    let trimmed = text.as_str().trim_start();
    let start = text.len() - trimmed.len();
    let word = trimmed.find(char::is_whitespace).unwrap_or(0);
    let is_method = word > 0 && trimmed[..word].bytes().all(|b| b.is_ascii_alphabetic());
    if !is_method {
        return (None, text.slice(start..text.len()));
    }
    let rest = trimmed[word..].trim_start();
    let at = text.len() - rest.len();
    (
        Some(text.slice(start..start + word)),
        text.slice(at..text.len()),
    )
}

/// A method of HTTP.
pub(super) fn of_http(reader: &mut Reader<'_>, given: &Text) -> Option<String> {
    let method = given.as_str();
    if method.bytes().any(|b| b.is_ascii_lowercase()) {
        let message = format!("methods are written in capitals, found \"{method}\"");
        let problem = Problem::new(given.whole(), message);
        return reader.refuse(problem.suggest(method.to_ascii_uppercase()));
    }
    Some(method.to_owned())
}

/// What follows the host of a URL, in the language of requests.
pub(super) fn path_of_url(
    reader: &mut Reader<'_>,
    path: &Text,
    texts: &mut Vec<Text>,
) -> Option<Template> {
    let language = reader.scope.request(path, &mut reader.problems)?;
    texts.push(language.text);
    Some(language.template)
}

/// Reads what a load asks.
pub(super) fn journeys(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    address: Option<&Address>,
) -> Option<LoadRequests> {
    let mut texts = Vec::new();
    let headers = headers(reader, fields, &mut texts);
    let assertions = answers::assertions(reader, fields, &mut texts);
    let answer = fields.optional("answer", |field| answers::end(reader, field));
    let address = address?;
    let mut common = Common {
        address,
        headers: headers?,
        assertions: assertions?,
        answer: answer?,
        texts,
        names: Vec::new(),
    };
    let (kinds, sequences) = (fields.get("request"), fields.get("journey"));
    let journeys = match (kinds, sequences) {
        (None, None) => vec![common.only(reader, fields)?],
        _ => {
            common.has_no_own(reader, fields)?;
            let kinds = kinds.map(|field| common.kinds(reader, field));
            let sequences = sequences.map(|field| common.sequences(reader, field));
            let mut journeys = kinds.unwrap_or(Some(Vec::new()))?;
            journeys.extend(sequences.unwrap_or(Some(Vec::new()))?);
            journeys
        }
    };
    let steps: usize = journeys.iter().map(|journey| journey.requests.len()).sum();
    if steps == 0 || steps > MOST {
        let message = format!("a load has 1 to {MOST} requests, this has {steps}");
        return reader.refuse(Problem::new(fields.span.clone(), message));
    }
    Some(LoadRequests {
        journeys,
        texts: common.texts,
    })
}

impl Common<'_> {
    fn is_http(&self) -> bool {
        matches!(self.address.protocol, Protocol::Http1 | Protocol::Http2)
    }

    /// The only request, whose parts stand in the load itself.
    fn only(&mut self, reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Journey> {
        let (body, path) = match self.address.protocol {
            Protocol::Redis => {
                let given = Some(&self.address.path);
                let command = commands::command(reader, fields, given, &mut self.texts);
                (command, Some(Template::default()))
            }
            Protocol::Postgres => {
                let behind = &self.address.path;
                let statement = commands::statement(reader, fields, behind, &mut self.texts);
                (statement, Some(Template::default()))
            }
            _ => {
                commands::no_statement(reader, fields)?;
                let body = body(reader, fields, &mut self.texts);
                (body, self.path(reader, &self.address.path))
            }
        };
        let method = self.method(reader, self.address.method.as_ref());
        let answer = self.answer(reader, fields, None);
        let (body, method, path, answer) = (body?, method?, path?, answer?);
        Some(Journey {
            name: "request".to_owned(),
            weight: 1.0,
            requests: vec![Request {
                name: "request".to_owned(),
                method,
                path,
                headers: self.headers.clone(),
                body,
                think: Duration::ZERO,
                take: Vec::new(),
                assertions: self.assertions.clone(),
                answer,
            }],
        })
    }

    /// Where requests are told one by one, the load itself says only where they go.
    fn has_no_own(&self, reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<()> {
        let mut good = true;
        for field in ["body", "body_file", "sql"]
            .iter()
            .filter_map(|key| fields.get(key))
        {
            let message = format!("\"{}\" belongs to one of the requests", field.key);
            reader.problem(Problem::new(field.span(), message));
            good = false;
        }
        let address = self.address;
        let own = match (&address.method, address.path.as_str()) {
            (Some(method), _) => Some(method.whole()),
            (None, "" | "/") => None,
            _ => Some(address.path.whole()),
        };
        if let Some(span) = own {
            let message = "the requests of this load say what is asked";
            let problem = Problem::new(span, message);
            let help = format!(
                "write the target only, {} = \"{}\"",
                address.key, address.target
            );
            reader.problem(problem.help(help));
            good = false;
        }
        good.then_some(())
    }

    /// `request`: kinds of request, each a journey of its own.
    fn kinds(&mut self, reader: &mut Reader<'_>, field: Field<'_>) -> Option<Vec<Journey>> {
        let items = tables(
            reader,
            field,
            "requests such as { name = \"read\", http = \"GET /\" }",
        )?;
        all(items.into_iter().map(|item| {
            let fields = self.open(reader, item, &["weight"], "\"request\"")?;
            let weight = weight(reader, &fields);
            let request = self.request(reader, &fields);
            let (weight, request) = (weight?, request?);
            Some(Journey {
                name: request.name.clone(),
                weight,
                requests: vec![request],
            })
        }))
    }

    /// `journey`: several requests in a row by the same user.
    fn sequences(&mut self, reader: &mut Reader<'_>, field: Field<'_>) -> Option<Vec<Journey>> {
        let items = tables(
            reader,
            field,
            "journeys such as { name = \"buy\", request = [...] }",
        )?;
        all(items.into_iter().map(|item| self.sequence(reader, item)))
    }

    fn sequence(&mut self, reader: &mut Reader<'_>, item: Field<'_>) -> Option<Journey> {
        let known = ["name", "weight", "request"];
        let fields = Fields::open(item.value, "\"journey\"", &known, reader)?;
        let name = fields
            .require("name", "\"...\"", reader)
            .and_then(|field| reader.name(field));
        let weight = weight(reader, &fields);
        let example = "[{ name = \"...\", http = \"GET /\" }], its requests in order";
        let requests = fields
            .require("request", example, reader)
            .and_then(|field| tables(reader, field, "requests in order"));
        let mut read: Vec<Option<Request>> = Vec::new();
        for item in requests.into_iter().flatten() {
            let request = self
                .open(reader, item, &["take", "think"], "\"request\"")
                .and_then(|fields| self.request(reader, &fields));
            read.push(request);
            // Also what a request takes that is wrong otherwise has a name.
            let table = item.value.get_ref().as_table();
            let take = table.and_then(|table| table.get("take")?.get_ref().as_table());
            let names = take.into_iter().flat_map(|take| take.keys());
            let names = names.map(|name| name.get_ref().to_string());
            reader.scope.taken.extend(names);
        }
        reader.scope.taken.clear();
        let requests: Option<Vec<Request>> = read.into_iter().collect();
        Some(Journey {
            name: name?,
            weight: weight?,
            requests: requests?,
        })
    }

    fn open<'t>(
        &self,
        reader: &mut Reader<'_>,
        item: Field<'t>,
        more: &[&str],
        label: &'t str,
    ) -> Option<Fields<'t>> {
        let known: Vec<&str> = ["name", self.address.key, "assert"]
            .into_iter()
            .chain(more.iter().copied())
            .chain(KEYS)
            .collect();
        Fields::open(item.value, label, &known, reader)
    }

    fn request(&mut self, reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Request> {
        let name = fields.require("name", "\"...\"", reader).and_then(|field| {
            let name = reader.name(field)?;
            if self.names.contains(&name) {
                let message = format!("another request of this load is called \"{name}\"");
                return reader.refuse(Problem::new(field.span(), message));
            }
            self.names.push(name.clone());
            Some(name)
        });
        let (asks, body) = match self.address.protocol {
            Protocol::Redis => {
                let expected = "a command such as \"GET key:{seq}\"";
                let given = fields
                    .require("redis", "\"GET key\"", reader)
                    .and_then(|field| reader.verbatim(field, expected));
                let command = given.and_then(|given| {
                    commands::command(reader, fields, Some(&given), &mut self.texts)
                });
                (Some((String::new(), Template::default())), command)
            }
            Protocol::Postgres => {
                let behind = &self.address.path;
                let statement = commands::statement(reader, fields, behind, &mut self.texts);
                (Some((String::new(), Template::default())), statement)
            }
            _ => {
                commands::no_statement(reader, fields)?;
                let asks = self.method_and_path(reader, fields);
                (asks, body(reader, fields, &mut self.texts))
            }
        };
        let mut own = Vec::new();
        let headers = headers(reader, fields, &mut own);
        self.texts.extend(own);
        let think = fields.value_or("think", Duration::ZERO, |field| {
            reader.duration(field, Duration::ZERO..=LONGEST_THINK)
        });
        let take = answers::take(reader, fields, &mut self.texts);
        let assertions = match fields.get("assert") {
            Some(_) => answers::assertions(reader, fields, &mut self.texts),
            None => Some(self.assertions.clone()),
        };
        let answer = self.answer(reader, fields, self.answer.clone());
        let (method, path) = asks?;
        let headers = headers?;
        // A request's own field takes the place of the load's.
        let replaced = |name: &str| {
            headers
                .iter()
                .any(|(own, _)| own.eq_ignore_ascii_case(name))
        };
        let inherited = self.headers.iter().filter(|(name, _)| !replaced(name));
        let headers = inherited.cloned().chain(headers.iter().cloned()).collect();
        Some(Request {
            name: name?,
            method,
            path,
            headers,
            body: body?,
            think: think?,
            take: take?,
            assertions: assertions?,
            answer: answer?,
        })
    }

    /// Method and path of one of several requests.
    fn method_and_path(
        &mut self,
        reader: &mut Reader<'_>,
        fields: &Fields<'_>,
    ) -> Option<(String, Template)> {
        let key = self.address.key;
        let needs_path = matches!(
            self.address.protocol,
            Protocol::Http1 | Protocol::Http2 | Protocol::Grpc
        );
        if !needs_path {
            if let Some(field) = fields.get(key) {
                let message = format!("a {key} exchange has no path; give it a body");
                return reader.refuse(Problem::new(field.span(), message));
            }
            return Some((String::new(), Template::default()));
        }
        let example = match self.is_http() {
            true => "\"GET /path\"",
            false => "\"/package.Service/Method\"",
        };
        let field = fields.require(key, example, reader)?;
        let text = reader.verbatim(field, &format!("a request such as {example}"))?;
        let written = reader.scope.written(&text, &mut reader.problems)?;
        let (method, path) = self::method(&written);
        // Behind the slash an address is an argument.
        if !path.as_str().starts_with('/') {
            let problem = match path.as_str().contains("://") {
                true => {
                    let message = "all requests of a load go to the same target";
                    let problem = Problem::new(path.whole(), message);
                    problem.help("write the path only, and the target in the load")
                }
                false => {
                    let message = format!("a path begins with /, found \"{}\"", path.as_str());
                    Problem::new(path.whole(), message)
                }
            };
            return reader.refuse(problem);
        }
        let method = self.method(reader, method.as_ref());
        let path = self.path(reader, &path);
        Some((method?, path?))
    }

    fn method(&self, reader: &mut Reader<'_>, given: Option<&Text>) -> Option<String> {
        let Some(given) = given else {
            return Some(if self.is_http() { "GET" } else { "" }.to_owned());
        };
        if !self.is_http() {
            let method = given.as_str();
            let message = format!("{} has no methods such as {method}", self.address.key);
            return reader.refuse(Problem::new(given.whole(), message));
        }
        of_http(reader, given)
    }

    fn path(&mut self, reader: &mut Reader<'_>, path: &Text) -> Option<Template> {
        match self.address.protocol {
            Protocol::Tcp | Protocol::Udp if !matches!(path.as_str(), "" | "/") => {
                let message = format!("a {} exchange has no path", self.address.key);
                return reader.refuse(Problem::new(path.whole(), message));
            }
            Protocol::Tcp | Protocol::Udp => return Some(Template::default()),
            Protocol::Grpc if path.as_str().split('/').count() != 3 => {
                let message = "gRPC needs a service and a method";
                let problem = Problem::new(path.whole(), message);
                return reader.refuse(problem.help("write them as /package.Service/Method"));
            }
            _ => {}
        }
        let mut template = path_of_url(reader, path, &mut self.texts)?;
        // `http://host?query` asks for the root.
        if !path.as_str().starts_with('/') {
            template.0.insert(0, Segment::Text("/".to_owned()));
        }
        Some(template)
    }

    /// How the end of an answer is told, which TCP alone needs to know.
    fn answer(
        &self,
        reader: &mut Reader<'_>,
        fields: &Fields<'_>,
        inherited: Option<AnswerEnd>,
    ) -> Option<AnswerEnd> {
        let is_tcp = self.address.protocol == Protocol::Tcp;
        match fields.get("answer") {
            Some(field) if !is_tcp => {
                let message = format!("{} itself tells where an answer ends", self.address.key);
                reader.refuse(Problem::new(field.span(), message))
            }
            Some(field) => answers::end(reader, field),
            None if is_tcp && inherited.is_none() => {
                let example = "\"echo\", \"close\", \"bytes 64\" or 'delimiter \\n'";
                fields.require("answer", example, reader);
                None
            }
            None => Some(inherited.unwrap_or(AnswerEnd::Close)),
        }
    }
}

/// The tables of a list.
fn tables<'t>(reader: &mut Reader<'_>, field: Field<'t>, expected: &str) -> Option<Vec<Field<'t>>> {
    let items = reader.list(field, &format!("a list of {expected}"))?;
    if items.is_empty() {
        let message = format!("\"{}\" is empty", field.key);
        return reader.refuse(Problem::new(field.span(), message));
    }
    Some(items)
}

/// How often one of several is chosen.
fn weight(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<f64> {
    let fits = |weight: f64| weight.is_finite() && weight > 0.0;
    fields.value_or("weight", 1.0, |field| {
        reader.number(field, "a number above 0", fits)
    })
}

/// Why a text cannot name a value that is taken from an answer.
pub(super) fn taken_name_problem(reader: &Reader<'_>, name: &str) -> Option<String> {
    name_problem(name).or_else(|| {
        let constants = &reader.scope.constants;
        let means_else = constants.contains_key(name) || crate::names::means_something(name);
        means_else.then(|| format!("{{{name}}} means something else; choose another name"))
    })
}
