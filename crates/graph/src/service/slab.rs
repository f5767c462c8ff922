//! Values with numbers that the poller, timers and workers know them by.

/// Names a value in a [`Slab`]; one that was removed is never found by it again, until
/// four billion others stood in the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    /// The same as one number.
    pub(super) fn number(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    pub(super) fn of(number: u64) -> Self {
        Self {
            index: number as u32,
            generation: (number >> 32) as u32,
        }
    }
}

/// What a token of the poller stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// A caller's connection.
    Session(Key),
    /// A connection to a callee.
    Link(Key),
    /// A caller's connection of HTTP/2.
    Front(Key),
    /// A connection of HTTP/2 to a callee.
    Channel(Key),
    /// The listener of an instance, by its place in the thread.
    Listener(u32),
    /// Another thread calls.
    Waker,
}

/// The three highest bits of a place say what it is; so there are 2^29 places.
const KIND: u32 = 29;
const INDEX: u32 = (1 << KIND) - 1;

impl Token {
    pub(super) fn number(self) -> u64 {
        let (kind, index, generation) = match self {
            Self::Session(key) => (0, key.index, key.generation),
            Self::Link(key) => (1, key.index, key.generation),
            Self::Listener(index) => (2, index, 0),
            Self::Waker => (3, 0, 0),
            Self::Front(key) => (4, key.index, key.generation),
            Self::Channel(key) => (5, key.index, key.generation),
        };
        u64::from(generation) << 32 | u64::from(kind << KIND | index & INDEX)
    }

    pub(super) fn of(number: u64) -> Self {
        let (generation, low) = ((number >> 32) as u32, number as u32);
        let index = low & INDEX;
        let key = Key { index, generation };
        match low >> KIND {
            0 => Self::Session(key),
            1 => Self::Link(key),
            2 => Self::Listener(index),
            4 => Self::Front(key),
            5 => Self::Channel(key),
            _ => Self::Waker,
        }
    }
}

/// Values by number. A value can be taken out for a while and put back, so that others
/// can be worked on beside it.
#[derive(Debug)]
pub(super) struct Slab<T> {
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
    pub(super) fn reserve(&mut self) -> Key {
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
    pub(super) fn insert(&mut self, value: T) -> Key {
        let key = self.reserve();
        self.put(key, value);
        key
    }

    /// Takes a value out; its place stays its own until [`Slab::release`].
    pub(super) fn take(&mut self, key: Key) -> Option<T> {
        self.place(key)?.value.take()
    }

    /// Puts a value into its place.
    pub(super) fn put(&mut self, key: Key, value: T) {
        if let Some(place) = self.place(key) {
            place.value = Some(value);
        }
    }

    /// The value, if it is in its place.
    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.place(key)?.value.as_mut()
    }

    /// Takes a value out and gives its place free.
    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        let value = self.take(key);
        self.release(key);
        value
    }

    /// Gives a place free, with what is in it.
    pub(super) fn release(&mut self, key: Key) {
        if let Some(place) = self.place(key) {
            place.value = None;
            place.generation = place.generation.wrapping_add(1);
            self.free.push(key.index);
        }
    }

    /// The keys of all values that are in their places.
    pub(super) fn keys(&self) -> impl Iterator<Item = Key> {
        self.places.iter().enumerate().filter_map(|(index, place)| {
            place.value.as_ref().map(|_| Key {
                index: index as u32,
                generation: place.generation,
            })
        })
    }

    /// All values that are in their places.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter_map(|place| place.value.as_ref())
    }

    /// Values and places that are taken.
    pub(super) fn len(&self) -> usize {
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
        assert_eq!(slab.get_mut(first), None);
        assert_eq!(slab.keys().count(), 0);
        slab.put(first, 'a');
        assert_eq!(slab.remove(first), Some('a'));
        slab.release(first);
        let second = slab.insert('b');
        assert_eq!(first.index, second.index);
        assert_eq!(slab.get_mut(first), None);
        assert_eq!(slab.len(), 1);
        slab.put(first, 'c');
        assert_eq!(slab.get_mut(second), Some(&mut 'b'));
        assert_eq!(slab.keys().collect::<Vec<_>>(), [second]);
    }

    #[test]
    fn tokens_and_keys_come_back() {
        let key = Key {
            index: 77,
            generation: u32::MAX,
        };
        assert_eq!(Key::of(key.number()), key);
        let tokens = [
            Token::Session(key),
            Token::Link(key),
            Token::Front(key),
            Token::Channel(key),
            Token::Listener(1),
            Token::Waker,
        ];
        for token in tokens {
            assert_eq!(Token::of(token.number()), token);
        }
    }
}
