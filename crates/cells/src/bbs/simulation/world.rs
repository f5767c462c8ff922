//! The clock, the network and the faults.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::bbs::Bbs;
use super::cell::Cell;
use super::client::Client;
use super::core::SECOND;
use super::event::{Entry, Event, Who};
use crate::rep::container::{Answer, Event as Happens};

pub(super) const MS: i64 = SECOND / 1000;
/// Longest way of a message: less than anybody waits for an answer.
const WAY_MOST: i64 = 2 * SECOND;
pub(super) const TIMEOUT: i64 = 5 * SECOND;
const CELLS: usize = 4;
/// How long things fail, and how long they may take to come about after that: the longest
/// wait after a crash, and what surrounds it.
const CHAOS: i64 = 240 * SECOND;
const PATIENCE: i64 = 2400 * SECOND;

pub(crate) struct World {
    pub(crate) now: i64,
    pub(crate) rng: StdRng,
    queue: BinaryHeap<Reverse<Entry>>,
    events: u64,
    pub(crate) cells: Vec<Cell>,
    /// Cells that no message reaches or leaves.
    pub(super) cut_off: [bool; CELLS],
    pub(crate) auctioneer_up: bool,
    pub(crate) bbs: Bbs,
    pub(crate) client: Client,
}

/// Runs a simulation, whose BBS converges or does not. Panics when something does not hold that
/// must at any time.
///
/// # Errors
/// What has not come about in the end.
pub(crate) fn run(seed: u64, converges: bool) -> Result<(), String> {
    let mut world = World::new(seed);
    world.bbs.converges = converges;
    while let Some(Reverse(Entry(at, _, event))) = world.queue.pop() {
        world.now = at;
        if matches!(event, Event::Watch) {
            if world.over() {
                return Ok(());
            }
            if world.now > CHAOS + PATIENCE {
                return Err(world.difference().unwrap_or_default());
            }
            world.after(15 * SECOND, Event::Watch);
        } else {
            world.handle(event);
        }
    }
    Err("nothing happens any more".to_owned())
}

impl World {
    fn new(seed: u64) -> Self {
        let mut world = Self {
            now: SECOND,
            rng: StdRng::seed_from_u64(seed),
            queue: BinaryHeap::new(),
            events: 0,
            cells: (0..CELLS).map(Cell::new).collect(),
            cut_off: [false; CELLS],
            auctioneer_up: true,
            bbs: Bbs::new(),
            client: Client::default(),
        };
        for cell in 0..CELLS {
            world.boot(cell);
        }
        world.boot_bbs();
        world.after(SECOND, Event::Client(super::client::Event::Next));
        world.after(10 * SECOND, Event::Fault);
        world.after(CHAOS, Event::Watch);
        world
    }

    /// Things may fail still.
    pub(crate) fn chaos(&self) -> bool {
        self.now < CHAOS
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.chaos() && self.rng.random_bool(probability)
    }

    pub(crate) fn after(&mut self, delay: i64, event: Event) {
        self.events += 1;
        let entry = Entry(self.now + delay, self.events, event);
        self.queue.push(Reverse(entry));
    }

    /// Sends a message, which may be late or not arrive.
    pub(crate) fn send(&mut self, event: Event) {
        if !self.chance(0.05) {
            let way = self.way();
            self.after(way, event);
        }
    }

    pub(crate) fn way(&mut self) -> i64 {
        let most = if self.chance(0.1) { WAY_MOST } else { 20 * MS };
        self.rng.random_range(MS..most)
    }

    /// The same message again, at times.
    pub(super) fn doubled(&mut self, event: impl Fn() -> Event) {
        self.send(event());
        if self.chance(0.05) {
            self.send(event());
        }
    }

    fn boot(&mut self, number: usize) {
        let cell = &mut self.cells[number];
        cell.up = true;
        let of = (number, cell.incarnation);
        self.after(MS, Event::Beat { cell: of });
        let first = self.rng.random_range(SECOND..30 * SECOND);
        self.after(first, Event::Bulk { cell: of });
    }

    /// The cell, unless it was killed since, or nothing reaches it.
    pub(super) fn cell(&mut self, of: (usize, u64)) -> Option<&mut Cell> {
        let cell = &mut self.cells[of.0];
        (cell.up && cell.incarnation == of.1).then_some(cell)
    }

    pub(super) fn reaches(&self, of: (usize, u64)) -> bool {
        !self.cut_off[of.0] && self.cells[of.0].up && self.cells[of.0].incarnation == of.1
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Call {
                from,
                guid,
                call,
                what,
            } => self.call(from, guid, call, &what),
            Event::Answer {
                to,
                guid,
                call,
                answer,
            } => {
                // A time-out is no message.
                if self.reaches(to) || answer == Answer::Failed {
                    let wanted = self.cell(to).map(|cell| cell.answer(&guid, call, answer));
                    self.perform(to, wanted.unwrap_or_default());
                }
            }
            Event::Container { at, guid, event } => {
                let wanted = self.cell(at).map(|cell| cell.feed(&guid, event));
                self.perform(at, wanted.unwrap_or_default());
            }
            Event::Beat { cell } => self.beat(cell),
            Event::Heartbeat { from } => {
                if self.bbs.up && self.reaches(from) {
                    let (id, owner) = (self.cells[from.0].id.clone(), self.cells[from.0].owner());
                    let held = self.bbs.core.heartbeat(&id, &owner, self.now).is_ok();
                    self.send(Event::Held { to: from, held });
                }
            }
            Event::Held { to, held } => {
                if self.reaches(to) {
                    self.cells[to.0].held = held;
                }
            }
            Event::Bulk { cell } => self.bulk(cell),
            Event::Records {
                to,
                before,
                rows,
                tasks,
            } => self.compare(to, &before, &rows, &tasks),
            Event::ToBbs(command) => {
                if self.bbs.up {
                    // Nobody waits for the answer.
                    let _ = self.command(*command);
                }
            }
            Event::Accept { cell, work } => self.accept(cell, work),
            Event::Stop { cell, guid } => {
                let of = (cell, self.cells[cell].incarnation);
                if self.reaches(of) {
                    let wanted = self.cells[cell].feed(&guid, Happens::Stop);
                    self.perform(of, wanted);
                }
            }
            Event::Auction(work) => self.auction(work),
            Event::Bbs(event) => self.happen_bbs(event),
            Event::Client(event) => self.happen_client(event),
            Event::Fault => self.fault(),
            Event::Up(who) => self.up(who),
            Event::Watch => {}
        }
    }

    fn fault(&mut self) {
        if !self.chaos() {
            return;
        }
        let number = self.rng.random_range(0..CELLS);
        let who = match self.rng.random_range(0..7) {
            0 | 1 => Who::Cell(number),
            2 | 3 => Who::Network(number),
            4 => Who::Auctioneer,
            _ => Who::Bbs,
        };
        match who {
            Who::Cell(number) => self.cells[number].kill(),
            Who::Network(number) => self.cut_off[number] = true,
            Who::Auctioneer => self.auctioneer_up = false,
            Who::Bbs => self.kill_bbs(),
        }
        let down = self.rng.random_range(SECOND..60 * SECOND);
        self.after(down, Event::Up(who));
        let next = self.rng.random_range(SECOND..30 * SECOND);
        self.after(next, Event::Fault);
    }

    fn up(&mut self, who: Who) {
        match who {
            Who::Cell(number) if !self.cells[number].up => self.boot(number),
            Who::Cell(_) => {}
            Who::Network(number) => self.cut_off[number] = false,
            Who::Auctioneer => self.auctioneer_up = true,
            Who::Bbs if !self.bbs.up => self.boot_bbs(),
            Who::Bbs => {}
        }
    }

    /// Has all of it come about?
    fn over(&self) -> bool {
        self.client.is_done() && self.difference().is_none()
    }

    /// What is not as it should be.
    fn difference(&self) -> Option<String> {
        let state = &self.bbs.core.state;
        let mut running = BTreeMap::new();
        for cell in self.cells.iter() {
            for (process, index, guid) in cell.running() {
                let at = (process.to_owned(), index);
                let at = running.insert(at, (cell.id.clone(), guid.to_owned()));
                if let Some(other) = at {
                    return Some(format!("{process}/{index} runs as {guid} and as {other:?}"));
                }
            }
        }
        let mut wanted = 0;
        for (process, instances) in self.client.desired() {
            for index in 0..instances {
                wanted += 1;
                let slot = self.bbs.core.slot(process, index);
                let rows: Vec<_> = slot.rows().collect();
                let runs = running.get(&(process.to_owned(), index));
                let [row] = &rows[..] else {
                    return Some(format!("{process}/{index}: {rows:?}"));
                };
                let key = row.actual_lrp_instance_key.clone().unwrap_or_default();
                let (cell, guid) = runs.cloned().unwrap_or_default();
                let same = (key.cell_id, key.instance_guid) == (cell, guid);
                if row.state != "RUNNING" || row.presence != 0 || !same {
                    return Some(format!("{process}/{index}: {row:?}, runs: {runs:?}"));
                }
            }
        }
        let rows: usize = state
            .processes
            .values()
            .map(|process| process.actual.len())
            .sum();
        let containers: usize = self.cells.iter().map(|cell| cell.containers.len()).sum();
        if (rows, containers) != (wanted, wanted) {
            return Some(format!(
                "{rows} records and {containers} containers, {wanted} wanted"
            ));
        }
        let left = state.tasks.keys().next();
        left.map(|guid| format!("task {guid} is left"))
            .or_else(|| self.client.unreported_task())
    }
}
