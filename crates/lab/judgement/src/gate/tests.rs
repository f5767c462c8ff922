use proptest::prelude::*;
use stats::Spending;

use super::*;
use crate::simulated::Machine;
use crate::{Direction, Metric, Unit};

fn gated(name: &str, direction: Direction, limit_share: f64) -> Gated {
    let metric = Metric {
        name: name.to_owned(),
        unit: Unit::Seconds,
        direction,
    };
    Gated {
        metric,
        limit_share,
    }
}

fn settings(limit_share: f64) -> GateSettings {
    GateSettings::new(vec![gated("p99", Direction::LowerIsBetter, limit_share)], 7)
}

fn both(base: f64, new: f64) -> PairValues {
    PairValues {
        base: Some(base),
        new: Some(new),
    }
}

/// Verdicts of gates on machines of as many seeds: worse, not worse, and the most pairs.
fn verdicts(
    gate: &Gate,
    gates: u64,
    slower: f64,
    change: impl Fn(&mut Machine),
) -> (usize, usize, usize) {
    let (mut worse, mut not_worse, mut most) = (0, 0, 0);
    for seed in 0..gates {
        let mut machine = Machine::drifting(seed);
        change(&mut machine);
        let mut gate = gate.clone().with_seed(seed);
        machine.decide(&mut gate, 1.0 + slower);
        let judgement = gate.judgement();
        worse += usize::from(judgement.verdict == Verdict::Worse);
        not_worse += usize::from(judgement.verdict == Verdict::NotWorse);
        most = most.max(judgement.pairs);
    }
    (worse, not_worse, most)
}

#[test]
fn equal_programs_are_not_called_worse_and_slower_ones_are() {
    let gate = Gate::new(settings(0.03)).unwrap();
    let (worse, ..) = verdicts(&gate, 500, 0.0, |_| {});
    assert!(worse <= 5, "{worse} of 500 equal programs are called worse");
    let (worse, not_worse, most) = verdicts(&gate, 500, 0.05, |_| {});
    assert!(worse >= 475, "{worse} of 500 slowdowns were found");
    assert!(not_worse <= 2 && most <= 24);

    let gate = Gate::new(settings(0.05)).unwrap();
    let (worse, not_worse, _) = verdicts(&gate, 200, 0.0, |_| {});
    assert!(worse == 0 && not_worse >= 190, "{worse} {not_worse}");
    let (worse, ..) = verdicts(&gate, 200, 0.10, |_| {});
    assert!(worse >= 198, "{worse}");
}

#[test]
fn a_change_at_the_limit_seldom_passes() {
    let gate = Gate::new(settings(0.03)).unwrap();
    let (worse, not_worse, _) = verdicts(&gate, 500, 0.03, |_| {});
    assert!((200..=400).contains(&worse), "{worse}");
    // Half of alpha is 2.5 %; four standard deviations.
    assert!(not_worse <= 27, "{not_worse}");
}

#[test]
fn what_machines_do_raises_no_alarms() {
    let gate = Gate::new(settings(0.03)).unwrap();
    let machines: [fn(&mut Machine); 3] = [
        |machine| machine.alike = 0.8,
        |machine| machine.outlier_share = 0.05,
        |machine| machine.second_share = 0.05,
    ];
    for (at, machine) in machines.into_iter().enumerate() {
        let (worse, ..) = verdicts(&gate, 300, 0.0, machine);
        assert!(worse <= 9, "{worse} of 300 on machine {at}");
        let (worse, not_worse, _) = verdicts(&gate, 300, 0.05, machine);
        assert!(worse >= 255 && not_worse <= 3, "{worse} on machine {at}");
    }
}

#[test]
fn as_pocock_it_ends_earlier_and_errs_no_more_than_alpha() {
    let pocock = GateSettings {
        spending: Spending::Pocock,
        ..settings(0.05)
    };
    let gate = Gate::new(pocock).unwrap();
    let (worse, ..) = verdicts(&gate, 300, 0.0, |_| {});
    assert!(worse <= 7, "{worse}");
    let mut gate = gate.clone();
    Machine::noisy(1).decide(&mut gate, 1.3);
    assert_eq!(
        (gate.judgement().verdict, gate.judgement().pairs),
        (Verdict::Worse, 8)
    );
}

#[test]
fn many_metrics_raise_no_more_alarms_than_one() {
    let metrics = (0..20).map(|at| gated(&at.to_string(), Direction::LowerIsBetter, 0.01));
    let fresh = Gate::new(GateSettings::new(metrics.collect(), 0)).unwrap();
    let run = |gates: u64, slower: f64| {
        let worse = (0..gates).filter(|seed| {
            let mut machine = Machine::noisy(*seed);
            let mut gate = fresh.clone().with_seed(*seed);
            while let Next::Pairs(_) = gate.next() {
                let order = gate.order();
                let mut pair: Vec<PairValues> = (0..20).map(|_| machine.pair(order, 1.0)).collect();
                pair[3] = machine.pair(order, 1.0 + slower);
                gate.take(&pair).unwrap();
            }
            gate.judgement().verdict == Verdict::Worse
        });
        worse.count()
    };
    // Each alone would be called slower in 2.5 % of gates, one of twenty in 40 %.
    let alarms = run(200, 0.0);
    assert!(alarms <= 14, "{alarms} of 200");
    assert!(run(50, 0.10) >= 48);
}

#[test]
fn the_metric_that_is_worse_is_named() {
    let metrics = vec![
        gated("latency", Direction::LowerIsBetter, 0.05),
        gated("rate", Direction::HigherIsBetter, 0.05),
    ];
    let mut gate = Gate::new(GateSettings::new(metrics, 0)).unwrap();
    let mut machine = Machine::noisy(4);
    while let Next::Pairs(_) = gate.next() {
        let order = gate.order();
        let pair = [machine.pair(order, 0.8), machine.pair(order, 0.8)];
        gate.take(&pair).unwrap();
    }
    let judgement = gate.judgement();
    assert_eq!(judgement.verdict, Verdict::Worse);
    let [latency, rate] = &judgement.metrics[..] else {
        panic!("two metrics");
    };
    assert_eq!(latency.verdict, Verdict::NotWorse);
    assert_eq!(rate.verdict, Verdict::Worse);
    let effect = rate.effect.unwrap();
    assert!((effect.worse_by_share - 0.2).abs() < 0.05);
    assert!(effect.low_share.unwrap() > 0.0);
    assert!(
        judgement.sentence.ends_with("rate"),
        "{}",
        judgement.sentence
    );
    assert!(rate.signed_rank_p_value_holm >= rate.signed_rank_p_value);
}

#[test]
fn no_pass_could_not_have_seen_the_limit() {
    for limit in [0.005, 0.02, 0.03, 0.05] {
        let gate = Gate::new(settings(limit)).unwrap();
        for seed in 0..100 {
            let mut gate = gate.clone().with_seed(seed);
            Machine::drifting(seed).decide(&mut gate, 1.0);
            let judgement = gate.judgement();
            let metric = &judgement.metrics[0];
            if judgement.verdict == Verdict::NotWorse {
                let better = metric.effect.unwrap().high_share < Some(0.0);
                let seen = metric.detectable_share.unwrap() <= limit;
                assert!(seen || better, "{metric:?}");
                assert!(metric.needs.is_none());
            } else {
                assert!(judgement.verdict == Verdict::Worse || metric.needs.is_some());
            }
        }
    }
}

#[test]
fn ties_and_zeros_are_equal() {
    let mut gate = Gate::new(settings(0.03)).unwrap();
    while gate.next() != Next::Decided {
        gate.take(&[both(0.0, 0.0)]).unwrap();
    }
    let judgement = gate.judgement();
    assert_eq!(judgement.verdict, Verdict::NotWorse);
    assert_eq!(judgement.metrics[0].signed_rank_p_value, Some(1.0));
    assert_eq!(judgement.metrics[0].detectable_share, Some(0.0));

    // Errors where there were none are worse than any limit.
    let mut gate = Gate::new(settings(0.5)).unwrap();
    while gate.next() != Next::Decided {
        gate.take(&[both(0.0, 0.001)]).unwrap();
    }
    assert_eq!(gate.judgement().verdict, Verdict::Worse);
}

#[test]
fn what_the_new_program_did_not_measure_is_never_a_pass() {
    let run = |pair: fn(usize) -> PairValues| {
        let mut gate = Gate::new(settings(0.05)).unwrap();
        let mut tried = 0;
        while let Next::Pairs(_) = gate.next() {
            gate.take(&[pair(tried)]).unwrap();
            tried += 1;
        }
        gate.judgement()
    };
    let new_missing = run(|at| PairValues {
        base: Some(1.0),
        new: (at != 2).then_some(1.0),
    });
    assert_eq!(new_missing.verdict, Verdict::CannotTell);
    assert_eq!(new_missing.metrics[0].missing.in_new, 1);
    assert!(new_missing.budget_spent && new_missing.metrics[0].pairs == 23);
    assert!(new_missing.metrics[0].sentence.contains("never a pass"));

    let base_missing = run(|at| PairValues {
        base: (at != 2).then_some(1.0),
        new: Some(1.0),
    });
    assert_eq!(base_missing.verdict, Verdict::NotWorse);
    assert_eq!(base_missing.metrics[0].missing.in_base, 1);

    let nothing = run(|_| both(f64::NAN, -1.0));
    assert_eq!(nothing.verdict, Verdict::CannotTell);
    assert_eq!(nothing.metrics[0].missing.in_both, 24);
    assert_eq!(nothing.metrics[0].effect, None);
    assert_eq!(nothing.metrics[0].signed_rank_p_value, None);
}

#[test]
fn wrong_settings_and_pairs_are_errors() {
    let with = |change: fn(&mut GateSettings)| {
        let mut settings = settings(0.03);
        change(&mut settings);
        Gate::new(settings).unwrap_err().to_string()
    };
    assert!(with(|it| it.metrics.clear()).contains("1 to 32 metrics, found 0"));
    assert!(with(|it| it.metrics.push(it.metrics[0].clone())).contains("listed twice"));
    for limit in [0.0, 1.0, -0.1, f64::NAN] {
        assert!(Gate::new(settings(limit)).is_err(), "{limit}");
    }
    assert!(with(|it| it.metrics[0].limit_share = 1.5).contains("found 150 %"));
    assert!(with(|it| it.pairs_each = 0).contains("found 8, 24 and 0"));
    assert!(with(|it| it.pairs_first = 25).contains("found 25, 24"));
    assert!(with(|it| it.pairs_most = 1001).contains("1001"));
    assert!(with(|it| it.alpha = f64::NAN).contains("alpha must be from 0.000001 to 0.5"));
    assert!(with(|it| it.alpha = 1e-320).contains("alpha"));
    assert!(with(|it| it.power = 1.0).contains("power"));

    let mut gate = Gate::new(settings(0.03)).unwrap();
    let wrong = gate.take(&[]).unwrap_err().to_string();
    assert!(wrong.contains("each of its 1 metrics, found 0"), "{wrong}");
    while gate.next() != Next::Decided {
        gate.take(&[both(1.0, 2.0)]).unwrap();
    }
    let late = gate.take(&[both(1.0, 2.0)]).unwrap_err();
    assert!(matches!(late, GateError::Ended { .. }));
}

#[test]
fn a_judgement_is_read_back() {
    let mut gate = Gate::new(settings(0.03)).unwrap();
    Machine::drifting(3).decide(&mut gate, 1.02);
    let judgement = gate.judgement();
    let text = serde_json::to_string(&judgement).unwrap();
    assert!(text.contains("\"direction\":\"lower_is_better\""));
    assert!(text.contains("\"limit_share\":0.03"));
    assert_eq!(
        serde_json::from_str::<GateJudgement>(&text).unwrap(),
        judgement
    );
}

proptest! {
    /// Whatever comes, a gate ends within its budget, and the same pairs give the same verdict.
    #[test]
    fn a_gate_ends(
        values in prop::collection::vec((any::<f64>(), any::<f64>(), 0u8..8), 40),
        (first, most) in (1usize..40).prop_flat_map(|most| (1..=most.min(29), Just(most))),
        each in 1usize..9,
    ) {
        let settings = GateSettings { pairs_first: first, pairs_each: each, pairs_most: most, ..settings(0.03) };
        let run = || {
            let mut gate = Gate::new(settings.clone()).unwrap();
            let mut given = values.iter();
            while let Next::Pairs(more) = gate.next() {
                prop_assert!(more >= 1 && more <= most);
                let (base, new, missing) = given.next().unwrap();
                let pair = PairValues {
                    base: (*missing != 0).then_some(*base),
                    new: (*missing != 1).then_some(*new),
                };
                gate.take(&[pair]).unwrap();
            }
            let judgement = gate.judgement();
            prop_assert!(judgement.pairs <= most);
            Ok(judgement)
        };
        prop_assert_eq!(run()?, run()?);
    }
}

/// What has no noise can be worse by exactly what it may be.
#[test]
fn as_much_as_the_limit_is_not_above_it() {
    let decided = |direction, limit, base, new| {
        let settings = GateSettings::new(vec![gated("n", direction, limit)], 7);
        let mut gate = Gate::new(settings).unwrap();
        while let Next::Pairs(_) = gate.next() {
            gate.take(&[both(base, new)]).unwrap();
        }
        gate.judgement()
    };
    let (less, more) = (Direction::LowerIsBetter, Direction::HigherIsBetter);
    for (direction, limit, base, new, beyond) in [
        (less, 0.05, 100.0, 105.0, 106.0),
        (less, 0.03, 100.0, 103.0, 103.1),
        (less, 0.1, 100.0, 110.0, 111.0),
        (less, 0.25, 4.0, 5.0, 6.0),
        (more, 0.05, 200.0, 190.0, 189.0),
    ] {
        let found = decided(direction, limit, base, new);
        assert_eq!(
            found.verdict,
            Verdict::NotWorse,
            "{}",
            found.metrics[0].sentence
        );
        let found = decided(direction, limit, base, beyond);
        assert_eq!(
            found.verdict,
            Verdict::Worse,
            "{}",
            found.metrics[0].sentence
        );
    }
}

#[test]
fn what_is_below_zero_has_no_ratio_and_that_is_said() {
    let mut gate = Gate::new(settings(0.03)).unwrap();
    while let Next::Pairs(_) = gate.next() {
        gate.take(&[both(1.0, -1.0)]).unwrap();
    }
    let found = gate.judgement();
    assert_eq!(found.verdict, Verdict::CannotTell);
    let said = &found.metrics[0].sentence;
    assert!(
        said.contains("in 24 pairs the value is below zero"),
        "{said}"
    );
}
