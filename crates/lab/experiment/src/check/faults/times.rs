//! When a fault begins, how long it goes on, and when it comes again.

use std::time::Duration;

use document::Problem;
use units::UnitError;

use super::super::fields::{Field, Fields};
use super::super::process::LONGEST;
use super::super::values::Reader;
use super::Named;
use crate::plan::{Every, Fault, FaultKind};

/// The later step until whose end a fault goes on.
pub(super) fn through(
    reader: &mut Reader<'_>,
    field: Field<'_>,
    named: Named<'_>,
) -> Option<String> {
    let text = reader.text(field, "the name of a later step")?;
    let place = |name: &str| named.steps.iter().position(|step| step == name);
    let own = place(named.step)?;
    let later = named.steps.iter().skip(own + 1).map(String::as_str);
    match place(text.as_str()) {
        None => reader.refuse(reader.unknown(&text, "step", "later steps", later)),
        Some(last) if last <= own => {
            let message = format!("\"{}\" is no later step", text.as_str());
            let problem = Problem::new(text.whole(), message);
            let help = "a fault goes on to the end of its own step anyway";
            reader.refuse(problem.help(help))
        }
        Some(last) => {
            let mut between = named.steps[own..=last].iter();
            if let Some(search) = between.find(|step| named.searches.contains(step)) {
                let message = format!("\"{search}\" searches, and faults would blur what it finds");
                let problem = Problem::new(text.whole(), message);
                return reader
                    .refuse(problem.help("search before the fault begins or after it has ended"));
            }
            Some(text.as_str().to_owned())
        }
    }
}

/// Shortest time between two turns of a fault.
const SHORTEST_GAP: Duration = Duration::from_millis(10);

/// `10s`, or `exponential 10s`.
pub(super) fn parse_every(text: &str) -> Result<Every, UnitError> {
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

/// A fault must have time to happen: what is over before it begins, or ends with the
/// instant at which it begins, would be a fault that nobody sees.
pub(super) fn ends(reader: &mut Reader<'_>, step: &Fields<'_>, fields: &Fields<'_>, fault: &Fault) {
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
    if fault.through.is_some() {
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
    if is_open || fault.keep || fault.kind.is_restart() {
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
        let what = match &fault.kind {
            FaultKind::Custom { .. } => "fault",
            kind => kind.word(),
        };
        let message = format!("how long does this {what} last?");
        let problem = Problem::new(fields.span.clone(), message);
        reader.problem(problem.help(
            "add for = \"10s\", or give the step a `wait`: the fault begins when its `hold` is over and ends with the step",
        ));
    }
}
