//! The key of a route.

use std::borrow::Cow;

/// A route's key: host and path in lower case, without a query and without a slash at the
/// end. `OK.ex.com/Foo/?x=1` is `ok.ex.com/foo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteKey<'a>(Cow<'a, str>);

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
        let uri = uri.split('?').next().unwrap_or_default();
        let uri = uri.trim_end_matches('/');
        if uri.is_empty() || uri.starts_with('/') {
            return Err(RouteKeyError::NoHost);
        }
        Ok(Self(if uri.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(uri.to_ascii_lowercase())
        } else {
            Cow::Borrowed(uri)
        }))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
