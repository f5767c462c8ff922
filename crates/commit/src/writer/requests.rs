//! The way to the writer.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::{Answer, CommitFailure, Ledger};

/// What the writer is given.
pub(super) enum Job<L: Ledger> {
    Do(L::Request, oneshot::Sender<Answer<L>>),
    Tend(Box<dyn FnOnce(&mut L) + Send>),
    Lookup(Lookup<L>),
    Stop,
}

/// Looks something up with the ledger.
type Lookup<L> = Box<dyn for<'l> FnOnce(&'l mut L) -> PendingLookup<'l, ()> + Send>;

/// What is being looked up, on the writer's thread.
pub type PendingLookup<'l, T> = Pin<Box<dyn Future<Output = T> + 'l>>;

/// The way to the writer; cheap to clone.
pub struct Requests<L: Ledger> {
    queue: mpsc::Sender<Job<L>>,
    within: Option<Duration>,
    counters: Arc<Counters>,
}

impl<L: Ledger> Clone for Requests<L> {
    fn clone(&self) -> Self {
        Self::new(self.queue.clone(), self.within, Arc::clone(&self.counters))
    }
}

impl<L: Ledger> std::fmt::Debug for Requests<L> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counts = self.counts();
        formatter.debug_tuple("Requests").field(&counts).finish()
    }
}

impl<L: Ledger> Requests<L> {
    pub(super) fn new(
        queue: mpsc::Sender<Job<L>>,
        within: Option<Duration>,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            queue,
            within,
            counters,
        }
    }

    /// Does a request and returns once it is durable, or was not done.
    ///
    /// # Errors
    /// The ledger's refusal: its own, or that of [`Ledger::refusal`].
    pub async fn run(&self, request: L::Request) -> Answer<L> {
        let (answer, wait) = oneshot::channel();
        let run = async {
            let job = Job::Do(request, answer);
            self.queue.send(job).await.ok()?;
            wait.await.ok()
        };
        let done = match self.within {
            None => run.await,
            Some(within) => match tokio::time::timeout(within, run).await {
                Ok(done) => done,
                Err(_) => return Err(L::refusal(CommitFailure::Late)),
            },
        };
        done.unwrap_or_else(|| Err(L::refusal(CommitFailure::Stopping)))
    }

    /// Does something to the ledger itself, between two batches. Each such call also has the
    /// writer see whether the store is [`ready`](Ledger::ready).
    pub async fn tend(&self, tend: impl FnOnce(&mut L) + Send + 'static) {
        // A writer that is gone keeps nothing to tend.
        let _ = self.queue.send(Job::Tend(Box::new(tend))).await;
    }

    /// Looks something up in the store, between two batches, which wait for it. `None`: the writer
    /// is gone.
    pub async fn look<T: Send + 'static>(
        &self,
        look: impl for<'l> FnOnce(&'l mut L) -> PendingLookup<'l, T> + Send + 'static,
    ) -> Option<T> {
        let (told, hear) = oneshot::channel();
        let look: Lookup<L> = Box::new(move |ledger| {
            Box::pin(async move {
                // Who asked may have gone away.
                let _ = told.send(look(ledger).await);
            })
        });
        self.queue.send(Job::Lookup(look)).await.ok()?;
        hear.await.ok()
    }

    /// Ends the writer once everything before is done.
    pub async fn stop(&self) {
        let _ = self.queue.send(Job::Stop).await;
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        let counters = &self.counters;
        Counts {
            queued: self.queue.max_capacity() - self.queue.capacity(),
            requests: counters.requests.load(Relaxed),
            commits: counters.commits.load(Relaxed),
            failed: counters.failed.load(Relaxed),
            committing: Duration::from_nanos(counters.nanoseconds.load(Relaxed)),
            largest: counters.largest.load(Relaxed),
        }
    }
}

/// What a writer did since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that wait now.
    pub queued: usize,
    /// Requests that were applied.
    pub requests: u64,
    /// Transactions that are durable.
    pub commits: u64,
    /// Transactions that failed.
    pub failed: u64,
    /// Time spent on both kinds of transactions.
    pub committing: Duration,
    /// Requests of the largest batch.
    pub largest: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    requests: AtomicU64,
    commits: AtomicU64,
    failed: AtomicU64,
    nanoseconds: AtomicU64,
    largest: AtomicU64,
}

impl Counters {
    pub(super) fn applied(&self, requests: usize) {
        self.requests.fetch_add(requests as u64, Relaxed);
        self.largest.fetch_max(requests as u64, Relaxed);
    }

    pub(super) fn committed(&self, took: Duration, well: bool) {
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Relaxed);
        let counter = if well { &self.commits } else { &self.failed };
        counter.fetch_add(1, Relaxed);
    }
}
