//! A rhythm among many slots that stand out without one, as on a machine that does other things.

/// Shares of the slots beyond which one may be of the rhythm: nobody knows how many the others are.
const QUANTILES: [f64; 5] = [0.95, 0.92, 0.9, 0.88, 0.85];

/// Most slots that stand out: their pairs are tried. Of a longer run its beginning is looked at.
const MOST: usize = 120;

/// How far from its beat a slot may lie, in periods, and at least in slots.
const AWAY: f64 = 0.1;
const AWAY_SLOTS: f64 = 1.0;

/// Fewest beats and shortest period, in slots.
const FEWEST: usize = 6;
const SHORTEST: f64 = 4.0;

/// Share of the beats at which something stands out, and how rarely that may be by chance, over
/// all that was tried.
const BEATS: f64 = 0.7;
const BY_CHANCE: f64 = 1e-3;

/// The slots of a rhythm that lasts from its first beat to the end of the run: of all that were tried, the
/// one that chance makes least often. Values that stand out elsewhere count as chance.
pub(super) fn beat(values: &[f64]) -> Option<Vec<usize>> {
    let mut sorted: Vec<f64> = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut best: Option<(f64, Vec<usize>)> = None;
    let mut tried = 0.0;
    for quantile in QUANTILES {
        let least = stats::nearest_rank(&sorted, quantile)?;
        let out = Outstanding::of(values, least);
        for (number, first) in out.slots.iter().enumerate() {
            for second in &out.slots[number + 1..] {
                let period = (second - first) as f64;
                let beats = (out.values.len() - first) as f64 / period;
                if period < SHORTEST || beats < FEWEST as f64 || *first as f64 > 2.0 * period {
                    continue;
                }
                tried += 1.0;
                let Some((chance, slots)) = out.follow(*first, period) else {
                    continue;
                };
                if best.as_ref().is_none_or(|best| chance < best.0) {
                    best = Some((chance, slots));
                }
            }
        }
    }
    best.filter(|(chance, _)| chance * tried <= BY_CHANCE)
        .map(|(_, slots)| slots)
}

/// Slots whose values stand out.
struct Outstanding<'a> {
    /// The part of the run that is looked at.
    values: &'a [f64],
    least: f64,
    slots: Vec<usize>,
}

impl<'a> Outstanding<'a> {
    fn of(values: &'a [f64], least: f64) -> Self {
        let outstanding = |(at, value): (usize, &f64)| (*value >= least).then_some(at);
        let mut slots = values.iter().enumerate().filter_map(outstanding);
        let kept: Vec<usize> = slots.by_ref().take(MOST).collect();
        let end = slots.next().unwrap_or(values.len());
        Self {
            values: &values[..end],
            least,
            slots: kept,
        }
    }

    /// From beat to beat: the slots that stand out near one, and how rarely there are as many by chance.
    fn follow(&self, first: usize, mut period: f64) -> Option<(f64, Vec<usize>)> {
        let away = (AWAY * period).max(AWAY_SLOTS);
        let mut hits = vec![first];
        let (mut beats, mut last) = (0_usize, (0_usize, first));
        loop {
            beats += 1;
            let due = last.1 as f64 + period * (beats - last.0) as f64;
            if due + away >= self.values.len() as f64 {
                break;
            }
            let (from, to) = ((due - away).ceil() as usize, (due + away).floor() as usize);
            let near = (from..=to).max_by(|a, b| self.values[*a].total_cmp(&self.values[*b]));
            if let Some(hit) = near.filter(|hit| self.values[*hit] >= self.least) {
                hits.push(hit);
                last = (beats, hit);
                period = (hit - first) as f64 / beats as f64;
            }
        }
        // The first two made the rhythm, and count for nothing.
        let (more, asked) = (hits.len().checked_sub(2)?, beats.checked_sub(2)?);
        let enough = hits.len() >= FEWEST && hits.len() as f64 >= BEATS * beats as f64;
        enough.then(|| (at_least(more, asked, self.covered(away)), hits))
    }

    /// Share of the slots that have one near them that stands out.
    fn covered(&self, away: f64) -> f64 {
        let away = away as usize;
        let mut covered = vec![false; self.values.len()];
        for slot in &self.slots {
            let to = (slot + away + 1).min(covered.len());
            covered[slot.saturating_sub(away)..to].fill(true);
        }
        let count = covered.iter().filter(|covered| **covered).count();
        count as f64 / covered.len().max(1) as f64
    }
}

/// The probability of so many successes or more, of so many that are likely by a share each.
fn at_least(successes: usize, of: usize, share: f64) -> f64 {
    if share <= 0.0 || share >= 1.0 {
        return f64::from(u8::from(share >= 1.0 || successes == 0));
    }
    let mut log = of as f64 * (1.0 - share).ln();
    let mut sum = 0.0;
    for count in 0..=of {
        if count >= successes {
            sum += log.exp();
        }
        let odds = share / (1.0 - share);
        log += ((of - count) as f64 / (count + 1) as f64 * odds).ln();
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chance_of_so_many_is_that_of_the_binomial_distribution() {
        let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
        near(at_least(3, 3, 0.5), 0.125);
        near(at_least(1, 2, 0.25), 1.0 - 0.75 * 0.75);
        near(at_least(0, 4, 0.3), 1.0);
        near(at_least(10, 10, 0.1), 1e-10);
        assert_eq!((at_least(1, 5, 0.0), at_least(5, 5, 1.0)), (0.0, 1.0));
    }

    #[test]
    fn a_beat_is_followed_though_its_period_is_no_whole_number() {
        let values: Vec<f64> = (0..200)
            .map(|slot| {
                let beat = (f64::from(slot) / 11.3).floor() * 11.3;
                let is_beat = beat.round() as i32 == slot || (beat + 11.3).round() as i32 == slot;
                if is_beat {
                    2.0
                } else {
                    f64::from(slot % 7) / 7.0
                }
            })
            .collect();
        let slots = beat(&values).expect("a beat");
        assert_eq!((slots[0], slots[1], slots.len()), (0, 11, 18));
        assert_eq!(beat(&[1.0; 200]), None);
        assert_eq!(beat(&[]), None);
    }
}
