//! How often judgement is wrong, on simulated machines whose truth is known: the figures of
//! docs/judgement.md. The only argument is how many of each; 1,000 without one.

use lab_judgement::simulated::{Machine, series};
use lab_judgement::{
    Direction, Gate, GateSettings, Gated, HistorySettings, Metric, Unit, Verdict, compare_groups,
    judge_history,
};
use stats::Spending;

fn metric() -> Metric {
    Metric {
        name: "p99".to_owned(),
        unit: Unit::Seconds,
        direction: Direction::LowerIsBetter,
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let argument = std::env::args().nth(1);
    let runs: u64 = argument.map_or(Ok(1000), |text| text.parse())?;
    gates(runs)?;
    groups(runs);
    histories(runs);
    Ok(())
}

fn gates(runs: u64) -> Result<(), Box<dyn std::error::Error>> {
    println!("Gates, {runs} each: worse, not worse, cannot tell (%), pairs on average");
    type Change = fn(&mut Machine);
    let machines: [(&str, Change); 6] = [
        ("drifting", |_| {}),
        ("alike 0.8", |machine| machine.alike = 0.8),
        ("outliers 5 %", |machine| machine.outlier_share = 0.05),
        ("second +5 %", |machine| machine.second_share = 0.05),
        ("noise 6 %", |machine| machine.noise_share = 0.06),
        ("noise 1 %", |machine| {
            machine.noise_share = 0.01;
            machine.drift_share = 0.005;
        }),
    ];
    for (name, change) in machines {
        gates_on(name, change, (Spending::OBrienFleming, 24), runs)?;
    }
    gates_on("as Pocock", |_| {}, (Spending::Pocock, 24), runs)?;
    gates_on("40 pairs", |_| {}, (Spending::OBrienFleming, 40), runs)
}

fn gates_on(
    name: &str,
    change: fn(&mut Machine),
    (spending, pairs_most): (Spending, usize),
    runs: u64,
) -> Result<(), Box<dyn std::error::Error>> {
    for (limit, slower) in [
        (0.03, 0.0),
        (0.03, 0.03),
        (0.03, 0.05),
        (0.05, 0.0),
        (0.05, 0.05),
        (0.05, 0.10),
    ] {
        let metrics = vec![Gated {
            metric: metric(),
            limit_share: limit,
        }];
        let fresh = Gate::new(GateSettings {
            spending,
            pairs_most,
            ..GateSettings::new(metrics, 0)
        })?;
        let (mut worse, mut not_worse, mut pairs) = (0, 0, 0);
        for seed in 0..runs {
            let mut machine = Machine::drifting(seed);
            change(&mut machine);
            let mut gate = fresh.clone().with_seed(seed);
            machine.decide(&mut gate, 1.0 + slower);
            let judgement = gate.judgement();
            pairs += judgement.pairs;
            worse += u64::from(judgement.verdict == Verdict::Worse);
            not_worse += u64::from(judgement.verdict == Verdict::NotWorse);
        }
        let share = |count: u64| 100.0 * count as f64 / runs as f64;
        println!(
            "{name:13} limit {:.0} %, slower {:2.0} %: {:5.1} {:5.1} {:5.1}  {:4.1}",
            limit * 100.0,
            slower * 100.0,
            share(worse),
            share(not_worse),
            share(runs - worse - not_worse),
            pairs as f64 / runs as f64
        );
    }
    Ok(())
}

/// Runs of one program after those of the other, as is done without pairs.
fn groups(runs: u64) {
    println!("\nGroups of 10 one after the other, {runs} each: worse, not worse (%), p <= 0.05");
    for (limit, slower) in [(0.03, 0.0), (0.03, 0.05)] {
        let (mut worse, mut not_worse, mut different) = (0, 0, 0);
        for seed in 0..runs {
            let mut machine = Machine::drifting(seed);
            let mut group =
                |truth: f64| -> Vec<f64> { (0..10).map(|_| machine.run(truth)).collect() };
            let (base, new) = (group(1.0), group(1.0 + slower));
            let found = compare_groups(&metric(), limit, &base, &new);
            worse += u64::from(found.verdict == Verdict::Worse);
            not_worse += u64::from(found.verdict == Verdict::NotWorse);
            different += u64::from(found.mann_whitney_p_value.is_some_and(|p| p <= 0.05));
        }
        let share = |count: u64| 100.0 * count as f64 / runs as f64;
        println!(
            "limit {:.0} % slower {:.0} %: {:.1} {:.1} {:.1}",
            limit * 100.0,
            slower * 100.0,
            share(worse),
            share(not_worse),
            share(different)
        );
    }
}

fn histories(runs: u64) {
    println!(
        "\nHistories, {runs} each: with a certain change, a drift, an alarm (%); planted change within 2"
    );
    type Change = fn(&mut Machine);
    let machines: [(&str, Change); 6] = [
        ("noise 3 %", |_| {}),
        ("outliers 3 %", |machine| machine.outlier_share = 0.03),
        ("outliers 15 %", |machine| machine.outlier_share = 0.15),
        ("alike 0.3", |machine| machine.alike = 0.3),
        ("alike 0.5", |machine| machine.alike = 0.5),
        ("alike 0.7", |machine| machine.alike = 0.7),
    ];
    type Truth = fn(usize) -> f64;
    let truths: [(&str, usize, Truth); 8] = [
        ("clean 60", 60, |_| 1.0),
        ("clean 200", 200, |_| 1.0),
        (
            "step 10 % at 120",
            200,
            |at| if at < 120 { 1.0 } else { 1.1 },
        ),
        (
            "step 6 % at 120",
            200,
            |at| if at < 120 { 1.0 } else { 1.06 },
        ),
        (
            "step 10 % at 190",
            200,
            |at| if at < 190 { 1.0 } else { 1.1 },
        ),
        ("drift 15 % in 200", 200, |at| {
            1.0 + 0.15 * at as f64 / 200.0
        }),
        ("drift 30 % in 200", 200, |at| {
            1.0 + 0.30 * at as f64 / 200.0
        }),
        ("drift 20 % from 100", 200, |at| {
            1.0 + 0.20 * at.saturating_sub(100) as f64 / 100.0
        }),
    ];
    for (name, change) in machines {
        for (what, points, truth) in truths {
            let (mut changed, mut drifted, mut alarmed) = (0, 0, 0);
            let (mut near, mut covered) = (0, 0);
            for seed in 0..runs {
                let mut machine = Machine::noisy(seed);
                change(&mut machine);
                let values = series(&mut machine, points, truth);
                let found = judge_history(&metric(), &values, &HistorySettings::default());
                let mut certain = found.changes.iter().filter(|change| change.certain);
                let planted = (1..points).find(|at| truth(*at) > truth(0) * 1.05);
                near += u64::from(planted.is_some_and(|at| {
                    certain.clone().any(|change| change.index.abs_diff(at) <= 2)
                }));
                covered += u64::from(planted.is_some_and(|at| {
                    certain
                        .clone()
                        .any(|change| (change.earliest_index..=change.latest_index).contains(&at))
                }));
                changed += u64::from(certain.next().is_some());
                drifted += u64::from(!found.drifts.is_empty());
                alarmed += u64::from(found.alarm.is_some());
            }
            let share = |count: u64| 100.0 * count as f64 / runs as f64;
            println!(
                "{name:13} {what:19}: {:5.1} {:5.1} {:5.1}; {:5.1} {:5.1}",
                share(changed),
                share(drifted),
                share(alarmed),
                share(near),
                share(covered)
            );
        }
    }
}
