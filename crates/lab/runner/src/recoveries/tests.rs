//! Probes of a target that stands still for a known time, asked as a run asks them.

use lab_experiment::expr::ProbeSeries;
use lab_store::ProbeSample;
use proptest::prelude::*;

use super::*;

/// What a probe sees that asks every so often and waits so long, of a target that answers
/// after 5 ms but not between two instants: what waits then is answered at the end.
fn asked(every_s: f64, within_s: f64, paused: (f64, f64), until_s: f64) -> Vec<ProbeSample> {
    let (mut tick, mut skipped) = (0_u64, 0_u64);
    let mut all = Vec::new();
    loop {
        // The first try is not made at a round second, and each a little late.
        let t_s = 0.013 + tick as f64 * every_s + 0.001;
        if t_s > until_s {
            return all;
        }
        let answered_s = match (paused.0 - 0.005..paused.1).contains(&t_s) {
            true => paused.1 + 0.005,
            false => t_s + 0.005,
        };
        let latency_s = (answered_s - t_s).min(within_s);
        all.push(ProbeSample {
            t_s,
            probe: "alive".into(),
            latency_s,
            skipped,
            error: match latency_s < within_s {
                true => String::new(),
                false => "no answer".into(),
            },
            ..ProbeSample::default()
        });
        let begun = ((t_s + latency_s - 0.013) / every_s) as u64;
        skipped = begun.max(tick) - tick;
        tick = begun.max(tick) + 1;
    }
}

fn fault(begin_s: f64, end_s: f64) -> FaultRecord {
    FaultRecord {
        step: "s".into(),
        kind: "pause".into(),
        targets: vec!["web".into()],
        begin_s,
        end_s: Some(end_s),
        text: String::new(),
        effects: Vec::new(),
    }
}

/// The effect of a fault on tries.
fn effect(samples: &[ProbeSample], every_s: f64, fault: (f64, f64)) -> FaultEffect {
    effect_beside(&[], samples, every_s, fault)
}

/// The same, where the laboratory stood still at these times.
fn effect_beside(
    stood: &[(f64, f64)],
    samples: &[ProbeSample],
    every_s: f64,
    (from_s, to_s): (f64, f64),
) -> FaultEffect {
    let mut faults = [fault(from_s, to_s)];
    let of = Affected::Probe {
        probe: "alive".into(),
        series: ProbeSeries::Ok,
    };
    let seen = probes::tries(samples.iter(), every_s, 1, stood);
    around_probe(&of, every_s, &seen, &mut faults, 1e9);
    faults[0].effects[0].clone()
}

#[test]
fn a_pause_is_told_with_its_length_or_nothing_is_claimed_of_it() {
    let (mut told, mut open) = (0, 0);
    for every_s in [0.05, 0.1, 0.25, 1.0] {
        for within_s in [0.2, 1.0, 5.0] {
            for paused_s in [0.03, 0.1, 0.3, 0.6, 1.0, 1.5, 3.0, 7.0] {
                for shift in 0..5 {
                    let from_s = 40.0 + 0.217 * f64::from(shift);
                    let paused = (from_s, from_s + paused_s);
                    let samples = asked(every_s, within_s, paused, 80.0);
                    let found = effect(&samples, every_s, paused);
                    let what =
                        format!("every {every_s}, within {within_s}, {paused:?}: {found:#?}");
                    let recovery_s = found.recovery_s.unwrap();
                    if found.seen == Some(true) {
                        told += 1;
                        let about_s = found.resolution_s.unwrap().max(every_s);
                        assert!((recovery_s - paused_s).abs() <= about_s + 0.02, "{what}");
                        continue;
                    }
                    assert_eq!(recovery_s, 0.0, "{what}");
                    // What was not told was too short to be, or it is said that it may have been:
                    // between two tries that were answered in time nobody looks.
                    let between_s = every_s + within_s.min(every_s) + 0.01;
                    let most_s = found.at_most_s.unwrap_or(between_s);
                    assert!(paused_s <= most_s, "{what}");
                    open += usize::from(found.at_most_s.is_some());
                }
            }
        }
    }
    assert!(told >= 240 && open >= 50, "{told} told, {open} left open");
}

#[test]
fn a_pause_that_no_try_was_made_in_is_no_effect() {
    for every_s in [0.05, 0.1, 0.25, 1.0] {
        let samples = asked(every_s, 1.0, (90.0, 91.0), 80.0);
        let found = effect(&samples, every_s, (40.0, 41.5));
        assert_eq!((found.seen, found.at_most_s), (Some(false), None));
        assert_eq!((found.recovery_s, found.lost), (Some(0.0), Some(0.0)));
    }
}

/// For three seconds nobody answered in time: the target stood still, or who asked it did.
#[test]
fn a_laboratory_that_stands_still_is_no_outage_and_may_hide_one() {
    for within_s in [1.0, 5.0] {
        let samples = asked(0.1, within_s, (41.0, 44.0), 80.0);
        for stood in [&[][..], &[(50.0, 53.0)]] {
            let outage = effect_beside(stood, &samples, 0.1, (41.0, 41.2));
            assert_eq!(outage.seen, Some(true), "{outage:?}");
            assert!(
                (outage.recovery_s.unwrap() - 3.0).abs() < 0.25,
                "{outage:?}"
            );
            assert!(outage.lost > Some(0.0), "{outage:?}");
        }
        let hidden = effect_beside(&[(41.0, 44.0)], &samples, 0.1, (41.0, 41.2));
        assert_eq!((hidden.seen, hidden.lost), (Some(false), Some(0.0)));
        assert!(hidden.at_most_s >= Some(3.0), "{hidden:?}");
    }
}

#[test]
fn a_fault_that_lasts_too_long_because_the_laboratory_stood_still_is_not_the_targets() {
    let samples = asked(0.1, 5.0, (40.0, 43.0), 80.0);
    let of = Affected::Probe {
        probe: "alive".into(),
        series: ProbeSeries::Ok,
    };
    let mut told = fault(40.0, 43.0);
    told.effects = vec![effect(&samples, 0.1, (40.0, 43.0))];
    let faults = [told];
    let at_best = |number, stood: (f64, f64)| {
        let measured = value(&faults, None, &of, number).unwrap();
        let best = value_at_best(&faults, None, &of, number, &[stood]).unwrap();
        (best, measured)
    };
    // It was to end between, and did right after.
    let (best, measured) = at_best(FaultNumber::Recovery, (41.0, 42.9));
    assert!((measured - best - 1.9).abs() < 1e-9, "{best} {measured}");
    let (best, measured) = at_best(FaultNumber::Lost, (41.0, 42.9));
    assert!(best == 0.0 && measured > 0.0, "{best} {measured}");
    // It went on long after, or was over.
    for stood in [(40.5, 42.0), (50.0, 53.0)] {
        for number in [FaultNumber::Recovery, FaultNumber::Lost] {
            let (best, measured) = at_best(number, stood);
            assert_eq!(best, measured);
        }
    }
}

#[test]
fn answers_that_always_take_longer_than_the_time_to_the_next_are_usual() {
    // Asked every 100 ms, each answer takes 150 ms: every second try is left out, all the time.
    let one = |number: u32| ProbeSample {
        t_s: 0.2 * f64::from(number),
        latency_s: 0.15,
        skipped: u64::from(number > 0),
        ..ProbeSample::default()
    };
    let samples: Vec<ProbeSample> = (0..400).map(one).collect();
    assert_eq!(effect(&samples, 0.1, (40.0, 41.5)).seen, Some(false));
}

#[test]
fn what_the_probe_left_out_by_itself_is_unknown() {
    // Nothing was asked for 1.5 s although each answer came at once: the probe was late.
    let mut samples = asked(0.1, 1.0, (90.0, 91.0), 80.0);
    samples.retain(|one| !(40.0..41.5).contains(&one.t_s));
    let next = samples.iter_mut().find(|one| one.t_s > 41.0).unwrap();
    next.skipped = 15;
    let found = effect(&samples, 0.1, (40.0, 41.5));
    assert_eq!(found.seen, Some(false));
    assert!(
        found.at_most_s.is_some_and(|most_s| most_s >= 1.5),
        "{found:?}"
    );
    assert_says(&found, "the probe itself was late");
}

#[test]
fn a_value_that_nobody_could_ask_for_is_unknown() {
    let all = asked(0.1, 1.0, (40.0, 41.5), 80.0);
    let known = all.iter().filter(|one| one.is_ok());
    let level: Vec<(f64, f64)> = known.map(|one| (one.t_s, 7.0)).collect();
    let of = Affected::Probe {
        probe: "alive".into(),
        series: ProbeSeries::Value,
    };
    let mut faults = [fault(40.0, 41.5)];
    around_probe(&of, 0.1, &SeenByProbe::Level(level), &mut faults, 1e9);
    let found = &faults[0].effects[0];
    assert!(
        found.at_most_s.is_some_and(|most_s| most_s >= 1.0),
        "{found:?}"
    );
    let at_most = |number| at_most(&faults, None, &of, number);
    let lasting_s = found.at_most_s.unwrap();
    let of_recovery = at_most(FaultNumber::Recovery).unwrap();
    assert_eq!(of_recovery.value, lasting_s);
    let of_depth = at_most(FaultNumber::Depth).unwrap();
    assert_eq!(
        of_depth.value,
        f64::INFINITY,
        "what it was then, nobody knows"
    );
    assert_eq!(at_most(FaultNumber::Lost), None);
    assert_says(found, "`within`");
}

#[test]
fn what_fails_anyway_hides_what_fails_because_of_a_fault() {
    // Two tries of three fail, all the time.
    let tries = (0..800).map(|tick| (f64::from(tick) * 0.1, tick % 3 == 0));
    let of = Affected::Probe {
        probe: "alive".into(),
        series: ProbeSeries::Ok,
    };
    let mut faults = [fault(40.0, 41.0)];
    let seen = SeenByProbe::Tries(tries.collect());
    around_probe(&of, 0.1, &seen, &mut faults, 1e9);
    let found = &faults[0].effects[0];
    assert!(
        found.seen == Some(false) && found.at_most_s.is_some(),
        "{found:?}"
    );
    assert_says(found, "failed before the fault");
}

#[test]
fn an_outage_no_longer_than_one_before_is_not_said_to_be_nothing() {
    // The first answer takes 1.3 s, as that of a program that has to warm up; later every try of
    // 350 ms fails.
    let tries = |dies: bool| -> Vec<ProbeSample> {
        let mut tries = vec![ProbeSample {
            t_s: 0.0,
            latency_s: 1.3,
            ..ProbeSample::default()
        }];
        tries.extend((14..120).map(|tick| {
            let t_s = 0.1 * f64::from(tick);
            let fails = dies && (6.0..6.35).contains(&t_s);
            ProbeSample {
                t_s,
                latency_s: 0.002,
                skipped: if tick == 14 { 13 } else { 0 },
                error: if fails { "refused" } else { "" }.into(),
                ..ProbeSample::default()
            }
        }));
        tries
    };
    let of = Affected::Probe {
        probe: "alive".into(),
        series: ProbeSeries::Ok,
    };
    let found = |dies| {
        let mut faults = [fault(5.95, 6.35)];
        let seen = probes::tries(tries(dies).iter(), 0.1, 1, &[]);
        around_probe(&of, 0.1, &seen, &mut faults, 1e9);
        let depth = at_most(&faults, None, &of, FaultNumber::Depth);
        (faults[0].effects[0].clone(), depth)
    };
    let (effect, depth) = found(true);
    assert_eq!(effect.seen, Some(false), "{effect:?}");
    assert!(effect.lost >= Some(3.0), "{effect:?}");
    assert!(!effect.text.contains("no effect"), "{effect:?}");
    assert!(effect.text.contains("tries lost"), "{effect:?}");
    assert_eq!(depth.map(|most| most.value), Some(1.0));
    assert_eq!(effect.remedy, None, "to ask more often helps");
    let (effect, depth) = found(false);
    assert_eq!((effect.seen, effect.lost), (Some(false), Some(0.0)));
    assert!(effect.text.starts_with("no effect seen"), "{effect:?}");
    assert_eq!(depth, None);
}

/// The effect of a fault from 40 s to 42 s on a number that is asked for every 100 ms.
fn effect_on_number(level: Vec<(f64, f64)>) -> FaultEffect {
    let of = Affected::Probe {
        probe: "alive".into(),
        series: ProbeSeries::Value,
    };
    let mut faults = [fault(40.0, 42.0)];
    around_probe(&of, 0.1, &SeenByProbe::Level(level), &mut faults, 1e9);
    faults[0].effects[0].clone()
}

/// Whether what would help is said in these words.
#[track_caller]
fn assert_says(effect: &FaultEffect, part: &str) {
    let remedy = effect.remedy.as_deref();
    assert!(remedy.is_some_and(|text| text.contains(part)), "{effect:?}");
}

#[test]
fn a_return_that_is_slow_among_noise_is_not_blamed_on_too_few_looks() {
    // Up to 2 to either side, and never alike for long.
    let noise = |tick: u32| 4.0 * (f64::from(tick * 41 % 101) / 100.0 - 0.5);
    let level = (0..1200).map(|tick| {
        let at_s = f64::from(tick) * 0.1;
        let fallen = match at_s {
            at_s if at_s < 40.0 => 0.0,
            at_s if at_s < 42.0 => 70.0,
            at_s => 70.0 * (-(at_s - 42.0) / 5.0).exp(),
        };
        (at_s, 100.0 - fallen + noise(tick))
    });
    assert_says(&effect_on_number(level.collect()), "slow or noisy");
}

#[test]
fn a_return_amid_tries_without_an_answer_is_not_blamed_on_too_few_tries() {
    // It falls, then nobody answers for two seconds, then all is as before.
    let level = (0..800).map(|tick| f64::from(tick) * 0.1);
    let answered = level.filter(|at_s| !(41.0..43.0).contains(at_s));
    let level = answered.map(|at_s| match (40.0..41.0).contains(&at_s) {
        true => (at_s, 1.0),
        false => (at_s, 7.0),
    });
    assert_says(&effect_on_number(level.collect()), "`within`");
}

#[test]
fn what_is_asked_seldom_is_to_be_asked_more_often() {
    let samples = asked(1.0, 0.5, (40.2, 47.2), 80.0);
    let found = effect(&samples, 1.0, (40.2, 47.2));
    assert!(found.resolution_s > Some(0.5), "{found:?}");
    assert_eq!(found.remedy, None);
}

#[test]
fn users_who_wait_for_answers_are_not_to_ask_more_often() {
    // A hundred requests a second; from 40 s on ten users wait for two seconds each, three times.
    let usual = |tick: u32| f64::from(tick) * 0.01;
    let before = (0..4000).map(|tick| (usual(tick), true));
    let waits = [40.0, 42.0, 44.0].map(|at_s| [(at_s, false); 10]);
    let after = (4600..8000).map(|tick| (usual(tick), true));
    let requests: Vec<(f64, bool)> = before
        .chain(waits.into_iter().flatten())
        .chain(after)
        .collect();
    let mut faults = [fault(39.995, 46.0)];
    of_load(&requests).around(&mut faults);
    assert_says(&faults[0].effects[0], "`timeout`");
}

#[test]
fn a_long_wait_among_many_requests_that_are_due_at_random_is_no_lack_of_them() {
    // About a thousand a second; the longest wait, at 65 s, is twelve times the usual one.
    let mut at_s = 0.0_f64;
    let random = (0..100_000_u32).map(|turn| {
        let share = (f64::from(turn * 40_503 % 65_536) + 0.5) / 65_536.0;
        at_s -= 0.001 * share.ln();
        (at_s, true)
    });
    let requests: Vec<(f64, bool)> = random.collect();
    let window = Window {
        fault_begin_s: 40.0,
        fault_end_s: 41.0,
        hold_begin_s: 0.0,
        until_s: 79.0,
        steady_s: STEADY_S,
    };
    assert_eq!(of_load(&requests).remedy_unseen(&window), None);
}

/// What is looked at of a load until 79 s.
fn of_load(requests: &[(f64, bool)]) -> Measure<'_> {
    Measure {
        of: "users.good".into(),
        well: None,
        waits: &[],
        signal: Signal::Requests(requests),
        span: (0.0, 79.0),
        lost: None,
        unit: "requests",
        grain_s: 0.0,
        is_cut: false,
    }
}

proptest! {
    #[test]
    fn a_search_finds_what_looking_at_everything_does(
        mut begins in proptest::collection::vec(0_u8..20, 1..12),
        lasted in 0_u8..9,
        mut failures in proptest::collection::vec((0_u8..20, 1_u32..5), 0..20),
        (from, to) in (0_u8..21, 0_u8..21),
    ) {
        begins.sort_unstable();
        let begins = begins.into_iter().map(f64::from);
        let faults: Vec<_> = begins.map(|begin_s| fault(begin_s, begin_s)).collect();
        for one in &faults {
            let end_s = one.begin_s + f64::from(lasted);
            let later = faults.iter().map(|other| other.begin_s);
            let later = later.filter(|other_s| *other_s >= end_s && *other_s > one.begin_s);
            prop_assert_eq!(next_s(&faults, one.begin_s, end_s), later.reduce(f64::min));
        }
        failures.sort_unstable();
        let failures = failures.into_iter().map(|(at, count)| (f64::from(at), count));
        let seen = Seen {
            failures: failures.collect(),
            ..Seen::default()
        };
        let (from_s, to_s) = (f64::from(from), f64::from(to));
        let within = seen.failures.iter().filter(|one| (from_s..to_s).contains(&one.0));
        let expected: u32 = within.map(|one| one.1).sum();
        prop_assert_eq!(seen.failed(from_s, to_s), f64::from(expected));
        let is_ok = |one: &(f64, u32)| one.1 > 1;
        let tries = seen.failures.iter().map(|one| (one.0, is_ok(one))).collect();
        let within = seen.failures.iter().filter(|one| (from_s..to_s).contains(&one.0));
        let expected = within.filter(|one| !is_ok(one)).count();
        prop_assert_eq!(SeenByProbe::Tries(tries).failed(from_s, to_s), expected as f64);
    }
}
