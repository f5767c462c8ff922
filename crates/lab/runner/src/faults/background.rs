//! Faults that go on while further steps do.

use std::cell::RefCell;
use std::pin::Pin;
use std::task::Poll;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::watch;

use super::Phase;
use crate::steps::StepError;

type Fault<'a> = Pin<Box<dyn Future<Output = Result<(), StepError>> + 'a>>;

/// Faults that outlast the step in which they began, each until the end of another one.
#[derive(Default)]
pub(crate) struct Background<'a> {
    going_on: RefCell<FuturesUnordered<Fault<'a>>>,
    /// The step at whose end each is over, and how it hears of that. It has ended when nobody
    /// hears any more.
    until: RefCell<Vec<(String, watch::Sender<Phase>)>>,
}

impl<'a> Background<'a> {
    /// A fault goes on until the end of the step `through`, or until it is over.
    pub(super) fn add<F>(&self, through: &str, fault: impl FnOnce(watch::Receiver<Phase>) -> F)
    where
        F: Future<Output = Result<(), StepError>> + 'a,
    {
        let (tell, phase) = watch::channel(Phase::Holds);
        let until = &mut *self.until.borrow_mut();
        until.retain(|(_, tell)| !tell.is_closed());
        until.push((through.to_owned(), tell));
        self.going_on.borrow().push(Box::pin(fault(phase)));
    }

    /// The hold is over of the step in which the newest faults began.
    pub(super) fn held(&self) {
        for (_, tell) in &*self.until.borrow() {
            tell.send_if_modified(|phase| {
                let before = *phase;
                *phase = before.max(Phase::Held);
                before < Phase::Held
            });
        }
    }

    /// Ends those that are over with a step, which is done but for them. Something else has to
    /// wait for [`Background::trouble`] meanwhile.
    pub(crate) async fn end(&self, step: &str) {
        let over: Vec<watch::Sender<Phase>> = {
            let mut until = self.until.borrow_mut();
            let over = until.extract_if(.., |(through, _)| through == step);
            over.map(|(_, tell)| tell).collect()
        };
        for tell in over {
            tell.send_replace(Phase::Done);
            tell.closed().await;
        }
    }

    /// What goes wrong with one of them. They go on while this is waited for.
    pub(crate) async fn trouble(&self) -> StepError {
        std::future::poll_fn(|context| {
            let mut going_on = self.going_on.borrow_mut();
            loop {
                match going_on.poll_next_unpin(context) {
                    Poll::Ready(Some(Err(trouble))) => return Poll::Ready(trouble),
                    Poll::Ready(Some(Ok(()))) => {}
                    // Whoever adds one has everything looked at again.
                    Poll::Ready(None) | Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await
    }
}
