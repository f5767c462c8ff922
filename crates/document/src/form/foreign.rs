//! Files that another program defined: what it coerces is coerced here, and what it does
//! not look at is no mistake.
//!
//! The rules are those of gopkg.in/yaml.v3 when it decodes into typed fields (`decode.go`,
//! `func (d *decoder) scalar`): a plain scalar is a text as it is written where a text is
//! expected, `yes` and its like are truth values where one is expected, a float without a
//! fraction is a whole number. A text in quotes is never a number.

use crate::{Entry, Kind, Node, Value};

/// The value of a node that is of another kind at first sight; `source` is the whole file.
pub(super) fn coerced<T: Kind>(node: &Node, source: &str) -> Option<T> {
    let whole = whole_number(&node.value);
    let truth = truth_value(&node.value);
    let readings = [whole, truth, Some(texts(node, source))];
    readings.iter().flatten().find_map(T::read)
}

/// Above 2^53 not every whole number is a float.
const EXACT: f64 = 9_007_199_254_740_992.0;

fn whole_number(value: &Value) -> Option<Value> {
    match value {
        Value::Float(number) if number.fract() == 0.0 && number.abs() < EXACT => {
            Some(Value::Integer(*number as i64))
        }
        _ => None,
    }
}

/// As YAML 1.1 wrote them (<https://yaml.org/type/bool.html>).
fn truth_value(value: &Value) -> Option<Value> {
    let Value::Text(text) = value else {
        return None;
    };
    match text.as_str() {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(Value::Bool(true)),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(Value::Bool(false)),
        _ => None,
    }
}

/// The value with its scalars as texts.
fn texts(node: &Node, source: &str) -> Value {
    let inner = |node: &Node| Node {
        span: node.span.clone(),
        value: texts(node, source),
    };
    match &node.value {
        // As it is written: a key of `0010` is not one of `10`.
        Value::Bool(_) | Value::Integer(_) | Value::Float(_) => {
            let written = source.get(node.span.clone()).unwrap_or_default();
            Value::Text(written.trim().to_owned())
        }
        Value::List(nodes) => Value::List(nodes.iter().map(inner).collect()),
        Value::Table(entries) => Value::Table(
            entries
                .iter()
                .map(|entry| Entry {
                    node: inner(&entry.node),
                    ..entry.clone()
                })
                .collect(),
        ),
        Value::Null => Value::Text(String::new()),
        Value::Text(text) => Value::Text(text.clone()),
    }
}
