//! `fault` of a step: what it breaks, where, when and for how long.

mod network;

use std::time::Duration;

use document::Problem;
use toml::de::DeValue;
use units::UnitError;

use super::fields::{Field, Fields, Value};
use super::loads;
use super::process::{Found, LONGEST, SHORTEST};
use super::values::Reader;
use crate::plan::{EndSignal, Every, Fault, FaultKind, FaultTarget, Who};

/// Most faults of one step.
const MOST: usize = 100;
/// Kinds of fault, which are keys that name what is hit: first those of processes.
const KINDS: [&str; 8] = [
    "kill",
    "restart",
    "pause",
    "partition",
    "delay",
    "lose",
    "throttle",
    "reset",
];
/// Kinds of versions to come.
const LATER: [&str; 4] = ["slow", "exhaust", "clock", "agent"];
/// Keys besides.
const KEYS: [&str; 10] = [
    "pick", "at", "for", "every", "keep", "signal", "by", "jitter", "share", "to",
];
/// Keys that belong to one kind of fault or to some.
const OF_KINDS: [(&str, &[&str]); 6] = [
    ("pick", &["kill", "restart", "pause"]),
    ("signal", &["kill", "restart"]),
    ("by", &["delay"]),
    ("jitter", &["delay"]),
    ("share", &["lose"]),
    ("to", &["throttle"]),
];
/// Signals that end a process.
const SIGNALS: [(&str, EndSignal); 8] = [
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
            reader.problem(Problem::new(field.span(), message));
            return None;
        }
        _ => return reader.mismatch(field, "a table such as { kill = \"db\", for = \"10s\" }"),
    };
    let read: Vec<Option<Fault>> = values
        .into_iter()
        .map(|value| {
            let (fields, fault) = fault(reader, value, named)?;
            ends(reader, step, &fields, &fault);
            Some(fault)
        })
        .collect();
    read.into_iter().collect()
}

/// What faults can be about.
#[derive(Clone, Copy)]
pub(super) struct Named<'a> {
    pub(super) systems: &'a [Found],
    pub(super) loads: &'a [loads::Found],
}

fn fault<'t>(
    reader: &mut Reader<'_>,
    value: &'t Value<'t>,
    named: Named<'_>,
) -> Option<(Fields<'t>, Fault)> {
    let known: Vec<&str> = KINDS.into_iter().chain(KEYS).collect();
    let fields = Fields::open(value, "\"fault\"", &known, &LATER, &mut reader.problems)?;
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
            reader.problem(problem.help("write a list of two tables"));
            return None;
        }
    };
    let mut belongs = true;
    for (key, kinds) in OF_KINDS {
        if let Some(own) = fields.get(key).filter(|_| !kinds.contains(&field.key)) {
            let message = format!(
                "\"{key}\" goes with {}, not with {}",
                kinds.join(", "),
                field.key
            );
            reader.problem(Problem::new(own.span(), message));
            belongs = false;
        }
    }
    let kind = kind(reader, &fields, field);
    let target = match kind {
        Some(FaultKind::Network(_)) => network::connections(reader, field, named),
        _ => copies(reader, &fields, field, named.systems),
    };
    let mut time = |key: &str, least: Duration| match fields.get(key) {
        Some(field) => reader.duration(field, least..=LONGEST).map(Some),
        None => Some(None),
    };
    let (at, length) = (time("at", Duration::ZERO), time("for", SHORTEST));
    let every = fields.get("every").map_or(Some(None), |field| {
        let expected = "\"10s\" or \"exponential 10s\"";
        reader.quantity(field, expected, parse_every).map(Some)
    });
    let keep = match fields
        .get("keep")
        .map(|field| (field, field.value.get_ref()))
    {
        None => Some(false),
        Some((_, DeValue::Boolean(keep))) => Some(*keep),
        Some((field, _)) => reader.mismatch(field, "true or false"),
    };
    let fault = Fault {
        kind: kind?,
        target: target?,
        at: at?,
        length: length?,
        every: every?,
        keep: keep?,
    };
    if let (true, Some(_), Some(field)) = (fault.keep, fault.length, fields.get("keep")) {
        let message =
            "\"keep\" and \"for\" exclude each other: one leaves the fault, the other ends it";
        reader.problem(Problem::new(field.span(), message));
        return None;
    }
    if fault.every.is_some() && fault.length.is_none() {
        let message = "a fault that recurs has a length";
        let problem = Problem::new(fields.span.clone(), message);
        reader.problem(problem.help("add for = \"1s\", how long each turn lasts"));
        return None;
    }
    belongs.then_some((fields, fault))
}

/// Shortest time between two turns of a fault.
const SHORTEST_GAP: Duration = Duration::from_millis(10);

/// `10s`, or `exponential 10s`.
fn parse_every(text: &str) -> Result<Every, UnitError> {
    let word = "exponential ";
    let (every, time) = match text.strip_prefix(word) {
        Some(time) => {
            let time = units::parse_duration(time);
            let time = time.map_err(|error| error.shifted(word.len()))?;
            (Every::Exponential(time), time)
        }
        None => {
            let time = units::parse_duration(text)?;
            (Every::Fixed(time), time)
        }
    };
    match (SHORTEST_GAP..=LONGEST).contains(&time) {
        true => Ok(every),
        false => Err(UnitError::new(
            0..text.len(),
            "the time between two turns is from 10ms to 168h",
        )),
    }
}

/// What a fault does.
fn kind(reader: &mut Reader<'_>, fields: &Fields<'_>, field: Field<'_>) -> Option<FaultKind> {
    Some(match field.key {
        "kill" => FaultKind::Kill(signal(reader, fields, EndSignal::Kill)?),
        "restart" => FaultKind::Restart(signal(reader, fields, EndSignal::Term)?),
        "pause" => FaultKind::Pause,
        _ => FaultKind::Network(network::kind(reader, fields, field.key)?),
    })
}

/// The copies of a system that are hit.
fn copies(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    field: Field<'_>,
    systems: &[Found],
) -> Option<FaultTarget> {
    let (system, copy) = target(reader, field, systems)?;
    let who = who(reader, fields, system, copy)?;
    Some(FaultTarget::Copies {
        system: system.system.name.clone(),
        who,
    })
}

/// The signal that ends the processes.
fn signal(reader: &mut Reader<'_>, fields: &Fields<'_>, otherwise: EndSignal) -> Option<EndSignal> {
    let Some(field) = fields.get("signal") else {
        return Some(otherwise);
    };
    reader.choice(field, &SIGNALS)
}

/// The system that is hit, and the one copy if the text names one: `etcd.0`.
fn target<'f>(
    reader: &mut Reader<'_>,
    field: Field<'_>,
    systems: &'f [Found],
) -> Option<(&'f Found, Option<u32>)> {
    let text = reader.text(field, "the name of a system")?;
    let find = |name: &str| systems.iter().find(|found| found.system.name == name);
    if let Some(found) = find(text.as_str()) {
        return Some((found, None));
    }
    let copy = text.as_str().rsplit_once('.').and_then(|(name, index)| {
        let index: u32 = index.parse().ok()?;
        Some((find(name)?, index))
    });
    if let Some((found, index)) = copy {
        let count = found.system.count;
        if index < count {
            return Some((found, Some(index)));
        }
        let name = &found.system.name;
        let message = format!(
            "{name} has {count} copies, {name}.0 to {name}.{}",
            count - 1
        );
        reader.problem(Problem::new(text.whole(), message));
        return None;
    }
    let known = systems.iter().map(|found| found.system.name.as_str());
    let problem = reader.unknown(&text, "system", "systems and fleets", known);
    reader.problem(problem);
    None
}

/// Which copies are hit. A system of several has to say so: to hit one of three and to hit
/// all three are different experiments.
fn who(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    found: &Found,
    copy: Option<u32>,
) -> Option<Who> {
    let (name, count) = (&found.system.name, found.system.count);
    let Some(field) = fields.get("pick") else {
        if copy.is_none() && count > 1 {
            let message = format!("{name} has {count} copies; which are hit?");
            let problem = Problem::new(fields.span.clone(), message);
            reader.problem(problem.help(format!(
                "add pick = 1, pick = \"10%\" or pick = \"all\", or name one: {name}.0"
            )));
            return None;
        }
        return Some(Who::Copy(copy.unwrap_or(0)));
    };
    if copy.is_some() {
        let message = "one copy is named, so there is nothing to pick";
        reader.problem(Problem::new(field.span(), message));
        return None;
    }
    let text = match field.value.get_ref() {
        DeValue::String(_) => Some(reader.text(field, "a number, a share or \"all\"")?),
        _ => None,
    };
    match text.as_ref().map(crate::text::Text::as_str) {
        Some("all") => Some(Who::All),
        Some(share) if share.ends_with('%') => {
            let share = reader.quantity(field, "a share such as \"10%\"", units::parse_share)?;
            if share <= 0.0 || share > 1.0 {
                let message = "a share of copies is above 0% and at most 100%";
                reader.problem(Problem::new(field.span(), message));
                return None;
            }
            Some(Who::Share(share))
        }
        Some(word) if !word.starts_with(|first: char| first.is_ascii_digit()) => reader.mismatch(
            field,
            "a number of copies, a share such as \"10%\", or \"all\"",
        ),
        _ => {
            let number = reader.count(field, 1..=u64::from(count))?;
            u32::try_from(number).ok().map(Who::Number)
        }
    }
}

/// A fault must have time to happen: what is over before it begins, or ends with the
/// instant at which it begins, would be a fault that nobody sees.
fn ends(reader: &mut Reader<'_>, step: &Fields<'_>, fields: &Fields<'_>, fault: &Fault) {
    // How long these take is not known beforehand.
    let is_open = ["make", "run", "wait"]
        .iter()
        .any(|key| step.get(key).is_some());
    if step.get("search").is_some() {
        let message = "a search judges each rate by itself, so faults would blur what it finds";
        let problem = Problem::new(fields.span.clone(), message);
        reader.problem(problem.help("search first, and break things in a step after it"));
        return;
    }
    // A restart is over when the processes are ready again.
    if fault.every.is_some() && !is_open && step.get("hold").is_none() {
        let message = "how long does this go on?";
        let problem = Problem::new(fields.span.clone(), message);
        reader.problem(
            problem.help("add hold = \"1m\" to the step: a fault recurs until it is over"),
        );
    }
    if is_open || fault.keep || matches!(fault.kind, FaultKind::Restart(_)) {
        return;
    }
    let begins_with_hold = match (fault.at, step.get("hold")) {
        (Some(at), Some(field)) => {
            // A hold that is wrong itself is told where it is read.
            let hold = field.value.get_ref().as_str();
            let hold = hold.and_then(|text| units::parse_duration(text).ok());
            hold.is_none_or(|hold| at < hold)
        }
        _ => false,
    };
    if !begins_with_hold && fault.length.is_none() {
        let message = format!("how long does this {} last?", fault.kind.word());
        let problem = Problem::new(fields.span.clone(), message);
        reader.problem(problem.help(
            "add for = \"10s\", or give the step a `wait`: the fault begins when its `hold` is over and ends with the step",
        ));
    }
}
