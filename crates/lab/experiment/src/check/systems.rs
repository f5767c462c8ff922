//! `[[system]]` and `[[fleet]]`: the processes of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use toml::de::DeValue;

use super::entries::Entry;
use super::fields::{Field, Fields};
use super::settings::{self, MOST};
use super::values::{Reader, parse_cpus};
use crate::catalogue::{Catalogue, FleetKind, SettingValue};
use crate::diagnostic::Problem;
use crate::expr::{WATCHES, watch_name};
use crate::names::Place;
use crate::plan::{LogFormat, Program, Ready, Reference, Segment, System, Template, Watch};
use crate::text::{Span, Text};
use crate::units;
use crate::words;

/// Most copies of one system.
const MOST_COPIES: u64 = 1_000;
/// Wait for readiness when a file does not say.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// Longest wait of any kind.
pub(super) const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);
/// Shortest wait of any kind.
pub(super) const SHORTEST: Duration = Duration::from_millis(1);

/// Keys that systems and fleets have in common.
const COMMON: [&str; 11] = [
    "name",
    "args",
    "ready",
    "ready_within",
    "after",
    "count",
    "env",
    "cpus",
    "memory",
    "watch",
    "log",
];

/// A system with the places that later checks need.
pub(super) struct Found {
    pub(super) system: System,
    pub(super) span: Span,
    /// The place of each item of `after`.
    pub(super) after: Vec<Span>,
}

/// Reads a `[[system]]`.
pub(super) fn system(
    reader: &mut Reader<'_>,
    entry: &Entry<'_>,
    catalogue: &Catalogue,
) -> Option<Found> {
    let known: Vec<&str> = COMMON.into_iter().chain(["run", "builtin"]).collect();
    let fields = Fields::open(entry.value, entry.label, &known, &[], &mut reader.problems)?;
    let common = common(reader, &fields, None);
    let count = fields
        .get("count")
        .map_or(Some(1), |field| reader.count(field, 1..=MOST_COPIES));
    let command = match (fields.get("run"), fields.get("builtin")) {
        (Some(run), None) => {
            if let Some(args) = fields.get("args") {
                let problem = Problem::new(args.span(), "\"args\" goes with \"builtin\"");
                reader.problem(problem.help("put the arguments into \"run\", after the program"));
            }
            let program = reader.program(run, Place::System);
            program.map(|(program, args)| (Program::Path(program), args))
        }
        (None, Some(name)) => builtin(reader, name, fields.get("args"), catalogue),
        (None, None) => {
            let message = format!("{} needs \"run\" or \"builtin\"", entry.label);
            reader.problem(
                Problem::new(fields.span.clone(), message)
                    .help("run = \"program and arguments\" starts any program"),
            );
            None
        }
        (Some(_), Some(builtin)) => {
            let message = "\"run\" and \"builtin\" exclude each other";
            reader.problem(Problem::new(builtin.span(), message));
            None
        }
    };
    let (program, args) = command?;
    let (common, name) = (common?, entry.name.clone()?);
    check_port(reader, &fields, &common, &program, &args);
    let count = u32::try_from(count?).ok()?;
    Some(common.into_found(name, program, args, count, None, fields.span))
}

fn builtin(
    reader: &mut Reader<'_>,
    name: Field<'_>,
    args: Option<Field<'_>>,
    catalogue: &Catalogue,
) -> Option<(Program, Vec<Template>)> {
    // Read first, so that problems in both are found.
    let words = args.map_or(Some(Vec::new()), |args| reader.command(args, Place::System));
    let text = reader.text(name, "a name of a builtin")?;
    let Some(builtin) = catalogue
        .builtins
        .iter()
        .find(|known| known.command == text.as_str())
    else {
        let known = catalogue
            .builtins
            .iter()
            .map(|builtin| builtin.command.as_str());
        reader.problem(reader.unknown(&text, "builtin", "builtins", known));
        return None;
    };
    let words = words?;
    settings::check_flags(reader, &words, builtin);
    let mut all = command_words(&builtin.command);
    all.extend(words.into_iter().map(|word| word.filled));
    Some((Program::OwnBinary, all))
}

/// Reads a `[[fleet]]`: many agents in one process.
pub(super) fn fleet(
    reader: &mut Reader<'_>,
    entry: &Entry<'_>,
    catalogue: &Catalogue,
    seed: u64,
) -> Option<Found> {
    let known: Vec<&str> = COMMON.into_iter().chain(["kind", "talk_to"]).collect();
    let fields = Fields::open_any(entry.value, entry.label, &mut reader.problems)?;
    let kind = fields
        .require(
            "kind",
            "\"...\", one of the kinds of agent",
            &mut reader.problems,
        )
        .and_then(|field| reader.text(field, "a kind of agent"));
    let kind = kind.and_then(|text| {
        let found = catalogue
            .fleets
            .iter()
            .find(|kind| kind.kind == text.as_str());
        if found.is_none() {
            let known = catalogue.fleets.iter().map(|kind| kind.kind.as_str());
            reader.problem(reader.unknown(&text, "kind of agent", "kinds of agent", known));
        }
        found
    });
    let common = common(reader, &fields, kind);
    let agents = fields
        .require("count", "100", &mut reader.problems)
        .and_then(|field| reader.count(field, 1..=MOST));
    let words = fields.get("args").map_or(Some(Vec::new()), |field| {
        reader.command(field, Place::System)
    });
    let talk_to = fields.get("talk_to").map_or(Some(None), |field| {
        system_name(reader, field).map(|name| Some((name, field.span())))
    });
    // Without the kind nothing is known about the other keys.
    let kind = kind?;
    let settings = settings::read(reader, &fields, &known, &[], &kind.settings);
    let (words, mut common, talk_to, agents) = (words?, common?, talk_to?, agents?);
    if let Some(builtin) = catalogue
        .builtins
        .iter()
        .find(|known| known.command == kind.builtin)
    {
        settings::check_flags(reader, &words, builtin);
    }

    let mut args = command_words(&kind.builtin);
    args.extend(fixed_words(&kind.args, None));
    args.extend(["--count".to_owned(), agents.to_string()].map(Template::literal));
    if let Some(flag) = &kind.seed_flag {
        args.extend([flag.clone(), seed.to_string()].map(Template::literal));
    }
    if let Some((system, span)) = talk_to {
        match &kind.talk_to_flag {
            Some(flag) => args.extend(fixed_words(flag, Some(&system))),
            None => {
                let message = format!("a fleet of kind \"{}\" talks to nobody", kind.kind);
                reader.problem(Problem::new(span.clone(), message));
            }
        }
        if !common.after.contains(&system) {
            common.after.push(system);
            common.after_spans.push(span);
        }
    }
    for (setting, value) in settings {
        match (&setting.value, value.as_str()) {
            (SettingValue::Flag, "false") => {}
            (SettingValue::Flag, _) => args.push(Template::literal(setting.flag())),
            _ => args.extend([setting.flag(), value].map(Template::literal)),
        }
    }
    args.extend(words.into_iter().map(|word| word.filled));
    let name = entry.name.clone()?;
    check_port(reader, &fields, &common, &Program::OwnBinary, &args);
    let agents = u32::try_from(agents).ok()?;
    Some(common.into_found(name, Program::OwnBinary, args, 1, Some(agents), fields.span))
}

/// The words of a builtin's command.
fn command_words(command: &str) -> Vec<Template> {
    command.split_whitespace().map(Template::literal).collect()
}

/// Arguments that the catalogue gives. With `talk_to`, the references to an own
/// port mean that system's.
fn fixed_words(line: &str, talk_to: Option<&str>) -> Vec<Template> {
    let line = Text::at(line, 0..0);
    let scope = crate::names::Scope::default();
    let words = words::split(&line).unwrap_or_else(|_| vec![line]);
    let of_other = |segment: Segment| match (segment, talk_to) {
        (Segment::Reference(Reference::OwnAddr), Some(system)) => {
            Segment::Reference(Reference::Addr(system.to_owned()))
        }
        (Segment::Reference(Reference::OwnPort), Some(system)) => {
            Segment::Reference(Reference::Port(system.to_owned()))
        }
        (segment, _) => segment,
    };
    let template = |word: Text| {
        // What is no template in the catalogue is handed on as it is.
        let read = scope.template(&word, Place::System, &mut Vec::new());
        let segments = read.unwrap_or_else(|| Template::literal(word.as_str())).0;
        Template(segments.into_iter().map(of_other).collect())
    };
    words.into_iter().map(template).collect()
}

/// What systems and fleets have in common.
struct Common {
    ready: Option<Ready>,
    ready_within: Duration,
    after: Vec<String>,
    after_spans: Vec<Span>,
    env: BTreeMap<String, Template>,
    cpus: Option<Vec<u32>>,
    memory_bytes: Option<u64>,
    watch: Vec<Watch>,
    log: LogFormat,
}

impl Common {
    fn into_found(
        self,
        name: String,
        program: Program,
        args: Vec<Template>,
        count: u32,
        agents: Option<u32>,
        span: Span,
    ) -> Found {
        let system = System {
            name,
            program,
            args,
            ready: self.ready,
            ready_within: self.ready_within,
            after: self.after,
            count,
            env: self.env,
            cpus: self.cpus,
            memory_bytes: self.memory_bytes,
            watch: self.watch,
            log: self.log,
            agents,
        };
        Found {
            system,
            span,
            after: self.after_spans,
        }
    }
}

fn common(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    kind: Option<&FleetKind>,
) -> Option<Common> {
    // Each key is read before the first missing one ends the reading, so that every
    // problem is found.
    let ready = match fields.get("ready") {
        Some(field) => ready(reader, field).map(Some),
        None => Some(kind.and_then(|kind| kind.ready.clone())),
    };
    let ready_within = fields
        .get("ready_within")
        .map_or(Some(READY_WITHIN), |field| {
            reader.duration(field, SHORTEST..=LONGEST)
        });
    let after = after(reader, fields);
    let env = env(reader, fields);
    let cpus = fields.get("cpus").map_or(Some(None), |field| {
        reader
            .quantity(field, "processors such as \"0-1\"", parse_cpus)
            .map(Some)
    });
    let memory = fields.get("memory").map_or(Some(None), |field| {
        reader
            .quantity(field, "a size such as \"2GiB\"", units::parse_bytes)
            .map(Some)
    });
    let watch = fields
        .get("watch")
        .map_or(Some(WATCHES.to_vec()), |field| watch(reader, field));
    let log = fields
        .get("log")
        .map_or(Some(LogFormat::Auto), |field| reader.choice(field, &LOGS));
    let (after, after_spans) = after?;
    Some(Common {
        ready: ready?,
        ready_within: ready_within?,
        after,
        after_spans,
        env: env?,
        cpus: cpus?,
        memory_bytes: memory?,
        watch: watch?,
        log: log?,
    })
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
            reader.problem(reader.unknown(
                &at,
                "signal of readiness",
                "signals of readiness",
                ["tcp", "http", "log"],
            ));
            return None;
        }
    };
    reader.problem(Problem::new(text.whole(), problem));
    None
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
        reader.problem(problem);
        return None;
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
    let table = Fields::open_any(field.value, "\"env\"", &mut reader.problems)?;
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
fn check_port(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    common: &Common,
    program: &Program,
    args: &[Template],
) {
    if !matches!(common.ready, Some(Ready::Tcp | Ready::Http(_))) {
        return;
    }
    let program = match program {
        Program::Path(path) => Some(path),
        Program::OwnBinary => None,
    };
    let told = program
        .into_iter()
        .chain(args)
        .chain(common.env.values())
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
