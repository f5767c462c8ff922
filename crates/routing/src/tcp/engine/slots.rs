//! Values under small numbers that are used again, each time with a new generation.
//!
//! An event may name a slot whose value is gone: one wait of the poller returns many
//! events, and an earlier one may have removed it. The generation tells.

/// Where a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

/// See the module.
pub(super) struct Slots<T> {
    slots: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Slots<T> {
    pub(super) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(super) fn insert(&mut self, value: T) -> Key {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.slots.push((0, None));
                // Each value holds a descriptor, of which there are fewer than 2^31.
                (self.slots.len() - 1) as u32
            }
        };
        let (generation, place) = &mut self.slots[slot as usize];
        *place = Some(value);
        Key {
            slot,
            generation: *generation,
        }
    }

    pub(super) fn get(&mut self, key: Key) -> Option<&mut T> {
        let (generation, place) = self.slots.get_mut(key.slot as usize)?;
        place.as_mut().filter(|_| *generation == key.generation)
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        let (generation, place) = self.slots.get_mut(key.slot as usize)?;
        if *generation != key.generation {
            return None;
        }
        let value = place.take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(key.slot);
        Some(value)
    }

    /// The key of the value at a place, if there is one.
    pub(super) fn key_at(&self, place: usize) -> Option<Key> {
        let (generation, value) = self.slots.get(place)?;
        value.as_ref()?;
        Some(Key {
            slot: u32::try_from(place).ok()?,
            generation: *generation,
        })
    }

    /// Places so far: all values are below.
    pub(super) fn places(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_used_again_is_another_key() {
        let mut slots = Slots::new();
        let first = slots.insert('a');
        assert_eq!(slots.remove(first), Some('a'));
        let second = slots.insert('b');
        assert_eq!(second.slot, first.slot);
        assert_eq!(slots.get(first), None);
        assert_eq!(slots.remove(first), None);
        assert_eq!(slots.get(second), Some(&mut 'b'));
        assert_eq!((slots.len(), slots.places()), (1, 1));
        assert_eq!(slots.key_at(0), Some(second));
        assert_eq!(slots.key_at(1), None);
    }
}
