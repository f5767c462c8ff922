//! Text that cannot be read.

use std::ops::Range;

use crate::nearest;

/// Text that is not of the expected form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UnitError {
    /// What was found and what was expected.
    pub message: String,
    /// The bytes of the text that are wrong.
    pub at: Range<usize>,
    /// What was most likely meant.
    pub suggestion: Option<String>,
}

impl UnitError {
    /// An error at these bytes of a text.
    pub fn new(at: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            at,
            suggestion: None,
        }
    }

    /// With what was most likely meant.
    #[must_use]
    pub fn suggest(mut self, meant: impl Into<String>) -> Self {
        self.suggestion = Some(meant.into());
        self
    }

    /// With the one of these names that `word` was most likely meant to be, if one is near.
    #[must_use]
    pub fn meant<'k>(mut self, word: &str, known: impl IntoIterator<Item = &'k str>) -> Self {
        self.suggestion = nearest(word, known).map(str::to_owned);
        self
    }

    /// The same error in a text that has `by` more bytes in front.
    #[must_use]
    pub fn shifted(mut self, by: usize) -> Self {
        self.at = self.at.start + by..self.at.end + by;
        self
    }

    /// What was most likely meant, as it follows the message: `; did you mean "5s"?`. Empty
    /// without a suggestion.
    pub fn hint(&self) -> String {
        let meant = self.suggestion.as_ref();
        meant.map_or(String::new(), |meant| {
            format!("; did you mean \"{meant}\"?")
        })
    }
}
