//! Which texts pass as the URL of a route or of a route service.
//!
//! routing-api takes what Go's `net/url` parses and writes back unchanged: without `?` and
//! `#`, nothing that would have to be escaped, a scheme in lower case.

/// Checks a URL; a host alone (`app.example.com/path`) is one too.
///
/// # Errors
/// The text of the error that routing-api answers.
pub(super) fn check(url: &str) -> Result<(), String> {
    if url.contains(['?', '#']) {
        return Err("url cannot contain any of [?, #]".to_owned());
    }
    let unreadable = |cause: String| Err(format!("parse {url:?}: {cause}"));
    if url.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return unreadable("net/url: invalid control character in URL".to_owned());
    }
    if let Some(escape) = bad_escape(url) {
        return unreadable(format!("invalid URL escape {escape:?}"));
    }
    let rest = match split_scheme(url) {
        Scheme::Missing => return unreadable("missing protocol scheme".to_owned()),
        Scheme::Of(scheme, rest) => {
            if scheme.bytes().any(|byte| byte.is_ascii_uppercase()) {
                return Err(INVALID.to_owned());
            }
            // `host:port/path` reads as a scheme with an opaque rest, which stays as it is.
            if !rest.starts_with('/') {
                return Ok(());
            }
            rest
        }
        Scheme::None => {
            let first = url.split('/').next().unwrap_or_default();
            if first.contains(':') {
                let cause = "first path segment in URL cannot contain colon";
                return unreadable(cause.to_owned());
            }
            url
        }
    };
    let path = match rest.strip_prefix("//") {
        None => rest,
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = authority.rsplit('@').next().unwrap_or_default();
            if let Some(port) = bad_port(host) {
                return unreadable(format!("invalid port {port:?} after host"));
            }
            if let Some(bad) = host.chars().find(|bad| !is_host(*bad)) {
                return unreadable(format!(
                    "invalid character {:?} in host name",
                    bad.to_string()
                ));
            }
            path
        }
    };
    if path.bytes().all(is_path) {
        Ok(())
    } else {
        Err(INVALID.to_owned())
    }
}

const INVALID: &str = "url cannot contain invalid characters";

enum Scheme<'a> {
    /// The text begins with a colon.
    Missing,
    /// There is one, and a rest behind its colon.
    Of(&'a str, &'a str),
    /// It begins with a host or path.
    None,
}

fn split_scheme(url: &str) -> Scheme<'_> {
    for (at, byte) in url.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at > 0 => return Scheme::Of(&url[..at], &url[at + 1..]),
            b':' => return Scheme::Missing,
            _ => return Scheme::None,
        }
    }
    Scheme::None
}

/// The first `%` that two hexadecimal digits do not follow, with up to two of what does.
fn bad_escape(url: &str) -> Option<&str> {
    url.match_indices('%').find_map(|(at, _)| {
        let rest = &url[at..];
        let digits = rest.as_bytes().get(1..3);
        let good = digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let cut = rest.char_indices().nth(3).map_or(rest.len(), |(at, _)| at);
        (!good).then(|| &rest[..cut])
    })
}

/// The text behind a host from its colon on, if it is no port.
fn bad_port(host: &str) -> Option<&str> {
    let from = host.rfind(']').map_or(0, |end| end + 1);
    let port = &host[from + host[from..].find(':')?..];
    let good = port[1..].bytes().all(|byte| byte.is_ascii_digit());
    (!good).then_some(port)
}

fn is_host(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:[]<>\"%".contains(character)
}

fn is_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@!'()*[]%".contains(&byte)
}
