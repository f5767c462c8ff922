//! What the writer of a routing API does: calls over the rows, the database below, events once a
//! batch is durable.
//!
//! When the connection to the database is lost nobody is served from memory, as another
//! server may have taken over: what is stored is loaded again first.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use commit::{Applied, CommitFailure, Limits, Model, Requests, StoreError};
use telemetry::{Fields, Logger};
use tokio::time::MissedTickBehavior;
use uuid::Builder;

use super::events::Hub;
use super::metrics::Metrics;
use super::model::ApiError;
use super::settings;
use super::state::{Batch, Change, Command, Context, Millis, Reply, State};
use super::store::Store;

/// Bounds of the writer; but for those of a single call, a transaction writes so many rows.
pub(crate) fn limits(within: Duration) -> Limits {
    Limits {
        queue: 1024,
        batch: 256,
        weight: 20_000,
        within: Some(within),
    }
}

/// The way to the writer.
pub(crate) type Commands = Requests<Ledger>;

/// The time, as rows count it.
pub(crate) fn wall_clock() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

/// What the writer owns.
pub(crate) struct Ledger {
    pub(crate) store: Store,
    pub(crate) hub: Arc<Hub>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) logger: Logger,
    /// Longest time to live, in seconds.
    pub(crate) max_ttl: i64,
    /// Time between two attempts to reach a lost database.
    pub(crate) retry_interval: Duration,
    /// When a lost database was last tried.
    pub(crate) tried: Instant,
}

impl commit::Ledger for Ledger {
    type State = State;
    type Request = Command;
    type Reply = Reply;
    type Refusal = ApiError;
    type Changes = Batch;
    type Notifications = Vec<Change>;
    type Error = StoreError;

    fn weight(command: &Command) -> usize {
        command.rows()
    }

    async fn ready(&mut self, model: &Model<State>) -> Result<(), StoreError> {
        if !self.store.lost() {
            return Ok(());
        }
        let out_of_reach = || StoreError::Database {
            doing: "reach",
            cause: "the connection was lost; it is tried again".to_owned(),
        };
        let first = !model.change(|state| std::mem::replace(&mut state.lost, true));
        if first {
            let cause = "the connection to the database was lost";
            self.logger.error("database-lost", &cause, Fields::new());
        } else if self.tried.elapsed() < self.retry_interval {
            return Err(out_of_reach());
        }
        let loaded = self.store.load().await;
        self.tried = Instant::now();
        match loaded {
            Ok(state) => {
                model.change(|known| *known = state);
                // What happened meanwhile nobody can tell them: they have to list again.
                self.hub.cut_off();
                self.logger.info("database-found-again", Fields::new());
                Ok(())
            }
            Err(error) => {
                // One line for each loss, not for each attempt.
                if first {
                    self.logger
                        .error("database-not-found", &error, Fields::new());
                }
                Err(out_of_reach())
            }
        }
    }

    fn apply(&mut self, state: &State, commands: Vec<Command>) -> Applied<Self> {
        let mut batch = Batch::default();
        let mut context = Context {
            now: wall_clock(),
            max_ttl: self.max_ttl,
            guid: &mut || {
                Builder::from_random_bytes(rand::random())
                    .into_uuid()
                    .to_string()
            },
        };
        let answers = commands.into_iter();
        let answers = answers.map(|command| batch.apply(state, command, &mut context));
        let answers = answers.collect();
        Applied {
            answers,
            notifications: std::mem::take(&mut batch.changes),
            changes: (!batch.is_empty()).then_some(batch),
        }
    }

    async fn commit(&mut self, model: &Model<State>, batch: &Batch) -> Result<(), StoreError> {
        let writes = batch.writes(&model.read());
        self.store.commit(&writes).await
    }

    fn merge(state: &mut State, batch: Batch) {
        state.merge(batch);
    }

    fn notify(&mut self, changes: Vec<Change>) {
        Metrics::add(&self.metrics.events, changes.len() as u64);
        let slow = self.hub.publish(&changes);
        if slow > 0 {
            Metrics::add(&self.metrics.slow_subscribers, slow as u64);
            let fields = Fields::new().and("subscribers", slow);
            self.logger.info("slow-consumers-closed", fields);
        }
    }

    fn failed(&mut self, error: &StoreError, calls: usize) {
        let fields = Fields::new().and("calls", calls);
        self.logger.error("commit-failed", error, fields);
    }

    fn refusal(why: CommitFailure<'_, StoreError>) -> ApiError {
        match why {
            CommitFailure::Stopping => ApiError::database("the server is stopping"),
            CommitFailure::Late => ApiError::database("the database did not answer in time"),
            CommitFailure::Failed(error) => ApiError::database(error),
        }
    }
}

/// Removes what expired, and has the writer look for a database that was lost, for ever.
pub(crate) async fn look_after(commands: Commands, limits: settings::Limits) {
    let mut prune = tokio::time::interval(limits.prune_interval);
    let mut look = tokio::time::interval(limits.retry_interval);
    prune.set_missed_tick_behavior(MissedTickBehavior::Delay);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            // What failed is tried again with the next.
            _ = prune.tick() => drop(commands.run(Command::Prune).await),
            _ = look.tick() => commands.tend(|_| ()).await,
        }
    }
}
