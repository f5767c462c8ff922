//! Subscriptions of the process that embeds the endpoint: their messages are copied from
//! what a client's connection read into a queue, and not sent through a socket.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Shared;
use super::deliver::Message;
use super::sublist::{Sub, Subscriber};
use crate::client::subscription::{Draft, Queue, Source};
use crate::client::{QueueLimits, SubscribeError, Subscription};
use crate::subject;

/// A subscription within the process, as its endpoint knows it. Ends when it is dropped.
pub(crate) struct Local {
    shared: Arc<Shared>,
    sub: Arc<Sub>,
    queue: Arc<Queue>,
}

impl Drop for Local {
    fn drop(&mut self) {
        self.shared.subs.remove(&self.sub);
        self.shared.locals.remove(&self.queue);
    }
}

pub(super) fn subscribe(
    shared: &Arc<Shared>,
    subject: &str,
    limits: QueueLimits,
) -> Result<Subscription, SubscribeError> {
    if !subject::is_subscribable(subject.as_bytes()) {
        return Err(SubscribeError::Subject);
    }
    let queue = Arc::new(Queue::new(subject, "", limits));
    let sub = Arc::new(Sub {
        subscriber: Subscriber::Local(Arc::clone(&queue)),
        subject: subject.as_bytes().into(),
        group: Box::default(),
        sid: Box::default(),
        delivered: AtomicU64::new(0),
        most: AtomicU64::new(u64::MAX),
    });
    shared.locals.add(&queue);
    shared.subs.add(&sub);
    let local = Local {
        shared: Arc::clone(shared),
        sub,
        queue: Arc::clone(&queue),
    };
    let source = Source::Endpoint { _local: local };
    Ok(Subscription::new(queue, source))
}

/// The queues of all subscriptions within the process.
#[derive(Default)]
pub(super) struct Locals(Mutex<Vec<Arc<Queue>>>);

impl Locals {
    fn add(&self, queue: &Arc<Queue>) {
        self.lock().push(Arc::clone(queue));
    }

    fn remove(&self, queue: &Arc<Queue>) {
        queue.close();
        self.lock().retain(|other| !Arc::ptr_eq(other, queue));
    }

    /// Nothing more comes: the endpoint stops.
    pub(super) fn close(&self) {
        self.lock().iter().for_each(|queue| queue.close());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Queue>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the frames of one read brought for queues of this process.
#[derive(Default)]
pub(super) struct Drafts {
    drafts: Vec<(Arc<Queue>, Draft)>,
    /// Bytes of the read: none of the drafts needs more.
    pub(super) room: usize,
}

impl Drafts {
    pub(super) fn add(&mut self, queue: &Arc<Queue>, message: &Message<'_>) {
        let mut known = self.drafts.iter_mut();
        let draft = match known.find(|(other, _)| Arc::ptr_eq(other, queue)) {
            Some((_, draft)) => draft,
            None => {
                let new = (Arc::clone(queue), Draft::new(self.room));
                self.drafts.push(new);
                let Some((_, draft)) = self.drafts.last_mut() else {
                    return;
                };
                draft
            }
        };
        draft.add(message.subject, message.reply, message.payload.as_slice());
    }

    /// Gives each queue what is for it. Whether there was anything, and one of the queues
    /// that can hardly keep up.
    pub(super) fn hand_over(&mut self) -> (bool, Option<Arc<Queue>>) {
        let any = !self.drafts.is_empty();
        let mut late = None;
        for (queue, draft) in self.drafts.drain(..) {
            if queue.push_draft(draft) {
                late = Some(queue);
            }
        }
        (any, late)
    }
}
