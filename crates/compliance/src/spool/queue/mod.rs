//! What waits, in which order it goes, and when there is no room for more. Nothing here touches a
//! disk or looks at a clock.
//!
//! Items go in the order in which they came, and those of one node one after the other: the next
//! one once the server answered for the one before. An item that the server cannot take, though it
//! takes others, goes behind those of its node, which then waits a while.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::reports::decision::UnixMillis;

/// First and longest wait of a node of which the server cannot take an item.
const DELAY: (UnixMillis, UnixMillis) = (1_000, 600_000);
/// Failures of an item alone after which it is given up, once it is too old.
const FAILURES: u32 = 3;

/// How much may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of all items. A quarter of them may be of inventories, which anybody may send.
    pub bytes: u64,
    /// Items.
    pub items: usize,
    /// Age of the oldest item: as long as it waits longer, nothing else is taken.
    pub age: Duration,
}

impl Default for Bounds {
    /// 1 GiB, 100,000 items, four days.
    fn default() -> Self {
        Self {
            bytes: 1 << 30,
            items: 100_000,
            age: Duration::from_secs(4 * 86_400),
        }
    }
}

/// A run of a node: its start and the [digest](crate::uploads::digest_of) of its log, as a log may
/// come in parts.
pub(crate) type RunOfNode = (UnixMillis, i64);

/// What is to wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Whose it is.
    pub(crate) node: Arc<str>,
    /// The start of a run and what it says, with the node its identity; none for an inventory.
    pub(crate) run: Option<RunOfNode>,
    /// Bytes on the disk.
    pub(crate) bytes: u64,
    /// When it came.
    pub(crate) arrived: UnixMillis,
}

/// Why nothing else is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Full {
    /// Too many bytes wait.
    #[error("{0} bytes wait for the server, which is all that may")]
    Bytes(u64),
    /// Too many bytes of inventories wait.
    #[error("{0} bytes of inventories wait for the server, which is all that may")]
    Inventories(u64),
    /// Too many items wait.
    #[error("{0} uploads wait for the server, which is all that may")]
    Items(usize),
    /// The oldest waits for too long.
    #[error("an upload has been waiting for the server for {0:?}, which is as long as may be")]
    Age(Duration),
}

/// What becomes of something that is to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admitted {
    /// There is room; this is its number, and it waits once it is said to be written.
    Room(u64),
    /// The same run waits already.
    Known,
    /// There is no room.
    Full(Full),
}

/// What a server made of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It has it.
    Taken,
    /// It will never take it.
    Refused,
    /// It is not there, or takes nothing now.
    Away,
    /// It could not take this one.
    Failed,
}

#[derive(Debug)]
struct Item {
    entry: Entry,
    written: bool,
    /// How often the server could not take it.
    failures: u32,
    /// How many were taken before the first of these.
    taken_before: u64,
}

/// The items of a node, in the order in which they go.
#[derive(Debug, Default)]
struct Line {
    numbers: VecDeque<u64>,
    under_way: bool,
    /// Failures in a row of single items.
    failures: u32,
    /// When it may be looked at again.
    until: Option<UnixMillis>,
}

/// What waits.
#[derive(Debug)]
pub(crate) struct Queue {
    bounds: Bounds,
    items: BTreeMap<u64, Item>,
    lines: HashMap<Arc<str>, Line>,
    /// First items of nodes of which none is under way and which do not wait.
    ready: BTreeSet<u64>,
    /// Nodes that wait for a while.
    delayed: BTreeSet<(UnixMillis, Arc<str>)>,
    runs: HashMap<(Arc<str>, RunOfNode), u64>,
    next: u64,
    bytes: u64,
    inventory_bytes: u64,
    taken: u64,
}

impl Queue {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            items: BTreeMap::new(),
            lines: HashMap::new(),
            ready: BTreeSet::new(),
            delayed: BTreeSet::new(),
            runs: HashMap::new(),
            next: 1,
            bytes: 0,
            inventory_bytes: 0,
            taken: 0,
        }
    }

    /// An item that was found on the disk, whatever bounds say: it was taken once.
    pub(crate) fn restore(&mut self, number: u64, entry: Entry) {
        self.next = self.next.max(number.saturating_add(1));
        self.insert(number, entry);
        self.written(number);
    }

    /// Something is to wait.
    pub(crate) fn admit(&mut self, entry: Entry, now: UnixMillis) -> Admitted {
        if let Some(run) = entry.run
            && self.runs.contains_key(&(Arc::clone(&entry.node), run))
        {
            return Admitted::Known;
        }
        let bounds = self.bounds;
        let most_of_inventories = bounds.bytes / 4;
        let full = if self.items.len() >= bounds.items {
            Some(Full::Items(self.items.len()))
        } else if self.bytes.saturating_add(entry.bytes) > bounds.bytes {
            Some(Full::Bytes(self.bytes))
        } else if entry.run.is_none()
            && self.inventory_bytes.saturating_add(entry.bytes) > most_of_inventories
        {
            Some(Full::Inventories(self.inventory_bytes))
        } else {
            let age = self.oldest(now);
            (age > bounds.age).then_some(Full::Age(age))
        };
        if let Some(full) = full {
            return Admitted::Full(full);
        }
        let number = self.next;
        self.next += 1;
        self.insert(number, entry);
        Admitted::Room(number)
    }

    fn insert(&mut self, number: u64, entry: Entry) {
        self.bytes += entry.bytes;
        if entry.run.is_none() {
            self.inventory_bytes += entry.bytes;
        }
        let item = Item {
            entry,
            written: false,
            failures: 0,
            taken_before: 0,
        };
        self.items.insert(number, item);
    }

    /// An item is on the disk: from now on it waits.
    pub(crate) fn written(&mut self, number: u64) {
        let Some(item) = self.items.get_mut(&number) else {
            return;
        };
        item.written = true;
        let node = Arc::clone(&item.entry.node);
        if let Some(run) = item.entry.run {
            self.runs.insert((Arc::clone(&node), run), number);
        }
        let line = self.lines.entry(Arc::clone(&node)).or_default();
        line.numbers.push_back(number);
        self.settle(&node);
    }

    /// An item could not be written: it never was there.
    pub(crate) fn not_written(&mut self, number: u64) {
        self.forget(number);
    }

    fn forget(&mut self, number: u64) -> Option<Item> {
        let item = self.items.remove(&number)?;
        self.bytes -= item.entry.bytes;
        if item.entry.run.is_none() {
            self.inventory_bytes -= item.entry.bytes;
        }
        if let Some(run) = item.entry.run {
            let key = (Arc::clone(&item.entry.node), run);
            // Of two that came at once the other one may stand for the run.
            if self.runs.get(&key) == Some(&number) {
                self.runs.remove(&key);
            }
        }
        Some(item)
    }

    /// Puts a node among those that are ready, if it is.
    fn settle(&mut self, node: &Arc<str>) {
        let Some(line) = self.lines.get(node) else {
            return;
        };
        match line.numbers.front() {
            None if !line.under_way => drop(self.lines.remove(node)),
            Some(first) if !line.under_way && line.until.is_none() => {
                self.ready.insert(*first);
            }
            _ => {}
        }
    }

    /// The item that goes next; it is under way until it is [`done`](Self::done).
    pub(crate) fn next(&mut self, now: UnixMillis) -> Option<u64> {
        while let Some((until, node)) = self.delayed.first().cloned()
            && until <= now
        {
            self.delayed.remove(&(until, Arc::clone(&node)));
            if let Some(line) = self.lines.get_mut(&node) {
                line.until = None;
            }
            self.settle(&node);
        }
        let number = self.ready.pop_first()?;
        let node = Arc::clone(&self.items.get(&number)?.entry.node);
        self.lines.get_mut(&node)?.under_way = true;
        Some(number)
    }

    /// When a node that waits may be looked at again, if one does.
    pub(crate) fn wakes(&self) -> Option<UnixMillis> {
        self.delayed.first().map(|(until, _)| *until)
    }

    /// What became of an item that was under way: is it to be removed?
    pub(crate) fn done(&mut self, number: u64, outcome: Outcome, now: UnixMillis) -> Done {
        let Some(item) = self.items.get_mut(&number) else {
            return Done::Stays;
        };
        let node = Arc::clone(&item.entry.node);
        let mut done = match outcome {
            Outcome::Taken => Done::Gone,
            Outcome::Refused => Done::Aside,
            Outcome::Away => Done::Stays,
            Outcome::Failed => {
                if item.failures == 0 {
                    item.taken_before = self.taken;
                }
                item.failures += 1;
                let given_up = item.failures >= FAILURES
                    && self.taken > item.taken_before
                    && age(item.entry.arrived, now) > self.bounds.age;
                if given_up { Done::Aside } else { Done::Stays }
            }
        };
        let Some(line) = self.lines.get_mut(&node) else {
            return Done::Stays;
        };
        line.under_way = false;
        match (outcome, done) {
            (Outcome::Failed, Done::Stays) => {
                line.numbers.rotate_left(1);
                let wait = DELAY
                    .0
                    .saturating_mul(1 << line.failures.min(16))
                    .min(DELAY.1);
                line.failures += 1;
                let until = now.saturating_add(wait);
                line.until = Some(until);
                self.delayed.insert((until, Arc::clone(&node)));
            }
            (_, Done::Stays) => {}
            _ => {
                line.numbers.pop_front();
                line.failures = 0;
                if self.forget(number).is_none() {
                    done = Done::Stays;
                }
            }
        }
        if outcome == Outcome::Taken {
            self.taken += 1;
        }
        self.settle(&node);
        done
    }

    /// How long the oldest has waited.
    pub(crate) fn oldest(&self, now: UnixMillis) -> Duration {
        let oldest = self.items.first_key_value();
        oldest.map_or(Duration::ZERO, |(_, item)| age(item.entry.arrived, now))
    }

    /// Items and their bytes.
    pub(crate) fn size(&self) -> (usize, u64) {
        (self.items.len(), self.bytes)
    }
}

/// What is to become of an item's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    /// It is removed.
    Gone,
    /// It is put aside.
    Aside,
    /// It goes on waiting.
    Stays,
}

fn age(arrived: UnixMillis, now: UnixMillis) -> Duration {
    let millis = u64::try_from(now.saturating_sub(arrived)).unwrap_or_default();
    Duration::from_millis(millis)
}
