//! How long a node's last compliance is kept when its reports stay away: what Rudder's property
//! `rudder` says of it, which nodes also inherit from groups and from the parameter of this name.

use serde_json::Value;

/// The name of the property.
pub const PROPERTY: &str = "rudder";

const POLICY: &str = "compliance_expiration_policy";
const KEEP_LAST: &str = "keep_last";
const MODES: [&str; 2] = [KEEP_LAST, "expire_immediately"];

/// Milliseconds of units, by the names that they may have; all but the first may also be plural.
const UNITS: [(&[&str], f64); 7] = [
    (&["d", "day"], 86_400_000.0),
    (&["h", "hr", "hour"], 3_600_000.0),
    (&["m", "min", "minute"], 60_000.0),
    (&["s", "sec", "second"], 1_000.0),
    (&["ms", "milli", "millisecond"], 1.0),
    (&["µs", "micro", "microsecond"], 1e-3),
    (&["ns", "nano", "nanosecond"], 1e-6),
];

/// Milliseconds for which the last compliance is kept, by the value of the property
/// [`PROPERTY`]: `{"compliance_expiration_policy": {"mode": "keep_last", "duration": "1 hour"}}`.
/// 0, which is not at all, if it says anything else.
pub fn keep_last(value: &Value) -> i64 {
    let policy = &value[POLICY];
    match (policy["mode"].as_str(), policy["duration"].as_str()) {
        (Some(KEEP_LAST), Some(duration)) => milliseconds(duration).unwrap_or(0),
        _ => 0,
    }
}

/// What is wrong with the value of the property [`PROPERTY`], which would then keep nothing without a
/// word. What it leaves out may be said elsewhere, as objects are laid on each other; a text with `${`
/// is known later.
///
/// # Errors
/// A policy, a mode or a duration that there cannot be.
pub fn check(value: &Value) -> Result<(), String> {
    let Some(policy) = value.get(POLICY) else {
        return Ok(());
    };
    let Value::Object(fields) = policy else {
        return Err(format!(
            "{POLICY} is {policy}; expected {{\"mode\": \"keep_last\", \"duration\": \"1 hour\"}}"
        ));
    };
    for (name, found) in fields {
        let text = found.as_str();
        let right = match name.as_str() {
            _ if text.is_some_and(|text| text.contains("${")) => true,
            "mode" => text.is_some_and(|mode| MODES.contains(&mode)),
            "duration" => text.is_some_and(|text| milliseconds(text).is_some()),
            _ => {
                let expected = "expected mode and duration";
                return Err(format!("{POLICY} has \"{name}\"; {expected}"));
            }
        };
        let expected = match name.as_str() {
            "mode" => "\"keep_last\" or \"expire_immediately\"",
            _ => "a number with a unit, as \"90 minutes\", \"1 hour\" or \"2 days\"",
        };
        if !right {
            return Err(format!(
                "{name} of {POLICY} is {found}; expected {expected}"
            ));
        }
    }
    Ok(())
}

/// A number and a unit, as Scala's `Duration` reads them.
fn milliseconds(text: &str) -> Option<i64> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().ok()?;
    let named = |names: &[&str]| {
        let mut names = names.iter();
        names.next() == Some(&unit) || names.any(|name| *name == unit.trim_end_matches('s'))
    };
    let (_, factor) = UNITS.iter().find(|(names, _)| named(names))?;
    // What is too large becomes the largest there is.
    Some((number * factor) as i64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{check, keep_last};

    #[test]
    fn durations_are_those_of_rudder() {
        for (duration, milliseconds) in [
            ("1 hour", 3_600_000),
            ("2hours", 7_200_000),
            (" 1.5 h ", 5_400_000),
            ("30 mins", 1_800_000),
            ("1 day", 86_400_000),
            ("90 s", 90_000),
            ("1500 ms", 1_500),
            ("1500000 µs", 1_500),
            ("99999999999999999999 days", i64::MAX),
            ("0 s", 0),
            ("-1 hour", 0),
            ("1", 0),
            ("hour", 0),
            ("1 ss", 0),
            ("1 week", 0),
            ("Inf", 0),
            ("1.2.3 s", 0),
            ("", 0),
        ] {
            let policy = json!({"mode": "keep_last", "duration": duration});
            let value = json!({"compliance_expiration_policy": policy});
            assert_eq!(keep_last(&value), milliseconds, "{duration:?}");
        }
    }

    #[test]
    fn what_would_keep_nothing_without_a_word_is_wrong() {
        let of =
            |policy: serde_json::Value| check(&json!({"compliance_expiration_policy": policy}));
        for (policy, told) in [
            (
                json!("keep_last"),
                "compliance_expiration_policy is \"keep_last\"",
            ),
            (json!(null), "compliance_expiration_policy is null"),
            (
                json!({"mode": "keep"}),
                "mode of compliance_expiration_policy is \"keep\"",
            ),
            (json!({"mode": null}), "is null; expected \"keep_last\" or"),
            (
                json!({"duration": 3600}),
                "duration of compliance_expiration_policy is 3600",
            ),
            (
                json!({"duration": "P1D"}),
                "\"P1D\"; expected a number with a unit",
            ),
            (json!({"duration": "-1 hour"}), "-1 hour"),
            (json!({"mode": "keep_last", "duration": "1 week"}), "1 week"),
            (
                json!({"mod": "keep_last"}),
                "has \"mod\"; expected mode and duration",
            ),
        ] {
            let wrong = of(policy.clone()).unwrap_err();
            assert!(wrong.contains(told), "{policy}: {wrong}");
        }
        for policy in [
            json!({}),
            json!({"mode": "keep_last", "duration": "1 hour"}),
            json!({"mode": "expire_immediately"}),
            json!({"duration": "1.5 hours"}),
            json!({"mode": "${node.properties[mode]}", "duration": "${rudder.param}"}),
        ] {
            assert_eq!(of(policy.clone()), Ok(()), "{policy}");
        }
        for value in [json!(null), json!("x"), json!({"other": 1}), json!([1])] {
            assert_eq!(check(&value), Ok(()), "{value}");
        }
    }

    #[test]
    fn what_says_something_else_keeps_nothing() {
        let duration = "1 hour";
        for value in [
            json!(null),
            json!("keep_last"),
            json!({"mode": "keep_last", "duration": duration}),
            json!({"bad": {"compliance_expiration_policy": {"mode": "keep_last"}}}),
            json!({"compliance_expiration_policy": {"mode": "keep_last"}}),
            json!({"compliance_expiration_policy": {"mode": "keep_last", "duration": 1}}),
            json!({"compliance_expiration_policy":
                {"mode": "expire_immediately", "duration": duration}}),
        ] {
            assert_eq!(keep_last(&value), 0, "{value}");
        }
    }
}
