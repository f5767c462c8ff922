//! The auctioneer: its placement is the real one.

use std::collections::BTreeMap;

use diego::{auction, models};

use super::Command;
use super::cell::Work;
use super::event::Event as Happens;
use super::world::World;
use crate::auctioneer::placement::{Options, Problem, UNREACHABLE, solve};
use crate::bbs::model::convergence::Cell;

impl World {
    /// A round: what the auctioneer was given goes to cells, or nowhere. One that died
    /// meanwhile forgets it.
    pub(crate) fn auction(&mut self, work: Vec<Work>) {
        if !self.auctioneer_up {
            return;
        }
        let cells = self.bbs.core.cells(self.now);
        let known = self
            .cells
            .iter()
            .filter(|cell| self.bbs.up && cell.up && cells.status(&cell.id) == Cell::Present);
        let mut problem = Problem {
            cells: known.map(|cell| cell.state()).collect(),
            options: Options::default(),
            ..Problem::default()
        };
        if problem.cells.is_empty() {
            return work
                .into_iter()
                .for_each(|work| self.unplaced(work, UNREACHABLE));
        }
        for work in work {
            match work {
                Work::Lrp(lrp) => problem.lrps.push(lrp),
                Work::Task(task) => problem.tasks.push(task),
            }
        }
        let solution = solve(problem);
        for of in solution.work {
            let cell = self.cells.iter().position(|cell| cell.id == of.cell_id);
            let lrps = of.lrps.into_iter().map(Work::Lrp);
            let work = lrps.chain(of.tasks.into_iter().map(Work::Task));
            for work in work.collect::<Vec<_>>() {
                match cell {
                    Some(cell) if !self.chance(0.05) => {
                        let way = self.way();
                        self.after(way, Happens::Accept { cell, work });
                    }
                    _ => self.unplaced(work, "no answer"),
                }
            }
        }
        let failed = solution.failed_lrps.into_iter();
        let failed: BTreeMap<_, _> = failed
            .map(|(lrp, why)| ((lrp.process_guid.clone(), lrp.index), (lrp, why)))
            .collect();
        for (lrp, why) in failed.into_values() {
            self.unplaced(Work::Lrp(lrp), &why);
        }
        for (task, why) in solution.failed_tasks {
            self.unplaced(Work::Task(task), &why);
        }
    }

    /// The BBS hears that nobody took the work.
    pub(crate) fn unplaced(&mut self, work: Work, why: &str) {
        let command = match work {
            Work::Lrp(lrp) => Command::Fail(models::FailActualLrpRequest {
                actual_lrp_key: Some(models::ActualLrpKey {
                    process_guid: lrp.process_guid,
                    index: lrp.index,
                    domain: lrp.domain,
                }),
                error_message: why.to_owned(),
            }),
            Work::Task(auction::Task { task_guid, .. }) => {
                Command::RejectTask(models::RejectTaskRequest {
                    task_guid,
                    rejection_reason: why.to_owned(),
                })
            }
        };
        self.send(Happens::ToBbs(Box::new(command)));
    }
}
