//! Strings in quotes, as Go's `strconv.Quote` writes them.

use super::super::pipeline::text::hex;

/// Appends a string in quotes, or `"-"` when it is empty.
#[inline]
pub(super) fn quoted_or_dash(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    if text.is_empty() {
        out.push(b'-');
    } else {
        quoted(text, out);
    }
    out.push(b'"');
}

/// Appends a string with what stands between its quotes.
#[inline]
pub(crate) fn quoted(text: &[u8], out: &mut Vec<u8>) {
    let plain = |byte: &u8| (0x20..0x7f).contains(byte) && !matches!(byte, b'"' | b'\\');
    if text.iter().all(plain) {
        out.extend_from_slice(text);
    } else {
        escaped(text, out);
    }
}

#[cold]
fn escaped(text: &[u8], out: &mut Vec<u8>) {
    for chunk in text.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '"' => out.extend_from_slice(b"\\\""),
                '\\' => out.extend_from_slice(b"\\\\"),
                '\x07' => out.extend_from_slice(b"\\a"),
                '\x08' => out.extend_from_slice(b"\\b"),
                '\x0c' => out.extend_from_slice(b"\\f"),
                '\n' => out.extend_from_slice(b"\\n"),
                '\r' => out.extend_from_slice(b"\\r"),
                '\t' => out.extend_from_slice(b"\\t"),
                '\x0b' => out.extend_from_slice(b"\\v"),
                '\0'..='\x1f' | '\x7f' => {
                    out.extend_from_slice(b"\\x");
                    hex(&[letter as u8], out);
                }
                letter if is_printable(letter) => {
                    out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                }
                letter if u32::from(letter) < 0x1_0000 => {
                    out.extend_from_slice(b"\\u");
                    hex(&(letter as u16).to_be_bytes(), out);
                }
                letter => {
                    out.extend_from_slice(b"\\U");
                    hex(&u32::from(letter).to_be_bytes(), out);
                }
            }
        }
        for byte in chunk.invalid() {
            out.extend_from_slice(b"\\x");
            hex(&[*byte], out);
        }
    }
}

/// Whether Go prints a character as it is: the standard library's idea of it, which knows
/// the same tables of Unicode.
fn is_printable(letter: char) -> bool {
    !letter.is_whitespace() && letter.escape_debug().count() == 1 || letter == ' '
}
