//! The rules of placement written down once more, as directly as possible and
//! without regard to speed, to compare with.

use std::collections::BTreeMap;

use diego::auction::{CellState, Lrp, Placement, RootFsProvider, Task};

use super::{CellWork, Problem, Solution};

enum Item {
    Lrp(Lrp),
    Task(Task),
}

pub(super) fn solve(problem: Problem) -> Solution {
    let mut cells = problem.cells;
    cells.sort_by(|a, b| a.cell_id.cmp(&b.cell_id));
    let reported: i32 = cells.iter().map(|c| c.starting_container_count).sum();
    let mut lrps = problem.lrps;
    lrps.sort_by(|a, b| {
        a.index
            .cmp(&b.index)
            .then(b.resource.memory_mb.cmp(&a.resource.memory_mb))
    });
    let mut tasks = problem.tasks;
    tasks.sort_by_key(|t| -t.resource.memory_mb);
    let only_first = lrps.iter().all(|l| l.index == 0);
    let (before, after): (Vec<Lrp>, Vec<Lrp>) =
        lrps.into_iter().partition(|l| l.index == 0 && !only_first);
    let items = before
        .into_iter()
        .map(Item::Lrp)
        .chain(tasks.into_iter().map(Item::Task))
        .chain(after.into_iter().map(Item::Lrp));

    let mut work: BTreeMap<String, CellWork> = BTreeMap::new();
    let mut solution = Solution::default();
    let mut placed = 0;
    for item in items {
        let options = problem.options;
        let limited = options.starting_max > 0
            && i64::from(reported) + placed >= i64::from(options.starting_max);
        let choice = if limited {
            Err("waiting to start instance: reached in-flight start limit".to_owned())
        } else {
            choose(
                &cells,
                &item,
                options.starting_weight,
                options.first_fit_weight,
            )
        };
        match (choice, item) {
            (Err(reason), Item::Lrp(lrp)) => solution.failed_lrps.push((lrp, reason)),
            (Err(reason), Item::Task(task)) => solution.failed_tasks.push((task, reason)),
            (Ok(number), item) => {
                placed += 1;
                let cell = &mut cells[number];
                let entry = work.entry(cell.cell_id.clone()).or_default();
                entry.cell_id.clone_from(&cell.cell_id);
                let resource = match item {
                    Item::Lrp(lrp) => {
                        cell.lrps.push(lrp.clone());
                        let resource = lrp.resource;
                        entry.lrps.push(lrp);
                        resource
                    }
                    Item::Task(task) => {
                        cell.tasks.push(task.clone());
                        let resource = task.resource;
                        entry.tasks.push(task);
                        resource
                    }
                };
                cell.available_resources.memory_mb -= resource.memory_mb;
                cell.available_resources.disk_mb -= resource.disk_mb;
                cell.available_resources.containers -= 1;
                cell.starting_container_count += 1;
            }
        }
    }
    solution.work = work.into_values().collect();
    solution
}

fn choose(
    cells: &[CellState],
    item: &Item,
    starting: f64,
    first_fit: f64,
) -> Result<usize, String> {
    let (placement, resource) = match item {
        Item::Lrp(lrp) => (&lrp.placement, lrp.resource),
        Item::Task(task) => (&task.placement, task.resource),
    };
    let zones: BTreeMap<&str, Vec<usize>> =
        cells
            .iter()
            .enumerate()
            .fold(BTreeMap::new(), |mut zones, (number, cell)| {
                zones
                    .entry(cell.zone.as_str())
                    .or_insert_with(Vec::new)
                    .push(number);
                zones
            });
    let mut compatible: Vec<(usize, usize)> = Vec::new();
    let mut reached = 0;
    for members in zones.values() {
        let instances = match item {
            Item::Task(_) => 0,
            Item::Lrp(lrp) => members
                .iter()
                .flat_map(|&n| &cells[n].lrps)
                .filter(|l| l.process_guid == lrp.process_guid)
                .count(),
        };
        let with_root: Vec<usize> = members
            .iter()
            .copied()
            .filter(|&n| root_fs(&cells[n], placement))
            .collect();
        let with_drivers: Vec<usize> = with_root
            .iter()
            .copied()
            .filter(|&n| {
                placement
                    .volume_drivers
                    .iter()
                    .all(|d| cells[n].volume_drivers.contains(d))
            })
            .collect();
        let with_tags: Vec<usize> = with_drivers
            .iter()
            .copied()
            .filter(|&n| tags(&cells[n], placement))
            .collect();
        let zone_reached = if with_root.is_empty() {
            1
        } else if with_drivers.is_empty() {
            2
        } else if with_tags.is_empty() {
            3
        } else {
            4
        };
        reached = reached.max(zone_reached);
        compatible.extend(with_tags.into_iter().map(|n| (instances, n)));
    }
    match reached {
        0 => return Err("unable to communicate to compatible cells".into()),
        1 => return Err("found no compatible cell for required rootfs".into()),
        2 => return Err("found no compatible cell with required volume drivers".into()),
        3 => return Err(tag_text(&placement.placement_tags)),
        _ => {}
    }
    let mut counts: Vec<usize> = compatible.iter().map(|(instances, _)| *instances).collect();
    counts.sort_unstable();
    counts.dedup();
    let mut problems = vec!["containers", "disk", "memory"];
    for count in counts {
        let mut tied: Vec<usize> = compatible
            .iter()
            .filter(|(c, _)| *c == count)
            .map(|(_, n)| *n)
            .collect();
        tied.sort_unstable();
        let mut winner: Option<(f64, usize)> = None;
        for number in tied {
            let cell = &cells[number];
            let free = cell.available_resources;
            let proxy = match item {
                Item::Lrp(_) => cell.proxy_memory_allocation_mb,
                Item::Task(_) => 0,
            };
            let memory = resource.memory_mb + proxy;
            let mut lacking = Vec::new();
            if free.containers < 1 {
                lacking.push("containers");
            }
            if free.disk_mb < resource.disk_mb {
                lacking.push("disk");
            }
            if free.memory_mb < memory {
                lacking.push("memory");
            }
            if !lacking.is_empty() {
                problems.retain(|p| lacking.contains(p));
                continue;
            }
            let total = cell.total_resources;
            let fraction = |left: i32, total: i32| {
                if total > 0 {
                    1.0 - f64::from(left) / f64::from(total)
                } else {
                    0.0
                }
            };
            let mean = (fraction(free.memory_mb - memory, total.memory_mb)
                + fraction(free.disk_mb - resource.disk_mb, total.disk_mb)
                + fraction(free.containers - 1, total.containers))
                / 3.0;
            let base = mean + f64::from(cell.starting_container_count) * starting;
            let score = base
                + match item {
                    Item::Task(_) => 1000.0 * cell.tasks.len() as f64,
                    Item::Lrp(lrp) => {
                        let same = |l: &&Lrp| l.process_guid == lrp.process_guid;
                        let mut zone: Vec<&CellState> =
                            cells.iter().filter(|c| c.zone == cell.zone).collect();
                        zone.sort_by_key(|c| c.cell_index);
                        let rank = zone.iter().position(|c| c.cell_id == cell.cell_id).unwrap();
                        1000.0 * cell.lrps.iter().filter(same).count() as f64
                            + first_fit * rank as f64
                    }
                };
            if winner.is_none_or(|(least, _)| score < least) {
                winner = Some((score, number));
            }
        }
        if let Some((_, number)) = winner {
            return Ok(number);
        }
    }
    if problems.is_empty() {
        return Err("insufficient resources".into());
    }
    Err(format!("insufficient resources: {}", problems.join(", ")))
}

fn root_fs(cell: &CellState, placement: &Placement) -> bool {
    let (scheme, opaque) = placement.root_fs.split_once(':').unwrap_or(("", ""));
    match cell.root_fs_providers.get(scheme) {
        Some(RootFsProvider::Arbitrary) => true,
        Some(RootFsProvider::FixedSet { set }) => set.contains_key(opaque),
        None => false,
    }
}

fn tags(cell: &CellState, placement: &Placement) -> bool {
    let wanted = &placement.placement_tags;
    cell.placement_tags.iter().all(|t| wanted.contains(t))
        && wanted
            .iter()
            .all(|t| cell.placement_tags.contains(t) || cell.optional_placement_tags.contains(t))
}

fn tag_text(tags: &[String]) -> String {
    let quoted: Vec<String> = tags.iter().map(|t| format!("\"{t}\"")).collect();
    match quoted.len() {
        0 => "found no compatible cell with no placement tags".into(),
        1 => format!("found no compatible cell with placement tag {}", quoted[0]),
        n => format!(
            "found no compatible cell with placement tags {} and {}",
            quoted[..n - 1].join(", "),
            quoted[n - 1]
        ),
    }
}
