//! `[sweep]`: which constants take which values.

use document::Problem;
use toml::de::DeValue;

use super::constants::overriding;
use super::fields::{Field, Fields, described};
use super::values::Reader;
use crate::names::Constant;
use crate::plan::{Range, Sweep};

/// Most runs of a sweep.
const MOST_RUNS: u64 = 1_000;

/// Reads `[sweep]`. A constant that the command line sets has that value alone.
pub(super) fn sweep(
    reader: &mut Reader<'_>,
    root: &Fields<'_>,
    overrides: &[(String, String)],
) -> Option<Sweep> {
    let field = root.get("sweep")?;
    let known = ["over", "times"];
    let fields = Fields::open(field.value, "[sweep]", &known, reader)?;
    let times = fields.value_or("times", 1, |field| reader.count(field, 1..=MOST_RUNS));
    let example = "{ NAME = [VALUE, VALUE] }, with a name of [let]";
    let over = fields.require("over", example, reader)?;
    let table = Fields::open_any(over.value, "\"over\"", reader)?;
    let constants: Vec<String> = reader.scope.constants.keys().cloned().collect();
    let (mut found, mut highest) = (Vec::new(), Vec::new());
    let mut good = true;
    for (span, field) in table.fields() {
        if !constants.iter().any(|name| name == field.key) {
            let message = format!("[let] has no \"{}\"", field.key);
            let known = constants.iter().map(String::as_str);
            let problem = Problem::new(span, message);
            reader.problem(problem.suggest_from(field.key, "constants", known));
            good = false;
            continue;
        }
        if field.value.get_ref().as_table().is_some() {
            let is_set = overrides.iter().any(|(name, _)| name == field.key);
            match range(reader, field) {
                Some(range) if !is_set => highest.push((field, range)),
                Some(_) => {}
                None => good = false,
            }
            continue;
        }
        match values(reader, field) {
            Some(_) if overrides.iter().any(|(name, _)| name == field.key) => {}
            Some(values) => found.push((field.key.to_owned(), values)),
            None => good = false,
        }
    }
    if table.fields().next().is_none() {
        return reader.refuse(Problem::new(over.span(), "a sweep needs a constant").help(example));
    }
    let times = times?;
    let settings = found.iter().try_fold(times, |all, (_, values)| {
        all.checked_mul(values.len() as u64)
    });
    if settings.is_none_or(|runs| runs > MOST_RUNS) {
        let message = format!("the sweep has more than {MOST_RUNS} runs");
        let problem = Problem::new(over.span(), message);
        return reader.refuse(problem.help("every combination of the values is a run: give fewer"));
    }
    if let Some((field, _)) = highest.first()
        && (highest.len() > 1 || !found.is_empty() || times > 1)
    {
        let message = "a constant whose highest value is looked for stands alone";
        let problem = Problem::new(field.span(), message);
        return reader.refuse(problem.help("leave out \"times\" and the other constants"));
    }
    let highest = highest
        .pop()
        .map(|(field, range)| (field.key.to_owned(), range));
    let sweep = Sweep {
        over: found,
        times: u32::try_from(times).ok()?,
        highest,
    };
    (good && (!sweep.over.is_empty() || sweep.highest.is_some())).then_some(sweep)
}

/// Nearest that what fails may come to what holds, and usually does.
const WITHIN: f64 = 0.05;

/// `{ from = 10, to = 1000, within = "5%" }`.
fn range(reader: &mut Reader<'_>, field: Field<'_>) -> Option<Range> {
    let known = ["from", "to", "within"];
    let label = "a range of values";
    let fields = Fields::open(field.value, label, &known, reader)?;
    let constant = reader.scope.constants.get(field.key).cloned()?;
    let within = fields.value_or("within", WITHIN, |field| {
        let share = reader.quantity(field, "a share such as \"5%\"", units::parse_share)?;
        if (0.001..=1.0).contains(&share) {
            return Some(share);
        }
        reader.refuse(Problem::new(field.span(), "expected 0.1% to 100%"))
    });
    let mut end = |key| {
        let field = fields.require(key, "a value", reader)?;
        let text = match field.value.get_ref() {
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            _ => reader
                .text(field, "a number, or one with its unit")?
                .as_str()
                .to_owned(),
        };
        let fits = overriding(&constant, &text);
        let digits = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '_'));
        let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
        let number = number.replace('_', "").parse::<f64>();
        let problem = match (fits, number) {
            (Err(message), _) => message,
            (Ok(_), Ok(number)) if number > 0.0 => return Some((number, unit.to_owned(), field)),
            (Ok(_), _) => format!("expected a number above zero, found \"{text}\""),
        };
        reader.refuse(Problem::new(field.span(), problem))
    };
    let (from, to) = (end("from"), end("to"));
    let ((from, unit, _), (to, other, last)) = (from?, to?);
    if unit != other {
        let message = format!("\"from\" is in \"{unit}\" and \"to\" in \"{other}\"");
        return reader.refuse(Problem::new(last.span(), message).help("give both in one unit"));
    }
    if to <= from {
        return reader.refuse(Problem::new(last.span(), "\"to\" is not above \"from\""));
    }
    Some(Range {
        from,
        to,
        within: within?,
        is_whole: matches!(constant, Constant::Integer(_)),
        unit,
    })
}

/// The values of one constant, as an override is written.
fn values(reader: &mut Reader<'_>, field: Field<'_>) -> Option<Vec<String>> {
    let items = reader.list(field, "a list of values")?;
    if items.is_empty() {
        let message = format!("\"{}\" has no value", field.key);
        return reader.refuse(Problem::new(field.span(), message));
    }
    let constant = reader.scope.constants.get(field.key).cloned();
    let mut values: Vec<String> = Vec::new();
    for item in items {
        let value = match item.value.get_ref() {
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            DeValue::Boolean(value) => value.to_string(),
            DeValue::String(_) => reader.text(item, "a string")?.as_str().to_owned(),
            other => {
                let message = format!(
                    "a value is a number, a string, true or false, found {}",
                    described(other)
                );
                return reader.refuse(Problem::new(item.span(), message));
            }
        };
        let fits = constant
            .as_ref()
            .map(|constant| overriding(constant, &value));
        if let Some(Err(message)) = fits {
            return reader.refuse(Problem::new(item.span(), message));
        }
        if values.contains(&value) {
            let message = format!("{value} comes twice; times = 2 runs every combination twice");
            return reader.refuse(Problem::new(item.span(), message));
        }
        values.push(value);
    }
    Some(values)
}
