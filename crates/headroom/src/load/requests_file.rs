//! Kinds of requests and journeys from a TOML file. `docs/load.md` describes it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use lab_load::request::{
    AnswerEnd, Assertion, Body, Journey, Mix, Step, Table, Take, parse_header,
};
use lab_load::{Protocol, Target};
use serde::Deserialize;
use units::parse_duration;

use super::plan::{read, read_text, shown};

const FILE_BYTES: u64 = 4 << 20;
const TABLE_BYTES: u64 = 256 << 20;
const BODY_BYTES: u64 = 16 << 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    request: Vec<Kind>,
    #[serde(default)]
    journey: Vec<JourneyTable>,
    /// Files of comma-separated values, by the name that templates use.
    #[serde(default)]
    tables: BTreeMap<String, PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kind {
    name: String,
    #[serde(default = "one")]
    weight: f64,
    #[serde(default)]
    http: String,
    /// A command.
    redis: Option<String>,
    /// A statement.
    sql: Option<String>,
    #[serde(default)]
    header: Vec<String>,
    body: Option<String>,
    body_file: Option<PathBuf>,
    #[serde(default)]
    assert: Vec<String>,
    #[serde(default)]
    take: Vec<String>,
    think: Option<String>,
    answer: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct JourneyTable {
    name: String,
    #[serde(default = "one")]
    weight: f64,
    step: Vec<Kind>,
}

const fn one() -> f64 {
    1.0
}

/// Reads a file of requests.
fn read_mix(path: &Path, protocol: Protocol) -> Result<Mix> {
    let text = read_text(path, FILE_BYTES, "the requests file")?;
    // The library's message has line, column and caret.
    let file: File =
        toml::from_str(&text).map_err(|error| anyhow!("{}\n{error}", path.display()))?;
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let mut mix = Mix::default();
    for kind in file.request {
        if kind.think.is_some() || !kind.take.is_empty() {
            bail!(
                "request \"{}\": think and take are for the steps of a journey",
                kind.name
            );
        }
        let (name, weight) = (kind.name.clone(), kind.weight);
        let steps = vec![step(kind, folder, protocol)?];
        mix.journeys.push(Journey {
            name,
            weight,
            steps,
        });
    }
    for journey in file.journey {
        let steps = journey
            .step
            .into_iter()
            .map(|kind| step(kind, folder, protocol));
        mix.journeys.push(Journey {
            steps: steps.collect::<Result<_>>()?,
            name: journey.name,
            weight: journey.weight,
        });
    }
    if mix.journeys.is_empty() {
        bail!(
            "{}: expected at least one [[request]] or [[journey]]",
            path.display()
        );
    }
    for (name, file) in file.tables {
        let file = folder.join(file);
        let reading = || format!("read the table {name} from {}", file.display());
        let bytes = read(&file, TABLE_BYTES, "the table")?;
        let text = String::from_utf8(bytes).with_context(reading)?;
        mix.tables
            .insert(name.clone(), Table::parse(&text).with_context(reading)?);
    }
    Ok(mix)
}

/// As [`read_mix`]; every path must be one of the target's.
pub(super) fn read_requests(path: &Path, target: &Target) -> Result<Mix> {
    let mix = read_mix(path, target.protocol)?;
    let mut steps = mix.journeys.iter().flat_map(|journey| &journey.steps);
    if let Some(step) = steps.find(|step| step.path.contains("://")) {
        bail!(
            "request \"{}\": \"{}\" has a host; requests of a file go to {}, so write the path \
             only",
            step.name,
            step.path,
            target.authority
        );
    }
    Ok(mix)
}

/// Of the protocol of the target: a command is nothing to a server of HTTP.
fn check_asked(kind: &Kind, protocol: Protocol) -> Result<()> {
    let meant = match protocol {
        Protocol::Redis => "redis",
        Protocol::Postgres => "sql",
        _ => "http",
    };
    let asked = [("redis", kind.redis.is_some()), ("sql", kind.sql.is_some())];
    match asked.iter().find(|(key, given)| *given && *key != meant) {
        Some((key, _)) => bail!(
            "request \"{}\": {key} is not for this target; expected {meant}",
            kind.name
        ),
        None => Ok(()),
    }
}

fn step(kind: Kind, folder: &Path, protocol: Protocol) -> Result<Step> {
    check_asked(&kind, protocol)?;
    // A path may have spaces: within a variable.
    let (method, path) = match kind.http.trim().split_once(' ') {
        Some((method, path)) if !method.contains('/') => (method.to_uppercase(), path.trim()),
        _ => (String::new(), kind.http.trim()),
    };
    let named = |what: &str| format!("request \"{}\", {what}", kind.name);
    let asked = kind.redis.is_some() || kind.sql.is_some();
    let else_given = !kind.http.is_empty() || kind.body.is_some();
    if (asked && else_given) || (kind.redis.is_some() && kind.sql.is_some()) {
        bail!(
            "{}",
            named("redis or sql is all that is asked; leave the others out")
        );
    }
    let body = match (kind.redis.or(kind.sql).or(kind.body), kind.body_file) {
        (Some(_), Some(_)) => bail!("{}", named("body and body_file: one of them")),
        (Some(text), None) => Body::Template(text),
        (None, Some(file)) => Body::Bytes(read(&folder.join(file), BODY_BYTES, "the body")?),
        (None, None) => Body::Empty,
    };
    let method = match (method.as_str(), &body) {
        ("", Body::Empty) if !path.is_empty() => "GET".to_owned(),
        ("", _) if !path.is_empty() => "POST".to_owned(),
        _ => method,
    };
    let mut step = Step::new(&kind.name, &method, path);
    step.body = body;
    for text in &kind.header {
        let field = parse_header(text).map_err(|error| shown(&error));
        step.headers.push(field.with_context(|| named("header"))?);
    }
    for text in &kind.assert {
        let assertion = Assertion::parse(text).map_err(|error| shown(&error));
        step.assertions
            .push(assertion.with_context(|| named("assert"))?);
    }
    for text in &kind.take {
        let take = Take::parse(text).map_err(|error| shown(&error));
        step.take.push(take.with_context(|| named("take"))?);
    }
    if let Some(text) = &kind.think {
        step.think = parse_duration(text).with_context(|| named("think"))?;
    }
    if let Some(text) = &kind.answer {
        let end = AnswerEnd::parse(text).map_err(|error| shown(&error));
        step.answer = end.with_context(|| named("answer"))?;
    }
    Ok(step)
}
