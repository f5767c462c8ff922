//! The key of a route.

use std::borrow::Cow;

/// A route's key: host and path in lower case, without a query and without a slash at the
/// end. `OK.ex.com/Foo/?x=1` is `ok.ex.com/foo`.
#[derive(Debug, Clone)]
pub struct RouteKey<'a> {
    key: Cow<'a, str>,
    /// The path as it came, but for a slash at its end, for cookies, whose paths browsers
    /// compare with case.
    path: &'a str,
}

/// Why a uri is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RouteKeyError {
    /// There is no host.
    #[error("the uri names no host; expected host[/path]")]
    NoHost,
    /// It is too long to be one of a request.
    #[error("the uri has {0} bytes; expected at most {most}", most = RouteKey::MOST_BYTES)]
    TooLong(usize),
}

impl<'a> RouteKey<'a> {
    /// Longest key, in bytes.
    pub const MOST_BYTES: usize = 8 * 1024;

    /// The key of a uri as registrations name it: `host[/path]`.
    ///
    /// # Errors
    /// When it names no host or is too long.
    pub fn new(uri: &'a str) -> Result<Self, RouteKeyError> {
        if uri.len() > Self::MOST_BYTES {
            return Err(RouteKeyError::TooLong(uri.len()));
        }
        // Of the path one slash is cut, and none before a query: so gorouter's cookies have it.
        let uri = uri.strip_suffix('/').unwrap_or(uri);
        let query = memchr::memchr(b'?', uri.as_bytes());
        let uri = &uri[..query.unwrap_or(uri.len())];
        let path = uri.find('/').map_or("/", |slash| &uri[slash..]);
        let uri = uri.trim_end_matches('/');
        if uri.is_empty() || uri.starts_with('/') {
            return Err(RouteKeyError::NoHost);
        }
        let key = if uri.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(uri.to_ascii_lowercase())
        } else {
            Cow::Borrowed(uri)
        };
        Ok(Self { key, path })
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.key
    }

    /// The path as the registration has it, which the key has in lower case and without any
    /// slash at its end.
    pub(super) fn path(&self) -> &'a str {
        self.path
    }
}

/// A stored key. Most are short and lie within what holds them, so that comparing them
/// costs no other line of the cache.
#[derive(Debug)]
pub(super) enum KeyText {
    /// Of at most [`INLINE`](Self::INLINE) bytes.
    Short {
        /// How many.
        length: u8,
        /// The key, and zeros.
        bytes: [u8; Self::INLINE],
    },
    /// A longer one.
    Long(Box<str>),
}

impl KeyText {
    const INLINE: usize = 38;

    /// Stores a key.
    pub(super) fn new(key: &str) -> Self {
        match u8::try_from(key.len()) {
            Ok(length) if key.len() <= Self::INLINE => {
                let mut bytes = [0; Self::INLINE];
                bytes[..key.len()].copy_from_slice(key.as_bytes());
                Self::Short { length, bytes }
            }
            _ => Self::Long(key.into()),
        }
    }

    /// The key.
    pub(super) fn as_str(&self) -> &str {
        match self {
            // It was text when it was stored.
            Self::Short { .. } => std::str::from_utf8(self.as_bytes()).unwrap_or_default(),
            Self::Long(key) => key,
        }
    }

    /// Its bytes.
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Short { length, bytes } => &bytes[..usize::from(*length).min(Self::INLINE)],
            Self::Long(key) => key.as_bytes(),
        }
    }
}
