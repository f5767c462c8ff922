//! What an answer says: a number or a text.

use http::HeaderMap;
use lab_load::request::{Answer, Source, Take};
use regex::bytes::Regex;

use crate::calls::{fields, first};
use crate::processes::shown;

/// Characters that are kept of a text.
const MOST_CHARACTERS: usize = 200;

/// The value of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Number(f64),
    Text(String),
}

impl Value {
    /// What reads as a number is one; `true` is 1 and `false` 0. `None` for nothing.
    pub(super) fn of_text(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_decimal = text.bytes().any(|byte| byte.is_ascii_digit())
            && (text.bytes()).all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        match (text, number) {
            ("", _) => None,
            ("true", _) => Some(Self::Number(1.0)),
            ("false", _) => Some(Self::Number(0.0)),
            (_, Some(number)) if is_decimal => Some(Self::Number(number)),
            _ => Some(Self::Text(shown(text, MOST_CHARACTERS))),
        }
    }
}

/// A place in an answer, as loads take values from theirs.
#[derive(Debug)]
pub(super) struct Part(Take);

impl Part {
    pub(super) fn of(source: &Source) -> Self {
        Self(Take {
            name: "value".to_owned(),
            from: source.clone(),
        })
    }

    /// What stands there, or that nothing does. Only the start of a body is looked into, see
    /// [`Answer::KEPT`].
    pub(super) fn find(&self, body: &[u8], headers: &HeaderMap) -> Result<Value, String> {
        let fields = fields(headers);
        let answer = Answer {
            status: 0,
            fields: &fields,
            body: first(body),
            rows: 0,
            body_bytes: body.len() as u64,
        };
        let value = self.0.find(&answer);
        let value = value.and_then(|text| Value::of_text(&text));
        value.ok_or_else(|| format!("the answer has no {}", self.0.describe()))
    }
}

/// A pattern that the checker has read before.
pub(super) fn pattern_of(pattern: &str) -> Result<Regex, String> {
    Regex::new(pattern).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(text: &str) -> Option<f64> {
        match Value::of_text(text) {
            Some(Value::Number(number)) => Some(number),
            _ => None,
        }
    }

    #[test]
    fn numbers_are_told_from_texts() {
        for (text, expected) in [
            ("7", 7.0),
            (" -1.5e3\n", -1500.0),
            ("true", 1.0),
            ("false", 0.0),
        ] {
            assert_eq!(number(text), Some(expected), "{text}");
        }
        for text in ["nan", "inf", "1e999", "v3", "12 ms", "e", "0x10", ""] {
            assert_eq!(number(text), None, "{text}");
        }
        assert_eq!(Value::of_text(" \n"), None);
        assert_eq!(
            Value::of_text("\u{1b}red"),
            Some(Value::Text("\u{fffd}red".into()))
        );
    }

    #[test]
    fn parts_are_found_or_said_to_be_missing() {
        let headers = HeaderMap::from_iter([(http::header::ETAG, "7".parse().unwrap())]);
        let find = |source: Source, body: &str| Part::of(&source).find(body.as_bytes(), &headers);
        let json = |pointer: &str| Source::Json(pointer.into());
        let body = r#"{"a": {"leader": true, "term": "12", "id": "n1", "none": null, "all": [5]}}"#;
        assert_eq!(find(json("/a/leader"), body), Ok(Value::Number(1.0)));
        assert_eq!(find(json("/a/term"), body), Ok(Value::Number(12.0)));
        assert_eq!(find(json("/a/id"), body), Ok(Value::Text("n1".into())));
        assert_eq!(find(json("/a/all/0"), body), Ok(Value::Number(5.0)));
        for pointer in ["/a/none", "/b"] {
            assert!(find(json(pointer), body).is_err(), "{pointer}");
        }
        assert_eq!(
            find(json("/a"), "<html>").unwrap_err(),
            "the answer has no value = json /a"
        );
        let regex = |pattern: &str| Source::Regex(pattern.into());
        assert_eq!(
            find(regex("lag=(\\d+)"), "lag=42 ms"),
            Ok(Value::Number(42.0))
        );
        assert_eq!(
            find(regex("(up|down)"), "is up"),
            Ok(Value::Text("up".into()))
        );
        assert!(find(regex("lag=(\\d+)"), "lag=").is_err());
        assert_eq!(
            find(Source::Header("etag".into()), ""),
            Ok(Value::Number(7.0))
        );
        assert!(find(Source::Header("x".into()), "").is_err());
    }

    proptest! {
        #[test]
        fn no_answer_panics(body: Vec<u8>, pointer in "(/[a-z0-9~]{0,3}){0,3}") {
            let _ = Part::of(&Source::Json(pointer)).find(&body, &HeaderMap::new());
        }

        #[test]
        fn a_number_is_read_back(number in -1e12_f64..1e12) {
            prop_assert_eq!(Value::of_text(&number.to_string()), Some(Value::Number(number)));
        }
    }
}
