//! How a line names an entity or a group: by a field, or by a part of its message.

use std::borrow::Cow;

use regex::bytes::Regex;

use crate::fields::{FieldId, Fields};
use crate::line::Line;
use crate::matcher::{MatcherError, between_slashes, regex};

/// One place where a line may have a name.
#[derive(Debug, Clone)]
pub(crate) enum Identity {
    /// The text of this field.
    Field(FieldId),
    /// What the only group of this expression captures in the message.
    Message(Regex),
}

impl Identity {
    /// Reads `/expression/`, or else the path of a field.
    pub(crate) fn parse(text: &str, fields: &mut Fields) -> Result<Self, MatcherError> {
        let Some(expression) = between_slashes(text) else {
            return Ok(Self::Field(fields.register(text)));
        };
        let regex = regex(expression)?;
        // The whole match counts as a group too.
        match regex.captures_len() - 1 {
            1 => Ok(Self::Message(regex)),
            groups => Err(MatcherError::Groups { groups }),
        }
    }

    /// What the line has here; an empty text is nothing.
    pub(crate) fn of<'a>(&self, line: &Line<'a>) -> Option<Cow<'a, [u8]>> {
        let text = match self {
            Self::Field(id) => line.field(*id)?,
            Self::Message(regex) => match line.message() {
                Cow::Borrowed(message) => Cow::Borrowed(captured(regex, message)?),
                Cow::Owned(message) => Cow::Owned(captured(regex, &message)?.to_vec()),
            },
        };
        (!text.is_empty()).then_some(text)
    }
}

fn captured<'m>(regex: &Regex, message: &'m [u8]) -> Option<&'m [u8]> {
    Some(regex.captures(message)?.get(1)?.as_bytes())
}

/// What the first of these places that has anything has.
pub(crate) fn first<'a>(identities: &[Identity], line: &Line<'a>) -> Option<Cow<'a, [u8]>> {
    identities.iter().find_map(|identity| identity.of(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::{Format, Scanner};

    fn named(texts: &[&str], line: &str) -> Option<String> {
        let mut fields = Fields::new();
        let read = texts
            .iter()
            .map(|text| Identity::parse(text, &mut fields).unwrap());
        let identities: Vec<Identity> = read.collect();
        let mut scanner = Scanner::new(fields);
        let line = scanner.scan(Format::Auto, line.as_bytes()).unwrap();
        first(&identities, &line).map(|name| String::from_utf8(name.to_vec()).unwrap())
    }

    #[test]
    fn the_first_place_with_a_text_names_it() {
        let places = ["id", r"/^job (\S+)/"];
        let name = |line| named(&places, line);
        assert_eq!(name(r#"ts=1 msg="job 17 done" id=a"#).as_deref(), Some("a"));
        assert_eq!(
            name(r#"ts=1 msg="job 17 done" id="""#).as_deref(),
            Some("17")
        );
        let escaped = r#"{"ts":1,"msg":"job \"x\" done"}"#;
        assert_eq!(name(escaped).as_deref(), Some("\"x\""));
        assert_eq!(name("ts=1 msg=other"), None);
        assert_eq!(named(&["/^job ([0-9]*)/"], r#"ts=1 msg="job x""#), None);
    }

    #[test]
    fn an_expression_needs_exactly_one_group() {
        let fault = |text| Identity::parse(text, &mut Fields::new()).unwrap_err();
        assert_eq!(fault(r"/job \S+/"), MatcherError::Groups { groups: 0 });
        assert_eq!(fault("/(a)(b)/"), MatcherError::Groups { groups: 2 });
        assert!(matches!(fault("/(a/"), MatcherError::Regex { .. }));
        assert!(Identity::parse("/(?:job|task) (\\d+)/", &mut Fields::new()).is_ok());
    }
}
