//! Who asks, where an address says it before its host.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode_str;

/// What the header `Authorization` says of what stands before the `@` of an address.
pub(crate) fn authorization(before: &str) -> String {
    let (user, password) = before.split_once(':').unwrap_or((before, ""));
    let [user, password] = [user, password].map(|it| Vec::from_iter(percent_decode_str(it)));
    let pair = [user, password].join(&b':');
    format!("Basic {}", BASE64_STANDARD.encode(pair))
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
