//! Machines and programs whose truth is known: what judgement is judged by.

use stats::SplitMix;

use crate::{Gate, Next, Order, PairValues};

/// A machine that is never the same twice. Shares are of what a run would measure without
/// them.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Its speed is a random walk: so much a run.
    pub drift_share: f64,
    /// What each run adds of its own.
    pub noise_share: f64,
    /// How much of a run's noise is that of the run before, below 1.
    pub alike: f64,
    /// How often a run takes half as much again.
    pub outlier_share: f64,
    /// How much slower the second run of a pair is.
    pub second_share: f64,
    random: SplitMix,
    level: f64,
    noise: f64,
}

impl Machine {
    /// Without drift, noise and everything else.
    #[must_use]
    pub fn quiet(seed: u64) -> Self {
        Self {
            drift_share: 0.0,
            noise_share: 0.0,
            alike: 0.0,
            outlier_share: 0.0,
            second_share: 0.0,
            random: SplitMix::new(seed),
            level: 0.0,
            noise: 0.0,
        }
    }

    /// One of 3 % of noise.
    #[must_use]
    pub fn noisy(seed: u64) -> Self {
        Self {
            noise_share: 0.03,
            ..Self::quiet(seed)
        }
    }

    /// A shared one: a random walk of 2 % a run and 3 % of noise.
    #[must_use]
    pub fn drifting(seed: u64) -> Self {
        Self {
            drift_share: 0.02,
            ..Self::noisy(seed)
        }
    }

    /// What a program measures that would measure `truth` without this machine.
    pub fn run(&mut self, truth: f64) -> f64 {
        self.level += self.drift_share * self.random.normal();
        let fresh = (1.0 - self.alike * self.alike).sqrt();
        self.noise = self.alike * self.noise + fresh * self.noise_share * self.random.normal();
        let outlier = self.random.uniform() < self.outlier_share;
        let outlier = if outlier { 1.5 } else { 1.0 };
        truth * (self.level + self.noise).exp() * outlier
    }

    /// Runs a pair in its order: what a base of 1 and a new program of `new` measure.
    pub fn pair(&mut self, order: Order, new: f64) -> PairValues {
        let second = 1.0 + self.second_share;
        let (base, new) = match order {
            Order::BaseFirst => {
                let base = self.run(1.0);
                (base, self.run(new * second))
            }
            Order::NewFirst => {
                let new = self.run(new);
                (self.run(second), new)
            }
        };
        PairValues {
            base: Some(base),
            new: Some(new),
        }
    }

    /// Gives a gate of one metric pairs until it wants no more.
    pub fn decide(&mut self, gate: &mut Gate, new: f64) {
        while let Next::Pairs(_) = gate.next() {
            let pair = self.pair(gate.order(), new);
            if gate.take(&[pair]).is_err() {
                return;
            }
        }
    }
}

/// So many values of a program whose truth depends on the commit.
pub fn series(
    machine: &mut Machine,
    points: usize,
    truth: impl Fn(usize) -> f64,
) -> Vec<Option<f64>> {
    (0..points).map(|at| Some(machine.run(truth(at)))).collect()
}
