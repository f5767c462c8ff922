//! Whole graphs: what the steps of many services amount to.

use traces::failure;

use super::plan::{MS, Plan, call, call_with, cpu, parallel, sequence, sleep, topology};
use super::simulation::{Made, Simulation};
use crate::script::Failure;
use crate::topology::{EdgeId, Faults, Join, ServiceId, Step, Topology};

/// root → price (10 ms), stock (20 ms) → store.
fn diamond(both: impl FnOnce(Vec<Step>) -> Step) -> Topology {
    topology(
        42,
        vec![
            Plan::new(vec![both(vec![call(1), call(2)])]),
            Plan::new(vec![sleep(10 * MS), call(3)]),
            Plan::new(vec![sleep(20 * MS), call(3)]),
            Plan::new(Vec::new()),
        ],
    )
}

#[test]
fn a_diamond_takes_its_longer_branch_or_both() {
    for (graph, expected) in [
        (diamond(|both| parallel(Join::All, both)), 20 * MS),
        (diamond(sequence), 30 * MS),
        (diamond(|both| parallel(Join::Quorum(1), both)), 10 * MS),
    ] {
        let run = Simulation::new(&graph, 1, 0).run(100, 8);
        let stores = run.made.iter().filter(|made| made.to == ServiceId(3));
        assert_eq!(stores.count(), 200);
        assert_eq!(run.ended.len(), 100);
        for one in &run.ended {
            assert_eq!((one.status, one.latency), (200, expected));
        }
    }
}

fn calls_of(graph: &Topology, order: u64, concurrency: u64) -> Vec<Made> {
    let mut made = Simulation::new(graph, order, MS)
        .run(10_000, concurrency)
        .made;
    made.sort_unstable();
    made
}

#[test]
fn a_share_of_requests_makes_a_call_and_the_same_ones_at_any_concurrency() {
    let graph = |share| {
        let chosen = call_with(1, |call| call.probability = share);
        topology(
            42,
            vec![
                Plan::new(vec![parallel(Join::All, vec![chosen, cpu(MS)])]),
                Plan::new(vec![cpu(MS)]),
            ],
        )
    };
    let alone = calls_of(&graph(0.3), 1, 1);
    // Three standard deviations of a binomial with 10,000 trials.
    assert!((2862..=3138).contains(&alone.len()), "{}", alone.len());
    assert_eq!(alone, calls_of(&graph(0.3), 2, 1));
    assert_eq!(alone, calls_of(&graph(0.3), 3, 8));
    assert!(calls_of(&graph(0.0), 1, 8).is_empty());
}

#[test]
fn a_share_below_a_share_is_the_same_at_any_concurrency() {
    let half = |to| call_with(to, |call| call.probability = 0.5);
    let graph = topology(
        7,
        vec![
            Plan::new(vec![parallel(Join::All, vec![half(1), half(2)]), half(3)]),
            Plan::new(vec![half(3)]),
            Plan::new(vec![cpu(MS), half(3)]),
            Plan::new(Vec::new()),
        ],
    );
    let alone = calls_of(&graph, 1, 1);
    let below = alone.iter().filter(|made| made.to == ServiceId(3)).count();
    // 0.25 + 0.25 + 0.5 of 10,000, and four standard deviations.
    assert!((9_600..=10_400).contains(&below), "{below}");
    assert_eq!(alone, calls_of(&graph, 4, 8));
}

#[test]
fn a_slow_leaf_is_a_time_out_all_the_way_up() {
    let impatient = call_with(1, |call| call.timeout = 50 * MS);
    let graph = topology(
        1,
        vec![
            Plan::new(vec![impatient]),
            Plan::new(vec![cpu(5 * MS), call(2)]),
            Plan::new(vec![cpu(500 * MS)]),
        ],
    );
    let run = Simulation::new(&graph, 1, 0).run(20, 4);
    for one in &run.ended {
        assert_eq!((one.status, one.latency), (504, 50 * MS));
        let edge = one.failure.and_then(|failure| failure.edge);
        assert_eq!(edge, Some(EdgeId(1)));
    }
}

#[test]
fn a_failing_leaf_is_told_by_its_edge_and_retries_hide_it() {
    let graph = |retries| {
        let mut leaf = Plan::new(Vec::new());
        leaf.faults = Faults {
            error: 0.5,
            ..Faults::default()
        };
        let tried = call_with(1, |call| call.retries = retries);
        topology(3, vec![Plan::new(vec![tried]), leaf])
    };
    let failed = |retries| {
        let run = Simulation::new(&graph(retries), 1, MS).run(1000, 8);
        let mut failed: Vec<u64> = Vec::new();
        for one in &run.ended {
            if one.status != 200 {
                let (edge, cause) = (Some(EdgeId(1)), failure::STATUS);
                assert_eq!(one.status, 502);
                assert_eq!(one.failure, Some(Failure { edge, cause }));
                failed.push(one.number);
            }
        }
        failed.sort_unstable();
        failed
    };
    let (once, twice) = (failed(0), failed(1));
    assert!((436..=564).contains(&once.len()), "{}", once.len());
    assert!((195..=305).contains(&twice.len()), "{}", twice.len());
    // The first attempt fails for the same requests.
    assert!(
        twice
            .iter()
            .all(|number| once.binary_search(number).is_ok())
    );
}
