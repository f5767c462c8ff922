//! When everything is registered again, and when routers are greeted. Pure: time and randomness
//! come in.

use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;

/// How far from the interval a round may be, as a share of it.
const JITTER: f64 = 0.2;
/// The interval until a router has named one: gorouter's usual one.
const UNTIL_TOLD: Duration = Duration::from_secs(20);
/// No router can ask for rounds closer or farther than these.
const INTERVALS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3600)];
/// Time between greetings, and how many there are before routers count as away.
const GREET_EVERY: Duration = Duration::from_secs(1);
const GREETINGS: u32 = 30;
/// Time between greetings from then on.
const GREET_LATER: Duration = Duration::from_secs(30);

/// `router.start`, and the answer to `router.greet`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) struct Announcement {
    /// How often registrations are to be repeated, in seconds.
    #[serde(rename = "minimumRegisterIntervalInSeconds", default)]
    seconds: u64,
}

impl Announcement {
    /// Reads a payload.
    pub(super) fn parse(payload: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(payload)
    }

    /// The interval that it asks for, within bounds.
    pub(super) fn interval(self) -> Duration {
        let [least, most] = INTERVALS;
        Duration::from_secs(self.seconds).clamp(least, most)
    }
}

/// The rounds in which everything is registered again.
#[derive(Debug)]
pub(super) struct Cadence {
    interval: Duration,
    next: Instant,
}

impl Cadence {
    /// The first round is an interval from now.
    pub(super) fn new(now: Instant, random: f64) -> Self {
        let mut cadence = Self {
            interval: UNTIL_TOLD,
            next: now,
        };
        cadence.done(now, random);
        cadence
    }

    /// A router that was greeted wants this interval.
    pub(super) fn wanted(&mut self, interval: Duration, now: Instant, random: f64) {
        if self.interval != interval {
            self.interval = interval;
            self.done(now, random);
        }
    }

    /// A router has started and knows nothing. Emitters do not all tell it at once.
    pub(super) fn started(&mut self, interval: Duration, now: Instant, random: f64) {
        self.interval = interval;
        self.next = now + interval.mul_f64(JITTER * random);
    }

    /// A round begins now.
    pub(super) fn done(&mut self, now: Instant, random: f64) {
        let factor = 1.0 + JITTER * (2.0 * random - 1.0);
        self.next = now + self.interval.mul_f64(factor);
    }

    /// When the next round begins.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Time between two rounds.
    pub(super) fn interval(&self) -> Duration {
        self.interval
    }
}

/// When routers are greeted, until one answers.
#[derive(Debug, Default)]
pub(super) struct Greeting {
    sent: u32,
    answered: bool,
}

/// What a greeting that was sent means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Greeted {
    /// Wait for an answer for so long.
    Wait(Duration),
    /// As many as there should be had no answer; wait for so long all the same.
    InVain(Duration),
}

impl Greeting {
    /// Whether one is to be sent.
    pub(super) fn is_wanted(&self) -> bool {
        !self.answered
    }

    /// One is sent.
    pub(super) fn sent(&mut self) -> Greeted {
        self.sent = self.sent.saturating_add(1);
        match self.sent {
            GREETINGS => Greeted::InVain(GREET_LATER),
            sent if sent > GREETINGS => Greeted::Wait(GREET_LATER),
            _ => Greeted::Wait(GREET_EVERY),
        }
    }

    /// A router is there.
    pub(super) fn answered(&mut self) {
        self.answered = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_router_says_how_often() {
        let text = br#"{"id":"3-e3","hosts":["192.0.2.2"],"minimumRegisterIntervalInSeconds":7,"pruneThresholdInSeconds":6}"#;
        assert_eq!(
            Announcement::parse(text).unwrap().interval(),
            Duration::from_secs(7)
        );
        let nothing = Announcement::parse(b"{}").unwrap().interval();
        assert_eq!(nothing, Duration::from_secs(1));
        assert!(Announcement::parse(b"").is_err());
        assert!(Announcement::parse(br#"{"minimumRegisterIntervalInSeconds":-1}"#).is_err());
    }

    #[test]
    fn rounds_are_an_interval_apart_give_or_take_a_fifth() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let mut cadence = Cadence::new(start, 0.5);
        assert_eq!(cadence.next(), start + 20 * second);
        cadence.wanted(10 * second, start, 0.0);
        assert_eq!(cadence.next(), start + 8 * second);
        cadence.done(start, 1.0);
        assert_eq!(cadence.next(), start + 12 * second);
        // Who answers a greeting has said nothing new.
        cadence.wanted(10 * second, start + 5 * second, 0.5);
        assert_eq!(cadence.next(), start + 12 * second);
        cadence.started(10 * second, start + 5 * second, 0.5);
        assert_eq!(cadence.next(), start + 6 * second);
    }

    #[test]
    fn greetings_are_sent_until_there_is_an_answer() {
        let mut greeting = Greeting::default();
        for _ in 1..GREETINGS {
            assert_eq!(greeting.sent(), Greeted::Wait(GREET_EVERY));
        }
        assert_eq!(greeting.sent(), Greeted::InVain(GREET_LATER));
        assert_eq!(greeting.sent(), Greeted::Wait(GREET_LATER));
        assert!(greeting.is_wanted());
        greeting.answered();
        assert!(!greeting.is_wanted());
    }
}
