//! The page that comes with this crate.

use bytes::Bytes;
use http::HeaderValue;

use super::AdminPage;

/// The page, built by `make web`. It asks its own server for all that it shows.
const HTML: &str = include_str!("../../../../web/dist/graph.html");
/// What browsers let it do: its own script and style, told by their hashes.
const POLICY: &str = include_str!("../../../../web/dist/graph.policy");

impl AdminPage {
    /// The page that shows a graph live: services and edges, traces, where the time goes.
    pub fn embedded() -> Self {
        Self {
            html: Bytes::from_static(HTML.as_bytes()),
            policy: HeaderValue::from_static(POLICY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_lets_nothing_in_but_the_pages_own_parts() {
        let page = AdminPage::embedded();
        let policy = page.policy.to_str().unwrap();
        assert!(policy.starts_with("default-src 'none';"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        for kind in ["script-src", "style-src"] {
            let found = policy
                .split("; ")
                .find_map(|one| one.strip_prefix(kind))
                .unwrap();
            let mut sources = found.split_whitespace();
            assert!(sources.next().is_some(), "no {kind} in {policy}");
            assert!(
                found
                    .split_whitespace()
                    .all(|source| source.starts_with("'sha256-")),
                "{policy}"
            );
        }
    }

    #[test]
    fn the_page_is_one_file() {
        for marker in [
            "src=\"",
            "href=\"http",
            "@import",
            "url(http",
            "<link rel=\"stylesheet",
        ] {
            assert!(!HTML.contains(marker), "the page contains {marker}");
        }
        assert_eq!(HTML.matches("<script").count(), 1);
    }
}
