//! The search for the highest rate that holds.

use stats::Threshold;

use crate::generate::{Flow, Generate, GenerateError};
use crate::recording::Recorded;

use super::bench::{Bench, Outcome};
use super::settings::{Event, MOST_RATE, Purpose, Search};
use super::{Capacity, Estimate, fit};

/// Times that a contradiction at the ends of the interval sends the search back.
const ROUNDS: u32 = 3;

/// Ratio of the ends of the widest range that is believed possible.
const WIDEST: f64 = 1e4;

/// Quantiles of what is believed that are tried in turn.
const ASKED: [f64; 3] = [0.5, 0.1, 0.9];

/// Ratio of the ends of the widest interval that is told: nothing is known beyond that.
const UNSURE: f64 = 2.0;

/// Holds in a row that the machine may spoil while the search bisects.
const SPOILED: u32 = 3;

/// Share of the time in which one hold at least must have counted.
const PATIENCE: f64 = 0.25;

/// Finds the highest rate at which the objective holds.
///
/// `guard` names what makes a recording say nothing about its target, in the words of
/// [`Reason::check`](crate::summary::Reason::check). A hold that it spoils is never
/// taken for one that does not hold: it is made again after a rest. When that does not
/// help although a lower rate still counts, the search ends with a lower bound. `watch` is told of every step and can end
/// the search; what was found until then is returned.
///
/// # Errors
/// When a setting is out of its bounds, or the generator could not run a segment.
pub fn search(
    generator: &mut dyn Generate,
    settings: &Search,
    guard: &dyn Fn(&Recorded) -> Vec<String>,
    watch: &mut dyn FnMut(&Event<'_>) -> Flow,
) -> Result<Capacity, GenerateError> {
    settings.check().map_err(|error| {
        GenerateError::new(
            "search for a limit",
            format!("{} is {}", error.setting, error.found),
        )
        .help(format!("expected {}", error.expected))
    })?;
    let mut bench = Bench::new(generator, settings, guard, watch);
    let end = find_knee(&mut bench)?;
    if matches!(end, End::Found) {
        overload(&mut bench)?;
    }
    Ok(conclude(&bench, &end))
}

/// How a search ended.
enum End {
    /// The knee lies between rates that hold and rates that do not.
    Found,
    /// The generator can make no more; names of what the guard found.
    Generator(Vec<String>),
    /// The highest rate that may be tried held.
    Range,
    /// No rate held; why no lower one was tried.
    NoneHolds(String),
    /// The budget, or whoever watches, ended it.
    Over(String),
}

fn find_knee(bench: &mut Bench<'_>) -> Result<End, GenerateError> {
    let (mut waited, mut controls) = (0, 0);
    loop {
        let Some(end) = bracket(bench)? else {
            return bisect(bench);
        };
        // Only a lower bound will be told: it should be a firm one. And where the rate that
        // held cannot be made either, it is not the rate that is too much.
        let control = match (bench.bracket().0, &end) {
            (Some(good), End::Generator(_) | End::Range) => bench.hold(good, Purpose::Confirm)?,
            (None, End::Generator(why)) if !bench.impatient(PATIENCE) => {
                Outcome::Limited(why.clone())
            }
            _ => return Ok(end),
        };
        match control {
            Outcome::Bad => {}
            // What spoiled the higher rate may have passed while the lower one was held.
            Outcome::Good if controls == 0 && matches!(end, End::Generator(_)) => controls += 1,
            Outcome::Good => return Ok(end),
            Outcome::Over(why) if bench.left() > 0 => return Ok(End::Over(why)),
            Outcome::Over(_) => return Ok(end),
            Outcome::Limited(_) => {
                waited += 1;
                bench.wait(bench.lowest(), waited + 1)?;
            }
        }
    }
}

/// Looks for one rate that holds and one that does not; `None` once there are both.
fn bracket(bench: &mut Bench<'_>) -> Result<Option<End>, GenerateError> {
    let settings = bench.settings;
    let lowest = bench.lowest();
    let most = settings.most.unwrap_or(MOST_RATE);
    let mut rate = settings.from.max(lowest).min(most);
    loop {
        match bench.bracket() {
            (Some(_), Some(_)) => return Ok(None),
            (Some(good), None) if good >= most => return Ok(Some(End::Range)),
            (Some(good), None) => rate = (good * settings.grow).min(most),
            (None, Some(bad)) if bad <= lowest => {
                let why = format!(
                    "below {} a hold of {:?} has too few requests to tell",
                    units::show_rate(lowest),
                    settings.longest
                );
                return Ok(Some(End::NoneHolds(why)));
            }
            (None, Some(bad)) => rate = (bad / settings.grow).max(lowest),
            (None, None) => {}
        }
        match bench.hold(rate, Purpose::Bracket)? {
            Outcome::Good | Outcome::Bad => {}
            Outcome::Limited(why) => return Ok(Some(End::Generator(why))),
            Outcome::Over(why) => return Ok(Some(End::Over(why))),
        }
    }
}

/// Halves what is not known until the interval is narrow enough and its ends are
/// confirmed. Two holds are kept back for that.
fn bisect(bench: &mut Bench<'_>) -> Result<End, GenerateError> {
    let settings = bench.settings;
    let (mut rounds, mut spoiled) = (0, 0);
    let Some(mut belief) = Posterior::new(bench) else {
        return Ok(End::Found);
    };
    loop {
        belief.observe(bench);
        let estimate = belief.estimate(settings.confidence);
        bench.report_estimate(estimate);
        let narrow = estimate.high <= estimate.low * (1.0 + settings.precision);
        if !narrow && bench.left() > 2 {
            // The median tells most of where the knee is; what lies to both sides of it
            // tells how steep the way there is, without which no interval is honest.
            let quantile = ASKED[bench.points.len() % ASKED.len()];
            // Far below what held and above what clearly failed, a hold tells nothing.
            let rate = belief.threshold.quantile(quantile);
            let rate = rate.max(bench.tells_from()).min(bench.claimed());
            let rate = rate.max(bench.lowest());
            match bench.hold(rate, Purpose::Bisect)? {
                Outcome::Good | Outcome::Bad => spoiled = 0,
                // Another rate next; perhaps the machine is quiet then.
                Outcome::Limited(_) if spoiled + 1 < SPOILED => spoiled += 1,
                Outcome::Limited(why) => return Ok(End::Generator(why)),
                Outcome::Over(why) => return Ok(End::Over(why)),
            }
            continue;
        }
        let mut contradicted = false;
        for (rate, expected) in [(estimate.low, true), (estimate.high, false)] {
            match bench.hold(rate.max(bench.lowest()), Purpose::Confirm)? {
                Outcome::Good => contradicted |= !expected,
                Outcome::Bad => contradicted |= expected,
                // That it cannot be made says nothing against the interval.
                Outcome::Limited(_) => {}
                Outcome::Over(why) => return Ok(End::Over(why)),
            }
        }
        rounds += 1;
        if !contradicted || rounds == ROUNDS || bench.left() < 4 {
            return Ok(End::Found);
        }
    }
}

/// Holds a little beyond what failed, until saturation can be told or the limit of such
/// holds is reached.
fn overload(bench: &mut Bench<'_>) -> Result<(), GenerateError> {
    for _ in 0..bench.settings.overload {
        if fit::saturated(&bench.points) {
            break;
        }
        let highest = bench.points.iter().map(|point| point.rate);
        let rate = highest.fold(0.0, f64::max) * bench.settings.grow;
        match bench.hold(rate, Purpose::Overload)? {
            Outcome::Good | Outcome::Bad => {}
            Outcome::Limited(_) | Outcome::Over(_) => break,
        }
    }
    Ok(())
}

/// What all holds together say of the knee.
#[derive(Clone)]
struct Posterior {
    low: f64,
    high: f64,
    threshold: Threshold,
    /// How many answers it has taken in.
    observed: usize,
}

impl Posterior {
    /// `None` without holds on both sides.
    fn new(bench: &Bench<'_>) -> Option<Self> {
        let (Some(good), Some(bad)) = bench.bracket() else {
            return None;
        };
        // The one that held may have been lucky, the other unlucky.
        let room = bench.settings.grow * bench.settings.grow;
        Self::between(good.min(bad) / room, good.max(bad) * room, bench)
    }

    fn between(low: f64, high: f64, bench: &Bench<'_>) -> Option<Self> {
        let mut belief = Self {
            low,
            high,
            threshold: Threshold::new(low, high)?,
            observed: 0,
        };
        belief.observe(bench);
        Some(belief)
    }

    /// Takes in the answers since the last time, over a wider range when they lead to
    /// one of its ends.
    fn observe(&mut self, bench: &Bench<'_>) {
        for (rate, answer) in bench.answers.iter().skip(self.observed) {
            self.threshold.update(*rate, answer);
        }
        self.observed = bench.answers.len();
        let (low, high) = self.threshold.interval(0.99);
        let room = bench.settings.grow;
        let at_end = low < self.low * room.sqrt() || high > self.high / room.sqrt();
        let wider = (self.low / room, self.high * room);
        if at_end && self.high < self.low * WIDEST {
            *self = Self::between(wider.0, wider.1, bench).unwrap_or_else(|| self.clone());
        }
    }

    fn estimate(&self, confidence: f64) -> Estimate {
        let interval = self.threshold.interval(confidence);
        Estimate::new(self.threshold.quantile(0.5), interval, confidence)
    }
}

fn conclude(bench: &Bench<'_>, end: &End) -> Capacity {
    let settings = bench.settings;
    let confidence = settings.confidence;
    let believed = Posterior::new(bench).map(|belief| belief.estimate(confidence));
    let physical = fit::physical(&bench.points, confidence);
    // Whatever is believed of the rates between, nothing is claimed above one that failed, or above
    // what the target can answer.
    let answered = physical.map_or(f64::INFINITY, |most| {
        fit::asked_at_most(&most, &settings.slo)
    });
    let claimed = bench.claimed().min(answered);
    let between = believed.map(|knee| {
        let interval = (knee.low.min(claimed), knee.high.min(claimed));
        Estimate::new(knee.rate.min(claimed), interval, confidence)
    });
    let told = between.filter(|knee| knee.high <= knee.low * UNSURE);
    let good = bench.bracket().0;
    let bound = good.map(|good| Estimate::new(good, (good, good), confidence));
    let knee = match believed {
        Some(_) => told,
        None => bound,
    };
    let limit = match (end, between, told, bound) {
        (_, Some(_), Some(_), _) => "target",
        (_, Some(_), None, _) => "unsure",
        (End::Generator(_), ..) => "generator",
        (.., Some(_)) => "range",
        // Lower rates may hold.
        (End::Over(_), .., None) => "unsure",
        (.., None) => "none",
    };
    let mut note = match (knee, between) {
        (Some(knee), Some(_)) => format!(
            "The objective holds up to {} ({:.0} % interval {} to {}).",
            units::show_rate(knee.rate),
            confidence * 100.0,
            units::show_rate(knee.low),
            units::show_rate(knee.high)
        ),
        (None, Some(_)) => {
            let (held, failed) = bench.bracket();
            let seen = |rate: Option<f64>| rate.map_or("none".to_owned(), units::show_rate);
            format!(
                "Too little is known to name a rate: {} was the highest that held, {} the lowest that \
                 failed.",
                seen(held),
                seen(failed)
            )
        }
        (Some(knee), None) => {
            format!(
                "The objective holds at least up to {}.",
                units::show_rate(knee.rate)
            )
        }
        (None, None) => "No rate was found at which the objective holds.".to_owned(),
    };
    match end {
        End::Found => {}
        End::Generator(why) if believed.is_some() => {
            let why = why.join(", ");
            note += &format!(" The search ended early because its holds were invalid: {why}.");
        }
        End::Generator(why) => {
            // What a hypervisor takes is no work of the generator.
            let stolen = why.iter().all(|check| check == "steal");
            let why = why.join(", ");
            // A rate that was made once, or a higher one, is not too much for the generator.
            let mut invalid = bench
                .points
                .iter()
                .filter(|point| !point.invalid.is_empty());
            let tried = invalid.next_back().map_or(0.0, |point| point.rate);
            let counted = || bench.points.iter().filter(|point| point.invalid.is_empty());
            note += &match stolen || counted().any(|point| point.rate >= tried) {
                true => {
                    format!(" The machine was too busy with others: holds were invalid ({why}).")
                }
                false if counted().next().is_none() => format!(
                    " No hold was valid ({why}): the machine is too busy with others, or the rate is too \
                     much for the generator."
                ),
                false => format!(" The generator can make no more: {why}."),
            };
        }
        End::Range => note += " No higher rate was allowed.",
        End::NoneHolds(why) => note += &format!(" No lower rate was tried: {why}."),
        End::Over(why) => note += &format!(" The search ended early because {why}."),
    }
    if let Some(knee) = told
        && matches!(end, End::Found)
        && knee.high > knee.low * (1.0 + settings.precision)
    {
        note += &format!(
            " The interval is wider than the {} asked for: near the knee, holds of the same \
             rate differ.",
            units::show_share(settings.precision)
        );
    }
    if bench.unrested > 0 {
        note += &format!(
            " After {} the target was still slow when {:?} of rest were over.",
            units::counted(u64::from(bench.unrested), "hold", "holds"),
            settings.drain
        );
    }
    Capacity {
        slo: settings.slo.to_string(),
        points: bench.points.clone(),
        knee,
        physical,
        limit: limit.to_owned(),
        note,
        usl: fit::usl(&bench.points, confidence, settings.seed),
    }
}
