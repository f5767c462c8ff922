//! Which names and values fields may have (RFC 9113 sections 8.2 and 8.3).

/// What a field's name says of its value and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing.
    Field,
    /// `content-length`: a number.
    Length,
    /// `host`.
    Host,
    /// `cookie`, which may come in pieces.
    Cookie,
    /// `te`, of which only one value may be.
    Te,
    /// `:method`.
    Method,
    /// `:scheme`.
    Scheme,
    /// `:authority`.
    Authority,
    /// `:path`.
    Path,
    /// `:protocol` (RFC 8441).
    Protocol,
    /// `:status`.
    Status,
    /// None that may be: such a field is malformed, whatever its value.
    None,
}

impl Kind {
    /// The kind of a name.
    pub const fn of(name: &[u8]) -> Self {
        match name {
            b":method" => Self::Method,
            b":scheme" => Self::Scheme,
            b":authority" => Self::Authority,
            b":path" => Self::Path,
            b":protocol" => Self::Protocol,
            b":status" => Self::Status,
            b"content-length" => Self::Length,
            b"host" => Self::Host,
            b"cookie" => Self::Cookie,
            b"te" => Self::Te,
            name if is_of_connection(name) || !is_name(name) => Self::None,
            _ => Self::Field,
        }
    }

    /// Whether it stands before all other fields.
    pub const fn is_pseudo(self) -> bool {
        matches!(
            self,
            Self::Method
                | Self::Scheme
                | Self::Authority
                | Self::Path
                | Self::Protocol
                | Self::Status
        )
    }

    /// Whether a field of this kind may have no value at all.
    pub(super) const fn may_be_empty(self) -> bool {
        matches!(self, Self::Field | Self::Host | Self::Cookie)
    }

    /// Whether a field of this kind may have this value.
    pub fn may_be(self, value: &[u8]) -> bool {
        match self {
            Self::Field | Self::Host | Self::Cookie => is_value(value),
            Self::Length => !value.is_empty() && value.iter().all(u8::is_ascii_digit),
            Self::Te => value == b"trailers",
            Self::Method => is_token(value),
            Self::Scheme => is_scheme(value),
            Self::Authority => is_authority(value),
            Self::Path => is_path(value),
            Self::Protocol => is_token(value),
            Self::Status => matches!(value, [b'1'..=b'9', b'0'..=b'9', b'0'..=b'9']),
            Self::None => false,
        }
    }
}

/// Whether a field is of one connection only (section 8.2.2).
pub const fn is_of_connection(name: &[u8]) -> bool {
    matches!(
        name,
        b"connection" | b"transfer-encoding" | b"upgrade" | b"keep-alive" | b"proxy-connection"
    )
}

const TOKEN: u8 = 1;
const UPPER: u8 = 2;
const PATH: u8 = 4;
const AUTHORITY: u8 = 8;
const SCHEME: u8 = 16;
const CONTROL: u8 = 32;

static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let it = byte as u8;
        let alphanumeric = it.is_ascii_alphanumeric();
        let mut class = 0;
        if alphanumeric || is_among(b"!#$%&'*+-.^_`|~", it) {
            class |= TOKEN;
        }
        if it.is_ascii_uppercase() {
            class |= UPPER;
        }
        // Visible signs but those that end a path, and what is beyond ASCII.
        if it > b' ' && it != 0x7f && !matches!(it, b'#' | b'<' | b'>') {
            class |= PATH;
        }
        if alphanumeric || is_among(b"-._~:@!$&'()*+,;=%[]", it) {
            class |= AUTHORITY;
        }
        if alphanumeric || matches!(it, b'+' | b'-' | b'.') {
            class |= SCHEME;
        }
        if (it < b' ' && it != b'\t') || it == 0x7f {
            class |= CONTROL;
        }
        classes[byte] = class;
        byte += 1;
    }
    classes
}

const fn is_among(bytes: &[u8], byte: u8) -> bool {
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == byte {
            return true;
        }
        at += 1;
    }
    false
}

#[inline]
fn all(text: &[u8], class: u8) -> bool {
    text.iter()
        .all(|byte| CLASSES[usize::from(*byte)] & class != 0)
}

/// Whether a field may have this name.
pub const fn is_name(name: &[u8]) -> bool {
    let mut at = 0;
    while at < name.len() {
        if CLASSES[name[at] as usize] & (TOKEN | UPPER) != TOKEN {
            return false;
        }
        at += 1;
    }
    !name.is_empty()
}

/// Whether a field may have this value (section 8.2.1). Space around it is let be: what reads
/// fields as lines does not see it.
#[inline]
pub fn is_value(value: &[u8]) -> bool {
    value
        .iter()
        .all(|byte| CLASSES[usize::from(*byte)] & CONTROL == 0)
}

fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && all(text, TOKEN)
}

fn is_scheme(text: &[u8]) -> bool {
    !text.is_empty() && all(text, SCHEME)
}

/// Whether a request may have this path: one that begins at the root, or that of `OPTIONS *`.
fn is_path(text: &[u8]) -> bool {
    match text {
        b"*" => true,
        [b'/', ..] => all(text, PATH) && (text.is_ascii() || str::from_utf8(text).is_ok()),
        _ => false,
    }
}

/// Whether a host may be named so, with a port or without.
fn is_authority(text: &[u8]) -> bool {
    if text.is_empty() || !all(text, AUTHORITY) {
        return false;
    }
    // What `http` says of user names, addresses in brackets, ports.
    if text
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
    {
        return true;
    }
    http::uri::Authority::try_from(text).is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Types that others use agree; of paths they take no more.
        #[test]
        fn names_and_values_are_those_of_http(text in prop::collection::vec(any::<u8>(), 0..6)) {
            // A quotation mark is no part of a token (RFC 9110 section 5.6.2), whatever `http` takes.
            let name = !text.contains(&b'"') && http::HeaderName::from_lowercase(&text).is_ok();
            prop_assert_eq!(is_name(&text), name, "{:?}", text);
            prop_assert_eq!(is_value(&text), http::HeaderValue::from_bytes(&text).is_ok());
            prop_assert_eq!(is_token(&text), http::Method::from_bytes(&text).is_ok());
            prop_assert_eq!(is_authority(&text), http::uri::Authority::try_from(&text[..]).is_ok());
            let path = [b"/", &text[..]].concat();
            // Of the signs that no path should have some are let be, as HTTP/1.1 lets them be here.
            if !text.contains(&b'#') && http::uri::PathAndQuery::try_from(&path[..]).is_ok() {
                prop_assert!(is_path(&path));
            }
            if is_scheme(&text) {
                prop_assert!(http::uri::Scheme::try_from(&text[..]).is_ok());
            }
        }
    }

    #[test]
    fn what_may_be_and_what_may_not() {
        for (kind, good, bad) in [
            (
                Kind::Path,
                &["/", "/a?b=%20", "*", "/\u{e9}"][..],
                &["", "a", "/a b", "/#x", "?a"][..],
            ),
            (
                Kind::Scheme,
                &["http", "https", "a+b"],
                &["", "h ttp", "a:b"],
            ),
            (
                Kind::Authority,
                &["a", "a.b:80", "[::1]:80"],
                &["", "a b", "a:b:c", "[::1"],
            ),
            (Kind::Length, &["0", "18"], &["", "-1", "+1", "a"]),
            (Kind::Status, &["200", "999"], &["20", "099", "2000"]),
            (Kind::Te, &["trailers"], &["gzip", ""]),
            (Kind::Method, &["GET", "M-SEARCH"], &["", "G T"]),
            (Kind::None, &[], &["a"]),
        ] {
            for text in good {
                assert!(kind.may_be(text.as_bytes()), "{kind:?} {text}");
            }
            for text in bad {
                assert!(!kind.may_be(text.as_bytes()), "{kind:?} {text}");
            }
        }
        assert!(!Kind::Path.may_be(b"/\xff\xfe"));
        for name in ["", "X", "x y", ":other", "connection", "upgrade", "x:"] {
            assert_eq!(Kind::of(name.as_bytes()), Kind::None, "{name}");
        }
    }
}
