//! Pieces of Rudder's JSON of compliance.

use serde_json::{Map, Value, json};

use crate::reports::level::{ComplianceLevel, FleetLevel, Precision};
use crate::reports::moment::Moment;

/// A time in RFC 3339.
pub(super) fn when(millis: i64) -> String {
    let instant = jiff::Timestamp::from_millisecond(millis).unwrap_or_default();
    Moment::utc(instant).to_string()
}

/// The shares of statuses, without those of which there is none.
pub(super) fn details(level: &FleetLevel, precision: Precision) -> Map<String, Value> {
    let percents = level.percents(precision);
    let shown = percents.shown();
    shown
        .map(|(status, percent)| (status.api_name().to_owned(), percent.into()))
        .collect()
}

/// An object with its compliance, for which nothing pending counts, and what that consists of with
/// what is pending.
pub(super) fn with_level(
    mut object: Map<String, Value>,
    level: &FleetLevel,
    precision: Precision,
) -> Map<String, Value> {
    let compliance = level.compliance(precision);
    object.insert("compliance".into(), compliance.into());
    let details = details(level, precision);
    object.insert("complianceDetails".into(), details.into());
    object
}

/// An object of identity and name.
pub(super) fn named(id: &str, name: &str) -> Map<String, Value> {
    [("id", id), ("name", name)]
        .map(|(key, text)| (key.to_owned(), json!(text)))
        .into_iter()
        .collect()
}

/// The sum of some levels.
pub(super) fn sum<'l>(levels: impl IntoIterator<Item = &'l ComplianceLevel>) -> FleetLevel {
    levels
        .into_iter()
        .fold(FleetLevel::default(), |mut sum, level| {
            sum += level;
            sum
        })
}
