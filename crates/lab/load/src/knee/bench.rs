//! Making holds: one rate for a while, and what it says.

use std::time::Duration;

use measure::Histogram;
use stats::Answer;

use crate::arrivals::{Arrivals, Shape};
use crate::generate::{Flow, Generate, GenerateError};
use crate::recording::{Latencies, Recorded, Span};
use crate::segment::{Length, Model, Segment};
use crate::slo::Statistic;
use crate::steady;
use crate::summary::Steady;

use super::margin;
use super::settings::{Event, MOST_RATE, Purpose, Search, Settle};
use super::{Estimate, Point, TAKEN_BACK};

/// Names of what the guard finds in a recording; see [`search`](super::search).
pub(super) type Guard<'g> = &'g dyn Fn(&Recorded) -> Vec<String>;

/// Attempts at one hold that the machine or the generator spoiled, each after a longer
/// rest.
const ATTEMPTS: u32 = 3;

/// How far above the lowest rate that failed the target may be asked: it may be shared.
const BEYOND_FAILED: f64 = 1.25;

/// Latency that grows faster than this share of the time that passes shows a queue
/// that grows: the target takes less than is asked of it by about this share.
const GROWTH: f64 = 0.03;

/// Holds shorter than this have no second to leave out.
const SHORT: Duration = Duration::from_millis(3_500);

/// What one hold says.
pub(super) enum Outcome {
    /// The objective held.
    Good,
    /// It did not.
    Bad,
    /// The generator or its machine cannot make this rate; names of what the guard found.
    Limited(Vec<String>),
    /// Nothing more may be tried; why, to follow "the search ended because".
    Over(String),
}

/// A generator with a budget, and what came out of it so far.
pub(super) struct Bench<'b> {
    pub(super) settings: &'b Search,
    generator: &'b mut dyn Generate,
    guard: Guard<'b>,
    watch: &'b mut dyn FnMut(&Event<'_>) -> Flow,
    /// Every hold, in order.
    pub(super) points: Vec<Point>,
    /// What each hold that counts says of the knee, with its rate.
    pub(super) answers: Vec<(f64, Answer)>,
    /// Rests after which the target was still slow.
    pub(super) unrested: u32,
    failed: Vec<Failed>,
    spent: Duration,
    arrivals: u64,
    stopped: bool,
}

/// A rate at which the objective was broken.
struct Failed {
    rate: f64,
    /// Whether it was broken beyond chance.
    clearly: bool,
    /// Holds at this rate or above that were good since.
    held: usize,
}

impl<'b> Bench<'b> {
    pub(super) fn new(
        generator: &'b mut dyn Generate,
        settings: &'b Search,
        guard: Guard<'b>,
        watch: &'b mut dyn FnMut(&Event<'_>) -> Flow,
    ) -> Self {
        Self {
            settings,
            generator,
            guard,
            watch,
            points: Vec::new(),
            answers: Vec::new(),
            unrested: 0,
            failed: Vec::new(),
            spent: Duration::ZERO,
            arrivals: 0,
            stopped: false,
        }
    }

    /// Holds that may still be made.
    pub(super) fn left(&self) -> u32 {
        let made = u32::try_from(self.points.len()).unwrap_or(u32::MAX);
        self.settings.holds.saturating_sub(made)
    }

    /// The lowest rate at which the longest hold has requests enough for the objective.
    pub(super) fn lowest(&self) -> f64 {
        self.samples() / self.settings.longest.as_secs_f64()
    }

    /// Highest rate that held and lowest that did not.
    pub(super) fn bracket(&self) -> (Option<f64>, Option<f64>) {
        let counted = || self.points.iter().filter(|point| point.invalid.is_empty());
        let good = counted().filter(|point| point.good).map(|point| point.rate);
        let bad = counted().filter(|point| !point.good);
        let bad = bad.map(|point| point.rate);
        (good.reduce(f64::max), bad.reduce(f64::min))
    }

    /// The highest rate that may be asked for: never far above one that failed, even if
    /// the guard would not let that failure count.
    pub(super) fn most(&self) -> f64 {
        let most = self.settings.most.unwrap_or(MOST_RATE);
        // Failures that were not taken back.
        let standing = self.failed.iter().filter(|failed| failed.held < TAKEN_BACK);
        let lowest = standing.map(|failed| failed.rate).reduce(f64::min);
        lowest.map_or(most, |failed| most.min(failed * BEYOND_FAILED))
    }

    /// The lowest rate that failed beyond chance: nothing is claimed above it. Near the knee
    /// of a target that drifts, a rate may fail so once although it and higher ones hold.
    pub(super) fn claimed(&self) -> f64 {
        let held = |rate: f64| self.points.iter().filter(move |p| p.good && p.rate >= rate);
        let failed = self.failed.iter().filter(|failed| failed.clearly);
        let rates = failed.map(|failed| failed.rate);
        rates
            .filter(|rate| held(*rate).count() < TAKEN_BACK)
            .fold(f64::INFINITY, f64::min)
    }

    /// The rate below which another hold tells little: higher ones were good.
    pub(super) fn tells_from(&self) -> f64 {
        let (good, _) = self.bracket();
        good.map_or(0.0, |good| good / NEAR_GOOD)
    }

    fn remember(&mut self, rate: f64, broken: bool, counts: bool, answer: &Answer) {
        if broken {
            self.failed.push(Failed {
                rate,
                clearly: counts && margin::clearly_over(answer),
                held: 0,
            });
        } else if counts {
            let below = self.failed.iter_mut().filter(|failed| failed.rate <= rate);
            below.for_each(|failed| failed.held += 1);
        }
    }

    /// Whether this share of the time has passed.
    pub(super) fn impatient(&self, share: f64) -> bool {
        self.stopped || self.left() == 0 || self.spent > self.settings.within.mul_f64(share)
    }

    /// Reports an estimate; whether the search goes on is seen at the next hold.
    pub(super) fn report_estimate(&mut self, estimate: Estimate) {
        self.notify(&Event::Believed(estimate));
    }

    /// Holds a rate, or the highest that may be asked for; again when the machine spoiled
    /// it, and lets the target rest when it was too much. The point is kept.
    pub(super) fn hold(&mut self, rate: f64, purpose: Purpose) -> Result<Outcome, GenerateError> {
        let mut rate = rate.min(self.most());
        let usual = match purpose {
            Purpose::Confirm => self.settings.confirm,
            _ => self.settings.each,
        };
        let needed = match purpose {
            Purpose::Bracket | Purpose::Overload => self.samples(),
            Purpose::Bisect | Purpose::Confirm => self.samples().max(self.samples_near()),
        };
        let needed = Duration::try_from_secs_f64(needed / rate).unwrap_or(Duration::MAX);
        // A few long holds learn less than many, each of which is asked for where it tells most.
        let longest = self.settings.longest;
        let affordable = match purpose {
            Purpose::Bisect => longest.min(self.settings.within / LEAST_HOLDS),
            _ => longest,
        };
        let mut length = usual.max(needed).min(affordable.max(usual));
        let mut attempt = 1;
        loop {
            if let Some(why) = self.over(length, purpose) {
                return Ok(Outcome::Over(why));
            }
            let number = u32::try_from(self.points.len() + 1).unwrap_or(u32::MAX);
            self.notify(&Event::Hold {
                number,
                rate,
                length,
                purpose,
            });
            let recorded = self.segment(rate, length, |_| Flow::Continue)?;
            if self.stopped {
                return Ok(Outcome::Over("it was stopped".to_owned()));
            }
            if let Some(why) = &recorded.cut {
                return Ok(Outcome::Over(format!("a hold was cut short: {why}")));
            }
            let (point, reading, answer, broken) = self.read(rate, purpose, &recorded);
            let (good, counts) = (point.good, point.invalid.is_empty());
            self.remember(rate, broken, counts, &answer);
            if counts {
                self.answers.push((rate, answer));
            }
            self.notify(&Event::Held(&point));
            self.points.push(point);
            match reading {
                Reading::Counts if good => return Ok(Outcome::Good),
                Reading::Counts => {
                    self.rest(rate)?;
                    return Ok(Outcome::Bad);
                }
                Reading::TooFew if attempt < ATTEMPTS && length < self.settings.longest => {
                    length = (length * 2).min(self.settings.longest);
                }
                Reading::TooFew => {
                    let why = format!(
                        "a hold of {length:?} at {} has too few requests for the objective; \
                         allow longer holds, or ask for a lower percentile",
                        units::show_rate(rate)
                    );
                    return Ok(Outcome::Over(why));
                }
                Reading::Lost(why) => return Ok(Outcome::Limited(why)),
                Reading::Spoiled(_) if attempt < ATTEMPTS => {
                    self.wait(rate, attempt)?;
                    rate = rate.min(self.most());
                }
                Reading::Spoiled(why) => return Ok(Outcome::Limited(why)),
            }
            attempt += 1;
        }
    }

    /// Requests that a hold should have, with half as many more for what is left out.
    fn samples(&self) -> f64 {
        self.settings.slo.samples_needed() as f64 * 1.5
    }

    /// The same near the knee, where slow requests come in groups, and a hold that saw one
    /// or two of them says little.
    fn samples_near(&self) -> f64 {
        self.settings.slo.samples_needed() as f64 * self.settings.near
    }

    /// Why no hold of this length may be made any more.
    fn over(&self, length: Duration, purpose: Purpose) -> Option<String> {
        if self.stopped {
            return Some("it was stopped".to_owned());
        }
        if self.left() == 0 && purpose != Purpose::Overload {
            return Some(format!("its {} holds were made", self.settings.holds));
        }
        let within = self.settings.within;
        (self.spent + length > within).then(|| {
            let within = units::write_duration(within);
            format!("its time of {within} was used up")
        })
    }

    /// Notifies whoever watches, and who can end the search.
    fn notify(&mut self, event: &Event<'_>) {
        self.stopped |= (self.watch)(event) == Flow::Stop;
    }

    fn segment(
        &mut self,
        rate: f64,
        length: Duration,
        mut enough: impl FnMut(&Span) -> Flow,
    ) -> Result<Recorded, GenerateError> {
        let segment = Segment {
            model: Model::Open(Arrivals::Rate {
                process: self.settings.process,
                shape: Shape::Constant(rate),
            }),
            length: Length {
                duration: Some(length),
                requests: None,
            },
            first: self.arrivals,
        };
        let (watch, stopped) = (&mut *self.watch, &mut self.stopped);
        let recorded = self.generator.run(&segment, &mut |span| {
            *stopped |= watch(&Event::Passed(span)) == Flow::Stop;
            if *stopped { Flow::Stop } else { enough(span) }
        })?;
        self.arrivals = self.arrivals.saturating_add(recorded.total.planned);
        self.spent = self.spent.saturating_add(recorded.total.length);
        Ok(recorded)
    }

    /// Waits for whatever spoiled a hold to pass, each time twice as long, at a tenth of
    /// the load.
    pub(super) fn wait(&mut self, rate: f64, times: u32) -> Result<(), GenerateError> {
        let left = self.settings.within.saturating_sub(self.spent);
        let most = (self.settings.drain * (1 << times.min(6)) / 2).min(left);
        if most.is_zero() || self.stopped {
            return Ok(());
        }
        let slow = self.slow(rate);
        self.notify(&Event::Rest { rate: slow, most });
        self.segment(slow, most, |_| Flow::Continue)?;
        Ok(())
    }

    fn slow(&self, rate: f64) -> f64 {
        let (good, _) = self.bracket();
        (rate.min(good.unwrap_or(rate)) / 10.0).max(1.0).min(rate)
    }

    /// Lets the target work off what an overload left behind, at a tenth of the load,
    /// until its median is near that of a good hold.
    fn rest(&mut self, rate: f64) -> Result<(), GenerateError> {
        let most = self.settings.drain;
        if most.is_zero() || self.stopped {
            return Ok(());
        }
        let slow = self.slow(rate);
        let usual = self.points.iter().filter(|point| point.good);
        let usual = usual.filter_map(|point| point.p50).reduce(f64::max);
        self.notify(&Event::Rest { rate: slow, most });
        let mut rested = false;
        self.segment(slow, most, |span| {
            let requests = span.requests();
            let median = requests.intended.quantile(0.5);
            rested = match (median, usual) {
                (Some(median), Some(usual)) => {
                    requests.failed() == 0 && median.as_secs_f64() <= 2.0 * usual
                }
                // Without a good hold there is nothing to compare with.
                (_, None) => true,
                (None, Some(_)) => requests.sent == 0,
            };
            if rested { Flow::Stop } else { Flow::Continue }
        })?;
        self.unrested += u32::from(!rested && !self.stopped);
        Ok(())
    }

    /// What a hold says: its point, whether it counts, for what, and whether the
    /// objective was broken.
    fn read(
        &self,
        rate: f64,
        purpose: Purpose,
        recorded: &Recorded,
    ) -> (Point, Reading, Answer, bool) {
        let counted = self.counted(recorded);
        let judged = self.settings.slo.judge(&counted).holds;
        let grows = grows(&counted);
        let holds = judged.map(|holds| holds && !grows);
        let near = matches!(purpose, Purpose::Bisect | Purpose::Confirm);
        let answer = margin::answer(&self.settings.slo, &counted, holds, grows, near);
        let mut reading = weigh((self.guard)(recorded), holds);
        if !recorded.lost.is_empty() {
            reading = Reading::Lost(vec!["worker-lost".to_owned()]);
        }
        let invalid = match &reading {
            Reading::Spoiled(why) | Reading::Lost(why) => why.clone(),
            Reading::TooFew => vec!["too-few".to_owned()],
            Reading::Counts => Vec::new(),
        };
        let good = holds == Some(true) && invalid.is_empty();
        (
            point(rate, purpose, &counted, good, invalid),
            reading,
            answer,
            holds == Some(false),
        )
    }

    /// The hold without its lead, in which the queue of the target fills; how long that is
    /// does not depend on what was seen in it. Failures are never left out.
    fn counted(&self, recorded: &Recorded) -> Recorded {
        let length = steady::sending(recorded).length;
        let lead = match self.settings.settle {
            Settle::Lead(lead) => lead,
            Settle::Auto if length >= SHORT => (length / 4).max(Duration::from_secs(1)),
            Settle::Auto => Duration::ZERO,
        };
        let part = steady::part(recorded, &Steady::between(lead, length, ""));
        let left_out = recorded.total.tried().failed > part.total.tried().failed;
        // A lead as long as the hold would leave nothing.
        match part.total.length.is_zero() || left_out {
            true => recorded.clone(),
            false => part,
        }
    }
}

/// Ratio of the highest good rate to the lowest one that is asked for after it.
const NEAR_GOOD: f64 = 1.25;

/// Holds that the time of a search shall suffice for.
const LEAST_HOLDS: u32 = 12;

/// Whether a hold counts.
#[derive(Debug, PartialEq)]
pub(super) enum Reading {
    Counts,
    /// Nothing can be said of a percentile.
    TooFew,
    /// By the generator or its machine; another attempt may do.
    Spoiled(Vec<String>),
    /// No other attempt can do.
    Lost(Vec<String>),
}

/// Whether a hold counts, by what the guard found of its generator.
pub(super) fn weigh(found: Vec<String>, holds: Option<bool>) -> Reading {
    if found.iter().any(|check| check == "worker-lost") {
        return Reading::Lost(found);
    }
    match holds {
        _ if !found.is_empty() => Reading::Spoiled(found),
        None => Reading::TooFew,
        Some(_) => Reading::Counts,
    }
}

/// Whether latency grows with time so fast that the target cannot keep up. A short hold
/// just above the limit would otherwise pass an objective that is wide against its
/// length: the queue had no time to become long enough. What the generator may have added is no queue
/// of the target's.
fn grows(recorded: &Recorded) -> bool {
    let means: Vec<(f64, f64)> = steady::sending_spans(recorded)
        .filter_map(|span| {
            let middle = span.start + span.length / 2;
            let answers = span.kinds.iter();
            let least = answers.map(|kind| kind.intended_doubt.least_of(&kind.intended));
            let least: Vec<Histogram> = least.collect();
            let sum: f64 = least.iter().map(Histogram::sum_seconds).sum();
            let count: u64 = least.iter().map(Histogram::count).sum();
            (count > 0).then(|| (middle.as_secs_f64(), sum / count as f64))
        })
        .collect();
    let (times, latencies): (Vec<f64>, Vec<f64>) = means.into_iter().unzip();
    let slope = stats::covariance(&times, &latencies).zip(stats::variance(&times));
    times.len() >= 3 && slope.is_some_and(|(together, times)| together > GROWTH * times)
}

fn point(rate: f64, purpose: Purpose, part: &Recorded, good: bool, invalid: Vec<String>) -> Point {
    let requests = part.total.requests();
    let sending = steady::sending(part);
    let length = sending.length.as_secs_f64().max(f64::MIN_POSITIVE);
    let answers = sending.requests();
    let latencies = Latencies::intended(&requests);
    let told = |statistic| {
        let value = latencies.value(statistic);
        value.filter(|value| latencies.is_meaningful(statistic) && value.is_finite())
    };
    Point {
        rate,
        sent: answers.sent as f64 / length,
        good_rate: answers.good() as f64 / length,
        p50: told(Statistic::P50),
        p99: told(Statistic::P99),
        errors: part.total.tried().share().unwrap_or(0.0),
        in_flight: sending.in_flight_seconds / length,
        length_s: sending.length.as_secs_f64(),
        good,
        invalid,
        purpose: purpose.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A hold of 5 s at 100 a second, of which each of the last hundred took a second; `ours`: the
    /// generator may have made so much of it, in milliseconds.
    fn hold(ours: u64) -> Recorded {
        let mut recorded = Recorded::begun(Segment {
            model: Model::Open(Arrivals::poisson(100.0)),
            length: Length {
                duration: Some(Duration::from_secs(5)),
                requests: None,
            },
            first: 0,
        });
        for second in 0..5 {
            let mut span = Span::empty(1);
            span.start = Duration::from_secs(second);
            span.length = Duration::from_secs(1);
            let latency = if second == 4 { 1_000 * MS } else { 5 * MS };
            for _ in 0..100 {
                span.kinds[0].intended.record_ns(latency);
                if second == 4 {
                    span.kinds[0].intended_doubt.record_ns(latency, ours * MS);
                }
            }
            recorded.pass(&span, 0);
        }
        recorded
    }

    #[test]
    fn a_queue_grows_that_the_generator_did_not_make() {
        assert!(grows(&hold(0)));
        assert!(grows(&hold(500)));
        assert!(!grows(&hold(995)));
    }
}
