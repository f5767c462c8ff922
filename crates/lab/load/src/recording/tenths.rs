//! A load in tenths of a second: what a stall of some hundredths, and a queue that grows
//! within seconds, are to be seen in.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What was seen in one tenth of a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tenth {
    /// Its number, from 0 at the start of the segment.
    pub number: u32,
    /// Longest time from the intended send to the end of an answer that ended in it, in
    /// microseconds; 0: none ended.
    pub worst_us: u32,
    /// Requests that were sent in it.
    pub sent: u32,
    /// Most requests in flight.
    pub in_flight: u32,
}

/// Tenths of a second in order of time; those in which nothing happened are missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tenths(Vec<Tenth>);

impl Tenths {
    /// Length of each.
    pub const LENGTH: Duration = Duration::from_millis(100);
    /// Most that are kept, those of an hour; what comes later is left out.
    pub const MOST: usize = 36_000;

    /// The tenth of this moment, from the start of the segment.
    pub fn at(&mut self, moment: Duration) -> &mut Tenth {
        let number = moment.as_nanos() / Self::LENGTH.as_nanos();
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        // Nearly always the last one, or the one after it.
        let place = match self.0.last() {
            Some(last) if last.number == number => self.0.len() - 1,
            Some(last) if last.number > number => {
                match self.0.binary_search_by_key(&number, |tenth| tenth.number) {
                    Ok(place) => place,
                    Err(place) => self.insert(place, number),
                }
            }
            _ => self.insert(self.0.len(), number),
        };
        &mut self.0[place]
    }

    fn insert(&mut self, place: usize, number: u32) -> usize {
        let tenth = Tenth {
            number,
            ..Tenth::default()
        };
        self.0.insert(place, tenth);
        place
    }

    /// Adds those of other threads, in the same time: what is in flight adds up.
    pub fn merge(&mut self, other: &Self) {
        self.join(other, u32::saturating_add);
    }

    /// Adds those that follow in time, of the same threads. One tenth may be in both: a span
    /// is not closed in the moment in which it ends.
    pub fn append(&mut self, next: &Self) {
        self.join(next, u32::max);
    }

    fn join(&mut self, other: &Self, in_flight: fn(u32, u32) -> u32) {
        for tenth in &other.0 {
            let last = self.0.last().map(|last| last.number);
            let is_new = last.is_none_or(|last| tenth.number > last);
            if is_new && self.0.len() >= Self::MOST {
                break;
            }
            let own = self.at(Self::LENGTH * tenth.number);
            own.worst_us = own.worst_us.max(tenth.worst_us);
            own.sent = own.sent.saturating_add(tenth.sent);
            own.in_flight = in_flight(own.in_flight, tenth.in_flight);
        }
    }

    /// In order of time.
    pub fn iter(&self) -> impl Iterator<Item = &Tenth> {
        self.0.iter()
    }

    /// Forgets them, and keeps the memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes as little memory as it can.
    pub fn pack(&mut self) {
        self.0.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn moments_of_a_tenth_share_it_and_threads_add_up() {
        let mut one = Tenths::default();
        one.at(MS * 120).worst_us = 7;
        one.at(MS * 199).sent += 1;
        one.at(MS * 450).in_flight = 2;
        // A batch of events may be told a moment late.
        one.at(MS * 99).sent += 1;
        let numbers: Vec<u32> = one.iter().map(|tenth| tenth.number).collect();
        assert_eq!(numbers, [0, 1, 4]);
        let mut both = one.clone();
        both.merge(&one);
        let told: Vec<_> = both
            .iter()
            .map(|t| (t.worst_us, t.sent, t.in_flight))
            .collect();
        assert_eq!(told, [(0, 2, 0), (7, 2, 0), (0, 0, 4)]);
        // The same thread a moment later has not twice as many in flight.
        let mut later = one.clone();
        later.append(&one);
        let told: Vec<_> = later.iter().map(|t| (t.sent, t.in_flight)).collect();
        assert_eq!(told, [(2, 0), (2, 0), (0, 2)]);
    }

    #[test]
    fn what_comes_after_an_hour_is_left_out() {
        let mut all = Tenths::default();
        let mut more = Tenths::default();
        for number in 0..Tenths::MOST as u32 + 9 {
            more.at(Tenths::LENGTH * number).sent = 1;
        }
        all.merge(&more);
        assert_eq!(all.iter().count(), Tenths::MOST);
        all.merge(&more);
        assert!(all.iter().all(|tenth| tenth.sent == 2));
    }
}
