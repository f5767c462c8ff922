//! Recovery of single events: outages to within one of them.
//!
//! Each event, and each gap before it, speaks for an outage or against it: by the logarithm
//! of how much likelier it is at a lower rate than at the usual one. An outage is a stretch
//! whose sum noise hardly ever has; the stretch with the largest sum has the edges of largest likelihood (Page,
//! "Continuous inspection schemes", 1954; Ruzzo and Tompa, "A linear time algorithm for
//! finding all maximal scoring subsequences", 1999).

use super::reference::FEWEST;
use super::{Effect, Recovery, RecoveryError, Return, Unseen, Window};

/// Rates that are looked for, as shares of the usual one.
const LOWER_RATES: [f64; 4] = [0.02, 0.3, 0.6, 0.85];

/// How often noise alone may be taken for an effect; shared by the rates.
const FALSE_CLAIMS: f64 = 0.004;

/// Events that a slot should hold when their dispersion is counted, from few to many.
const SLOT_EVENTS: [f64; 3] = [5.0, 20.0, 80.0];

/// Fewest slots from which a dispersion is told.
const FEWEST_SLOTS: f64 = 12.0;

/// How much the dispersion may be above what few slots show.
const DISPERSION_MARGIN: f64 = 2.0;

/// An event, or the time before it: `[from_s, to_s)`.
#[derive(Debug, Clone, Copy)]
struct Piece {
    from_s: f64,
    to_s: f64,
    /// Good events expected in it, and seen.
    expected: f64,
    good: f64,
}

/// What is usual among events.
struct Usual {
    /// Good ones per second, or the share that is good.
    reference: f64,
    /// Good ones per second, whatever the reference is.
    rate: f64,
    /// Share that is good; 1 where only good ones are known.
    share: f64,
    /// Variance of counts as a multiple of what independent events have.
    dispersion: f64,
}

/// A stretch of pieces `[first, end)`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stretch {
    first: usize,
    end: usize,
}

/// Of the instants of good events alone.
pub(super) fn of_instants(instants: &[f64], window: &Window) -> Result<Effect, RecoveryError> {
    check(instants.iter().copied())?;
    let hold = between(instants, window.hold_begin_s, window.fault_begin_s, |at| {
        *at
    });
    let length_s = window.fault_begin_s - window.hold_begin_s;
    enough(hold.len())?;
    let rate = hold.len() as f64 / length_s;
    let usual = Usual {
        reference: rate,
        rate,
        share: 1.0,
        dispersion: dispersion(window, rate, hold.iter().map(|at| (*at, 1.0, 0.0))),
    };
    let after = between(instants, window.fault_begin_s, window.until_s, |at| *at);
    // Time that nothing ends counts as well: the outage may go on.
    let mut from_s = window.fault_begin_s;
    let mut pieces = Vec::with_capacity(after.len() + 1);
    let mut until = |to_s: f64, good: f64| {
        let expected = rate * (to_s - from_s);
        pieces.push(Piece {
            from_s,
            to_s,
            expected,
            good,
        });
        from_s = to_s;
    };
    after.iter().for_each(|at| until(*at, 1.0));
    until(window.until_s, 0.0);
    Ok(judge(&pieces, &usual, window))
}

/// Of requests that were answered well or not.
pub(super) fn of_requests(
    requests: &[(f64, bool)],
    window: &Window,
) -> Result<Effect, RecoveryError> {
    check(requests.iter().map(|request| request.0))?;
    let at = |request: &(f64, bool)| request.0;
    let hold = between(requests, window.hold_begin_s, window.fault_begin_s, at);
    enough(hold.len())?;
    let count = hold.len() as f64;
    let good = hold.iter().filter(|request| request.1).count() as f64;
    enough(good as usize)?;
    // As if one more had failed: that none of a few failed does not say that none ever does.
    let share = good / (count + 1.0);
    let seen = hold
        .iter()
        .map(|(at, good)| (*at, f64::from(u8::from(*good)), share));
    let rate = count / (window.fault_begin_s - window.hold_begin_s);
    let usual = Usual {
        reference: good / count,
        rate: rate * share,
        share,
        dispersion: dispersion(window, rate * (1.0 - share), seen),
    };
    let after = between(requests, window.fault_begin_s, window.until_s, at);
    if after.is_empty() {
        return Err(RecoveryError::NothingAfter);
    }
    let last_before_s = hold.last().map(at);
    let next = after.iter().skip(1).map(|request| request.0);
    let ends = next.chain(std::iter::once(window.until_s));
    let pieces: Vec<Piece> = after
        .iter()
        .zip(ends)
        .map(|((at, good), to_s)| Piece {
            from_s: *at,
            to_s,
            expected: share,
            good: f64::from(u8::from(*good)),
        })
        .collect();
    Ok(match judge(&pieces, &usual, window) {
        Effect::None(unseen) => Effect::None(Unseen {
            lasting_s: usual.unseen_s(&pieces, last_before_s, window),
            ..unseen
        }),
        seen => seen,
    })
}

fn check(instants: impl Iterator<Item = f64>) -> Result<(), RecoveryError> {
    let mut before = f64::NEG_INFINITY;
    for (number, at) in instants.enumerate() {
        if !at.is_finite() || at < before {
            return Err(RecoveryError::Disordered { number });
        }
        before = at;
    }
    Ok(())
}

fn enough(found: usize) -> Result<(), RecoveryError> {
    // Two slots of the fewest events would say nothing of how they come.
    let needed = 2 * FEWEST;
    if found < needed {
        return Err(RecoveryError::ShortHold { found, needed });
    }
    Ok(())
}

fn between<T>(all: &[T], from_s: f64, to_s: f64, at: impl Fn(&T) -> f64) -> &[T] {
    let first = all.partition_point(|one| at(one) < from_s);
    let end = all.partition_point(|one| at(one) < to_s);
    &all[first..end.max(first)]
}

/// How much more counts of slots vary than those of independent events with this rate, at the worst of
/// several widths. `events` are `(at, count, expected)`; where nothing is expected of an event,
/// the rate says what is of a slot.
fn dispersion(
    window: &Window,
    rate: f64,
    events: impl Iterator<Item = (f64, f64, f64)> + Clone,
) -> f64 {
    let length_s = window.fault_begin_s - window.hold_begin_s;
    let mut most: f64 = 1.0;
    for per_slot in SLOT_EVENTS {
        let slots = (length_s * rate / per_slot).floor().min(1e6);
        if slots < FEWEST_SLOTS {
            break;
        }
        let width_s = length_s / slots;
        let mut away = vec![0.0; slots as usize];
        for (at, count, expected) in events.clone() {
            let slot = ((at - window.hold_begin_s) / width_s) as usize;
            if let Some(away) = away.get_mut(slot) {
                *away += count - expected;
            }
        }
        let centre = stats::mean(&away).unwrap_or(0.0);
        let squares: f64 = away.iter().map(|away| (away - centre).powi(2)).sum();
        let index = squares / (slots - 1.0) / (rate * width_s);
        let independent = 1.0 + DISPERSION_MARGIN * (2.0 / (slots - 1.0)).sqrt();
        // Up to two standard errors above 1 is what independent events show, too.
        if index > independent {
            most = most.max(index * independent);
        }
    }
    most
}

fn judge(pieces: &[Piece], usual: &Usual, window: &Window) -> Effect {
    let limit = usual.limit(window);
    let mut found: Vec<Stretch> = Vec::new();
    for lower in LOWER_RATES {
        let scores: Vec<f64> = pieces
            .iter()
            .map(|piece| score(piece, usual, lower))
            .collect();
        // What a lower rate found has its edges; a higher one only adds what lies elsewhere.
        for stretch in stretches(&scores, limit) {
            let apart = |other: &Stretch| stretch.end <= other.first || other.end <= stretch.first;
            if found.iter().all(apart) {
                found.push(sharpened(pieces, usual, stretch, limit));
            }
        }
    }
    found.sort_unstable_by_key(|stretch| stretch.first);
    let mut spells: Vec<Vec<Stretch>> = Vec::new();
    for stretch in found {
        let near = spells
            .last()
            .and_then(|spell| spell.last())
            .is_some_and(|last| {
                pieces[stretch.first].from_s - pieces[last.end - 1].to_s < window.steady_s
            });
        match spells.last_mut() {
            Some(spell) if near => spell.push(stretch),
            _ => spells.push(vec![stretch]),
        }
    }
    match spells.split_first() {
        Some((spell, later)) => Effect::Seen(measure(pieces, usual, spell, later.len(), window)),
        None => Effect::None(Unseen {
            reference: usual.reference,
            smallest: usual.reference,
            lasting_s: limit / ((1.0 - LOWER_RATES[0]) * usual.rate),
            smallest_once: None,
        }),
    }
}

impl Usual {
    /// Evidence that noise hardly ever gathers in so much time.
    fn limit(&self, window: &Window) -> f64 {
        let length_s = window.until_s - window.fault_begin_s;
        let tests = (self.rate * length_s).max(1.0) * LOWER_RATES.len() as f64;
        (tests / FALSE_CLAIMS).ln() * self.dispersion
    }

    /// How long all requests may fail without being an outage, where it hides best: in times with
    /// few of them.
    fn unseen_s(&self, pieces: &[Piece], last_before_s: Option<f64>, window: &Window) -> f64 {
        let [lowest, ..] = LOWER_RATES;
        let failed = (1.0 - self.share * lowest) / (1.0 - self.share);
        // So many in a row that fail are seen. One fewer are not, nor what lies around them.
        let enough = (self.limit(window) / failed.ln()).ceil().clamp(1.0, 1e9) as usize;
        let looks = || {
            last_before_s
                .into_iter()
                .chain(pieces.iter().map(|piece| piece.from_s))
        };
        let between = looks().zip(looks().skip(enough));
        between
            .map(|(before, after)| after - before)
            .reduce(f64::max)
            .unwrap_or(window.until_s - window.fault_begin_s)
    }
}

/// How much likelier a piece is at a lower rate, as a logarithm.
fn score(piece: &Piece, usual: &Usual, lower: f64) -> f64 {
    if usual.share < 1.0 {
        let now = usual.share * lower;
        return if piece.good > 0.0 {
            lower.ln()
        } else {
            ((1.0 - now) / (1.0 - usual.share)).ln()
        };
    }
    piece.good * lower.ln() + (1.0 - lower) * piece.expected
}

/// The same outage with the edges that are likeliest at the rate that it has.
fn sharpened(pieces: &[Piece], usual: &Usual, stretch: Stretch, limit: f64) -> Stretch {
    let of = &pieces[stretch.first..stretch.end];
    let good: f64 = of.iter().map(|piece| piece.good).sum();
    let expected: f64 = of.iter().map(|piece| piece.expected).sum();
    let lower = ((good + 0.5) / (expected + 0.5)).clamp(0.005, 0.95);
    let scores: Vec<f64> = pieces
        .iter()
        .map(|piece| score(piece, usual, lower))
        .collect();
    let again = stretches(&scores, limit);
    let same = again
        .into_iter()
        .find(|other| other.first < stretch.end && stretch.first < other.end);
    same.unwrap_or(stretch)
}

/// Disjoint stretches, each with the largest sum of scores around it, whose sums are above the
/// limit.
fn stretches(scores: &[f64], limit: f64) -> Vec<Stretch> {
    let mut found = Vec::new();
    let mut from = 0;
    while from < scores.len() {
        let (mut sum, mut first) = (0.0, from);
        let mut best: Option<(f64, Stretch)> = None;
        let mut at = from;
        while at < scores.len() {
            if sum <= 0.0 {
                (sum, first) = (0.0, at);
            }
            sum += scores[at];
            if sum > best.map_or(limit, |best| best.0) {
                let end = at + 1;
                best = Some((sum, Stretch { first, end }));
            }
            at += 1;
            // The sum fell by what would claim an outage: what follows is one of its own.
            if best.is_some_and(|best| sum < best.0 - limit) {
                break;
            }
        }
        let Some((_, stretch)) = best else { break };
        found.push(stretch);
        from = stretch.end;
    }
    found
}

fn measure(
    pieces: &[Piece],
    usual: &Usual,
    spell: &[Stretch],
    later_exits: usize,
    window: &Window,
) -> Recovery {
    let begin = spell.first().map_or(0, |stretch| stretch.first);
    let end = spell.last().map_or(pieces.len(), |stretch| stretch.end);
    let out_s = pieces[begin].from_s;
    let back_s = pieces.get(end).map(|piece| piece.from_s);
    let per_event_s = 1.0 / (usual.rate / usual.share).max(f64::MIN_POSITIVE);
    let since = |at_s: f64| (at_s - window.fault_begin_s, at_s - window.fault_end_s);
    let steady = |back_s: &f64| back_s + window.steady_s <= window.until_s;
    let returned = match back_s.filter(steady) {
        Some(back_s) => {
            let (from_begin_s, from_end_s) = since(back_s);
            let last = &pieces[end - 1];
            Return::After {
                from_begin_s,
                from_end_s,
                resolution_s: per_event_s.max(if usual.share < 1.0 {
                    last.to_s - last.from_s
                } else {
                    0.0
                }),
            }
        }
        None => {
            let (from_begin_s, from_end_s) = since(pieces[end - 1].to_s);
            Return::NotBefore {
                from_begin_s,
                from_end_s,
            }
        }
    };
    let deepest = spell
        .iter()
        .map(|stretch| share_lost(&pieces[stretch.first..stretch.end]))
        .fold(0.0, f64::max);
    let over = &pieces[begin..end];
    let expected: f64 = over.iter().map(|piece| piece.expected).sum();
    let good: f64 = over.iter().map(|piece| piece.good).sum();
    let variance = expected
        * if usual.share < 1.0 {
            1.0 - usual.share
        } else {
            1.0
        };
    Recovery {
        reference: usual.reference,
        band: 0.0,
        slope: 0.0,
        detected_s: out_s - window.fault_begin_s,
        detected_resolution_s: per_event_s,
        returned,
        depth: deepest * usual.reference,
        depth_noise: 2.0 * usual.reference * (variance * usual.dispersion).sqrt() / expected,
        depth_share: Some(deepest),
        fell: true,
        lost: expected - good,
        lost_noise: 2.0 * (variance * usual.dispersion).sqrt(),
        later_exits,
    }
}

fn share_lost(pieces: &[Piece]) -> f64 {
    let expected: f64 = pieces.iter().map(|piece| piece.expected).sum();
    let good: f64 = pieces.iter().map(|piece| piece.good).sum();
    (1.0 - good / expected.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0)
}
