//! Recovery of a series: a level that was sampled, or values of slots.

use stats::level_and_spread;

use super::reference::{Limits, Reference};
use super::{Effect, Recovery, RecoveryError, Return, Unseen, Window, Worse};

/// A value and the time that it stands for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// When it is known to hold: the instant of a sample, the start of a slot.
    from_s: f64,
    /// The instant, or the end of the slot.
    to_s: f64,
    value: f64,
    /// What it adds to an integral over time, for each unit: half the way to each neighbour, or 1 for a slot.
    weight: f64,
}

/// A level that was looked at from time to time.
pub(super) fn of_points(points: &[(f64, f64)]) -> Result<Vec<Sample>, RecoveryError> {
    let disordered = |number: usize| {
        let (at, value) = points[number];
        let after = number == 0 || points[number - 1].0 < at;
        !(at.is_finite() && value.is_finite() && after)
    };
    if let Some(number) = (0..points.len()).find(|number| disordered(*number)) {
        return Err(RecoveryError::Disordered { number });
    }
    let at = |number: usize| points[number].0;
    let last = points.len().saturating_sub(1);
    let sample = |(number, (at_s, value)): (usize, &(f64, f64))| Sample {
        from_s: *at_s,
        to_s: *at_s,
        value: *value,
        weight: (at((number + 1).min(last)) - at(number.saturating_sub(1))) / 2.0,
    };
    Ok(points.iter().enumerate().map(sample).collect())
}

/// One value for each slot.
pub(super) fn of_slots(
    start_s: f64,
    width_s: f64,
    values: &[f64],
) -> Result<Vec<Sample>, RecoveryError> {
    if !(start_s.is_finite() && width_s.is_finite() && width_s > 0.0) {
        return Err(RecoveryError::Disordered { number: 0 });
    }
    if let Some(number) = values.iter().position(|value| !value.is_finite()) {
        return Err(RecoveryError::Disordered { number });
    }
    let sample = |(number, value): (usize, &f64)| Sample {
        from_s: start_s + number as f64 * width_s,
        to_s: start_s + (number + 1) as f64 * width_s,
        value: *value,
        weight: 1.0,
    };
    Ok(values.iter().enumerate().map(sample).collect())
}

/// Of a series around one fault.
pub(super) fn recovery(
    samples: &[Sample],
    window: &Window,
    worse: Worse,
) -> Result<Effect, RecoveryError> {
    let before = |sample: &&Sample| {
        sample.from_s >= window.hold_begin_s && sample.to_s <= window.fault_begin_s
    };
    let hold: Vec<(f64, f64)> = samples
        .iter()
        .filter(before)
        .map(|sample| (sample.from_s, sample.value))
        .collect();
    let reference = Reference::of(&hold, window.until_s)?;
    // A slot in which the fault began shows it; a sample at that instant does too.
    let first = samples.partition_point(|sample| {
        sample.to_s < window.fault_begin_s
            || (sample.to_s == window.fault_begin_s && sample.from_s < sample.to_s)
    });
    let end = samples.partition_point(|sample| sample.to_s <= window.until_s);
    let Some(after) = samples.get(first..end).filter(|after| !after.is_empty()) else {
        return Err(RecoveryError::NothingAfter);
    };
    let previous_s = first.checked_sub(1).map(|at| samples[at].from_s);
    let series = Series {
        after,
        previous_s: previous_s.unwrap_or(window.fault_begin_s),
        window,
        limits: reference.limits(after.len()),
        reference,
    };
    let direction = match worse {
        Worse::Lower => Some(-1.0),
        Worse::Higher => Some(1.0),
        Worse::Either => series.first_side(),
    };
    let spells = direction.map_or_else(Vec::new, |sign| series.spells(sign));
    Ok(match (spells.split_first(), direction) {
        (Some((spell, later)), Some(sign)) => Effect::Seen(series.measure(*spell, later, sign)),
        _ => Effect::None(series.unseen()),
    })
}

/// What follows the start of a fault.
struct Series<'s> {
    after: &'s [Sample],
    /// The last instant before that is known.
    previous_s: f64,
    window: &'s Window,
    reference: Reference,
    limits: Limits,
}

/// Samples `[first, end)` lie outside the band.
#[derive(Debug, Clone, Copy)]
struct Spell {
    first: usize,
    end: usize,
}

impl Series<'_> {
    /// Distance from the reference, positive in a direction.
    fn away(&self, number: usize, sign: f64) -> f64 {
        let sample = &self.after[number];
        sign * (sample.value - self.reference.at(sample.from_s))
    }

    fn outside(&self, number: usize, sign: f64) -> bool {
        self.away(number, sign) > self.reference.band(self.after[number].from_s)
    }

    /// The side on which it is outside first.
    fn first_side(&self) -> Option<f64> {
        let first = |sign: f64| {
            let spells = self.spells(sign);
            spells.first().map(|spell| (spell.first, sign))
        };
        let sides = [first(-1.0), first(1.0)].into_iter().flatten();
        sides.min_by_key(|side| side.0).map(|side| side.1)
    }

    /// Where it is outside, and that is no noise. Spells that are less than the steady time apart are
    /// one.
    fn spells(&self, sign: f64) -> Vec<Spell> {
        let count = self.after.len();
        let outside: Vec<bool> = (0..count)
            .map(|number| self.outside(number, sign))
            .collect();
        let once = |number: usize| {
            let wider = self.reference.carried_on(self.after[number].from_s);
            let limit = self.limits.once;
            limit.is_some_and(|limit| self.away(number, sign) > limit + wider)
        };
        // One far value alone is as likely an outlier: two neighbours are not.
        let neighbour = |number: usize| {
            number > 0 && once(number - 1) || number + 1 < count && once(number + 1)
        };
        let mut claimed: Vec<bool> = (0..count)
            .map(|number| once(number) && neighbour(number))
            .collect();
        self.claim_runs(&outside, &mut claimed);
        self.grow(&outside, &mut claimed);
        let mut spells: Vec<Spell> = Vec::new();
        for number in (0..count).filter(|number| claimed[*number]) {
            match spells.last_mut() {
                Some(spell) if self.continues(spell.end, number) => spell.end = number + 1,
                _ => spells.push(Spell {
                    first: number,
                    end: number + 1,
                }),
            }
        }
        spells
    }

    /// Claims what is outside for as many samples in a row as noise never is; one in ten of them may be
    /// inside.
    fn claim_runs(&self, outside: &[bool], claimed: &mut [bool]) {
        let length = self.limits.run;
        let allowed = length / 10;
        let mut inside = 0;
        for end in 0..outside.len() {
            inside += usize::from(!outside[end]);
            if end >= length {
                inside -= usize::from(!outside[end - length]);
            }
            if end + 1 >= length && inside <= allowed {
                for number in end + 1 - length..=end {
                    claimed[number] |= outside[number];
                }
            }
        }
    }

    /// Carries what is claimed on to its edges, as long as most of the next one, three or five
    /// samples are outside: where a slow return crosses the band, half of the noisy samples are.
    fn grow(&self, outside: &[bool], claimed: &mut [bool]) {
        let count = outside.len();
        let mut reached = 0;
        for number in 1..count {
            if claimed[number - 1] && !claimed[number] && number >= reached {
                reached = number + most_outside(outside[number..].iter());
                (number..reached).for_each(|on| claimed[on] = true);
            }
        }
        let mut reached = count;
        for number in (0..count.saturating_sub(1)).rev() {
            if claimed[number + 1] && !claimed[number] && number < reached {
                reached = number + 1 - most_outside(outside[..=number].iter().rev());
                (reached..=number).for_each(|on| claimed[on] = true);
            }
        }
    }

    /// Whether it had not been inside for the steady time when it was outside again.
    fn continues(&self, end: usize, number: usize) -> bool {
        let back = self.after.get(end).or(self.after.last());
        back.is_some_and(|back| self.after[number].from_s - back.from_s < self.window.steady_s)
    }

    fn measure(&self, spell: Spell, later: &[Spell], sign: f64) -> Recovery {
        let Window {
            fault_begin_s,
            fault_end_s,
            ..
        } = *self.window;
        let out = &self.after[spell.first];
        let known_s = match spell.first.checked_sub(1) {
            Some(before) => self.after[before].from_s,
            None => self.previous_s,
        };
        let detected_resolution_s = if out.to_s > out.from_s {
            out.to_s - out.from_s
        } else {
            out.from_s - known_s
        };
        let detected_s = (out.from_s - fault_begin_s).max(0.0);
        let last = &self.after[spell.end - 1];
        let returned = match self.back(spell, later) {
            Some(back_s) => Return::After {
                from_begin_s: back_s - fault_begin_s,
                from_end_s: back_s - fault_end_s,
                resolution_s: (back_s - last.from_s).max(self.crossing_s(spell, sign, back_s)),
            },
            None => Return::NotBefore {
                from_begin_s: last.to_s - fault_begin_s,
                from_end_s: last.to_s - fault_end_s,
            },
        };
        let level = self.reference.at(fault_begin_s);
        let depth = self.depth(spell, sign);
        let range = spell.first..spell.end;
        let lost = range
            .clone()
            .map(|number| self.away(number, sign) * self.after[number].weight);
        let weight = range.map(|number| self.after[number].weight).sum::<f64>();
        let count = spell.end - spell.first;
        Recovery {
            reference: level,
            band: self.reference.band(fault_begin_s),
            slope: self.reference.slope(),
            detected_s,
            detected_resolution_s,
            returned,
            depth,
            depth_noise: 2.0 * self.reference.noise_of_mean(1, last.from_s),
            depth_share: (level != 0.0).then(|| depth / level.abs()),
            fell: sign < 0.0,
            lost: lost.sum(),
            lost_noise: 2.0 * weight * self.reference.noise_of_mean(count, last.from_s),
            later_exits: later.len(),
        }
    }

    /// By how much noise moves the instant of a slow return, as a share of the time that it
    /// took from two half bands away to one: for an exponential return half of it is a standard deviation of a
    /// sample, and three tenths are how badly thirty samples know the band.
    fn crossing_s(&self, spell: Spell, sign: f64, back_s: f64) -> f64 {
        let far = |number: &usize| {
            self.away(*number, sign) > 2.0 * self.reference.band(self.after[*number].from_s)
        };
        let last_far = (spell.first..spell.end).rev().find(far);
        let before_s = last_far.map_or(back_s, |number| self.after[number].to_s);
        0.6 * (back_s - before_s)
    }

    /// When it was back: at the first sample after which it stayed for the steady time, and was looked
    /// at often enough to know.
    fn back(&self, spell: Spell, later: &[Spell]) -> Option<f64> {
        let steady_s = self.window.steady_s;
        let next = later.first().map(|next| next.first);
        let stays = |first: &usize| {
            let rest = &self.after[*first..];
            let from_s = rest[0].from_s;
            let until_s = from_s + steady_s;
            let covered = rest.last().is_some_and(|last| last.to_s >= until_s);
            let inside = next.is_none_or(|next| self.after[next].from_s - from_s >= steady_s);
            let within = rest.iter().take_while(|sample| sample.from_s < until_s);
            let seldom = within.zip(rest.iter().skip(1)).any(|(one, next)| {
                next.from_s - one.from_s > steady_s / 2.0 && next.from_s > one.to_s
            });
            covered && inside && !seldom
        };
        let mut since = spell.end..next.unwrap_or(self.after.len());
        since.find(stays).map(|first| self.after[first].from_s)
    }

    fn depth(&self, spell: Spell, sign: f64) -> f64 {
        let away: Vec<f64> = (spell.first..spell.end)
            .map(|number| self.away(number, sign))
            .collect();
        // The farthest of many noisy values is farther than their level.
        let length = (away.len() / 10).clamp(3, 9) | 1;
        if away.len() < length {
            return away.into_iter().fold(0.0, f64::max);
        }
        let middle = |some: &[f64]| level_and_spread(some).map_or(0.0, |found| found.0);
        away.windows(length).map(middle).fold(0.0, f64::max)
    }

    /// The longest time between two instants that are known.
    fn longest_gap_s(&self) -> f64 {
        let mut known_s = self.previous_s;
        let mut longest_s: f64 = 0.0;
        for sample in self.after {
            longest_s = longest_s.max(sample.from_s - known_s);
            known_s = sample.to_s;
        }
        longest_s
    }

    fn unseen(&self) -> Unseen {
        let span = self.after.last().map_or(0.0, |last| last.to_s) - self.after[0].from_s;
        let step = span / self.after.len().max(1) as f64;
        let level = self.reference.at(self.window.fault_begin_s);
        // Half of a level's values lie beyond it: one deviation more, and nearly all do.
        let smallest = self.reference.band(self.window.until_s) + 1.3 * self.reference.spread;
        Unseen {
            reference: level,
            smallest,
            // What happened while nobody looked shows in no sample.
            lasting_s: (step * self.limits.run as f64).max(self.longest_gap_s()),
            smallest_once: self.limits.once,
        }
    }
}

/// How many of the next samples to go on for: up to the last outside of the one, three or
/// five of which most are.
fn most_outside<'o>(next: impl Iterator<Item = &'o bool>) -> usize {
    let (mut out, mut reach) = (0, 0);
    for (before, outside) in next.take(5).enumerate() {
        out += usize::from(*outside);
        if *outside && 2 * out > before + 1 {
            reach = before + 1;
        }
    }
    reach
}
