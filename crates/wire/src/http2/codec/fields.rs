//! Heads and trailers as they were received.

use super::names::Kind;

/// The fields of one message, in one piece of memory: first the values of pseudo-header fields,
/// behind them all others as lines of HTTP/1.1 (`name: value`, CR, LF), in their order.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    text: Vec<u8>,
    list: Vec<Line>,
    /// Where the values of pseudo-header fields are: method, scheme, authority, path, protocol.
    pseudo: [Option<(u32, u32)>; 5],
    status: Option<u16>,
    /// Where the lines begin.
    lines: usize,
    length: Option<u64>,
}

/// A field behind those of pseudo-header fields.
#[derive(Debug, Clone, Copy)]
struct Line {
    kind: Kind,
    start: u32,
    name: u32,
    end: u32,
}

/// Behind a name, and behind a value.
const COLON: &[u8] = b": ";
const LINE_END: &[u8] = b"\r\n";

/// Memory of a head that is kept for the next one.
const KEPT: usize = 4096;

/// A field that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'f> {
    /// What its name says of it.
    pub kind: Kind,
    /// Its name, in lower case.
    pub name: &'f [u8],
    /// Its value.
    pub value: &'f [u8],
    /// Both as a line of HTTP/1.1, with its end.
    pub line: &'f [u8],
}

impl Fields {
    /// The method of a request.
    pub fn method(&self) -> &[u8] {
        self.pseudo(Kind::Method).unwrap_or_default()
    }

    /// The scheme of a request; `None` if it has none.
    pub fn scheme(&self) -> Option<&[u8]> {
        self.pseudo(Kind::Scheme)
    }

    /// The authority of a request; `None` if it has none.
    pub fn authority(&self) -> Option<&[u8]> {
        self.pseudo(Kind::Authority)
    }

    /// Path and query of a request; `None` if it has none.
    pub fn path(&self) -> Option<&[u8]> {
        self.pseudo(Kind::Path)
    }

    /// The protocol that a request wants to speak (RFC 8441); `None` if it has none.
    pub fn protocol(&self) -> Option<&[u8]> {
        self.pseudo(Kind::Protocol)
    }

    /// The status of an answer; `None` of a request, and of trailers.
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// What `content-length` says, if it is there.
    pub fn content_length(&self) -> Option<u64> {
        self.length
    }

    /// All fields but pseudo-header fields.
    pub fn iter(&self) -> impl Iterator<Item = Field<'_>> + Clone {
        self.list.iter().map(|line| {
            let text = self.text.get(line.start as usize..line.end as usize);
            let text = text.unwrap_or_default();
            let (name, rest) = text
                .split_at_checked(line.name as usize)
                .unwrap_or_default();
            let until = rest.len().saturating_sub(LINE_END.len());
            Field {
                kind: line.kind,
                name,
                value: rest.get(COLON.len()..until).unwrap_or_default(),
                line: text,
            }
        })
    }

    /// The same as lines of HTTP/1.1.
    pub fn lines(&self) -> &[u8] {
        self.text.get(self.lines..).unwrap_or_default()
    }

    /// The value of the first field with a name in lower case.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        let mut fields = self.iter();
        fields
            .find(|field| field.name == name)
            .map(|field| field.value)
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        self.text.len() + self.list.len() * size_of::<Line>()
    }

    /// Forgets everything but the memory of a head of usual size.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.text.shrink_to(KEPT);
        self.list.clear();
        self.list.shrink_to(KEPT / size_of::<Line>());
        (self.pseudo, self.status, self.lines, self.length) = ([None; 5], None, 0, None);
    }

    fn place(kind: Kind) -> Option<usize> {
        Some(match kind {
            Kind::Method => 0,
            Kind::Scheme => 1,
            Kind::Authority => 2,
            Kind::Path => 3,
            Kind::Protocol => 4,
            _ => return None,
        })
    }

    fn pseudo(&self, kind: Kind) -> Option<&[u8]> {
        let (start, end) = (*self.pseudo.get(Self::place(kind)?)?)?;
        self.text.get(start as usize..end as usize)
    }

    /// Adds a field whose value its kind allows; false: it may not stand there.
    pub(super) fn add(&mut self, kind: Kind, name: &[u8], value: &[u8]) -> bool {
        let start = self.text.len();
        if kind.is_pseudo() {
            if !self.list.is_empty() {
                return false;
            }
            self.text.extend_from_slice(value);
            self.lines = self.text.len();
            return match Self::place(kind).and_then(|at| self.pseudo.get_mut(at)) {
                Some(place) => place.replace((start as u32, self.lines as u32)).is_none(),
                None => self.status.replace(decimal(value) as u16).is_none(),
            };
        }
        if kind == Kind::Length {
            let length = decimal(value);
            if self
                .length
                .replace(length)
                .is_some_and(|before| before != length)
            {
                return false;
            }
        }
        self.text.reserve(name.len() + value.len() + 4);
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(COLON);
        self.text.extend_from_slice(value);
        self.text.extend_from_slice(LINE_END);
        self.list.push(Line {
            kind,
            start: start as u32,
            name: name.len() as u32,
            end: self.text.len() as u32,
        });
        true
    }
}

/// What digits say; too many of them are the largest number.
fn decimal(digits: &[u8]) -> u64 {
    digits.iter().fold(0_u64, |sum, digit| {
        let digit = u64::from(digit.wrapping_sub(b'0'));
        sum.saturating_mul(10).saturating_add(digit)
    })
}
