//! What can be wrong with what is asked.

use std::ops::Range;

use units::UnitError;

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
    /// An error within `text`, which stands at `place`.
    pub(super) fn new(place: impl Into<String>, text: &str, error: UnitError) -> Self {
        Self {
            place: place.into(),
            text: text.to_owned(),
            at: error.at,
            message: error.message,
            suggestion: error.suggestion,
        }
    }

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
