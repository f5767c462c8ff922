//! Finds the wanted members of a JSON object without building a tree.
//!
//! Every valid object is read rightly. Not every invalid one is refused: what is
//! skipped is only followed as far as needed to find its end.

use memchr::memchr2;

use crate::fields::{Child, Node};

/// Where in the line a value is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) kind: Kind,
}

/// How to read what a [`Slot`] points at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No such value, or one that has no text: null, an object, an array.
    #[default]
    Absent,
    /// The bytes are the text.
    Plain,
    /// The bytes are the inside of a string that has escapes.
    Escaped,
}

impl Slot {
    pub(crate) fn new(start: usize, end: usize, kind: Kind) -> Self {
        Self {
            start: start as u32,
            end: end as u32,
            kind,
        }
    }

    pub(crate) fn is_present(&self) -> bool {
        self.kind != Kind::Absent
    }

    pub(crate) fn raw<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        &line[self.start as usize..self.end as usize]
    }
}

/// Reads the object that starts at `at` and is followed by nothing but space.
/// Values of its members go to `top`; values of the members of its `data`
/// go to `data`. Of members with the same name the last one counts.
/// `None`: this is no object.
pub(crate) fn read(
    bytes: &[u8],
    at: usize,
    root: &Node,
    top: &mut [Slot],
    data: &mut [Slot],
) -> Option<()> {
    let mut reader = Reader { bytes, at };
    reader.members(|reader, name| {
        if name == b"data" && reader.peek() == Some(b'{') {
            let start = reader.at;
            reader.read_members(root, data)?;
            // Somebody may also have written the path as `data.x`.
            let Some(child) = root.child(b"data") else {
                return Some(());
            };
            reader.at = start;
            return reader.fill(child, top);
        }
        reader.member(root, name, top)
    })?;
    reader.space();
    (reader.at == bytes.len()).then_some(())
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Calls `each` with the name of every member of the object at the cursor;
    /// the cursor is then at the member's value, and `each` moves it past.
    #[inline]
    fn members(&mut self, mut each: impl FnMut(&mut Self, &[u8]) -> Option<()>) -> Option<()> {
        self.expect(b'{')?;
        self.space();
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(());
        }
        loop {
            let name = self.string()?;
            self.space();
            self.expect(b':')?;
            self.space();
            match name.kind {
                Kind::Escaped => each(self, &unescape(name.raw(self.bytes)))?,
                _ => {
                    let bytes = self.bytes;
                    each(self, name.raw(bytes))?;
                }
            }
            self.space();
            match self.next()? {
                b',' => self.space(),
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    /// Reads the object at the cursor for the members that `node` wants.
    fn read_members(&mut self, node: &Node, slots: &mut [Slot]) -> Option<()> {
        self.members(|reader, name| reader.member(node, name, slots))
    }

    #[inline]
    fn member(&mut self, node: &Node, name: &[u8], slots: &mut [Slot]) -> Option<()> {
        match node.child(name) {
            Some(child) => self.fill(child, slots),
            None => self.value().map(drop),
        }
    }

    fn fill(&mut self, child: &Child, slots: &mut [Slot]) -> Option<()> {
        let value = match &child.node {
            Some(node) if self.peek() == Some(b'{') => {
                self.read_members(node, slots)?;
                Slot::default()
            }
            _ => self.value()?,
        };
        if let Some(slot) = child.slot {
            slots[slot] = value;
        }
        Some(())
    }

    /// Moves past any value and tells where its text is.
    #[inline]
    fn value(&mut self) -> Option<Slot> {
        match self.peek()? {
            b'"' => self.string(),
            b'{' | b'[' => self.container().map(|()| Slot::default()),
            _ => self.token(),
        }
    }

    /// Moves past a string.
    #[inline]
    fn string(&mut self) -> Option<Slot> {
        self.expect(b'"')?;
        let start = self.at;
        let mut kind = Kind::Plain;
        loop {
            self.at += memchr2(b'"', b'\\', self.bytes.get(self.at..)?)?;
            if self.bytes[self.at] == b'"' {
                self.at += 1;
                return Some(Slot::new(start, self.at - 1, kind));
            }
            kind = Kind::Escaped;
            self.at += 2;
        }
    }

    /// Moves past an object or array by counting brackets, so that deep nesting
    /// costs no stack.
    fn container(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }

    /// Moves past a number, `true`, `false` or `null`.
    fn token(&mut self) -> Option<Slot> {
        let rest = &self.bytes[self.at..];
        let length = rest
            .iter()
            .position(|b| matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n'))
            .unwrap_or(rest.len());
        let start = self.at;
        self.at += length;
        match &rest[..length] {
            b"null" => Some(Slot::default()),
            b"true" | b"false" | [b'0'..=b'9' | b'-', ..] => {
                Some(Slot::new(start, self.at, Kind::Plain))
            }
            _ => None,
        }
    }

    #[inline]
    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }
}

/// Decodes the inside of a string. An escape that JSON does not have stands for
/// itself without the backslash; half of a surrogate pair becomes U+FFFD.
pub(crate) fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        if *byte != b'\\' {
            text.push(*byte);
            continue;
        }
        let [escape, tail @ ..] = rest else { break };
        rest = tail;
        match escape {
            b'n' => text.push(b'\n'),
            b't' => text.push(b'\t'),
            b'r' => text.push(b'\r'),
            b'b' => text.push(8),
            b'f' => text.push(12),
            b'u' => {
                let (character, tail) = unicode(rest);
                rest = tail;
                text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            other => text.push(*other),
        }
    }
    text
}

/// The character of the four digits after `\u`, and of a second `\u` when the two
/// are a surrogate pair; then what follows.
fn unicode(rest: &[u8]) -> (char, &[u8]) {
    let Some((unit, tail)) = code_unit(rest) else {
        return (char::REPLACEMENT_CHARACTER, rest);
    };
    if let 0xD800..=0xDBFF = unit
        && let [b'\\', b'u', after @ ..] = tail
        && let Some((low @ 0xDC00..=0xDFFF, tail)) = code_unit(after)
    {
        let code = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
        return (
            char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
            tail,
        );
    }
    (
        char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER),
        tail,
    )
}

fn code_unit(digits: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, tail) = digits.split_at_checked(4)?;
    let unit = digits.iter().try_fold(0, |unit, digit| {
        Some(unit * 16 + char::from(*digit).to_digit(16)?)
    })?;
    Some((unit, tail))
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
