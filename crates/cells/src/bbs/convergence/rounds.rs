//! The passes: every so often, and at once when a cell is lost.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use commit::View;
use diego::models::actual_lrp::Presence;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use telemetry::{Fields, Logger};
use tokio::sync::Notify;

use super::metrics::{Pass, Passes, name};
use super::{Cells, ConvergenceContext, Judge, Key, Touched, Tracker, keys_on};
use crate::bbs::apply::{Command, Converge, Reply};
use crate::bbs::ledger::{Commands, now_ns};
use crate::bbs::model::convergence::{Action, ConvergenceAges};
use crate::bbs::outbound::Outbound;
use crate::bbs::presence::Presences;
use crate::bbs::state::State;
use crate::mutex::lock;

/// Records judged in one go, while the writer waits, and changed in one command.
const CHUNK: usize = 256;
/// Most cells whose loss is told one by one; of further ones the first whole pass finds out.
const LOST: usize = 65_536;

/// What the writer has changed since the last pass.
pub(crate) struct Touches {
    touched: Mutex<Touched>,
    /// Cells that were lost, by name.
    lost: Mutex<HashSet<String>>,
    bell: Notify,
}

impl Touches {
    /// Everything, as after a start.
    pub(crate) fn all() -> Self {
        Self {
            touched: Mutex::new(Touched::all()),
            lost: Mutex::default(),
            bell: Notify::new(),
        }
    }

    pub(crate) fn add(&self, touched: Touched) {
        lock(&self.touched).add(touched);
    }

    /// These cells are gone: has the next pass begin at once.
    pub(crate) fn ring(&self, gone: impl IntoIterator<Item = String>) {
        let mut lost = lock(&self.lost);
        for cell in gone {
            if lost.len() < LOST {
                lost.insert(cell);
            }
        }
        drop(lost);
        self.bell.notify_one();
    }

    fn take_lost(&self) -> HashSet<String> {
        let mut lost = lock(&self.lost);
        std::mem::take(&mut *lost)
    }

    fn take(&self) -> Touched {
        std::mem::take(&mut *lock(&self.touched))
    }
}

/// What passes need.
pub(crate) struct Convergence {
    pub(crate) state: View<State>,
    pub(crate) commands: Commands,
    pub(crate) presences: Arc<Presences>,
    pub(crate) outbound: Arc<Outbound>,
    pub(crate) touches: Arc<Touches>,
    pub(crate) passes: Arc<Passes>,
    /// Longest time between two passes.
    pub(crate) interval: Duration,
    /// Every so many passes look at all records; 0: only the first one does.
    pub(crate) whole_every: u32,
    /// Time for the cells of before a start to come back.
    pub(crate) cells_within: Duration,
    /// See [`Cells::new`].
    pub(crate) empty_is_lost: bool,
    pub(crate) ages: ConvergenceAges,
    pub(crate) logger: Logger,
}

/// Converges for as long as it is awaited. The first whole pass comes after one interval: until
/// then those that were present before a start may come back. A cell whose loss is seen before
/// that has its own pass.
pub(crate) async fn converge(convergence: Convergence) {
    let mut tracker = Tracker::default();
    let first = tokio::time::sleep(convergence.interval);
    tokio::select! {
        () = first => {}
        () = convergence.see_losses(&mut tracker) => {}
    }
    for number in (0..=u32::MAX).cycle() {
        let every = convergence.whole_every;
        if every > 0 && number % every == 0 {
            convergence.touches.add(Touched::all());
        }
        convergence.pass(&mut tracker).await;
        tokio::select! {
            () = tokio::time::sleep(convergence.interval) => {}
            () = convergence.touches.bell.notified() => {}
        }
    }
}

impl Convergence {
    /// Before the first whole pass: looks at what is on cells that were lost since the start,
    /// and at nothing else. What it calls for is placed, which waits for the cells of before.
    /// Never ends.
    async fn see_losses(&self, tracker: &mut Tracker) {
        tokio::time::sleep(self.cells_within).await;
        let mut lost = HashSet::new();
        loop {
            self.touches.bell.notified().await;
            lost.extend(self.touches.take_lost());
            let start = Instant::now();
            let cells = self.cells(start);
            lost.retain(|cell| cells.is_absent(cell));
            let cells = Arc::new(cells.losing(lost.clone()));
            let keys: BTreeSet<Key> = {
                let state = self.state.read();
                lost.iter().flat_map(|cell| keys_on(&state, cell)).collect()
            };
            let keys: Vec<Key> = keys.into_iter().collect();
            self.act(tracker, &keys, &cells, start).await;
        }
    }

    fn cells(&self, now: Instant) -> Cells {
        let present = self.presences.cells(now);
        let present = present.iter().map(|cell| cell.cell_id.clone()).collect();
        Cells::new(present, self.empty_is_lost)
    }

    async fn pass(&self, tracker: &mut Tracker) {
        let start = Instant::now();
        let cells = Arc::new(self.cells(start));
        // They are not present.
        self.touches.take_lost();
        let touched = self.touches.take();
        let (candidates, stale_domain) = {
            let state = self.state.read();
            let now = now_ns();
            let stale = state.domains.values().any(|expires| *expires <= now);
            (tracker.candidates(&state, touched, &cells, now), stale)
        };
        if stale_domain {
            self.run(Command::PruneDomains).await;
        }
        let keys = candidates.in_order();
        self.act(tracker, &keys, &cells, start).await;
    }

    /// Judges records, and does what is called for.
    async fn act(&self, tracker: &mut Tracker, keys: &[Key], cells: &Arc<Cells>, start: Instant) {
        let mut pass = Pass {
            judged: keys.len(),
            cells: cells.len(),
            ..Pass::default()
        };
        let mut acting = Vec::new();
        for keys in keys.chunks(CHUNK) {
            self.judge(tracker, keys, cells, &mut acting);
            // Others have their turn at the state, and at this thread.
            tokio::task::yield_now().await;
        }
        let found = Instant::now();
        let changes = acting.chunks(CHUNK).map(|keys| async move {
            let _worker = self.outbound.pools().convergence.worker(found).await;
            let request = Converge {
                keys: keys.to_vec(),
                cells: Arc::clone(cells),
                ages: self.ages,
            };
            self.run(Command::Converge(Box::new(request))).await
        });
        let mut changes: FuturesUnordered<_> = changes.collect();
        while let Some(done) = changes.next().await {
            for (action, count) in done {
                *pass.done.entry(action).or_default() += count;
            }
        }
        pass.watched = tracker.watched();
        pass.suspect_cells = self.suspect_cells();
        pass.time = start.elapsed();
        self.log_pass(&pass);
        self.passes.add(pass);
    }

    /// Judges a few records; those that something is to be done about are added.
    fn judge(&self, tracker: &mut Tracker, keys: &[Key], cells: &Cells, acting: &mut Vec<Key>) {
        let mut judge = Judge::default();
        let state = self.state.read();
        let by = ConvergenceContext {
            cells,
            ages: &self.ages,
            now: now_ns(),
        };
        for key in keys {
            let actions = tracker.judge(&mut judge, &state, key, by);
            // A receiver that takes long over a result has not refused it.
            let sent = |action: &Action| matches!(action, Action::Unresolve | Action::CallBack);
            let under_way = match key {
                Key::Task(guid) => actions.iter().any(sent) && self.outbound.is_called_back(guid),
                Key::Index(..) => false,
            };
            if !actions.is_empty() && !under_way {
                acting.push(key.clone());
            }
        }
    }

    /// Tells what was done. What is not done now is found again in the next pass.
    async fn run(&self, command: Command) -> Vec<(Action, usize)> {
        match self.commands.run(command).await {
            Ok(Reply::Converged(done)) => return done.into_iter().collect(),
            Ok(_) => {}
            Err(error) => self.logger.error("failed", &error.message, Fields::new()),
        }
        Vec::new()
    }

    fn suspect_cells(&self) -> usize {
        let state = self.state.read();
        let suspect = |cell: &&std::sync::Arc<str>| {
            let on = state.on_cell(cell);
            on.is_some_and(|on| {
                let mut rows = on.rows.iter();
                rows.any(|(_, (_, presence))| *presence == i32::from(Presence::Suspect))
            })
        };
        let any = state.counts().suspects() > 0;
        if any {
            state.cells().filter(suspect).count()
        } else {
            0
        }
    }

    fn log_pass(&self, pass: &Pass) {
        let mut fields = Fields::new()
            .and("judged", pass.judged)
            .and("cells", pass.cells)
            .and("milliseconds", pass.time.as_millis() as u64);
        for (action, count) in &pass.done {
            fields = fields.and(name(*action), *count);
        }
        // Quiet passes of a quiet system are not worth a line.
        if pass.done.is_empty() {
            self.logger.debug("complete", fields);
        } else {
            self.logger.info("complete", fields);
        }
    }
}
