//! Turns changes into what threads see: the table applies them, and each port that is
//! different then gets its new routes, opens or closes.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use telemetry::{Fields, Logger};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::names::Names;
use crate::tcp::Change;
use crate::tcp::engine::{Engine, Port};
use crate::tcp::table::{Effects, Table};

/// Changes that are applied before ports are looked at.
const BATCH: usize = 1024;

/// How often what time does is looked after.
#[derive(Debug, Clone, Copy)]
pub(super) struct Intervals {
    pub(super) prune: Duration,
    pub(super) bind_again: Duration,
}

/// What others may see of the routes.
#[derive(Debug, Default)]
pub(super) struct Shown {
    pub(super) routes: AtomicU64,
    pub(super) backends: AtomicU64,
    pub(super) changes: AtomicU64,
    /// Nanoseconds of the process's clock when a feed last told something.
    pub(super) told_at: AtomicU64,
    pub(super) skipped: AtomicU64,
    pub(super) pruned: AtomicU64,
    ports: Mutex<BTreeMap<u16, Opened>>,
}

/// A port that should be open.
#[derive(Debug, Clone)]
pub(super) struct Opened {
    pub(super) port: Arc<Port>,
    /// Whether it is.
    pub(super) open: bool,
}

impl Shown {
    /// The ports as they are now.
    pub(super) fn ports(&self) -> Vec<Opened> {
        self.locked().values().cloned().collect()
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, BTreeMap<u16, Opened>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See the module.
pub(super) struct Control {
    table: Table,
    engine: Arc<Engine>,
    /// Whether a feed lists all mappings again and again.
    listed: bool,
    shown: Arc<Shown>,
    /// Ports that were closed. Threads may still accept on one, or have connections of it: one that
    /// opens again is the same for them.
    closed: HashMap<u16, Weak<Port>>,
    names: Names,
    logger: Logger,
}

impl Control {
    pub(super) fn new(table: Table, engine: Arc<Engine>, listed: bool, logger: Logger) -> Self {
        Self {
            table,
            engine,
            listed,
            shown: Arc::default(),
            closed: HashMap::new(),
            names: Names::new(logger.clone()),
            logger,
        }
    }

    pub(super) fn shown(&self) -> Arc<Shown> {
        Arc::clone(&self.shown)
    }

    /// Follows changes and time until `closed`.
    pub(super) async fn run(
        mut self,
        mut changes: mpsc::Receiver<Change>,
        mut closed: watch::Receiver<bool>,
        rhythm: Intervals,
    ) {
        let every = |pause: Duration| {
            let pause = pause.max(Duration::from_millis(1));
            let mut ticks = interval_at(Instant::now() + pause, pause);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        };
        let (mut prune, mut bind) = (every(rhythm.prune), every(rhythm.bind_again));
        let (mut batch, mut fed) = (Vec::with_capacity(BATCH), true);
        loop {
            tokio::select! {
                _ = closed.wait_for(|closed| *closed) => return,
                count = changes.recv_many(&mut batch, BATCH), if fed => {
                    fed = count > 0;
                    if !fed {
                        self.logger.info("feed-ended", Fields::new());
                    }
                    self.apply(batch.drain(..));
                }
                _ = prune.tick() => self.prune(),
                _ = bind.tick() => self.bind_again(),
            }
        }
    }

    fn apply(&mut self, changes: impl Iterator<Item = Change>) {
        let now = wire::clock::now();
        self.shown.told_at.store(now, Relaxed);
        let mut effects = Effects::default();
        for change in changes {
            self.shown.changes.fetch_add(1, Relaxed);
            self.table.apply(change, now, &mut effects);
        }
        for skipped in &effects.skipped {
            self.shown.skipped.fetch_add(1, Relaxed);
            let fields = Fields::new()
                .and("port", skipped.port)
                .and("backend", &skipped.backend);
            self.logger.error("mapping-skipped", &skipped.cause, fields);
        }
        self.publish(&effects);
        if effects.names {
            self.names.find(self.table.named_backends());
        }
    }

    fn prune(&mut self) {
        let mut effects = Effects::default();
        // While the routing API is away nobody could refresh a mapping there: that it is old
        // says nothing of its backend.
        let now = match self.listed {
            true => self.shown.told_at.load(Relaxed),
            false => wire::clock::now(),
        };
        self.table.prune(now, &mut effects);
        if effects.pruned > 0 {
            self.shown.pruned.fetch_add(effects.pruned as u64, Relaxed);
            let fields = Fields::new().and("backends", effects.pruned);
            self.logger.info("pruned", fields);
        }
        self.publish(&effects);
        self.closed.retain(|_, port| port.strong_count() > 0);
        // Addresses of names change.
        self.names.find(self.table.named_backends());
    }

    fn publish(&mut self, effects: &Effects) {
        let mut ports = self.shown.locked();
        for number in &effects.ports {
            match (self.table.port(*number), ports.get(number)) {
                (Some(routes), Some(opened)) => opened.port.set_routes(routes),
                (Some(routes), None) => {
                    let closed = self.closed.remove(number);
                    let port = match closed.and_then(|port| port.upgrade()) {
                        Some(port) => {
                            port.set_routes(routes);
                            port
                        }
                        None => Port::new(*number, routes),
                    };
                    let open = self.open(&port, true);
                    ports.insert(*number, Opened { port, open });
                }
                (None, Some(opened)) => {
                    // What still waits in the kernel's queue finds no backend.
                    opened.port.set_routes(Default::default());
                    if opened.open {
                        self.engine.close(*number);
                        let fields = Fields::new().and("port", number);
                        self.logger.info("port-closed", fields);
                    }
                    let closed = Arc::downgrade(&opened.port);
                    self.closed.insert(*number, closed);
                    ports.remove(number);
                }
                (None, None) => {}
            }
        }
        drop(ports);
        let (routes, backends) = (self.table.routes(), self.table.backends());
        self.shown.routes.store(routes as u64, Relaxed);
        self.shown.backends.store(backends as u64, Relaxed);
    }

    fn bind_again(&mut self) {
        for (number, opened) in self.shown.locked().iter_mut() {
            if !opened.open {
                opened.open = self.open(&opened.port, false);
                debug_assert_eq!(*number, opened.port.number());
            }
        }
    }

    /// Opens a port, and says whether it is. Others are not held up by one that is taken.
    fn open(&self, port: &Arc<Port>, first: bool) -> bool {
        let fields = Fields::new().and("port", port.number());
        match self.engine.open(port) {
            Ok(()) => {
                self.logger.info("port-opened", fields);
                true
            }
            Err(error) => {
                // Once for each port: it is tried again every few seconds.
                if first {
                    let cause = format!("{error}; expected a port that no other process has");
                    self.logger.error("port-not-opened", &cause, fields);
                }
                false
            }
        }
    }
}
