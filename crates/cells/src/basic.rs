//! Who asks, where an address says it before its host.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// What the header `Authorization` says of what stands before the `@` of an address.
pub(crate) fn authorization(before: &str) -> String {
    let (user, password) = before.split_once(':').unwrap_or((before, ""));
    let pair = [decoded(user), decoded(password)].join(&b':');
    format!("Basic {}", BASE64_STANDARD.encode(pair))
}

/// The bytes for which percent signs stand with two digits, and all others as they are.
fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let digits = after.get(..2);
        let digits = digits.filter(|it| it.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(b'%');
                rest = after;
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_is_read_as_it_was_meant() {
        for (before, pair) in [
            ("user:pass", "user:pass"),
            ("user", "user:"),
            (":a:b", ":a:b"),
            ("us%40er:p%3Aa%2fss", "us@er:p:a/ss"),
            ("100%:%4%+é%", "100%:%4%+é%"),
        ] {
            let expected = format!("Basic {}", BASE64_STANDARD.encode(pair));
            assert_eq!(authorization(before), expected, "{before}");
        }
    }
}
