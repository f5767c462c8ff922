//! What may be a name, a key, a label, an image.

use thiserror::Error;

/// Why there are no manifests.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("render manifests for Kubernetes: {what} is {found}; expected {expected}")]
pub struct KubernetesError {
    /// Which part.
    pub what: &'static str,
    /// What it is.
    pub found: String,
    /// What it must be.
    pub expected: &'static str,
}

/// Demands that something holds of a part.
///
/// # Errors
/// When it does not.
pub fn must(
    holds: bool,
    what: &'static str,
    found: &str,
    expected: &'static str,
) -> Result<(), KubernetesError> {
    if holds {
        return Ok(());
    }
    let found = if found.is_empty() { "empty" } else { found };
    Err(KubernetesError {
        what,
        found: found.to_owned(),
        expected,
    })
}

/// Demands that a text may name every kind of object.
///
/// # Errors
/// When it may not: see [`is_name`].
pub fn must_be_name(what: &'static str, name: &str) -> Result<(), KubernetesError> {
    let expected = "a label of DNS: lower-case letters, digits and -, beginning with a letter";
    must(is_name(name, 63), what, name, expected)
}

/// Demands that a text may name a namespace, which may begin with a digit (RFC 1123).
///
/// # Errors
/// When it may not.
pub fn must_be_namespace(name: &str) -> Result<(), KubernetesError> {
    let expected =
        "at most 63 lower-case letters, digits and -, with a letter or digit at both ends";
    must(
        name.len() <= 63 && is_part(name),
        "the namespace",
        name,
        expected,
    )
}

/// Demands that a text may be the name of an image.
///
/// # Errors
/// When it may not.
pub fn must_be_image(what: &'static str, image: &str) -> Result<(), KubernetesError> {
    let fits =
        (1..=500).contains(&image.len()) && image.bytes().all(|byte| byte.is_ascii_graphic());
    must(fits, what, image, "the name of an image, without spaces")
}

/// Whether a text may name every kind of object, services included (RFC 1035), with at most
/// so many bytes.
pub fn is_name(text: &str, most: usize) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    text.len() <= most
        && text.as_bytes().first().is_some_and(u8::is_ascii_lowercase)
        && text.bytes().all(inner)
        && !text.ends_with('-')
}

/// Whether a text may name a Secret: a name of DNS, with dots (RFC 1123).
pub fn is_secret(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_part)
}

/// Whether a text may stand between the dots of a name of DNS.
fn is_part(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Whether a key and a value may be a label: the key may have a DNS name before a slash, the
/// value may be empty.
pub fn is_label(key: &str, value: &str) -> bool {
    let end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let word = |text: &str| {
        let bytes = text.as_bytes();
        (1..=63).contains(&bytes.len())
            && bytes.iter().all(|&byte| is_plain(byte))
            && end(bytes.first())
            && end(bytes.last())
    };
    let (domain, name) = match key.split_once('/') {
        Some((domain, name)) => (Some(domain), name),
        None => (None, key),
    };
    let is_part = |part: &str| !part.contains('_') && word(part);
    let domain = domain.is_none_or(|domain| {
        domain.len() <= 253
            && domain == domain.to_ascii_lowercase()
            && domain.split('.').all(is_part)
    });
    domain && word(name) && (value.is_empty() || word(value))
}

/// Whether a text may name a value of a ConfigMap.
pub fn is_key(text: &str) -> bool {
    (1..=253).contains(&text.len())
        && text.bytes().all(is_plain)
        && !text.starts_with("..")
        && text != "."
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_labels_of_dns() {
        for name in ["a", "a-1", "checkout"] {
            assert!(is_name(name, 8), "{name}");
        }
        for name in ["", "1a", "a-", "A", "a_b", "a.b", "abcdefghi"] {
            assert!(!is_name(name, 8), "{name}");
        }
    }

    #[test]
    fn secrets_and_namespaces_may_begin_with_a_digit_and_secrets_have_dots() {
        for name in ["2024-perf", "a"] {
            assert!(must_be_namespace(name).is_ok() && is_secret(name), "{name}");
        }
        assert!(is_secret("nats.login-1") && must_be_namespace("nats.login-1").is_err());
        for name in ["", "-a", "a-", "A", "a_b", "a..b", &"a".repeat(254)] {
            assert!(
                must_be_namespace(name).is_err() && !is_secret(name),
                "{name}"
            );
        }
    }

    #[test]
    fn labels_have_letters_at_both_ends() {
        for (key, value) in [
            ("team", "check out"),
            ("team", "-x"),
            ("", "x"),
            ("Example.org/team", "x"),
            ("a_b/team", "x"),
        ] {
            assert!(!is_label(key, value), "{key}: {value}");
        }
        for (key, value) in [("team", ""), ("example.org/Team_1", "a.b-c_D")] {
            assert!(is_label(key, value), "{key}: {value}");
        }
    }

    #[test]
    fn keys_lead_nowhere_else() {
        for key in ["", ".", "..", "..a", "a/b", "a b"] {
            assert!(!is_key(key), "{key}");
        }
        assert!(is_key("graph.toml") && is_key(".a"));
    }
}
