//! The way back to a database that went away. What is read from memory goes on meanwhile; changes
//! wait for a while, and are refused from then on until it is back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use commit::StoreError;
use commit::postgres::Found;
use net::Shutdown;
use telemetry::{Fields, Logger};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use super::LOOK;
use crate::server::store::Store;

/// Longest wait of a change for the database, counted from its loss.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time between two attempts while changes wait.
const AGAIN: Duration = Duration::from_millis(100);

/// Whether the database is away, for all who would wait for it.
#[derive(Debug)]
pub(crate) struct Absence {
    since: watch::Sender<Option<Instant>>,
    losses: AtomicU64,
}

impl Default for Absence {
    fn default() -> Self {
        Self {
            since: watch::channel(None).0,
            losses: AtomicU64::new(0),
        }
    }
}

impl Absence {
    /// Is it away?
    pub(crate) fn lasts(&self) -> bool {
        self.since.borrow().is_some()
    }

    /// How often it went away.
    pub(crate) fn losses(&self) -> u64 {
        self.losses.load(Relaxed)
    }

    /// Has it been away for longer than a change waits?
    pub(crate) fn is_too_long(&self) -> bool {
        let since = *self.since.borrow();
        since.is_some_and(|since| since.elapsed() >= PATIENCE)
    }

    /// Returns once it has been away for longer than a change waits; never while it is there.
    pub(crate) async fn too_long(&self) {
        let mut since = self.since.subscribe();
        loop {
            let known = *since.borrow_and_update();
            let Some(known) = known else {
                // The sender is here: it cannot be gone.
                let _ = since.changed().await;
                continue;
            };
            if timeout_at(known + PATIENCE, since.changed()).await.is_err() {
                return;
            }
        }
    }

    /// It is away; since when.
    fn begins(&self) -> (Instant, bool) {
        let known = *self.since.borrow();
        if let Some(known) = known {
            return (known, false);
        }
        let now = Instant::now();
        self.losses.fetch_add(1, Relaxed);
        self.since.send_replace(Some(now));
        (now, true)
    }
}

/// Finds the database again.
pub(crate) struct Recovery {
    absence: Arc<Absence>,
    /// A server that is to stop waits no longer.
    stop: Shutdown,
    /// When it is tried again.
    next: Instant,
    logger: Logger,
}

impl Recovery {
    pub(crate) fn new(absence: Arc<Absence>, stop: Shutdown, logger: Logger) -> Self {
        Self {
            absence,
            stop,
            next: Instant::now(),
            logger,
        }
    }

    /// Connects again. While the loss is young it waits for that; later it tries at most once.
    ///
    /// # Errors
    /// The database is still away.
    pub(super) async fn reach(&mut self, store: &mut Store) -> Result<Found, StoreError> {
        let until = self.lost() + PATIENCE;
        loop {
            let young = Instant::now() < until;
            if !young && self.next > Instant::now() {
                return Err(unavailable("it is tried again every half second"));
            }
            match self.attempt(store).await {
                Err(StoreError::Database { .. }) if young => sleep(AGAIN).await,
                done => return done,
            }
        }
    }

    /// Connects again, however long it takes, as the database alone knows what became of a
    /// transaction.
    ///
    /// # Errors
    /// The server is to stop, or the database cannot be used any more.
    pub(super) async fn settle(&mut self, store: &mut Store) -> Result<Found, StoreError> {
        self.lost();
        let mut stop = self.stop.clone();
        let again = async {
            loop {
                match self.attempt(store).await {
                    Err(StoreError::Database { .. }) => sleep(AGAIN).await,
                    done => return done,
                }
            }
        };
        tokio::select! {
            found = again => found,
            () = stop.requested() => Err(unavailable("the server stops")),
        }
    }

    fn lost(&mut self) -> Instant {
        let (since, new) = self.absence.begins();
        if new {
            let cause = "the connection to the database was lost";
            self.logger.error("database-lost", &cause, Fields::new());
        }
        since
    }

    async fn attempt(&mut self, store: &mut Store) -> Result<Found, StoreError> {
        let found = store.connect().await;
        self.next = Instant::now() + LOOK;
        if found.is_ok() {
            let since = self.absence.since.send_replace(None);
            let milliseconds = since.map_or(0, |since| since.elapsed().as_millis());
            let fields = Fields::new().and("milliseconds", milliseconds);
            self.logger.info("database-found-again", fields);
        }
        found
    }
}

fn unavailable(cause: &str) -> StoreError {
    StoreError::Database {
        doing: "reach",
        cause: cause.to_owned(),
    }
}
