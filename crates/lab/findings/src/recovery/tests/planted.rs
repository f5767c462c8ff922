//! Outages whose truth is known.

use stats::SplitMix;

use super::noise::{Noise, Source};
use crate::recovery::{Effect, Return, Signal, Window, Worse, recovery};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Shape {
    Step,
    Ramp,
    Exponential,
    DoubleDip,
}

/// What was planted around a level of 100.
#[derive(Debug)]
struct Outage {
    shape: Shape,
    begin_s: f64,
    /// For how long it is as deep as it gets.
    length_s: f64,
    /// How long it takes to come back, or how far apart the dips are.
    back_s: f64,
    depth: f64,
    trend: f64,
}

impl Outage {
    /// Share of the depth at an instant.
    fn share(&self, at_s: f64) -> f64 {
        let since = at_s - self.begin_s;
        let over = since - self.length_s;
        if since < 0.0 {
            return 0.0;
        }
        if over < 0.0 {
            return 1.0;
        }
        match self.shape {
            Shape::Step => 0.0,
            Shape::Ramp => (1.0 - over / self.back_s).max(0.0),
            Shape::Exponential => (-over / self.back_s).exp(),
            Shape::DoubleDip => {
                let second = self.back_s..self.back_s + self.length_s;
                f64::from(u8::from(second.contains(&over)))
            }
        }
    }

    fn level(&self, at_s: f64) -> f64 {
        100.0 + self.trend * at_s - self.depth * self.share(at_s)
    }

    /// When the level without noise is less than a band's half away.
    fn returned_s(&self, band: f64) -> f64 {
        let left = band / self.depth;
        let over = match self.shape {
            Shape::Step => 0.0,
            Shape::Ramp => self.back_s * (1.0 - left),
            Shape::Exponential => self.back_s * (1.0 / left).ln(),
            Shape::DoubleDip => self.back_s + self.length_s,
        };
        self.begin_s + self.length_s + over
    }

    fn lost(&self) -> f64 {
        let steps = (0..40_000).map(|step| f64::from(step) * 0.01);
        steps.map(|at_s| self.share(at_s) * self.depth * 0.01).sum()
    }
}

const STEADY_S: f64 = 10.0;

/// What is wrong about one planted outage, if anything.
fn wrong(seed: u64) -> Option<String> {
    let mut random = SplitMix::new(seed);
    let shapes = [
        Shape::Step,
        Shape::Ramp,
        Shape::Exponential,
        Shape::DoubleDip,
    ];
    let step_s = [0.1, 0.5, 1.0][random.below(3)];
    // Twenty seconds at least: a trend of less cannot be carried on over the ninety that follow.
    let hold_s = (step_s * (40.0 + 100.0 * random.uniform())).max(20.0);
    let shape = shapes[random.below(4)];
    // Where a return crosses a band that noise made by less than two deviations a sample, noise decides when: that
    // is a test of its own.
    let spread = match shape {
        Shape::Exponential => 0.05 + 0.1 * random.uniform(),
        _ => 0.5 + 2.0 * random.uniform(),
    };
    let noise = [0.0, 0.5, 0.8].map(Noise::Alike)[random.below(3)];
    let outage = Outage {
        shape,
        begin_s: hold_s + 2.0 * random.uniform(),
        length_s: 3.0 + 20.0 * random.uniform(),
        back_s: step_s * (1.0 + random.uniform()),
        depth: 30.0 + 70.0 * random.uniform(),
        trend: if random.below(3) == 0 {
            5.0 / hold_s
        } else {
            0.0
        },
    };
    let outage = match outage.shape {
        Shape::Ramp => Outage {
            back_s: 3.0 * outage.back_s,
            ..outage
        },
        Shape::DoubleDip => Outage {
            back_s: 1.0 + 6.0 * random.uniform(),
            ..outage
        },
        _ => outage,
    };
    let mut source = Source::new(noise, spread, seed ^ 0xabc);
    let end_s = hold_s + 90.0;
    let mut points = Vec::new();
    let mut at_s = 0.0;
    while at_s < end_s {
        points.push((at_s, source.around(outage.level(at_s))));
        at_s += step_s * (0.8 + 0.4 * random.uniform());
    }
    let window = Window {
        hold_begin_s: 0.0,
        fault_begin_s: hold_s,
        fault_end_s: hold_s + 5.0,
        until_s: end_s,
        steady_s: STEADY_S,
    };
    let found = recovery(Signal::Samples(&points), &window, Worse::Lower).unwrap();
    let context = |what: &str| {
        Some(format!(
            "{seed}: {what}: {found:?} of {outage:?} {noise:?} {spread} step {step_s}"
        ))
    };
    let Effect::Seen(seen) = &found else {
        return context("unseen");
    };
    let interval_s = 1.2 * step_s;
    let band = (3.0 * spread).max(1.0);
    if (seen.detected_s + hold_s - outage.begin_s).abs() > interval_s {
        return context("detected");
    }
    let Return::After { from_begin_s, .. } = seen.returned else {
        return context("not returned");
    };
    if (from_begin_s + hold_s - outage.returned_s(band)).abs() > interval_s {
        return context("returned");
    }
    if (seen.depth - outage.depth).abs() > (3.0 * spread).max(1.5 * seen.depth_noise) {
        return context("depth");
    }
    let tolerance = 2.0 * seen.lost_noise + interval_s * outage.depth;
    if (seen.lost - outage.lost()).abs() > tolerance {
        return context("lost");
    }
    None
}

#[test]
fn of_200_planted_outages_95_percent_are_right_within_one_sampling_interval() {
    let wrong: Vec<String> = (0..200).filter_map(wrong).collect();
    println!("{} of 200 planted outages are told wrongly", wrong.len());
    assert!(
        wrong.len() <= 10,
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
