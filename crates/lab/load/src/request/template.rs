//! Texts with variables: where the variables stand.

use std::ops::Range;

use units::UnitError;

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// Text that is sent as it is, and where its template has it.
    Text(String, Range<usize>),
    /// The inside of `{…}`, by its place in the template.
    Variable(Range<usize>),
}

/// Takes a template apart.
///
/// `{` begins a variable only before a letter or `_`, so JSON needs no escapes. `{{`
/// stands for `{`, and the `}}` that closes it for `}`. Text that has neither is
/// never changed.
pub(super) fn split(template: &str) -> Result<Vec<Part>, UnitError> {
    let bytes = template.as_bytes();
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut start = 0;
    // Braces that are open; whether each was written twice.
    let mut open: Vec<bool> = Vec::new();
    let mut at = 0;
    while let Some(length) = template[at..].find(['{', '}']) {
        text += &template[at..at + length];
        at += length;
        let next = bytes.get(at + 1).copied();
        match (bytes[at], next) {
            (b'{', Some(b'{')) => {
                open.push(true);
                text.push('{');
                at += 2;
            }
            (b'{', Some(letter)) if letter.is_ascii_alphabetic() || letter == b'_' => {
                let end = close(template, at)?;
                if !text.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut text), start..at));
                }
                parts.push(Part::Variable(at + 1..end));
                at = end + 1;
                start = at;
            }
            (b'{', _) => {
                open.push(false);
                text.push('{');
                at += 1;
            }
            _ => {
                text.push('}');
                let twice = open.pop() == Some(true) && next == Some(b'}');
                at += if twice { 2 } else { 1 };
            }
        }
    }
    text += &template[at..];
    if !text.is_empty() {
        parts.push(Part::Text(text, start..template.len()));
    }
    Ok(parts)
}

/// Where the variable ends that begins at `start`: at the next brace.
fn close(template: &str, start: usize) -> Result<usize, UnitError> {
    let rest = &template[start + 1..];
    match rest.find(['{', '}', '\n']) {
        Some(length) if rest.as_bytes()[length] == b'}' => Ok(start + 1 + length),
        other => {
            let end = other.map_or(template.len(), |length| start + 1 + length);
            let message = "this variable has no closing brace; \
                           to send a brace as it is, write {{";
            Err(UnitError::new(start..end, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Texts as they are sent, variables in angle brackets.
    fn shown(template: &str) -> String {
        let parts = split(template).unwrap();
        let part = |part: &Part| match part {
            Part::Text(text, _) => text.clone(),
            Part::Variable(at) => format!("<{}>", &template[at.clone()]),
        };
        parts.iter().map(part).collect()
    }

    #[test]
    fn variables_and_braces_are_told_apart() {
        let cases = [
            ("/items/{seq}", "/items/<seq>"),
            ("{uniform 0 9}{seq}", "<uniform 0 9><seq>"),
            ("", ""),
            (
                r#"{"a": {"b": [{}, {"c": 1}]}}"#,
                r#"{"a": {"b": [{}, {"c": 1}]}}"#,
            ),
            (r#"{"a":{"b":{seq}}}"#, r#"{"a":{"b":<seq>}}"#),
            (r#"{{"a": {"b": {seq}}}}"#, r#"{"a": {"b": <seq>}}"#),
            ("{{query{{name}}}}", "{query{name}}"),
            ("{{seq}}", "{seq}"),
            (r#"{"a":"}}"}"#, r#"{"a":"}}"}"#),
            ("a}}b", "a}}b"),
            ("{ seq }", "{ seq }"),
            ("{", "{"),
            ("é{seq}é", "é<seq>é"),
        ];
        for (template, expected) in cases {
            assert_eq!(shown(template), expected, "{template}");
        }
    }

    #[test]
    fn a_variable_must_be_closed() {
        for (template, at) in [("a{seq", 1..5), ("{seq{x}", 0..4), ("{seq\n}", 0..4)] {
            let fault = split(template).unwrap_err();
            assert_eq!(fault.at, at, "{template}");
            assert!(fault.message.contains("closing brace"));
        }
    }

    proptest! {
        #[test]
        fn text_without_variables_or_double_braces_is_kept(text in "([}\"0-9 :é]|\\{[}\"0-9 :é]){0,20}\\{?") {
            prop_assert_eq!(shown(&text), text);
        }

        #[test]
        fn doubled_braces_stand_for_single_ones(text in "([a-z ]|\\{[a-z]*\\}){0,10}") {
            let doubled = text.replace('{', "{{").replace('}', "}}");
            prop_assert_eq!(shown(&doubled), text);
        }

        #[test]
        fn any_text_is_split_or_refused_in_place(text in "[{}a-z \\n\"é]{0,40}") {
            match split(&text) {
                Err(fault) => prop_assert!(text.get(fault.at).is_some()),
                Ok(parts) => for part in parts {
                    let (Part::Text(_, at) | Part::Variable(at)) = part;
                    prop_assert!(text.get(at).is_some());
                },
            }
        }
    }
}
