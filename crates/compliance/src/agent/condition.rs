//! Conditions: names of which some hold, joined by `.` or `&` (and), `|` (or), `!` (not) and
//! parentheses, as CFEngine writes them. `any` always holds.

use std::collections::HashSet;

use thiserror::Error;

/// Parentheses and negations inside of each other.
const DEPTH: usize = 64;

/// A condition cannot be read.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error(
    "the condition {text:?} cannot be read at byte {at}; expected names of letters, digits and _ \
     joined by . & | ! and parentheses"
)]
pub struct ConditionError {
    /// The condition, shortened.
    pub text: String,
    /// Where reading ended.
    pub at: usize,
}

/// Does the condition hold? An empty one does.
///
/// # Errors
/// It cannot be read, whatever holds.
pub fn holds(text: &str, known: &HashSet<String>) -> Result<bool, ConditionError> {
    if text.trim().is_empty() {
        return Ok(true);
    }
    let mut parser = Parser { text, at: 0, known };
    let found = parser.any(0);
    parser.space();
    match found {
        Some(value) if parser.at == text.len() => Ok(value),
        _ => Err(ConditionError {
            text: text.chars().take(256).collect(),
            at: parser.at,
        }),
    }
}

/// Where the variable that a text begins with ends: at the brace that closes `${…}`, or the
/// parenthesis of `$(…)`. `None`: it begins with a dollar and no variable.
pub(super) fn end_of_variable(text: &str) -> Option<usize> {
    match text.as_bytes().get(1) {
        Some(b'{') => text.find('}'),
        Some(b'(') => text.find(')'),
        _ => None,
    }
}

/// A text as a name in conditions: what is no letter or digit of ASCII becomes `_`.
pub fn canonify(text: &str) -> String {
    let kept = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte),
        _ => '_',
    };
    text.bytes().map(kept).collect()
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    known: &'t HashSet<String>,
}

impl Parser<'_> {
    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Takes one of these characters, once or twice.
    fn take(&mut self, one_of: &[char]) -> bool {
        self.space();
        let Some(found) = self.rest().chars().next().filter(|c| one_of.contains(c)) else {
            return false;
        };
        self.at += 1;
        if matches!(found, '|' | '&') && self.rest().starts_with(found) {
            self.at += 1;
        }
        true
    }

    // Both sides are always read: what cannot be read is wrong even if it decides nothing.
    fn any(&mut self, depth: usize) -> Option<bool> {
        let mut value = self.all(depth)?;
        while self.take(&['|']) {
            value |= self.all(depth)?;
        }
        Some(value)
    }

    fn all(&mut self, depth: usize) -> Option<bool> {
        let mut value = self.one(depth)?;
        while self.take(&['.', '&']) {
            value &= self.one(depth)?;
        }
        Some(value)
    }

    fn one(&mut self, depth: usize) -> Option<bool> {
        if depth >= DEPTH {
            return None;
        }
        if self.take(&['!']) {
            return self.one(depth + 1).map(|value| !value);
        }
        if self.take(&['(']) {
            let value = self.any(depth + 1)?;
            return self.take(&[')']).then_some(value);
        }
        let rest = self.rest();
        let other = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
        let length = rest.find(other).unwrap_or(rest.len());
        let name = rest.get(..length).filter(|name| !name.is_empty())?;
        let value = name == "any" || self.known.contains(name);
        self.at += length;
        Some(value)
    }
}
