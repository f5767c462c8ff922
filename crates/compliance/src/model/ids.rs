//! Dense numbers for identities, so that a computation compares and indexes integers.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

/// A number that stands for a text within one computation; never stored, never sent.
pub trait DenseId: Copy + Eq + Ord + std::hash::Hash {
    /// The id of this number.
    fn from_number(number: u32) -> Self;
    /// Its place in a table.
    fn index(self) -> usize;
}

macro_rules! dense_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl DenseId for $name {
            fn from_number(number: u32) -> Self {
                Self(number)
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

dense_id!(
    /// A node.
    NodeIx
);
dense_id!(
    /// A rule.
    RuleIx
);
dense_id!(
    /// A directive.
    DirectiveIx
);
dense_id!(
    /// A group.
    GroupIx
);
dense_id!(
    /// A text of an inventory.
    TextIx
);

/// Texts and their dense numbers. A text keeps its number for the interner's life.
#[derive(Debug, Clone)]
pub struct Interner<I> {
    numbers: HashMap<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
    kind: PhantomData<I>,
}

impl<I> Default for Interner<I> {
    fn default() -> Self {
        Self {
            numbers: HashMap::new(),
            texts: Vec::new(),
            kind: PhantomData,
        }
    }
}

impl<I: DenseId> Interner<I> {
    /// The id of a text; a new one if it has none. Texts beyond the 2^32nd share the last id:
    /// callers bound what they intern far below.
    pub fn intern(&mut self, text: &str) -> I {
        if let Some(&number) = self.numbers.get(text) {
            return I::from_number(number);
        }
        let number = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        let text: Arc<str> = text.into();
        self.texts.push(Arc::clone(&text));
        self.numbers.insert(text, number);
        I::from_number(number)
    }

    /// The id of a text that has one.
    pub fn get(&self, text: &str) -> Option<I> {
        self.numbers.get(text).map(|&number| I::from_number(number))
    }

    /// The text of an id; empty for one of another interner.
    pub fn text(&self, id: I) -> &str {
        self.texts.get(id.index()).map_or("", |text| &**text)
    }

    /// How many texts have an id.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Has no text an id?
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}
