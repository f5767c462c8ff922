//! Who decides when a request is made, and when requests are due.

use std::time::Duration;

use document::Problem;

use super::super::fields::{Field, Fields};
use super::super::values::Reader;
use crate::plan::{LoadModel, Schedule};
use lab_load::arrivals::{Arrivals, Process};
use units::UnitError;

/// Longest pause of a user.
const LONGEST_THINK: Duration = Duration::from_secs(3600);
/// Most users of a closed loop.
const MOST_USERS: u64 = 1_000_000;

pub(super) fn model(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    is_probe: bool,
) -> Option<LoadModel> {
    let models = [("open", false), ("closed", true)];
    let is_closed = match fields.get("model") {
        Some(field) if is_probe => {
            let message = "a probe is an open loop: it asks at its own times";
            return reader.refuse(Problem::new(field.span(), message));
        }
        Some(field) => reader.choice(field, &models)?,
        None => false,
    };
    let (belongs, others): (&str, &[&str]) = match is_closed {
        true => ("an open loop", &["arrivals", "rate", "trace"]),
        false => ("a closed loop", &["users", "think"]),
    };
    let misplaced = others.iter().find_map(|key| fields.get(key));
    if let Some(field) = misplaced {
        let message = format!("\"{}\" belongs to {belongs}", field.key);
        let problem = Problem::new(field.span(), message);
        return reader.refuse(match is_closed {
            true => problem.help("a closed loop has users, and sends when the target has answered"),
            false => problem.help("add model = \"closed\", or give a rate"),
        });
    }
    match is_closed {
        true => closed(reader, fields),
        false => open(reader, fields, is_probe),
    }
}

fn closed(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<LoadModel> {
    let users = fields
        .require("users", "64", reader)
        .and_then(|field| reader.count(field, 1..=MOST_USERS));
    let think = fields.value_or("think", Duration::ZERO, |field| {
        reader.duration(field, Duration::ZERO..=LONGEST_THINK)
    });
    Some(LoadModel::Closed {
        users: u32::try_from(users?).ok()?,
        think: think?,
    })
}

fn open(reader: &mut Reader<'_>, fields: &Fields<'_>, is_probe: bool) -> Option<LoadModel> {
    let default = if is_probe {
        Process::Constant
    } else {
        Process::Poisson
    };
    let process = fields.value_or("arrivals", default, |field| self::process(reader, field));
    let trace = fields.optional("trace", |field| reader.line(field, "the path of a file"));
    let (process, trace) = (process?, trace?);
    let arrivals = match (trace, fields.get("rate")) {
        (Some(_), Some(field)) => {
            let message = "\"trace\" and \"rate\" exclude each other";
            return reader.refuse(Problem::new(field.span(), message));
        }
        (Some(path), None) => Some(Schedule::Trace(path)),
        (None, Some(field)) => Some(Schedule::Arrivals(at_rate(reader, field, process)?)),
        (None, None) => None,
    };
    Some(LoadModel::Open { process, arrivals })
}

fn process(reader: &mut Reader<'_>, field: Field<'_>) -> Option<Process> {
    reader.quantity(field, "poisson, constant or \"burst 50\"", |text| {
        let found = parse("1/s", text);
        match found {
            Ok(Arrivals::Rate { process, .. }) => Ok(process),
            _ => {
                let message = format!("expected poisson, constant or burst 50, found \"{text}\"");
                let error = UnitError::new(0..text.len(), message);
                Err(error.meant(text, ["poisson", "constant"]))
            }
        }
    })
}

/// Reads `500/s`, `100/s..5000/s over 60s` and whatever else tells when requests are
/// due at some rate.
pub(super) fn at_rate(
    reader: &mut Reader<'_>,
    field: Field<'_>,
    process: Process,
) -> Option<Arrivals> {
    reader.rate(field, "a rate such as \"500/s\"", |text| {
        parse(text, &word(process))
    })
}

/// Reads arrivals at a rate. Unless the text says itself how they lie around it, they
/// are as `process` says.
pub(super) fn parse(text: &str, process: &str) -> Result<Arrivals, UnitError> {
    let first = text.split_whitespace().next().unwrap_or_default();
    if ["poisson", "constant", "burst"].contains(&first) {
        return Arrivals::parse(text);
    }
    Arrivals::parse(&format!("{process} {text}")).map_err(|mut error| {
        let place = |at: usize| at.saturating_sub(process.len() + 1).min(text.len());
        error.at = place(error.at.start)..place(error.at.end);
        error
    })
}

/// The words that ask for a process.
pub(super) fn word(process: Process) -> String {
    match process {
        Process::Poisson => "poisson".to_owned(),
        Process::Constant => "constant".to_owned(),
        Process::Burst(size) => format!("burst {size}"),
    }
}
