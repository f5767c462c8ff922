//! Which cell runs what: plain data in, plain data out.
//!
//! Work is placed piece by piece, each piece on the cell with the lowest score,
//! and each placement changes the cell for the pieces after it. Cells are looked
//! at in order of their ids and the first of equal scores wins, so the same
//! problem always has the same solution.

mod fit;
#[cfg(test)]
mod naive;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::HashMap;

use diego::auction::{CellState, Lrp, Resource, Task};

use fit::{Fits, Stage};

/// No cell could be asked for its state.
pub const UNREACHABLE: &str = "unable to communicate to compatible cells";
/// A cell that looked free refused the work.
pub const REFUSED: &str = "insufficient resources";
const IN_FLIGHT: &str = "waiting to start instance: reached in-flight start limit";

/// Weights and limits of the scoring.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Added to a cell's score for each of its containers that does not run yet.
    pub starting_weight: f64,
    /// Most containers, over all cells, that may be starting; 0: no limit.
    pub starting_max: u32,
    /// Added to a cell's score, for instances, per place of the cell in its zone;
    /// 0 spreads, larger values fill cell after cell.
    pub first_fit_weight: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            starting_weight: 0.25,
            starting_max: 0,
            first_fit_weight: 0.0,
        }
    }
}

/// Work to place and the cells as they are.
#[derive(Debug, Clone, Default)]
pub struct Problem {
    /// States of all cells that may take work; order does not matter.
    pub cells: Vec<CellState>,
    /// Instances to place. Each has its own process guid and index.
    pub lrps: Vec<Lrp>,
    /// Tasks to place.
    pub tasks: Vec<Task>,
    /// Weights and limits.
    pub options: Options,
}

/// What one cell is to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CellWork {
    /// The cell.
    pub cell_id: String,
    /// Instances to start there, in order of placement.
    pub lrps: Vec<Lrp>,
    /// Tasks to start there, in order of placement.
    pub tasks: Vec<Task>,
}

/// Where everything goes. Each piece of work is in exactly one place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Solution {
    /// Work by cell, ordered by cell id; cells that get nothing are left out.
    pub work: Vec<CellWork>,
    /// Instances that fit nowhere, and why.
    pub failed_lrps: Vec<(Lrp, String)>,
    /// Tasks that fit nowhere, and why.
    pub failed_tasks: Vec<(Task, String)>,
}

/// Places all work of `problem`.
pub fn solve(problem: Problem) -> Solution {
    let Problem {
        mut cells,
        mut lrps,
        mut tasks,
        options,
    } = problem;
    cells.sort_by(|a, b| a.cell_id.cmp(&b.cell_id));
    lrps.sort_by_key(|lrp| (lrp.index, Reverse(lrp.resource.memory_mb)));
    tasks.sort_by_key(|task| Reverse(task.resource.memory_mb));
    // First instances go before tasks and further ones after. A batch of first
    // instances alone goes after the tasks: the original does the same.
    let first = lrps.iter().position(|lrp| lrp.index > 0).unwrap_or(0);
    let later = lrps.split_off(first);

    let mut board = Board::new(&cells, options);
    let mut solution = Solution::default();
    let mut work: Vec<CellWork> = cells
        .iter()
        .map(|cell| CellWork {
            cell_id: cell.cell_id.clone(),
            ..CellWork::default()
        })
        .collect();
    let place_lrps = |board: &mut Board, lrps: Vec<Lrp>, work: &mut [CellWork]| {
        let mut failed = Vec::new();
        for lrp in lrps {
            match board.place_lrp(&lrp) {
                Ok(cell) => work[cell].lrps.push(lrp),
                Err(reason) => failed.push((lrp, reason)),
            }
        }
        failed
    };
    solution.failed_lrps = place_lrps(&mut board, lrps, &mut work);
    for task in tasks {
        match board.place_task(&task) {
            Ok(cell) => work[cell].tasks.push(task),
            Err(reason) => solution.failed_tasks.push((task, reason)),
        }
    }
    solution
        .failed_lrps
        .extend(place_lrps(&mut board, later, &mut work));
    work.retain(|cell| !cell.lrps.is_empty() || !cell.tasks.is_empty());
    solution.work = work;
    solution
}

/// What changes about a cell while work is placed.
struct Slot {
    memory: i32,
    disk: i32,
    containers: i32,
    total_memory: f64,
    total_disk: f64,
    total_containers: f64,
    proxy_memory: i32,
    starting: i32,
    tasks: u32,
    zone: usize,
    /// Place within its zone by cell index.
    rank: f64,
}

struct Board<'a> {
    options: Options,
    slots: Vec<Slot>,
    fits: Fits<'a>,
    /// Instances of a process by cell; cells without any are left out.
    spread: HashMap<String, Vec<(usize, u32)>>,
    starting: i64,
    /// Instances by cell and by zone of the process at hand; zero in between.
    local: Vec<u32>,
    zonal: Vec<u32>,
}

/// Resources that every cell so far lacks.
#[derive(Clone, Copy)]
struct Lack {
    containers: bool,
    disk: bool,
    memory: bool,
}

impl Lack {
    const ALL: Self = Self {
        containers: true,
        disk: true,
        memory: true,
    };

    fn text(self) -> String {
        let names: Vec<&str> = [
            (self.containers, "containers"),
            (self.disk, "disk"),
            (self.memory, "memory"),
        ]
        .into_iter()
        .filter_map(|(lacks, name)| lacks.then_some(name))
        .collect();
        if names.is_empty() {
            "insufficient resources".into()
        } else {
            format!("insufficient resources: {}", names.join(", "))
        }
    }
}

impl<'a> Board<'a> {
    fn new(cells: &'a [CellState], options: Options) -> Self {
        let mut zones: HashMap<&str, usize> = HashMap::new();
        let mut members: Vec<Vec<usize>> = Vec::new();
        let mut spread: HashMap<String, Vec<(usize, u32)>> = HashMap::new();
        let mut slots = Vec::with_capacity(cells.len());
        for (number, cell) in cells.iter().enumerate() {
            let zone = *zones.entry(&cell.zone).or_insert(members.len());
            if zone == members.len() {
                members.push(Vec::new());
            }
            members[zone].push(number);
            for lrp in &cell.lrps {
                match spread.get_mut(&lrp.process_guid) {
                    Some(counts) => count(counts, number),
                    None => {
                        spread.insert(lrp.process_guid.clone(), vec![(number, 1)]);
                    }
                }
            }
            slots.push(Slot {
                memory: cell.available_resources.memory_mb,
                disk: cell.available_resources.disk_mb,
                containers: cell.available_resources.containers,
                total_memory: f64::from(cell.total_resources.memory_mb),
                total_disk: f64::from(cell.total_resources.disk_mb),
                total_containers: f64::from(cell.total_resources.containers),
                proxy_memory: cell.proxy_memory_allocation_mb,
                starting: cell.starting_container_count,
                tasks: u32::try_from(cell.tasks.len()).unwrap_or(u32::MAX),
                zone,
                rank: 0.0,
            });
        }
        let zone_count = members.len();
        for mut cells_of_zone in members {
            cells_of_zone.sort_by_key(|&cell| cells[cell].cell_index);
            for (rank, cell) in cells_of_zone.into_iter().enumerate() {
                slots[cell].rank = rank as f64;
            }
        }
        Self {
            options,
            starting: slots.iter().map(|slot| i64::from(slot.starting)).sum(),
            local: vec![0; slots.len()],
            zonal: vec![0; zone_count],
            fits: Fits::new(cells),
            slots,
            spread,
        }
    }

    fn place_lrp(&mut self, lrp: &Lrp) -> Result<usize, String> {
        self.check_starting()?;
        if let Some(counts) = self.spread.get(&lrp.process_guid) {
            for &(cell, count) in counts {
                self.local[cell] = count;
                self.zonal[self.slots[cell].zone] += count;
            }
        }
        let (local, zonal) = (&self.local, &self.zonal);
        let weight = self.options.first_fit_weight;
        let stages = self.fits.stages(&lrp.placement);
        let chosen = choose(&self.slots, stages, self.options, |number, slot| Terms {
            resource: Resource {
                memory_mb: lrp.resource.memory_mb.saturating_add(slot.proxy_memory),
                ..lrp.resource
            },
            in_zone: zonal[slot.zone],
            extra: 1000.0 * f64::from(local[number]) + weight * slot.rank,
        })
        .map_err(|miss| miss.text(&lrp.placement.placement_tags));
        if let Some(counts) = self.spread.get(&lrp.process_guid) {
            for &(cell, _) in counts {
                self.local[cell] = 0;
                self.zonal[self.slots[cell].zone] = 0;
            }
        }
        let cell = chosen?;
        match self.spread.get_mut(&lrp.process_guid) {
            Some(counts) => count(counts, cell),
            None => {
                self.spread
                    .insert(lrp.process_guid.clone(), vec![(cell, 1)]);
            }
        }
        self.reserve(cell, lrp.resource);
        Ok(cell)
    }

    fn place_task(&mut self, task: &Task) -> Result<usize, String> {
        self.check_starting()?;
        let stages = self.fits.stages(&task.placement);
        let cell = choose(&self.slots, stages, self.options, |_, slot| Terms {
            resource: task.resource,
            in_zone: 0,
            extra: 1000.0 * f64::from(slot.tasks),
        })
        .map_err(|miss| miss.text(&task.placement.placement_tags))?;
        self.reserve(cell, task.resource);
        self.slots[cell].tasks += 1;
        Ok(cell)
    }

    fn check_starting(&self) -> Result<(), String> {
        let most = i64::from(self.options.starting_max);
        if most > 0 && self.starting >= most {
            return Err(IN_FLIGHT.into());
        }
        Ok(())
    }

    /// Takes the work's own memory, without its proxy's, as the original does.
    fn reserve(&mut self, cell: usize, resource: Resource) {
        let slot = &mut self.slots[cell];
        slot.memory -= resource.memory_mb;
        slot.disk -= resource.disk_mb;
        slot.containers -= 1;
        slot.starting += 1;
        self.starting += 1;
    }
}

fn count(counts: &mut Vec<(usize, u32)>, cell: usize) {
    match counts.iter_mut().find(|(number, _)| *number == cell) {
        Some((_, count)) => *count += 1,
        None => counts.push((cell, 1)),
    }
}

/// What a piece of work brings to the choice of one cell.
struct Terms {
    resource: Resource,
    /// Instances of the same process in the cell's zone: fewer go first.
    in_zone: u32,
    /// Added to the score.
    extra: f64,
}

/// Why no cell was chosen.
enum Miss {
    Stage(Stage),
    Lack(Lack),
}

impl Miss {
    fn text(&self, tags: &[String]) -> String {
        match self {
            Self::Lack(lack) => lack.text(),
            Self::Stage(stage) => stage.text(tags),
        }
    }
}

fn choose(
    slots: &[Slot],
    stages: &[Stage],
    options: Options,
    terms: impl Fn(usize, &Slot) -> Terms,
) -> Result<usize, Miss> {
    let mut best: Option<(u32, f64, usize)> = None;
    let mut lack = Lack::ALL;
    let mut furthest = None;
    for (number, (slot, stage)) in slots.iter().zip(stages).enumerate() {
        furthest = furthest.max(Some(*stage));
        if *stage != Stage::Fits {
            continue;
        }
        let terms = terms(number, slot);
        let Resource {
            memory_mb, disk_mb, ..
        } = terms.resource;
        let lacks = Lack {
            containers: slot.containers < 1,
            disk: slot.disk < disk_mb,
            memory: slot.memory < memory_mb,
        };
        if lacks.containers || lacks.disk || lacks.memory {
            lack.containers &= lacks.containers;
            lack.disk &= lacks.disk;
            lack.memory &= lacks.memory;
            continue;
        }
        let used = used(slot.memory - memory_mb, slot.total_memory)
            + used(slot.disk - disk_mb, slot.total_disk)
            + used(slot.containers - 1, slot.total_containers);
        let score = used / 3.0 + f64::from(slot.starting) * options.starting_weight + terms.extra;
        let better =
            best.is_none_or(|(in_zone, least, _)| (terms.in_zone, score) < (in_zone, least));
        if better {
            best = Some((terms.in_zone, score, number));
        }
    }
    match (best, furthest) {
        (Some((_, _, cell)), _) => Ok(cell),
        (None, Some(Stage::Fits)) => Err(Miss::Lack(lack)),
        (None, Some(stage)) => Err(Miss::Stage(stage)),
        (None, None) => Err(Miss::Stage(Stage::Unreachable)),
    }
}

/// The used fraction; a cell that claims to have none of a thing uses none.
fn used(remaining: i32, total: f64) -> f64 {
    if total > 0.0 {
        1.0 - f64::from(remaining) / total
    } else {
        0.0
    }
}
