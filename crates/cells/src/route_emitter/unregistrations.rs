//! Unregistrations that are sent again: a router that missed one would keep an endpoint that
//! speaks TLS for ever. Pure.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::registration::{Key, Registration};

/// Unregistrations that are remembered. Further ones are sent once, which is counted.
const MOST: usize = 250_000;

/// What was unregistered not long ago.
#[derive(Debug)]
pub(super) struct Unregistrations {
    interval: Duration,
    times: u32,
    entries: HashMap<Key, Entry>,
    /// In the order in which they are due. Those that were forgotten, or are due earlier by now,
    /// have another number.
    queue: VecDeque<(Instant, u64, Key)>,
    next_number: u64,
}

#[derive(Debug)]
struct Entry {
    registration: Registration,
    left: u32,
    number: u64,
}

impl Unregistrations {
    /// Each is sent again so many times, this far apart.
    pub(super) fn new(interval: Duration, times: u32) -> Self {
        Self {
            interval,
            times,
            entries: HashMap::new(),
            queue: VecDeque::new(),
            next_number: 0,
        }
    }

    /// Remembers one that was sent now; false when there is no room for it.
    pub(super) fn sent(&mut self, registration: Registration, now: Instant) -> bool {
        if self.times == 0 {
            return true;
        }
        let key = registration.key();
        if self.entries.len() >= MOST && !self.entries.contains_key(&key) {
            return false;
        }
        let left = self.times;
        self.schedule(key, registration, left, now + self.interval);
        true
    }

    /// Somebody has this registration again.
    pub(super) fn forget(&mut self, key: &Key) {
        self.entries.remove(key);
    }

    /// Nobody knows who has received them: all are due.
    pub(super) fn make_due(&mut self, now: Instant) {
        self.queue.clear();
        for (key, entry) in &self.entries {
            self.queue.push_back((now, entry.number, key.clone()));
        }
    }

    /// When the next one is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.queue.front().map(|(due, ..)| *due)
    }

    /// Takes up to `most` that are due, to be sent now.
    pub(super) fn due(&mut self, now: Instant, most: usize) -> Vec<Registration> {
        let mut all = Vec::new();
        while all.len() < most && self.next_due().is_some_and(|due| due <= now) {
            let Some((_, number, key)) = self.queue.pop_front() else {
                break;
            };
            let current = self
                .entries
                .get(&key)
                .is_some_and(|entry| entry.number == number);
            if !current {
                continue;
            }
            if let Some(entry) = self.entries.remove(&key) {
                all.push(entry.registration.clone());
                if entry.left > 1 {
                    self.schedule(key, entry.registration, entry.left - 1, now + self.interval);
                }
            }
        }
        all
    }

    /// How many are remembered.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    fn schedule(&mut self, key: Key, registration: Registration, left: u32, due: Instant) {
        let number = self.next_number;
        self.next_number += 1;
        self.queue.push_back((due, number, key.clone()));
        let entry = Entry {
            registration,
            left,
            number,
        };
        self.entries.insert(key, entry);
        // Of those that were forgotten no more are kept than there are others.
        if self.queue.len() > 2 * self.entries.len() + 1024 {
            let entries = &self.entries;
            self.queue.retain(|(_, number, key)| {
                entries
                    .get(key)
                    .is_some_and(|entry| entry.number == *number)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::registration::RegistryMessage;
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(30);

    fn registration(uri: &str) -> Registration {
        Registration::Http(RegistryMessage {
            host: "h".into(),
            port: 1,
            uris: vec![uri.into()],
            ..RegistryMessage::default()
        })
    }

    fn uris(all: &[Registration]) -> Vec<String> {
        let uri = |it: &Registration| match it {
            Registration::Http(message) => message.uris[0].clone(),
            _ => panic!("{it:?}"),
        };
        all.iter().map(uri).collect()
    }

    #[test]
    fn each_is_sent_again_as_often_as_was_asked() {
        let mut all = Unregistrations::new(INTERVAL, 3);
        let start = Instant::now();
        assert!(all.sent(registration("a"), start));
        assert!(all.due(start, 10).is_empty());
        let mut times = 0;
        for round in 1..10 {
            times += all.due(start + INTERVAL * round, 10).len();
        }
        assert_eq!((times, all.len(), all.next_due()), (3, 0, None));
    }

    #[test]
    fn what_is_registered_again_is_forgotten() {
        let mut all = Unregistrations::new(INTERVAL, 3);
        let start = Instant::now();
        all.sent(registration("a"), start);
        all.sent(registration("b"), start);
        all.forget(&registration("a").key());
        assert_eq!(uris(&all.due(start + INTERVAL, 10)), ["b"]);
        // Unregistered once more, it begins anew.
        all.sent(registration("b"), start + INTERVAL);
        assert_eq!(all.due(start + INTERVAL * 2, 10).len(), 1);
        assert_eq!(all.len(), 1);
    }

    #[test]
    fn a_page_at_a_time_and_all_at_once_when_nobody_may_have_heard() {
        let mut all = Unregistrations::new(INTERVAL, 2);
        let start = Instant::now();
        for uri in ["a", "b", "c"] {
            all.sent(registration(uri), start);
        }
        all.make_due(start);
        assert_eq!(uris(&all.due(start, 2)).len(), 2);
        assert_eq!(all.due(start, 2).len(), 1);
        assert!(all.due(start, 2).is_empty());
        assert_eq!(all.len(), 3);
    }

    #[test]
    fn there_is_an_end_to_what_is_remembered() {
        let mut all = Unregistrations::new(INTERVAL, 1);
        let start = Instant::now();
        let full = (0..=MOST).find(|number| !all.sent(registration(&number.to_string()), start));
        assert_eq!(full, Some(MOST));
        assert!(
            all.sent(registration("0"), start),
            "a known one has its place"
        );
    }
}
