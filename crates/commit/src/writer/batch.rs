//! From what waits to what is durable.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};

use super::requests::{Counters, Job};
use super::{Answer, Applied, CommitFailure, Ledger, Limits};
use crate::model::Model;

/// A request with the one that waits for its answer.
pub(super) type Waiting<L> = (<L as Ledger>::Request, oneshot::Sender<Answer<L>>);

/// What the thread works with.
pub(super) struct Writer<L: Ledger> {
    pub(super) ledger: L,
    pub(super) model: Model<L::State>,
    limits: Limits,
    counters: Arc<Counters>,
}

impl<L: Ledger> Writer<L> {
    pub(super) fn new(
        ledger: L,
        model: Model<L::State>,
        limits: Limits,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            ledger,
            model,
            limits,
            counters,
        }
    }

    /// Works until it is told to stop, or nobody is left who could ask for anything.
    pub(super) async fn run(mut self, mut jobs: mpsc::Receiver<Job<L>>) {
        let mut waiting = Vec::with_capacity(self.limits.batch);
        let mut stop = false;
        while !stop && let Some(first) = jobs.recv().await {
            let (mut next, mut weight) = (Some(first), 0);
            while let Some(job) = next {
                match job {
                    Job::Do(request, caller) => {
                        weight += L::weight(&request);
                        waiting.push((request, caller));
                    }
                    Job::Tend(tend) => tend(&mut self.ledger),
                    Job::Lookup(look) => look(&mut self.ledger).await,
                    Job::Stop => stop = true,
                }
                let Limits {
                    batch,
                    weight: most,
                    ..
                } = self.limits;
                let room = !stop && waiting.len() < batch && weight < most;
                next = room.then(|| jobs.try_recv().ok()).flatten();
            }
            self.write(&mut waiting).await;
        }
    }

    /// Does what waits as one transaction.
    pub(super) async fn write(&mut self, waiting: &mut Vec<Waiting<L>>) {
        let ready = self.ledger.ready(&self.model).await;
        let (requests, callers): (Vec<_>, Vec<_>) = waiting.drain(..).unzip();
        if let Err(error) = ready {
            return refuse::<L>(callers, &error);
        }
        if requests.is_empty() {
            return;
        }
        if let Err(error) = self.ledger.look_up(&self.model, &requests).await {
            return refuse::<L>(callers, &error);
        }
        self.counters.applied(requests.len());
        let Applied {
            answers,
            changes,
            notifications,
        } = self.ledger.apply(&self.model.read(), requests);
        debug_assert_eq!(answers.len(), callers.len(), "an answer for each request");
        if let Some(changes) = changes {
            let start = Instant::now();
            let committed = self.ledger.commit(&self.model, &changes).await;
            self.counters.committed(start.elapsed(), committed.is_ok());
            if let Err(error) = committed {
                self.ledger.failed(&error, callers.len());
                return refuse::<L>(callers, &error);
            }
            self.model.change(|state| L::merge(state, changes));
        }
        self.ledger.notify(notifications);
        for (caller, answer) in callers.into_iter().zip(answers) {
            // The caller may have gone away.
            let _ = caller.send(answer);
        }
    }
}

fn refuse<L: Ledger>(callers: Vec<oneshot::Sender<Answer<L>>>, error: &L::Error) {
    for caller in callers {
        let _ = caller.send(Err(L::refusal(CommitFailure::Failed(error))));
    }
}
