//! The one thread that changes anything.
//!
//! It takes what waits as a batch, applies it to a layer over the state, writes the
//! layer in one transaction, and only then makes it visible, publishes events and
//! answers. A commit that fails drops the layer: memory and disk stay as they
//! were, and every caller of the batch is told.

use std::sync::mpsc::SyncSender;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use diego::error::{Type, with_text};
use diego::models::Error;
use telemetry::{Fields, Logger};
use tokio::sync::{mpsc, oneshot};
use uuid::Builder;

use super::apply::{Change, Command, Reply, Transaction, Work};
use super::events::Hub;
use super::metrics::Metrics;
use super::model::Context;
use super::outbound::Outbound;
use super::state::{Batch, Names, NextIds, State};
use super::store::Store;

/// Commands that may wait; further callers wait to be let in.
const QUEUE: usize = 4096;
/// Most commands in one transaction.
const BATCH: usize = 512;

type Answer = Result<Reply, Error>;

struct Envelope {
    command: Command,
    answer: oneshot::Sender<Answer>,
}

/// The way to the writer; cheap to clone.
#[derive(Clone)]
pub(crate) struct Commands(mpsc::Sender<Envelope>);

impl Commands {
    /// Does the command and returns once it is durable, or has failed.
    ///
    /// # Errors
    /// The protocol's error; UnknownError when the disk refused or the writer is gone.
    pub(crate) async fn run(&self, command: Command) -> Result<Reply, Error> {
        let gone = || with_text(Type::UnknownError, "the BBS is shutting down");
        let (answer, wait) = oneshot::channel();
        let envelope = Envelope { command, answer };
        self.0.send(envelope).await.map_err(|_| gone())?;
        wait.await.map_err(|_| gone())?
    }

    /// Commands that wait.
    pub(crate) fn queued(&self) -> usize {
        self.0.max_capacity() - self.0.capacity()
    }
}

/// The state that readers see.
#[derive(Clone, Default)]
pub(crate) struct Shared(Arc<RwLock<State>>);

impl Shared {
    pub(crate) fn new(state: State) -> Self {
        Self(Arc::new(RwLock::new(state)))
    }

    /// Everything that is durable. The guard must be short-lived: the writer waits for it.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the writer owns.
pub(crate) struct Writer {
    pub(crate) store: Store,
    pub(crate) state: Shared,
    pub(crate) names: Names,
    pub(crate) next: NextIds,
    pub(crate) hub: Arc<Hub>,
    pub(crate) changes: SyncSender<Vec<Change>>,
    pub(crate) outbound: Outbound,
    pub(crate) task_retries_max: i32,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) logger: Logger,
    /// For lines about tasks that became durable.
    pub(crate) desire_task: Logger,
}

/// A queue of commands.
pub(crate) fn queue() -> (Commands, CommandQueue) {
    let (sender, queue) = mpsc::channel(QUEUE);
    (Commands(sender), CommandQueue(queue))
}

/// The writer's end of the queue.
pub(crate) struct CommandQueue(mpsc::Receiver<Envelope>);

impl Writer {
    /// Starts the thread. It ends after [`Command::Stop`], or when every [`Commands`]
    /// is gone; the receiver then learns of it.
    pub(crate) fn start(self, queue: CommandQueue) -> std::io::Result<oneshot::Receiver<()>> {
        let (alive, ended) = oneshot::channel();
        std::thread::Builder::new()
            .name("bbs-writer".into())
            .spawn(move || {
                let _alive: oneshot::Sender<()> = alive;
                self.run(queue.0);
            })?;
        Ok(ended)
    }

    fn run(mut self, mut queue: mpsc::Receiver<Envelope>) {
        let mut batch = Vec::with_capacity(BATCH);
        let mut stop = false;
        while !stop && let Some(first) = queue.blocking_recv() {
            batch.push(first);
            while batch.len() < BATCH
                && let Ok(next) = queue.try_recv()
            {
                batch.push(next);
            }
            stop = batch
                .iter()
                .any(|envelope| matches!(envelope.command, Command::Stop));
            self.metrics
                .largest_batch
                .fetch_max(batch.len() as u64, std::sync::atomic::Ordering::Relaxed);
            self.write(&mut batch);
        }
    }

    fn write(&mut self, batch: &mut Vec<Envelope>) {
        let shared = self.state.clone();
        let state = shared.read();
        let mut new_guid = guid_v4;
        let mut transaction = Transaction {
            batch: Batch::new(&state, &mut self.names, &mut self.next),
            context: Context {
                now: 0,
                new_guid: &mut new_guid,
            },
            task_retries_max: self.task_retries_max,
            watched: self.hub.watched(),
            changes: Vec::new(),
            work: Vec::new(),
        };
        let mut answers = Vec::with_capacity(batch.len());
        let mut limit = None;
        for Envelope { command, answer } in batch.drain(..) {
            Metrics::count(&self.metrics.commands);
            if let Command::LimitPages(pages) = command {
                limit = Some(pages);
            }
            transaction.context.now = now_ns();
            answers.push((answer, transaction.apply(command)));
        }
        let Transaction {
            batch,
            changes,
            work,
            ..
        } = transaction;
        let overlay = batch.into_overlay();
        if let Some(pages) = limit
            && let Err(error) = self.store.limit_pages(pages)
        {
            self.logger
                .error("failed-to-limit-pages", &error, Fields::new());
        }
        if !overlay.is_empty() {
            let start = Instant::now();
            let committed = self.store.commit(&state, &overlay);
            Metrics::time(&self.metrics.commit_nanoseconds, start.elapsed());
            if let Err(error) = committed {
                drop(state);
                self.refuse(answers, &error);
                return;
            }
            Metrics::count(&self.metrics.commits);
            drop(state);
            let mut state = self.state.0.write().unwrap_or_else(PoisonError::into_inner);
            state.merge(overlay);
        }
        if !changes.is_empty() {
            // An error means that the thread is gone: nobody listens.
            let _ = self.changes.send(changes);
        }
        for (answer, reply) in answers {
            // The caller may have gone away.
            let _ = answer.send(reply);
        }
        for work in work {
            if let Work::PlaceTask(task) = &work {
                // Here, and not where the call is answered, so that the line stands
                // before those of the auction that follows.
                let fields = Fields::new().and("task-guid", &task.task_guid);
                self.desire_task.info("succeeded-persisting-task", fields);
            }
            self.outbound.dispatch(work);
        }
    }

    fn refuse(&self, answers: Vec<(oneshot::Sender<Answer>, Answer)>, error: &rusqlite::Error) {
        Metrics::count(&self.metrics.failed_commits);
        let fields = Fields::new().and("commands", answers.len());
        self.logger.error("failed-to-commit", error, fields);
        // Also commands that were refused: what they saw may have been of this batch.
        for (answer, _) in answers {
            let text = format!("the change was not stored: {error}");
            let _ = answer.send(Err(with_text(Type::UnknownError, text)));
        }
    }
}

fn now_ns() -> i64 {
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
