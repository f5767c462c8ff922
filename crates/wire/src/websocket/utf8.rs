//! Whether bytes that come in parts are UTF-8.

/// A check that goes on over parts, also where they split a character.
#[derive(Debug, Clone, Default)]
pub(super) struct Utf8 {
    /// The start of a character whose rest is still to come.
    started: [u8; 4],
    length: usize,
}

impl Utf8 {
    /// Takes the next part; false: this can never be UTF-8.
    pub(super) fn take(&mut self, part: &[u8]) -> bool {
        let mut rest = part;
        while self.length > 0 {
            let Some((&byte, behind)) = rest.split_first() else {
                return true;
            };
            rest = behind;
            self.started[self.length] = byte;
            self.length += 1;
            match std::str::from_utf8(&self.started[..self.length]) {
                Ok(_) => self.length = 0,
                Err(error) if error.error_len().is_some() => return false,
                Err(_) => {}
            }
        }
        let Err(error) = std::str::from_utf8(rest) else {
            return true;
        };
        let tail = &rest[error.valid_up_to()..];
        self.started[..tail.len().min(4)].copy_from_slice(&tail[..tail.len().min(4)]);
        self.length = tail.len().min(4);
        error.error_len().is_none()
    }

    /// Whether what was taken ends with a whole character; starts anew.
    pub(super) fn end(&mut self) -> bool {
        std::mem::take(&mut self.length) == 0
    }
}
