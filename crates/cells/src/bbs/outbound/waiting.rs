//! Records that something is to be done about.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::sync::Notify;

use crate::mutex::lock;

/// Guids of records, in the order in which they came, each once: so there are never more of
/// them than records, and none needs to be dropped. `V` says what is to be done. Many may
/// put, and several take.
pub(super) struct Waiting<V> {
    inside: Mutex<Inside<V>>,
    bell: Notify,
}

/// A record that something is to be done about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Due<V> {
    pub(super) guid: Arc<str>,
    pub(super) value: V,
    /// When it was put.
    pub(super) since: Instant,
}

struct Inside<V> {
    order: VecDeque<(Arc<str>, Instant)>,
    entries: HashMap<Arc<str>, V>,
    /// What was taken last is being worked on.
    busy: bool,
}

impl<V> Default for Waiting<V> {
    fn default() -> Self {
        let inside = Inside {
            order: VecDeque::new(),
            entries: HashMap::new(),
            busy: false,
        };
        Self {
            inside: Mutex::new(inside),
            bell: Notify::new(),
        }
    }
}

impl<V> Waiting<V> {
    /// Adds a record, or adds to what is to be done about it.
    pub(super) fn put(&self, guid: Arc<str>, value: V, add: impl FnOnce(&mut V, V)) {
        let mut inside = lock(&self.inside);
        match inside.entries.get_mut(&guid) {
            Some(old) => return add(old, value),
            None => {
                let entry = (Arc::clone(&guid), Instant::now());
                inside.order.push_back(entry);
            }
        }
        inside.entries.insert(guid, value);
        drop(inside);
        self.bell.notify_one();
    }

    /// The first records that wait, at least one and at most so many, once there are any. To
    /// ask again means, where one alone takes, that what was taken before is done with.
    pub(super) async fn take(&self, most: usize) -> Vec<Due<V>> {
        loop {
            {
                let mut inside = lock(&self.inside);
                let Inside {
                    order,
                    entries,
                    busy,
                } = &mut *inside;
                let count = order.len().min(most);
                let taken = order.drain(..count);
                let taken = taken.filter_map(|(guid, since)| {
                    let value = entries.remove(&guid)?;
                    Some(Due { guid, value, since })
                });
                let taken: Vec<_> = taken.collect();
                *busy = !taken.is_empty();
                if *busy {
                    if !order.is_empty() {
                        // Of many that were put while nobody waited, the bell knows one.
                        self.bell.notify_one();
                    }
                    return taken;
                }
            }
            self.bell.notified().await;
        }
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        lock(&self.inside).order.len()
    }

    /// Since when the first of them has waited.
    pub(super) fn first(&self) -> Option<Instant> {
        lock(&self.inside).order.front().map(|(_, since)| *since)
    }

    /// Does nothing wait, and is nothing worked on? Known where one alone takes.
    pub(super) fn is_idle(&self) -> bool {
        let inside = lock(&self.inside);
        inside.order.is_empty() && !inside.busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_record_waits_once_with_all_that_is_to_be_done() {
        let waiting = Waiting::default();
        for (guid, index) in [("a", 1), ("b", 2), ("a", 3), ("c", 4)] {
            waiting.put(guid.into(), vec![index], |old, new| old.extend(new));
        }
        assert_eq!(waiting.len(), 3);
        let first = waiting.take(2).await;
        let first: Vec<_> = first.into_iter().map(|due| (due.guid, due.value)).collect();
        assert_eq!(first, [("a".into(), vec![1, 3]), ("b".into(), vec![2])]);
        assert!(!waiting.is_idle());
        // What comes while a record is worked on is work of its own.
        waiting.put("a".into(), vec![5], |old, new| old.extend(new));
        assert_eq!(waiting.take(9).await.len(), 2);
        let idle = tokio::time::timeout(std::time::Duration::ZERO, waiting.take(1)).await;
        assert!(idle.is_err() && waiting.is_idle());
    }

    #[tokio::test]
    async fn several_may_take_and_none_sleeps_while_records_wait() {
        let waiting = Arc::new(Waiting::default());
        for number in 0..3 {
            waiting.put(format!("g-{number}").into(), (), |(), ()| ());
        }
        assert!(waiting.first().is_some());
        // Nobody listened when the bell rang; each of them gets one all the same.
        let mut takers = tokio::task::JoinSet::new();
        for _ in 0..3 {
            let waiting = Arc::clone(&waiting);
            takers.spawn(async move { waiting.take(1).await });
        }
        let taken = takers.join_all().await;
        assert!(taken.iter().all(|taken| taken.len() == 1));
        assert_eq!(waiting.first(), None);
    }
}
