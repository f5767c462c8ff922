//! Which cell runs what: plain data in, plain data out.
//!
//! Work is placed piece by piece, each piece on the cell with the lowest score,
//! and each placement changes the cell for the pieces after it. Cells are looked
//! at in order of their ids and the first of equal scores wins, so the same
//! problem always has the same solution.
//!
//! Work comes in few kinds: sizes and needs that many pieces share. For a kind that is asked for
//! again and again the cells stand in a tournament tree by their score, which is renewed for those
//! cells alone that took work since, so that a piece costs the logarithm of the number of cells.

mod board;
mod fit;
#[cfg(test)]
mod naive;
mod score;
mod score_tree;
mod spread;
#[cfg(test)]
mod tests;
mod tree_cache;

use std::cmp::Reverse;

use diego::auction::{CellState, Lrp, Task};

use board::Board;
use tree_cache::Bounds;

/// No cell could be asked for its state.
pub const UNREACHABLE: &str = "unable to communicate to compatible cells";
/// A cell that looked free refused the work.
pub const REFUSED: &str = "insufficient resources";

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
        lrps,
        tasks,
        options,
    } = problem;
    cells.sort_by(|a, b| a.cell_id.cmp(&b.cell_id));
    place(&cells, lrps, tasks, options, Bounds::default())
}

/// Places work on cells that stand in order of their ids; as [`solve`], without taking them.
pub(crate) fn place_on(
    cells: &[CellState],
    lrps: Vec<Lrp>,
    tasks: Vec<Task>,
    options: Options,
) -> Solution {
    place(cells, lrps, tasks, options, Bounds::default())
}

fn place(
    cells: &[CellState],
    mut lrps: Vec<Lrp>,
    mut tasks: Vec<Task>,
    options: Options,
    bounds: Bounds,
) -> Solution {
    lrps.sort_by_key(|lrp| (lrp.index, Reverse(lrp.resource.memory_mb)));
    tasks.sort_by_key(|task| Reverse(task.resource.memory_mb));
    // First instances go before tasks and further ones after. A batch of first
    // instances alone goes after the tasks: the original does the same.
    let first = lrps.iter().position(|lrp| lrp.index > 0).unwrap_or(0);

    let mut board = Board::new(cells, &lrps, options, bounds);
    let later = lrps.split_off(first);
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
