//! When processes run and when they stand still, so that they get a share of the time.

use std::time::Duration;

/// The shortest time for which they run or stand still: what a timer can keep.
const SHORTEST: Duration = Duration::from_millis(1);
/// One turn of running and standing still, unless a part of it would be too short.
const PERIOD: Duration = Duration::from_millis(20);
/// What is made up for at most when switches were late, in parts of what a turn owes: they
/// shall not stand still for long because the laboratory did.
const MOST_OWED: f64 = 5.0;
/// What is owed still when they begin to run, in seconds, at most.
const EARLY_S: f64 = 1e-6;

/// Turns of running and standing still.
///
/// A switch that comes late is made up for by the next ones, so that in all they run for the
/// share, as far as [`MOST_OWED`] allows. Times are counted from the beginning.
#[derive(Debug, Clone)]
pub struct DutyCycle {
    share: f64,
    /// What they are owed when they begin to stand still, negative, in seconds.
    lowest_s: f64,
    /// What they are owed now: the share of the time so far, without the time that they ran.
    owed_s: f64,
    run: bool,
    at: Duration,
    ran: Duration,
}

/// What holds from a switch on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// Whether they run.
    pub run: bool,
    /// When the next switch is due.
    pub until: Duration,
}

impl DutyCycle {
    /// They run for `share` of the time, above 0 and below 1. They stand still first.
    pub fn new(share: f64) -> Self {
        let shorter = share.min(1.0 - share);
        let period = PERIOD.max(SHORTEST.div_f64(shorter));
        let lowest_s = -share * (1.0 - share) * period.as_secs_f64();
        Self {
            share,
            lowest_s,
            // They stand still for the rest of a turn in which they ran.
            owed_s: lowest_s,
            run: false,
            at: Duration::ZERO,
            ran: Duration::ZERO,
        }
    }

    /// What holds from now on. Called late, it is as if the state before had lasted until now.
    pub fn switch(&mut self, now: Duration) -> Switch {
        let passed = now.saturating_sub(self.at);
        self.at = now.max(self.at);
        self.owed_s += self.share * passed.as_secs_f64();
        if self.run {
            self.ran += passed;
            self.owed_s -= passed.as_secs_f64();
        }
        let most_s = MOST_OWED * -self.lowest_s;
        self.owed_s = self.owed_s.clamp(-most_s, most_s);
        self.run = match self.run {
            true => self.owed_s >= 0.0,
            // One that is woken a moment early begins all the same.
            false => self.owed_s > -EARLY_S,
        };
        let lasts_s = match self.run {
            true => (self.owed_s - self.lowest_s) / (1.0 - self.share),
            false => -self.owed_s / self.share,
        };
        Switch {
            run: self.run,
            until: self.at + Duration::from_secs_f64(lasts_s),
        }
    }

    /// For how long they ran, of the time until the last switch.
    pub fn ran(&self) -> (Duration, Duration) {
        (self.ran, self.at)
    }
}

#[cfg(test)]
mod tests;
