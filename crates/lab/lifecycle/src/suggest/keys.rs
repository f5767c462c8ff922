//! Places that name the same things: fields and words of messages with the same values.

use std::collections::{HashMap, HashSet};

use super::naming;
use super::read::Read;

/// Fewest values of a key.
const FEWEST: usize = 3;
/// Places that share this part of the smaller one's values name the same things.
const SHARED: f64 = 0.5;
/// A value of so many digits or fewer may be anything's number.
const SHORT: usize = 5;

/// Places that name the same things, the one that most lines have first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) places: Vec<u16>,
}

impl Group {
    pub(super) fn has(&self, place: u16) -> bool {
        self.places.contains(&place)
    }
}

/// A number that tells nothing apart from other numbers.
pub(super) fn is_short_number(text: &str) -> bool {
    text.len() <= SHORT && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// All places with enough values, each in one group.
pub(super) fn groups(read: &Read) -> Vec<Group> {
    let mut lines = vec![0_u64; read.places.len()];
    let mut values: Vec<HashSet<u32>> = vec![HashSet::new(); read.places.len()];
    for event in &read.events {
        lines[event.place as usize] += 1;
        values[event.place as usize].insert(event.value);
    }
    let mut of_value: HashMap<u32, Vec<u16>> = HashMap::new();
    for (place, values) in values.iter().enumerate() {
        if values.len() >= FEWEST {
            for value in values {
                of_value.entry(*value).or_default().push(place as u16);
            }
        }
    }
    let mut shared: HashMap<(u16, u16), Shared> = HashMap::new();
    for (value, places) in &of_value {
        let is_short = is_short_number(read.values.text(*value));
        for (at, a) in places.iter().enumerate() {
            for b in &places[at + 1..] {
                let both = shared.entry((*a, *b)).or_default();
                both.values += 1;
                both.short += usize::from(is_short);
            }
        }
    }
    let names: Vec<String> = (0..values.len())
        .map(|place| naming::subject(read, place as u16))
        .collect();
    let mut of_place: Vec<usize> = (0..values.len()).collect();
    let mut pairs: Vec<_> = shared.into_iter().collect();
    pairs.sort_unstable_by_key(|(pair, _)| *pair);
    for ((a, b), both) in pairs {
        let sizes = (values[a as usize].len(), values[b as usize].len());
        if both.is_enough(sizes, names[a as usize] == names[b as usize]) {
            let (from, to) = (of_place[b as usize], of_place[a as usize]);
            of_place
                .iter_mut()
                .filter(|group| **group == from)
                .for_each(|group| *group = to);
        }
    }
    let mut groups: HashMap<usize, Vec<u16>> = HashMap::new();
    for (place, group) in of_place.iter().enumerate() {
        if values[place].len() >= FEWEST {
            groups.entry(*group).or_default().push(place as u16);
        }
    }
    let mut groups: Vec<Group> = groups
        .into_values()
        .map(|mut places| {
            places.sort_by_key(|place| (std::cmp::Reverse(lines[*place as usize]), *place));
            Group { places }
        })
        .collect();
    groups.sort_by(|a, b| a.places.cmp(&b.places));
    groups
}

/// Values that two places have in common.
#[derive(Debug, Default)]
struct Shared {
    values: usize,
    /// Of these, short numbers.
    short: usize,
}

impl Shared {
    fn is_enough(&self, (a, b): (usize, usize), is_one_name: bool) -> bool {
        let of = |size: usize| self.values as f64 >= SHARED * size as f64;
        // The index 0 to 9 is in every list of order numbers.
        let size = match self.short * 2 > self.values && !is_one_name {
            true => a.max(b),
            false => a.min(b),
        };
        self.values >= FEWEST && of(size)
    }
}
