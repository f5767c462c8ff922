//! The one thread that changes anything.

mod batch;
pub(crate) mod requests;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

use crate::model::{Model, View};
use batch::Writer;
use requests::{Counters, Requests};

/// What is kept, and how: the rules of one kind of state and the disk below it.
///
/// All of it runs on the writer's thread, one call after the other.
pub trait Ledger: Sized + 'static {
    /// All that is durable, as readers see it.
    type State: Send + Sync + 'static;
    /// Something to be done to the state.
    type Request: Send + 'static;
    /// What a request answers once its batch is durable.
    type Reply: Send + 'static;
    /// Why a request was not done.
    type Refusal: Send + 'static;
    /// Changes over a state that are not durable yet.
    type Changes;
    /// What others are to learn once the changes are durable.
    type Notifications;
    /// Why the disk or the database refused.
    type Error;

    /// How much a request adds to a batch; see [`Limits::weight`].
    fn weight(_request: &Self::Request) -> usize {
        1
    }

    /// Called before each batch, with which it may wait: is the store there? A refused batch
    /// is not applied. Here a store that was lost is loaded again into the model.
    ///
    /// # Errors
    /// While the store is out of reach; every request of the batch is told.
    fn ready(
        &mut self,
        _model: &Model<Self::State>,
    ) -> impl Future<Output = Result<(), Self::Error>> {
        std::future::ready(Ok(()))
    }

    /// Looks up in the store what [`apply`](Self::apply) needs for these requests beside the state;
    /// in one flight for all of them. A refused batch is not applied.
    ///
    /// # Errors
    /// When the store cannot be read; every request of the batch is told.
    fn look_up(
        &mut self,
        _model: &Model<Self::State>,
        _requests: &[Self::Request],
    ) -> impl Future<Output = Result<(), Self::Error>> {
        std::future::ready(Ok(()))
    }

    /// Does requests one after the other, each on top of what those before it did. One that
    /// is refused has changed nothing.
    fn apply(&mut self, state: &Self::State, requests: Vec<Self::Request>) -> Applied<Self>;

    /// Writes changes over the model's state in one transaction.
    ///
    /// # Errors
    /// When they are not, or may not be, durable.
    fn commit(
        &mut self,
        model: &Model<Self::State>,
        changes: &Self::Changes,
    ) -> impl Future<Output = Result<(), Self::Error>>;

    /// Makes durable changes part of the state.
    fn merge(state: &mut Self::State, changes: Self::Changes);

    /// Tells others; before the requests are answered.
    fn notify(&mut self, notifications: Self::Notifications);

    /// A commit of so many requests failed. They are being refused; this is for the log.
    fn failed(&mut self, _error: &Self::Error, _requests: usize) {}

    /// What a request is told that was not done.
    fn refusal(why: CommitFailure<'_, Self::Error>) -> Self::Refusal;
}

/// What a request is answered.
pub type Answer<L> = Result<<L as Ledger>::Reply, <L as Ledger>::Refusal>;

/// What became of the requests of a batch.
pub struct Applied<L: Ledger> {
    /// An answer for each, in their order.
    pub answers: Vec<Answer<L>>,
    /// What is to be made durable; `None`: nothing changed.
    pub changes: Option<L::Changes>,
    /// What others are to learn, also where nothing changed.
    pub notifications: L::Notifications,
}

/// Why a request was not done, or may not have been.
#[derive(Debug)]
pub enum CommitFailure<'a, E> {
    /// The writer is gone or going.
    Stopping,
    /// It took longer than [`Limits::within`]. It may still be done.
    Late,
    /// The store is out of reach, or the commit failed.
    Failed(&'a E),
}

/// Bounds of a writer.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Requests that may wait; further callers wait to be let in.
    pub queue: usize,
    /// Most requests in one transaction.
    pub batch: usize,
    /// A batch takes no further request once those in it weigh this much.
    pub weight: usize,
    /// Longest that a caller waits, the wait to be let in included; `None`: as long as it takes.
    pub within: Option<Duration>,
}

/// A writer that runs.
pub struct Started<L: Ledger> {
    /// The way to it.
    pub requests: Requests<L>,
    /// What it keeps.
    pub view: View<L::State>,
    /// Learns when the thread has ended.
    pub ended: oneshot::Receiver<()>,
}

/// Why a writer cannot start.
#[derive(Debug)]
pub enum StartError<E> {
    /// There is no thread for it.
    Thread(std::io::Error),
    /// What is to be kept could not be opened.
    Open(E),
}

impl<E> StartError<E> {
    /// The error of who opens, among whose kinds `thread` says that there is no thread.
    pub fn into_error(self, thread: impl FnOnce(std::io::Error) -> E) -> E {
        match self {
            Self::Thread(error) => thread(error),
            Self::Open(error) => error,
        }
    }
}

/// Starts the thread `name`, opens there what is to be kept, and returns once that is loaded.
/// The thread ends after [`Requests::stop`], or when every [`Requests`] is gone.
///
/// `runtime` is a current-thread one that has what the ledger awaits; a ledger that awaits
/// nothing is woken faster by one without I/O and time.
///
/// # Errors
/// When the thread cannot be started, or what `open` says.
pub async fn start<L, E, F>(
    name: &str,
    runtime: Runtime,
    limits: Limits,
    open: impl FnOnce() -> F + Send + 'static,
) -> Result<Started<L>, StartError<E>>
where
    L: Ledger,
    E: Send + 'static,
    F: Future<Output = Result<(L, L::State), E>>,
{
    let (queue, jobs) = mpsc::channel(limits.queue);
    let counters = Arc::new(Counters::default());
    let counted = Arc::clone(&counters);
    let (mut opened, opening) = oneshot::channel();
    let (alive, ended) = oneshot::channel::<()>();
    let thread = move || {
        runtime.block_on(async move {
            let _alive = alive;
            let ready = tokio::select! {
                ready = open() => ready,
                // Nobody waits for it any more.
                () = opened.closed() => return,
            };
            let (ledger, state) = match ready {
                Ok(ready) => ready,
                Err(error) => return drop(opened.send(Err(error))),
            };
            let model = Model::new(state);
            if opened.send(Ok(model.view())).is_ok() {
                let writer = Writer::new(ledger, model, limits, counted);
                writer.run(jobs).await;
            }
        });
    };
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(thread)
        .map_err(StartError::Thread)?;
    let at_once = || StartError::Thread(std::io::Error::other("it ended at once"));
    let view = opening.await.map_err(|_| at_once())?;
    Ok(Started {
        requests: Requests::new(queue, limits.within, counters),
        view: view.map_err(StartError::Open)?,
        ended,
    })
}
