//! The code of an error reply.

use std::fmt;

/// Longest code; those of Redis have at most 12 letters.
const MOST: usize = 22;

/// What programs tell the errors of a database apart by: the first word of an error reply of Redis,
/// such as `ERR`, `MOVED` or `WRONGTYPE`; an SQLSTATE.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode {
    letters: [u8; MOST],
    length: u8,
    /// Whether it may still grow.
    open: bool,
}

impl ErrorCode {
    /// The code of an error whose text has not begun.
    pub(super) fn new() -> Self {
        Self {
            letters: [0; MOST],
            length: 0,
            open: true,
        }
    }

    /// The code that a text begins with.
    pub fn of(text: &[u8]) -> Self {
        let mut code = Self::new();
        code.take(text);
        code.close();
        code
    }

    /// Takes a part of the error's text.
    pub(super) fn take(&mut self, part: &[u8]) {
        for &byte in part {
            if !self.open {
                return;
            }
            let fits = byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
            match (byte, self.letters.get_mut(usize::from(self.length))) {
                (b' ', _) => self.open = false,
                (_, Some(slot)) if fits => {
                    *slot = byte;
                    self.length += 1;
                }
                // A text that does not begin with a code, as scripts may send.
                _ => (self.length, self.open) = (0, false),
            }
        }
    }

    /// The error's text has ended.
    pub(super) fn close(&mut self) {
        self.open = false;
    }

    /// The code; `other` where the text does not begin with one: capitals, digits and `_`, at
    /// most 22.
    pub fn as_str(&self) -> &str {
        let letters = self.letters.get(..usize::from(self.length));
        let code = letters.and_then(|letters| std::str::from_utf8(letters).ok());
        code.filter(|code| !code.is_empty()).unwrap_or("other")
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
