//! Tells subscribers what changed.
//!
//! One thread encodes each event once per stream and hands it, shared, to every
//! subscriber's queue.

mod wire;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use net::events::{Subscription, Topic};

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

impl net::events::Event for Event {
    /// A cell; empty: all.
    type Interest = String;

    fn text(&self) -> &str {
        &self.text
    }

    fn concerns(&self, cell: &String) -> bool {
        match &self.cells {
            None => true,
            Some(cells) => cell.is_empty() || cells.iter().any(|with| **with == **cell),
        }
    }
}

/// The subscribers of every stream, and the way to the thread.
pub(crate) struct Hub {
    topics: [Arc<Topic<Event>>; 6],
    queue_events: usize,
}

impl Hub {
    /// A hub whose subscribers may each have `queue_events` events waiting.
    pub(crate) fn new(queue_events: usize) -> Self {
        Self {
            topics: std::array::from_fn(|_| Arc::new(Topic::new(queue_events))),
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
        let any = |topics: &[Arc<Topic<Event>>]| topics.iter().any(|one| one.subscribers() > 0);
        let (lrps, tasks) = self.topics.split_at(4);
        Watched {
            lrps: any(lrps),
            tasks: any(tasks),
        }
    }

    /// Number of subscribers.
    pub(crate) fn subscribers(&self) -> usize {
        self.topics.iter().map(|topic| topic.subscribers()).sum()
    }

    /// Subscribes to what happens from now on, on one cell or (empty) on all.
    pub(crate) fn subscribe(&self, stream: Stream, cell: String) -> Subscription<Event> {
        self.topics[stream.place()].subscribe(cell)
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

    /// Disconnects every subscriber.
    pub(crate) fn cut_off(&self) {
        self.topics.iter().for_each(|topic| topic.cut_off());
    }

    /// Ends every stream.
    pub(crate) fn close(&self) {
        self.topics.iter().for_each(|topic| topic.close());
    }

    /// Returns how many subscribers were told.
    fn publish(&self, stream: Stream, changes: &[Change]) -> usize {
        let topic = &self.topics[stream.place()];
        if topic.subscribers() == 0 {
            return 0;
        }
        let mut events = Vec::with_capacity(changes.len());
        for change in changes {
            wire::of_change(stream, change, &mut events);
        }
        if events.is_empty() {
            return 0;
        }
        let events: Arc<[Event]> = events.into();
        let everybody = events.iter().any(|event| event.cells.is_none());
        let cells: HashSet<&str> = events
            .iter()
            .filter_map(|event| event.cells.as_ref())
            .flat_map(|cells| cells.iter().map(|cell| &**cell))
            .collect();
        let told = topic.publish(&events, |cell| {
            cell.is_empty() || everybody || cells.contains(cell.as_str())
        });
        told.subscribers
    }
}
