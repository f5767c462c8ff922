//! Hours against what is computed from scratch.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{FleetLevel, HOUR, Histories, History, HourAggregate};
use crate::reports::level::{ComplianceLevel, Precision};
use crate::reports::status::Status;

fn level(successes: u32, errors: u32) -> FleetLevel {
    let mut level = ComplianceLevel::of(Status::EnforceSuccess, successes);
    level.count(Status::EnforceError, errors);
    level.into()
}

fn compliance(level: &FleetLevel) -> f64 {
    level.percents(Precision::default()).compliance()
}

#[test]
fn an_hour_has_mean_extremes_and_end() {
    let mut history = History::new(24);
    history.observe(&level(1, 1), HOUR / 2);
    history.observe(&level(1, 0), 3 * HOUR / 4);
    history.observe(&level(3, 1), HOUR);
    history.advance(5 * HOUR / 2);
    let hours: Vec<_> = history.hours().copied().collect();
    assert_eq!(hours.len(), 3);
    assert_eq!((hours[0].known, hours[0].mean()), (HOUR / 2, 75.0));
    assert_eq!((hours[0].lowest, hours[0].highest), (50.0, 100.0));
    assert_eq!(hours[0].level, level(1, 0));
    assert_eq!((hours[1].known, hours[1].mean()), (HOUR, 75.0));
    assert_eq!((hours[2].begin, hours[2].known), (2 * HOUR, HOUR / 2));
}

#[test]
fn what_is_not_known_is_no_zero() {
    let mut history = History::new(24);
    history.observe(&level(1, 0), 0);
    history.observe(&level(0, 0), HOUR / 4);
    history.observe(&level(1, 0), HOUR / 2);
    history.advance(HOUR);
    let hours: Vec<_> = history.hours().collect();
    assert_eq!((hours[0].known, hours[0].mean()), (3 * HOUR / 4, 100.0));
}

#[test]
fn histories_are_bounded() {
    let mut histories = Histories::new(3, 1);
    assert!(histories.observe("a", &level(1, 0), 0));
    assert!(!histories.observe("b", &level(1, 0), 0));
    assert!(histories.observe("a", &level(1, 1), 1_000_000_000_000 * HOUR));
    let hours = histories.of(&"a").unwrap().hours();
    let begins: Vec<i64> = hours.map(|hour| hour.begin).collect();
    assert_eq!(begins.len(), 3);
    assert_eq!(begins[2], 1_000_000_000_000 * HOUR);
    // What is gone and durable makes room.
    assert!(histories.observe("a", &level(0, 0), 0));
    let unwritten = histories.unwritten();
    assert_eq!(unwritten.len(), 3);
    histories.written(&unwritten);
    assert!(histories.of(&"a").is_none());
    assert!(histories.observe("b", &level(1, 0), 0));
}

#[test]
fn an_hour_that_went_on_while_it_was_written_is_written_again() {
    let mut history = History::new(24);
    history.observe(&level(1, 0), 0);
    history.advance(HOUR / 4);
    let taken = *history.unwritten().next().unwrap();
    history.advance(HOUR / 2);
    history.written(&taken);
    let again: Vec<_> = history.unwritten().copied().collect();
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].known, HOUR / 2);
    history.written(&again[0]);
    assert_eq!(history.unwritten().count(), 0);
    assert_eq!(history.hours().count(), 1, "the last goes on");
}

#[test]
fn a_clock_that_goes_back_counts_no_more_than_there_is() {
    let mut history = History::new(24);
    history.observe(&level(1, 0), 5 * HOUR);
    history.advance(6 * HOUR);
    let last = *history.hours().last().unwrap();
    let mut later = History::new(24);
    later.resume(last);
    later.observe(&level(0, 1), 3 * HOUR);
    later.advance(6 * HOUR);
    let hours: Vec<_> = later.hours().copied().collect();
    assert_eq!(hours.len(), 1);
    assert_eq!((hours[0].known, hours[0].mean()), (HOUR, 100.0));
    assert_eq!(hours[0].lowest, 0.0);
}

/// What happens to a history.
#[derive(Debug, Clone)]
enum Step {
    /// After so much time the counts are these.
    Observed(i64, u32, u32),
    /// All is made durable.
    Written,
    /// As before, and the history goes on while that is done.
    WrittenLate(i64),
    /// What is not durable is lost, and so much time with it.
    Killed(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pause = 0_i64..3 * HOUR;
    let step = prop_oneof![
        4 => (pause.clone(), 0_u32..4, 0_u32..4).prop_map(|(pause, s, e)| Step::Observed(pause, s, e)),
        2 => Just(Step::Written),
        1 => pause.clone().prop_map(Step::WrittenLate),
        1 => pause.prop_map(Step::Killed),
    ];
    prop::collection::vec(step, 1..30)
}

/// What held from when to when: nothing else is known.
type Held = Vec<(i64, i64, FleetLevel)>;

/// The aggregates of all that held, each hour for itself.
fn from_scratch(held: &Held) -> BTreeMap<i64, HourAggregate> {
    let mut hours = BTreeMap::new();
    for begin in held.iter().flat_map(|(from, to, _)| {
        (from.div_euclid(HOUR)..=to.div_euclid(HOUR)).map(|number| number * HOUR)
    }) {
        let end = begin + HOUR;
        // A moment counts for the hour that it is in, a time for all hours that it reaches into.
        let within = held
            .iter()
            .filter(|(from, to, _)| (begin..end).contains(from) || (*from < end && *to > begin));
        let within: Vec<_> = within.collect();
        let Some((_, _, last)) = within.last() else {
            continue;
        };
        let shares: Vec<f64> = within
            .iter()
            .map(|(_, _, level)| compliance(level))
            .collect();
        let times = within
            .iter()
            .map(|(from, to, _)| ((*to).min(end) - (*from).max(begin)).max(0));
        let times: Vec<i64> = times.collect();
        let weighted = shares
            .iter()
            .zip(&times)
            .map(|(share, time)| share * *time as f64);
        let hour = HourAggregate {
            begin,
            known: times.iter().sum(),
            level: *last,
            lowest: shares.iter().copied().fold(f64::INFINITY, f64::min),
            highest: shares.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            weighted: weighted.sum(),
        };
        hours.insert(begin, hour);
    }
    hours
}

/// Writes what is not durable.
fn write(history: &History, store: &mut BTreeMap<i64, HourAggregate>) -> Vec<HourAggregate> {
    let hours: Vec<_> = history.unwritten().copied().collect();
    store.extend(hours.iter().map(|hour| (hour.begin, *hour)));
    hours
}

proptest! {
    /// Whatever is written when, and killed when: the store has what follows of what was known
    /// at the last writing.
    #[test]
    fn what_is_durable_is_what_is_computed_from_scratch(steps in steps()) {
        let mut history = History::new(1_000);
        let (mut store, mut at) = (BTreeMap::new(), 0);
        // What held, and how much of it was durable when.
        let (mut held, mut durable): (Held, Held) = (Vec::new(), Vec::new());
        let hold = |held: &mut Held, history: &History, at: i64| {
            if let (Some(last), Some(_)) = (held.last_mut(), history.now) {
                last.1 = at;
            }
        };
        for step in steps {
            match step {
                Step::Observed(pause, successes, errors) => {
                    at += pause;
                    hold(&mut held, &history, at);
                    history.observe(&level(successes, errors), at);
                    if successes + errors > 0 {
                        held.push((at, at, level(successes, errors)));
                    }
                }
                Step::Written => {
                    history.advance(at);
                    for hour in write(&history, &mut store) {
                        history.written(&hour);
                    }
                    durable.clone_from(&held);
                }
                Step::WrittenLate(pause) => {
                    history.advance(at);
                    let taken = write(&history, &mut store);
                    durable.clone_from(&held);
                    at += pause;
                    history.advance(at);
                    hold(&mut held, &history, at);
                    for hour in taken {
                        history.written(&hour);
                    }
                }
                Step::Killed(pause) => {
                    at += pause;
                    held.clone_from(&durable);
                    history = History::new(1_000);
                    if let Some(last) = store.values().next_back() {
                        history.resume(*last);
                    }
                }
            }
        }
        let expected = from_scratch(&durable);
        prop_assert_eq!(store.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (begin, hour) in &store {
            let scratch = &expected[begin];
            prop_assert_eq!((hour.known, hour.level), (scratch.known, scratch.level));
            prop_assert_eq!((hour.lowest, hour.highest), (scratch.lowest, scratch.highest));
            let near = (hour.weighted - scratch.weighted).abs() <= 1e-9 * scratch.weighted.max(1.0);
            prop_assert!(near, "{} {}", hour.weighted, scratch.weighted);
            prop_assert!(hour.known <= HOUR);
        }
    }

    #[test]
    fn all_time_is_counted_once(
        steps in prop::collection::vec((0_i64..3 * HOUR, 0_u32..5, 1_u32..5), 1..20),
    ) {
        let mut history = History::new(1000);
        let (mut at, mut first) = (0, None);
        for (step, successes, errors) in steps {
            at += step;
            first.get_or_insert(at);
            history.observe(&level(successes, errors), at);
        }
        let known: i64 = history.hours().map(|hour| hour.known).sum();
        prop_assert_eq!(Some(known), first.map(|first| at - first));
        for hour in history.hours() {
            prop_assert!(hour.lowest <= hour.mean() + 1e-9 && hour.mean() <= hour.highest + 1e-9);
            prop_assert!(hour.known <= HOUR);
        }
    }
}
