use crate::simulated::{Machine, series};
use crate::{
    Direction, Gate, GateJudgement, GateSettings, Gated, HistorySettings, Metric, PairValues, Unit,
    compare_groups, compare_runs, judge_history,
};

fn metric() -> Metric {
    Metric {
        name: "soak: p99".to_owned(),
        unit: Unit::Seconds,
        direction: Direction::LowerIsBetter,
    }
}

fn judged(machine: &mut Machine, limit_share: f64, new: f64) -> GateJudgement {
    let metrics = vec![Gated {
        metric: metric(),
        limit_share,
    }];
    let mut gate = Gate::new(GateSettings::new(metrics, 7)).unwrap();
    machine.decide(&mut gate, new);
    gate.judgement()
}

#[test]
fn gates_speak_plainly() {
    let slower = judged(&mut Machine::drifting(1), 0.03, 1.08);
    let equal = judged(&mut Machine::drifting(2), 0.05, 1.0);
    let open = judged(&mut Machine::drifting(5), 0.03, 0.99);
    let better = judged(&mut Machine::noisy(1), 0.05, 0.7);
    let said: Vec<String> = [slower, equal, open, better]
        .into_iter()
        .flat_map(|judgement| [judgement.metrics[0].sentence.clone(), judgement.sentence])
        .collect();
    let expected = [
        "soak: p99 is worse: 7.9 % worse (between 5.4 % and 15 % worse) in 12 pairs, over the limit of 3 %: 963 ms became 1.03 s",
        "worse, after 12 pairs: soak: p99",
        "soak: p99 is better: 2.9 % better (between 5.7 % and 0.34 % better) in 16 pairs: 926 ms became 899 ms; a slowdown of 3.8 % would have been noticed",
        "not worse, after 16 pairs",
        "cannot tell whether soak: p99 is worse by more than 3 %: 0.37 % better (between 3 % better and 2.5 % worse) in 24 pairs; about 42 pairs in all, a machine with 76 % of the noise or a limit of 4 % would settle it",
        "cannot tell, and the budget of 24 pairs is spent: soak: p99",
        "soak: p99 is better: 29 % better (between 33 % and 26 % better) in 12 pairs: 993 ms became 704 ms; a slowdown of 6.5 % would have been noticed",
        "not worse, after 12 pairs",
    ];
    assert_eq!(said, expected);
}

#[test]
fn too_little_is_called_too_little() {
    let metrics = vec![Gated {
        metric: metric(),
        limit_share: 0.03,
    }];
    let settings = GateSettings {
        pairs_first: 1,
        pairs_most: 1,
        ..GateSettings::new(metrics, 7)
    };
    let mut gate = Gate::new(settings).unwrap();
    assert_eq!(gate.judgement().sentence, "not decided after 0 pairs");
    let pair = PairValues {
        base: Some(1.0),
        new: None,
    };
    gate.take(&[pair]).unwrap();
    let judgement = gate.judgement();
    assert_eq!(
        judgement.sentence,
        "cannot tell, and the budget of 1 pair is spent: soak: p99"
    );
    assert_eq!(
        judgement.metrics[0].sentence,
        "cannot tell whether soak: p99 is worse: 0 pairs are too few; the new program gave no \
         value in 1 pair, which is never a pass"
    );
}

#[test]
fn groups_and_runs_name_their_licence() {
    let mut machine = Machine::noisy(1);
    let mut runs =
        |count: usize, truth: f64| -> Vec<f64> { (0..count).map(|_| machine.run(truth)).collect() };
    let (base, new) = (runs(10, 1.0), runs(10, 1.1));
    let groups = compare_groups(&metric(), 0.05, &base, &new);
    let (base, new) = (runs(200, 1.0), runs(200, 1.1));
    let within = compare_runs(&metric(), 0.05, &base, &new);
    let nothing = compare_runs(&metric(), 0.05, &[1.0], &[1.1]);
    let said = [groups.sentence, within.sentence, nothing.sentence];
    let expected = [
        "soak: p99 is worse: 12 % worse (between 8.3 % and 16 % worse) in 10 runs beside 10, over the limit of 5 %: 992 ms became 1.12 s. These runs were not made in random pairs: whatever the machine did between them counts as a difference of the programs.",
        "soak: p99 is worse: 10 % worse (between 9.4 % and 11 % worse) in 12 beside 12 batches of one run each, over the limit of 5 %: 1 s became 1.1 s. One run of each: this holds for these two runs; whether the program or the machine made the difference, they cannot say.",
        "cannot tell whether soak: p99 is worse: 0 beside 0 batches of one run each are too few. One run of each says nothing without at least 8 batches in both; a batch is 10 values here, as neighbours resemble each other: make longer runs, or at least 4 of each.",
    ];
    assert_eq!(said, expected);
}

/// A limit that is advised is one that is accepted: a share above 0 % and below 100 %.
#[test]
fn what_would_settle_it_can_be_done() {
    let noise = |size: f64, at: usize| (size * ((at * 7919) % 13) as f64 - size * 6.0).exp();
    let group = |size: f64, count: usize, of: usize| -> Vec<f64> {
        (0..count).map(|at| noise(size, at * 3 + of)).collect()
    };
    let said = |size, runs| {
        let (base, new) = (group(size, runs, 0), group(size, runs, 1));
        let found = compare_groups(&metric(), 0.03, &base, &new);
        assert_eq!(found.verdict, crate::Verdict::CannotTell);
        (found.needs, found.finding_in_words())
    };
    let (few, text) = said(0.01, 3);
    assert_eq!(few.unwrap().runs, Some(4));
    assert!(
        text.ends_with("; it takes at least 4 runs of each"),
        "{text}"
    );
    let (none, text) = said(1.0, 8);
    assert_eq!(
        (none.unwrap().runs, none.unwrap().limit_share),
        (None, None)
    );
    assert!(
        text.ends_with("the noise is too large for any number of runs of each"),
        "{text}"
    );
    let (some, text) = said(0.02, 8);
    let share = some.unwrap().limit_share.unwrap();
    assert!(
        share > 0.03 && share < 0.995 && text.contains("a limit of"),
        "{text}"
    );
    // One run beside one says how to go on.
    let one = compare_groups(&metric(), 0.03, &[1.0], &[2.0]);
    assert!(
        one.sentence.contains("at least 4 runs of each"),
        "{}",
        one.sentence
    );
    // And what needs nothing gets no advice.
    let equal = compare_groups(&metric(), 0.03, &[1.0; 9], &[1.0; 9]);
    assert_eq!(
        (equal.verdict, equal.needs),
        (crate::Verdict::NotWorse, None)
    );
}

#[test]
fn histories_say_since_when_and_how_much() {
    let judge = |truth: fn(usize) -> f64, points| {
        let values = series(&mut Machine::noisy(6), points, truth);
        judge_history(&metric(), &values, &HistorySettings::default())
    };
    let step = |at| if at < 60 { 0.012 } else { 0.0144 };
    let leap = |at| if at < 60 { 0.012 } else { 0.018 };
    let said = [
        judge(step, 100).changes.remove(0).sentence,
        judge(leap, 62).alarm.unwrap().sentence,
        judge(|at| 1.0 + 0.003 * at as f64, 100)
            .drifts
            .remove(0)
            .sentence,
    ];
    let expected = [
        "worse with run 60: 12 ms became 14.4 ms, 1.2 times (1.18 to 1.22)",
        "may have got worse since run 60: 12 ms before, 17.2 ms since; more runs will tell",
        "drifts for the worse from run 0 to 99, at no single one: 1.29 times (1.23 to 1.35) in all",
    ];
    assert_eq!(said, expected);
}
