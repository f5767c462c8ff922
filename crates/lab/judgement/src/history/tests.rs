use super::*;
use crate::Unit;
use crate::simulated::{Machine, series};

const POINTS: usize = 200;

fn metric(direction: Direction) -> Metric {
    Metric {
        name: "p99".to_owned(),
        unit: Unit::Seconds,
        direction,
    }
}

fn judge(values: &[Option<f64>]) -> HistoryJudgement {
    let metric = metric(Direction::LowerIsBetter);
    judge_history(&metric, values, &HistorySettings::default())
}

fn history(seed: u64, truth: impl Fn(usize) -> f64, change: fn(&mut Machine)) -> HistoryJudgement {
    let mut machine = Machine::noisy(seed);
    change(&mut machine);
    judge(&series(&mut machine, POINTS, truth))
}

fn certain(history: &HistoryJudgement) -> impl Iterator<Item = &Change> {
    history.changes.iter().filter(|change| change.certain)
}

#[test]
fn planted_steps_are_found_where_they_are() {
    let machines: [fn(&mut Machine); 3] = [
        |_| {},
        |machine| machine.outlier_share = 0.03,
        |machine| machine.alike = 0.3,
    ];
    for machine in machines {
        let (mut near, mut covered, mut sized) = (0, 0, 0);
        for seed in 0..200 {
            let step = 20 + seed as usize % 160;
            let found = history(seed, |at| if at < step { 1.0 } else { 1.1 }, machine);
            let step_of = |change: &&Change| change.index.abs_diff(step) <= 2;
            if let Some(change) = certain(&found).find(step_of) {
                near += 1;
                assert!(change.worse && change.p_value < 1e-4);
                let (low, high) = (change.ratio_low.unwrap(), change.ratio_high.unwrap());
                sized += usize::from((low..=high).contains(&1.1));
            }
            covered += usize::from(
                certain(&found)
                    .any(|change| (change.earliest_index..=change.latest_index).contains(&step)),
            );
        }
        assert!(near >= 190, "{near} of 200 within two runs");
        assert!(covered >= 186, "{covered} of 200 within their intervals");
        assert!(
            sized >= 175,
            "{sized} of {near} ratios within their intervals"
        );
    }
}

#[test]
fn histories_without_a_change_have_none() {
    let machines: [fn(&mut Machine); 4] = [
        |_| {},
        |machine| machine.outlier_share = 0.02,
        |machine| machine.alike = 0.5,
        |machine| machine.noise_share = 0.3,
    ];
    for (at, machine) in machines.into_iter().enumerate() {
        let histories = (0..200).map(|seed| history(1000 + seed, |_| 1.0, machine));
        let (mut changed, mut drifts, mut alarms) = (0, 0, 0);
        for found in histories {
            changed += usize::from(certain(&found).next().is_some());
            drifts += usize::from(!found.drifts.is_empty());
            alarms += usize::from(found.alarm.is_some());
        }
        // At most one in a hundred; of 200, chance alone makes that up to 5 in 99 of 100 cases.
        assert!(changed <= 5, "{changed} changes on machine {at}");
        assert!(
            drifts <= 4 && alarms <= 8,
            "{drifts} drifts, {alarms} alarms on {at}"
        );
    }
}

#[test]
fn a_slow_drift_is_a_drift_and_not_a_step() {
    for total in [0.15, 0.3, -0.2] {
        let (mut steps, mut drifted) = (0, 0);
        for seed in 0..100 {
            let found = history(seed, |at| 1.0 + total * at as f64 / POINTS as f64, |_| {});
            steps += usize::from(certain(&found).next().is_some());
            let right = |drift: &&Drift| {
                let ratio = (drift.ratio_low.unwrap(), drift.ratio_high.unwrap());
                drift.worse == (total > 0.0) && ratio.0 < 1.0 + total && ratio.1 > 1.0 + total
            };
            drifted += usize::from(found.drifts.iter().any(|drift| right(&drift)));
        }
        assert!(steps <= 2, "{steps} steps in drifts of {total}");
        assert!(drifted >= 90, "{drifted} drifts of {total}");
    }
}

#[test]
fn several_steps_are_several_and_a_staircase_is_no_slope() {
    let levels = [1.0, 1.1, 0.95, 1.05];
    let truth = |at: usize| levels[at / 50];
    let mut right = 0;
    for seed in 0..50 {
        let found = history(seed, truth, |_| {});
        let near = |(change, at): (&Change, usize)| change.index.abs_diff(at) <= 2;
        let mut planted = certain(&found).zip([50, 100, 150]);
        right += usize::from(certain(&found).count() == 3 && planted.all(near));
        let worse: Vec<bool> = certain(&found).map(|change| change.worse).collect();
        assert!(worse.len() != 3 || worse == [true, false, true]);
    }
    assert!(right >= 45, "{right}");

    let stairs = |at: usize| 1.0 + 0.15 * (at / 67) as f64;
    let mut steps = 0;
    for seed in 0..50 {
        steps += usize::from(certain(&history(seed, stairs, |_| {})).count() == 2);
    }
    assert!(steps >= 45, "{steps}");
}

#[test]
fn nobody_is_alarmed_before_two_more_runs() {
    let last = |after: usize| {
        let mut machine = Machine::noisy(5);
        machine.noise_share = 0.01;
        let points = 60 + after;
        judge(&series(&mut machine, points, |at| {
            if at < 60 { 1.0 } else { 1.3 }
        }))
    };
    // One more run: whatever is found is not certain; the fast alarm says that something is.
    let early = last(2);
    assert_eq!(certain(&early).count(), 0);
    let alarm = early.alarm.unwrap();
    assert_eq!((alarm.since_index, alarm.worse), (60, true));
    assert!(
        alarm.sentence.contains("more runs will tell"),
        "{}",
        alarm.sentence
    );
    // Two more.
    let found = last(3);
    let change = certain(&found).next().unwrap();
    assert_eq!(change.index, 60);
    assert_eq!(last(0).alarm, None);
    assert_eq!(last(1).alarm, None);
}

#[test]
fn a_lone_outlier_is_nothing() {
    for outliers in [&[30][..], &[30, 31], &[30, 31, 32], &[59]] {
        let mut values = series(&mut Machine::noisy(2), 60, |_| 1.0);
        for at in outliers {
            values[*at] = Some(9.0);
        }
        let found = judge(&values);
        assert!(
            found.changes.is_empty() && found.alarm.is_none(),
            "{found:?}"
        );
    }
}

#[test]
fn what_is_missing_is_skipped_and_indices_are_those_of_the_input() {
    let mut machine = Machine::noisy(3);
    let mut values = series(&mut machine, 100, |at| if at < 60 { 1.0 } else { 1.3 });
    for at in [0, 10, 59] {
        values[at] = None;
    }
    values[20] = Some(f64::NAN);
    let found = judge(&values);
    assert_eq!((found.points, found.skipped), (96, 4));
    assert_eq!(found.changes[0].index, 60);
    assert_eq!(judge(&[]).points, 0);
    assert_eq!(judge(&[None; 9]).skipped, 9);
    assert_eq!(judge(&[Some(1.0); 9]).changes, []);
    // A tenth is no number of the machine's: means of it differ in their last digit.
    let constant = judge(&[Some(0.1); 90]);
    assert!(constant.changes.is_empty() && constant.drifts.is_empty());
    assert_eq!(constant.alarm, None);
    let long = vec![Some(1.0); POINTS_MOST + 7];
    assert_eq!(judge(&long).skipped, 7);
}

#[test]
fn a_history_that_reaches_zero_has_changes_without_ratios() {
    let mut machine = Machine::noisy(3);
    let values = series(&mut machine, 80, |at| if at < 40 { 0.0 } else { 5.0 });
    let found = judge(&values);
    let change = &found.changes[0];
    assert_eq!((change.index, change.before, change.ratio), (40, 0.0, None));
    assert!(change.sentence.contains("no ratio"), "{}", change.sentence);
}

#[test]
fn which_way_is_better_decides_what_is_worse() {
    let values = series(
        &mut Machine::noisy(3),
        80,
        |at| if at < 40 { 1.0 } else { 2.0 },
    );
    let rate = metric(Direction::HigherIsBetter);
    let found = judge_history(&rate, &values, &HistorySettings::default());
    assert!(!found.changes[0].worse);
    assert_eq!(
        found.changes[0].sentence,
        "better with run 40: 994 ms became 2.01 s, 2.01 times (1.99 to 2.04)"
    );
}

/// Two of five runs take a fifth longer since: the median of all differences is none.
#[test]
fn what_some_runs_do_worse_is_never_better() {
    let values = (0..100).map(|at| match at >= 60 && at % 5 < 2 {
        true => 1.2,
        false => 1.0,
    });
    let places = (0..100).collect();
    let series = Series::of(places, values.collect(), &metric(Direction::LowerIsBetter));
    let changes = Steps { at: vec![60] }.changes(&series, &HistorySettings::default());
    assert_eq!(changes[0].ratio, Some(1.0));
    let said = &changes[0].sentence;
    assert!(changes[0].worse, "{said}");
    assert!(said.contains("only some of the runs changed"), "{said}");
}

fn exact(levels: &[(usize, f64)]) -> Vec<Option<f64>> {
    let each = levels.iter();
    each.flat_map(|(runs, level)| std::iter::repeat_n(Some(*level), *runs))
        .collect()
}

#[test]
fn steps_of_what_has_no_noise_are_found_wherever_they_are() {
    let pairs = [
        (1000.0, 2000.0),
        (120.0, 140.0),
        (7.0, 9.0),
        (5.0, 50.0),
        (0.1, 0.3),
        (140.0, 120.0),
        (3.0, 0.0),
        (0.0, 2.0),
        (1e9, 1.02e9),
        (1e-7, 1.3e-7),
    ];
    for (before, after) in pairs {
        for split in 3..=27 {
            let values = exact(&[(split, before), (30 - split, after)]);
            // Beside nothing else, after a wild value of some runs ago, and one that is off by nothing.
            for other in [
                None,
                Some((30.0, split / 2)),
                Some((1.000_000_2, split / 2)),
            ] {
                let mut values = values.clone();
                if let Some((times, at)) = other.filter(|_| split > 7) {
                    values[at] = values[at].map(|value| value * times);
                }
                let found = judge(&values);
                let [change] = &found.changes[..] else {
                    panic!("{before} {after} at {split} {other:?}: {found:?}");
                };
                assert_eq!(
                    (change.index, change.earliest_index, change.latest_index),
                    (split, split, split),
                    "{before} {after} {other:?}"
                );
                assert!(change.certain && change.worse == (after > before));
                assert!(found.drifts.is_empty(), "{found:?}");
            }
        }
    }
    // Further on, in a long history, and several.
    let found = judge(&exact(&[(97, 12.0), (3, 13.0)]));
    assert_eq!(found.changes[0].index, 97);
    let found = judge(&exact(&[(40, 12.0), (40, 13.0), (61, 11.0), (9, 12.0)]));
    let at: Vec<usize> = found.changes.iter().map(|change| change.index).collect();
    assert_eq!((at, found.alarm), (vec![40, 80, 141], None));
    // A change before it that is too small to matter does not hide one that is not.
    let found = judge(&exact(&[(15, 5.0), (15, 5.000_001), (5, 50.0)]));
    assert_eq!(found.changes.len(), 1);
    assert_eq!(found.changes[0].index, 30);
}

#[test]
fn what_has_no_noise_and_no_change_has_none() {
    let constant = |level: f64, points| judge(&vec![Some(level); points]);
    for level in [0.0, 0.1, 1.0, 3.0, 1000.0, 1e-9, 7e12] {
        for points in 1..=120 {
            let found = constant(level, points);
            assert!(
                found.changes.is_empty() && found.drifts.is_empty() && found.alarm.is_none(),
                "{level} {points}: {found:?}"
            );
        }
    }
    // A value or two that are off, and values that a thousandth of the smallest change moves.
    for (at, value) in [(0, 9.0), (20, 5.000_001), (39, 9.0), (37, 500.0)] {
        let mut values = exact(&[(40, 5.0)]);
        values[at] = Some(value);
        let found = judge(&values);
        assert!(
            found.changes.is_empty() && found.alarm.is_none(),
            "{found:?}"
        );
    }
    let found = judge(&exact(&[(20, 5.0), (20, 5.000_05)]));
    assert!(
        found.changes.is_empty() && found.alarm.is_none(),
        "{found:?}"
    );
}

#[test]
fn two_runs_of_another_count_raise_an_alarm() {
    let found = judge(&exact(&[(40, 120.0), (2, 140.0)]));
    assert!(found.changes.is_empty());
    let alarm = found.alarm.unwrap();
    assert_eq!((alarm.since_index, alarm.worse), (40, true));
    let better = judge(&exact(&[(40, 120.0), (2, 100.0)]));
    assert!(!better.alarm.unwrap().worse);
    assert_eq!(judge(&exact(&[(40, 120.0), (1, 140.0)])).alarm, None);
}

/// Noise of a clock that is coarse, and of counts of what is rare.
#[test]
fn noise_in_whole_numbers_is_no_change() {
    for share in [0.02, 0.05, 0.1, 0.2, 0.35, 0.5] {
        for points in [30, 100, 200] {
            let (mut changed, mut alarms) = (0, 0);
            for seed in 0..200 {
                let mut random = stats::SplitMix::new(seed);
                let values: Vec<Option<f64>> = (0..points)
                    .map(|_| Some(if random.uniform() < share { 21.0 } else { 20.0 }))
                    .collect();
                let found = judge(&values);
                changed += usize::from(certain(&found).next().is_some());
                alarms += usize::from(found.alarm.is_some());
            }
            // As above: at most one change in a hundred, and of 200, up to 5 by chance.
            assert!(changed <= 5, "{changed} changes of {share} in {points}");
            assert!(alarms <= 12, "{alarms} alarms of {share} in {points}");
        }
    }
}

/// Runs that are much slower now and then, or in one of two modes.
#[test]
fn noise_with_two_modes_is_no_change() {
    for (share, factor, noise) in [
        (0.05, 1.5, 0.03),
        (0.1, 1.5, 0.03),
        (0.15, 1.5, 0.03),
        (0.3, 1.5, 0.03),
        (0.5, 1.5, 0.03),
        (0.2, 1.1, 0.01),
        (0.5, 1.05, 0.01),
        (0.1, 0.0, 0.03),
    ] {
        let (mut changed, mut drifts, mut alarms) = (0, 0, 0);
        for seed in 0..200 {
            let mut random = stats::SplitMix::new(seed);
            let mut machine = Machine::noisy(900 + seed);
            machine.noise_share = noise;
            let mut values = series(&mut machine, POINTS, |_| 1.0);
            for value in values.iter_mut().flatten() {
                if random.uniform() < share {
                    *value *= factor;
                }
            }
            let found = judge(&values);
            changed += usize::from(certain(&found).next().is_some());
            drifts += usize::from(!found.drifts.is_empty());
            alarms += usize::from(found.alarm.is_some());
        }
        assert!(changed <= 5, "{changed} changes of {share} x{factor}");
        assert!(
            drifts <= 4 && alarms <= 8,
            "{drifts} drifts, {alarms} alarms of {share} x{factor}"
        );
    }
}

/// The share of the way from one run to another that is gone.
fn way(at: usize, from: usize, to: usize) -> f64 {
    at.clamp(from, to).abs_diff(from) as f64 / (to - from) as f64
}

#[test]
fn a_drift_that_begins_or_ends_within_the_history_is_no_staircase() {
    let half = POINTS / 2;
    let ramps: [(&str, &dyn Fn(usize) -> f64); 5] = [
        ("a late one", &|at| 1.0 + 0.1 * way(at, half, POINTS)),
        ("a larger one", &|at| 1.0 + 0.2 * way(at, half, POINTS)),
        ("the largest", &|at| 1.0 + 0.4 * way(at, half, POINTS)),
        ("an early one", &|at| 1.0 + 0.3 * way(at, 0, half)),
        ("up and down", &|at| {
            1.0 + 0.3 * (way(at, 0, half) - way(at, half, POINTS))
        }),
    ];
    for (what, truth) in ramps {
        let (mut steps, mut drifted) = (0, 0);
        for seed in 0..100 {
            let found = history(2000 + seed, truth, |_| {});
            steps += usize::from(certain(&found).next().is_some());
            drifted += usize::from(!found.drifts.is_empty());
        }
        assert!(steps <= 5, "{steps} steps in {what}");
        assert!(drifted >= 90, "{drifted} drifts of {what}");
    }
}

#[test]
fn a_step_beside_a_drift_is_a_step_and_one_alone_is_no_drift() {
    let both = |at: usize| if at < 50 { 1.0 } else { 1.15 } + 0.3 * way(at, 100, POINTS);
    let mut right = 0;
    for seed in 0..100 {
        let found = history(5000 + seed, both, |_| {});
        let steps: Vec<usize> = certain(&found).map(|change| change.index).collect();
        let near = matches!(steps[..], [at] if at.abs_diff(50) <= 3);
        right += usize::from(near && !found.drifts.is_empty());
    }
    assert!(right >= 90, "{right}");
    for (size, least) in [(1.06, 93), (1.1, 95), (1.3, 95)] {
        let (mut steps, mut drifts) = (0, 0);
        for seed in 0..100 {
            let at = 20 + seed as usize % 160;
            let found = history(4000 + seed, |run| if run < at { 1.0 } else { size }, |_| {});
            steps += usize::from(certain(&found).count() == 1);
            drifts += usize::from(!found.drifts.is_empty());
        }
        assert!(steps >= least, "{steps} steps of {size}");
        assert!(drifts <= 4, "{drifts} drifts of {size}");
    }
}

/// Of little noise, in which its curve is seen.
#[test]
fn a_drift_need_not_be_straight() {
    for end in [90, 50] {
        let (mut steps, mut drifted) = (0, 0);
        for seed in 0..100 {
            let mut machine = Machine::noisy(seed);
            machine.noise_share = 0.01;
            let truth = |at: usize| 1.0 + 0.4 * way(at, 0, end);
            let found = judge(&series(&mut machine, 90, truth));
            steps += usize::from(certain(&found).next().is_some());
            drifted += usize::from(!found.drifts.is_empty());
        }
        assert!(steps <= 5, "{steps} steps");
        assert!(drifted >= 95, "{drifted} drifts");
    }
}
