use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;

use super::evenness::Summary;
use super::{CellKind, Order, Outcome, ProcessKind, Scenario, run};
use crate::auctioneer::placement::Options;

/// A clock that goes one millisecond further each time it is looked at.
fn clock() -> impl FnMut() -> Duration {
    let mut looks = 0;
    move || {
        looks += 1;
        Duration::from_millis(looks)
    }
}

fn outcome(scenario: &Scenario) -> Outcome {
    run(scenario, clock()).unwrap()
}

fn cells(text: &str) -> Vec<CellKind> {
    text.split(' ').map(|kind| kind.parse().unwrap()).collect()
}

fn processes(text: &str) -> Vec<ProcessKind> {
    text.split(' ').map(|kind| kind.parse().unwrap()).collect()
}

#[test]
fn kinds_read_as_they_are_written() {
    for kind in ["90*16GiB/64GiB/250", "1*1MiB/1TiB/1"] {
        assert_eq!(kind.parse::<CellKind>().unwrap().to_string(), kind);
    }
    for kind in ["50*256MiB/1GiB*1-4", "1*0MiB/10MiB*7"] {
        assert_eq!(kind.parse::<ProcessKind>().unwrap().to_string(), kind);
    }
    for kind in [
        "",
        "1",
        "1*1GiB",
        "1*1GiB/1GiB",
        "-1*1GiB/1GiB/1",
        "1*1GX/1GiB/1",
    ] {
        assert!(kind.parse::<CellKind>().is_err(), "{kind}");
    }
    for kind in [
        "",
        "1*1GiB/1GiB",
        "1*1GiB*1",
        "1*1GiB/1GiB*x",
        "1*1GiB/1GiB*1-",
        "1*1/1*-3",
    ] {
        assert!(kind.parse::<ProcessKind>().is_err(), "{kind}");
    }
}

#[test]
fn what_is_out_of_bounds_is_told() {
    let told = |edit: fn(&mut Scenario)| {
        let mut scenario = Scenario::default();
        edit(&mut scenario);
        run(&scenario, clock()).unwrap_err().to_string()
    };
    assert_eq!(
        told(|scenario| scenario.cells.clear()),
        "--cells: expected a number from 1 to 100000, found 0"
    );
    assert_eq!(
        told(|scenario| scenario.zones = 101),
        "--zones: expected a number from 1 to 100, found 101"
    );
    assert_eq!(
        told(|scenario| scenario.instances = 0),
        "--instances: expected a number from 1 to 10000000, found 0"
    );
    assert_eq!(
        told(|scenario| scenario.processes = processes("1*1GiB/1GiB*4-2")),
        "--process: expected at least 1 instance, and a range that rises, found 1*1GiB/1GiB*4-2"
    );
    assert_eq!(
        told(|scenario| scenario.cells[0].memory_mb = 0),
        "--cell: expected memory, disk and containers above 0, found 100*0MiB/256GiB/250"
    );
    assert_eq!(
        told(|scenario| scenario.processes.clear()),
        "--process: expected a process with parts above 0, found none"
    );
    assert_eq!(
        told(|scenario| scenario.options.starting_weight = f64::NAN),
        "--starting-container-weight: expected a number of 0 or more, found NaN"
    );
}

#[test]
fn equal_scenarios_have_equal_outcomes_and_other_seeds_others() {
    let scenario = Scenario {
        instances: 3000,
        batch: 700,
        ..Scenario::default()
    };
    let first = outcome(&scenario);
    let again = outcome(&scenario);
    assert_eq!(first.to_string(), again.to_string());
    assert_eq!(first.page(), again.page());
    let json = |outcome: &Outcome| serde_json::to_string(outcome).unwrap();
    assert_eq!(json(&first), json(&again));
    let other = outcome(&Scenario {
        seed: 1,
        ..scenario
    });
    assert_ne!(first.by_cell, other.by_cell);
    assert_eq!(first.rounds.len(), 5);
    // The clock went on by one millisecond in each round.
    assert_eq!(first.time.rounds.len(), 5);
    assert!((first.time.total - 0.005).abs() < 1e-12, "{:?}", first.time);
}

#[test]
fn numbers_are_summed_up() {
    let summary = Summary::of((1..=200).rev().map(f64::from).collect());
    assert_eq!((summary.min, summary.p50), (1.0, 100.0));
    assert_eq!((summary.p99, summary.max), (198.0, 200.0));
    assert_eq!(summary.mean, 100.5);
    let two = Summary::of(vec![1.0, 3.0]);
    assert_eq!(two.variation, 0.5);
    assert_eq!(Summary::of(Vec::new()), Summary::default());
    assert_eq!(Summary::of(vec![0.0, 0.0]).variation, 0.0);
}

#[test]
fn what_does_not_fit_is_refused_with_the_protocols_text() {
    let outcome = outcome(&Scenario {
        cells: cells("10*1GiB/100GiB/250"),
        zones: 2,
        instances: 100,
        processes: processes("1*256MiB/1GiB*1"),
        ..Scenario::default()
    });
    assert_eq!((outcome.placed, outcome.refused), (40, 60));
    assert_eq!(outcome.reasons.len(), 1);
    assert_eq!(outcome.reasons[0].text, "insufficient resources: memory");
    assert_eq!(outcome.reasons[0].instances, 60);
    assert_eq!((outcome.memory.min, outcome.memory.max), (1.0, 1.0));
    let text = outcome.to_string();
    assert!(
        text.contains("60: insufficient resources: memory"),
        "{text}"
    );
    assert!(text.contains(" 100.0 %  █"), "{text}");
}

#[test]
fn the_start_limit_holds_until_containers_run() {
    let scenario = Scenario {
        instances: 100,
        batch: 0,
        starting_rounds: 1,
        retries: 0,
        options: Options {
            starting_max: 30,
            ..Options::default()
        },
        ..Scenario::default()
    };
    let once = outcome(&scenario);
    assert_eq!((once.placed, once.refused), (30, 70));
    assert_eq!(
        once.reasons[0].text,
        "waiting to start instance: reached in-flight start limit"
    );
    // A round starts 30, and the next one has none to start while they do.
    let placed = |retries, starting_rounds| {
        let rounds = outcome(&Scenario {
            retries,
            starting_rounds,
            ..scenario.clone()
        })
        .rounds;
        rounds.iter().map(|round| round.placed).collect::<Vec<_>>()
    };
    assert_eq!(placed(9, 1), [30, 0, 30, 0, 30, 0, 10]);
    assert_eq!(placed(9, 0), [30, 30, 30, 10]);
    assert_eq!(placed(1, 1), [30, 0]);
}

#[test]
fn larger_cells_get_more_and_are_as_full() {
    let outcome = outcome(&Scenario {
        cells: cells("10*16GiB/1TiB/1000000 10*64GiB/1TiB/1000000"),
        zones: 1,
        instances: 400,
        processes: processes("1*1GiB/1MiB*1"),
        options: Options {
            starting_weight: 0.0,
            ..Options::default()
        },
        ..Scenario::default()
    });
    let sum = |cells: &[(f64, u32)]| cells.iter().map(|cell| cell.1).sum::<u32>();
    let (small, large) = outcome.by_cell.split_at(10);
    assert_eq!((sum(small), sum(large)), (80, 320));
}

#[test]
fn stacked_instances_are_counted() {
    // Two of four cells are in each zone, and the process has six instances.
    let even = outcome(&Scenario {
        cells: cells("4*64GiB/256GiB/250"),
        instances: 6,
        processes: processes("1*256MiB/1GiB*6"),
        order: Order::ByProcess,
        ..Scenario::default()
    });
    assert_eq!(even.stacking.cells, 2);
    assert_eq!(even.stacking.cells_beside_free, 0);
    assert_eq!((even.zones.difference.max, even.zones.uneven), (0.0, 0));
    // One zone has a cell, the other one has two: the lone cell takes as many as both.
    let lone = outcome(&Scenario {
        cells: cells("3*64GiB/256GiB/250"),
        instances: 3,
        processes: processes("1*256MiB/1GiB*3"),
        order: Order::ByProcess,
        ..Scenario::default()
    });
    assert_eq!(lone.stacking.cells, 0);
    // The second zone is full after one: the process is stacked where there is room.
    let full = outcome(&Scenario {
        cells: cells("1*64GiB/256GiB/250 1*256MiB/256GiB/250"),
        instances: 5,
        processes: processes("1*256MiB/1GiB*5"),
        order: Order::ByProcess,
        ..Scenario::default()
    });
    assert_eq!((full.placed, full.stacking.cells), (5, 1));
    assert_eq!(full.zones.difference.max, 3.0);
    assert_eq!(full.zones.uneven, 1);
}

#[test]
fn pictures_have_round_bars_that_hold_everything() {
    for numbers in [vec![0.3], vec![0.0, 1.0], (0..977).map(f64::from).collect()] {
        let (width, bars) = super::text::bars(numbers.iter().copied());
        assert!(bars.len() <= 20 && !bars.is_empty());
        assert_eq!(
            bars.iter().map(|bar| bar.count).sum::<usize>(),
            numbers.len()
        );
        assert!(bars[0].from <= numbers[0] + 1e-9 && width > 0.0);
    }
    let outcome = outcome(&Scenario::default());
    let page = outcome.page();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert_eq!(page.matches("<svg").count(), 3);
    assert!(!page.contains("NaN"));
}

fn some_scenario() -> impl Strategy<Value = Scenario> {
    let cells = prop::collection::vec((1..8u32, 1..40i32, 1..40i32, 1..12i32), 1..4);
    let processes = prop::collection::vec((1..9u32, 0..9i32, 0..9i32, 1..5u32, 0..9u32), 1..4);
    let rounds = (0..60u32, any::<bool>(), 0..3u32, 0..3u32);
    let weights = (0..3u32, 0..40u32, 0..2u32);
    (
        cells,
        1..4u32,
        1..200u32,
        processes,
        rounds,
        weights,
        any::<u64>(),
    )
        .prop_map(
            |(cells, zones, instances, processes, rounds, weights, seed)| {
                let cells = cells
                    .into_iter()
                    .map(|(count, memory, disk, containers)| CellKind {
                        count,
                        memory_mb: memory * 100,
                        disk_mb: disk * 100,
                        containers,
                    });
                let cells: Vec<CellKind> = cells.collect();
                let most: u32 = cells.iter().map(|kind| kind.count).sum();
                let processes = processes
                    .into_iter()
                    .map(|(parts, memory, disk, least, more)| ProcessKind {
                        parts,
                        memory_mb: memory * 100,
                        disk_mb: disk * 100,
                        least,
                        most: least + more,
                    });
                let order = if rounds.1 {
                    Order::Mixed
                } else {
                    Order::ByProcess
                };
                Scenario {
                    cells,
                    zones: zones.min(most),
                    instances,
                    processes: processes.collect(),
                    batch: rounds.0,
                    order,
                    starting_rounds: rounds.2,
                    retries: rounds.3,
                    options: Options {
                        starting_weight: f64::from(weights.0) / 8.0,
                        starting_max: weights.1,
                        first_fit_weight: f64::from(weights.2),
                    },
                    seed,
                }
            },
        )
}

proptest! {
    #[test]
    fn nothing_is_lost_and_no_cell_gets_more_than_it_has(scenario in some_scenario()) {
        let outcome = outcome(&scenario);
        prop_assert_eq!(outcome.placed + outcome.refused, scenario.instances as usize);
        let reasons: usize = outcome.reasons.iter().map(|reason| reason.instances).sum();
        prop_assert_eq!(reasons, outcome.refused);
        prop_assert!(outcome.reasons.iter().all(|reason| !reason.text.is_empty()));
        let placed: usize = outcome.rounds.iter().map(|round| round.placed).sum();
        prop_assert_eq!(placed, outcome.placed);
        let held: u32 = outcome.by_cell.iter().map(|cell| cell.1).sum();
        prop_assert_eq!(held as usize, outcome.placed);
        prop_assert!(outcome.memory.max <= 1.0 && outcome.disk.max <= 1.0);
        let kinds = scenario.cells.iter();
        let kinds = kinds.flat_map(|kind| std::iter::repeat_n(kind, kind.count as usize));
        for (cell, kind) in outcome.by_cell.iter().zip(kinds) {
            prop_assert!(cell.1 as i32 <= kind.containers);
        }
        let stacking = &outcome.stacking;
        prop_assert!(stacking.cells_beside_free <= stacking.cells);
    }

    /// Instances of processes of their own on equal cells: none gets two more than another.
    #[test]
    fn equal_cells_hold_equal_numbers_of_equal_instances(
        count in 1..30u32, instances in 1..300u32, batch in 0..50u32, zones in 1..4u32,
    ) {
        let scenario = Scenario {
            cells: vec![CellKind { count, memory_mb: 4000, disk_mb: 4000, containers: 400 }],
            zones: zones.min(count),
            instances,
            processes: processes("1*10MiB/10MiB*1"),
            batch,
            // While some start and others run, what starts weighs more than what runs.
            starting_rounds: 0,
            ..Scenario::default()
        };
        let outcome = outcome(&scenario);
        prop_assert_eq!(outcome.refused, 0);
        prop_assert!(outcome.containers.max - outcome.containers.min <= 1.0);
    }

    /// Without a weight for starting containers the fullest cell is ahead of the emptiest by no
    /// more than the largest instance takes.
    #[test]
    fn equal_cells_are_equally_full_but_for_one_instance(
        count in 1..20u32, instances in 1..200u32, seed in any::<u64>(), batch in 0..40u32,
    ) {
        let scenario = Scenario {
            cells: vec![CellKind { count, memory_mb: 1 << 20, disk_mb: 1 << 20, containers: 1 << 30 }],
            zones: 1,
            instances,
            processes: processes("3*10MiB/10MiB*1 2*100MiB/100MiB*1 1*700MiB/700MiB*1"),
            batch,
            options: Options { starting_weight: 0.0, ..Options::default() },
            seed,
            ..Scenario::default()
        };
        let outcome = outcome(&scenario);
        // Each takes as much of the disk as of the memory, and hardly any of the containers.
        let largest = 700.0 / f64::from(1 << 20);
        let memory = outcome.memory.max - outcome.memory.min;
        prop_assert!(memory <= largest + 1e-6, "{memory}");
    }

    #[test]
    fn zones_hold_equal_shares_of_each_process_while_there_is_room(
        per_zone in 1..6u32, zones in 1..5u32, instances in 1..200u32, seed in any::<u64>(),
    ) {
        let outcome = outcome(&Scenario {
            cells: cells(&format!("{}*1TiB/1TiB/4000", per_zone * zones)),
            zones,
            instances,
            processes: processes("1*10MiB/10MiB*1-40"),
            seed,
            ..Scenario::default()
        });
        prop_assert_eq!(outcome.zones.uneven, 0);
        prop_assert_eq!(outcome.stacking.cells_beside_free, 0);
    }
}

/// Of processes that are drawn, as many are of each kind as its parts say.
#[test]
fn processes_are_of_the_kinds_that_were_asked_for() {
    let scenario = Scenario {
        instances: 20_000,
        processes: processes("3*10MiB/10MiB*1 1*20MiB/10MiB*1"),
        ..Scenario::default()
    };
    let work = super::make::work(&scenario);
    let mut counts: HashMap<i32, usize> = HashMap::new();
    for kind in &work.processes {
        *counts.entry(kind.memory_mb).or_default() += 1;
    }
    // Five standard deviations around 15,000.
    assert!((14_700..15_300).contains(&counts[&10]), "{counts:?}");
    assert_eq!(work.pieces.len(), 20_000);
}
