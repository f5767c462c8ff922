//! Which route services this router calls through itself: those whose host is its own route
//! and, if there is a list, stands in it.

use std::collections::HashSet;

/// Hosts, as the settings list them: `name.example`, or `*.example` for every name with one
/// more label.
#[derive(Debug)]
pub(crate) struct HairpinHosts {
    /// Nothing is listed: any host will do.
    any: bool,
    /// Names in lower case; what stands behind a wildcard, with its dot.
    listed: HashSet<Box<str>>,
}

impl HairpinHosts {
    /// A list; empty: any host will do. What is no entry ([`is_entry`]) allows nothing.
    pub(crate) fn new(entries: &[String]) -> Self {
        Self {
            any: entries.is_empty(),
            listed: entries
                .iter()
                .filter(|entry| is_entry(entry))
                .map(|entry| entry.strip_prefix('*').unwrap_or(entry))
                .map(|entry| entry.to_ascii_lowercase().into())
                .collect(),
        }
    }

    /// Whether a route's host, which is in lower case, is listed.
    pub(crate) fn allow(&self, host: &str) -> bool {
        self.any
            || self.listed.contains(host)
            || host
                .find('.')
                .is_some_and(|dot| self.listed.contains(&host[dot..]))
    }
}

/// Whether a text may stand in a list of hosts: a name of two labels or more, or `*.` before
/// such a name.
pub(crate) fn is_entry(text: &str) -> bool {
    let name = text.strip_prefix("*.").unwrap_or(text);
    let is_label = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty() && label.bytes().all(plain)
    };
    name.contains('.') && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(entries: &[&str]) -> HairpinHosts {
        let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        HairpinHosts::new(&entries)
    }

    #[test]
    fn names_and_wildcards_allow_what_gorouter_lets_them() {
        let listed = hosts(&["RS.Ex.com", "*.Apps.ex.com"]);
        for (host, expected) in [
            ("rs.ex.com", true),
            ("a.apps.ex.com", true),
            ("*.apps.ex.com", true),
            ("apps.ex.com", false),
            ("a.b.apps.ex.com", false),
            ("other.ex.com", false),
            ("xrs.ex.com", false),
            ("localhost", false),
            ("", false),
        ] {
            assert_eq!(listed.allow(host), expected, "{host}");
        }
        assert!(hosts(&[]).allow("anything"));
        assert!(!hosts(&["*"]).allow("anything"));
    }

    #[test]
    fn entries_are_names_of_two_labels_with_a_wildcard_at_most_before_them() {
        for entry in ["a.b", "*.a.b", "A-1.ex.com", "1.2"] {
            assert!(is_entry(entry), "{entry}");
        }
        for wrong in [
            "",
            "*",
            "*.",
            "a",
            "*.a",
            "a..b",
            ".a.b",
            "a.b.",
            "a.*.b",
            "*.*.b",
            "a_b.c",
            "?!.ex.com",
            "a.b:80",
            "https://a.b",
        ] {
            assert!(!is_entry(wrong), "{wrong}");
        }
    }
}
