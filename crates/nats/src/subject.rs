//! Subjects: names of words joined by dots. In a subscription `*` stands for one word and
//! `>` for one or more words at the end.

/// Longest subject, in bytes. Above it no line of the protocol could name it.
pub const MOST_BYTES: usize = 1024;

/// Whether messages can be published to it: no empty words, no space, no wildcard.
pub fn is_publishable(subject: &[u8]) -> bool {
    has_words(subject) && !subject.split(|byte| *byte == b'.').any(is_wildcard)
}

/// Whether it can be subscribed to: as [`is_publishable`], but with wildcards as whole
/// words, `>` only as the last.
pub fn is_subscribable(subject: &[u8]) -> bool {
    let mut words = subject.rsplit(|byte| *byte == b'.');
    words.next();
    has_words(subject) && !words.any(|word| word == b">")
}

/// Whether a subscription to `pattern` receives what is published to `subject`.
pub fn matches(pattern: &[u8], subject: &[u8]) -> bool {
    let mut words = subject.split(|byte| *byte == b'.');
    for expected in pattern.split(|byte| *byte == b'.') {
        let Some(word) = words.next() else {
            return false;
        };
        match expected {
            b">" => return true,
            b"*" => {}
            _ if expected == word => {}
            _ => return false,
        }
    }
    words.next().is_none()
}

fn is_wildcard(word: &[u8]) -> bool {
    word == b"*" || word == b">"
}

fn has_words(subject: &[u8]) -> bool {
    subject.len() <= MOST_BYTES
        && subject.iter().all(|byte| *byte > b' ' && *byte != 0x7f)
        && subject
            .split(|byte| *byte == b'.')
            .all(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_neither_empty_nor_spaced() {
        for good in ["a", "router.register", "_INBOX.x-1.é", "a*b.c>"] {
            assert!(is_publishable(good.as_bytes()), "{good}");
            assert!(is_subscribable(good.as_bytes()), "{good}");
        }
        for bad in ["", ".", "a.", ".a", "a..b", "a b", "a\tb", "a\r\nb", "a\0"] {
            assert!(!is_publishable(bad.as_bytes()), "{bad:?}");
            assert!(!is_subscribable(bad.as_bytes()), "{bad:?}");
        }
        assert!(!is_publishable(&[b'a'; MOST_BYTES + 1]));
    }

    #[test]
    fn wildcards_are_whole_words_of_subscriptions() {
        for pattern in ["*", ">", "router.*", "*.a.*", "a.>", "*.>"] {
            assert!(is_subscribable(pattern.as_bytes()), "{pattern}");
            assert!(!is_publishable(pattern.as_bytes()), "{pattern}");
        }
        for bad in [">.a", "a.>.b"] {
            assert!(!is_subscribable(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn patterns_match_word_by_word() {
        for (pattern, subject, expected) in [
            ("a.b", "a.b", true),
            ("a.b", "a.bc", false),
            ("a.*", "a.b", true),
            ("a.*", "a", false),
            ("a.*", "a.b.c", false),
            ("*.b", "a.b", true),
            ("a.>", "a.b.c", true),
            ("a.>", "a", false),
            (">", "a", true),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), subject.as_bytes()),
                expected,
                "{pattern} {subject}"
            );
        }
    }
}
