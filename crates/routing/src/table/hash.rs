//! Hashes of keys, and of what comes before each slash of a path.

use std::hash::{BuildHasher, DefaultHasher, Hasher, RandomState};

use memchr::memchr;

/// Hashes with a seed of the process, so that nobody can choose hosts that collide.
#[derive(Debug, Default)]
pub(super) struct KeyHasher(RandomState);

/// A prefix of a key that ends where a segment does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prefix {
    /// Its length.
    pub(super) end: usize,
    /// Segments of its path.
    pub(super) depth: usize,
    /// Its hash.
    pub(super) hash: u64,
}

/// The prefixes of a key, the host first.
#[derive(Debug)]
pub(super) struct Prefixes<'a> {
    key: &'a [u8],
    hasher: DefaultHasher,
    end: usize,
    depth: usize,
}

impl KeyHasher {
    /// The host of `key`, and an iterator over the longer prefixes.
    pub(super) fn host<'a>(&self, key: &'a [u8]) -> (Prefix, Prefixes<'a>) {
        let end = memchr(b'/', key).unwrap_or(key.len());
        let mut hasher = self.0.build_hasher();
        hasher.write(&key[..end]);
        let host = Prefix {
            end,
            depth: 0,
            hash: hasher.finish(),
        };
        let prefixes = Prefixes {
            key,
            hasher,
            end,
            depth: 0,
        };
        (host, prefixes)
    }

    /// The hash of the host of `key`, and that of all of it.
    pub(super) fn ends(&self, key: &str) -> (u64, u64) {
        let (host, prefixes) = self.host(key.as_bytes());
        (host.hash, prefixes.last().map_or(host.hash, |it| it.hash))
    }
}

impl Iterator for Prefixes<'_> {
    type Item = Prefix;

    fn next(&mut self) -> Option<Prefix> {
        let rest = self.key.get(self.end + 1..)?;
        let length = memchr(b'/', rest).unwrap_or(rest.len());
        let end = self.end + 1 + length;
        self.hasher.write(&self.key[self.end..end]);
        self.end = end;
        self.depth += 1;
        Some(Prefix {
            end,
            depth: self.depth,
            hash: self.hasher.finish(),
        })
    }
}
