//! Values with numbers that a poller, timers and other threads know them by.
//!
//! An event may name a place whose value is gone: one wait of the poller returns many
//! events, and an earlier one may have removed it. So a place that is used again has
//! another generation, and the key that names both finds nothing any more.

/// Names a value in a [`Slab`]; one that was removed is never found by it again, until
/// four billion others stood in the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    index: u32,
    generation: u32,
}

/// The three highest bits of a place are for the kind in [`Key::token`].
const KIND: u32 = 29;
const INDEX: u32 = (1 << KIND) - 1;

impl Key {
    /// The place: places are numbered from 0 and used again.
    #[inline]
    pub fn index(self) -> u32 {
        self.index
    }

    /// The key as one number, for [`Key::of`].
    #[inline]
    pub fn number(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// The key that a number stands for.
    #[inline]
    pub fn of(number: u64) -> Self {
        Self {
            index: number as u32,
            generation: (number >> 32) as u32,
        }
    }

    /// The key as a token of a [`Poller`](crate::poller::Poller), with what it is the key
    /// of: a kind of 0 to 7. Places are below 2^29 then; each holds a descriptor, of which
    /// a process has fewer.
    #[inline]
    pub fn token(self, kind: u32) -> u64 {
        let index = kind << KIND | self.index & INDEX;
        Self { index, ..self }.number()
    }

    /// Kind and key of a token.
    #[inline]
    pub fn of_token(token: u64) -> (u32, Self) {
        let key = Self::of(token);
        let index = key.index & INDEX;
        (key.index >> KIND, Self { index, ..key })
    }
}

/// Values by key. A value can be taken out for a while and put back, so that others can
/// be worked on beside it. Places are used again and never given back, so the memory is
/// that of the most values at a time; who inserts sees to it that there is an end to them.
#[derive(Debug)]
pub struct Slab<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// A place for a value that [`Slab::put`] brings.
    pub fn reserve(&mut self) -> Key {
        if let Some(index) = self.free.pop()
            && let Some(place) = self.places.get(index as usize)
        {
            let generation = place.generation;
            return Key { index, generation };
        }
        let index = self.places.len() as u32;
        self.places.push(Place {
            generation: 0,
            value: None,
        });
        Key {
            index,
            generation: 0,
        }
    }

    /// Gives a value a place.
    pub fn insert(&mut self, value: T) -> Key {
        let key = self.reserve();
        self.put(key, value);
        key
    }

    /// Takes a value out; its place stays its own until [`Slab::release`].
    pub fn take(&mut self, key: Key) -> Option<T> {
        self.place(key)?.value.take()
    }

    /// Puts a value into its place. One whose place was released is dropped.
    pub fn put(&mut self, key: Key, value: T) {
        if let Some(place) = self.place(key) {
            place.value = Some(value);
        }
    }

    /// The value, if it is in its place.
    pub fn get(&self, key: Key) -> Option<&T> {
        let place = self.places.get(key.index as usize)?;
        let same = place.generation == key.generation;
        same.then_some(place.value.as_ref()).flatten()
    }

    /// The value, if it is in its place.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.place(key)?.value.as_mut()
    }

    /// Takes a value out and gives its place free.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let value = self.take(key);
        self.release(key);
        value
    }

    /// Gives a place free, with what is in it.
    pub fn release(&mut self, key: Key) {
        if let Some(place) = self.place(key) {
            place.value = None;
            place.generation = place.generation.wrapping_add(1);
            self.free.push(key.index);
        }
    }

    /// The key of the value that stands in a place now.
    pub fn key_at(&self, index: usize) -> Option<Key> {
        let place = self.places.get(index)?;
        place.value.is_some().then_some(Key {
            index: index as u32,
            generation: place.generation,
        })
    }

    /// The keys of all values that are in their places. A loop that changes the slab
    /// counts over [`Slab::places`] instead.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        (0..self.places()).filter_map(|index| self.key_at(index))
    }

    /// All values that are in their places.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter_map(|place| place.value.as_ref())
    }

    /// Places, empty ones included: all indices are below.
    pub fn places(&self) -> usize {
        self.places.len()
    }

    /// Places that are not free: those of values, and of values taken out.
    pub fn taken(&self) -> usize {
        self.places.len() - self.free.len()
    }

    fn place(&mut self, key: Key) -> Option<&mut Place<T>> {
        self.places
            .get_mut(key.index as usize)
            .filter(|place| place.generation == key.generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_value_is_not_found_by_its_key() {
        let mut slab = Slab::default();
        let first = slab.insert('a');
        assert_eq!(slab.take(first), Some('a'));
        assert_eq!((slab.get(first), slab.key_at(0)), (None, None));
        assert_eq!((slab.keys().count(), slab.taken()), (0, 1));
        slab.put(first, 'a');
        assert_eq!(slab.remove(first), Some('a'));
        slab.release(first);
        assert_eq!((slab.taken(), slab.places()), (0, 1));
        let second = slab.insert('b');
        assert_eq!(first.index, second.index);
        assert_eq!((slab.get(first), slab.get(second)), (None, Some(&'b')));
        slab.put(first, 'c');
        assert_eq!(slab.get_mut(second), Some(&mut 'b'));
        assert_eq!(slab.keys().collect::<Vec<_>>(), [second]);
        assert_eq!((slab.key_at(0), slab.key_at(1)), (Some(second), None));
        assert_eq!(slab.values().collect::<Vec<_>>(), [&'b']);
    }

    #[test]
    fn numbers_and_tokens_come_back() {
        let key = Key {
            index: INDEX,
            generation: u32::MAX,
        };
        assert_eq!(Key::of(key.number()), key);
        for kind in 0..8 {
            assert_eq!(Key::of_token(key.token(kind)), (kind, key));
        }
    }
}
