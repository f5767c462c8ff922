//! Changes that are not durable yet, over the table that they belong to.

#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::ops::Bound;

/// Values by their keys.
pub trait Table<K, V> {
    /// The value of a key.
    fn value<Q: Ord + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>;

    /// Gives a key this value, or none.
    fn set(&mut self, key: K, value: Option<V>);
}

impl<K: Ord, V> Table<K, V> for BTreeMap<K, V> {
    fn value<Q: Ord + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.get(key)
    }

    fn set(&mut self, key: K, value: Option<V>) {
        match value {
            Some(value) => drop(self.insert(key, value)),
            None => drop(self.remove(&key)),
        }
    }
}

impl<K: Eq + Hash, V> Table<K, V> for HashMap<K, V> {
    fn value<Q: Ord + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.get(key)
    }

    fn set(&mut self, key: K, value: Option<V>) {
        match value {
            Some(value) => drop(self.insert(key, value)),
            None => drop(self.remove(&key)),
        }
    }
}

/// What differs from a table below, by key; `None` for what is removed.
#[derive(Debug)]
pub struct Layer<K, V>(BTreeMap<K, Option<V>>);

impl<K, V> Default for Layer<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord, V> Layer<K, V> {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this key's value was put or removed.
    pub fn touches<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.contains_key(key)
    }

    /// The value of a key: of this layer, else of the table below.
    pub fn get<'a, Q: Ord + Hash + ?Sized>(
        &'a self,
        below: &'a impl Table<K, V>,
        key: &Q,
    ) -> Option<&'a V>
    where
        K: Borrow<Q>,
    {
        match self.0.get(key) {
            Some(value) => value.as_ref(),
            None => below.value(key),
        }
    }

    /// Gives a key this value, or none.
    pub fn put(&mut self, key: K, value: Option<V>) {
        self.0.insert(key, value);
    }

    /// The value in this layer, copied there from the table below if it is not yet; where
    /// there is none, a default one.
    pub fn edit(&mut self, below: &impl Table<K, V>, key: K) -> &mut V
    where
        K: Hash,
        V: Clone + Default,
    {
        let entry = self.0.entry(key);
        let value = entry.or_insert_with_key(|key| below.value(key).cloned());
        value.get_or_insert_default()
    }

    /// All that differs, in the order of keys.
    pub fn changes(&self) -> impl Iterator<Item = (&K, Option<&V>)> {
        self.0.iter().map(|(key, value)| (key, value.as_ref()))
    }

    /// All values: those of this layer, then those of the table below.
    pub fn values<'a>(&'a self, below: &'a BTreeMap<K, V>) -> impl Iterator<Item = &'a V> {
        let left = below.iter().filter(|(key, _)| !self.touches(*key));
        self.0
            .values()
            .flatten()
            .chain(left.map(|(_, value)| value))
    }

    /// The values of keys from `from` on, as long as these are `within`: those of this layer,
    /// then those of the table below, each in the order of keys.
    pub fn range<'a>(
        &'a self,
        below: &'a BTreeMap<K, V>,
        from: &K,
        within: impl Fn(&K) -> bool + Copy + 'a,
    ) -> impl Iterator<Item = &'a V> {
        let from = (Bound::Included(from), Bound::Unbounded);
        let above = self.0.range(from).take_while(move |(key, _)| within(key));
        let left = below.range(from).take_while(move |(key, _)| within(key));
        let left = left.filter(|(key, _)| !self.touches(*key));
        let above = above.filter_map(|(_, value)| value.as_ref());
        above.chain(left.map(|(_, value)| value))
    }

    /// Makes it part of the table below.
    pub fn merge_into(self, below: &mut impl Table<K, V>) {
        for (key, value) in self.0 {
            below.set(key, value);
        }
    }
}

impl<K, V> IntoIterator for Layer<K, V> {
    type Item = (K, Option<V>);
    type IntoIter = std::collections::btree_map::IntoIter<K, Option<V>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
