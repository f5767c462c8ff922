//! Kinds of values of a graph's file.

use std::ops::RangeInclusive;

use document::{Node, Problem, Value};
use units::UnitError;

use crate::Nanos;

/// Processors have numbers below this (`CPU_SETSIZE` of Linux).
pub(super) const MOST_CPUS: u32 = 1024;

/// Longest time that a file can name: 24 hours.
pub(super) const MOST_TIME: Nanos = 24 * 3600 * 1_000_000_000;

/// What stands in the file, for messages.
fn found(node: &Node) -> String {
    const MOST: usize = 60;
    match &node.value {
        Value::Text(text) => match text.char_indices().nth(MOST) {
            Some((end, _)) => format!("\"{}…\"", &text[..end]),
            None => format!("\"{text}\""),
        },
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Bool(value) => value.to_string(),
        other => other.what().to_owned(),
    }
}

/// Says that something else was expected.
pub(super) fn expected(what: &str, node: &Node) -> Problem {
    let message = format!("expected {what}, found {}", found(node));
    Problem::new(node.span.clone(), message)
}

/// An error in a text, at the place of the text, with the text as it was likely meant.
pub(super) fn of_unit(error: UnitError, text: &str, node: &Node) -> Problem {
    let problem = Problem::new(node.span.clone(), error.message);
    match error.suggestion {
        Some(meant) => {
            let after = text.get(error.at.end..).unwrap_or_default();
            let before = text.get(..error.at.start).unwrap_or_default();
            problem.help(format!("did you mean \"{before}{meant}{after}\"?"))
        }
        None => problem,
    }
}

pub(super) fn text(node: &Node) -> Result<&str, Problem> {
    text_of(node, "a text")
}

/// A text, which is `what`.
pub(super) fn text_of<'a>(node: &'a Node, what: &str) -> Result<&'a str, Problem> {
    match &node.value {
        Value::Text(text) => Ok(text),
        _ => Err(expected(what, node)),
    }
}

/// A list, which is `what`.
pub(super) fn list<'a>(node: &'a Node, what: &str) -> Result<&'a [Node], Problem> {
    match &node.value {
        Value::List(nodes) => Ok(nodes),
        _ => Err(expected(what, node)),
    }
}

/// A whole number of a range.
pub(super) fn whole(node: &Node, range: RangeInclusive<u32>) -> Result<u32, Problem> {
    let number = match node.value {
        Value::Integer(number) => u32::try_from(number).ok(),
        _ => None,
    };
    number
        .filter(|number| range.contains(number))
        .ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            expected(&format!("a whole number from {least} to {most}"), node)
        })
}

/// A length of time, with its unit.
pub(super) fn time(node: &Node) -> Result<Nanos, Problem> {
    match &node.value {
        Value::Text(text) => {
            let time = units::parse_duration(text).map_err(|error| of_unit(error, text, node))?;
            let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            match nanos <= MOST_TIME {
                true => Ok(nanos),
                false => Err(expected("a length of time of at most 24h", node)),
            }
        }
        Value::Integer(_) | Value::Float(_) => Err(needs_unit(
            "a length of time needs a unit: ns, us, ms, s, m or h",
            "ms",
            node,
        )),
        _ => Err(expected("a length of time such as \"20ms\"", node)),
    }
}

/// A size, with its unit.
pub(super) fn size(node: &Node) -> Result<u64, Problem> {
    match &node.value {
        Value::Text(text) => units::parse_bytes(text).map_err(|error| of_unit(error, text, node)),
        Value::Integer(_) | Value::Float(_) => Err(needs_unit(
            "a size needs a unit: B, KiB, MiB, GiB, TiB, kB, MB, GB or TB",
            "B",
            node,
        )),
        _ => Err(expected("a size such as \"1KiB\"", node)),
    }
}

/// Says that a number stands where a quantity should.
fn needs_unit(message: &str, unit: &str, node: &Node) -> Problem {
    let found = found(node);
    Problem::new(node.span.clone(), format!("{message}; found {found}"))
        .help(format!("did you mean \"{found}{unit}\"?"))
}

/// A share from 0 to 1: a number, or a text such as "30%".
pub(super) fn share(node: &Node) -> Result<f64, Problem> {
    let share = match &node.value {
        Value::Text(text) => {
            return units::parse_share(text).map_err(|error| of_unit(error, text, node));
        }
        Value::Integer(number) => *number as f64,
        Value::Float(number) => *number,
        _ => return Err(expected("a share such as \"30%\" or 0.3", node)),
    };
    if (0.0..=1.0).contains(&share) {
        return Ok(share);
    }
    let problem = expected("a share from 0 to 1", node);
    Err(match (1.0..=100.0).contains(&share) {
        true => problem.help(format!("did you mean \"{share}%\"?")),
        false => problem,
    })
}

/// A number above zero.
pub(super) fn positive(node: &Node) -> Result<f64, Problem> {
    let number = match node.value {
        Value::Integer(number) => number as f64,
        Value::Float(number) => number,
        _ => f64::NAN,
    };
    match number > 0.0 && number.is_finite() {
        true => Ok(number),
        false => Err(expected("a number above 0", node)),
    }
}

/// Processors as Linux lists them: "0-1,3". In rising order, each once.
pub(super) fn cpus(node: &Node) -> Result<Vec<u32>, Problem> {
    let found = match &node.value {
        Value::Text(text) if text.is_empty() => Some(Vec::new()),
        Value::Text(text) => units::parse_cpus(text).ok(),
        _ => None,
    };
    let found = found.filter(|cpus| cpus.iter().all(|cpu| *cpu < MOST_CPUS));
    let what = || format!("processors below {MOST_CPUS} such as \"0-1,3\", or \"\" for any");
    found.ok_or_else(|| expected(&what(), node))
}
