//! What is known of each entry of HPACK's tables (RFC 7541 section 2.3).

use std::collections::VecDeque;

use super::Unreadable;

/// The table's size that both sides begin with and that this side never changes
/// (`SETTINGS_HEADER_TABLE_SIZE`, RFC 9113 section 6.5.2).
const LARGEST: usize = 4096;
/// What an entry counts besides its bytes (RFC 7541 section 4.1).
const OVERHEAD: usize = 32;

/// Where `content-length` is in the static table, without a value.
pub(super) const CONTENT_LENGTH: usize = 28;

/// The names from 15 on of appendix A; those before are pseudo-header fields'.
const STATIC_FIELDS: [&str; 47] = [
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "accept",
    "access-control-allow-origin",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "link",
    "location",
    "max-forwards",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "refresh",
    "retry-after",
    "server",
    "set-cookie",
    "strict-transport-security",
    "transfer-encoding",
    "user-agent",
    "vary",
    "via",
    "www-authenticate",
];

/// What a name says of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Field,
    /// `content-length`.
    Length,
    /// `:authority`, `:path`, `:protocol`, `:scheme`.
    Text,
    Method,
    Status,
    /// None that may be: such a field is malformed, whatever its value.
    None,
}

/// A name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) kind: Kind,
    /// Its bytes.
    pub(super) length: usize,
}

/// The tables of one direction of a connection.
#[derive(Debug)]
pub(super) struct Table {
    /// The newest first.
    entries: VecDeque<Entry>,
    size: usize,
    most: usize,
}

#[derive(Debug)]
struct Entry {
    name: Name,
    size: usize,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            size: 0,
            most: LARGEST,
        }
    }
}

impl Table {
    /// The name of an entry. That of a malformed one has no kind.
    ///
    /// # Errors
    /// When there is no such entry.
    pub(super) fn name(&self, index: usize) -> Result<Name, Unreadable> {
        let (kind, length) = match index {
            0 => return Err(Unreadable),
            1 => (Kind::Text, ":authority".len()),
            2 | 3 => (Kind::Method, ":method".len()),
            4 | 5 => (Kind::Text, ":path".len()),
            6 | 7 => (Kind::Text, ":scheme".len()),
            8..=14 => (Kind::Status, ":status".len()),
            CONTENT_LENGTH => (Kind::Length, "content-length".len()),
            _ => match STATIC_FIELDS.get(index - 15) {
                Some(name) => (Kind::Field, name.len()),
                None => {
                    let entry = self.entries.get(index - 15 - STATIC_FIELDS.len());
                    return entry.map(|entry| entry.name).ok_or(Unreadable);
                }
            },
        };
        Ok(Name { kind, length })
    }

    /// Adds an entry, for which old ones make room (section 4.4).
    pub(super) fn insert(&mut self, name: Name, value_length: usize) {
        let size = name.length + value_length + OVERHEAD;
        self.make_room(size);
        if size <= self.most {
            self.size += size;
            self.entries.push_front(Entry { name, size });
        }
    }

    /// Changes how large the table may be (section 6.3).
    ///
    /// # Errors
    /// When that is more than was allowed.
    pub(super) fn resize(&mut self, most: usize) -> Result<(), Unreadable> {
        if most > LARGEST {
            return Err(Unreadable);
        }
        self.most = most;
        self.make_room(0);
        Ok(())
    }

    fn make_room(&mut self, size: usize) {
        while self.size + size > self.most
            && let Some(oldest) = self.entries.pop_back()
        {
            self.size -= oldest.size;
        }
    }
}
