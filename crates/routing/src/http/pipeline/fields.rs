//! Header fields in the form and order in which gorouter sends them: names as Go spells
//! them (`X-weird-CASE` is `X-Weird-Case`), sorted by name, values of one name in the order
//! in which they came.

use std::cmp::Ordering;
use std::ops::Range;

/// What stands behind a line of the list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Slot {
    /// The text.
    #[default]
    Text,
    /// `X-Cf-Applicationid` of the endpoint.
    Application,
    /// `X-Cf-Instanceid` of the endpoint.
    InstanceId,
    /// `X-Cf-Instanceindex` of the endpoint.
    InstanceIndex,
}

/// Where a text lies within a [`FieldList`]; empty: there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Part {
    start: u32,
    end: u32,
}

impl Part {
    pub(crate) fn is_empty(self) -> bool {
        self.start == self.end
    }

    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// One field.
#[derive(Debug, Clone, Copy)]
struct Line {
    /// The first 16 bytes of the name: comparing these settles nearly every comparison.
    rank: u128,
    start: u32,
    name_end: u32,
    end: u32,
    slot: Slot,
}

/// The fields of one head. Allocates nothing once it has grown.
#[derive(Debug, Default)]
pub(crate) struct FieldList {
    /// `Name: value\r\n` of each line, and names that are being looked at.
    text: Vec<u8>,
    lines: Vec<Line>,
}

impl FieldList {
    /// Forgets all fields.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.lines.clear();
    }

    /// Begins a field with the canonical form of `name`, which [`name`](Self::name) gives.
    /// What follows is [`keep`](Self::keep), [`stash`](Self::stash) or [`drop`](Self::drop).
    #[inline]
    pub(crate) fn begin(&mut self, name: &[u8]) -> usize {
        let start = self.text.len();
        self.text.reserve(name.len());
        let mut first = true;
        self.text.extend(name.iter().map(|byte| {
            let byte = if first {
                byte.to_ascii_uppercase()
            } else {
                byte.to_ascii_lowercase()
            };
            first = byte == b'-';
            byte
        }));
        start
    }

    /// The canonical name of the field that began at `start`.
    pub(crate) fn name(&self, start: usize) -> &[u8] {
        &self.text[start..]
    }

    /// Keeps the field, and says where its value lies.
    #[inline]
    pub(crate) fn keep(&mut self, start: usize, value: &[u8]) -> Part {
        let name_end = self.text.len();
        let rank = rank(&self.text[start..]);
        self.text.extend_from_slice(b": ");
        self.text.extend_from_slice(value);
        let end = self.text.len();
        self.text.extend_from_slice(b"\r\n");
        self.lines.push(Line {
            rank,
            start: start as u32,
            name_end: name_end as u32,
            end: self.text.len() as u32,
            slot: Slot::Text,
        });
        Part {
            start: (end - value.len()) as u32,
            end: end as u32,
        }
    }

    /// Does not send the field, but keeps its value.
    pub(crate) fn stash(&mut self, start: usize, value: &[u8]) -> Part {
        self.text.truncate(start);
        self.text.extend_from_slice(value);
        Part {
            start: start as u32,
            end: self.text.len() as u32,
        }
    }

    /// Forgets the field.
    pub(crate) fn drop(&mut self, start: usize) {
        self.text.truncate(start);
    }

    /// Adds a field of the router's own; `name` is canonical. Whatever could end the line
    /// early becomes a space, as in Go.
    pub(crate) fn push(&mut self, name: &str, value: &[u8]) -> Part {
        let start = self.text.len();
        self.text.extend_from_slice(name.as_bytes());
        let part = self.keep(start, value);
        for byte in &mut self.text[part.range()] {
            if matches!(byte, b'\r' | b'\n' | 0) {
                *byte = b' ';
            }
        }
        part
    }

    /// Adds a field whose value is that of the endpoint; `name` is canonical.
    pub(crate) fn push_slot(&mut self, name: &str, slot: Slot) {
        let start = self.text.len();
        self.text.extend_from_slice(name.as_bytes());
        let rank = rank(name.as_bytes());
        let end = self.text.len() as u32;
        self.lines.push(Line {
            rank,
            start: start as u32,
            name_end: end,
            end,
            slot,
        });
    }

    /// Removes all fields with a name, compared without regard to case.
    pub(crate) fn remove(&mut self, name: &[u8]) {
        let text = &self.text;
        self.lines
            .retain(|line| !name_of(text, line).eq_ignore_ascii_case(name));
    }

    /// Removes all fields with one of these names, compared without regard to case. A head can
    /// have as many names as bytes: each line is looked up, not each name.
    pub(crate) fn remove_all(&mut self, names: &mut [&[u8]]) {
        if names.is_empty() {
            return;
        }
        names.sort_unstable_by(|a, b| by_lower_case(a, b));
        let text = &self.text;
        self.lines.retain(|line| {
            let own = name_of(text, line);
            names
                .binary_search_by(|name| by_lower_case(name, own))
                .is_err()
        });
    }

    /// Whether there is a field with a name, compared without regard to case.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.lines
            .iter()
            .any(|line| name_of(&self.text, line).eq_ignore_ascii_case(name))
    }

    /// The value of the first field with a name, compared without regard to case; of
    /// those with an equal name, the one that was added first.
    pub(crate) fn value(&self, name: &[u8]) -> Option<&[u8]> {
        let line = self.lines.iter().find(|line| {
            line.slot == Slot::Text && name_of(&self.text, line).eq_ignore_ascii_case(name)
        })?;
        self.text
            .get(line.name_end as usize + 2..line.end as usize - 2)
    }

    /// The text of a part.
    pub(crate) fn part(&self, part: Part) -> &[u8] {
        self.text.get(part.range()).unwrap_or_default()
    }

    /// Puts the fields in order.
    #[inline]
    pub(crate) fn sort(&mut self) {
        let text = &self.text;
        // Lines begin where they were added, so that equal names stay in order.
        self.lines.sort_unstable_by(|a, b| {
            a.rank
                .cmp(&b.rank)
                .then_with(|| match name_of(text, a).cmp(name_of(text, b)) {
                    Ordering::Equal => a.start.cmp(&b.start),
                    other => other,
                })
        });
    }

    /// Each line in turn: what stands behind it, and its text: `Name: value\r\n`, or the
    /// name alone where the endpoint gives the value.
    #[inline]
    pub(crate) fn lines(&self) -> impl Iterator<Item = (Slot, &[u8])> {
        self.lines.iter().map(|line| {
            let text = &self.text[line.start as usize..line.end as usize];
            (line.slot, text)
        })
    }

    /// Appends all lines; none of them waits for an endpoint.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for (_, line) in self.lines() {
            out.extend_from_slice(line);
        }
    }
}

fn name_of<'t>(text: &'t [u8], line: &Line) -> &'t [u8] {
    &text[line.start as usize..line.name_end as usize]
}

fn by_lower_case(a: &[u8], b: &[u8]) -> Ordering {
    a.iter()
        .map(u8::to_ascii_lowercase)
        .cmp(b.iter().map(u8::to_ascii_lowercase))
}

/// The first bytes of a name as a number that sorts as they do.
#[inline]
fn rank(name: &[u8]) -> u128 {
    let mut first = [0; 16];
    let length = name.len().min(16);
    first[..length].copy_from_slice(&name[..length]);
    u128::from_be_bytes(first)
}

/// Whether a list of tokens, as `Connection` has one, names a token.
pub(crate) fn has_token(list: &[u8], token: &[u8]) -> bool {
    tokens(list).any(|found| found.eq_ignore_ascii_case(token))
}

/// The tokens of a list, as `Connection` has one.
pub(crate) fn tokens(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == b',')
        .map(<[u8]>::trim_ascii)
        .filter(|token| !token.is_empty())
}
