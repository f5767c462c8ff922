//! By how much something grew within a step, and how sure that is.

use std::collections::BTreeMap;
use std::f64::consts::SQRT_2;

use lab_experiment::expr::{Comparison, Growing, Metric, Op};
use stats::{level_and_spread, robust_slope, trend};
use units::show_share;

use super::{Measured, SECOND_NS, quantity_of};
use crate::probes;

/// How many slots of equal length a step is cut into, of which each counts by its median: the
/// most with which none is empty.
const SLOTS: [usize; 3] = [40, 20, 10];
/// How sure the interval is.
const CONFIDENCE: f64 = 0.95;

/// A growth, as a share of what there was at the start, and the interval that it lies in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Growth {
    pub(crate) share: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Measured<'_> {
    /// By how much something grew in a step.
    ///
    /// # Errors
    /// Why that is not known.
    pub(super) fn growth(&self, step: &str, of: &Growing) -> Result<Growth, String> {
        let span = self.probes.span(step);
        let (from_s, to_s) = span.ok_or_else(|| format!("the step {step:?} did not begin"))?;
        if !to_s.is_finite() {
            return Err(format!("the step {step:?} did not end"));
        }
        let within = |(at_s, _): &(f64, f64)| (from_s..to_s).contains(at_s);
        let mut points = self.points(step, of);
        points.retain(within);
        grown(&points, (from_s, to_s))
    }

    /// When something had which value, in order of time.
    fn points(&self, step: &str, of: &Growing) -> Vec<(f64, f64)> {
        match of {
            Growing::Process { system, quantity } => {
                let Some(copies) = self.copies.get(system) else {
                    return Vec::new();
                };
                // Copies are sampled together; what one does not have any more adds nothing.
                let mut sums: BTreeMap<u64, f64> = BTreeMap::new();
                let own = self.samples.iter();
                for sample in own.filter(|sample| copies.contains(&sample.system)) {
                    *sums.entry(sample.t_s.to_bits()).or_default() +=
                        quantity_of(sample, *quantity);
                }
                let sums = sums.into_iter();
                sums.map(|(bits, sum)| (f64::from_bits(bits), sum))
                    .collect()
            }
            Growing::Loop(name) => {
                let turns = self.loops.iter().find(|(found, _)| found == name);
                let turns = turns.into_iter().flat_map(|(_, turns)| &turns.turns);
                let seconds = |ns: i64| ns as f64 / SECOND_NS;
                turns
                    .map(|turn| (seconds(turn.start_ns), seconds(turn.end_ns - turn.start_ns)))
                    .collect()
            }
            Growing::Latency(probe) => {
                let tries = self.probes.of(Some(step), probe);
                let good = tries.filter(|one| one.is_ok());
                good.map(|one| (one.t_s, one.latency_s)).collect()
            }
            Growing::Value(probe) => probes::level(self.probes.of(Some(step), probe)),
        }
    }

    /// Why an interval of a growth does not decide a comparison that holds or not.
    pub(super) fn unsettled(&self, comparison: &Comparison, held: bool) -> Option<String> {
        let Metric::Growth { step, of } = &comparison.metric else {
            return None;
        };
        let found = self.growth(step, of).ok()?;
        let bound = match &comparison.of {
            None => comparison.quantity,
            Some(metric) => {
                comparison.quantity * lab_experiment::expr::Metrics::value(self, metric)?
            }
        };
        let holds = |share: f64| comparison.op.holds(share, bound);
        let is_exact = matches!(comparison.op, Op::Equal | Op::NotEqual);
        let decided = !is_exact && holds(found.low) == held && holds(found.high) == held;
        (!decided).then(|| {
            let [low, high] = [found.low, found.high].map(show_share);
            format!(
                "{} may be {low} to {high}; hold the step for longer",
                comparison.metric
            )
        })
    }
}

/// The growth of a line through points within a span of time.
fn grown(points: &[(f64, f64)], (from_s, to_s): (f64, f64)) -> Result<Growth, String> {
    let slots = SLOTS
        .into_iter()
        .find_map(|count| medians(points, (from_s, to_s), count));
    let Some(slots) = slots else {
        let least = SLOTS[SLOTS.len() - 1];
        return Err(format!(
            "{} measurements, of which not one is in each tenth of the step; a line needs {least}",
            points.len()
        ));
    };
    let length = slots.len() as f64;
    let numbered: Vec<(f64, f64)> = (0..).map(f64::from).zip(slots.iter().copied()).collect();
    let slope = robust_slope(&numbered).unwrap_or_default();
    // Where the line begins: the middle of what is left of the values without their slope. Slots tell
    // of their middles, so the step begins half a slot before the first, and ends half a one after the last.
    let flat: Vec<f64> = numbered
        .iter()
        .map(|(at, value)| value - slope * (at + 0.5))
        .collect();
    let begin = level_and_spread(&flat).map_or(0.0, |(level, _)| level);
    if begin <= 0.0 {
        return match slots.iter().all(|value| *value == 0.0) {
            true => Ok(Growth {
                share: 0.0,
                low: 0.0,
                high: 0.0,
            }),
            false => Err("it began at nothing, of which there is no share".to_owned()),
        };
    }
    // Of neighbours, as a line that bends is no noise.
    let apart: Vec<f64> = slots.windows(2).map(|two| two[1] - two[0]).collect();
    let noise = level_and_spread(&apart).map_or(0.0, |(_, spread)| spread / SQRT_2);
    // Whatever the line says, it moved at least by what the last third lies apart from the first,
    // and at most by what they reach, give or take the noise. A bent line is known by this alone.
    let third = slots.len() / 3;
    let (first, last) = (&slots[..third], &slots[slots.len() - third..]);
    let (first, last) = (ends(first), ends(last));
    let whole = length / (length - 1.0);
    let least = (whole * (last.0 - first.1) - 2.0 * noise) / begin;
    let most = (whole * (last.1 - first.0) + 2.0 * noise) / begin;
    let share = |slope: f64| (slope * length / begin).clamp(least, most);
    let (low, high) = match trend(&slots, CONFIDENCE) {
        Some(found) => (share(found.low), share(found.high)),
        None => (least, most),
    };
    let share = share(slope);
    Ok(Growth {
        share,
        low: low.min(share),
        high: high.max(share),
    })
}

/// The least and the most.
fn ends(values: &[f64]) -> (f64, f64) {
    let ends = (f64::INFINITY, f64::NEG_INFINITY);
    let wider = |(least, most): (f64, f64), value: &f64| (least.min(*value), most.max(*value));
    values.iter().fold(ends, wider)
}

/// The median of each slot; `None` if one is empty.
fn medians(points: &[(f64, f64)], (from_s, to_s): (f64, f64), count: usize) -> Option<Vec<f64>> {
    let mut slots = vec![Vec::new(); count];
    for (at_s, value) in points {
        let place = (at_s - from_s) / (to_s - from_s) * count as f64;
        slots.get_mut((place as usize).min(count - 1))?.push(*value);
    }
    let median = |values: Vec<f64>| level_and_spread(&values).map(|(level, _)| level);
    slots.into_iter().map(median).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: (f64, f64) = (10.0, 110.0);

    /// A thousand points whose noise has a standard deviation of `noise`.
    fn points(seed: u64, noise: f64, value: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        let mut random = stats::SplitMix::new(seed);
        let at = (0..1000).map(|number| f64::from(number) / 1000.0);
        at.map(|share| (10.0 + 100.0 * share, value(share) + noise * random.normal()))
            .collect()
    }

    #[test]
    fn what_was_planted_lies_in_the_interval() {
        for (grows, noise) in [(0.0, 1.0), (0.1, 1.0), (0.5, 5.0), (-0.3, 2.0)] {
            let missed = (0..200).filter(|seed| {
                let points = points(*seed, noise, |at| 100.0 * (1.0 + grows * at));
                let found = grown(&points, STEP).unwrap();
                let (low, high) = (found.low - 0.003, found.high + 0.003);
                !(low..=high).contains(&grows) || (found.share - grows).abs() > 0.05
            });
            assert!(missed.count() <= 20, "{grows} with noise of {noise}");
        }
    }

    /// However coarse the slots are, what is told is the growth of the whole step.
    #[test]
    fn growth_is_from_the_begin_of_the_step_to_its_end() {
        for count in [12, 25, 60, 1000] {
            let at = (0..count).map(|number| (f64::from(number) + 0.5) / f64::from(count));
            let points: Vec<(f64, f64)> = at
                .map(|share| (10.0 + 100.0 * share, 1000.0 + 100.0 * share))
                .collect();
            let found = grown(&points, STEP).unwrap();
            assert!((found.share - 0.1).abs() < 0.005, "{count}: {found:?}");
        }
    }

    #[test]
    fn a_single_jump_is_no_more_than_it_was() {
        let found = grown(
            &points(1, 0.0, |at| if at < 0.5 { 100.0 } else { 103.0 }),
            STEP,
        );
        let found = found.unwrap();
        assert!(found.high <= 0.06 && found.low >= -0.06, "{found:?}");
    }

    #[test]
    fn a_bent_line_has_grown() {
        let slower_and_slower = |at: f64| 100.0 * (1.0 + 2.0 * at.sqrt());
        let found = grown(&points(1, 0.5, slower_and_slower), STEP).unwrap();
        assert!(found.low > 0.2 && found.high < 2.5, "{found:?}");
        let at_last = |at: f64| if at < 0.6 { 100.0 } else { 400.0 * at - 140.0 };
        let found = grown(&points(1, 0.5, at_last), STEP).unwrap();
        assert!(found.low > 0.05, "{found:?}");
    }

    #[test]
    fn wild_values_are_no_growth() {
        let wild = |at: f64| {
            if (at * 1000.0) as u32 % 50 == 7 {
                9000.0
            } else {
                100.0
            }
        };
        let found = grown(&points(1, 0.5, wild), STEP).unwrap();
        assert!(found.high < 0.02 && found.low > -0.02, "{found:?}");
    }

    #[test]
    fn nothing_is_no_growth_and_something_of_nothing_has_no_share() {
        let zero = grown(&points(1, 0.0, |_| 0.0), STEP).unwrap();
        assert_eq!((zero.low, zero.high), (0.0, 0.0));
        let from_nothing = grown(&points(1, 0.0, |at| at * 10.0), STEP);
        assert!(from_nothing.is_err() || from_nothing.unwrap().share > 10.0);
        assert!(grown(&[(20.0, 1.0); 50], STEP).is_err());
        assert!(grown(&[], STEP).is_err());
    }
}
