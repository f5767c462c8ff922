//! Everything stands still again and again, in a rhythm.

use stats::{level_and_spread, mean, nearest_rank, rank_sum};
use units::{show_seconds, show_share};

use super::beat::beat;
use super::resample::share_of_time;
use crate::finding::{Chart, Finding, Kind, Number, ShareOf};

/// A slot is a stall when its latency is so many times the usual one and so many deviations of its
/// logarithm above it.
const LONGER: f64 = 2.0;
const DEVIATIONS: f64 = 4.0;

/// Slots between two slots of one stall.
const GAP: usize = 2;

/// Fewest stalls of which a rhythm is told, and from how many on one more makes no difference.
const FEWEST: usize = 6;
const MANY: usize = 10;

/// How far stalls may lie from their rhythm, in periods, as the root of the mean square: where there are many.
/// Stalls without a rhythm lie 0.29 away, and within 0.1 in 1 of 10,000 cases of ten stalls.
const AWAY: f64 = 0.1;

/// Share of the beats of the rhythm that have a stall.
const BEATS: f64 = 0.7;

/// One in so many stalls may be the machine's, and not of the rhythm: those that are left out are
/// the shortest.
const NOISE: usize = 5;

/// Stalls come with the load when so many times the arrivals come with them.
const WITH_LOAD: f64 = 1.2;
const SURELY: f64 = 2.6;

/// The worst latency of each slot.
#[derive(Debug, Clone, Copy)]
pub struct SlotLatencies<'a> {
    /// The system that was asked.
    pub system: &'a str,
    /// What was asked: the load's name.
    pub name: &'a str,
    /// When the first slot begins, in seconds.
    pub start_s: f64,
    /// Length of each, a tenth of a second or so: stalls that are closer than four slots cannot be told apart.
    pub slot_s: f64,
    /// Highest latency, or a high percentile, of the requests that were due in each slot, in seconds; 0
    /// where there were none, infinite for one that was never answered.
    pub latency_s: &'a [f64],
    /// Requests that were due in each slot. May be empty: then arrivals count as even.
    pub arrivals: &'a [f64],
}

/// Stalls with a period, which arrivals do not have: garbage collection, a sync to disk, a timer.
#[must_use]
pub fn stalls(of: &SlotLatencies<'_>) -> Option<Finding> {
    let logs: Vec<f64> = of
        .latency_s
        .iter()
        .filter(|latency| **latency > 0.0 && latency.is_finite())
        .map(|latency| latency.ln())
        .collect();
    let (usual, spread) = level_and_spread(&logs)?;
    let least = (usual + (DEVIATIONS * spread).max(LONGER.ln())).exp();
    let alone = alike(of, least, usual).and_then(|found| in_rhythm(of, found));
    let (stalls, rhythm) = alone.or_else(|| among_others(of, usual))?;
    if rhythm.period < 2.0 * GAP as f64 || comes_with_load(of, &stalls) {
        return None;
    }
    let mut stalled = vec![false; of.latency_s.len()];
    for (from, to) in &stalls {
        stalled[*from..*to].fill(true);
    }
    let effect = share_of_time(stalled.into_iter())?;
    let worst = typical(of, &stalls)?;
    let period_s = rhythm.period * of.slot_s;
    let sentence = format!(
        "{} stalled every {}, {} times: latency rose from {} to {} for {} of the time; arrivals have no such \
         rhythm, so it is a timer, garbage collection or a sync",
        of.name,
        show_seconds(period_s),
        stalls.len(),
        show_seconds(usual.exp()),
        show_seconds(worst),
        show_share(effect.value)
    );
    let number = |name, value| Number { name, value };
    Some(Finding {
        kind: Kind::Stalls,
        system: of.system.to_owned(),
        part: of.name.to_owned(),
        from_s: of.start_s + stalls.first()?.0 as f64 * of.slot_s,
        to_s: of.start_s + stalls.last()?.1 as f64 * of.slot_s,
        chart: Chart::Latency,
        effect,
        of: ShareOf::Time,
        evidence: vec![
            number("period_s", period_s),
            number("away_from_rhythm_periods", rhythm.away),
            number("stalls", stalls.len() as f64),
            number("stall_latency_s", worst),
            number("usual_latency_s", usual.exp()),
        ],
        sentence,
    })
}

/// `[first, end)` of slots of such a latency at least, or that are hardly apart.
fn clusters(of: &SlotLatencies<'_>, least: f64) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    let slots = of.latency_s.iter().enumerate();
    for (at, _) in slots.filter(|(_, latency)| **latency > least) {
        match found.last_mut() {
            Some(last) if at - last.1 < GAP => last.1 = at + 1,
            _ => found.push((at, at + 1)),
        }
    }
    found
}

/// The stalls, of slots that are nearer to the typical one than to no stall: on a busy machine something
/// is a little late now and then, which would only hide the rhythm of the others, or seem to be the
/// beginning of one.
fn alike(of: &SlotLatencies<'_>, least: f64, usual: f64) -> Option<Vec<(usize, usize)>> {
    let typical = typical(of, &clusters(of, least))?;
    let nearer = ((usual + typical.ln()) / 2.0).exp();
    Some(clusters(of, least.max(nearer)))
}

/// The stalls of a rhythm, without as few of the shortest as may be.
fn in_rhythm(
    of: &SlotLatencies<'_>,
    mut stalls: Vec<(usize, usize)>,
) -> Option<(Vec<(usize, usize)>, Rhythm)> {
    for _ in 0..=stalls.len() / NOISE {
        let starts: Vec<f64> = stalls.iter().map(|stall| stall.0 as f64).collect();
        if let Some(rhythm) = Rhythm::of(&starts) {
            return Some((stalls, rhythm));
        }
        let peaks = stalls.iter().map(|stall| peak(of, stall)).enumerate();
        let (shortest, _) = peaks.min_by(|a, b| a.1.total_cmp(&b.1))?;
        stalls.remove(shortest);
    }
    None
}

/// The stalls of a rhythm where so much else is late that they do not stand out by themselves.
fn among_others(of: &SlotLatencies<'_>, usual: f64) -> Option<(Vec<(usize, usize)>, Rhythm)> {
    let slots = beat(of.latency_s)?;
    let stalls: Vec<(usize, usize)> = slots.iter().map(|slot| (*slot, slot + 1)).collect();
    let starts: Vec<f64> = slots.iter().map(|slot| *slot as f64).collect();
    let long = typical(of, &stalls)? >= LONGER * usual.exp();
    Some((stalls, Rhythm::of(&starts)?)).filter(|_| long)
}

/// The median of the longest latencies of stalls.
fn typical(of: &SlotLatencies<'_>, stalls: &[(usize, usize)]) -> Option<f64> {
    let mut peaks: Vec<f64> = stalls.iter().map(|stall| peak(of, stall)).collect();
    peaks.sort_by(f64::total_cmp);
    nearest_rank(&peaks, 0.5)
}

fn peak(of: &SlotLatencies<'_>, (from, to): &(usize, usize)) -> f64 {
    of.latency_s[*from..*to].iter().copied().fold(0.0, f64::max)
}

struct Rhythm {
    period: f64,
    away: f64,
}

impl Rhythm {
    /// Of instants, if they have one.
    fn of(starts: &[f64]) -> Option<Self> {
        if starts.len() < FEWEST {
            return None;
        }
        let mut gaps: Vec<f64> = starts.windows(2).map(|two| two[1] - two[0]).collect();
        gaps.sort_by(f64::total_cmp);
        let mut period = nearest_rank(&gaps, 0.5)?;
        // Beats are counted from one stall to the next, and the period is what fits them all.
        let mut beats = Vec::new();
        for _ in 0..3 {
            beats = vec![0.0];
            for two in starts.windows(2) {
                let before = beats.last().copied()?;
                beats.push(before + ((two[1] - two[0]) / period).round());
            }
            period = stats::covariance(&beats, starts)? / stats::variance(&beats)?;
            if !(period.is_finite() && period > 0.0) {
                return None;
            }
        }
        let (beat, start) = (mean(&beats)?, mean(starts)?);
        let away: Vec<f64> = beats
            .iter()
            .zip(starts)
            .map(|(number, at)| ((at - start) / period - (number - beat)).powi(2))
            .collect();
        let away = mean(&away)?.sqrt();
        let known = starts.len().min(MANY) - FEWEST + 2;
        let allowed = AWAY * known as f64 / (MANY - FEWEST + 2) as f64;
        let heard = (starts.len() - 1) as f64 / beats.last()?;
        (away <= allowed && (BEATS..=1.0).contains(&heard)).then_some(Self { period, away })
    }
}

/// Whether more arrivals come just before and in stalls than else.
fn comes_with_load(of: &SlotLatencies<'_>, stalls: &[(usize, usize)]) -> bool {
    if of.arrivals.len() != of.latency_s.len() {
        return false;
    }
    let mut near = vec![false; of.arrivals.len()];
    for (from, to) in stalls {
        near[from.saturating_sub(GAP)..*to].fill(true);
    }
    let split = |wanted: bool| -> Vec<f64> {
        let pairs = of.arrivals.iter().zip(&near);
        pairs
            .filter(|(_, near)| **near == wanted)
            .map(|(arrivals, _)| *arrivals)
            .collect()
    };
    let (else_where, with) = (split(false), split(true));
    let ratio = mean(&with).zip(mean(&else_where)).map(|(a, b)| a / b);
    let surely = rank_sum(&else_where, &with).is_some_and(|deviate| deviate > SURELY);
    surely && ratio.is_some_and(|ratio| ratio > WITH_LOAD)
}
