//! Values by key, when to look at each of them again, and which ones at once.

use std::mem;
use std::time::Duration;

use crate::deadlines::Deadlines;
use crate::poller::{Interest, Poller, Watched};
use crate::slab::{Key, Slab};

/// See the module. Whoever owns one keeps its parts in step: [`Timed::release`] does.
#[derive(Debug)]
pub struct Timed<T> {
    /// The values.
    pub values: Slab<T>,
    /// The deadline of each, by its place.
    pub deadlines: Deadlines,
    /// Those with more to do than one turn takes, or of which the poller cannot tell.
    again: Vec<Key>,
}

impl<T> Default for Timed<T> {
    /// With deadlines that are exact to the nanosecond.
    fn default() -> Self {
        Self::with_grain(Duration::ZERO)
    }
}

impl<T> Timed<T> {
    /// One whose deadlines may be told up to `grain` too late.
    pub fn with_grain(grain: Duration) -> Self {
        Self {
            values: Slab::default(),
            deadlines: Deadlines::with_grain(grain),
            again: Vec::new(),
        }
    }

    /// A place for a connection, by which the poller tells of it with a token of a kind of 0
    /// to 7; `None`: it cannot be watched.
    pub fn watch(
        &mut self,
        what: impl Watched,
        kind: u32,
        interest: Interest,
        poller: &Poller,
    ) -> Option<Key> {
        let key = self.values.reserve();
        if poller.add(what, key.token(kind), interest).is_err() {
            self.values.release(key);
            return None;
        }
        Some(key)
    }

    /// Gives a place free, with what is in it.
    pub fn release(&mut self, key: Key) {
        self.deadlines.clear(key.index());
        self.values.release(key);
    }

    /// One whose deadline is over, which it has no more.
    pub fn late(&mut self, now: u64) -> Option<Key> {
        loop {
            let (place, _) = self.deadlines.expired(now)?;
            if let Some(key) = self.values.key_at(place as usize) {
                return Some(key);
            }
        }
    }

    /// Has one looked at again when all that the poller told of was handled.
    pub fn look_again(&mut self, key: Key) {
        if !self.again.contains(&key) {
            self.again.push(key);
        }
    }

    /// Those that are to be looked at again, each once. Some may be gone.
    pub fn again(&mut self) -> Vec<Key> {
        mem::take(&mut self.again)
    }

    /// When the first deadline runs out ([`NEVER`](crate::deadlines::NEVER): there is none);
    /// 0 if one is to be looked at again.
    pub fn next_deadline(&self) -> u64 {
        match self.again.is_empty() {
            true => self.deadlines.next(),
            false => 0,
        }
    }

    /// All that are there now.
    pub fn keys(&self) -> Vec<Key> {
        self.values.keys().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadlines::NEVER;
    use crate::socket;

    #[test]
    fn what_is_released_is_neither_late_nor_there() {
        let mut timed = Timed::default();
        let keys = ['a', 'b', 'c'].map(|value| timed.values.insert(value));
        for (at, key) in (10..).zip(keys) {
            timed.deadlines.set(key.index(), at);
        }
        timed.release(keys[0]);
        // A value that is out of its place is not told of.
        assert_eq!(timed.values.take(keys[1]), Some('b'));
        assert_eq!((timed.late(9), timed.late(12)), (None, Some(keys[2])));
        assert_eq!((timed.late(99), timed.next_deadline()), (None, NEVER));
        assert_eq!(timed.keys(), [keys[2]]);
    }

    #[test]
    fn what_is_to_be_looked_at_again_is_told_once_and_at_once() {
        let mut timed = Timed::default();
        let key = timed.values.insert(());
        timed.deadlines.set(key.index(), 7);
        assert_eq!(timed.next_deadline(), 7);
        timed.look_again(key);
        timed.look_again(key);
        assert_eq!(timed.next_deadline(), 0);
        assert_eq!(timed.again(), [key]);
        assert!(timed.again().is_empty());
        assert_eq!(timed.next_deadline(), 7);
    }

    #[test]
    fn a_connection_is_told_of_by_its_place() {
        let mut poller = Poller::new().unwrap();
        let mut timed = Timed::<()>::default();
        let (near, _far) = socket::pair().unwrap();
        let key = timed.watch(&near, 3, Interest::Write, &poller).unwrap();
        assert_eq!(poller.wait(None).unwrap(), 1);
        let token = poller.next_event().unwrap().token;
        assert_eq!(Key::of_token(token), (3, key));
        // Watched already, it cannot be once more; and no place is lost.
        let again = timed.watch(&near, 3, Interest::Write, &poller);
        assert_eq!((again, timed.values.taken()), (None, 1));
    }
}
