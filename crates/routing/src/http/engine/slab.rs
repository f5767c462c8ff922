//! Values with numbers that the poller knows them by.

/// Names a value in a [`Slab`]; one that was removed is never found by it again, until
/// four billion others stood in the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// The place.
    pub(super) index: u32,
    generation: u32,
}

/// What a token of the poller stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// A client's connection.
    Client(Key),
    /// A connection to a backend.
    Backend(Key),
    /// A listener, by its number.
    Listener(u32),
    /// A client's connection of HTTP/2.
    Front(Key),
    /// A backend's connection of HTTP/2.
    Back(Key),
    /// Another thread calls.
    Waker,
}

/// The three highest bits of a place say what it is; so there are 2^29 places.
const KIND: u32 = 29;
const INDEX: u32 = (1 << KIND) - 1;

impl Token {
    pub(super) fn number(self) -> u64 {
        let (kind, index, generation) = match self {
            Self::Client(key) => (0, key.index, key.generation),
            Self::Backend(key) => (1, key.index, key.generation),
            Self::Listener(index) => (2, index, 0),
            Self::Waker => (3, 0, 0),
            Self::Front(key) => (4, key.index, key.generation),
            Self::Back(key) => (5, key.index, key.generation),
        };
        u64::from(generation) << 32 | u64::from(kind << KIND | index & INDEX)
    }

    pub(super) fn of(number: u64) -> Self {
        let (generation, low) = ((number >> 32) as u32, number as u32);
        let index = low & INDEX;
        let key = Key { index, generation };
        match low >> KIND {
            0 => Self::Client(key),
            1 => Self::Backend(key),
            2 => Self::Listener(index),
            4 => Self::Front(key),
            5 => Self::Back(key),
            _ => Self::Waker,
        }
    }
}

/// Values by number. A value can be taken out for a while and put back.
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
    pub(super) fn get(&self, key: Key) -> Option<&T> {
        let place = self.places.get(key.index as usize)?;
        let same = place.generation == key.generation;
        same.then_some(place.value.as_ref()).flatten()
    }

    /// Gives a place free, with what is in it.
    pub(super) fn release(&mut self, key: Key) {
        if let Some(place) = self.place(key) {
            place.value = None;
            place.generation = place.generation.wrapping_add(1);
            self.free.push(key.index);
        }
    }

    /// The key of whatever stands in a place now.
    pub(super) fn key_at(&self, index: usize) -> Option<Key> {
        let place = self.places.get(index)?;
        place.value.is_some().then_some(Key {
            index: index as u32,
            generation: place.generation,
        })
    }

    /// Places, empty ones included.
    pub(super) fn places(&self) -> usize {
        self.places.len()
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
        let first = slab.reserve();
        slab.put(first, 'a');
        assert_eq!(slab.take(first), Some('a'));
        assert_eq!(slab.get(first), None);
        slab.put(first, 'a');
        slab.release(first);
        slab.release(first);
        let second = slab.reserve();
        slab.put(second, 'b');
        assert_eq!(first.index, second.index);
        assert_eq!((slab.get(first), slab.get(second)), (None, Some(&'b')));
        slab.put(first, 'c');
        assert_eq!(slab.get(second), Some(&'b'));
        assert_eq!((slab.len(), slab.key_at(0)), (1, Some(second)));
    }

    #[test]
    fn tokens_come_back() {
        let key = Key {
            index: 77,
            generation: u32::MAX,
        };
        let tokens = [
            Token::Client(key),
            Token::Backend(key),
            Token::Listener(1),
            Token::Waker,
            Token::Front(key),
            Token::Back(key),
        ];
        for token in tokens {
            assert_eq!(Token::of(token.number()), token);
        }
    }
}
