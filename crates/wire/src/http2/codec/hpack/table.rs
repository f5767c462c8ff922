//! The dynamic table of what is received (RFC 7541 section 2.3).

use std::collections::VecDeque;

use super::{LARGEST_TABLE, OVERHEAD, Unreadable, statics};
use crate::http2::codec::names::Kind;

/// Name and value of a field, and what is known of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'t> {
    pub(super) name: &'t [u8],
    pub(super) value: &'t [u8],
    pub(super) kind: Kind,
    /// A field of this kind may have this value.
    pub(super) good: bool,
}

/// Both tables of one direction of a connection.
#[derive(Debug)]
pub(super) struct Table {
    /// The newest first.
    entries: VecDeque<Stored>,
    /// Memory of entries that were evicted.
    spare: Vec<Vec<u8>>,
    size: usize,
    most: usize,
}

#[derive(Debug)]
struct Stored {
    text: Vec<u8>,
    name: usize,
    kind: Kind,
    good: bool,
}

/// Memory of so many evicted entries is kept.
const MOST_SPARE: usize = 8;

impl Default for Table {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            spare: Vec::new(),
            size: 0,
            most: LARGEST_TABLE,
        }
    }
}

impl Table {
    /// An entry.
    ///
    /// # Errors
    /// When there is none with this index.
    #[inline]
    pub(super) fn entry(&self, index: usize) -> Result<Entry<'_>, Unreadable> {
        let index = index.checked_sub(1).ok_or(Unreadable)?;
        if let Some(&(name, value)) = statics::ENTRIES.get(index) {
            let kind = STATIC_KINDS[index];
            return Ok(Entry {
                name: name.as_bytes(),
                value: value.as_bytes(),
                kind,
                good: !value.is_empty() || kind.may_be_empty(),
            });
        }
        let stored = self.entries.get(index - statics::ENTRIES.len());
        let stored = stored.ok_or(Unreadable)?;
        let (name, value) = stored.text.split_at(stored.name);
        Ok(Entry {
            name,
            value,
            kind: stored.kind,
            good: stored.good,
        })
    }

    /// Adds an entry, for which old ones make room (section 4.4).
    pub(super) fn insert(&mut self, entry: Entry<'_>) {
        let size = entry.name.len() + entry.value.len() + OVERHEAD;
        self.make_room(size);
        if size > self.most {
            return;
        }
        let mut text = self.spare.pop().unwrap_or_default();
        text.clear();
        text.extend_from_slice(entry.name);
        text.extend_from_slice(entry.value);
        self.size += size;
        self.entries.push_front(Stored {
            text,
            name: entry.name.len(),
            kind: entry.kind,
            good: entry.good,
        });
    }

    /// Changes how large the table may be (section 6.3).
    ///
    /// # Errors
    /// When that is more than was allowed.
    pub(super) fn resize(&mut self, most: usize) -> Result<(), Unreadable> {
        if most > LARGEST_TABLE {
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
            self.size -= oldest.text.len() + OVERHEAD;
            if self.spare.len() < MOST_SPARE {
                self.spare.push(oldest.text);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.size
    }
}

static STATIC_KINDS: [Kind; statics::ENTRIES.len()] = static_kinds();

const fn static_kinds() -> [Kind; statics::ENTRIES.len()] {
    let mut kinds = [Kind::Field; statics::ENTRIES.len()];
    let mut at = 0;
    while at < kinds.len() {
        kinds[at] = Kind::of(statics::ENTRIES[at].0.as_bytes());
        at += 1;
    }
    kinds
}
