//! A queue that grows for as long as was looked.

use stats::{mean, student_quantile, variance};
use units::{show_count, show_rate, show_share};

use super::resample::means;
use crate::finding::{Chart, Finding, Kind, Number, Share, ShareOf};

/// Blocks that a run is looked at in: as many as a trend needs, and few enough that a block outlasts
/// what neighbours have in common.
const BLOCKS: usize = 60;
const FEWEST: usize = 20;

/// The first part of a run may be its filling up.
const FILLING: f64 = 0.25;

/// Parts of the rest, each of which must be above the one before.
const PARTS: usize = 6;

/// One-sided probability that a queue without a drift seems to grow; that each part is above the one
/// before makes it rarer.
const BY_CHANCE: f64 = 0.001;

/// In its last half it must still grow with this share of its usual slope.
const AT_THE_END: f64 = 0.3;

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
    let drift = Drift::of(rest)?;
    let end = &rest[rest.len() / 2..];
    let at_the_end = (end.last()? - end.first()?) / (end.len() - 1) as f64;
    if drift.low <= 0.0 || at_the_end < AT_THE_END * drift.slope {
        return None;
    }
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
    let share = |slope: f64| (growth / last * slope / drift.slope).clamp(0.0, 1.0);
    let effect = Share {
        value: share(drift.slope),
        low: share(drift.low),
        high: share(drift.high),
    };
    let block_s = of.period_s * per_block as f64;
    let per_s = drift.slope / block_s;
    let from_s = of.start_s + skipped as f64 * block_s;
    let sentence = format!(
        "{} grew by {} from {} to {} and was still growing at the end: {} of what waited came in faster \
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
        to_s: from_s + rest.len() as f64 * block_s,
        chart: Chart::Load,
        effect,
        of: ShareOf::Latency,
        evidence: vec![
            number("slope_per_s", per_s),
            number("level_at_first", first),
            number("level_at_last", last),
        ],
        sentence,
    })
}

/// Growth per block of a sum of what came and went: what a queue is.
struct Drift {
    slope: f64,
    low: f64,
    high: f64,
}

impl Drift {
    /// From its changes, which are independent where the queue is never empty. Around a level they cancel each other
    /// out, so that a level is no drift, however alike neighbours are.
    fn of(levels: &[f64]) -> Option<Self> {
        let changes: Vec<f64> = levels.windows(2).map(|two| two[1] - two[0]).collect();
        let count = changes.len() as f64;
        let slope = mean(&changes)?;
        let error = (variance(&changes)? / (count - 1.0)).sqrt();
        let quantile = student_quantile(1.0 - BY_CHANCE, count - 1.0);
        Some(Self {
            slope,
            low: slope - quantile * error,
            high: slope + quantile * error,
        })
    }
}

/// Means of equal parts.
fn parts(values: &[f64]) -> Vec<f64> {
    means(values, (values.len() / PARTS).max(1))
        .into_iter()
        .take(PARTS)
        .collect()
}
