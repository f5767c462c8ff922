//! Rounds of placement, each on the cells as the ones before left them.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use diego::auction::CellState;

use super::evenness::{self, InstancePlace, Summary};
use super::make::{self, Piece, Work};
use super::scenario::Scenario;
use super::{Outcome, Reason, Round, Time};
use crate::auctioneer::placement::{Solution, place_on};

/// The cells, and everything that is noted of rounds.
struct Auction<'a, C> {
    scenario: &'a Scenario,
    work: Work,
    cells: Vec<CellState>,
    /// Cells that got containers, with their number, by round; those that are starting still.
    starting: VecDeque<Vec<(usize, i32)>>,
    homes: Vec<InstancePlace>,
    rounds: Vec<Round>,
    times: Vec<f64>,
    processor_time: C,
}

pub(super) fn run(scenario: &Scenario, processor_time: impl FnMut() -> Duration) -> Outcome {
    let work = make::work(scenario);
    let mut auction = Auction {
        scenario,
        cells: make::cells(scenario),
        homes: Vec::with_capacity(work.pieces.len()),
        work,
        starting: VecDeque::new(),
        rounds: Vec::new(),
        times: Vec::new(),
        processor_time,
    };
    let mut pieces = std::mem::take(&mut auction.work.pieces);
    let mut reasons = HashMap::new();
    for attempt in 0..=scenario.retries {
        let batch = match scenario.batch {
            0 => pieces.len(),
            batch => batch as usize,
        };
        reasons.clear();
        let mut refused = Vec::new();
        for batch in pieces.chunks(batch.max(1)) {
            for (piece, reason) in auction.round(batch, attempt > 0) {
                *reasons.entry(reason).or_insert(0) += 1;
                refused.push(piece);
            }
        }
        pieces = refused;
        if pieces.is_empty() {
            break;
        }
    }
    auction.outcome(reasons)
}

impl<C: FnMut() -> Duration> Auction<'_, C> {
    /// Places instances; returns those that were refused, with the reason.
    fn round(&mut self, pieces: &[Piece], again: bool) -> Vec<(Piece, String)> {
        let lrps: Vec<_> = pieces.iter().map(|piece| self.work.lrp(*piece)).collect();
        let before = (self.processor_time)();
        let solution = place_on(&self.cells, lrps, Vec::new(), self.scenario.options);
        let time = (self.processor_time)().saturating_sub(before);
        let Solution {
            work, failed_lrps, ..
        } = solution;
        self.times.push(time.as_secs_f64());
        self.rounds.push(Round {
            asked: pieces.len(),
            again: if again { pieces.len() } else { 0 },
            placed: pieces.len() - failed_lrps.len(),
        });
        let mut started = Vec::new();
        for of_cell in work {
            let number = make::cell_number(&of_cell.cell_id);
            let cell = &mut self.cells[number];
            started.push((number, of_cell.lrps.len() as i32));
            for lrp in of_cell.lrps {
                let piece = Work::piece(&lrp);
                cell.available_resources.memory_mb -= lrp.resource.memory_mb;
                cell.available_resources.disk_mb -= lrp.resource.disk_mb;
                cell.available_resources.containers -= 1;
                cell.lrps.push(make::running(piece.process));
                self.homes.push(InstancePlace {
                    process: piece.process,
                    cell: number as u32,
                });
            }
        }
        self.start(started);
        let failed = failed_lrps.into_iter();
        failed
            .map(|(lrp, reason)| (Work::piece(&lrp), reason))
            .collect()
    }

    /// These containers are starting now; those that had their time run.
    fn start(&mut self, started: Vec<(usize, i32)>) {
        for (cell, count) in &started {
            self.cells[*cell].starting_container_count += count;
        }
        self.starting.push_back(started);
        while self.starting.len() > self.scenario.starting_rounds as usize {
            for (cell, count) in self.starting.pop_front().unwrap_or_default() {
                self.cells[cell].starting_container_count -= count;
            }
        }
    }

    fn outcome(mut self, reasons: HashMap<String, usize>) -> Outcome {
        let mut reasons: Vec<Reason> = reasons
            .into_iter()
            .map(|(text, instances)| Reason { text, instances })
            .collect();
        reasons.sort_by(|a, b| (b.instances, &a.text).cmp(&(a.instances, &b.text)));
        let used = |free: i32, total: i32| 1.0 - f64::from(free) / f64::from(total);
        let by_cell: Vec<(f64, u32)> = self
            .cells
            .iter()
            .map(|cell| {
                let (free, total) = (cell.available_resources, cell.total_resources);
                let containers = total.containers - free.containers;
                (used(free.memory_mb, total.memory_mb), containers as u32)
            })
            .collect();
        let disk = self.cells.iter().map(|cell| {
            let (free, total) = (cell.available_resources, cell.total_resources);
            used(free.disk_mb, total.disk_mb)
        });
        let asked: usize = self.rounds.iter().map(|round| round.asked).sum();
        let total: f64 = self.times.iter().sum();
        let (zones, stacking) = evenness::of_processes(
            self.scenario,
            &self.cells,
            &self.work.processes,
            &mut self.homes,
        );
        Outcome {
            scenario: self.scenario.clone(),
            cells: self.cells.len(),
            processes: self.work.processes.len(),
            instances: self.scenario.instances as usize,
            placed: self.homes.len(),
            refused: reasons.iter().map(|reason| reason.instances).sum(),
            reasons,
            memory: Summary::of(by_cell.iter().map(|cell| cell.0).collect()),
            disk: Summary::of(disk.collect()),
            containers: Summary::of(by_cell.iter().map(|cell| f64::from(cell.1)).collect()),
            zones,
            stacking,
            time: Time {
                total,
                per_instance_us: total * 1e6 / (asked.max(1) as f64),
                round: Summary::of(self.times.clone()),
                rounds: self.times,
            },
            rounds: self.rounds,
            by_cell,
        }
    }
}
