//! A place in a text that is being read.

use super::template::TemplateError;

/// What is read, and how far.
pub(super) struct Cursor<'t> {
    pub(super) text: &'t str,
    /// In bytes.
    pub(super) at: usize,
}

impl<'t> Cursor<'t> {
    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn wrong<T>(&self, message: impl Into<String>) -> Result<T, TemplateError> {
        Err(TemplateError {
            at: self.at,
            message: message.into(),
        })
    }

    pub(super) fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Takes a word in any case of letters, or a mark.
    pub(super) fn word(&mut self, word: &str) -> bool {
        let found = self.rest().get(..word.len());
        let found = found.is_some_and(|found| found.eq_ignore_ascii_case(word));
        self.at += if found { word.len() } else { 0 };
        found
    }

    /// Takes what the letters for which `part` holds make up, as far as they go.
    pub(super) fn run(&mut self, part: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|letter| !part(letter)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }
}
