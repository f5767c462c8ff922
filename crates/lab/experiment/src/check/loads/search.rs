//! `search`, `while` and `fit` of a step: the highest rate that holds.

use std::time::Duration;

use document::Problem;

use super::super::fields::{Field, Fields};
use super::super::process::LONGEST;
use super::super::values::{Reader, all};
use super::Found;
use crate::expr::{Expr, LoadQuantity, Metric, Names, Node, Op, Use, compile};
use crate::plan::{LoadModel, Search};
use crate::text::Text;
use units::UnitError;

/// Factor from one rate to the next when a file does not say.
const GROW: f64 = 1.5;
/// Length of a hold when a file does not say.
const EACH: Duration = Duration::from_secs(5);
/// Shortest hold at one rate.
const SHORTEST_EACH: Duration = Duration::from_secs(1);
/// Width of the interval that ends a search when a file does not say.
const PRECISION: f64 = 0.03;
/// Highest rate that can be asked for.
pub(super) const FASTEST: f64 = 10_000_000.0;

/// Reads the search of a step, if it has one. `Some(None)`: it has none.
pub(in super::super) fn search(
    reader: &mut Reader<'_>,
    step: &Fields<'_>,
    loads: &[Found],
    names: &Names,
) -> Option<Option<Search>> {
    let Some(field) = step.get("search") else {
        if let Some(field) = step.get("fit") {
            let message = "\"fit\" belongs to a search, and this step has none";
            return reader.refuse(Problem::new(field.span(), message));
        }
        return Some(None);
    };
    let works = ["make", "hold", "signal", "http", "run", "wait"];
    if let Some(other) = works.iter().find_map(|key| step.get(key)) {
        let message = format!(
            "a step that searches does nothing else, such as \"{}\"",
            other.key
        );
        let problem = Problem::new(other.span(), message);
        return reader.refuse(
            problem.help("\"each\" is the length of a hold; put the rest into a step of its own"),
        );
    }
    let known = [
        "vary",
        "from",
        "grow",
        "each",
        "settle",
        "most",
        "precision",
        "at_most",
    ];
    let fields = Fields::open(field.value, "\"search\"", &known, reader)?;
    let load = fields
        .require("vary", "\"NAME.rate\", the rate of a load", reader)
        .and_then(|field| varied(reader, field, loads));
    let from = fields
        .require("from", "\"100/s\", the first rate to try", reader)
        .and_then(|field| rate(reader, field));
    let most = fields.value_or("most", None, |field| {
        rate(reader, field).map(|rate| Some((rate, field)))
    });
    let grow = fields.value_or("grow", GROW, |field| grow(reader, field));
    let each = fields.value_or("each", EACH, |field| {
        reader.duration(field, SHORTEST_EACH..=LONGEST)
    });
    let settle = fields.value_or("settle", None, |field| settle(reader, field));
    let precision = fields.value_or("precision", PRECISION, |field| precision(reader, field));
    let at_most = fields.optional("at_most", |field| {
        reader.duration(field, SHORTEST_EACH..=LONGEST)
    });
    let usl = step.value_or("fit", false, |field| reader.choice(field, &[("usl", true)]));
    let good = good(reader, step, load.as_deref(), names);
    let (from, most, each, settle, at_most) = (from?, most?, each?, settle?, at_most?);
    let mut sound = true;
    let mut refuse = |field: Field<'_>, message: String| {
        reader.problem(Problem::new(field.span(), message));
        sound = false;
    };
    if let Some((most, field)) = most
        && most < from
    {
        refuse(
            field,
            format!(
                "\"most\" must be at least \"from\", which is {}",
                units::show_rate(from)
            ),
        );
    }
    if let (Some(settle), Some(field)) = (settle, fields.get("settle"))
        && settle >= each
    {
        refuse(
            field,
            format!(
                "\"settle\" must be shorter than \"each\", which is {}",
                units::write_duration(each)
            ),
        );
    }
    if let (Some(at_most), Some(field)) = (at_most, fields.get("at_most"))
        && at_most < each
    {
        refuse(
            field,
            format!(
                "\"at_most\" must be at least \"each\", which is {}",
                units::write_duration(each)
            ),
        );
    }
    let search = Search {
        load: load?,
        from,
        grow: grow?,
        most: most.map(|(most, _)| most),
        each,
        settle,
        precision: precision?,
        at_most,
        good: good?,
        usl: usl?,
    };
    sound.then_some(Some(search))
}

/// `vary = "traffic.rate"`.
fn varied(reader: &mut Reader<'_>, field: Field<'_>, loads: &[Found]) -> Option<String> {
    let text = reader.text(field, "the rate of a load, as in \"traffic.rate\"")?;
    let whole = text.as_str();
    let (name, what) = match whole.split_once('.') {
        Some((name, _)) => (
            text.slice(0..name.len()),
            text.slice(name.len() + 1..text.len()),
        ),
        None => (text.clone(), text.slice(text.len()..text.len())),
    };
    let found = loads.iter().find(|load| load.name == name.as_str());
    let problem = match found {
        None => {
            let known = loads.iter().filter(|load| !load.is_probe);
            let known = known.map(|load| load.name.as_str());
            reader.unknown(&name, "load", "loads", known)
        }
        Some(load) if load.is_probe => {
            let message = format!("{} is a probe, whose rate never changes", load.name);
            Problem::new(name.whole(), message).help("search with a [[load]]")
        }
        Some(Found {
            load: Some(load), ..
        }) if matches!(load.model, LoadModel::Closed { .. }) => {
            let message = format!("{} is a closed loop: it has users, and no rate", load.name);
            Problem::new(name.whole(), message).help("search with an open one")
        }
        Some(load) if what.as_str() != "rate" => {
            let message = match what.is_empty() {
                true => "what of the load is varied?".to_owned(),
                false => format!("a search cannot vary \"{}\"", what.as_str()),
            };
            Problem::new(text.whole(), message).suggest(format!("{}.rate", load.name))
        }
        Some(load) => return Some(load.name.clone()),
    };
    reader.refuse(problem)
}

fn rate(reader: &mut Reader<'_>, field: Field<'_>) -> Option<f64> {
    let rate = reader.rate(field, "a rate such as \"500/s\"", units::parse_rate)?;
    if rate <= 0.0 || rate > FASTEST {
        let message = "a rate is above 0 and at most 10,000,000/s";
        return reader.refuse(Problem::new(field.span(), message));
    }
    Some(rate)
}

fn grow(reader: &mut Reader<'_>, field: Field<'_>) -> Option<f64> {
    let fits = |grow: f64| (1.05..=10.0).contains(&grow);
    reader.number(field, "a factor from 1.05 to 10", fits)
}

/// `"auto"` or what is left out of each hold.
fn settle(reader: &mut Reader<'_>, field: Field<'_>) -> Option<Option<Duration>> {
    reader.quantity(
        field,
        "\"auto\" or a length of time such as \"2s\"",
        |text| match text {
            "auto" => Ok(None),
            _ if text.starts_with(|c: char| c.is_ascii_digit()) => {
                units::parse_duration(text).map(Some)
            }
            _ => {
                let message =
                    format!("expected auto or a length of time such as 2s, found \"{text}\"");
                Err(UnitError::new(0..text.len(), message).meant(text, ["auto"]))
            }
        },
    )
}

fn precision(reader: &mut Reader<'_>, field: Field<'_>) -> Option<f64> {
    let precision = reader.quantity(field, "a share such as \"3%\"", units::parse_share)?;
    if !(0.005..=0.5).contains(&precision) {
        let message = "\"precision\" must be from 0.5% to 50%";
        return reader.refuse(Problem::new(field.span(), message));
    }
    Some(precision)
}

/// What must hold at a rate, in the words of the search.
fn good(
    reader: &mut Reader<'_>,
    step: &Fields<'_>,
    load: Option<&str>,
    names: &Names,
) -> Option<String> {
    let name = load.unwrap_or("NAME");
    let example = format!("{{ good = [\"{name} p99 < 20ms\", \"{name} errors < 0.1%\"] }}");
    let field = step.require("while", &format!("{example}, what must hold"), reader)?;
    let known = ["good", "always"];
    let fields = Fields::open(field.value, "\"while\"", &known, reader)?;
    if let Some(field) = fields.get("always") {
        let message = "a search judges each rate by itself; \"always\" is for other steps";
        reader.problem(Problem::new(field.span(), message));
    }
    let field = fields.require("good", "[\"NAME p99 < 20ms\"], what must hold", reader)?;
    let items = reader.list(field, "a list of conditions such as [\"NAME p99 < 20ms\"]")?;
    if items.is_empty() {
        let message = "\"good\" is empty, so every rate would hold";
        return reader.refuse(Problem::new(field.span(), message));
    }
    let load = load?;
    let terms: Vec<Vec<String>> = all(items.into_iter().map(|item| {
        let text = reader.text(item, "a condition such as \"NAME p99 < 20ms\"")?;
        let expr = compile(&text, Use::Good(load), names, &mut reader.problems)?;
        terms(reader, &text, &expr)
    }))?;
    let objective = terms.concat().join(", ");
    match lab_load::slo::Slo::parse(&objective) {
        Ok(_) => Some(objective),
        Err(error) => reader.refuse(Problem::new(field.span(), error.message)),
    }
}

/// The conditions of an expression in the words of the search, which know no load.
fn terms(reader: &mut Reader<'_>, text: &Text, expr: &Expr) -> Option<Vec<String>> {
    let parts = match &expr.root {
        Node::All(parts) => parts.as_slice(),
        part => std::slice::from_ref(part),
    };
    let mut terms = Vec::new();
    for part in parts {
        let Node::Compare(comparison) = part else {
            let message = "a search needs every condition to hold; it knows no `or`";
            return reader.refuse(Problem::new(text.whole(), message));
        };
        let Metric::Load { quantity, .. } = &comparison.metric else {
            return None;
        };
        let op = match comparison.op {
            Op::Less => "<",
            Op::LessOrEqual => "<=",
            Op::Greater => ">",
            Op::GreaterOrEqual => ">=",
            Op::Equal | Op::NotEqual => {
                let message = "a search needs limits: <, <=, > or >=";
                return reader.refuse(Problem::new(text.whole(), message));
            }
        };
        let written = &comparison.written;
        terms.push(match quantity {
            // The share of good answers, seen from the other side.
            LoadQuantity::Ok => {
                let other = match op {
                    ">" => "<",
                    ">=" => "<=",
                    "<" => ">",
                    _ => ">=",
                };
                let errors = units::share(1.0 - comparison.quantity, 9)
                    .text
                    .replace(' ', "");
                format!("errors {other} {errors}")
            }
            quantity => format!("{quantity} {op} {written}"),
        });
    }
    Some(terms)
}
