//! `[variants]` and `[[gate]]`.

use document::{Problem, Span};
use toml::de::DeValue;

use super::constants::overriding;
use super::entries::tables;
use super::fields::{Field, Fields, Value, described};
use super::values::{Reader, name_problem};
use crate::expr::{Names, compile_metric};
use crate::names::Constant;
use crate::plan::{Gated, Gates, Variant};
use lab_judgement::Direction;

/// Most variants of a file.
const MOST_VARIANTS: usize = 100;
/// Most metrics that are gated: all of them must not get worse.
const MOST_GATES: usize = 32;
/// Pairs of runs that a gate may ask for; fewer never show anything.
const PAIRS: std::ops::RangeInclusive<u64> = 6..=1_000;
/// Pairs of runs when a file does not say.
const USUAL_PAIRS: u32 = 24;
/// The variants that are compared when a file does not say.
const SIDES: [&str; 2] = ["base", "new"];

/// Reads `[variants]`, after the constants.
pub(super) fn variants(reader: &mut Reader<'_>, root: &Fields<'_>) -> Vec<Variant> {
    let Some(field) = root.get("variants") else {
        return Vec::new();
    };
    let Some(table) = Fields::open_any(field.value, "[variants]", reader) else {
        return Vec::new();
    };
    let constants: Vec<&str> = root
        .get("let")
        .and_then(|field| field.value.get_ref().as_table())
        .map(|table| table.keys().map(|key| key.get_ref().as_ref()).collect())
        .unwrap_or_default();
    let mut variants = Vec::new();
    for (span, field) in table.fields() {
        if variants.len() == MOST_VARIANTS {
            let message = format!("[variants] has more than {MOST_VARIANTS}");
            reader.problem(Problem::new(span, message));
            break;
        }
        if let Some(problem) = name_problem(field.key) {
            reader.problem(Problem::new(span, problem));
        }
        let label = format!("the variant \"{}\"", field.key);
        let Some(table) = Fields::open_any(field.value, &label, reader) else {
            continue;
        };
        let each = table.fields();
        let set = each.filter_map(|(span, field)| override_of(reader, span, field, &constants));
        variants.push(Variant {
            set: set.collect(),
            name: field.key.to_owned(),
        });
    }
    variants
}

/// A constant of a variant, in the type of the one that it replaces.
fn override_of(
    reader: &mut Reader<'_>,
    span: Span,
    field: Field<'_>,
    constants: &[&str],
) -> Option<(String, String)> {
    if !constants.contains(&field.key) {
        let problem = Problem::new(span, format!("[let] has no \"{}\"", field.key));
        let problem = problem.suggest_from(field.key, "constants", constants.iter().copied());
        return reader.refuse(match constants.is_empty() {
            true => problem.help("a variant gives constants of [let] other values"),
            false => problem,
        });
    }
    let text = match field.value.get_ref() {
        // As on the command line: without names filled in.
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| number.to_string(), |number| number.to_string()),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(value) => value.to_string(),
        other => {
            let message = format!(
                "a constant is a number, a string, true or false, found {}",
                described(other)
            );
            return reader.refuse(Problem::new(field.span(), message));
        }
    };
    let constant = reader.scope.constants.get(field.key);
    let in_quotes = matches!(field.value.get_ref(), DeValue::String(_));
    if let (true, Some(kind)) = (in_quotes, constant.and_then(bare)) {
        let problem = Problem::new(field.span(), format!("expected {kind}, found \"{text}\""));
        let of = match overriding(constant.unwrap_or(&Constant::Broken), &text) {
            Ok(_) => problem.help(format!("write {text} without quotes")),
            Err(_) => problem,
        };
        return reader.refuse(of);
    }
    let read = overriding(constant.unwrap_or(&Constant::Broken), &text);
    if let Err(message) = read {
        return reader.refuse(Problem::new(field.span(), message));
    }
    Some((field.key.to_owned(), text))
}

/// What a constant is that stands without quotes.
fn bare(constant: &Constant) -> Option<&'static str> {
    match constant {
        Constant::Integer(_) => Some("a whole number"),
        Constant::Float(_) => Some("a number"),
        Constant::Boolean(_) => Some("true or false"),
        Constant::Text(_) | Constant::Broken => None,
    }
}

/// Reads every `[[gate]]`; `None` if there is none.
pub(super) fn gates(
    reader: &mut Reader<'_>,
    root: &Fields<'_>,
    variants: &[Variant],
    names: &Names,
) -> Option<Gates> {
    let values = tables(reader, root, "[[gate]]", MOST_GATES);
    let first = values.first()?.span();
    let mut found: Option<Compare> = None;
    let mut broken = false;
    let mut metrics: Vec<Gated> = Vec::new();
    for value in values {
        let known = ["metric", "fail", "better", "compare"];
        let Some(fields) = Fields::open(value, "[[gate]]", &known, reader) else {
            continue;
        };
        if let Some(field) = fields.get("compare") {
            let compare = compare(reader, field.value, variants);
            broken |= compare.is_none();
            if let (Some(found), Some(compare)) = (&found, &compare)
                && (&found.sides, found.pairs) != (&compare.sides, compare.pairs)
            {
                let problem = Problem::new(
                    field.span(),
                    "all gates of a file are judged by the same pairs of runs",
                );
                reader.problem(problem.help("write \"compare\" in one of them"));
            }
            found = found.or(compare);
        }
        if let Some(gated) = gated(reader, &fields, names) {
            let twice = metrics.iter().any(|known| known.metric == gated.metric);
            if twice && let Some(field) = fields.get("metric") {
                let message = format!("\"{}\" has a gate already", gated.metric);
                reader.problem(Problem::new(field.span(), message));
            }
            metrics.push(gated);
        }
    }
    if root.get("sweep").is_some() && !variants.is_empty() {
        let problem = Problem::new(
            first.clone(),
            "a run is either a sweep or pairs of variants",
        );
        reader.problem(problem.help("write [sweep] and [[gate]] into files of their own"));
    }
    let compare = found.unwrap_or_default();
    if root.get("variants").is_some() && !broken {
        missing_sides(reader, first, variants, &compare);
    }
    Some(Gates {
        sides: (!variants.is_empty()).then_some(compare.sides),
        pairs: compare.pairs,
        metrics,
    })
}

/// What `compare` says.
struct Compare {
    sides: [String; 2],
    /// Which of them the file names; their mistakes are told where it does.
    named: [bool; 2],
    pairs: u32,
}

impl Default for Compare {
    fn default() -> Self {
        Self {
            sides: SIDES.map(str::to_owned),
            named: [false; 2],
            pairs: USUAL_PAIRS,
        }
    }
}

fn compare(reader: &mut Reader<'_>, value: &Value<'_>, variants: &[Variant]) -> Option<Compare> {
    let known = ["base", "new", "pairs"];
    let fields = Fields::open(value, "\"compare\"", &known, reader)?;
    let mut compare = Compare::default();
    for (at, key) in SIDES.into_iter().enumerate() {
        let Some(field) = fields.get(key) else {
            continue;
        };
        let text = reader.text(field, "the name of a variant")?;
        if !variants.iter().any(|variant| variant.name == text.as_str()) {
            let names = variants.iter().map(|variant| variant.name.as_str());
            let problem = reader.unknown(&text, "variant", "variants", names);
            reader.problem(problem);
        }
        compare.sides[at] = text.as_str().to_owned();
        compare.named[at] = true;
    }
    if compare.sides[0] == compare.sides[1] {
        let twice = format!("\"{}\" is compared with itself", compare.sides[0]);
        let problem = Problem::new(value.span(), twice);
        reader.problem(problem.help("two variants of different names may have the same values"));
    }
    if let Some(field) = fields.get("pairs") {
        let pairs = reader.count(field, PAIRS)?;
        compare.pairs = u32::try_from(pairs).unwrap_or(u32::MAX);
    }
    Some(compare)
}

fn missing_sides(reader: &mut Reader<'_>, at: Span, variants: &[Variant], compare: &Compare) {
    for (side, named) in compare.sides.iter().zip(compare.named) {
        if named || variants.iter().any(|variant| variant.name == *side) {
            continue;
        }
        let message = format!("[[gate]] compares the variant \"{side}\", which is not there");
        let help = format!("name another with compare = {{ {side} = \"...\" }}");
        reader.problem(Problem::new(at.clone(), message).help(help));
    }
}

fn gated(reader: &mut Reader<'_>, fields: &Fields<'_>, names: &Names) -> Option<Gated> {
    let metric = fields
        .require("metric", "\"knee.rate\"", reader)
        .and_then(|field| reader.text(field, "a metric such as \"knee.rate\""))
        .and_then(|text| compile_metric(&text, names, &mut reader.problems));
    let limit_share = fields
        .require("fail", "\"worse than 5%\"", reader)
        .and_then(|field| limit(reader, field));
    let ways = [
        ("lower", Direction::LowerIsBetter),
        ("higher", Direction::HigherIsBetter),
    ];
    let better = fields
        .get("better")
        .map(|field| reader.choice(field, &ways));
    let metric = metric?;
    let usual = metric.direction();
    Some(Gated {
        metric,
        direction: better.unwrap_or(Some(usual))?,
        limit_share: limit_share?,
    })
}

/// `worse than 5%`
fn limit(reader: &mut Reader<'_>, field: Field<'_>) -> Option<f64> {
    let expected = "\"worse than\" and a share, as in \"worse than 5%\"";
    let text = reader.text(field, expected)?;
    let share = text.as_str().strip_prefix("worse than ");
    let share = share.and_then(|share| units::parse_share(share.trim()).ok());
    match share {
        Some(share) if share > 0.0 && share < 1.0 => Some(share),
        Some(_) => reader.refuse(Problem::new(
            text.whole(),
            "a limit is above 0% and below 100%",
        )),
        None => {
            let found = text.as_str();
            let message = format!("\"fail\" must be {expected}, found \"{found}\"");
            reader.refuse(Problem::new(text.whole(), message))
        }
    }
}
