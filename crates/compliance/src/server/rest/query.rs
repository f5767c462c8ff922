//! What follows `?` in an address.

use percent_encoding::percent_decode_str;

/// What follows `?`: keys and values.
#[derive(Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn of(text: Option<&str>) -> Self {
        let pairs = text.unwrap_or_default().split('&').take(256);
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        Self(
            pairs
                .map(|(key, value)| (unescaped(key, true), unescaped(value, true)))
                .collect(),
        )
    }

    /// A body that is a form.
    pub(super) fn of_form(body: &[u8]) -> Self {
        Self::of(Some(&String::from_utf8_lossy(body)).map(|text| &**text))
    }

    /// All of them, in their order.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.0.iter();
        all.map(|(key, value)| (key.as_str(), value.as_str()))
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| value.as_str())
    }
}

/// A text of an address with its `%` undone; what is no UTF-8 is replaced. A `+` is a space behind
/// `?`, and itself in a path.
pub(crate) fn unescaped(text: &str, plus_is_space: bool) -> String {
    match plus_is_space {
        true => unescaped(&text.replace('+', " "), false),
        false => percent_decode_str(text).decode_utf8_lossy().into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Query, unescaped};

    #[test]
    fn a_plus_is_a_space_only_behind_the_question_mark() {
        assert_eq!(unescaped("a+b%2Bc%20d%C3%A9%zz%", false), "a+b+c dé%zz%");
        let query = Query::of(Some("a+b=c+d%2B"));
        assert_eq!(query.get("a b"), Some("c d+"));
    }
}
