//! Cells and work of a scenario.

use std::collections::BTreeSet;

use diego::auction::{CellState, Lrp, Placement, Resource, Resources, RootFsProvider};
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use super::scenario::{Order, ProcessKind, Scenario};

const STACK: &str = "cflinuxfs4";

/// One instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// Number of its process.
    pub(super) process: u32,
    pub(super) index: u32,
}

/// Work of a scenario.
pub(super) struct Work {
    /// The kind of each process, by its number.
    pub(super) processes: Vec<ProcessKind>,
    /// In the order in which they are asked for.
    pub(super) pieces: Vec<Piece>,
}

/// Empty cells in order of their ids, whose order is that of their numbers.
pub(super) fn cells(scenario: &Scenario) -> Vec<CellState> {
    let provider = RootFsProvider::fixed(&BTreeSet::from([STACK.to_owned()]));
    let kinds = scenario.cells.iter();
    let kinds = kinds.flat_map(|kind| std::iter::repeat_n(kind, kind.count as usize));
    let cell = |(number, kind): (usize, &super::CellKind)| {
        let total = Resources {
            memory_mb: kind.memory_mb,
            disk_mb: kind.disk_mb,
            containers: kind.containers,
        };
        CellState {
            cell_id: format!("cell-{number:06}"),
            cell_index: i32::try_from(number).unwrap_or(i32::MAX),
            zone: format!("z{}", zone(scenario, number) + 1),
            root_fs_providers: [("preloaded".to_owned(), provider.clone())].into(),
            available_resources: total,
            total_resources: total,
            ..CellState::default()
        }
    };
    kinds.enumerate().map(cell).collect()
}

/// Number of the zone of a cell.
pub(super) fn zone(scenario: &Scenario, cell: usize) -> usize {
    cell % scenario.zones as usize
}

/// The number of a cell by its id.
pub(super) fn cell_number(id: &str) -> usize {
    number(id)
}

fn number(name: &str) -> usize {
    let digits = name.rsplit('-').next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// Draws processes until there are as many instances as are wanted.
pub(super) fn work(scenario: &Scenario) -> Work {
    let mut random = StdRng::seed_from_u64(scenario.seed);
    let parts: u64 = scenario
        .processes
        .iter()
        .map(|kind| u64::from(kind.parts))
        .sum();
    let mut work = Work {
        processes: Vec::new(),
        pieces: Vec::with_capacity(scenario.instances as usize),
    };
    let mut left = scenario.instances;
    while left > 0 {
        let mut part = random.random_range(0..parts);
        let mut kinds = scenario.processes.iter();
        let kind = kinds.find(|kind| {
            let parts = u64::from(kind.parts);
            let hit = part < parts;
            part = part.saturating_sub(parts);
            hit
        });
        let Some(kind) = kind else { break };
        let instances = random.random_range(kind.least..=kind.most).min(left);
        let process = u32::try_from(work.processes.len()).unwrap_or(u32::MAX);
        work.processes.push(*kind);
        let pieces = (0..instances).map(|index| Piece { process, index });
        work.pieces.extend(pieces);
        left -= instances;
    }
    if scenario.order == Order::Mixed {
        work.pieces.shuffle(&mut random);
    }
    work
}

impl Work {
    /// The instance as the auction has it.
    pub(super) fn lrp(&self, piece: Piece) -> Lrp {
        let kind = &self.processes[piece.process as usize];
        Lrp {
            index: i32::try_from(piece.index).unwrap_or(i32::MAX),
            domain: "simulated".to_owned(),
            placement: Placement {
                root_fs: format!("preloaded:{STACK}"),
                ..Placement::default()
            },
            resource: Resource {
                memory_mb: kind.memory_mb,
                disk_mb: kind.disk_mb,
                max_pids: 0,
            },
            ..running(piece.process)
        }
    }

    /// Which instance it is.
    pub(super) fn piece(lrp: &Lrp) -> Piece {
        Piece {
            process: u32::try_from(number(&lrp.process_guid)).unwrap_or(u32::MAX),
            index: u32::try_from(lrp.index).unwrap_or(0),
        }
    }
}

/// An instance as far as the state of its cell must tell of it.
pub(super) fn running(process: u32) -> Lrp {
    Lrp {
        process_guid: format!("process-{process}"),
        ..Lrp::default()
    }
}
