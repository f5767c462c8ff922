//! What can be told of a message without reading it.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::Message;

static URIS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"uris\":[\""));
static CHANGED: LazyLock<Finder<'static>> =
    LazyLock::new(|| Finder::new("\"endpoint_updated_at_ns\":"));

/// What a message seems to say about its routes, from a look at its bytes that knows no
/// JSON. Of bytes that were read once, [`agrees_with`](Self::agrees_with) says whether it
/// is true; of the same bytes it is then true whenever they come again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartialMessage<'a> {
    /// What is between the first quote and the last one.
    uris: &'a str,
    /// When the platform changed the instance, nanoseconds since 1970; 0: unknown.
    pub changed: i64,
}

impl<'a> PartialMessage<'a> {
    /// Looks at a payload. `None`: it is not of the usual form.
    pub fn of(payload: &'a [u8]) -> Option<Self> {
        let at = URIS.find(payload)? + URIS.needle().len();
        let rest = payload.get(at..)?;
        let end = memchr::memchr(b']', rest)?;
        let uris = rest.get(..end)?.strip_suffix(b"\"")?;
        let rest = rest.get(end..)?;
        let changed = CHANGED.find(rest).map_or(&b""[..], |at| {
            rest.get(at + CHANGED.needle().len()..).unwrap_or_default()
        });
        Some(Self {
            uris: std::str::from_utf8(uris).ok()?,
            changed: leading_number(changed),
        })
    }

    /// Its routes.
    pub fn uris(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.uris.split("\",\"")
    }

    /// Whether it says of `message`, read from the same bytes, what that says itself.
    pub fn agrees_with(&self, message: &Message<'_>) -> bool {
        message.uris().eq(self.uris())
            && message.endpoint_updated_at_ns.unwrap_or(0) == self.changed
    }
}

/// The number that `text` begins with; 0 without one, or when it is too large.
fn leading_number(text: &[u8]) -> i64 {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    let number = digits.take(20).try_fold(0_i64, |number, digit| {
        number.checked_mul(10)?.checked_add(i64::from(digit - b'0'))
    });
    number.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::TYPICAL;
    use super::*;

    fn agrees(payload: &str) -> bool {
        let partial = PartialMessage::of(payload.as_bytes());
        let message = Message::parse(payload.as_bytes()).unwrap();
        partial.is_some_and(|partial| partial.agrees_with(&message))
    }

    #[test]
    fn usual_messages_are_known_at_a_glance() {
        let partial = PartialMessage::of(TYPICAL.as_bytes()).unwrap();
        assert_eq!(partial.uris().collect::<Vec<_>>(), ["app-7.example.com"]);
        assert_eq!(partial.changed, 1_763_742_000_000_000_000);
        for payload in [
            TYPICAL,
            r#"{"uris":["a"]}"#,
            r#"{"endpoint_updated_at_ns":0,"uris":["a","b/c"],"host":"h"}"#,
        ] {
            assert!(agrees(payload), "{payload}");
        }
    }

    #[test]
    fn what_would_be_misread_is_read() {
        for payload in [
            "{}",
            r#"{"uris":[]}"#,
            r#"{"uris": ["a"]}"#,
            r#"{"uris":["a", "b"]}"#,
            r#"{"uris":["a\u0062"]}"#,
            r#"{"uris":["a]\"b"]}"#,
            r#"{"uris":["a\",\"b"]}"#,
            r#"{"options":{"uris":["a"]},"uris":["b"]}"#,
            r#"{"other":[{"uris":["a"]}],"uris":["a","b"]}"#,
            r#"{"endpoint_updated_at_ns":5,"uris":["a"]}"#,
            r#"{"uris":["a"],"endpoint_updated_at_ns": 5}"#,
            r#"{"uris":["a"],"endpoint_updated_at_ns":-5}"#,
            r#"{"uris":["a"],"x":{"endpoint_updated_at_ns":5}}"#,
        ] {
            assert!(!agrees(payload), "{payload}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_may_be_looked_at(
            before in proptest::collection::vec(any::<u8>(), 0..20),
            after in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let payload = [&before[..], b"\"uris\":[\"", &after[..]].concat();
            if let Some(partial) = PartialMessage::of(&payload) {
                prop_assert!(partial.uris().count() > 0);
            }
        }
    }
}
