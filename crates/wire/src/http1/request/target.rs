//! Whether a request's target is one.

/// Whether a target has one of the four forms of RFC 9112 section 3.2. A path's escapes
/// must be whole, as gorouter asks; those of a query may be anything.
pub(super) fn is_target(method: &str, target: &[u8]) -> bool {
    match target {
        [b'/', ..] => escapes_are_whole(target),
        b"*" => true,
        _ => absolute(target) || (method == "CONNECT" && authority(target)),
    }
}

/// `scheme://host...`
fn absolute(target: &[u8]) -> bool {
    let Some(colon) = memchr::memchr(b':', target) else {
        return false;
    };
    let (scheme, rest) = target.split_at(colon);
    let Some(rest) = rest.strip_prefix(b"://") else {
        return false;
    };
    // A fragment is none here: Go takes its sign for one of the host, or of the path.
    let end = memchr::memchr2(b'/', b'?', rest).unwrap_or(rest.len());
    scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
        && authority(&rest[..end])
        && escapes_are_whole(&rest[end..])
}

/// A host with or without a port; no user, which HTTP has not (RFC 9110 section 4.2.4).
fn authority(bytes: &[u8]) -> bool {
    !bytes.is_empty()
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~:[]%!$&'()*+,;=".contains(byte))
}

fn escapes_are_whole(target: &[u8]) -> bool {
    let path = memchr::memchr(b'?', target).map_or(target, |query| &target[..query]);
    memchr::memchr_iter(b'%', path).all(|at| {
        matches!(&path[at + 1..], [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit())
    })
}
