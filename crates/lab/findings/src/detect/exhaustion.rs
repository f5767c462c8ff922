//! Something of which there is only so much, and it is nearly used up.

use units::{show_count, show_share};

use super::resample::{longest, share_of_time};
use crate::finding::{Chart, Finding, Kind, Number, ShareOf};

/// Share of the limit from which one is near it.
const NEAR: f64 = 0.9;

/// Samples in a row: one alone may be a burst that the limit held.
const IN_A_ROW: usize = 3;

/// What a system used of something limited.
#[derive(Debug, Clone, Copy)]
pub struct ResourceUse<'a> {
    /// The system.
    pub system: &'a str,
    /// What: `descriptors`, `ports`, `threads`.
    pub what: &'a str,
    /// When the first sample was taken, in seconds.
    pub start_s: f64,
    /// Time between samples.
    pub period_s: f64,
    /// How many were in use.
    pub used: &'a [f64],
    /// How many there are; not positive: no limit.
    pub limit: f64,
}

/// A limit that was reached, or nearly so: no statistics, as the limit is known.
#[must_use]
pub fn exhaustion(of: &ResourceUse<'_>) -> Option<Finding> {
    if of.limit.is_nan() || of.limit <= 0.0 {
        return None;
    }
    let near = |used: &f64| *used >= NEAR * of.limit;
    let (from, to) = longest(of.used.iter().map(near));
    if to - from < IN_A_ROW {
        return None;
    }
    let effect = share_of_time(of.used.iter().map(near))?;
    let most = of.used.iter().copied().fold(0.0, f64::max);
    let sentence = format!(
        "{} had up to {} of {} {} in use, and {} or more for {} of the time",
        of.system,
        show_count(most),
        show_count(of.limit),
        of.what,
        show_share(NEAR),
        show_share(effect.value)
    );
    let number = |name, value| Number { name, value };
    Some(Finding {
        kind: Kind::Exhaustion,
        system: of.system.to_owned(),
        part: of.what.to_owned(),
        from_s: of.start_s + from as f64 * of.period_s,
        to_s: of.start_s + to as f64 * of.period_s,
        chart: Chart::Resources,
        effect,
        of: ShareOf::Time,
        evidence: vec![number("used_max", most), number("limit", of.limit)],
        sentence,
    })
}
