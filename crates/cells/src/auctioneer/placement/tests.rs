use std::collections::{BTreeMap, BTreeSet, HashMap};

use diego::auction::{CellState, Lrp, Placement, Resource, Resources, RootFsProvider, Task};
use proptest::prelude::*;

use super::tree_cache::Bounds;
use super::{Options, Problem, Solution, naive, place, solve};

fn cell(number: usize, zone: &str) -> CellState {
    let total = Resources {
        memory_mb: 10_000,
        disk_mb: 10_000,
        containers: 250,
    };
    let names = BTreeSet::from(["cflinuxfs4".to_owned()]);
    CellState {
        cell_id: format!("cell-{number:03}"),
        cell_index: number as i32,
        root_fs_providers: BTreeMap::from([
            ("preloaded".into(), RootFsProvider::fixed(&names)),
            ("docker".into(), RootFsProvider::Arbitrary),
        ]),
        available_resources: total,
        total_resources: total,
        zone: zone.into(),
        ..CellState::default()
    }
}

fn placement() -> Placement {
    Placement {
        root_fs: "preloaded:cflinuxfs4".into(),
        ..Placement::default()
    }
}

fn resource(memory_mb: i32) -> Resource {
    Resource {
        memory_mb,
        disk_mb: 10,
        max_pids: 0,
    }
}

fn lrp(process: &str, index: i32) -> Lrp {
    Lrp {
        process_guid: process.into(),
        index,
        domain: "d".into(),
        placement: placement(),
        resource: resource(10),
        ..Lrp::default()
    }
}

fn task(guid: impl ToString) -> Task {
    Task {
        task_guid: guid.to_string(),
        placement: placement(),
        resource: resource(10),
        ..Task::default()
    }
}

/// Index of each instance of one process to the cell that got it.
fn homes(solution: &Solution) -> BTreeMap<i32, String> {
    let lrps = |work: &super::CellWork| {
        let cell = work.cell_id.clone();
        work.lrps
            .iter()
            .map(move |lrp| (lrp.index, cell.clone()))
            .collect::<Vec<_>>()
    };
    solution.work.iter().flat_map(lrps).collect()
}

fn only_failure(problem: Problem) -> String {
    let solution = solve(problem);
    assert_eq!(solution.work, []);
    assert_eq!(solution.failed_tasks.len(), 1);
    solution.failed_tasks[0].1.clone()
}

#[test]
fn instances_spread_over_zones_before_cells() {
    let cells = vec![cell(0, "a"), cell(1, "a"), cell(2, "a"), cell(3, "b")];
    let lrps = (0..4).map(|index| lrp("p", index)).collect();
    let homes = homes(&solve(Problem {
        cells,
        lrps,
        ..Problem::default()
    }));
    assert_eq!(homes[&0], "cell-000");
    assert_eq!(homes[&1], "cell-003");
    assert_eq!(homes[&2], "cell-001");
    assert_eq!(
        homes[&3], "cell-003",
        "zone b still has fewer instances than zone a"
    );
}

#[test]
fn a_full_zone_leaves_its_share_to_the_next() {
    let mut full = cell(1, "b");
    full.available_resources.memory_mb = 5;
    let solution = solve(Problem {
        cells: vec![cell(0, "a"), full],
        lrps: vec![lrp("p", 0), lrp("p", 1)],
        ..Problem::default()
    });
    assert_eq!(homes(&solution)[&1], "cell-000");
}

#[test]
fn proxy_memory_must_be_free_but_is_not_taken() {
    let mut small = cell(0, "a");
    small.available_resources.memory_mb = 50;
    small.proxy_memory_allocation_mb = 32;
    let lrps = (0..3).map(|index| lrp("p", index)).collect();
    let solution = solve(Problem {
        cells: vec![small],
        lrps,
        ..Problem::default()
    });
    assert_eq!(homes(&solution).len(), 1);
    assert_eq!(solution.failed_lrps[0].1, "insufficient resources: memory");
}

#[test]
fn failures_have_the_protocols_texts() {
    let ask = |cells: Vec<CellState>, edit: &dyn Fn(&mut Task)| {
        let mut task = task("t");
        edit(&mut task);
        only_failure(Problem {
            cells,
            tasks: vec![task],
            ..Problem::default()
        })
    };
    assert_eq!(
        ask(vec![], &|_| ()),
        "unable to communicate to compatible cells"
    );
    assert_eq!(
        ask(vec![cell(0, "a")], &|t| t.placement.root_fs =
            "preloaded:nope".into()),
        "found no compatible cell for required rootfs"
    );
    assert_eq!(
        ask(vec![cell(0, "a")], &|t| t.placement.volume_drivers =
            vec!["nfs".into()]),
        "found no compatible cell with required volume drivers"
    );
    let tags = |tags: &'static [&'static str]| {
        move |t: &mut Task| {
            t.placement.placement_tags = tags.iter().map(|t| t.to_string()).collect()
        }
    };
    assert_eq!(
        ask(vec![cell(0, "a")], &tags(&["x"])),
        r#"found no compatible cell with placement tag "x""#
    );
    assert_eq!(
        ask(vec![cell(0, "a")], &tags(&["a", "b", "c"])),
        r#"found no compatible cell with placement tags "a", "b" and "c""#
    );
    let mut tagged = cell(0, "a");
    tagged.placement_tags = vec!["gpu".into()];
    assert_eq!(
        ask(vec![tagged], &|_| ()),
        "found no compatible cell with no placement tags"
    );
    assert_eq!(
        ask(vec![cell(0, "a")], &|t| t.resource = Resource {
            memory_mb: 1 << 20,
            disk_mb: 1 << 20,
            max_pids: 0
        }),
        "insufficient resources: disk, memory"
    );
    let (mut no_disk, mut no_memory) = (cell(0, "a"), cell(1, "a"));
    no_disk.available_resources.disk_mb = 0;
    no_memory.available_resources.memory_mb = 0;
    assert_eq!(
        ask(vec![no_disk, no_memory], &|_| ()),
        "insufficient resources"
    );
}

#[test]
fn the_start_limit_counts_all_cells() {
    let mut busy = cell(0, "a");
    busy.starting_container_count = 2;
    let solution = solve(Problem {
        cells: vec![busy, cell(1, "a")],
        tasks: (0..3).map(task).collect(),
        options: Options {
            starting_max: 4,
            ..Options::default()
        },
        ..Problem::default()
    });
    assert_eq!(solution.failed_tasks.len(), 1);
    assert_eq!(
        solution.failed_tasks[0].1,
        "waiting to start instance: reached in-flight start limit"
    );
}

#[test]
fn first_fit_weight_fills_cell_after_cell() {
    let lrps = (0..10).map(|n| lrp(&format!("p{n}"), 0)).collect();
    let options = Options {
        starting_weight: 0.0,
        first_fit_weight: 1.0,
        ..Options::default()
    };
    let cells = (0..5).map(|n| cell(n, "a")).collect();
    let solution = solve(Problem {
        cells,
        lrps,
        options,
        ..Problem::default()
    });
    assert_eq!(solution.work.len(), 1);
    assert_eq!(solution.work[0].cell_id, "cell-000");
}

#[test]
fn four_thousand_tasks_balance_over_a_hundred_cells() {
    let solution = solve(Problem {
        cells: (0..100).map(|n| cell(n, ["a", "b"][n % 2])).collect(),
        tasks: (0..4000).map(task).collect(),
        ..Problem::default()
    });
    assert!(solution.work.iter().all(|work| work.tasks.len() == 40));
    assert_eq!(solution.work.len(), 100);
}

fn some_cell() -> impl Strategy<Value = CellState> {
    (
        0..3usize,
        (0..200i32, 0..200i32, 0..6i32),
        prop::collection::vec(0..3usize, 0..4),
        (
            0..3usize,
            0..3i32,
            0..3usize,
            0..2usize,
            0..20i32,
            0..2usize,
        ),
    )
        .prop_map(
            |(zone, free, running, (tasks, starting, tags, drivers, proxy, docker))| {
                let mut cell = cell(0, ["a", "b", "c"][zone]);
                cell.available_resources = Resources {
                    memory_mb: free.0,
                    disk_mb: free.1,
                    containers: free.2,
                };
                cell.total_resources = Resources {
                    memory_mb: 200,
                    disk_mb: 200,
                    containers: 6,
                };
                cell.lrps = running.iter().map(|n| lrp(&format!("p{n}"), 9)).collect();
                cell.tasks = (0..tasks).map(|n| task(format!("old-{n}"))).collect();
                cell.starting_container_count = starting;
                cell.proxy_memory_allocation_mb = proxy;
                match tags {
                    1 => cell.placement_tags = vec!["x".into()],
                    2 => cell.optional_placement_tags = vec!["x".into(), "y".into()],
                    _ => {}
                }
                if drivers == 1 {
                    cell.volume_drivers = vec!["nfs".into()];
                }
                if docker == 1 {
                    cell.root_fs_providers.remove("docker");
                }
                cell
            },
        )
}

fn some_needs() -> impl Strategy<Value = (Placement, Resource)> {
    (0..6usize, 0..4usize, 0..4usize, 1..80i32, 0..80i32).prop_map(
        |(root, tags, drivers, memory_mb, disk_mb)| {
            let root_fs = match root {
                0 => "docker:///x",
                1 => "preloaded:other",
                _ => "preloaded:cflinuxfs4",
            };
            let tags: &[&str] = [&[][..], &["x"], &["x", "y"], &[]][tags];
            let drivers: &[&str] = [&[][..], &[], &["nfs"], &[]][drivers];
            let placement = Placement {
                root_fs: root_fs.into(),
                placement_tags: tags.iter().map(|t| t.to_string()).collect(),
                volume_drivers: drivers.iter().map(|t| t.to_string()).collect(),
            };
            (
                placement,
                Resource {
                    memory_mb,
                    disk_mb,
                    max_pids: 0,
                },
            )
        },
    )
}

fn some_problem() -> impl Strategy<Value = Problem> {
    let lrps = prop::collection::vec((0..3usize, 0..3i32, some_needs()), 0..10);
    let tasks = prop::collection::vec(some_needs(), 0..8);
    let options = (
        0..4u32,
        prop::sample::select(vec![0.0, 0.25]),
        prop::sample::select(vec![0.0, 0.5]),
    );
    (
        prop::collection::vec(some_cell(), 0..6),
        lrps,
        tasks,
        options,
    )
        .prop_map(
            |(mut cells, lrps, tasks, (limit, starting_weight, first_fit_weight))| {
                for (number, cell) in cells.iter_mut().enumerate() {
                    cell.cell_id = format!("cell-{number}");
                    cell.cell_index = (7 * number % 5) as i32;
                }
                let lrps = lrps
                    .into_iter()
                    .map(|(process, index, (placement, resource))| Lrp {
                        placement,
                        resource,
                        ..lrp(&format!("p{process}"), index)
                    });
                let tasks = tasks
                    .into_iter()
                    .enumerate()
                    .map(|(n, (placement, resource))| Task {
                        placement,
                        resource,
                        ..task(n)
                    });
                Problem {
                    lrps: lrps.collect(),
                    tasks: tasks.collect(),
                    cells,
                    options: Options {
                        starting_weight,
                        starting_max: limit * 5,
                        first_fit_weight,
                    },
                }
            },
        )
}

/// Bounds at which every way to a choice is taken.
fn some_bounds() -> impl Strategy<Value = Bounds> {
    (0..3u32, 0..2usize, 0..4usize).prop_map(|(looks, bytes, passed_over)| Bounds {
        cells: 0,
        looks,
        bytes: bytes << 20,
        passed_over,
    })
}

/// Many pieces of few kinds on cells that are much alike, so that scores tie.
fn some_crowd() -> impl Strategy<Value = Problem> {
    let cells = prop::collection::vec((0..3usize, 0..3usize, 0..3i32, 0..2i32), 1..14);
    let lrps = prop::collection::vec((0..3usize, 0..2usize), 0..80);
    let tasks = 0..12usize;
    let weights = prop::sample::select(vec![
        (0.25, 0.0),
        (0.0, 0.0),
        (0.25, 0.5),
        (0.0, 1.0),
        (2000.0, 0.0),
    ]);
    (cells, lrps, tasks, weights).prop_map(|(cells, lrps, tasks, weights)| {
        let cells = cells
            .into_iter()
            .enumerate()
            .map(|(n, (zone, size, starting, free))| {
                let mut cell = cell(n, ["a", "b", "c"][zone]);
                let total = [60, 120, 240][size];
                cell.total_resources.memory_mb = total;
                cell.available_resources.memory_mb = total - 10 * free;
                cell.starting_container_count = starting;
                cell.lrps = (0..free).map(|n| lrp(&format!("p{n}"), 7)).collect();
                cell
            });
        let mut next = HashMap::new();
        let lrps = lrps.into_iter().map(|(process, size)| {
            let index: &mut i32 = next.entry(process).or_default();
            *index += 1;
            Lrp {
                resource: resource([10, 25][size]),
                ..lrp(&format!("p{process}"), *index - 1)
            }
        });
        Problem {
            lrps: lrps.collect(),
            cells: cells.collect(),
            tasks: (0..tasks).map(task).collect(),
            options: Options {
                starting_weight: weights.0,
                first_fit_weight: weights.1,
                ..Options::default()
            },
        }
    })
}

fn solve_within(mut problem: Problem, bounds: Bounds) -> Solution {
    problem.cells.sort_by(|a, b| a.cell_id.cmp(&b.cell_id));
    let Problem {
        cells,
        lrps,
        tasks,
        options,
    } = problem;
    place(&cells, lrps, tasks, options, bounds)
}

proptest! {
    #[test]
    fn agrees_with_the_rules_written_down_directly(
        problem in some_problem(), bounds in some_bounds(),
    ) {
        let rules = naive::solve(problem.clone());
        prop_assert_eq!(solve_within(problem.clone(), bounds), rules.clone());
        prop_assert_eq!(solve(problem), rules);
    }

    #[test]
    fn agrees_with_the_rules_on_crowded_cells(problem in some_crowd(), bounds in some_bounds()) {
        let rules = naive::solve(problem.clone());
        prop_assert_eq!(solve_within(problem.clone(), bounds), rules.clone());
        prop_assert_eq!(solve(problem), rules);
    }

    #[test]
    fn no_cell_gets_more_than_it_has_and_nothing_is_lost(problem in some_problem()) {
        let cells: HashMap<String, CellState> =
            problem.cells.iter().map(|cell| (cell.cell_id.clone(), cell.clone())).collect();
        let solution = solve(problem.clone());
        for work in &solution.work {
            let free = cells[&work.cell_id].available_resources;
            let resources = || {
                let lrps = work.lrps.iter().map(|lrp| lrp.resource);
                lrps.chain(work.tasks.iter().map(|task| task.resource))
            };
            prop_assert!(resources().map(|r| r.memory_mb).sum::<i32>() <= free.memory_mb);
            prop_assert!(resources().map(|r| r.disk_mb).sum::<i32>() <= free.disk_mb);
            prop_assert!(resources().count() as i32 <= free.containers);
        }
        let placed = solution.work.iter().flat_map(|work| work.tasks.clone());
        let failed = solution.failed_tasks.iter().map(|(task, _)| task.clone());
        let mut guids: Vec<String> = placed.chain(failed).map(|task| task.task_guid).collect();
        guids.sort();
        let mut wanted: Vec<String> =
            problem.tasks.into_iter().map(|task| task.task_guid).collect();
        wanted.sort();
        prop_assert_eq!(guids, wanted);
        let placed: usize = solution.work.iter().map(|work| work.lrps.len()).sum();
        prop_assert_eq!(placed + solution.failed_lrps.len(), problem.lrps.len());
    }

    #[test]
    fn equal_cells_are_equally_loaded(cells in 1..12usize, tasks in 0..120usize) {
        let solution = solve(Problem {
            cells: (0..cells).map(|n| cell(n, "a")).collect(),
            tasks: (0..tasks).map(task).collect(),
            ..Problem::default()
        });
        let loads = solution.work.iter().map(|work| work.tasks.len());
        let least = if solution.work.len() < cells { 0 } else { loads.clone().min().unwrap_or(0) };
        prop_assert!(loads.max().unwrap_or(0) - least <= 1);
    }

    #[test]
    fn zones_hold_equal_shares_of_a_process(
        zones in 1..4usize, per_zone in 1..4usize, instances in 1..30i32,
    ) {
        let names = ["a", "b", "c"];
        let solution = solve(Problem {
            cells: (0..zones * per_zone).map(|n| cell(n, names[n % zones])).collect(),
            lrps: (0..instances).map(|index| lrp("p", index)).collect(),
            ..Problem::default()
        });
        let mut shares: HashMap<usize, usize> = (0..zones).map(|zone| (zone, 0)).collect();
        for work in &solution.work {
            let number: usize = work.cell_id[5..].parse().unwrap();
            *shares.entry(number % zones).or_default() += work.lrps.len();
        }
        let (least, most) = (shares.values().min(), shares.values().max());
        prop_assert!(most.unwrap() - least.unwrap() <= 1);
    }
}
