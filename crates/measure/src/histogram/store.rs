//! Counts by bin, in pages for counting or packed for keeping.

use super::bins::{PAGE, PAGES};

type Page = Box<[u64; PAGE]>;

/// Counts by bin.
#[derive(Debug, Clone)]
pub(super) struct Store {
    /// For counting: the pages that something was counted in, 8 KiB each.
    pages: [Option<Page>; PAGES],
    /// For keeping, instead of the pages: pairs of the distance to the bin before and
    /// the count, as LEB128; two bytes for a bin where few were counted.
    packed: Option<Box<[u8]>>,
}

impl Store {
    pub(super) const fn new() -> Self {
        Self {
            pages: [const { None }; PAGES],
            packed: None,
        }
    }

    /// The count of a bin, to be changed.
    #[inline]
    pub(super) fn count_mut(&mut self, bin: usize) -> &mut u64 {
        if self.packed.is_some() {
            self.unpack();
        }
        let page = self.pages[bin / PAGE].get_or_insert_with(|| Box::new([0; PAGE]));
        &mut page[bin % PAGE]
    }

    /// Sets every count to 0 and keeps the memory.
    pub(super) fn reset(&mut self) {
        self.packed = None;
        self.pages
            .iter_mut()
            .flatten()
            .for_each(|page| page.fill(0));
    }

    pub(super) fn pack(&mut self) {
        if self.packed.is_some() {
            return;
        }
        let mut bytes = Vec::new();
        let mut before = 0;
        for (bin, count) in self.counts() {
            write_number(&mut bytes, (bin - before) as u64);
            write_number(&mut bytes, count);
            before = bin;
        }
        *self = Self::new();
        self.packed = Some(bytes.into());
    }

    #[cold]
    fn unpack(&mut self) {
        let mut open = Self::new();
        for (bin, count) in self.counts() {
            *open.count_mut(bin) = count;
        }
        *self = open;
    }

    /// Every bin in which something was counted, in ascending order.
    pub(super) fn counts(&self) -> Counts<'_> {
        match &self.packed {
            Some(bytes) => Counts::Packed { bytes, bin: 0 },
            None => Counts::Open {
                pages: &self.pages,
                bin: 0,
            },
        }
    }
}

/// Bins with their counts, none of them 0.
#[derive(Debug, Clone)]
pub(super) enum Counts<'s> {
    Open {
        pages: &'s [Option<Page>; PAGES],
        bin: usize,
    },
    Packed {
        bytes: &'s [u8],
        bin: usize,
    },
}

impl Iterator for Counts<'_> {
    type Item = (usize, u64);

    fn next(&mut self) -> Option<(usize, u64)> {
        match self {
            Self::Open { pages, bin } => loop {
                let Some(page) = pages.get(*bin / PAGE)? else {
                    *bin = (*bin / PAGE + 1) * PAGE;
                    continue;
                };
                let at = *bin;
                *bin += 1;
                if let count @ 1.. = page[at % PAGE] {
                    return Some((at, count));
                }
            },
            Self::Packed { bytes, bin } => {
                *bin += read_number(bytes)? as usize;
                Some((*bin, read_number(bytes)?))
            }
        }
    }
}

fn write_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if *first < 0x80 {
            break;
        }
    }
    Some(number)
}
