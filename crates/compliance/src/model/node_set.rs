//! Sets of nodes as bits.

use super::ids::{DenseId, NodeIx};

/// A set of nodes, one bit each.
#[derive(Debug, Clone, Default)]
pub struct NodeSet {
    words: Vec<u64>,
}

impl NodeSet {
    /// Adds a node; says whether it was absent.
    pub fn insert(&mut self, node: NodeIx) -> bool {
        let (word, bit) = place(node);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let absent = self.words[word] & bit == 0;
        self.words[word] |= bit;
        absent
    }

    /// Takes a node out; says whether it was present.
    pub fn remove(&mut self, node: NodeIx) -> bool {
        let (word, bit) = place(node);
        match self.words.get_mut(word) {
            Some(word) => {
                let present = *word & bit != 0;
                *word &= !bit;
                present
            }
            None => false,
        }
    }

    /// Adds or takes out; says whether that changed anything.
    pub fn set(&mut self, node: NodeIx, member: bool) -> bool {
        if member {
            self.insert(node)
        } else {
            self.remove(node)
        }
    }

    /// Is the node in the set?
    pub fn contains(&self, node: NodeIx) -> bool {
        let (word, bit) = place(node);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Adds all nodes of another set.
    pub fn union_with(&mut self, other: &Self) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
    }

    /// Takes out all nodes of another set.
    pub fn subtract(&mut self, other: &Self) {
        for (word, less) in self.words.iter_mut().zip(&other.words) {
            *word &= !less;
        }
    }

    /// Keeps only nodes that another set has too.
    pub fn intersect_with(&mut self, other: &Self) {
        let more = other.words.iter().copied().chain(std::iter::repeat(0));
        for (word, keep) in self.words.iter_mut().zip(more) {
            *word &= keep;
        }
    }

    /// The nodes that exactly one of the two sets has.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let (long, short) = if self.words.len() >= other.words.len() {
            (self, other)
        } else {
            (other, self)
        };
        let mut words = long.words.clone();
        for (word, flip) in words.iter_mut().zip(&short.words) {
            *word ^= flip;
        }
        Self { words }
    }

    /// How many nodes it has.
    pub fn len(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// Has it no node?
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Its nodes, in order.
    pub fn iter(&self) -> impl Iterator<Item = NodeIx> + '_ {
        self.words.iter().zip(0u32..).flat_map(|(&word, at)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(NodeIx(at * 64 + bit))
            })
        })
    }
}

impl PartialEq for NodeSet {
    fn eq(&self, other: &Self) -> bool {
        self.difference(other).is_empty()
    }
}

impl Eq for NodeSet {}

impl FromIterator<NodeIx> for NodeSet {
    fn from_iter<T: IntoIterator<Item = NodeIx>>(nodes: T) -> Self {
        let mut set = Self::default();
        for node in nodes {
            set.insert(node);
        }
        set
    }
}

fn place(node: NodeIx) -> (usize, u64) {
    (node.index() / 64, 1 << (node.index() % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn set_of(numbers: &BTreeSet<u32>) -> NodeSet {
        numbers.iter().map(|&number| NodeIx(number)).collect()
    }

    fn numbers_of(set: &NodeSet) -> BTreeSet<u32> {
        set.iter().map(|node| node.0).collect()
    }

    proptest! {
        #[test]
        fn a_set_does_what_a_set_of_numbers_does(
            a in proptest::collection::btree_set(0u32..300, 0..40),
            b in proptest::collection::btree_set(0u32..700, 0..40),
        ) {
            let (x, y) = (set_of(&a), set_of(&b));
            prop_assert_eq!(x.len(), a.len());
            let mut union = x.clone();
            union.union_with(&y);
            prop_assert_eq!(numbers_of(&union), &a | &b);
            let mut less = x.clone();
            less.subtract(&y);
            prop_assert_eq!(numbers_of(&less), &a - &b);
            let mut both = x.clone();
            both.intersect_with(&y);
            prop_assert_eq!(numbers_of(&both), &a & &b);
            prop_assert_eq!(numbers_of(&x.difference(&y)), &a ^ &b);
            prop_assert_eq!(x == y, a == b);
            let mut back = union;
            for &number in &b {
                back.set(NodeIx(number), a.contains(&number));
            }
            prop_assert_eq!(back, x);
        }
    }
}
