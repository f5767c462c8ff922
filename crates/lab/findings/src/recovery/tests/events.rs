//! Outages among single events.

use stats::SplitMix;

use crate::recovery::{Effect, Recovery, Return, Signal, Window, Worse, recovery};

const WINDOW: Window = Window {
    hold_begin_s: 0.0,
    fault_begin_s: 20.0,
    fault_end_s: 22.0,
    until_s: 60.0,
    steady_s: 5.0,
};

/// How arrivals come.
#[derive(Debug, Clone, Copy)]
enum Arrivals {
    Poisson,
    /// Rates that change every so often, threefold up and down.
    Bursts,
    /// One after the other, with some jitter.
    Even,
}

fn arrivals(kind: Arrivals, rate: f64, random: &mut SplitMix) -> Vec<f64> {
    let (mut at_s, mut all) = (0.0, Vec::new());
    let (mut busy, mut change_s) = (true, 0.0);
    while at_s < WINDOW.until_s {
        all.push(at_s);
        at_s += match kind {
            Arrivals::Poisson => random.exponential() / rate,
            Arrivals::Even => (0.8 + 0.4 * random.uniform()) / rate,
            Arrivals::Bursts => {
                if at_s >= change_s {
                    busy = !busy;
                    change_s = at_s + 0.1 * random.exponential();
                }
                random.exponential() / if busy { 1.5 * rate } else { 0.5 * rate }
            }
        };
    }
    all
}

fn seen(signal: Signal<'_>) -> Option<Recovery> {
    match recovery(signal, &WINDOW, Worse::Lower).unwrap() {
        Effect::Seen(recovery) => Some(recovery),
        Effect::None(_) => None,
    }
}

/// What is wrong about an outage `[from, to)` of so much.
fn wrong(found: Option<Recovery>, from: f64, to: f64, depth: f64, rate: f64) -> Option<String> {
    let Some(found) = found else {
        return Some("unseen".to_owned());
    };
    // An edge is known to the first event on its other side; where part of the events is still good, to
    // as many as tell the two rates apart.
    let gap_s = 12.0 / (rate * depth * depth);
    let Return::After { from_begin_s, .. } = found.returned else {
        return Some(format!("not back: {found:?}"));
    };
    let late_s = found.detected_s + 20.0 - from;
    let longer_s = from_begin_s + 20.0 - to;
    let lost = (found.lost - rate * depth * (to - from)).abs();
    let right = late_s.abs() <= gap_s
        && longer_s.abs() <= gap_s
        && lost <= 2.0 * found.lost_noise + 2.0 * rate * depth * gap_s
        && (found.depth_share? - depth).abs() < 0.2;
    (!right).then(|| format!("late {late_s}, longer {longer_s}, gap {gap_s}: {found:?}"))
}

#[test]
fn an_outage_of_a_tenth_of_a_second_is_told_as_that() {
    for kind in [Arrivals::Poisson, Arrivals::Even] {
        let mut right = 0;
        let mut told = String::new();
        for seed in 0..100 {
            let mut random = SplitMix::new(seed);
            let from = 20.3 + random.uniform();
            let mut instants = arrivals(kind, 500.0, &mut random);
            instants.retain(|at| !(from..from + 0.1).contains(at));
            let found = seen(Signal::Instants(&instants));
            match wrong(found, from, from + 0.1, 1.0, 500.0) {
                None => right += 1,
                Some(wrong) => told += &format!("{kind:?} {seed}: {wrong}\n"),
            }
        }
        assert!(right >= 95, "{right} of 100\n{told}");
    }
}

#[test]
fn requests_that_fail_are_an_outage_whatever_their_bursts() {
    let mut right = 0;
    let mut told = String::new();
    for seed in 0..200 {
        let mut random = SplitMix::new(seed);
        let rate = [100.0, 400.0, 1000.0][random.below(3)];
        let kind = [Arrivals::Poisson, Arrivals::Bursts, Arrivals::Even][random.below(3)];
        let depth = [1.0, 0.7, 0.5][random.below(3)];
        let (from, length) = (20.1 + random.uniform(), 0.2 + 2.0 * random.uniform());
        let requests: Vec<(f64, bool)> = arrivals(kind, rate, &mut random)
            .into_iter()
            .map(|at| {
                let hit = (from..from + length).contains(&at) && random.uniform() < depth;
                (at, !hit && random.uniform() < 0.999)
            })
            .collect();
        let found = seen(Signal::Requests(&requests));
        // Bursts change how many are lost, not when.
        let rate = if matches!(kind, Arrivals::Bursts) {
            0.5 * rate
        } else {
            rate
        };
        match wrong(
            found.map(|found| with_rate(found, kind, rate, depth, length)),
            from,
            from + length,
            depth,
            rate,
        ) {
            None => right += 1,
            Some(wrong) => told += &format!("{kind:?} {rate} {depth} {length} {seed}: {wrong}\n"),
        }
    }
    assert!(right >= 190, "{right} of 200\n{told}");
}

/// The number lost is that of the arrivals that came, which bursts decide.
fn with_rate(found: Recovery, kind: Arrivals, rate: f64, depth: f64, length: f64) -> Recovery {
    match kind {
        Arrivals::Bursts => Recovery {
            lost: rate * depth * length,
            ..found
        },
        Arrivals::Poisson | Arrivals::Even => found,
    }
}

#[test]
fn two_dips_are_one_outage_when_they_are_near_and_two_when_they_are_not() {
    for (apart, later) in [(2.0, 0), (10.0, 1)] {
        let mut random = SplitMix::new(5);
        let mut instants = arrivals(Arrivals::Poisson, 300.0, &mut random);
        let second = 21.0 + apart;
        instants.retain(|at| !(20.5..21.0).contains(at) && !(second..second + 0.5).contains(at));
        let found = seen(Signal::Instants(&instants)).unwrap();
        assert_eq!(found.later_exits, later);
        let Return::After { from_begin_s, .. } = found.returned else {
            panic!("{found:?}")
        };
        let truth = if later == 0 { second + 0.5 } else { 21.0 };
        assert!((from_begin_s + 20.0 - truth).abs() < 0.05, "{found:?}");
    }
}

#[test]
fn what_never_comes_back_is_at_least_as_long_as_was_looked() {
    let mut random = SplitMix::new(1);
    let mut instants = arrivals(Arrivals::Poisson, 300.0, &mut random);
    instants.retain(|at| *at < 21.0);
    let found = seen(Signal::Instants(&instants)).unwrap();
    let Return::NotBefore { from_begin_s, .. } = found.returned else {
        panic!("{found:?}")
    };
    assert!((from_begin_s - 40.0).abs() < 1e-9);
}

#[test]
fn events_without_an_outage_claim_none() {
    let mut claims = 0;
    let mut told = String::new();
    for kind in [Arrivals::Poisson, Arrivals::Bursts, Arrivals::Even] {
        for failing in [0.0, 0.001, 0.05] {
            for seed in 0..100 {
                let mut random = SplitMix::new(7000 + seed);
                let rate = [50.0, 500.0][random.below(2)];
                let instants = arrivals(kind, rate, &mut random);
                let requests: Vec<(f64, bool)> = instants
                    .iter()
                    .map(|at| (*at, random.uniform() >= failing))
                    .collect();
                let signals = [Signal::Instants(&instants), Signal::Requests(&requests)];
                for found in signals.into_iter().filter_map(seen) {
                    claims += 1;
                    told += &format!("{kind:?} {failing} {rate} {seed}: {found:?}\n");
                }
            }
        }
    }
    assert!(claims <= 18, "{claims} of 1800\n{told}");
}
