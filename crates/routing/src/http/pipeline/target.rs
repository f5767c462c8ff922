//! What a request asks for: host and path, in any of the forms of a target (RFC 9112
//! section 3.2), as Go's server understands them.

use std::borrow::Cow;
use std::ops::Range;

use percent::is_valid;

/// A request's target, taken apart. Ranges are those of the target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Target {
    /// The host that the target itself names; empty: the Host field counts.
    pub(crate) host: Range<u32>,
    /// The path, escapes kept; empty: there is none.
    pub(crate) path: Range<u32>,
    /// The query behind its question mark.
    pub(crate) query: Range<u32>,
    /// There is a question mark.
    pub(crate) has_query: bool,
}

impl Target {
    /// Takes a target apart. `None`: Go's server refuses it with a bare 400.
    pub(crate) fn of(method: &[u8], target: &[u8]) -> Option<Self> {
        let length = target.len() as u32;
        let (host, path) = if target.first() == Some(&b'/') {
            (0..0, 0)
        } else if target == b"*" {
            return Some(Self {
                path: 0..1,
                ..Self::default()
            });
        } else if method == b"CONNECT" {
            return Some(Self {
                host: 0..length,
                path: length..length,
                ..Self::default()
            });
        } else {
            let start = scheme(target)? + 3;
            let rest = &target[start..];
            let end = start + memchr::memchr2(b'/', b'?', rest).unwrap_or(rest.len());
            let named =
                memchr::memrchr(b'@', &target[start..end]).map_or(start, |at| start + at + 1);
            if !is_authority(&target[named..end]) {
                return None;
            }
            (named as u32..end as u32, end)
        };
        let query = memchr::memchr(b'?', &target[path..]).map(|at| path + at);
        let path_end = query.unwrap_or(target.len());
        if !is_valid(&target[path..path_end]) {
            return None;
        }
        Some(Self {
            host,
            path: path as u32..path_end as u32,
            query: query.map_or(length, |at| at as u32 + 1)..length,
            has_query: query.is_some(),
        })
    }
}

/// Whether host and port can be those of a URL: nothing is escaped, and the port is a number.
fn is_authority(text: &[u8]) -> bool {
    let name = memchr::memrchr(b']', text).map_or(0, |end| end + 1);
    let port = memchr::memchr(b':', &text[name..]).map_or(&[][..], |at| &text[name + at + 1..]);
    !text.contains(&b'%') && port.iter().all(u8::is_ascii_digit)
}

/// Where the scheme of an absolute target ends: `http` of `http://host/path`.
fn scheme(target: &[u8]) -> Option<usize> {
    let colon = memchr::memchr(b':', target)?;
    let (scheme, rest) = target.split_at(colon);
    let letters = scheme
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte));
    let begins = scheme.first().is_some_and(u8::is_ascii_alphabetic);
    (letters && begins && rest.starts_with(b"://")).then_some(colon)
}

/// Appends a path whose first segment is empty (`//foo`) as gorouter sends it: in absolute
/// form, with the scheme that the endpoint speaks, its path and query escaped anew.
pub(crate) fn write_double_slash(
    scheme: &[u8],
    host: &[u8],
    path: &[u8],
    query: &[u8],
    out: &mut Vec<u8>,
) {
    for part in [scheme, b"://", host] {
        out.extend_from_slice(part);
    }
    percent::write_path(path, out);
    percent::write_query(query, out);
}

/// A path as Go's `URL.EscapedPath` has it: as it came, unless a byte stands in it that should
/// have been escaped; then it is escaped anew.
pub(crate) fn escaped(path: &[u8]) -> Cow<'_, [u8]> {
    if path.iter().all(|byte| percent::may_stand(*byte)) {
        return Cow::Borrowed(path);
    }
    let mut anew = Vec::new();
    percent::write_whole_path(path, &mut anew);
    Cow::Owned(anew)
}

/// A path without its escapes.
pub(crate) fn unescaped(path: &[u8]) -> Vec<u8> {
    percent::unescaped(path, false)
        .map(|(_, byte)| byte)
        .collect()
}

mod percent {
    //! Escapes with a percent sign, as Go's `net/url` makes them.

    /// Whether every percent sign begins an escape.
    pub(super) fn is_valid(text: &[u8]) -> bool {
        memchr::memchr_iter(b'%', text).all(|at| {
            matches!(text.get(at + 1..at + 3), Some([a, b])
                if a.is_ascii_hexdigit() && b.is_ascii_hexdigit())
        })
    }

    /// Whether a byte may stand in an escaped path.
    pub(super) fn may_stand(byte: u8) -> bool {
        byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:@/[]%".contains(&byte)
    }

    /// Appends an escaped path, escaped anew as a whole.
    pub(super) fn write_whole_path(path: &[u8], out: &mut Vec<u8>) {
        for (_, byte) in unescaped(path, false) {
            let plain = byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte);
            escape(byte, plain, out);
        }
    }

    /// Appends each segment of an escaped path, escaped anew (`url.PathEscape`).
    pub(super) fn write_path(path: &[u8], out: &mut Vec<u8>) {
        for (_, byte) in unescaped(path, false) {
            // A slash that was escaped comes out as a separator: so it does in gorouter.
            let plain = byte.is_ascii_alphanumeric() || b"-_.~$&+=:@/".contains(&byte);
            escape(byte, plain, out);
        }
    }

    /// Appends the pairs of a query, sorted by name (`url.Values.Encode`), behind a question
    /// mark; nothing if there are none. Pairs with a semicolon or a broken escape are left out.
    pub(super) fn write_query(query: &[u8], out: &mut Vec<u8>) {
        let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = query
            .split(|byte| *byte == b'&')
            .filter(|pair| !pair.is_empty() && !pair.contains(&b';') && is_valid(pair))
            .map(|pair| {
                let equals = memchr::memchr(b'=', pair);
                let (name, value) =
                    equals.map_or((pair, &[][..]), |at| (&pair[..at], &pair[at + 1..]));
                let plain = |text| unescaped(text, true).map(|(_, byte)| byte).collect();
                (plain(name), plain(value))
            })
            .collect();
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
        for (index, (name, value)) in pairs.iter().enumerate() {
            out.push(if index == 0 { b'?' } else { b'&' });
            write_value(name, out);
            out.push(b'=');
            write_value(value, out);
        }
    }

    /// Appends a text as a name or value of a query (`url.QueryEscape`).
    fn write_value(text: &[u8], out: &mut Vec<u8>) {
        for byte in text {
            match byte {
                b' ' => out.push(b'+'),
                byte => escape(
                    *byte,
                    byte.is_ascii_alphanumeric() || b"-_.~".contains(byte),
                    out,
                ),
            }
        }
    }

    fn escape(byte: u8, plain: bool, out: &mut Vec<u8>) {
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        if plain {
            out.push(byte);
        } else {
            out.extend_from_slice(&[
                b'%',
                DIGITS[usize::from(byte >> 4)],
                DIGITS[usize::from(byte & 15)],
            ]);
        }
    }

    /// The bytes that an escaped text stands for, with where each one begins.
    pub(super) fn unescaped(text: &[u8], plus_is_space: bool) -> impl Iterator<Item = (usize, u8)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let byte = *text.get(at)?;
            let start = at;
            let digit = |at: usize| text.get(at).and_then(|digit| (*digit as char).to_digit(16));
            if byte == b'%'
                && let (Some(high), Some(low)) = (digit(at + 1), digit(at + 2))
            {
                at += 3;
                return Some((start, (high << 4 | low) as u8));
            }
            at += 1;
            let space = plus_is_space && byte == b'+';
            Some((start, if space { b' ' } else { byte }))
        })
    }
}
