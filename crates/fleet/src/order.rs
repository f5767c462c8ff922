//! An order, as it crosses the wire, and what it means for one agent at one moment.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use stats::SplitMix;

/// Shortest and longest half of a flap.
const FLAPS: std::ops::RangeInclusive<f64> = 0.01..=86_400.0;

/// How agents speak again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Back {
    /// All at once: each says at once what it would have to say at its next turn.
    #[default]
    #[serde(rename = "at once")]
    AtOnce,
    /// Each when its own turn comes.
    #[serde(rename = "in turn")]
    InTurn,
}

/// Which agents are silent until the order is lifted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Numbers of agents, from 0: the first and the last of each range. Ranges rise, and leave
    /// at least one agent out between them.
    pub agents: Vec<(u32, u32)>,
    /// How they speak again.
    #[serde(default)]
    pub back: Back,
    /// They are silent and speak by turns of so many seconds, each agent in a phase of its
    /// own; `None`: they are silent all the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flap_s: Option<f64>,
}

/// Why an order is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OrderError {
    /// Nobody is simulated here.
    #[error("no agents are simulated here that could be silent")]
    NoFleet,
    /// It names nobody.
    #[error("the order names no agents")]
    Nobody,
    /// Ranges are out of order.
    #[error(
        "the ranges of agents do not rise at {first}..{last}; give each range as [first, last], rising"
    )]
    Ranges {
        /// Begin of the first that is wrong.
        first: u32,
        /// Its end.
        last: u32,
    },
    /// There is no such agent.
    #[error("there is no agent {number}: they have the numbers 0 to {last}")]
    Unknown {
        /// The number.
        number: u32,
        /// The last one that there is.
        last: u32,
    },
    /// The turns of a flap are too short or too long.
    #[error("agents flap by turns of 0.01 s to 86400 s, not of {0} s")]
    Flap(f64),
    /// Too many stand.
    #[error("{0} orders stand already, the most that may; lift one")]
    TooMany(usize),
}

impl Order {
    /// The order for agents of these numbers, which rise.
    pub fn of(numbers: impl IntoIterator<Item = u32>, back: Back, flap: Option<Duration>) -> Self {
        let mut agents: Vec<(u32, u32)> = Vec::new();
        for number in numbers {
            match agents.last_mut() {
                Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
                _ => agents.push((number, number)),
            }
        }
        Self {
            agents,
            back,
            flap_s: flap.map(|flap| flap.as_secs_f64()),
        }
    }

    /// Checks it for a fleet of so many agents; gives how many it names.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, fleet: u32) -> Result<u64, OrderError> {
        let Some(last_of_all) = fleet.checked_sub(1) else {
            return Err(OrderError::NoFleet);
        };
        let (mut named, mut before) = (0, None);
        for &(first, last) in &self.agents {
            if last < first || before.is_some_and(|before: u32| first <= before.saturating_add(1)) {
                return Err(OrderError::Ranges { first, last });
            }
            if last > last_of_all {
                return Err(OrderError::Unknown {
                    number: first.max(fleet),
                    last: last_of_all,
                });
            }
            named += u64::from(last - first) + 1;
            before = Some(last);
        }
        if named == 0 {
            return Err(OrderError::Nobody);
        }
        match self.flap_s {
            Some(flap) if !FLAPS.contains(&flap) => Err(OrderError::Flap(flap)),
            _ => Ok(named),
        }
    }

    /// Whether it names this agent.
    pub fn names(&self, agent: u32) -> bool {
        let after = self.agents.partition_point(|(first, _)| *first <= agent);
        after > 0 && agent <= self.agents[after - 1].1
    }

    /// What it says of an agent when it has stood for `stood`.
    pub(crate) fn effect_on(&self, agent: u32, stood: Duration) -> OrderEffect {
        if !self.names(agent) {
            return OrderEffect::Nothing;
        }
        let Some(flap) = self.flap_s.map(Duration::from_secs_f64) else {
            return OrderEffect::Silent { until: None };
        };
        let whole = (flap * 2).as_nanos();
        // Begins of turns lie evenly, whatever the number of agents.
        let phase = SplitMix::new(u64::from(agent)).uniform() * 2.0;
        let place = (stood + flap.mul_f64(phase)).as_nanos() % whole;
        let left = |end: u128| {
            let left = end - place;
            stood + Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX))
        };
        match place < flap.as_nanos() {
            true => OrderEffect::Silent {
                until: Some(left(flap.as_nanos())),
            },
            false => OrderEffect::Speaks { until: left(whole) },
        }
    }
}

/// What an order says of one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OrderEffect {
    /// It does not name it.
    Nothing,
    /// It is silent until the order has stood for so long; `None`: until it is lifted.
    Silent {
        /// The end of its turn.
        until: Option<Duration>,
    },
    /// It flaps, and may speak until the order has stood for so long.
    Speaks {
        /// The end of its turn.
        until: Duration,
    },
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn silent(order: &Order, agent: u32, stood: Duration) -> bool {
        matches!(order.effect_on(agent, stood), OrderEffect::Silent { .. })
    }

    proptest! {
        #[test]
        fn an_order_names_whom_it_was_made_of(numbers in prop::collection::btree_set(0_u32..200, 1..60)) {
            let order = Order::of(numbers.iter().copied(), Back::AtOnce, None);
            prop_assert_eq!(order.check(200), Ok(numbers.len() as u64));
            let named: BTreeSet<u32> = (0..200).filter(|agent| order.names(*agent)).collect();
            prop_assert_eq!(named, numbers);
            let text = serde_json::to_string(&order).unwrap();
            prop_assert_eq!(serde_json::from_str::<Order>(&text).unwrap(), order);
        }

        #[test]
        fn what_is_told_of_a_turn_holds_until_its_end(agent in 0_u32..50, at in 0_u64..100_000, flap_ms in 10_u64..5_000) {
            let flap = Duration::from_millis(flap_ms);
            let order = Order::of([agent], Back::AtOnce, Some(flap));
            let at = Duration::from_millis(at);
            let (is_silent, until) = match order.effect_on(agent, at) {
                OrderEffect::Silent { until } => (true, until.unwrap()),
                OrderEffect::Speaks { until } => (false, until),
                OrderEffect::Nothing => unreachable!(),
            };
            prop_assert!(until > at && until <= at + flap);
            let before = until.saturating_sub(Duration::from_nanos(2)).max(at);
            prop_assert_eq!(silent(&order, agent, before), is_silent);
            prop_assert_eq!(silent(&order, agent, until + Duration::from_nanos(2)), !is_silent);
        }
    }

    #[test]
    fn half_of_those_that_flap_are_silent_at_any_moment() {
        let order = Order::of(0..10_000, Back::AtOnce, Some(Duration::from_secs(5)));
        for at in [0, 1, 4, 7, 23] {
            let at = Duration::from_secs(at);
            let silent = (0..10_000).filter(|agent| silent(&order, *agent, at));
            let silent = silent.count();
            assert!((4_800..5_200).contains(&silent), "{silent} at {at:?}");
        }
    }

    #[test]
    fn orders_that_make_no_sense_are_refused() {
        let order = |agents: &[(u32, u32)], flap_s| Order {
            agents: agents.to_vec(),
            back: Back::AtOnce,
            flap_s,
        };
        assert_eq!(order(&[], None).check(10), Err(OrderError::Nobody));
        assert!(order(&[(3, 2)], None).check(10).is_err());
        assert!(order(&[(3, 5), (6, 7)], None).check(10).is_err());
        assert!(order(&[(3, 5), (1, 1)], None).check(10).is_err());
        let unknown = OrderError::Unknown {
            number: 10,
            last: 9,
        };
        assert_eq!(order(&[(3, 10)], None).check(10), Err(unknown));
        assert_eq!(order(&[(0, 0)], None).check(0), Err(OrderError::NoFleet));
        for flap in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert!(order(&[(0, 0)], Some(flap)).check(10).is_err(), "{flap}");
        }
        assert_eq!(
            order(&[(0, u32::MAX - 1)], None).check(u32::MAX),
            Ok(u64::from(u32::MAX))
        );
    }
}
