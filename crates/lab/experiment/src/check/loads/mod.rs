//! `[[load]]`, and `[[probe]]` with a rate: requests that a run sends.

mod answers;
mod arrivals;
mod call;
mod commands;
mod connections;
mod content;
mod language;
mod requests;
mod search;
mod step;

use document::Problem;

use super::entries::Entry;
use super::fields::{Field, Fields};
use super::values::Reader;
use crate::expr::LoadUse;
use crate::names::{Place, stand_in};
use crate::plan::{Load, LoadModel, LoadTls, Period, Segment, Template};
use crate::text::Text;
use lab_load::{GuardLimits, Pace, Protocol, Target};
use units::UnitError;

pub(super) use answers::{assertions, source};
pub(super) use call::{CaptureSource, call_of_fault, calls, keep, kept_names};
pub(super) use content::is_header_name;
pub(super) use search::search;
pub(super) use step::{KnownLoads, loads, run_in};

/// Protocols by the key that names the target, with the schemes that it may have; the
/// first is the usual one.
const PROTOCOLS: [(&str, Protocol, &[&str]); 8] = [
    ("http", Protocol::Http1, &["http", "https"]),
    ("http2", Protocol::Http2, &["http", "https", "h2c", "h2"]),
    ("grpc", Protocol::Grpc, &["grpc", "grpcs", "http", "https"]),
    ("websocket", Protocol::WebSocket, &["ws", "wss"]),
    ("tcp", Protocol::Tcp, &["tcp", "tls"]),
    ("udp", Protocol::Udp, &["udp"]),
    ("redis", Protocol::Redis, &["redis", "rediss"]),
    ("postgres", Protocol::Postgres, &["postgres", "postgresql"]),
];
/// Keys besides those of protocols and of a single request.
const KEYS: [&str; 25] = [
    "name",
    "request",
    "journey",
    "tables",
    "model",
    "arrivals",
    "rate",
    "trace",
    "users",
    "think",
    "connections",
    "max_connections",
    "requests_each",
    "streams",
    "pipeline",
    "connect_to",
    "connect_within",
    "timeout",
    "threads",
    "cpus",
    "pace",
    "tls",
    "password_file",
    "guard",
    "assert",
];
/// Keys of a probe alone.
const OF_PROBES: [&str; 2] = ["from", "to"];

/// A load that may be wrong in parts that others do not refer to.
pub(super) struct Found {
    pub(super) name: String,
    pub(super) is_probe: bool,
    /// `None`: it is wrong, which is told already.
    pub(super) load: Option<Load>,
}

impl Found {
    /// Its name, and where it runs as far as it says so itself.
    pub(super) fn used(&self, steps: &[String]) -> (String, LoadUse) {
        let period = self.load.as_ref().and_then(|load| load.probe.as_ref());
        let mut used = LoadUse {
            probe: self.is_probe,
            ..LoadUse::default()
        };
        if self.is_probe {
            used.steps = period.map_or(steps, |period| period.steps(steps)).to_vec();
        }
        (self.name.clone(), used)
    }
}

/// Whether an open load has such a key.
pub(super) fn is_key(key: &str) -> bool {
    let of_loads = KEYS.into_iter().chain(PROTOCOLS.map(|(key, ..)| key));
    let mut of_loads = of_loads.chain(requests::KEYS).chain(OF_PROBES);
    of_loads.any(|known| known == key)
}

/// Reads a `[[load]]`, or a `[[probe]]` that is an open load. `steps` are the names of all steps, in order.
pub(super) fn load(reader: &mut Reader<'_>, entry: &Entry<'_>, steps: &[String]) -> Option<Found> {
    let is_probe = entry.label == "[[probe]]";
    let load = read(reader, entry, is_probe, steps);
    Some(Found {
        name: entry.name.clone()?,
        is_probe,
        load,
    })
}

fn read(
    reader: &mut Reader<'_>,
    entry: &Entry<'_>,
    is_probe: bool,
    steps: &[String],
) -> Option<Load> {
    let known: Vec<&str> = KEYS
        .into_iter()
        .chain(PROTOCOLS.map(|(key, ..)| key))
        .chain(requests::KEYS)
        .chain(OF_PROBES.into_iter().filter(|_| is_probe))
        .collect();
    let fields = Fields::open(entry.value, entry.label, &known, reader)?;
    entry.refuse_reserved(reader, "load");
    // Each part is read before a missing one ends the reading, so that every problem
    // is found.
    let address = address(reader, &fields);
    let protocol = address.as_ref().map(|address| address.protocol);
    let connect_to = connect_to(reader, &fields);
    let tables = tables(reader, &fields);
    let journeys = requests::journeys(reader, &fields, address.as_ref());
    let model = arrivals::model(reader, &fields, is_probe);
    let connections = connections::read(reader, &fields, model.as_ref(), protocol);
    let timeout = connections::timeout(reader, &fields);
    let pace = pace(reader, &fields, model.as_ref());
    let threads = fields.value_or("threads", 1, |field| reader.count(field, 1..=256));
    let cpus = fields.value_or("cpus", Vec::new(), |field| {
        reader.quantity(field, "processors such as \"0-1\"", units::parse_cpus)
    });
    let tls = tls(reader, &fields);
    let password_file = password_file(reader, &fields, protocol);
    let guard = guard(reader, &fields);
    let probe = match is_probe {
        true => period(reader, &fields, steps).map(Some),
        false => Some(None),
    };
    let (address, journeys) = (address?, journeys?);
    let load = Load {
        name: entry.name.clone()?,
        probe: probe?,
        protocol: address.protocol,
        target: address.target,
        connect_to: connect_to?,
        journeys: journeys.journeys,
        tables: tables?,
        model: model?,
        connections: connections?,
        timeout: timeout?,
        pace: pace?,
        threads: u32::try_from(threads?).ok()?,
        cpus: cpus?,
        tls: tls?,
        password_file: password_file?,
        guard: guard?,
    };
    let files = language::files(&load, &journeys.texts);
    let checked = load.check(&files);
    language::ok_or_report(reader, checked, &address.shown, &journeys.texts).then_some(load)
}

/// Where requests go, taken apart.
struct Address {
    protocol: Protocol,
    /// The key that the protocol is named by.
    key: &'static str,
    /// What stands before the scheme.
    method: Option<Text>,
    /// Scheme, host and port.
    target: Template,
    /// The same, with something in place of references.
    shown: Text,
    /// What follows, in the language of requests: a path, or a command of Redis.
    path: Text,
}

impl Address {
    fn is_https(&self) -> bool {
        self.shown.as_str().starts_with("https://")
    }
}

fn address(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Address> {
    let given: Vec<_> = PROTOCOLS
        .iter()
        .filter_map(|(key, protocol, schemes)| Some((*key, *protocol, *schemes, fields.get(key)?)))
        .collect();
    let (key, protocol, schemes, field) = match given.as_slice() {
        [] => {
            let message = format!("{} needs a target", fields.label);
            let problem = Problem::new(fields.span.clone(), message);
            return reader
                .refuse(problem.help("add for instance http = \"GET http://{NAME.addr}/\""));
        }
        [one] => *one,
        [(first, ..), (second, .., field), ..] => {
            let message = format!("\"{first}\" and \"{second}\" exclude each other");
            return reader.refuse(Problem::new(field.span(), message));
        }
    };
    address_of(reader, field, (key, protocol, schemes))
}

/// The target in a value: a method, if it has any, and a URL.
fn address_of(
    reader: &mut Reader<'_>,
    field: Field<'_>,
    (key, protocol, schemes): (&'static str, Protocol, &[&str]),
) -> Option<Address> {
    let text = reader.verbatim(field, "a target such as \"GET http://{NAME.addr}/\"")?;
    let written = reader.scope.written(&text, &mut reader.problems)?;
    let (method, url) = requests::method(&written);
    let usual = schemes.first().copied().unwrap_or_default();
    let Some(scheme) = url.as_str().find("://") else {
        let message = format!("\"{}\" has no scheme", url.as_str());
        let problem = Problem::new(url.whole(), message);
        return reader.refuse(problem.suggest(format!("{usual}://{}", url.as_str())));
    };
    let given = url.slice(0..scheme);
    if !schemes.contains(&given.as_str()) {
        let message = format!(
            "the scheme of a {key} target cannot be \"{}\"",
            given.as_str()
        );
        let problem = Problem::new(given.whole(), message);
        let known = schemes.iter().copied();
        return reader.refuse(problem.suggest_from(given.as_str(), "schemes", known));
    }
    let (base, path) = match protocol {
        Protocol::Redis | Protocol::Postgres => commands::split(&url),
        _ => {
            let host = scheme + "://".len();
            let end = host + end_of_host(&url.as_str()[host..]);
            (url.slice(0..end), url.slice(end..url.len()))
        }
    };
    let host = reader.scope.request(&base, &mut reader.problems)?;
    let (target, shown) = (host.template, host.text);
    let is_variable = |segment: &Segment| matches!(segment, Segment::Variable(_));
    if target.0.iter().any(is_variable) {
        let message = "variables stand in path, header fields and body, not in the host";
        return reader.refuse(Problem::new(base.whole(), message));
    }
    one_target(reader, &target, &base)?;
    Some(Address {
        protocol,
        key,
        method,
        target,
        shown,
        path,
    })
}

/// Refuses what stands for every copy of a system.
fn one_target(reader: &mut Reader<'_>, target: &Template, written: &Text) -> Option<()> {
    let Some(system) = target.all_of() else {
        return Some(());
    };
    let message = format!("one target is needed, and this is every copy of {system}");
    let problem = Problem::new(written.whole(), message);
    reader.refuse(problem.help(format!(
        "write one for each copy, to {{{system}[0].addr}}, {{{system}[1].addr}} and so on"
    )))
}

/// What connections go to instead of the target.
fn connect_to(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Option<Template>> {
    let Some(field) = fields.get("connect_to") else {
        return Some(None);
    };
    let text = reader.verbatim(field, "a place such as \"10.0.0.7\" or \"{NAME.addr}\"")?;
    let scope = &reader.scope;
    let place = scope.template(&text, Place::Command, &mut reader.problems)?;
    one_target(reader, &place, &text)?;
    if let Err(error) = Target::place(&place.render(stand_in), 1) {
        return reader.refuse(Problem::new(text.whole(), error.message));
    }
    Some(Some(place))
}

/// Where the host of a URL ends, which may hold references.
fn end_of_host(text: &str) -> usize {
    let mut depth = 0_usize;
    let end = text.char_indices().find(|(_, c)| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && matches!(c, '/' | '?' | '#')
    });
    end.map_or(text.len(), |(at, _)| at)
}

/// CSV files by name.
fn tables(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
) -> Option<std::collections::BTreeMap<String, String>> {
    let Some(field) = fields.get("tables") else {
        return Some(std::collections::BTreeMap::new());
    };
    let label = "\"tables\"";
    let table = Fields::open_any(field.value, label, reader)?;
    let mut files = std::collections::BTreeMap::new();
    let mut good = true;
    for (span, field) in table.fields() {
        if let Some(problem) = super::values::name_problem(field.key) {
            reader.problem(Problem::new(span, problem));
            good = false;
            continue;
        }
        match reader.line(field, "the path of a CSV file") {
            Some(path) => drop(files.insert(field.key.to_owned(), path)),
            None => good = false,
        }
    }
    good.then_some(files)
}

fn pace(reader: &mut Reader<'_>, fields: &Fields<'_>, model: Option<&LoadModel>) -> Option<Pace> {
    let is_closed = matches!(model, Some(LoadModel::Closed { .. }));
    let Some(field) = fields.get("pace") else {
        return Some(if is_closed {
            Pace::Coalesce
        } else {
            Pace::Exact
        });
    };
    let pace = reader.quantity(field, "exact, spin, coalesce or \"tick 1ms\"", |text| {
        if let Some(rest) = text.strip_prefix("tick ") {
            let tick = units::parse_duration(rest.trim()).map_err(|error| error.shifted(5))?;
            return match Pace::TICKS.contains(&tick) {
                true => Ok(Pace::Tick(tick)),
                false => Err(UnitError::new(5..text.len(), "a tick is from 10us to 1s")),
            };
        }
        let paces = [
            ("exact", Pace::Exact),
            ("spin", Pace::Spin),
            ("coalesce", Pace::Coalesce),
        ];
        let found = paces.into_iter().find(|(word, _)| *word == text);
        found.map(|(_, pace)| pace).ok_or_else(|| {
            let message = format!("expected exact, spin, coalesce or tick 1ms, found \"{text}\"");
            UnitError::new(0..text.len(), message).meant(text, paces.map(|(word, _)| word))
        })
    })?;
    if pace == Pace::Coalesce && matches!(model, Some(LoadModel::Open { .. })) {
        let message = "only a closed loop coalesces; in an open one it would make requests late";
        return reader.refuse(Problem::new(field.span(), message));
    }
    Some(pace)
}

/// The files of a single question, which has TLS if its address begins with `https`.
pub(super) fn tls_of(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    is_https: Option<bool>,
) -> Option<Option<LoadTls>> {
    let tls = tls(reader, fields);
    match (fields.get("tls"), is_https) {
        (Some(field), Some(false)) => reader.refuse(Problem::new(
            field.span(),
            "\"tls\" goes with an https address",
        )),
        (_, is_https) => Some(is_https.unwrap_or_default().then_some(tls?)),
    }
}

fn tls(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<LoadTls> {
    let Some(field) = fields.get("tls") else {
        return Some(LoadTls::default());
    };
    let known = ["authority", "certificate", "key", "insecure"];
    let table = Fields::open(field.value, "\"tls\"", &known, reader)?;
    let mut file = |key| table.optional(key, |field| reader.template(field, Place::Command));
    let (authority, certificate, key) = (file("authority"), file("certificate"), file("key"));
    let insecure = table.value_or("insecure", false, |field| reader.boolean(field));
    let (certificate, key) = (certificate?, key?);
    if certificate.is_some() != key.is_some() {
        let message = "\"certificate\" and \"key\" belong together";
        return reader.refuse(Problem::new(table.span.clone(), message));
    }
    Some(LoadTls {
        authority: authority?,
        certificate,
        key,
        insecure: insecure?,
    })
}

/// The file that holds the password of a database.
fn password_file(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    protocol: Option<Protocol>,
) -> Option<Option<String>> {
    let Some(field) = fields.get("password_file") else {
        return Some(None);
    };
    if protocol.is_some_and(|protocol| protocol.password_variable().is_none()) {
        let message = "only redis and postgres have a password";
        return reader.refuse(Problem::new(field.span(), message));
    }
    reader.line(field, "the path of a file").map(Some)
}

fn guard(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<GuardLimits> {
    let mut limits = GuardLimits::default();
    let Some(field) = fields.get("guard") else {
        return Some(limits);
    };
    let known = ["late_after", "sent_share", "steal_share", "little"];
    let table = Fields::open(field.value, "\"guard\"", &known, reader)?;
    let mut good = true;
    if let Some(field) = table.get("late_after") {
        let bounds = std::time::Duration::from_micros(1)..=std::time::Duration::from_secs(60);
        match reader.duration(field, bounds) {
            Some(after) => limits.late_after = after,
            None => good = false,
        }
    }
    let shares: [(&str, &mut f64); 3] = [
        ("sent_share", &mut limits.sent_share),
        ("steal_share", &mut limits.steal_share),
        ("little", &mut limits.little),
    ];
    for (key, limit) in shares {
        if let Some(field) = table.get(key) {
            match reader.quantity(field, "a share such as \"2%\"", units::parse_share) {
                Some(share) => *limit = share,
                None => good = false,
            }
        }
    }
    good.then_some(limits)
}

/// The steps that a probe runs in.
fn period(reader: &mut Reader<'_>, fields: &Fields<'_>, steps: &[String]) -> Option<Period> {
    let mut step = |key: &str| match fields.get(key) {
        None => Some(None),
        Some(field) => {
            let text = reader.text(field, "the name of a step")?;
            let at = steps.iter().position(|step| step == text.as_str());
            if at.is_none() {
                let known = steps.iter().map(String::as_str);
                let problem = reader.unknown(&text, "step", "steps", known);
                reader.problem(problem);
            }
            at.map(|at| Some((at, text)))
        }
    };
    let (from, to) = (step("from"), step("to"));
    let (from, to) = (from?, to?);
    if let (Some((first, from)), Some((last, to))) = (&from, &to)
        && first > last
    {
        let message = format!(
            "the step \"{}\" is before \"{}\"",
            to.as_str(),
            from.as_str()
        );
        return reader.refuse(Problem::new(to.whole(), message));
    }
    let name = |step: Option<(usize, Text)>| step.map(|(_, text)| text.as_str().to_owned());
    Some(Period {
        from: name(from),
        to: name(to),
    })
}
