//! Requests that are sent again, so that what is too much becomes more.

use units::{show_count, show_share};

use super::resample::{longest, share_of};
use crate::finding::{Chart, Finding, Kind, Number, Share, Whole};

/// Periods that are looked at together, and how many attempts for each request there are in them at the
/// worst. A retry here and there stays far below.
const TOGETHER: usize = 5;
const AT_WORST: f64 = 1.4;

/// Attempts for each request, in such times, beyond which they are counted.
const MORE: f64 = 1.1;

/// So many times in a row: retries that are over after a few seconds helped.
const LASTING: usize = 2 * TOGETHER;

/// Fewest attempts more than requests.
const FEWEST: f64 = 50.0;

/// What was counted in each second.
#[derive(Debug, Clone, Copy)]
pub struct AttemptCounts<'a> {
    /// The system that was asked again.
    pub system: &'a str,
    /// Who asked again.
    pub client: &'a str,
    /// When the first count begins, in seconds.
    pub start_s: f64,
    /// Length of each.
    pub period_s: f64,
    /// Requests, each counted once.
    pub requests: &'a [f64],
    /// What was sent for them, first attempts included.
    pub attempts: &'a [f64],
}

/// Retries that add to the load for some seconds or for good.
#[must_use]
pub fn retries(of: &AttemptCounts<'_>) -> Option<Finding> {
    let pairs: Vec<(f64, f64)> = of
        .requests
        .iter()
        .copied()
        .zip(of.attempts.iter().copied())
        .collect();
    let around: Vec<f64> = pairs
        .windows(TOGETHER)
        .map(|some| {
            let requests: f64 = some.iter().map(|pair| pair.0).sum();
            let attempts: f64 = some.iter().map(|pair| pair.1).sum();
            attempts / requests
        })
        .filter(|ratio| ratio.is_finite())
        .collect();
    let worst = around.iter().copied().fold(0.0, f64::max);
    let more: f64 = pairs.iter().map(|pair| (pair.1 - pair.0).max(0.0)).sum();
    let (from, to) = longest(around.iter().map(|ratio| *ratio >= MORE));
    if worst < AT_WORST || more < FEWEST || to - from < LASTING {
        return None;
    }
    // Of what is sent, how much is sent again.
    let pieces: Vec<(f64, f64)> = pairs
        .iter()
        .map(|(requests, attempts)| ((attempts - requests).max(0.0), *attempts))
        .collect();
    let Share { value, low, high } = share_of(&pieces)?;
    if low <= 0.0 {
        return None;
    }
    let sentence = format!(
        "{} sent {} attempts for {} requests to {}, and up to {:.1} for each: retries were {} of the load",
        of.client,
        show_count(pairs.iter().map(|pair| pair.1).sum()),
        show_count(pairs.iter().map(|pair| pair.0).sum()),
        of.system,
        worst,
        show_share(value)
    );
    let number = |name, value| Number { name, value };
    Some(Finding {
        kind: Kind::Retries,
        system: of.system.to_owned(),
        part: of.client.to_owned(),
        from_s: of.start_s + from as f64 * of.period_s,
        to_s: of.start_s + (to + TOGETHER - 1) as f64 * of.period_s,
        chart: Chart::Load,
        effect: Share { value, low, high },
        of: Whole::Work,
        evidence: vec![
            number("attempts_per_request_max", worst),
            number("retries", more),
        ],
        sentence,
    })
}
