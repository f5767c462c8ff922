//! What `[[system]]` and `[[fleet]]` have in common: a process of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use document::{Problem, Span};
use toml::de::DeValue;

use super::fields::{Field, Fields};
use super::inputs;
use super::values::Reader;
use crate::catalogue::FleetKind;
use crate::expr::{WATCHES, watch_name};
use crate::names::Place;
use crate::plan::{Input, LogFormat, OnExit, Program, Ready, Reference, System, Template, Watch};

/// Wait for readiness when a file does not say.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// Longest wait of any kind.
pub(super) const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);
/// Shortest wait of any kind.
pub(super) const SHORTEST: Duration = Duration::from_millis(1);

/// Keys that systems and fleets have in common.
pub(super) const COMMON: [&str; 17] = [
    "name",
    "args",
    "ready",
    "ready_within",
    "after",
    "count",
    "ports",
    "env",
    "cpus",
    "memory",
    "disk",
    "watch",
    "log",
    "inputs",
    "on_exit",
    "restart_after",
    "needs",
];

/// A system with the places that later checks need.
pub(super) struct Found {
    pub(super) system: System,
    pub(super) span: Span,
    /// The place of each item of `after`.
    pub(super) after: Vec<Span>,
}

/// The words of a builtin's command.
pub(super) fn command_words(command: &str) -> Vec<Template> {
    command.split_whitespace().map(Template::literal).collect()
}

/// What systems and fleets have in common. Its name, program and arguments, and how many there
/// are, the caller adds.
pub(super) fn common(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    kind: Option<&FleetKind>,
) -> Option<Found> {
    // Each key is read before the first missing one ends the reading, so that every
    // problem is found.
    let ready = fields.value_or("ready", kind.and_then(|kind| kind.ready.clone()), |field| {
        ready(reader, field).map(Some)
    });
    let ready_within = fields.value_or("ready_within", READY_WITHIN, |field| {
        reader.duration(field, SHORTEST..=LONGEST)
    });
    let after = after(reader, fields);
    let ports = fields.value_or("ports", Vec::new(), |field| further_ports(reader, field));
    let env = env(reader, fields);
    let cpus = fields.optional("cpus", |field| {
        reader.quantity(field, "processors such as \"0-1\"", units::parse_cpus)
    });
    let memory = fields.optional("memory", |field| {
        reader.quantity(field, "a size such as \"2GiB\"", units::parse_bytes)
    });
    let disk = fields.optional("disk", |field| disk(reader, field));
    let watch = fields.value_or("watch", WATCHES.to_vec(), |field| watch(reader, field));
    let log = fields.value_or("log", LogFormat::Auto, |field| reader.choice(field, &LOGS));
    let inputs = fields.value_or("inputs", Vec::new(), |field| inputs::read(reader, field));
    let on_exit = on_exit(reader, fields);
    let needs = fields.optional("needs", |field| {
        reader.line(field, "the name of a program such as \"nginx\"")
    });
    let (after, after_spans) = after?;
    let system = System {
        name: String::new(),
        program: Program::OwnBinary,
        args: Vec::new(),
        needs: needs?,
        ready: ready?,
        ready_within: ready_within?,
        after,
        count: 1,
        ports: ports?,
        env: env?,
        cpus: cpus?,
        memory_bytes: memory?,
        disk_bytes: disk?,
        watch: watch?,
        log: log?,
        inputs: inputs?,
        on_exit: on_exit?,
        agents: None,
    };
    Some(Found {
        system,
        span: fields.span.clone(),
        after: after_spans,
    })
}

/// Least and most bytes of a copy's own file system. It is memory of this machine.
const LEAST_DISK: u64 = 64 << 10;
const MOST_DISK: u64 = 1 << 40;

/// The size of a copy's own file system.
fn disk(reader: &mut Reader<'_>, field: Field<'_>) -> Option<u64> {
    let bytes = reader.quantity(field, "a size such as \"64MiB\"", units::parse_bytes)?;
    let (span, may_mount) = (field.span(), reader.may_mount);
    if !(LEAST_DISK..=MOST_DISK).contains(&bytes) {
        let problem = Problem::new(span, "a disk has 64KiB to 1TiB");
        return reader.refuse(problem.help("it is kept in memory, so it is better small"));
    }
    if !may_mount {
        let message = "a disk is a file system that is mounted, which this user may not do here";
        let problem = Problem::new(span, message);
        reader.problem(problem.help("run as root, or in a container that has CAP_SYS_ADMIN"));
    }
    Some(bytes)
}

/// Who refers to its disk has one.
pub(super) fn check_disk(reader: &mut Reader<'_>, fields: &Fields<'_>, system: &System) {
    let inputs = system.inputs.iter().flat_map(Input::templates);
    let mut references = system.texts().chain(inputs).flat_map(Template::references);
    if system.disk_bytes.is_none() && references.any(|one| *one == Reference::OwnDisk) {
        let span = fields
            .get("run")
            .map_or(fields.span.clone(), |field| field.span());
        let problem = Problem::new(span, "it refers to its {disk}, and has none");
        reader.problem(problem.help("add disk = \"64MiB\", the size of a file system of its own"));
    }
}

/// Pause before a process is started again, when a file does not say.
const RESTART_AFTER: Duration = Duration::from_secs(1);
/// Shortest pause: what ends at once would be started without end.
const SOONEST: Duration = Duration::from_millis(10);

/// `on_exit` and `restart_after`.
fn on_exit(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<OnExit> {
    let choices = [
        ("error", OnExit::Error),
        ("expected", OnExit::Expected),
        ("restart", OnExit::Restart(RESTART_AFTER)),
    ];
    let on_exit = fields.value_or("on_exit", OnExit::Error, |field| {
        reader.choice(field, &choices)
    });
    let Some(field) = fields.get("restart_after") else {
        return on_exit;
    };
    let after = reader.duration(field, SOONEST..=LONGEST);
    match on_exit? {
        OnExit::Restart(_) => after.map(OnExit::Restart),
        _ => {
            let problem = Problem::new(field.span(), "nothing would be started again");
            reader.refuse(problem.help("add on_exit = \"restart\""))
        }
    }
}

/// Names of the forms of a log.
const LOGS: [(&str, LogFormat); 5] = [
    ("auto", LogFormat::Auto),
    ("lager", LogFormat::Lager),
    ("json", LogFormat::Json),
    ("logfmt", LogFormat::Logfmt),
    ("text", LogFormat::Text),
];

fn ready(reader: &mut Reader<'_>, field: Field<'_>) -> Option<Ready> {
    let text = reader.text(field, "\"tcp\", \"http /path\" or \"log some text\"")?;
    let (word, rest) = text.as_str().split_once(' ').unwrap_or((text.as_str(), ""));
    let rest = rest.trim();
    let problem = match (word, rest) {
        ("tcp", "") => return Some(Ready::Tcp),
        ("http", path) if path.starts_with('/') && !path.contains(char::is_whitespace) => {
            return Some(Ready::Http(path.to_owned()));
        }
        ("log", text) if !text.is_empty() => return Some(Ready::Log(text.to_owned())),
        ("tcp", _) => "tcp takes nothing more",
        ("http", _) => "http needs a path, as in \"http /health\"",
        ("log", _) => "log needs the text to wait for, as in \"log listening\"",
        _ => {
            let at = text.slice(0..word.len());
            return reader.refuse(reader.unknown(
                &at,
                "signal of readiness",
                "signals of readiness",
                ["tcp", "http", "log"],
            ));
        }
    };
    reader.refuse(Problem::new(text.whole(), problem))
}

/// Most further ports of one copy.
const MOST_PORTS: usize = 16;

fn further_ports(reader: &mut Reader<'_>, field: Field<'_>) -> Option<Vec<String>> {
    let expected = "a list of names such as [\"status\"]";
    let names = reader.lines(field, expected)?;
    let is_word = |name: &String| {
        name.chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
    };
    let problem = if names.len() > MOST_PORTS {
        format!("a system has at most {MOST_PORTS} further ports")
    } else if let Some(name) = names.iter().find(|name| !is_word(name)) {
        format!("a port's name consists of letters, digits, - and _, found \"{name}\"")
    } else if let Some(at) = (1..names.len()).find(|&at| names[..at].contains(&names[at])) {
        format!("\"{}\" is named twice", names[at])
    } else {
        return Some(names);
    };
    reader.refuse(Problem::new(field.span(), problem))
}

/// The name of a system that must exist.
pub(super) fn system_name(reader: &mut Reader<'_>, field: Field<'_>) -> Option<String> {
    let text = reader.text(field, "the name of a system")?;
    if !reader
        .scope
        .systems
        .iter()
        .any(|known| known == text.as_str())
    {
        let known: Vec<&str> = reader.scope.systems.iter().map(String::as_str).collect();
        let problem = reader.unknown(&text, "system", "systems", known);
        return reader.refuse(problem);
    }
    Some(text.as_str().to_owned())
}

fn after(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<(Vec<String>, Vec<Span>)> {
    let Some(field) = fields.get("after") else {
        return Some(Default::default());
    };
    let items = reader.list(field, "a list of systems such as [\"db\"]")?;
    let mut names = Vec::new();
    let mut spans = Vec::new();
    let mut good = true;
    for item in items {
        match system_name(reader, item) {
            Some(name) if names.contains(&name) => {
                reader.problem(Problem::new(
                    item.span(),
                    format!("\"{name}\" is named twice"),
                ));
            }
            Some(name) => {
                names.push(name);
                spans.push(item.span());
            }
            None => good = false,
        }
    }
    good.then_some((names, spans))
}

fn env(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<BTreeMap<String, Template>> {
    let Some(field) = fields.get("env") else {
        return Some(BTreeMap::new());
    };
    let table = Fields::open_any(field.value, "\"env\"", reader)?;
    let mut env = BTreeMap::new();
    let mut good = true;
    for (span, field) in table.fields() {
        if field.key.is_empty() || field.key.contains(['=', '\0']) {
            let message = format!("\"{}\" cannot name a variable", field.key.escape_debug());
            reader.problem(Problem::new(span, message));
            good = false;
            continue;
        }
        let value = match field.value.get_ref() {
            DeValue::Integer(number) => Some(Template::literal(number.to_string())),
            DeValue::Boolean(value) => Some(Template::literal(value.to_string())),
            _ => reader.template(field, Place::System),
        };
        match value {
            Some(value) => drop(env.insert(field.key.to_owned(), value)),
            None => good = false,
        }
    }
    good.then_some(env)
}

fn watch(reader: &mut Reader<'_>, field: Field<'_>) -> Option<Vec<Watch>> {
    let items = reader.list(field, "a list such as [\"cpu\", \"rss\"]")?;
    let choices = WATCHES.map(|watch| (watch_name(watch), watch));
    let mut watched = Vec::new();
    let mut good = true;
    for item in items {
        if let DeValue::String(text) = item.value.get_ref()
            && let Some(word @ ("prom" | "pprof")) = text.split_whitespace().next()
        {
            let message = format!("watching \"{word}\" is not supported by this version");
            reader.problem(Problem::new(item.span(), message));
            good = false;
            continue;
        }
        match reader.choice(item, &choices) {
            Some(watch) => watched.push(watch),
            None => good = false,
        }
    }
    watched.sort_unstable();
    watched.dedup();
    good.then_some(watched)
}

/// A system that is ready when its port answers must be told its port.
pub(super) fn check_port(reader: &mut Reader<'_>, fields: &Fields<'_>, system: &System) {
    if !matches!(system.ready, Some(Ready::Tcp | Ready::Http(_))) {
        return;
    }
    let told = system
        .texts()
        .flat_map(Template::references)
        .any(|reference| matches!(reference, Reference::OwnPort | Reference::OwnAddr));
    if !told {
        let span = fields
            .get("ready")
            .map_or(fields.span.clone(), |field| field.span());
        reader.problem(
            Problem::new(
                span,
                "it is ready when its port answers, but nothing tells it its port",
            )
            .help("hand it {port} or {addr} among its arguments or in env"),
        );
    }
}
