//! The one thread that changes anything.
//!
//! It takes what waits as a batch, applies it to a layer over the state, writes the layer
//! in one transaction, and only then makes it visible, tells subscribers and answers. A
//! commit that fails drops the layer: every caller of the batch is told, and nothing
//! happened. When the connection to the database is lost nobody is served from memory, as
//! another server may have taken over: what is stored is loaded anew first.

mod shared;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use telemetry::{Fields, Logger};
use tokio::sync::{mpsc, oneshot};
use tokio::time::MissedTickBehavior;
use uuid::Builder;

use super::events::Hub;
use super::metrics::Metrics;
use super::model::ApiError;
use super::state::{Batch, Command, Context, Millis, Reply, Writes};
use super::store::{Store, StoreError};
pub(crate) use shared::Shared;

/// Calls that may wait; further callers wait to be let in.
const QUEUE: usize = 1024;
/// Most calls in one transaction.
const BATCH: usize = 256;
/// Most rows in one transaction, but for those of a single call.
const BATCH_ROWS: usize = 20_000;

type Answer = Result<Reply, ApiError>;

enum Job {
    Run(Command, oneshot::Sender<Answer>),
    LimitPages(u32),
    Stop,
}

/// The way to the writer; cheap to clone.
#[derive(Clone)]
pub(crate) struct Commands {
    queue: mpsc::Sender<Job>,
    within: Duration,
}

impl Commands {
    /// Does a call and returns once it is durable, or has failed.
    ///
    /// # Errors
    /// What the caller is to be told; a `DBCommunicationError` when the database refused,
    /// took too long, or the server stops.
    pub(crate) async fn run(&self, command: Command) -> Answer {
        let (answer, wait) = oneshot::channel();
        let run = async {
            let gone = || ApiError::database("the server is stopping");
            let job = Job::Run(command, answer);
            self.queue.send(job).await.map_err(|_| gone())?;
            wait.await.map_err(|_| gone())?
        };
        tokio::time::timeout(self.within, run)
            .await
            .unwrap_or_else(|_| Err(ApiError::database("the database did not answer in time")))
    }

    /// Ends the writer once everything before is done.
    pub(crate) async fn stop(&self) {
        let _ = self.queue.send(Job::Stop).await;
    }

    /// Bounds the database; see [`Store::limit_pages`].
    pub(crate) async fn limit_pages(&self, pages: u32) {
        let _ = self.queue.send(Job::LimitPages(pages)).await;
    }

    /// Calls that wait.
    pub(crate) fn queued(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }
}

/// The time, as rows count it.
pub(crate) fn wall_clock() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

/// What the writer works with.
pub(crate) struct Means {
    pub(crate) hub: Arc<Hub>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) logger: Logger,
    pub(crate) max_ttl: i64,
    pub(crate) write_within: Duration,
    pub(crate) prune_interval: Duration,
    pub(crate) retry_interval: Duration,
}

/// A writer that runs.
pub(crate) struct Running {
    pub(crate) commands: Commands,
    pub(crate) state: Shared,
    /// Learns when the thread has ended.
    pub(crate) ended: oneshot::Receiver<()>,
}

/// Starts the thread, and returns once it has loaded what is stored.
///
/// # Errors
/// When the thread cannot be started, or the database cannot be read. A locked database is
/// tried again by the caller.
pub(crate) async fn start<S: Store>(mut store: S, means: Means) -> Result<Running, StoreError> {
    let (queue, jobs) = mpsc::channel(QUEUE);
    let within = means.write_within;
    let (loaded, load) = oneshot::channel();
    let (alive, ended) = oneshot::channel::<()>();
    let failed = |cause: String| StoreError::Database {
        doing: "start the thread of",
        cause,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| failed(error.to_string()))?;
    std::thread::Builder::new()
        .name("api-writer".into())
        .spawn(move || {
            let _alive = alive;
            runtime.block_on(net::local(async move {
                let state = match store.load().await {
                    Ok(state) => Shared::new(state),
                    Err(error) => return drop(loaded.send(Err(error))),
                };
                if loaded.send(Ok(state.clone())).is_ok() {
                    let writer = Writer {
                        store,
                        state,
                        means,
                        tried: Instant::now(),
                    };
                    writer.run(jobs).await;
                }
            }));
        })
        .map_err(|error| failed(error.to_string()))?;
    let state = load
        .await
        .map_err(|_| failed("it ended at once".to_owned()))??;
    Ok(Running {
        commands: Commands { queue, within },
        state,
        ended,
    })
}

struct Writer<S> {
    store: S,
    state: Shared,
    means: Means,
    /// When a lost database was last tried.
    tried: Instant,
}

impl<S: Store> Writer<S> {
    async fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        let mut prune = tokio::time::interval(self.means.prune_interval);
        let mut look = tokio::time::interval(self.means.retry_interval);
        prune.set_missed_tick_behavior(MissedTickBehavior::Delay);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut waiting = Vec::with_capacity(BATCH);
        let mut stop = false;
        while !stop {
            let first = tokio::select! {
                biased;
                _ = prune.tick() => {
                    self.prune().await;
                    continue;
                }
                _ = look.tick() => {
                    self.recover().await;
                    continue;
                }
                job = jobs.recv() => job.unwrap_or(Job::Stop),
            };
            let (mut next, mut rows) = (Some(first), 0);
            while let Some(job) = next {
                match job {
                    Job::Stop => stop = true,
                    Job::LimitPages(pages) => self.store.limit_pages(pages),
                    Job::Run(command, answer) => {
                        rows += command.rows();
                        waiting.push((command, answer));
                    }
                }
                let room = waiting.len() < BATCH && rows < BATCH_ROWS && !stop;
                next = room.then(|| jobs.try_recv().ok()).flatten();
            }
            self.work(&mut waiting).await;
        }
    }

    async fn prune(&mut self) {
        let (answer, _) = oneshot::channel();
        self.work(&mut vec![(Command::Prune, answer)]).await;
    }

    /// Does what waits as one transaction.
    async fn work(&mut self, waiting: &mut Vec<(Command, oneshot::Sender<Answer>)>) {
        if waiting.is_empty() {
            return;
        }
        self.recover().await;
        if self.store.lost() {
            for (_, answer) in waiting.drain(..) {
                let _ = answer.send(Err(ApiError::database("the database is out of reach")));
            }
            return;
        }
        let mut batch = Batch::default();
        let mut answers = Vec::with_capacity(waiting.len());
        let mut context = Context {
            now: wall_clock(),
            max_ttl: self.means.max_ttl,
            guid: &mut || {
                Builder::from_random_bytes(rand::random())
                    .into_uuid()
                    .to_string()
            },
        };
        let writes = {
            let state = self.state.look();
            for (command, answer) in waiting.drain(..) {
                let done = batch.apply(&state, command, &mut context);
                answers.push((done, answer));
            }
            batch.writes(&state)
        };
        let failed = if batch.is_empty() {
            None
        } else {
            self.commit(batch, &writes).await.err()
        };
        for (done, answer) in answers {
            let done = match (&failed, done) {
                (Some(error), Ok(_)) => Err(ApiError::database(error)),
                (_, done) => done,
            };
            // A caller that went away does not want to know.
            let _ = answer.send(done);
        }
    }

    async fn commit(&mut self, batch: Batch, writes: &Writes) -> Result<(), StoreError> {
        let metrics = &self.means.metrics;
        let start = Instant::now();
        let result = self.store.commit(writes).await;
        Metrics::time(&metrics.commit_nanoseconds, start.elapsed());
        Metrics::add(&metrics.commits, 1);
        if let Err(error) = result {
            Metrics::add(&metrics.failed_commits, 1);
            self.means
                .logger
                .error("commit-failed", &error, Fields::new());
            return Err(error);
        }
        let changes = self.state.change(|state| state.merge(batch));
        Metrics::add(&metrics.events, changes.len() as u64);
        let slow = self.means.hub.publish(&changes);
        if slow > 0 {
            Metrics::add(&metrics.slow_subscribers, slow as u64);
            let fields = Fields::new().and("subscribers", slow);
            self.means.logger.info("slow-consumers-closed", fields);
        }
        Ok(())
    }

    /// Loads everything anew if the database was lost and is there again.
    async fn recover(&mut self) {
        if !self.store.lost() {
            return;
        }
        let logger = &self.means.logger;
        let first = self.state.set_current(false);
        if first {
            let cause = "the connection to the database was lost";
            logger.error("database-lost", &cause, Fields::new());
        } else if self.tried.elapsed() < self.means.retry_interval {
            return;
        }
        let loaded = self.store.load().await;
        self.tried = Instant::now();
        match loaded {
            Ok(state) => {
                self.state.change(|known| *known = state);
                self.state.set_current(true);
                // What happened meanwhile nobody can tell them: they have to list again.
                self.means.hub.cut_off();
                logger.info("database-found-again", Fields::new());
            }
            // One line for each loss, not for each attempt.
            Err(error) if first => logger.error("database-not-found", &error, Fields::new()),
            Err(_) => {}
        }
    }
}
