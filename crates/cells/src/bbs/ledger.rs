//! What the writer of a BBS does: commands over the records, a database below, events and calls
//! to others once a batch is durable.
//!
//! A database that went away is not missed while nothing changes: what is in memory is what it
//! has, unless it says otherwise when it is back.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use commit::postgres::Found;
use commit::{Applied, CommitFailure, Limits, Model, Requests, StoreError};
use diego::error::{Type, with_text};
use diego::models::Error;
use telemetry::{Fields, Logger};
use tokio::sync::Notify;
use uuid::Builder;

use super::apply::{Change, Command, Reply, Transaction, Work};
use super::convergence::{Touched, Touches};
use super::events::Hub;
use super::model::Context;
use super::outbound::Outbound;
use super::recovery::Recovery;
use super::state::{Batch, Names, NextIds, Overlay, State};
use super::store::{Store, Writes};

/// Bounds of the writer.
pub(crate) const LIMITS: Limits = Limits {
    queue: 4096,
    batch: 512,
    weight: usize::MAX,
    within: None,
};

/// Longest wait of a caller where the database may go away: for it, and for a transaction.
const WITHIN: Duration = Duration::from_secs(30);
/// Times that a batch is written whose transactions end with the connection: it may be what ends
/// them.
const TRIES: usize = 3;
/// Time between two looks whether the database is there.
const LOOK: Duration = Duration::from_millis(500);

/// Bounds of the writer to a database that may go away.
pub(crate) const REMOTE_LIMITS: Limits = Limits {
    within: Some(WITHIN),
    ..LIMITS
};

/// Has the writer look for the database, for ever.
pub(crate) async fn look_after(commands: Commands) {
    loop {
        tokio::time::sleep(LOOK).await;
        commands.tend(|_| ()).await;
    }
}

/// The way to the writer.
pub(crate) type Commands = Requests<Ledger>;

/// What the writer owns.
pub(crate) struct Ledger {
    pub(crate) store: Store,
    pub(crate) recovery: Recovery,
    /// The database has something else than the memory.
    pub(crate) stale: bool,
    /// Told when another BBS has the database.
    pub(crate) displaced: Arc<Notify>,
    pub(crate) names: Names,
    pub(crate) next: NextIds,
    pub(crate) hub: Arc<Hub>,
    pub(crate) changes: SyncSender<Vec<Change>>,
    pub(crate) outbound: Arc<Outbound>,
    pub(crate) touches: Arc<Touches>,
    pub(crate) task_retries_max: i32,
    pub(crate) logger: Logger,
    /// For lines about tasks that became durable.
    pub(crate) desire_task: Logger,
}

/// What others learn of a batch.
pub(crate) struct Notifications {
    changes: Vec<Change>,
    work: Vec<Work>,
    touched: Touched,
}

impl commit::Ledger for Ledger {
    type State = State;
    type Request = Command;
    type Reply = Reply;
    type Refusal = Error;
    type Changes = Overlay;
    type Notifications = Notifications;
    type Error = StoreError;

    async fn ready(&mut self, model: &Model<State>) -> Result<(), StoreError> {
        if self.store.lost() {
            self.reach().await?;
        }
        if self.stale {
            self.load_again(model).await?;
        }
        Ok(())
    }

    fn apply(&mut self, state: &State, commands: Vec<Command>) -> Applied<Self> {
        let mut new_guid = guid_v4;
        let mut transaction = Transaction {
            batch: Batch::new(state, &mut self.names, &mut self.next),
            context: Context {
                now: 0,
                new_guid: &mut new_guid,
            },
            task_retries_max: self.task_retries_max,
            watched: self.hub.watched(),
            changes: Vec::new(),
            work: Vec::new(),
        };
        let answers = commands.into_iter().map(|command| {
            transaction.context.now = now_ns();
            transaction.apply(command)
        });
        let answers = answers.collect();
        let Transaction {
            batch,
            changes,
            work,
            ..
        } = transaction;
        let overlay = batch.into_overlay();
        let touched = Touched::of(&overlay);
        Applied {
            answers,
            changes: (!overlay.is_empty()).then_some(overlay),
            notifications: Notifications {
                changes,
                work,
                touched,
            },
        }
    }

    async fn commit(&mut self, model: &Model<State>, overlay: &Overlay) -> Result<(), StoreError> {
        let mut tries = 0;
        loop {
            let writes = Writes::of(&model.read(), overlay);
            let committed = self.store.commit(writes).await;
            let Err(error) = committed else {
                return Ok(());
            };
            tries += 1;
            if !self.store.lost() || tries >= TRIES {
                return Err(error);
            }
            let found = self.reach().await;
            match found.map_err(|_| unsure(&error))? {
                // It did not take place: once more.
                Found::AsLeft => {}
                Found::Done => {
                    self.stale = false;
                    return Ok(());
                }
                _ => return Err(error),
            }
        }
    }

    fn merge(state: &mut State, overlay: Overlay) {
        state.merge(overlay);
    }

    fn notify(&mut self, notifications: Notifications) {
        self.touches.add(notifications.touched);
        if !notifications.changes.is_empty() {
            // An error means that the thread is gone: nobody listens.
            let _ = self.changes.send(notifications.changes);
        }
        for work in notifications.work {
            if let Work::PlaceTask(guid) = &work {
                // Here, and not where the call is answered, so that the line stands
                // before those of the auction that follows.
                let fields = Fields::new().and("task-guid", guid);
                self.desire_task.info("succeeded-persisting-task", fields);
            }
            self.outbound.dispatch(work);
        }
    }

    fn failed(&mut self, error: &StoreError, commands: usize) {
        let fields = Fields::new().and("commands", commands);
        self.logger.error("failed-to-commit", error, fields);
    }

    fn refusal(why: CommitFailure<'_, StoreError>) -> Error {
        let text = match why {
            CommitFailure::Stopping => "the BBS is shutting down".to_owned(),
            CommitFailure::Late => "the change was not stored in time".to_owned(),
            CommitFailure::Failed(error) => format!("the change was not stored: {error}"),
        };
        with_text(Type::UnknownError, text)
    }
}

impl Ledger {
    /// Connects again.
    async fn reach(&mut self) -> Result<Found, StoreError> {
        let found = self.recovery.reach(&mut self.store).await;
        match &found {
            Ok(Found::AsLeft) => {}
            // Its callers were told that it may not be stored.
            Ok(Found::Done) => self.stale = true,
            Ok(Found::Behind) => {
                let cause = "transactions that were confirmed are not there any more";
                self.logger.error("database-behind", &cause, Fields::new());
                self.stale = true;
            }
            Ok(Found::First | Found::Others) => {
                self.stale = true;
                self.displaced.notify_one();
            }
            Err(StoreError::Locked { .. }) => self.displaced.notify_one(),
            Err(_) => {}
        }
        found
    }

    /// Takes what the database has for what is.
    async fn load_again(&mut self, model: &Model<State>) -> Result<(), StoreError> {
        let loaded = self.store.load(&mut self.names).await;
        let (state, next) = loaded.inspect_err(|error| {
            self.logger
                .error("loading-again-failed", error, Fields::new());
        })?;
        self.next = next;
        model.change(|known| *known = state);
        self.stale = false;
        self.touches.add(Touched::all());
        // What happened meanwhile nobody can tell them: they have to list again.
        self.hub.cut_off();
        self.logger.info("loaded-again", Fields::new());
        Ok(())
    }
}

/// The connection broke while a transaction was under way.
fn unsure(error: &StoreError) -> StoreError {
    StoreError::Database {
        doing: "hear from",
        cause: format!("{error}; it may have been stored all the same"),
    }
}

/// The time in ns since 1970.
pub(crate) fn now_ns() -> i64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}

/// A random guid in its text form.
fn guid_v4() -> String {
    Builder::from_random_bytes(rand::random())
        .into_uuid()
        .to_string()
}
