//! The page that comes with the server. It holds no data: whoever opens it types a token, with
//! which it asks the REST API.

use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderValue, REFERRER_POLICY};
use http::header::{X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS};
use http::{Response, StatusCode};
use net::Body;

/// The page, built by `make web`.
const HTML: &str = include_str!("../../../../web/dist/compliance.html");
/// What browsers let it do: its own script and style, told by their hashes.
const POLICY: &str = include_str!("../../../../web/dist/compliance.policy");

/// The page, with what browsers are to make sure of.
pub(super) fn page() -> Response<Body> {
    let mut response = net::response(StatusCode::OK, "text/html; charset=utf-8", HTML);
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        // A newer server has a newer page.
        (CACHE_CONTROL, "no-cache"),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_one_file_and_its_policy_lets_nothing_else_in() {
        let page = page();
        let policy = page.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none';"), "{policy}");
        assert!(policy.contains("connect-src 'self'"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        for marker in ["src=\"", "href=\"http", "@import", "url(http"] {
            assert!(!HTML.contains(marker), "the page contains {marker}");
        }
        assert_eq!(HTML.matches("<script").count(), 1);
    }
}
