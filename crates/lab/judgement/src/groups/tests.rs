use super::*;
use crate::Unit;
use crate::simulated::Machine;

fn metric(direction: Direction) -> Metric {
    Metric {
        name: "p99".to_owned(),
        unit: Unit::Seconds,
        direction,
    }
}

fn runs(machine: &mut Machine, count: usize, truth: f64) -> Vec<f64> {
    (0..count).map(|_| machine.run(truth)).collect()
}

/// Verdicts of groups of 12 runs: worse and not worse, and p-values of 5 % or less, of 300.
fn verdicts(machine: fn(u64) -> Machine, slower: f64) -> (usize, usize, usize) {
    let lower = metric(Direction::LowerIsBetter);
    let (mut worse, mut not_worse, mut different) = (0, 0, 0);
    for seed in 0..300 {
        let mut machine = machine(seed);
        let base = runs(&mut machine, 12, 1.0);
        let new = runs(&mut machine, 12, 1.0 + slower);
        let found = compare_groups(&lower, 0.05, &base, &new);
        worse += usize::from(found.verdict == Verdict::Worse);
        not_worse += usize::from(found.verdict == Verdict::NotWorse);
        different += usize::from(found.mann_whitney_p_value.unwrap() <= 0.05);
    }
    (worse, not_worse, different)
}

#[test]
fn on_a_steady_machine_groups_tell_the_truth() {
    let (worse, not_worse, different) = verdicts(Machine::noisy, 0.0);
    assert!(
        worse <= 1 && not_worse >= 250 && different <= 30,
        "{worse} {not_worse} {different}"
    );
    let (worse, not_worse, _) = verdicts(Machine::noisy, 0.10);
    assert!(worse >= 290 && not_worse == 0, "{worse} {not_worse}");
}

/// Why the licence of groups is a weak one.
#[test]
fn on_a_drifting_machine_one_after_the_other_they_lie() {
    let (_, _, different) = verdicts(Machine::drifting, 0.0);
    assert!(different >= 100, "{different} of 300 equal programs differ");
    let mut machine = Machine::drifting(1);
    let (base, new) = (runs(&mut machine, 9, 1.0), runs(&mut machine, 9, 1.0));
    let found = compare_groups(&metric(Direction::LowerIsBetter), 0.05, &base, &new);
    assert_eq!(found.licence, ComparisonBasis::Unpaired);
    assert!(
        found.sentence.contains("not made in random pairs"),
        "{}",
        found.sentence
    );
}

#[test]
fn a_run_beside_a_run_says_nothing_without_batches() {
    let lower = metric(Direction::LowerIsBetter);
    for (base, new) in [
        (&[1.0][..], &[1.5][..]),
        (&[1.0; 79], &[2.0; 200]),
        (&[], &[]),
    ] {
        let found = compare_runs(&lower, 0.05, base, new);
        assert_eq!(
            (found.licence, found.verdict),
            (ComparisonBasis::Nothing, Verdict::CannotTell)
        );
        assert_eq!((found.effect, found.mann_whitney_p_value), (None, None));
        assert!(
            found.sentence.contains("at least 8 batches"),
            "{}",
            found.sentence
        );
    }
}

#[test]
fn batches_are_as_long_as_neighbours_resemble_each_other() {
    let lower = metric(Direction::LowerIsBetter);
    let (mut worse, mut found_slow) = (0, 0);
    for seed in 0..200 {
        let mut machine = Machine::noisy(seed);
        machine.alike = 0.8;
        let base = runs(&mut machine, 2000, 1.0);
        let new = runs(&mut machine, 2000, 1.0);
        let slow = runs(&mut machine, 2000, 1.1);
        let equal = compare_runs(&lower, 0.02, &base, &new);
        // The time of this process is 9.
        assert!(equal.batch_length.unwrap() > 40);
        assert!(equal.base_count <= 200);
        worse += usize::from(equal.mann_whitney_p_value.is_some_and(|p| p <= 0.05));
        let slower = compare_runs(&lower, 0.02, &base, &slow);
        found_slow += usize::from(slower.verdict == Verdict::Worse);
    }
    assert!(worse <= 24, "{worse} of 200 equal runs");
    assert!(found_slow >= 190, "{found_slow} of 200");
}

#[test]
fn zeros_missing_values_and_directions() {
    let lower = metric(Direction::LowerIsBetter);
    let zeros = compare_groups(&lower, 0.05, &[0.0; 9], &[0.0; 9]);
    assert_eq!(zeros.verdict, Verdict::NotWorse);
    let errors = compare_groups(&lower, 0.05, &[0.0; 9], &[0.001; 9]);
    assert_eq!(errors.verdict, Verdict::Worse);
    let fewer = compare_groups(&lower, 0.05, &[0.001; 9], &[0.0; 9]);
    assert_eq!(fewer.verdict, Verdict::NotWorse);

    let mut failed = [1.0; 9];
    failed[4] = f64::NAN;
    let missing = compare_groups(&lower, 0.05, &[1.0; 9], &failed);
    assert_eq!(
        (missing.verdict, missing.new_missing),
        (Verdict::CannotTell, 1)
    );
    assert!(
        missing.sentence.contains("never a pass"),
        "{}",
        missing.sentence
    );
    let missing = compare_groups(&lower, 0.05, &failed, &[1.0; 9]);
    assert_eq!(missing.verdict, Verdict::NotWorse);

    let higher = metric(Direction::HigherIsBetter);
    let less = compare_groups(&higher, 0.05, &[10.0; 9], &[8.0; 9]);
    assert_eq!(less.verdict, Verdict::Worse);
    assert!((less.effect.unwrap().worse_by_share - 0.2).abs() < 1e-12);

    let beyond = compare_groups(&higher, 0.05, &[1e-300; 9], &[1e300; 9]);
    assert!(
        beyond.sentence.contains("over 1,000,000 times better"),
        "{}",
        beyond.sentence
    );
    let text = serde_json::to_string(&beyond).unwrap();
    assert_eq!(serde_json::from_str::<Comparison>(&text).unwrap(), beyond);
    let many = compare_groups(&lower, 0.05, &[1.0; 2000], &[1.0; 3]);
    assert_eq!((many.base_count, many.base_missing), (1000, 0));

    let few = compare_groups(&lower, 0.05, &[1.0, 1.1, 1.0], &[2.0, 2.1, 2.0]);
    assert_eq!(few.verdict, Verdict::CannotTell);
    assert_eq!(few.effect.unwrap().low_share, None);
    assert!(
        few.sentence.contains("too few for an interval"),
        "{}",
        few.sentence
    );
}
