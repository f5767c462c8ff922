//! Tells subscribers what changed.
//!
//! Each change is written once and shared; only the line with the number differs from
//! subscriber to subscriber. One whose queue is full is closed, and it alone: it connects
//! again and lists.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde::Serialize;
use tokio::sync::Notify;

use super::state::Change;

/// What a subscriber listens to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// TCP mappings.
    Tcp,
    /// HTTP routes.
    Http,
}

/// The subscribers.
pub(crate) struct Hub {
    streams: [Mutex<Subscribers>; 2],
    queue_events: usize,
}

#[derive(Default)]
struct Subscribers {
    list: Vec<Arc<Subscriber>>,
    closed: bool,
}

#[derive(Default)]
struct Subscriber {
    queue: Mutex<Queue>,
    wake: Notify,
}

#[derive(Default)]
struct Queue {
    batches: VecDeque<Arc<[String]>>,
    events: usize,
    closed: bool,
}

impl Hub {
    /// A hub that closes a subscriber for whom this many events wait when more arrive.
    pub(crate) fn new(queue_events: usize) -> Self {
        Self {
            streams: Default::default(),
            queue_events,
        }
    }

    /// Subscribers of a stream.
    pub(crate) fn subscribers(&self, stream: Stream) -> usize {
        self.lock(stream).list.len()
    }

    /// Subscribes to what happens from now on.
    pub(crate) fn subscribe(self: &Arc<Self>, stream: Stream) -> Subscription {
        let subscriber = Arc::new(Subscriber::default());
        let mut subscribers = self.lock(stream);
        if subscribers.closed {
            subscriber.close();
        }
        subscribers.list.push(Arc::clone(&subscriber));
        Subscription {
            hub: Arc::clone(self),
            stream,
            subscriber,
            next_id: 0,
        }
    }

    /// Tells everybody. Returns how many subscribers were too slow and closed.
    pub(crate) fn publish(&self, changes: &[Change]) -> usize {
        let tcp = |change: &Change| match change {
            Change::Tcp(written, row) => Some(encode(*written, &row.value)),
            Change::Http(..) => None,
        };
        let http = |change: &Change| match change {
            Change::Http(written, row) => Some(encode(*written, &row.value)),
            Change::Tcp(..) => None,
        };
        self.tell(Stream::Tcp, || changes.iter().filter_map(tcp).collect())
            + self.tell(Stream::Http, || changes.iter().filter_map(http).collect())
    }

    /// Ends every stream of those who listen now; they may come back.
    pub(crate) fn cut_off(&self) {
        for stream in [Stream::Tcp, Stream::Http] {
            self.lock(stream).list.iter().for_each(|one| one.close());
        }
    }

    /// Ends every stream, also those that are still to come.
    pub(crate) fn close(&self) {
        for stream in [Stream::Tcp, Stream::Http] {
            self.lock(stream).closed = true;
        }
        self.cut_off();
    }

    fn lock(&self, stream: Stream) -> MutexGuard<'_, Subscribers> {
        let list = &self.streams[stream as usize];
        list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, stream: Stream, events: impl FnOnce() -> Vec<String>) -> usize {
        // Most of the cost is the encoding, which nobody may be there to read.
        let listeners = self.lock(stream).list.clone();
        if listeners.is_empty() {
            return 0;
        }
        let events: Arc<[String]> = events().into();
        if events.is_empty() {
            return 0;
        }
        let slow = listeners
            .iter()
            .filter(|one| !one.push(&events, self.queue_events));
        slow.count()
    }
}

/// An event as it is sent, without its number.
fn encode(written: bool, value: &impl Serialize) -> String {
    let name = if written { "Upsert" } else { "Delete" };
    let mut text = format!("event: {name}\ndata: ");
    // Plain data always has a JSON form.
    text.push_str(&serde_json::to_string(value).unwrap_or_default());
    text.push_str("\n\n");
    text
}

impl Subscriber {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the subscriber keeps up.
    fn push(&self, events: &Arc<[String]>, most: usize) -> bool {
        let mut queue = self.lock();
        if queue.closed {
            return true;
        }
        // One large call may bring more events than a queue holds: it is full only when
        // that many were waiting before.
        let keeps_up = queue.events < most;
        if keeps_up {
            queue.events += events.len();
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

/// One subscriber's end.
pub(crate) struct Subscription {
    hub: Arc<Hub>,
    stream: Stream,
    subscriber: Arc<Subscriber>,
    next_id: u64,
}

impl Subscription {
    /// The next events in the form of the wire; `None` when the stream ends.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            let batch = {
                let mut queue = self.subscriber.lock();
                let batch = queue.batches.pop_front();
                if batch.is_none() && queue.closed {
                    return None;
                }
                let taken = batch.as_ref().map_or(0, |batch| batch.len());
                queue.events -= taken.min(queue.events);
                batch
            };
            if let Some(batch) = batch {
                return Some(self.render(&batch));
            }
            self.subscriber.wake.notified().await;
        }
    }

    /// Returns once the stream ends, whatever still waits.
    pub(crate) async fn closed(&self) {
        while !self.subscriber.lock().closed {
            self.subscriber.wake.notified().await;
        }
    }

    fn render(&mut self, events: &[String]) -> Bytes {
        let length: usize = events.iter().map(|event| event.len() + 16).sum();
        let mut text = String::with_capacity(length);
        for event in events {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "id: {}", self.next_id);
            text.push_str(event);
            self.next_id += 1;
        }
        text.into()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut subscribers = self.hub.lock(self.stream);
        let mine = |other: &Arc<Subscriber>| Arc::ptr_eq(other, &self.subscriber);
        subscribers.list.retain(|other| !mine(other));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::model::TcpMapping;
    use crate::api::state::Row;

    fn change(port: u16) -> Change {
        let value = TcpMapping {
            port,
            ..TcpMapping::default()
        };
        let (id, expires) = (1, 0);
        Change::Tcp(true, Arc::new(Row { id, expires, value }))
    }

    #[tokio::test]
    async fn events_are_numbered_from_0_for_each_subscriber() {
        let hub = Arc::new(Hub::new(8));
        let mut first = hub.subscribe(Stream::Tcp);
        hub.publish(&[change(1), change(2)]);
        let mut second = hub.subscribe(Stream::Tcp);
        hub.publish(&[change(3)]);
        let text = first.next().await.unwrap();
        let text = std::str::from_utf8(&text).unwrap();
        assert!(text.starts_with("id: 0\nevent: Upsert\ndata: {\"router_group_guid\":\"\","));
        assert!(text.contains("\n\nid: 1\nevent: Upsert\n"));
        assert!(text.ends_with("}\n\n"));
        assert!(first.next().await.unwrap().starts_with(b"id: 2\n"));
        assert!(second.next().await.unwrap().starts_with(b"id: 0\n"));
    }

    #[tokio::test]
    async fn a_slow_subscriber_is_cut_off_and_it_alone() {
        let hub = Arc::new(Hub::new(2));
        let mut slow = hub.subscribe(Stream::Tcp);
        let mut quick = hub.subscribe(Stream::Tcp);
        for port in 1..=3 {
            assert_eq!(hub.publish(&[change(port)]), usize::from(port == 3));
            assert!(quick.next().await.is_some());
        }
        assert_eq!(slow.next().await, None);
        assert_eq!(hub.subscribers(Stream::Tcp), 2);
        drop(slow);
        assert_eq!(hub.subscribers(Stream::Tcp), 1);
    }

    #[tokio::test]
    async fn a_closed_hub_ends_what_is_and_what_comes() {
        let hub = Arc::new(Hub::new(2));
        let mut before = hub.subscribe(Stream::Http);
        hub.close();
        assert_eq!(before.next().await, None);
        assert_eq!(hub.subscribe(Stream::Tcp).next().await, None);
    }
}
