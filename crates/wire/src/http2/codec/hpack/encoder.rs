//! Field blocks that are sent (RFC 7541 section 6).

use std::collections::VecDeque;

use super::{LARGEST_TABLE, OVERHEAD, integer, statics};

/// Fields that were sent lately, of which one that comes again enters the table: this many are
/// remembered. What differs from one message to the next never drives out what repeats.
const REMEMBERED: usize = 64;
/// Longer fields never enter the table: they would drive out too many.
const LONGEST: usize = 1024;

/// Writes the blocks of one direction of a connection, one after the other. Text is sent as it
/// is: the bytes that a Huffman code saves cost both sides more than they do on their way.
#[derive(Debug)]
pub(in crate::http2::codec) struct Encoder {
    /// The newest first, with the hashes beside them for the search.
    entries: VecDeque<Entry>,
    hashes: VecDeque<u32>,
    size: usize,
    most: usize,
    /// The smallest size since the last block, if it was changed, which the next one must say.
    smallest: Option<usize>,
    recent: [u32; REMEMBERED],
    name: Vec<u8>,
}

#[derive(Debug)]
struct Entry {
    text: Box<[u8]>,
    name: usize,
}

impl Default for Encoder {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            hashes: VecDeque::new(),
            size: 0,
            most: LARGEST_TABLE,
            smallest: None,
            recent: [0; REMEMBERED],
            name: Vec::new(),
        }
    }
}

/// The fields of a message that is being written: pseudo-header fields first.
#[derive(Debug)]
pub struct Block<'e> {
    encoder: &'e mut Encoder,
    out: &'e mut Vec<u8>,
}

impl Encoder {
    /// Changes how large the peer's table may be (`SETTINGS_HEADER_TABLE_SIZE`).
    pub(in crate::http2::codec) fn resize(&mut self, most: usize) {
        let most = most.min(LARGEST_TABLE);
        if most == self.most {
            return;
        }
        self.most = most;
        self.smallest = Some(self.smallest.map_or(most, |before| before.min(most)));
        self.make_room(0);
    }

    /// Begins a block behind what is in `out`.
    pub(in crate::http2::codec) fn begin<'e>(&'e mut self, out: &'e mut Vec<u8>) -> Block<'e> {
        if let Some(smallest) = self.smallest.take() {
            integer::write(0x20, 5, smallest, out);
            if self.most > smallest {
                integer::write(0x20, 5, self.most, out);
            }
        }
        Block { encoder: self, out }
    }

    fn make_room(&mut self, size: usize) {
        while self.size + size > self.most
            && let Some(oldest) = self.entries.pop_back()
        {
            self.hashes.pop_back();
            self.size -= oldest.text.len() + OVERHEAD;
        }
    }

    fn insert(&mut self, hash: u32, name: &[u8], value: &[u8]) {
        let size = name.len() + value.len() + OVERHEAD;
        self.make_room(size);
        self.size += size;
        self.entries.push_front(Entry {
            text: [name, value].concat().into(),
            name: name.len(),
        });
        self.hashes.push_front(hash);
    }

    /// Where a field is in the table.
    #[inline]
    fn find(&self, hash: u32, name: &[u8], value: &[u8]) -> Option<usize> {
        let is_it = |at: &usize| {
            self.entries.get(*at).is_some_and(|entry| {
                entry.name == name.len()
                    && entry.text.len() == name.len() + value.len()
                    && entry.text.starts_with(name)
                    && entry.text.ends_with(value)
            })
        };
        let mut hashes = self.hashes.iter().enumerate();
        hashes.find_map(|(at, it)| (*it == hash).then_some(at).filter(is_it))
    }

    /// Whether a field was sent lately; from now on it was.
    #[inline]
    fn comes_again(&mut self, hash: u32) -> bool {
        let place = &mut self.recent[hash as usize % REMEMBERED];
        std::mem::replace(place, hash) == hash
    }
}

/// Of a name and a value, never 0.
#[inline]
fn hash(name: &[u8], value: &[u8]) -> u32 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = (name.len() as u64) << 32 | value.len() as u64;
    for part in [name, value] {
        let (words, rest) = part.as_chunks::<8>();
        for word in words {
            hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
            hash ^= hash >> 29;
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(FACTOR);
        hash ^= hash >> 29;
    }
    (hash >> 32) as u32 | 1
}

/// What proxies may not keep in tables either, for it could be guessed from lengths (RFC 7541
/// section 7.1).
fn is_secret(name: &[u8]) -> bool {
    matches!(
        name,
        b"authorization" | b"proxy-authorization" | b"cookie" | b"set-cookie"
    )
}

impl Block<'_> {
    /// The status of an answer.
    pub fn status(&mut self, status: u16) {
        let index = match status {
            200 => 8,
            204 => 9,
            206 => 10,
            304 => 11,
            400 => 12,
            404 => 13,
            500 => 14,
            _ => {
                let digit = |of: u16| b'0' + (status / of % 10) as u8;
                return self.text(8, b":status", &[digit(100), digit(10), digit(1)]);
            }
        };
        self.indexed(index);
    }

    /// The method of a request.
    pub fn method(&mut self, method: &[u8]) {
        match method {
            b"GET" => self.indexed(2),
            b"POST" => self.indexed(3),
            method => self.text(2, b":method", method),
        }
    }

    /// The scheme of a request.
    pub fn scheme(&mut self, scheme: &[u8]) {
        match scheme {
            b"http" => self.indexed(6),
            b"https" => self.indexed(7),
            scheme => self.text(6, b":scheme", scheme),
        }
    }

    /// The authority of a request.
    pub fn authority(&mut self, authority: &[u8]) {
        self.text(1, b":authority", authority);
    }

    /// Path and query of a request.
    pub fn path(&mut self, path: &[u8]) {
        match path {
            b"/" => self.indexed(4),
            path => self.text(4, b":path", path),
        }
    }

    /// The protocol that a request wants to speak (RFC 8441).
    pub fn protocol(&mut self, protocol: &[u8]) {
        self.text(0, b":protocol", protocol);
    }

    /// A field behind these. Its name may have capital letters, which are sent as small ones.
    pub fn field(&mut self, name: &[u8], value: &[u8]) {
        if !name.iter().any(u8::is_ascii_uppercase) {
            return self.lower_field(name, value);
        }
        let mut lower = std::mem::take(&mut self.encoder.name);
        lower.clear();
        lower.extend(name.iter().map(u8::to_ascii_lowercase));
        self.lower_field(&lower, value);
        self.encoder.name = lower;
    }

    /// The same, of a name without capital letters.
    pub fn lower_field(&mut self, name: &[u8], value: &[u8]) {
        if is_secret(name) {
            return self.literal(0x10, 4, statics::index_of(name).unwrap_or(0), name, value);
        }
        self.text(usize::MAX, name, value);
    }

    fn indexed(&mut self, index: usize) {
        integer::write(0x80, 7, index, self.out);
    }

    fn literal(&mut self, first: u8, prefix: u32, index: usize, name: &[u8], value: &[u8]) {
        integer::write(first, prefix, index, self.out);
        if index == 0 {
            self.string(name);
        }
        self.string(value);
    }

    #[inline]
    fn string(&mut self, text: &[u8]) {
        integer::write(0, 7, text.len(), self.out);
        self.out.extend_from_slice(text);
    }

    /// A field whose name is in the static table at `index` (0: nowhere; the largest number: it
    /// is looked up if need be).
    #[inline]
    fn text(&mut self, index: usize, name: &[u8], value: &[u8]) {
        let hash = hash(name, value);
        if let Some(at) = self.encoder.find(hash, name, value) {
            return self.indexed(statics::ENTRIES.len() + 1 + at);
        }
        let index = match index {
            usize::MAX => statics::index_of(name).unwrap_or(0),
            index => index,
        };
        let size = name.len() + value.len();
        let fits = size <= LONGEST && size + OVERHEAD <= self.encoder.most;
        if fits && self.encoder.comes_again(hash) {
            self.literal(0x40, 6, index, name, value);
            self.encoder.insert(hash, name, value);
        } else {
            self.literal(0, 4, index, name, value);
        }
    }
}
