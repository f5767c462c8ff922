//! A text that no log shows.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, DerefMut, Range};

use crate::{Kind, Value};

/// A password, key or token of the settings: a text in every way, but that `Debug` keeps
/// it to itself.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Deref for Secret {
    type Target = String;

    fn deref(&self) -> &String {
        &self.0
    }
}

impl DerefMut for Secret {
    fn deref_mut(&mut self) -> &mut String {
        &mut self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.0.is_empty() {
            true => "Secret(none)",
            false => "Secret(..)",
        })
    }
}

impl Kind for Secret {
    const EXPECTED: &'static str = String::EXPECTED;
    const EXAMPLE: &'static str = String::EXAMPLE;

    fn read(value: &Value) -> Option<Self> {
        String::read(value).map(Self)
    }

    /// Nothing: settings are printed without their secrets.
    fn write(&self) -> String {
        String::new().write()
    }
}

/// A text with `*` for each character of the passwords in it: those of URLs,
/// `scheme://user:PASSWORD@host`, and those of their queries, `password=PASSWORD`.
///
/// For what shows a part of somebody's file, which may end in the log of a CI.
pub(crate) fn without_passwords(text: &str) -> Cow<'_, str> {
    let mut hidden: Vec<Range<usize>> = Vec::new();
    for (at, separator) in text.match_indices("://") {
        let begin = at + separator.len();
        let rest = &text[begin..];
        let end = rest.find(ends_authority).unwrap_or(rest.len());
        let user = rest[..end].rfind('@').map(|at| &rest[..at]);
        if let Some(colon) = user.and_then(|user| user.find(':')) {
            let length = user.map_or(0, str::len);
            hidden.push(begin + colon + 1..begin + length);
        }
    }
    for (at, key) in text.match_indices("password=") {
        let begin = at + key.len();
        let rest = &text[begin..];
        let end = rest.find(ends_value).unwrap_or(rest.len());
        hidden.push(begin..begin + end);
    }
    if hidden.is_empty() {
        return Cow::Borrowed(text);
    }
    let shown =
        text.char_indices().map(
            |(at, char)| match hidden.iter().any(|part| part.contains(&at)) {
                true => '*',
                false => char,
            },
        );
    Cow::Owned(shown.collect())
}

/// Whether the user and the host of a URL end here.
fn ends_authority(char: char) -> bool {
    matches!(char, '/' | '?' | '#') || ends_text(char)
}

/// Whether a value in the query of a URL ends here.
fn ends_value(char: char) -> bool {
    matches!(char, '&' | '#') || ends_text(char)
}

fn ends_text(char: char) -> bool {
    matches!(char, '"' | '\'' | '`') || char.is_whitespace()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn passwords_are_hidden_and_nothing_else() {
        for (text, expected) in [
            ("url = \"http://a:b@c/d\"", "url = \"http://a:*@c/d\""),
            ("postgres://u:p@ss@h:5432/x", "postgres://u:****@h:5432/x"),
            ("x?a=1&password=sé&b=2", "x?a=1&password=**&b=2"),
            ("http://a:1/x@y", "http://a:1/x@y"),
            ("http://user@host:80", "http://user@host:80"),
            ("http://a:b and c@d", "http://a:b and c@d"),
            ("'http://a:@b'", "'http://a:@b'"),
            ("http://a:b@c http://d:e@f", "http://a:*@c http://d:*@f"),
            ("password_file = \"x\"", "password_file = \"x\""),
        ] {
            assert_eq!(without_passwords(text), expected);
        }
    }

    proptest! {
        /// A mark below the text stays under what it marks.
        #[test]
        fn as_many_characters_as_before(
            parts in proptest::collection::vec(
                proptest::sample::select(vec!["://", ":", "@", "é", "a", "password=", "&", " ", "\""]),
                0..20,
            ),
        ) {
            let text = parts.concat();
            prop_assert_eq!(without_passwords(&text).chars().count(), text.chars().count());
        }
    }
}
