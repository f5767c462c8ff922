//! Words of a text, each with its place.

use std::ops::Range;

use crate::UnitError;

/// A word, and the bytes of the text at which it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word<'t> {
    /// The word.
    pub text: &'t str,
    /// Its place.
    pub at: Range<usize>,
}

impl<'t> Word<'t> {
    /// The word that begins at the byte `start` of a text.
    pub fn at(text: &'t str, start: usize) -> Self {
        let at = start..start + text.len();
        Self { text, at }
    }

    /// The words of a text, which stand between white space.
    pub fn all(text: &'t str) -> Vec<Self> {
        let start = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
        text.split_whitespace()
            .map(|word| Self::at(word, start(word)))
            .collect()
    }

    /// Reads the word; an error has its place in the whole text.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn read<T>(&self, read: impl Fn(&str) -> Result<T, UnitError>) -> Result<T, UnitError> {
        read(self.text).map_err(|error| error.shifted(self.at.start))
    }

    /// An error about the whole word.
    pub fn error(&self, message: impl Into<String>) -> UnitError {
        UnitError::new(self.at.clone(), message)
    }
}
