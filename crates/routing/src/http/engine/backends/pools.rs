//! Connections to backends that wait for their next request, by the backend's address.

use std::collections::HashMap;

use wire::slab::Key;

/// Numbers of idle connections. The one used last is used first, so that those which are
/// not needed grow old.
#[derive(Debug, Default)]
pub(super) struct Pools {
    idle: HashMap<Box<str>, Vec<Key>>,
    count: usize,
}

impl Pools {
    /// Takes the connection that was used last.
    pub(super) fn take(&mut self, address: &str) -> Option<Key> {
        let key = self.idle.get_mut(address)?.pop()?;
        self.count -= 1;
        Some(key)
    }

    /// Adds a connection; `false` when `most` are there already.
    pub(super) fn add(&mut self, address: &str, key: Key, most: usize) -> bool {
        // Looked for first: a name is allocated once for each address only.
        if let Some(idle) = self.idle.get_mut(address) {
            if idle.len() >= most {
                return false;
            }
            idle.push(key);
        } else if most > 0 {
            self.idle.insert(address.into(), vec![key]);
        } else {
            return false;
        }
        self.count += 1;
        true
    }

    /// Forgets a connection that ended while it was idle.
    pub(super) fn remove(&mut self, address: &str, key: Key) {
        let Some(idle) = self.idle.get_mut(address) else {
            return;
        };
        let before = idle.len();
        // From the back: what ends is often what was used last.
        if let Some(at) = idle.iter().rposition(|other| *other == key) {
            idle.remove(at);
        }
        self.count -= before - idle.len();
        if idle.is_empty() {
            // So that addresses which are gone leave nothing behind.
            self.idle.remove(address);
        }
    }

    /// Connections in all pools.
    pub(super) fn len(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::slab::Slab;

    #[test]
    fn last_in_first_out_and_bounded() {
        let mut slab = Slab::<()>::default();
        let keys: Vec<Key> = (0..3).map(|_| slab.reserve()).collect();
        let mut pools = Pools::default();
        assert!(!pools.add("a:1", keys[0], 0));
        assert!(pools.add("a:1", keys[0], 2) && pools.add("a:1", keys[1], 2));
        assert!(!pools.add("a:1", keys[2], 2));
        assert_eq!(pools.take("b:1"), None);
        assert_eq!(pools.take("a:1"), Some(keys[1]));
        pools.remove("a:1", keys[2]);
        assert_eq!(pools.len(), 1);
        pools.remove("a:1", keys[0]);
        assert_eq!((pools.len(), pools.idle.len()), (0, 0));
    }
}
