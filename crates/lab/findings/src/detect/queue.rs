//! A queue that grows for as long as was looked.

use stats::{mean, trend};
use units::{show_count, show_rate, show_share};

use super::resample::means;
use crate::finding::{Chart, Finding, Kind, Number, Share, Whole};

/// Blocks that a run is looked at in: as many as a trend needs, and few enough that a block outlasts
/// what neighbours have in common.
const BLOCKS: usize = 60;
const FEWEST: usize = 20;

/// The first part of a run may be its filling up.
const FILLING: f64 = 0.25;

/// Parts of the rest, each of which must be above the one before.
const PARTS: usize = 6;

/// Confidence of the growth over all of it, and over its last half.
const CONFIDENCE: f64 = 0.999;
const CONFIDENCE_AT_THE_END: f64 = 0.99;

/// Growth that matters: so many, and such a share of what it is at the end.
const LEAST: f64 = 5.0;
const LEAST_SHARE: f64 = 0.3;

/// How often something waited, over time.
#[derive(Debug, Clone, Copy)]
pub struct QueueLevels<'a> {
    /// The system that the queue is of.
    pub system: &'a str,
    /// As a reader knows it.
    pub name: &'a str,
    /// When the first value was taken, in seconds.
    pub start_s: f64,
    /// Time between values.
    pub period_s: f64,
    /// How many waited.
    pub levels: &'a [f64],
    /// What was asked for meanwhile, in any unit, for each value: a queue that grows with the load
    /// is no finding. May be empty: then the load counts as even.
    pub load: &'a [f64],
}

/// A queue that grew over the run and was still growing at its end, by more than its load did.
#[must_use]
pub fn queue(of: &QueueLevels<'_>) -> Option<Finding> {
    let per_block = of.levels.len().div_ceil(BLOCKS).max(1);
    let levels = means(of.levels, per_block);
    let skipped = (levels.len() as f64 * FILLING) as usize;
    let rest = levels.get(skipped..)?;
    if rest.len() < FEWEST {
        return None;
    }
    let load = means(of.load, per_block);
    let load = load.get(skipped..).filter(|load| load.len() == rest.len());
    let parts = parts(rest);
    if !parts.is_sorted_by(|a, b| a < b) {
        return None;
    }
    let whole = trend(rest, CONFIDENCE)?;
    let half = trend(&rest[rest.len() / 2..], CONFIDENCE_AT_THE_END)?;
    if whole.low <= 0.0 || half.low <= 0.0 || half.slope < 0.3 * whole.slope {
        return None;
    }
    let steps = (rest.len() - 1) as f64;
    let last = mean(&rest[rest.len() - rest.len() / PARTS..])?;
    let first = *parts.first()?;
    // Of what it holds at the end, how much the growth of the load explains.
    let with_load = load.map_or(first, |load| {
        let of_load = self::parts(load);
        let by = of_load.last().zip(of_load.first());
        first * by.map_or(1.0, |(last, first)| (last / first).max(1.0).powi(2))
    });
    let growth = last - with_load;
    if growth < LEAST || growth < LEAST_SHARE * last {
        return None;
    }
    let share = |slope: f64| (growth / last * slope / whole.slope).clamp(0.0, 1.0);
    let effect = Share {
        value: share(whole.slope),
        low: share(whole.low),
        high: share(whole.high),
    };
    let block_s = of.period_s * per_block as f64;
    let per_s = whole.slope / block_s;
    let from_s = of.start_s + skipped as f64 * block_s;
    let sentence = format!(
        "{} grew by {} from {} to {} and was still growing when the run ended: {} of what waited came in faster \
         than it was taken",
        of.name,
        show_rate(per_s),
        show_count(first.round()),
        show_count(last.round()),
        show_share(effect.value)
    );
    let number = |name, value| Number { name, value };
    Some(Finding {
        kind: Kind::Queue,
        system: of.system.to_owned(),
        part: of.name.to_owned(),
        from_s,
        to_s: from_s + (steps + 1.0) * block_s,
        chart: Chart::Load,
        effect,
        of: Whole::Latency,
        evidence: vec![
            number("slope_per_s", per_s),
            number("level_at_first", first),
            number("level_at_last", last),
        ],
        sentence,
    })
}

/// Means of equal parts.
fn parts(values: &[f64]) -> Vec<f64> {
    means(values, (values.len() / PARTS).max(1))
        .into_iter()
        .take(PARTS)
        .collect()
}
