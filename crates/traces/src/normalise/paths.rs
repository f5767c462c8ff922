//! Paths that differ in ids alone, as one: `/users/17` and `/users/18`.

use std::collections::HashMap;

use crate::{Name, Span, SpanKind};

/// From so many on they are ids, and not a few names that happen to be numbers.
const MANY: usize = 10;

/// What stands for an id.
const ID: &str = "{id}";

/// Fewest digits of a hexadecimal id.
const HEX: usize = 16;

/// Gives spans whose names are such paths one name, also if they are few and others have it. Of
/// our own spans the paths are known, and stay.
pub(super) fn join(spans: &mut [&mut Span]) {
    let is_ours = |span: &&mut Span| span.kind == SpanKind::Work || span.cpu > 0 || span.queue > 0;
    if spans.iter().any(is_ours) {
        return;
    }
    let mut joined: HashMap<Name, Option<String>> = HashMap::new();
    for span in spans.iter() {
        if !joined.contains_key(&span.name) {
            joined.insert(span.name.clone(), without_ids(&span.name));
        }
    }
    let mut counts: HashMap<String, usize> = HashMap::new();
    for path in joined.values().flatten() {
        *counts.entry(path.clone()).or_default() += 1;
    }
    counts.retain(|path, count| *count >= MANY || joined.contains_key(path.as_str()));
    let shared: HashMap<String, Name> = counts
        .into_keys()
        .map(|path| (path.clone(), path.into()))
        .collect();
    for span in spans {
        let path = joined.get(&span.name).and_then(Option::as_ref);
        if let Some(name) = path.and_then(|path| shared.get(path)) {
            span.name = name.clone();
        }
    }
}

/// A path, or a method and a path, without its ids; `None`: it is none, or has none.
pub(crate) fn without_ids(name: &str) -> Option<String> {
    let path = name.find('/')?;
    let method = name[..path].trim_end();
    let is_path = method.bytes().all(|byte| byte.is_ascii_uppercase());
    if !is_path || !name.split('/').any(is_id) {
        return None;
    }
    let plain = |part| if is_id(part) { ID } else { part };
    let parts: Vec<&str> = name.split('/').map(plain).collect();
    Some(parts.join("/"))
}

/// A number, a UUID, or many hexadecimal digits.
fn is_id(part: &str) -> bool {
    let is_hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let has_digit = part.bytes().any(|byte| byte.is_ascii_digit());
    let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
    let is_long = part.len() >= HEX && is_hex(part);
    let is_uuid = part.split('-').map(str::len).eq([8, 4, 4, 4, 12]) && part.split('-').all(is_hex);
    has_digit && (is_number || is_long || is_uuid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::server;

    fn named(names: &[String]) -> Vec<String> {
        let each = names.iter().zip(1..);
        let mut spans: Vec<Span> = each
            .map(|(name, trace)| Span {
                name: name.as_str().into(),
                ..server(trace, 1, 0, 9)
            })
            .collect();
        crate::normalise(&mut spans);
        spans.iter().map(|span| span.name.to_string()).collect()
    }

    #[test]
    fn many_paths_that_differ_in_ids_are_one_and_few_are_not() {
        let users = |count: u64| -> Vec<String> {
            (0..count).map(|id| format!("/users/{id}/cart")).collect()
        };
        assert_eq!(named(&users(10)), ["/users/{id}/cart"; 10]);
        assert_eq!(named(&users(9)), users(9));
        let same: Vec<String> = (0..30).map(|_| "/users/7/cart".to_owned()).collect();
        assert_eq!(named(&same), same);
        let beside = ["/users/{id}/cart", "/users/7/cart"].map(str::to_owned);
        assert_eq!(named(&beside), ["/users/{id}/cart"; 2]);
    }

    #[test]
    fn an_id_is_a_number_a_uuid_or_many_hexadecimal_digits() {
        let joined = |name: &str| without_ids(name).unwrap_or_default();
        assert_eq!(joined("GET /a/17"), "GET /a/{id}");
        assert_eq!(
            joined("/a/123e4567-e89b-12d3-a456-426614174000/b"),
            "/a/{id}/b"
        );
        assert_eq!(joined("/4bf92f3577b34da6/"), "/{id}/");
        for name in ["/v1/a", "/decade/cafe", "/", "SELECT 1/2", "cpu", "a/1"] {
            assert_eq!(joined(name), "", "{name}");
        }
    }
}
