//! Events for many subscribers, sent as they happen (server-sent events).
//!
//! Each event is written once and shared; only the line with the number differs from
//! subscriber to subscriber. One whose queue is full is closed, and it alone: it connects
//! again and lists.

mod answer;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

pub use answer::answer;

/// An event in its form on the wire, without its number.
pub trait Event: Send + Sync + 'static {
    /// What one subscriber wants to hear of.
    type Interest: Send + Sync + 'static;

    /// The lines that follow the number, with the empty one that ends the event.
    fn text(&self) -> &str;

    /// Whether a subscriber of this interest hears of it.
    fn concerns(&self, interest: &Self::Interest) -> bool;
}

/// An event for everybody.
impl Event for String {
    type Interest = ();

    fn text(&self) -> &str {
        self
    }

    fn concerns(&self, (): &()) -> bool {
        true
    }
}

/// The subscribers of one kind of events.
pub struct Topic<E: Event> {
    list: Mutex<List<E>>,
    /// Length of the list, for those who must not wait for it.
    count: AtomicUsize,
    queue_events: usize,
}

struct List<E: Event> {
    subscribers: Vec<Arc<Subscriber<E>>>,
    closed: bool,
}

struct Subscriber<E: Event> {
    interest: E::Interest,
    queue: Mutex<Queue<E>>,
    wake: Notify,
}

/// Events of others that a queue may hold for each that its subscriber may have waiting: what
/// comes together is kept together.
const HELD_PER_EVENT: usize = 64;

struct Queue<E> {
    batches: VecDeque<Arc<[E]>>,
    /// Events in `batches` that concern the subscriber.
    events: usize,
    /// All events in `batches`, which are kept whole.
    held: usize,
    closed: bool,
}

/// What became of a batch of events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Subscribers that it concerned.
    pub subscribers: usize,
    /// Those of them that were too slow, and closed.
    pub too_slow: usize,
}

impl<E: Event> Topic<E> {
    /// A topic that closes a subscriber for whom `queue_events` events wait when more
    /// arrive.
    pub fn new(queue_events: usize) -> Self {
        Self {
            list: Mutex::new(List {
                subscribers: Vec::new(),
                closed: false,
            }),
            count: AtomicUsize::new(0),
            queue_events,
        }
    }

    /// Number of subscribers. While it is 0 events need not be written.
    pub fn subscribers(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Subscribes to what happens from now on.
    pub fn subscribe(self: &Arc<Self>, interest: E::Interest) -> Subscription<E> {
        let mut list = self.lock();
        let subscriber = Arc::new(Subscriber {
            interest,
            queue: Mutex::new(Queue {
                batches: VecDeque::new(),
                events: 0,
                held: 0,
                closed: list.closed,
            }),
            wake: Notify::new(),
        });
        list.subscribers.push(Arc::clone(&subscriber));
        self.count.fetch_add(1, Ordering::SeqCst);
        Subscription {
            topic: Arc::clone(self),
            subscriber,
            next_id: 0,
        }
    }

    /// Tells those subscribers whose interest is `concerned`, as it is by at least one of
    /// the events.
    pub fn publish(&self, events: &Arc<[E]>, concerned: impl Fn(&E::Interest) -> bool) -> Delivery {
        let list = self.lock();
        let subscribers = list.subscribers.iter();
        let concerned: Vec<_> = subscribers
            .filter(|one| concerned(&one.interest))
            .cloned()
            .collect();
        drop(list);
        let keeps_up = |one: &&Arc<Subscriber<E>>| one.push(events, self.queue_events);
        let quick = concerned.iter().filter(keeps_up).count();
        Delivery {
            subscribers: concerned.len(),
            too_slow: concerned.len() - quick,
        }
    }

    /// Ends the streams of those who listen now; they may come back.
    pub fn cut_off(&self) {
        self.lock().subscribers.iter().for_each(|one| one.close());
    }

    /// Ends every stream, also those that are still to come.
    pub fn close(&self) {
        self.lock().closed = true;
        self.cut_off();
    }

    fn lock(&self) -> MutexGuard<'_, List<E>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E: Event> Subscriber<E> {
    fn lock(&self) -> MutexGuard<'_, Queue<E>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the subscriber keeps up.
    fn push(&self, events: &Arc<[E]>, most: usize) -> bool {
        let concerns = |event: &&E| event.concerns(&self.interest);
        let count = events.iter().filter(concerns).count();
        let mut queue = self.lock();
        if queue.closed {
            return true;
        }
        // One large change may bring more events than a queue holds: it is full only when
        // that many were waiting before.
        let keeps_up = queue.events < most && queue.held < most.saturating_mul(HELD_PER_EVENT);
        if keeps_up {
            queue.events += count;
            queue.held += events.len();
            queue.batches.push_back(Arc::clone(events));
        } else {
            queue.closed = true;
            queue.batches.clear();
        }
        drop(queue);
        self.wake.notify_one();
        keeps_up
    }

    fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_one();
    }
}

/// One subscriber's end; dropping it unsubscribes.
pub struct Subscription<E: Event> {
    topic: Arc<Topic<E>>,
    subscriber: Arc<Subscriber<E>>,
    next_id: u64,
}

impl<E: Event> Subscription<E> {
    /// Everything that waits, in the form of the wire, numbered from 0; `None` when the
    /// stream ends.
    pub async fn next(&mut self) -> Option<Bytes> {
        loop {
            let batches = {
                let mut queue = self.subscriber.lock();
                if queue.closed && queue.batches.is_empty() {
                    return None;
                }
                queue.events = 0;
                queue.held = 0;
                std::mem::take(&mut queue.batches)
            };
            if !batches.is_empty() {
                return Some(self.render(&batches));
            }
            self.subscriber.wake.notified().await;
        }
    }

    /// Returns once the stream ends, whatever still waits.
    pub async fn closed(&self) {
        while !self.subscriber.lock().closed {
            self.subscriber.wake.notified().await;
        }
    }

    fn render(&mut self, batches: &VecDeque<Arc<[E]>>) -> Bytes {
        let interest = &self.subscriber.interest;
        let events = batches.iter().flat_map(|batch| batch.iter());
        let concerning = events.filter(|event| event.concerns(interest));
        let length = concerning.clone().map(|event| event.text().len() + 16);
        let mut text = String::with_capacity(length.sum());
        for event in concerning {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "id: {}", self.next_id);
            text.push_str(event.text());
            self.next_id += 1;
        }
        text.into()
    }
}

impl<E: Event> Drop for Subscription<E> {
    fn drop(&mut self) {
        let mut list = self.topic.lock();
        let mine = |other: &Arc<Subscriber<E>>| Arc::ptr_eq(other, &self.subscriber);
        list.subscribers.retain(|other| !mine(other));
        self.topic.count.fetch_sub(1, Ordering::SeqCst);
    }
}
