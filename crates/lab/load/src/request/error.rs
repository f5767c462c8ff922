//! What can be wrong with what is asked.

use std::ops::Range;

/// Something wrong in the description of requests, or a value that may not be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}{}", suggestion.as_ref().map(|s| format!("; did you mean \"{s}\"?")).unwrap_or_default())]
pub struct RequestError {
    /// Where the text stands: `step "login", path`.
    pub place: String,
    /// The text that is wrong, as it was given; empty when no single text is.
    pub text: String,
    /// Its bytes that are wrong.
    pub at: Range<usize>,
    /// What was found, what was expected, what to do.
    pub message: String,
    /// What the wrong bytes were most likely meant to be.
    pub suggestion: Option<String>,
}

impl RequestError {
    /// The line of the text that is wrong, with carets under the wrong part; nothing
    /// when there is no text.
    pub fn excerpt(&self) -> Option<String> {
        let before = self.text.get(..self.at.start)?;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = self.text[start..].lines().next()?;
        let wrong = self.text.get(self.at.clone())?.lines().next().unwrap_or("");
        let blank = " ".repeat(self.text[start..self.at.start].chars().count());
        Some(format!(
            "{line}\n{blank}{}",
            "^".repeat(wrong.chars().count().max(1))
        ))
    }
}

/// What is wrong within a text, before it is known where the text stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    at: Range<usize>,
    message: String,
    suggestion: Option<String>,
}

impl Fault {
    pub(super) fn new(at: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
            suggestion: None,
        }
    }

    /// With the one of these names that `word` was most likely meant to be.
    pub(super) fn meant<'k>(
        mut self,
        word: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) -> Self {
        self.suggestion = units::nearest(word, known).map(str::to_owned);
        self
    }

    pub(super) fn suggest(mut self, meant: impl Into<String>) -> Self {
        self.suggestion = Some(meant.into());
        self
    }

    /// The same in a text that has `by` more bytes in front.
    pub(super) fn shifted(mut self, by: usize) -> Self {
        self.at = self.at.start + by..self.at.end + by;
        self
    }

    /// The same, about these bytes.
    pub(super) fn over(self, at: Range<usize>) -> Self {
        Self { at, ..self }
    }

    pub(super) fn within(self, place: impl Into<String>, text: &str) -> RequestError {
        RequestError {
            place: place.into(),
            text: text.to_owned(),
            at: self.at,
            message: self.message,
            suggestion: self.suggestion,
        }
    }
}

impl From<units::UnitError> for Fault {
    fn from(error: units::UnitError) -> Self {
        Self {
            at: error.at,
            message: error.message,
            suggestion: error.suggestion,
        }
    }
}
