//! The key that a request asks for.

use memchr::{memchr, memrchr};

use super::RouteKey;

/// Host and path of a request, in lower case, with one byte to spare before them for the
/// asterisk of a wild card.
#[derive(Debug)]
pub(super) struct RequestKey<'a> {
    bytes: &'a mut [u8],
    /// Where the key begins.
    start: usize,
    /// Where the labels begin that were not replaced.
    labels: usize,
    host_end: usize,
}

/// A request's host without its port and path without its query and last slashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target<'a> {
    host: &'a [u8],
    path: &'a [u8],
}

impl<'a> Target<'a> {
    /// `None` when no route can match: there is no host, or one that is longer than any key.
    /// Of a long path those segments count that a key has room for. Everything from the first colon is a port, so no route is found for the
    /// literal of an IPv6 address, as in gorouter. What does not begin with a slash
    /// is no path, and `*` belongs to no route.
    pub(super) fn new(host: &'a [u8], path: &'a [u8]) -> Option<Self> {
        let host = &host[..memchr(b':', host).unwrap_or(host.len())];
        let mut path = &path[..memchr(b'?', path).unwrap_or(path.len())];
        while let [rest @ .., b'/'] = path {
            path = rest;
        }
        if path == b"*" {
            return None;
        }
        if path.first() != Some(&b'/') {
            path = &[];
        }
        let fits = !host.is_empty() && host.len() <= RouteKey::MOST_BYTES;
        let room = RouteKey::MOST_BYTES.saturating_sub(host.len());
        if path.len() > room {
            let end = memrchr(b'/', &path[..=room]).unwrap_or_default();
            path = &path[..end];
            while let [rest @ .., b'/'] = path {
                path = rest;
            }
        }
        // A slash in a host would be taken for the beginning of a path.
        (fits && memchr(b'/', host).is_none()).then_some(Self { host, path })
    }

    /// Bytes that its key takes.
    pub(super) fn space(&self) -> usize {
        1 + self.host.len() + self.path.len()
    }

    /// Its key, written to `space`, which has as many bytes as [`space`](Self::space) said.
    pub(super) fn key<'s>(&self, space: &'s mut [u8]) -> RequestKey<'s> {
        let host_end = 1 + self.host.len();
        space[1..host_end].copy_from_slice(self.host);
        space[host_end..].copy_from_slice(self.path);
        space.make_ascii_lowercase();
        RequestKey {
            bytes: space,
            start: 1,
            labels: 1,
            host_end,
        }
    }
}

impl RequestKey<'_> {
    /// Bytes of the longest name in DNS, with a dot at its end.
    const LONGEST_NAME: usize = 254;

    /// The key as it is now.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Puts an asterisk in place of the left-most label: `a.b.c` becomes `*.b.c`, and that
    /// `*.c`. Whether there was one with a dot behind it. A host that is longer than any
    /// name of DNS has no wild cards: else a request with thousands of labels would be
    /// looked up thousands of times.
    pub(super) fn next_wildcard(&mut self) -> bool {
        if self.host_end > 1 + Self::LONGEST_NAME {
            return false;
        }
        let Some(dot) = memchr(b'.', &self.bytes[self.labels..self.host_end]) else {
            return false;
        };
        let dot = self.labels + dot;
        self.start = dot - 1;
        self.labels = dot + 1;
        self.bytes[self.start] = b'*';
        true
    }
}
