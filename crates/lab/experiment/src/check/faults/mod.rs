//! `fault` of a step: what it breaks, where, when and for how long.

mod custom;
mod exhaust;
mod network;
mod pick;
mod silence;
mod times;

use std::time::Duration;

use document::Problem;
use toml::de::DeValue;

use super::fields::{Field, Fields, Value};
use super::loads;
use super::probes;
use super::process::{Found, LONGEST, SHORTEST};
use super::values::{Reader, all};
use crate::plan::{EndSignal, Fault, FaultKind, ProcessFault};
use exhaust::exhaust;
pub(super) use pick::copies;
use times::{ends, parse_every, through};

/// Most faults of one step.
const MOST: usize = 100;
/// Kinds of fault, which are keys that name what is hit: first those of processes.
const KINDS: [&str; 12] = [
    "kill",
    "restart",
    "pause",
    "slow",
    "exhaust",
    "partition",
    "delay",
    "lose",
    "throttle",
    "reset",
    "silence",
    "custom",
];
/// Kinds that are looked for here and are not: what is said, and what would do instead.
const ELSEWHERE: [(&str, &str, &str); 2] = [
    (
        "clock",
        "the laboratory has no means for a fault of the kind \"clock\"",
        "start the program itself with another clock, as in run = \"faketime -f +1h PROGRAM\", or have a custom fault \
         write the file of its library (docs/faults.md)",
    ),
    (
        "agent",
        "agents of a fleet are hit by \"silence\"",
        "silence = \"FLEET\", pick = \"10%\"; the process of a fleet can be paused, slowed or killed",
    ),
];
/// Least and most to which processes are slowed: beyond them they would run, or stand still,
/// for less than a timer can keep, or for long.
const SLOWEST: f64 = 0.01;
const FASTEST: f64 = 0.99;
/// Keys besides.
const KEYS: [&str; 20] = [
    "pick",
    "at",
    "for",
    "every",
    "through",
    "keep",
    "signal",
    "descriptors",
    "memory",
    "disk",
    "by",
    "jitter",
    "share",
    "to",
    "direction",
    "clients",
    "flap",
    "back",
    "do",
    "undo",
];
/// Keys that belong to one kind of fault or to some.
const OF_KINDS: [(&str, &[&str]); 15] = [
    (
        "pick",
        &["kill", "restart", "pause", "slow", "exhaust", "silence"],
    ),
    ("signal", &["kill", "restart"]),
    ("descriptors", &["exhaust"]),
    ("memory", &["exhaust"]),
    ("disk", &["exhaust"]),
    ("by", &["delay"]),
    ("jitter", &["delay"]),
    ("share", &["lose"]),
    ("to", &["slow", "throttle"]),
    ("direction", &["partition", "delay", "lose", "throttle"]),
    (
        "clients",
        &["partition", "delay", "lose", "throttle", "reset"],
    ),
    ("flap", &["silence"]),
    ("back", &["silence"]),
    ("do", &["custom"]),
    ("undo", &["custom"]),
];
/// Signals that end a process.
pub(super) const SIGNALS: [(&str, EndSignal); 8] = [
    ("KILL", EndSignal::Kill),
    ("TERM", EndSignal::Term),
    ("INT", EndSignal::Int),
    ("HUP", EndSignal::Hup),
    ("QUIT", EndSignal::Quit),
    ("ABRT", EndSignal::Abrt),
    ("USR1", EndSignal::Usr1),
    ("USR2", EndSignal::Usr2),
];

/// Reads `fault = { kill = "db", for = "10s" }`, or a list of them.
pub(super) fn faults(
    reader: &mut Reader<'_>,
    step: &Fields<'_>,
    named: Named<'_>,
) -> Option<Vec<Fault>> {
    let Some(field) = step.get("fault") else {
        return Some(Vec::new());
    };
    let values: Vec<&Value<'_>> = match field.value.get_ref() {
        DeValue::Table(_) => vec![field.value],
        DeValue::Array(items) if items.len() <= MOST => items.iter().collect(),
        DeValue::Array(items) => {
            let message = format!("a step has at most {MOST} faults, this has {}", items.len());
            return reader.refuse(Problem::new(field.span(), message));
        }
        _ => return reader.mismatch(field, "a table such as { kill = \"db\", for = \"10s\" }"),
    };
    all(values.into_iter().map(|value| {
        let (fields, fault) = fault(reader, value, named)?;
        ends(reader, step, &fields, &fault);
        Some(fault)
    }))
}

/// What faults can be about.
#[derive(Clone, Copy)]
pub(super) struct Named<'a> {
    pub(super) systems: &'a [Found],
    pub(super) loads: &'a [loads::Found],
    pub(super) probes: &'a [probes::Found],
    /// Name of the fault's own step.
    pub(super) step: &'a str,
    /// Names of all steps, in order.
    pub(super) steps: &'a [String],
    /// Names of those that search.
    pub(super) searches: &'a [String],
}

fn fault<'t>(
    reader: &mut Reader<'_>,
    value: &'t Value<'t>,
    named: Named<'_>,
) -> Option<(Fields<'t>, Fault)> {
    let elsewhere = ELSEWHERE.iter().map(|(kind, ..)| *kind);
    let known = KINDS.into_iter().chain(KEYS).chain(elsewhere);
    let known: Vec<&str> = known.collect();
    let fields = Fields::open(value, "\"fault\"", &known, reader)?;
    for (key, span) in fields.keys() {
        let mut all = ELSEWHERE.iter();
        if let Some((_, message, instead)) = all.find(|(kind, ..)| *kind == key) {
            return reader.refuse(Problem::new(span, *message).help(*instead));
        }
    }
    let given: Vec<Field<'_>> = KINDS.iter().filter_map(|kind| fields.get(kind)).collect();
    let field = match given.as_slice() {
        [] => {
            // A key that is no kind of this version is a problem already told.
            if fields.keys().all(|(key, _)| KEYS.contains(&key)) {
                let message = "this fault breaks nothing";
                let problem = Problem::new(fields.span.clone(), message);
                let kinds = KINDS.join(", ");
                reader.problem(problem.help(format!("say what, and of which system: {kinds}")));
            }
            return None;
        }
        [one] => *one,
        [one, other, ..] => {
            let message = format!("\"{}\" and \"{}\" are two faults", one.key, other.key);
            let problem = Problem::new(other.span(), message);
            return reader.refuse(problem.help("write a list of two tables"));
        }
    };
    let belongs = fields.go_with(field.key, &OF_KINDS, reader);
    let kind = kind(reader, &fields, field, named);
    let mut time = |key: &str, least: Duration| {
        fields.optional(key, |field| reader.duration(field, least..=LONGEST))
    };
    let (at, length) = (time("at", Duration::ZERO), time("for", SHORTEST));
    let every = fields.optional("every", |field| {
        let expected = "\"10s\" or \"exponential 10s\"";
        reader.quantity(field, expected, parse_every)
    });
    let through = fields.optional("through", |field| through(reader, field, named));
    let keep = fields.value_or("keep", false, |field| reader.boolean(field));
    let fault = Fault {
        kind: kind?,
        at: at?,
        length: length?,
        every: every?,
        through: through?,
        keep: keep?,
    };
    if let (true, Some(_), Some(field)) = (fault.keep, fault.length, fields.get("keep")) {
        let message =
            "\"keep\" and \"for\" exclude each other: one leaves the fault, the other ends it";
        return reader.refuse(Problem::new(field.span(), message));
    }
    if let (true, true, Some(field)) = (fault.keep, fault.kind.is_restart(), fields.get("keep")) {
        let message =
            "a restart is over when the copies are ready again, and leaves nothing to keep";
        let problem = Problem::new(field.span(), message);
        return reader.refuse(problem.help("kill them, and keep that, to have them stay down"));
    }
    if let (true, Some(_), Some(field)) = (fault.keep, &fault.through, fields.get("keep")) {
        let message = "\"keep\" leaves the fault to the end of the run, \"through\" ends it before";
        return reader.refuse(Problem::new(field.span(), message));
    }
    if fault.through.is_some() && fault.length.is_some() && fault.every.is_none() {
        let message = "\"for\" ends this fault, so it does not go on through other steps";
        let problem = Problem::new(fields.span.clone(), message);
        return reader
            .refuse(problem.help("leave out `for`, or add every = \"10s\": it recurs until then"));
    }
    if fault.every.is_some() && fault.length.is_none() {
        let message = "a fault that recurs has a length";
        let problem = Problem::new(fields.span.clone(), message);
        return reader.refuse(problem.help("add for = \"1s\", how long each turn lasts"));
    }
    belongs.then_some((fields, fault))
}

/// What a fault does, and to what.
fn kind(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    field: Field<'_>,
    named: Named<'_>,
) -> Option<FaultKind> {
    let does = match field.key {
        "custom" => return custom::kind(reader, fields, field, named.step),
        "silence" => return silence::kind(reader, fields, field, named),
        "kill" => signal(reader, fields, EndSignal::Kill).map(ProcessFault::Kill),
        "restart" => signal(reader, fields, EndSignal::Term).map(ProcessFault::Restart),
        "pause" => Some(ProcessFault::Pause),
        "slow" => slow(reader, fields),
        "exhaust" => exhaust(reader, fields, named).map(ProcessFault::Exhaust),
        _ => return network::kind(reader, fields, field, named),
    };
    let (system, who) = copies(reader, fields, field, named)?;
    Some(FaultKind::Process {
        does: does?,
        system,
        who,
    })
}

/// The share of the time for which the processes run.
fn slow(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<ProcessFault> {
    let field = fields.require("to", "\"20%\"", reader)?;
    let share = reader.quantity(field, "a share such as \"20%\"", units::parse_share)?;
    if !(SLOWEST..=FASTEST).contains(&share) {
        let message = "processes can be slowed to 1% to 99% of the time";
        let problem = Problem::new(field.span(), message);
        return reader.refuse(problem.help("a pause stops them altogether"));
    }
    Some(ProcessFault::Slow(share))
}

/// The signal that ends the processes.
fn signal(reader: &mut Reader<'_>, fields: &Fields<'_>, otherwise: EndSignal) -> Option<EndSignal> {
    let Some(field) = fields.get("signal") else {
        return Some(otherwise);
    };
    reader.choice(field, &SIGNALS)
}
