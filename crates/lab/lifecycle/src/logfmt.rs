//! Finds the wanted pairs of a logfmt line: `time=… level=info msg="two words"`.

use crate::fields::Node;
use crate::json::{Kind, Slot};

/// Reads `key=value` pairs, divided by spaces; a value with spaces is quoted, with
/// the escapes of JSON. A word without `=` is passed over. Of pairs with the same
/// key the last one counts. `None`: a quoted value has no end.
pub(crate) fn read(bytes: &[u8], root: &Node, slots: &mut [Slot]) -> Option<()> {
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at].is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let start = at;
        at = find(bytes, at, |b| b == b'=' || b.is_ascii_whitespace());
        let key = &bytes[start..at];
        if bytes.get(at) != Some(&b'=') {
            continue;
        }
        at += 1;
        let value = if bytes.get(at) == Some(&b'"') {
            let value = quoted(bytes, at + 1)?;
            at = value.end as usize + 1;
            value
        } else {
            let start = at;
            at = find(bytes, at, |b| b.is_ascii_whitespace());
            Slot::new(start, at, Kind::Plain)
        };
        if let Some(slot) = root.child(key).and_then(|child| child.slot) {
            slots[slot] = value;
        }
    }
    Some(())
}

fn find(bytes: &[u8], from: usize, what: impl Fn(u8) -> bool) -> usize {
    bytes[from..]
        .iter()
        .position(|b| what(*b))
        .map_or(bytes.len(), |length| from + length)
}

fn quoted(bytes: &[u8], start: usize) -> Option<Slot> {
    let mut at = start;
    let mut kind = Kind::Plain;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(Slot::new(start, at, kind));
        }
        kind = Kind::Escaped;
        at += 2;
    }
}
