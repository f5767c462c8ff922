//! When to wait a moment for more answers before reading any.
//!
//! A client that is faster than its target is woken for every answer or two, and each
//! wake-up costs both sides more than the answer. Waiting until a quarter of the
//! answers is there saves about two fifths of the client's work, and leaves the target
//! enough to do meanwhile.

use std::time::Duration;

/// Longest and shortest nap: the first bounds what is added to a latency, the second
/// is what a nap costs.
const LONGEST_NS: f64 = 100_000.0;
const SHORTEST_NS: f64 = 40_000.0;
/// Fewer requests in flight than this are answered too soon for a nap to pay.
const LEAST_IN_FLIGHT: u32 = 16;
/// Wake-ups that bring at least so many answers are worth their cost.
const ENOUGH: f64 = 4.0;
/// A loop that sleeps less than this share of its time is the limit itself: to nap
/// would slow it down.
const LEAST_SLEEP: f64 = 0.05;
/// So many wake-ups without a nap show how many answers each brings, then so many
/// naps follow if these were few.
const LOOKS: u32 = 32;
const NAPS: u32 = 1024;

/// Decides on naps. Knows no clock.
#[derive(Debug)]
pub(super) struct Coalescer {
    /// Whether this round is one of naps; else it looks how it would be without.
    napping: bool,
    /// Waits left in this round.
    left: u32,
    /// Events in this round, and time spent waiting for them.
    events: u64,
    slept: u64,
    began: u64,
    /// Events a nanosecond in the last round.
    rate: f64,
}

impl Coalescer {
    pub(super) fn new(now: u64) -> Self {
        Self {
            napping: false,
            left: LOOKS,
            events: 0,
            slept: 0,
            began: now,
            rate: 0.0,
        }
    }

    /// To be called before each wait for events: how long to nap first.
    pub(super) fn nap(&mut self, now: u64, in_flight: u32) -> Option<Duration> {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => self.next_round(now),
        }
        if !self.napping || in_flight < LEAST_IN_FLIGHT {
            return None;
        }
        let quarter = f64::from(in_flight) / 4.0 / self.rate;
        let length = quarter.min(LONGEST_NS);
        (length >= SHORTEST_NS).then(|| Duration::from_nanos(length as u64))
    }

    /// To be called after each wait for events, with their number and how long it took.
    pub(super) fn woken(&mut self, events: usize, slept: u64) {
        self.events += events as u64;
        self.slept += slept;
    }

    fn next_round(&mut self, now: u64) {
        let passed = now.saturating_sub(self.began).max(1);
        self.rate = self.events as f64 / passed as f64;
        let few = (self.events as f64) < ENOUGH * f64::from(LOOKS);
        // A nap that does not bring together what several wake-ups would have brought
        // saves nothing.
        let worth = self.rate * LONGEST_NS >= ENOUGH;
        let idle = self.slept as f64 >= LEAST_SLEEP * passed as f64;
        self.napping = !self.napping && few && worth && idle;
        self.left = if self.napping { NAPS } else { LOOKS };
        (self.events, self.slept, self.began) = (0, 0, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Naps within many turns of `length` ns that each bring `events`, and sleep so long.
    fn naps(in_flight: u32, events: usize, length: u64, slept: u64) -> usize {
        let mut coalescer = Coalescer::new(0);
        let mut now = 0;
        let mut naps = 0;
        for _ in 0..1000 {
            naps += usize::from(coalescer.nap(now, in_flight).is_some());
            now += length;
            coalescer.woken(events, slept);
        }
        naps
    }

    #[test]
    fn naps_while_a_busy_target_answers_one_by_one() {
        assert!(naps(64, 1, 10_000, 5_000) > 900);
    }

    #[test]
    fn does_not_nap_when_it_would_not_pay() {
        assert_eq!(naps(1, 1, 10_000, 5_000), 0, "one connection");
        assert_eq!(
            naps(64, 20, 100_000, 50_000),
            0,
            "each wake-up brings enough"
        );
        assert_eq!(naps(64, 1, 1_000_000, 990_000), 0, "a slow target");
        assert_eq!(naps(64, 3, 10_000, 100), 0, "the loop is the limit");
    }
}
