//! The search for the highest rate that holds.

use stats::{Bisection, Noise};

use crate::generate::{Flow, Generate, GenerateError};
use crate::recording::Recorded;

use super::bench::{Bench, Outcome};
use super::settings::{Event, MOST_RATE, Purpose, Search};
use super::{Capacity, Estimate, fit};

/// Share of holds that say the opposite of the truth however far from the knee.
const LAPSE: f64 = 0.02;

/// Times that a contradiction at the ends of the interval sends the search back.
const ROUNDS: u32 = 3;

/// Ratio of the ends of the widest range that is believed possible.
const WIDEST: f64 = 1e4;

/// Quantiles of what is believed that are tried in turn.
const ASKED: [f64; 3] = [0.5, 0.1, 0.9];

/// What a hold counts for. On simulated queues 90 % intervals cover the truth in 85 to
/// 88 % of the cases with a weight of 1, in 92 to 96 % with this.
const WEIGHT: f64 = 0.7;

/// How steeply the excess over the objective may rise with the rate, both in
/// logarithms. A 99th percentile of M/M/1 rises with 4.6 ρ / (1 - ρ).
const SLOPES: [f64; 7] = [1.5, 3.0, 6.0, 12.0, 24.0, 48.0, 96.0];

/// How much the excess may scatter between holds of the same rate.
const SCALES: [f64; 6] = [0.04, 0.08, 0.16, 0.32, 0.64, 1.28];

/// Finds the highest rate at which the objective holds.
///
/// `guard` names what makes a recording say nothing about its target, in the words of
/// [`Reason::check`](crate::summary::Reason::check). A hold that it spoils is never
/// taken for one that does not hold: it is made again, and when that does not help
/// the search ends there with a lower bound. `watch` is told of every step and can end
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
    settings.check().map_err(|error| GenerateError {
        doing: "search for a limit".to_owned(),
        found: format!("{} is {}", error.setting, error.found),
        help: Some(format!("expected {}", error.expected)),
    })?;
    let mut bench = Bench::new(generator, settings, guard, watch);
    let end = hunt(&mut bench)?;
    if !matches!(end, End::Over(_) | End::NoneHolds(_)) {
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

fn hunt(bench: &mut Bench<'_>) -> Result<End, GenerateError> {
    loop {
        let Some(end) = bracket(bench)? else {
            return bisect(bench);
        };
        let (Some(good), End::Generator(_) | End::Range) = (bench.bracket().0, &end) else {
            return Ok(end);
        };
        // Only a lower bound will be told: it should be a firm one.
        match bench.hold(good, Purpose::Confirm)? {
            Outcome::Bad => {}
            Outcome::Over(why) if bench.left() > 0 => return Ok(End::Over(why)),
            Outcome::Good | Outcome::Limited(_) | Outcome::Over(_) => return Ok(end),
        }
    }
}

/// Looks for one rate that holds and one that does not; `None` once there are both.
fn bracket(bench: &mut Bench<'_>) -> Result<Option<End>, GenerateError> {
    let settings = bench.settings;
    let most = settings.most.unwrap_or(MOST_RATE);
    let lowest = bench.lowest();
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

/// The nearest rate that may be tried: within the range that is believed possible when
/// the search begins to bisect. A target shall not be asked for forty times what it
/// failed at.
fn sane(bench: &Bench<'_>, rate: f64) -> f64 {
    let settings = bench.settings;
    let room = settings.grow * settings.grow;
    let near = match bench.bracket() {
        (Some(good), Some(bad)) => rate.clamp(good.min(bad) / room, good.max(bad) * room),
        _ => rate,
    };
    let most = settings.most.unwrap_or(MOST_RATE);
    near.max(bench.lowest()).min(most)
}

/// Halves what is not known until the interval is narrow enough and its ends are
/// confirmed. Two holds are kept back for that.
fn bisect(bench: &mut Bench<'_>) -> Result<End, GenerateError> {
    let settings = bench.settings;
    let mut rounds = 0;
    let Some(mut belief) = Belief::new(bench) else {
        return Ok(End::Found);
    };
    loop {
        belief.hear(bench);
        let estimate = belief.estimate(settings.confidence);
        bench.believe(estimate);
        let narrow = estimate.high <= estimate.low * (1.0 + settings.precision);
        if !narrow && bench.left() > 2 {
            // The median tells most of where the knee is; what lies to both sides of it
            // tells how steep the way there is, without which no interval is honest.
            let quantile = ASKED[bench.points.len() % ASKED.len()];
            let rate = sane(bench, belief.bisection.quantile(quantile));
            match bench.hold(rate, Purpose::Bisect)? {
                Outcome::Good | Outcome::Bad => continue,
                Outcome::Limited(why) => return Ok(End::Generator(why)),
                Outcome::Over(why) => return Ok(End::Over(why)),
            }
        }
        let mut contradicted = false;
        for (rate, expected) in [(estimate.low, true), (estimate.high, false)] {
            match bench.hold(sane(bench, rate), Purpose::Confirm)? {
                Outcome::Good => contradicted |= !expected,
                Outcome::Bad => contradicted |= expected,
                Outcome::Limited(why) if expected => return Ok(End::Generator(why)),
                // That more cannot be made says nothing against the interval.
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

/// Holds beyond everything tried, until saturation can be told or the limit of such
/// holds is reached.
fn overload(bench: &mut Bench<'_>) -> Result<(), GenerateError> {
    let most = bench.settings.most.unwrap_or(MOST_RATE);
    for _ in 0..bench.settings.overload {
        if fit::saturated(&bench.points) {
            break;
        }
        let highest = bench
            .points
            .iter()
            .map(|point| point.rate)
            .fold(0.0, f64::max);
        // Once the target lags behind, more of the same says more than more.
        let lags = |point: &&super::Point| point.good_rate < 0.9 * point.rate;
        let lagging = bench.points.iter().filter(lags).map(|point| point.rate);
        let rate = lagging
            .reduce(f64::max)
            .unwrap_or(highest * bench.settings.grow);
        if rate > most {
            break;
        }
        match bench.hold(rate, Purpose::Overload)? {
            Outcome::Good | Outcome::Bad => {}
            Outcome::Limited(_) | Outcome::Over(_) => break,
        }
    }
    Ok(())
}

/// What all holds together say of the knee.
#[derive(Clone)]
struct Belief {
    low: f64,
    high: f64,
    bisection: Bisection,
    /// How many answers it has taken in.
    heard: usize,
}

impl Belief {
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
        let noise = Noise::Response {
            slopes: SLOPES.to_vec(),
            scales: SCALES.to_vec(),
            lapse: LAPSE,
            weight: WEIGHT,
        };
        let mut belief = Self {
            low,
            high,
            bisection: Bisection::new(low, high, noise)?,
            heard: 0,
        };
        belief.hear(bench);
        Some(belief)
    }

    /// Takes in the answers since the last time, over a wider range when they lead to
    /// one of its ends.
    fn hear(&mut self, bench: &Bench<'_>) {
        for (rate, answer) in bench.answers.iter().skip(self.heard) {
            self.bisection.update(*rate, *answer);
        }
        self.heard = bench.answers.len();
        let (low, high) = self.bisection.interval(0.99);
        let room = bench.settings.grow;
        let at_end = low < self.low * room.sqrt() || high > self.high / room.sqrt();
        let wider = (self.low / room, self.high * room);
        if at_end && self.high < self.low * WIDEST {
            *self = Self::between(wider.0, wider.1, bench).unwrap_or_else(|| self.clone());
        }
    }

    fn estimate(&self, confidence: f64) -> Estimate {
        let (low, high) = self.bisection.interval(confidence);
        Estimate {
            rate: self.bisection.quantile(0.5),
            low,
            high,
            confidence,
        }
    }
}

fn conclude(bench: &Bench<'_>, end: &End) -> Capacity {
    let settings = bench.settings;
    let confidence = settings.confidence;
    let between = Belief::new(bench).map(|belief| belief.estimate(confidence));
    let bound = bench.bracket().0.map(|good| Estimate {
        rate: good,
        low: good,
        high: good,
        confidence,
    });
    let knee = between.or(bound);
    let limit = match (end, between, bound) {
        (End::Generator(_), ..) => "generator",
        (_, Some(_), _) => "target",
        (_, None, Some(_)) => "range",
        (_, None, None) => "none",
    };
    let physical = fit::physical(&bench.points, confidence);
    let mut note = match (knee, between) {
        (Some(knee), Some(_)) => format!(
            "The objective holds up to {} ({:.0} % interval {} to {}).",
            units::show_rate(knee.rate),
            confidence * 100.0,
            units::show_rate(knee.low),
            units::show_rate(knee.high)
        ),
        (Some(knee), None) => {
            format!(
                "The objective holds at least up to {}.",
                units::show_rate(knee.rate)
            )
        }
        (None, _) => "No rate was found at which the objective holds.".to_owned(),
    };
    match end {
        End::Found => {}
        End::Generator(why) => {
            note += &format!(" The generator can make no more: {}.", why.join(", "));
        }
        End::Range => note += " No higher rate was allowed.",
        End::NoneHolds(why) => note += &format!(" No lower rate was tried: {why}."),
        End::Over(why) => note += &format!(" The search ended early because {why}."),
    }
    if let Some(knee) = between
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
            " After {} holds the target was still slow when {:?} of rest were over.",
            bench.unrested, settings.drain
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
