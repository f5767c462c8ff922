//! What a line must look like to show a point.

use regex::bytes::Regex;

/// Longest text of a matcher, in bytes.
const MAX_BYTES: usize = 4096;

/// A condition on a line, written in one of three forms:
///
/// - `/expression/`: the regular expression is found in the message;
/// - `field=value`: the field has exactly this text. It is this form when what
///   stands before the first `=` is made of letters, digits and `_ - . @` only;
/// - anything else: the message contains the text.
#[derive(Debug, Clone)]
pub enum Matcher {
    /// The message contains this text.
    Contains(String),
    /// The message has a match of this expression.
    Regex(Regex),
    /// The field with this path has this text.
    Field {
        /// Path of the field.
        path: String,
        /// Its text.
        value: String,
    },
}

/// A matcher that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MatcherError {
    /// It would match every line.
    #[error("the matcher is empty; write the text that the message contains")]
    Empty,
    /// It is longer than any sensible matcher.
    #[error("the matcher has {bytes} bytes; at most {MAX_BYTES} are allowed")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// The regular expression has a fault.
    #[error("the regular expression has a fault at byte {offset}: {reason}")]
    Regex {
        /// Where, in bytes from the start of the matcher's text (its first slash is 0).
        offset: usize,
        /// What is wrong there.
        reason: String,
    },
    /// It does not say which part of the message is the name.
    #[error(
        "the regular expression has {groups} groups; put one in brackets, around what names \
         the entity, as in `/task (\\S+) started/`, and write others as `(?:…)`"
    )]
    Groups {
        /// How many it has.
        groups: usize,
    },
}

impl Matcher {
    /// Reads the text of a matcher.
    pub fn parse(text: &str) -> Result<Self, MatcherError> {
        if text.len() > MAX_BYTES {
            return Err(MatcherError::TooLong { bytes: text.len() });
        }
        if let Some(expression) = between_slashes(text) {
            return regex(expression).map(Self::Regex);
        }
        if let Some((path, value)) = text.split_once('=')
            && is_field_path(path)
        {
            return Ok(Self::Field {
                path: path.to_owned(),
                value: value.to_owned(),
            });
        }
        if text.is_empty() {
            return Err(MatcherError::Empty);
        }
        Ok(Self::Contains(text.to_owned()))
    }
}

/// The expression of a text that is written as one.
pub(crate) fn between_slashes(text: &str) -> Option<&str> {
    text.strip_prefix('/')?.strip_suffix('/')
}

fn is_field_path(text: &str) -> bool {
    let in_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'@');
    !text.is_empty() && text.bytes().all(in_name)
}

pub(crate) fn regex(expression: &str) -> Result<Regex, MatcherError> {
    if expression.is_empty() {
        return Err(MatcherError::Empty);
    }
    // The compiled form does not say where a fault is, the parser does.
    let fault = |offset: usize, reason: String| MatcherError::Regex {
        offset: offset + 1,
        reason,
    };
    if let Err(error) = regex_syntax::ParserBuilder::new()
        .utf8(false)
        .build()
        .parse(expression)
    {
        return Err(match &error {
            regex_syntax::Error::Parse(error) => {
                fault(error.span().start.offset, error.kind().to_string())
            }
            regex_syntax::Error::Translate(error) => {
                fault(error.span().start.offset, error.kind().to_string())
            }
            _ => fault(0, error.to_string()),
        });
    }
    Regex::new(expression).map_err(|error| fault(0, error.to_string()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn field(path: &str, value: &str) -> String {
        format!(
            "{:?}",
            Matcher::Field {
                path: path.into(),
                value: value.into()
            }
        )
    }

    fn parsed(text: &str) -> String {
        format!("{:?}", Matcher::parse(text).unwrap())
    }

    #[test]
    fn the_three_forms() {
        assert_eq!(parsed("process-exit"), r#"Contains("process-exit")"#);
        assert_eq!(parsed("/^rep\\./"), r#"Regex(Regex("^rep\\."))"#);
        assert_eq!(parsed("state=RUNNING"), field("state", "RUNNING"));
        assert_eq!(parsed("key.guid=a=b"), field("key.guid", "a=b"));
        assert_eq!(parsed("state="), field("state", ""));
    }

    #[test]
    fn what_only_looks_like_another_form_is_plain_text() {
        assert_eq!(parsed("took 5 ms, n=7"), r#"Contains("took 5 ms, n=7")"#);
        assert_eq!(parsed("=x"), r#"Contains("=x")"#);
        assert_eq!(parsed("/path/to"), r#"Contains("/path/to")"#);
        assert_eq!(parsed("/"), r#"Contains("/")"#);
    }

    #[test]
    fn a_fault_is_pointed_at() {
        let fault = |text| match Matcher::parse(text) {
            Err(MatcherError::Regex { offset, .. }) => offset,
            other => panic!("{other:?}"),
        };
        assert_eq!(fault("/ab(c/"), 3);
        assert_eq!(fault("/é*(/"), 4);
        assert_eq!(fault(r"/a\p{Nope}/"), 2);
        assert_eq!(fault("/(a{1000}){1000}/"), 1);
        assert_eq!(Matcher::parse("").unwrap_err(), MatcherError::Empty);
        assert_eq!(Matcher::parse("//").unwrap_err(), MatcherError::Empty);
        assert_eq!(
            Matcher::parse(&"x".repeat(5000)).unwrap_err(),
            MatcherError::TooLong { bytes: 5000 }
        );
    }

    proptest! {
        #[test]
        fn never_panics_and_points_inside_the_text(text in ".{0,30}") {
            for text in [format!("/{text}/"), text] {
                if let Err(MatcherError::Regex { offset, .. }) = Matcher::parse(&text) {
                    prop_assert!(text.is_char_boundary(offset), "{} in {:?}", offset, text);
                }
            }
        }
    }
}
