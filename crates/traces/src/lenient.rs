//! What writers of JSON do otherwise than their formats say.

use serde::de::{Deserialize, Deserializer};
use serde_json::Number;

/// A list or a text; some writers have null for an empty one, as protobuf's JSON allows.
pub(crate) fn some<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Whole microseconds, of which some writers have fractions; null is 0. What is below zero is more
/// than any span has, so that the span is left out as absurd, and no other.
pub(crate) fn micros<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let number = Option::<Number>::deserialize(deserializer)?;
    Ok(number.map_or(0, |number| {
        let fraction = number.as_f64().filter(|micros| *micros >= 0.0);
        let whole = number.as_u64();
        whole.unwrap_or_else(|| fraction.map_or(u64::MAX, |micros| micros as u64))
    }))
}
