//! Tells subscribers what changed.
//!
//! One thread encodes each event once per stream and hands it, shared, to every
//! subscriber's queue; only the line with the number differs from one to another.
//! A subscriber whose queue is full is closed, and it alone.

mod wire;

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;

use super::apply::{Change, Watched};

/// Batches of changes that may wait for the thread. It is faster than the writer
/// by an order of magnitude; should it ever fall behind this far, the writer waits.
const BATCHES: usize = 4096;

/// Subscribers from which on events gather between one publication and the next.
const MANY: usize = 32;
/// Longest time that they gather.
const GATHER: Duration = Duration::from_millis(20);

/// How long events gather once so many subscribers were told: somewhat longer than
/// writing to all their connections takes. Without that the writes for each small
/// batch take the processors away from the calls that make the next.
fn gather(told: usize) -> Duration {
    const WRITE: Duration = Duration::from_micros(20);
    let told = u32::try_from(told).unwrap_or(u32::MAX);
    WRITE.saturating_mul(told).min(GATHER)
}

/// What a subscriber listens to; `old_form` is the first version's payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Desired LRPs and groups of actual LRPs.
    Groups { old_form: bool },
    /// Desired LRPs and single actual LRPs.
    Instances { old_form: bool },
    /// Tasks.
    Tasks { old_form: bool },
}

impl Stream {
    const ALL: [Self; 6] = [
        Self::Groups { old_form: false },
        Self::Groups { old_form: true },
        Self::Instances { old_form: false },
        Self::Instances { old_form: true },
        Self::Tasks { old_form: false },
        Self::Tasks { old_form: true },
    ];

    fn place(self) -> usize {
        match self {
            Self::Groups { old_form } => usize::from(old_form),
            Self::Instances { old_form } => 2 + usize::from(old_form),
            Self::Tasks { old_form } => 4 + usize::from(old_form),
        }
    }
}

/// An event in its form on the wire, without its number.
#[derive(Debug)]
pub(crate) struct Event {
    text: String,
    /// Cells that it concerns; `None` when it concerns everybody.
    cells: Option<[Arc<str>; 2]>,
}

impl Event {
    fn concerns(&self, cell: &str) -> bool {
        match &self.cells {
            None => true,
            Some(cells) => cell.is_empty() || cells.iter().any(|with| &**with == cell),
        }
    }
}

/// The list of subscribers and the way to the thread.
pub(crate) struct Hub {
    streams: [Mutex<Vec<Arc<Subscriber>>>; 6],
    counts: [AtomicUsize; 6],
    queue_events: usize,
}

struct Subscriber {
    cell: String,
    queue: Mutex<Queue>,
    wake: Notify,
}

#[derive(Default)]
struct Queue {
    batches: VecDeque<Arc<[Event]>>,
    /// Events for this subscriber in `batches`.
    events: usize,
    closed: bool,
}

impl Hub {
    /// A hub whose subscribers may each have `queue_events` events waiting.
    pub(crate) fn new(queue_events: usize) -> Self {
        Self {
            streams: Default::default(),
            counts: Default::default(),
            queue_events,
        }
    }

    /// Starts the thread; it ends, and closes every subscriber, when the sender of
    /// changes is dropped.
    pub(crate) fn start(self: &Arc<Self>) -> std::io::Result<SyncSender<Vec<Change>>> {
        let (sender, changes) = sync_channel(BATCHES);
        let hub = Arc::clone(self);
        std::thread::Builder::new()
            .name("bbs-events".into())
            .spawn(move || hub.publish_all(&changes))?;
        Ok(sender)
    }

    /// Is anybody listening?
    pub(crate) fn watched(&self) -> Watched {
        let any = |range: std::ops::Range<usize>| {
            let mut counts = self.counts[range].iter();
            counts.any(|count| count.load(Ordering::SeqCst) > 0)
        };
        Watched {
            lrps: any(0..4),
            tasks: any(4..6),
        }
    }

    /// Number of subscribers.
    pub(crate) fn subscribers(&self) -> usize {
        self.counts
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
            .sum()
    }

    /// Subscribes to what happens from now on, on one cell or (empty) on all.
    pub(crate) fn subscribe(self: &Arc<Self>, stream: Stream, cell: String) -> Subscription {
        let subscriber = Arc::new(Subscriber {
            cell,
            queue: Mutex::default(),
            wake: Notify::new(),
        });
        self.lock(stream).push(Arc::clone(&subscriber));
        self.counts[stream.place()].fetch_add(1, Ordering::SeqCst);
        Subscription {
            hub: Arc::clone(self),
            stream,
            subscriber,
            next_id: 0,
        }
    }

    fn lock(&self, stream: Stream) -> MutexGuard<'_, Vec<Arc<Subscriber>>> {
        let list = &self.streams[stream.place()];
        list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish_all(&self, changes: &Receiver<Vec<Change>>) {
        while let Ok(mut batch) = changes.recv() {
            // What waits goes out together, so that many subscribers cost less per event.
            while batch.len() < self.queue_events
                && let Ok(more) = changes.try_recv()
            {
                batch.extend(more);
            }
            let told: usize = Stream::ALL
                .map(|stream| self.publish(stream, &batch))
                .iter()
                .sum();
            if told >= MANY {
                std::thread::sleep(gather(told));
            }
        }
        self.close();
    }

    /// Ends every stream.
    pub(crate) fn close(&self) {
        for stream in Stream::ALL {
            self.lock(stream)
                .iter()
                .for_each(|subscriber| subscriber.close());
        }
    }

    /// Returns how many subscribers were told.
    fn publish(&self, stream: Stream, changes: &[Change]) -> usize {
        if self.counts[stream.place()].load(Ordering::SeqCst) == 0 {
            return 0;
        }
        let mut events = Vec::with_capacity(changes.len());
        for change in changes {
            wire::of_change(stream, change, &mut events);
        }
        if events.is_empty() {
            return 0;
        }
        let everybody = events.iter().any(|event| event.cells.is_none());
        let cells: HashSet<&str> = events
            .iter()
            .filter_map(|event| event.cells.as_ref())
            .flat_map(|cells| cells.iter().map(|cell| &**cell))
            .collect();
        let concerned: Vec<_> = self
            .lock(stream)
            .iter()
            .filter(|subscriber| {
                let cell = subscriber.cell.as_str();
                cell.is_empty() || everybody || cells.contains(cell)
            })
            .cloned()
            .collect();
        drop(cells);
        let events: Arc<[Event]> = events.into();
        for subscriber in &concerned {
            subscriber.push(&events, self.queue_events);
        }
        concerned.len()
    }
}

impl Subscriber {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, events: &Arc<[Event]>, most: usize) {
        let count = if self.cell.is_empty() {
            events.len()
        } else {
            events
                .iter()
                .filter(|event| event.concerns(&self.cell))
                .count()
        };
        let mut queue = self.lock();
        // One large change may bring more events than a queue holds: it is full
        // only when that many were waiting before.
        if queue.events >= most {
            queue.closed = true;
            queue.batches.clear();
        } else if count > 0 && !queue.closed {
            queue.events += count;
            queue.batches.push_back(Arc::clone(events));
        }
        drop(queue);
        self.wake.notify_one();
    }

    fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_one();
    }
}

/// One subscriber's view of a stream.
pub(crate) struct Subscription {
    hub: Arc<Hub>,
    stream: Stream,
    subscriber: Arc<Subscriber>,
    next_id: u64,
}

impl Subscription {
    /// Everything that waits, in the form of the wire; `None` when the stream ends.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            let batches = {
                let mut queue = self.subscriber.lock();
                if queue.closed && queue.batches.is_empty() {
                    return None;
                }
                queue.events = 0;
                std::mem::take(&mut queue.batches)
            };
            if !batches.is_empty() {
                return Some(self.render(batches));
            }
            self.subscriber.wake.notified().await;
        }
    }

    /// Returns once the subscriber is closed, whatever still waits.
    pub(crate) async fn closed(&self) {
        while !self.subscriber.lock().closed {
            self.subscriber.wake.notified().await;
        }
    }

    fn render(&mut self, batches: VecDeque<Arc<[Event]>>) -> Bytes {
        let mut text = Vec::new();
        for event in batches.iter().flat_map(|batch| batch.iter()) {
            if event.concerns(&self.subscriber.cell) {
                text.extend_from_slice(b"id: ");
                text.extend_from_slice(self.next_id.to_string().as_bytes());
                text.push(b'\n');
                text.extend_from_slice(event.text.as_bytes());
                self.next_id += 1;
            }
        }
        text.into()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut list = self.hub.lock(self.stream);
        list.retain(|other| !Arc::ptr_eq(other, &self.subscriber));
        self.hub.counts[self.stream.place()].fetch_sub(1, Ordering::SeqCst);
    }
}
