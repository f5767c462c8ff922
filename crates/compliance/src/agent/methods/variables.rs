//! Variables and conditions that calls define for later ones. They change nothing on the machine, so audits
//! define them as well.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use super::files::{text_of, whole};
use super::{OnSystem, Problem, wanted};
use crate::agent::condition::{end_of_variable, holds};
use crate::agent::system::System;
use crate::agent::{Applied, Invocation, Outcome};

/// Variables of one run.
const COUNT: usize = 10_000;
/// Bytes of one variable.
const VALUE: usize = 1 << 20;
/// Bytes of all variables of one run.
const ALL: usize = 64 << 20;
/// Bytes of a text with variables in it.
const EXPANDED: usize = 16 << 20;

/// Variables by their whole names: `prefix.name`.
#[derive(Debug, Clone, Default)]
pub(super) struct Variables {
    values: BTreeMap<String, String>,
    bytes: usize,
}

impl Variables {
    fn set(&mut self, name: String, value: String) -> Result<(), Problem> {
        let old = self.values.get(&name).map_or(0, String::len);
        let bytes = self.bytes - old + value.len();
        let more = old == 0 && self.values.len() >= COUNT && !self.values.contains_key(&name);
        if value.len() > VALUE || bytes > ALL || more {
            return Err(Problem::new(format!(
                "{name} is too much: at most {COUNT} variables of {VALUE} bytes are kept, {ALL} \
                 bytes in all"
            )));
        }
        self.bytes = bytes;
        self.values.insert(name, value);
        Ok(())
    }

    /// The text with the values of variables that are known: `${prefix.name}` or `$(prefix.name)`.
    pub(super) fn expanded<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.values.is_empty() || !text.contains('$') {
            return Cow::Borrowed(text);
        }
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            let end = end_of_variable(from);
            let value = end.and_then(|end| self.values.get(&from[2..end]));
            match (value, end) {
                (Some(value), Some(end)) if out.len() + value.len() <= EXPANDED => {
                    out.push_str(value);
                    rest = &from[end + 1..];
                }
                _ => {
                    out.push('$');
                    rest = &from[1..];
                }
            }
        }
        out.push_str(rest);
        Cow::Owned(out)
    }

    /// What templates are filled with: below `vars` variables and the properties of the node, below
    /// `classes` conditions.
    pub(super) fn data(&self, known: &HashSet<String>, properties: &Map<String, Value>) -> Value {
        let mut vars: Map<String, Value> = Map::new();
        for (name, value) in &self.values {
            let (prefix, name) = name.split_once('.').unwrap_or((name, ""));
            let of_prefix = vars.entry(prefix).or_insert_with(|| Map::new().into());
            if let Value::Object(of_prefix) = of_prefix {
                of_prefix.insert(name.to_owned(), value.clone().into());
            }
        }
        let node = vars.entry("node").or_insert_with(|| Map::new().into());
        if let Value::Object(node) = node {
            node.insert("properties".into(), properties.clone().into());
        }
        let classes = known.iter().map(|name| (name.clone(), Value::Bool(true)));
        let classes: Map<_, _> = classes.chain([("any".to_owned(), true.into())]).collect();
        let mut data = Map::new();
        data.insert("vars".into(), vars.into());
        data.insert("classes".into(), classes.into());
        data.into()
    }
}

impl<S: System> OnSystem<S> {
    /// A call of such a method; none of another.
    pub(super) fn by_variable(
        &mut self,
        call: &Invocation<'_>,
    ) -> Option<Result<Applied, Problem>> {
        Some(match call.method {
            "variable_string" => self.set(call, call.param("value").unwrap_or_default().into()),
            "variable_string_default" => self.or_default(call),
            "variable_string_from_file" => self.of_file(call),
            "variable_string_match" => self.matching(call),
            "condition_from_variable_match" => self.condition_of_match(call),
            "condition_from_variable_existence" => wanted(call, "variable_name").map(|name| {
                let known = self.variables.values.contains_key(name);
                defined(call, known, Outcome::Success)
            }),
            "condition_from_string_match" => wanted(call, "regex").and_then(|regex| {
                let value = call.param("value").unwrap_or_default();
                let is = whole(regex)?.is_match(value);
                Ok(defined(call, is, Outcome::Success))
            }),
            "condition_from_expression" => {
                expression(call, "expression").map(|value| defined(call, value, Outcome::Success))
            }
            "report_if_condition" => expression(call, "condition").map(|value| match value {
                true => Applied::new(Outcome::Success, format!("{} was correct", call.key())),
                false => {
                    let message = format!("{} was incorrect", call.key());
                    Applied::new(Outcome::NonCompliant, message)
                }
            }),
            _ => return None,
        })
    }

    /// Sets the variable that a call names.
    pub(super) fn set(&mut self, call: &Invocation<'_>, value: String) -> Result<Applied, Problem> {
        let (prefix, name) = (wanted(call, "prefix")?, wanted(call, "name")?);
        let name = format!("{prefix}.{name}");
        let plain = |one: char| one.is_ascii_alphanumeric() || "_.-".contains(one);
        if !name.chars().all(plain) {
            return Err(Problem::new(format!(
                "{name:?} is no name of a variable; expected letters, digits and _.-"
            )));
        }
        let message = format!("{name} was set");
        self.variables.set(name, value)?;
        Ok(Applied::new(Outcome::Success, message))
    }

    fn or_default(&mut self, call: &Invocation<'_>) -> Result<Applied, Problem> {
        let source = wanted(call, "source_variable")?;
        let default = call.param("default_value").unwrap_or_default();
        let value = self.variables.values.get(source).map(String::as_str);
        self.set(call, value.unwrap_or(default).to_owned())
    }

    fn of_file(&mut self, call: &Invocation<'_>) -> Result<Applied, Problem> {
        let path = wanted(call, "file_name")?;
        let text = text_of(&self.system, path)?;
        let text = text.ok_or_else(|| Problem::new(format!("there is no file {path}")))?;
        let text = text.strip_suffix('\n').unwrap_or(&text);
        self.set(call, text.to_owned())
    }

    fn matching(&self, call: &Invocation<'_>) -> Result<Applied, Problem> {
        let name = call.key();
        let regex = whole(wanted(call, "expected_match")?)?;
        let value = self.variables.values.get(name);
        let value = value.ok_or_else(|| unknown(name))?;
        // The value may be secret.
        Ok(match regex.is_match(value) {
            true => Applied::new(Outcome::Success, format!("{name} was correct")),
            false => Applied::new(
                Outcome::NonCompliant,
                format!("{name} was not correct: its value does not match"),
            ),
        })
    }

    fn condition_of_match(&self, call: &Invocation<'_>) -> Result<Applied, Problem> {
        let name = wanted(call, "variable_name")?;
        let regex = whole(wanted(call, "expected_match")?)?;
        Ok(match self.variables.values.get(name) {
            Some(value) => defined(call, regex.is_match(value), Outcome::Success),
            None => Applied {
                message: unknown(name).0,
                ..defined(call, false, Outcome::Error)
            },
        })
    }
}

fn unknown(name: &str) -> Problem {
    Problem::new(format!(
        "there is no variable {name}; expected one that an earlier call of this run has set"
    ))
}

/// The outcome of a call that defines one of two conditions.
fn defined(call: &Invocation<'_>, value: bool, outcome: Outcome) -> Applied {
    let condition = format!("{}_{value}", call.key());
    let message = format!("{condition} was set");
    Applied {
        conditions: vec![condition],
        ..Applied::new(outcome, message)
    }
}

fn expression(call: &Invocation<'_>, parameter: &str) -> Result<bool, Problem> {
    let text = wanted(call, parameter)?;
    holds(text, call.known).map_err(|error| Problem::new(error.to_string()))
}
