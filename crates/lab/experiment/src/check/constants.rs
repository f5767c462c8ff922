//! `[let]` and its overrides.

use document::{Diagnostic, Lines, Problem};
use toml::de::DeValue;

use super::fields::{Field, Fields, described};
use super::values::{Reader, name_problem};
use crate::names::{Constant, means_something};

/// Most constants of a file.
const MOST_CONSTANTS: usize = 1_000;

/// Reads the constants in order, each with the earlier ones filled in. An override
/// takes the place of a value before later constants use it. Problems with the
/// overrides themselves are given back, for they are not in the file.
pub(super) fn read(
    reader: &mut Reader<'_>,
    root: &Fields<'_>,
    overrides: &[(String, String)],
) -> Vec<Diagnostic> {
    let table = root
        .get("let")
        .and_then(|field| Fields::open_any(field.value, "[let]", reader));
    let fields: Vec<_> = table.iter().flat_map(Fields::fields).collect();
    if let Some((span, _)) = fields.get(MOST_CONSTANTS) {
        let message = format!("[let] has more than {MOST_CONSTANTS} constants");
        reader.problem(Problem::new(span.clone(), message));
        return Vec::new();
    }
    // That [let] lacks a constant of a variant is told once, at the variant.
    let variants = root
        .get("variants")
        .and_then(|field| field.value.get_ref().as_table());
    for variant in variants.into_iter().flat_map(|table| table.values()) {
        let names = variant.get_ref().as_table().into_iter();
        let names = names.flat_map(|table| table.keys());
        let broken = names.map(|name| (name.get_ref().to_string(), Constant::Broken));
        reader.scope.constants.extend(broken);
    }
    let names: Vec<&str> = fields.iter().map(|(_, field)| field.key).collect();
    let mut diagnostics: Vec<Diagnostic> = overrides
        .iter()
        .filter(|(name, _)| !names.contains(&name.as_str()))
        .map(|(name, value)| {
            let problem = Problem::new(6..6 + name.len(), format!("[let] has no \"{name}\""));
            on_command_line(
                name,
                value,
                problem.suggest_from(name, "constants", names.iter().copied()),
            )
        })
        .collect();
    reader.scope.later = names.iter().map(|name| (*name).to_owned()).collect();
    for (span, field) in fields {
        let wrong = name_problem(field.key).or_else(|| {
            let message = "means something else; choose another name";
            means_something(field.key).then(|| format!("{{{}}} {message}", field.key))
        });
        if let Some(message) = wrong {
            reader.problem(Problem::new(span, message));
            continue;
        }
        // The value in the file is read even if it is overridden: it gives the type,
        // and a mistake in it should not wait for a run without the override.
        let mut constant = constant(reader, field).unwrap_or(Constant::Broken);
        if let Some((name, text)) = overrides.iter().rfind(|(name, _)| name == field.key) {
            match overriding(&constant, text) {
                Ok(overridden) => constant = overridden,
                Err(message) => {
                    let from = 6 + name.len() + 1;
                    let problem = Problem::new(from..from + text.len(), message);
                    diagnostics.push(on_command_line(name, text, problem));
                    constant = Constant::Broken;
                }
            }
        }
        reader.scope.later.retain(|later| later != field.key);
        reader
            .scope
            .constants
            .insert(field.key.to_owned(), constant);
    }
    reader.scope.later.clear();
    diagnostics
}

fn constant(reader: &mut Reader<'_>, field: Field<'_>) -> Option<Constant> {
    match field.value.get_ref() {
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Some(Constant::Integer(number)),
            Err(_) => {
                let message = format!("{number} does not fit into 64 bits");
                reader.refuse(Problem::new(field.span(), message))
            }
        },
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(number) if number.is_finite() => Some(Constant::Float(number)),
            _ => reader.mismatch(field, "a finite number"),
        },
        DeValue::Boolean(value) => Some(Constant::Boolean(*value)),
        DeValue::String(_) => reader
            .text(field, "a string")
            .map(|text| Constant::Text(text.as_str().to_owned())),
        other => {
            let message = format!(
                "a constant is a number, a string, true or false, found {}",
                described(other)
            );
            reader.refuse(Problem::new(field.span(), message))
        }
    }
}

/// An override in the type of the constant that it replaces.
pub(super) fn overriding(constant: &Constant, text: &str) -> Result<Constant, String> {
    let plain = text.replace('_', "");
    match constant {
        Constant::Broken => Ok(Constant::Broken),
        Constant::Integer(_) => match plain.parse() {
            Ok(number) if !text.starts_with('_') && !text.ends_with('_') => {
                Ok(Constant::Integer(number))
            }
            _ => Err(format!("expected a whole number, found \"{text}\"")),
        },
        Constant::Float(_) => {
            let digits = text.strip_prefix('-').unwrap_or(text);
            match units::parse_number(digits) {
                Ok(number) if digits.len() < text.len() => Ok(Constant::Float(-number)),
                Ok(number) => Ok(Constant::Float(number)),
                Err(_) => Err(format!("expected a number, found \"{text}\"")),
            }
        }
        Constant::Boolean(_) => text
            .parse()
            .map(Constant::Boolean)
            .map_err(|_| format!("expected true or false, found \"{text}\"")),
        Constant::Text(_) if text.contains('\0') => {
            Err("a string cannot hold a NUL character".to_owned())
        }
        Constant::Text(_) => Ok(Constant::Text(text.to_owned())),
    }
}

fn on_command_line(name: &str, value: &str, problem: Problem) -> Diagnostic {
    let line = format!("--set {name}={value}");
    Lines::of("command line", &line).diagnostic(problem)
}
