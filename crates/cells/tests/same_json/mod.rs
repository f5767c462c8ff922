//! Comparison of JSON as Go's clients see it.

// Each test file uses its own part of it.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used)]

use serde_json::Value;

/// Are two values the same when an absent key, null, an empty list and an empty
/// object all mean "nothing"?
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(left), Value::Object(right)) => {
            let covered = |left: &serde_json::Map<String, Value>, right: &Value| {
                left.iter()
                    .all(|(key, value)| same(value, right.get(key).unwrap_or(&Value::Null)))
            };
            covered(left, b) && covered(right, a)
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(a, b)| same(a, b))
        }
        (a, b) => a == b || (nothing(a) && nothing(b)),
    }
}

fn nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}
