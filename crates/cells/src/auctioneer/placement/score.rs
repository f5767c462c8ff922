//! How good a cell is for a piece of work, and the choice by a look at every cell.

use diego::auction::{CellState, Resource};

use super::Options;
use super::fit::Stage;

/// What changes about a cell while work is placed.
pub(super) struct Slot {
    pub(super) memory: i32,
    pub(super) disk: i32,
    pub(super) containers: i32,
    total_memory: f64,
    total_disk: f64,
    total_containers: f64,
    pub(super) proxy_memory: i32,
    pub(super) starting: i32,
    pub(super) tasks: u32,
    pub(super) zone: usize,
    /// Place within its zone by cell index.
    pub(super) rank: f64,
}

impl Slot {
    pub(super) fn new(cell: &CellState, zone: usize) -> Self {
        Self {
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
        }
    }

    /// Takes the work's own memory, without its proxy's, as the original does.
    pub(super) fn reserve(&mut self, resource: Resource) {
        self.memory -= resource.memory_mb;
        self.disk -= resource.disk_mb;
        self.containers -= 1;
        self.starting += 1;
    }
}

/// A piece of work as the score of a cell sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Lrp { memory: i32, disk: i32 },
    Task { memory: i32, disk: i32 },
}

impl Kind {
    /// The score of the cell, which has `local` instances of the process already; `Err`: what it
    /// lacks.
    pub(super) fn score(self, slot: &Slot, local: u32, options: &Options) -> Result<f64, Shortage> {
        let (memory, disk, extra) = match self {
            Self::Lrp { memory, disk } => (
                memory.saturating_add(slot.proxy_memory),
                disk,
                1000.0 * f64::from(local) + options.first_fit_weight * slot.rank,
            ),
            Self::Task { memory, disk } => (memory, disk, 1000.0 * f64::from(slot.tasks)),
        };
        let lack = Shortage {
            containers: slot.containers < 1,
            disk: slot.disk < disk,
            memory: slot.memory < memory,
        };
        if lack.containers || lack.disk || lack.memory {
            return Err(lack);
        }
        let used = used(slot.memory - memory, slot.total_memory)
            + used(slot.disk - disk, slot.total_disk)
            + used(slot.containers - 1, slot.total_containers);
        Ok(used / 3.0 + f64::from(slot.starting) * options.starting_weight + extra)
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

/// Resources that are lacking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shortage {
    containers: bool,
    disk: bool,
    memory: bool,
}

impl Shortage {
    const ALL: Self = Self {
        containers: true,
        disk: true,
        memory: true,
    };

    fn and(self, other: Self) -> Self {
        Self {
            containers: self.containers && other.containers,
            disk: self.disk && other.disk,
            memory: self.memory && other.memory,
        }
    }

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

/// Why no cell was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Miss {
    /// No cell gets further than this.
    Stage(Stage),
    /// What every cell that has what is asked for lacks room of.
    Lack(Shortage),
}

impl Miss {
    pub(super) fn text(self, tags: &[String]) -> String {
        match self {
            Self::Lack(lack) => lack.text(),
            Self::Stage(stage) => stage.text(tags),
        }
    }
}

/// Looks at every cell: fewer instances of the process in its zone go first, then the lower
/// score, then the lower number. `local` and `zonal` are the instances of the process by cell and
/// by zone.
pub(super) fn choose(
    slots: &[Slot],
    stages: &[Stage],
    options: &Options,
    kind: Kind,
    local: &[u32],
    zonal: &[u32],
) -> Result<usize, Miss> {
    let mut best: Option<(u32, f64, usize)> = None;
    let mut lack = Shortage::ALL;
    let mut furthest = None;
    for (number, (slot, stage)) in slots.iter().zip(stages).enumerate() {
        furthest = furthest.max(Some(*stage));
        if *stage != Stage::Fits {
            continue;
        }
        let score = match kind.score(slot, local[number], options) {
            Ok(score) => score,
            Err(lacks) => {
                lack = lack.and(lacks);
                continue;
            }
        };
        let in_zone = zonal[slot.zone];
        let better = best.is_none_or(|(fewest, least, _)| (in_zone, score) < (fewest, least));
        if better {
            best = Some((in_zone, score, number));
        }
    }
    match (best, furthest) {
        (Some((_, _, cell)), _) => Ok(cell),
        (None, Some(Stage::Fits)) => Err(Miss::Lack(lack)),
        (None, Some(stage)) => Err(Miss::Stage(stage)),
        (None, None) => Err(Miss::Stage(Stage::Unreachable)),
    }
}
