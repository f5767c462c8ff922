//! How evenly work is spread.

use std::ops::Range;

use diego::auction::CellState;
use serde::Serialize;

use super::make::zone;
use super::scenario::{ProcessKind, Scenario};

/// Numbers in short: ranks are those of the sorted numbers, without interpolation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Summary {
    /// The least.
    pub min: f64,
    /// The middle one.
    pub p50: f64,
    /// 99 of 100 are not above it.
    pub p99: f64,
    /// The most.
    pub max: f64,
    /// The mean.
    pub mean: f64,
    /// Standard deviation over mean; 0 when the mean is.
    pub variation: f64,
}

impl Summary {
    /// Of these numbers; all zero without any.
    pub(super) fn of(mut numbers: Vec<f64>) -> Self {
        numbers.sort_unstable_by(f64::total_cmp);
        let count = numbers.len();
        let rank = |share: f64| {
            let rank = (share * count as f64).ceil() as usize;
            numbers.get(rank.max(1) - 1).copied().unwrap_or_default()
        };
        if count == 0 {
            return Self::default();
        }
        let mean = numbers.iter().sum::<f64>() / count as f64;
        let squares = numbers.iter().map(|number| (number - mean).powi(2));
        let deviation = (squares.sum::<f64>() / count as f64).sqrt();
        Self {
            min: numbers[0],
            p50: rank(0.5),
            p99: rank(0.99),
            max: numbers[count - 1],
            mean,
            variation: if mean > 0.0 { deviation / mean } else { 0.0 },
        }
    }
}

/// How evenly processes are spread over zones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ZoneSpread {
    /// Of each process: instances in its fullest zone beyond those in its emptiest one.
    pub difference: Summary,
    /// Processes of which that is more than 1.
    pub uneven: usize,
}

/// Several instances of one process on one cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stacking {
    /// Cells that have several instances of a process.
    pub cells: usize,
    /// Those of them while a cell of the same zone has room and no instance of that process.
    pub cells_beside_free: usize,
    /// The same while such a cell is in another zone, which evens zones out before cells.
    pub cells_beside_free_elsewhere: usize,
}

/// Where an instance is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InstancePlace {
    pub(super) process: u32,
    pub(super) cell: u32,
}

/// Over all processes; sorts the homes.
pub(super) fn of_processes(
    scenario: &Scenario,
    cells: &[CellState],
    processes: &[ProcessKind],
    homes: &mut [InstancePlace],
) -> (ZoneSpread, Stacking) {
    homes.sort_unstable();
    let free = FreeCells::new(scenario, cells);
    let mut differences = Vec::new();
    // By cell: stacked, beside a free one of the zone, beside a free one elsewhere.
    let mut stacked = vec![[false; 3]; cells.len()];
    for homes in homes.chunk_by(|a, b| a.process == b.process) {
        let mut zones = vec![0_u32; scenario.zones as usize];
        for home in homes {
            zones[zone(scenario, home.cell as usize)] += 1;
        }
        let (least, most) = (zones.iter().min(), zones.iter().max());
        differences.push(f64::from(most.unwrap_or(&0) - least.unwrap_or(&0)));
        let several = homes.chunk_by(|a, b| a.cell == b.cell);
        let mut several = several.filter(|homes| homes.len() > 1).peekable();
        if several.peek().is_none() {
            continue;
        }
        let kind = &processes[homes[0].process as usize];
        let taken = |cell: u32| homes.binary_search_by_key(&cell, |home| home.cell).is_ok();
        let has_free: Vec<bool> = (0..zones.len())
            .map(|zone| free.any(cells, zone, kind, taken))
            .collect();
        for homes in several {
            let cell = homes[0].cell as usize;
            let here = zone(scenario, cell);
            let mut others = has_free.iter().enumerate();
            stacked[cell][0] = true;
            stacked[cell][1] |= has_free[here];
            stacked[cell][2] |= others.any(|(zone, free)| zone != here && *free);
        }
    }
    let count = |which: usize| stacked.iter().filter(|cell| cell[which]).count();
    let uneven = differences.iter().filter(|difference| **difference > 1.0);
    (
        ZoneSpread {
            uneven: uneven.count(),
            difference: Summary::of(differences),
        },
        Stacking {
            cells: count(0),
            cells_beside_free: count(1),
            cells_beside_free_elsewhere: count(2),
        },
    )
}

/// Cells by zone, those with the most free memory first.
struct FreeCells {
    cells: Vec<u32>,
    zones: Vec<Range<usize>>,
}

impl FreeCells {
    fn new(scenario: &Scenario, cells: &[CellState]) -> Self {
        let mut ordered = Vec::with_capacity(cells.len());
        let mut zones = Vec::new();
        for wanted in 0..scenario.zones as usize {
            let start = ordered.len();
            let of_zone = (wanted..cells.len()).step_by(scenario.zones as usize);
            ordered.extend(of_zone.map(|cell| cell as u32));
            ordered[start..].sort_by_key(|cell| {
                std::cmp::Reverse(cells[*cell as usize].available_resources.memory_mb)
            });
            zones.push(start..ordered.len());
        }
        Self {
            cells: ordered,
            zones,
        }
    }

    /// Has a cell of the zone that is not taken room for one more?
    fn any(
        &self,
        cells: &[CellState],
        zone: usize,
        kind: &ProcessKind,
        taken: impl Fn(u32) -> bool,
    ) -> bool {
        let free = |cell: u32| cells[cell as usize].available_resources;
        let of_zone = self.cells[self.zones[zone].clone()].iter().copied();
        let mut enough = of_zone.take_while(|cell| free(*cell).memory_mb >= kind.memory_mb);
        enough.any(|cell| {
            let free = free(cell);
            free.disk_mb >= kind.disk_mb && free.containers > 0 && !taken(cell)
        })
    }
}
