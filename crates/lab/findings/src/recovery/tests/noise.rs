//! Noise as it is in measurements.

use stats::SplitMix;

/// What lies around a level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Noise {
    /// Normal, with neighbours of this correlation.
    Alike(f64),
    /// Logarithms are normal: latencies.
    LogNormal,
    /// One value of fifty lies six times as far.
    Outliers,
    /// Counts of independent events.
    Poisson,
    /// Counts of events that come in bursts of five.
    Bursts,
}

pub(super) const NOISES: [Noise; 7] = [
    Noise::Alike(0.0),
    Noise::Alike(0.6),
    Noise::Alike(0.9),
    Noise::LogNormal,
    Noise::Outliers,
    Noise::Poisson,
    Noise::Bursts,
];

/// Noise around a level of 100.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) random: SplitMix,
    noise: Noise,
    spread: f64,
    before: f64,
}

impl Source {
    pub(super) fn new(noise: Noise, spread: f64, seed: u64) -> Self {
        let mut random = SplitMix::new(seed);
        let before = random.normal();
        Self {
            random,
            noise,
            spread,
            before,
        }
    }

    /// The next value around a level.
    pub(super) fn around(&mut self, level: f64) -> f64 {
        match self.noise {
            Noise::Alike(alike) => {
                let fresh = (1.0 - alike * alike).sqrt();
                self.before = alike * self.before + fresh * self.random.normal();
                level + self.spread * self.before
            }
            Noise::LogNormal => level * (0.25 * self.random.normal()).exp(),
            Noise::Outliers => {
                let far = if self.random.uniform() < 0.02 {
                    6.0
                } else {
                    1.0
                };
                level + self.spread * far * self.random.normal()
            }
            Noise::Poisson => poisson(level, &mut self.random),
            Noise::Bursts => 5.0 * poisson(level / 5.0, &mut self.random),
        }
    }
}

/// Knuth's method: products of uniform numbers, by their logarithms.
fn poisson(mean: f64, random: &mut SplitMix) -> f64 {
    let (mut count, mut left) = (0.0, mean);
    loop {
        left -= random.exponential();
        if left < 0.0 {
            return count;
        }
        count += 1.0;
    }
}
