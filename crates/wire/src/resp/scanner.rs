//! Where replies end.

use memchr::memchr2;

use super::{DEEPEST, ErrorCode, MOST_BULK, MOST_ELEMENTS, MOST_LINE, RespError};

/// Takes the values of a reply as they come, each in parts.
pub trait ReplySink {
    /// A part of the current value's bytes.
    fn part(&mut self, bytes: &[u8]);
    /// Another value of the same reply begins.
    fn next_value(&mut self);
}

/// A whole reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// Bytes of its values.
    pub bytes: u64,
    /// Elements of an array, set or map (keys and values); a single value is one, nil none.
    pub elements: u64,
    /// The code of the first error in it, at any depth.
    pub error: Option<ErrorCode>,
}

/// How far a scan came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyScan {
    /// Bytes of the input that are done with: all, unless a reply ended.
    pub consumed: usize,
    /// The reply that ended, if one did.
    pub complete: Option<Reply>,
}

/// Finds the ends of the replies of one connection, one after the other, however its bytes are
/// split. It keeps none of them. Pushes (RESP3) between replies and attributes are skipped.
#[derive(Debug, Clone)]
pub struct ReplyScanner {
    at: At,
    /// Aggregates that are open, the outermost first.
    open: [Open; DEEPEST],
    depth: usize,
    /// Aggregates among these that belong to no reply: pushes and attributes.
    aside: usize,
    /// Whether a value of this reply was seen.
    valued: bool,
    reply: Reply,
}

/// An aggregate with values to come.
#[derive(Debug, Clone, Copy, Default)]
struct Open {
    left: u64,
    kind: u8,
}

#[derive(Debug, Clone, Copy)]
enum At {
    /// Before a value's type.
    Type,
    /// In a line of this type, of which so many bytes came.
    Line(u8, u64),
    /// Behind the CR of a line.
    LineEnd,
    /// In a length.
    Length(u8, Digits),
    /// Behind the CR of a length.
    LengthEnd(u8, Digits),
    /// In a bulk string, of which so many bytes are to come.
    Bulk(u64),
    /// Behind a bulk string.
    BulkEnd { cr: bool },
}

#[derive(Debug, Clone, Copy, Default)]
struct Digits {
    value: u64,
    count: u8,
    negative: bool,
}

const NOTHING: Reply = Reply {
    bytes: 0,
    elements: 0,
    error: None,
};

impl Default for ReplyScanner {
    fn default() -> Self {
        Self {
            at: At::Type,
            open: [Open::default(); DEEPEST],
            depth: 0,
            aside: 0,
            valued: false,
            reply: NOTHING,
        }
    }
}

impl ReplyScanner {
    /// Scans until the end of a reply or of the input.
    ///
    /// # Errors
    /// When the input is no RESP; the scanner is of no further use then.
    pub fn scan(
        &mut self,
        input: &[u8],
        sink: &mut impl ReplySink,
    ) -> Result<ReplyScan, RespError> {
        let mut rest = input;
        while let Some(&byte) = rest.first() {
            let (used, value_ended) = match self.at {
                At::Type => (1, self.begin(byte, sink)?),
                At::Line(kind, before) => (self.line(kind, before, rest, sink)?, false),
                At::LineEnd | At::LengthEnd(..) if byte != b'\n' => return Err(RespError::End),
                At::LineEnd => (1, true),
                At::Length(kind, digits) => (1, self.digit(kind, digits, byte)?),
                At::LengthEnd(kind, digits) => (1, self.length(kind, digits, sink)?),
                At::Bulk(left) => {
                    let used = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    self.give(&rest[..used], sink);
                    self.at = match left - used as u64 {
                        0 => At::BulkEnd { cr: false },
                        left => At::Bulk(left),
                    };
                    (used, false)
                }
                At::BulkEnd { cr } => match (cr, byte) {
                    (false, b'\r') => {
                        self.at = At::BulkEnd { cr: true };
                        (1, false)
                    }
                    (true, b'\n') => (1, true),
                    _ => return Err(RespError::End),
                },
            };
            rest = &rest[used..];
            if value_ended && let Some(reply) = self.value_ended() {
                return Ok(ReplyScan {
                    consumed: input.len() - rest.len(),
                    complete: Some(reply),
                });
            }
        }
        Ok(ReplyScan {
            consumed: input.len(),
            complete: None,
        })
    }

    /// A value begins with its type. Says whether it has ended, which none does here.
    fn begin(&mut self, kind: u8, sink: &mut impl ReplySink) -> Result<bool, RespError> {
        let single = matches!(
            kind,
            b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' | b'$' | b'!' | b'='
        );
        if single && self.aside == 0 {
            self.begin_value(sink);
            if self.depth == 0 {
                self.reply.elements = u64::from(kind != b'_');
            }
        }
        self.at = match kind {
            b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => At::Line(kind, 0),
            b'$' | b'!' | b'=' | b'*' | b'~' | b'%' | b'|' => At::Length(kind, Digits::default()),
            b'>' if self.depth == 0 => At::Length(kind, Digits::default()),
            b'>' => return Err(RespError::Push),
            other => return Err(RespError::Type(other)),
        };
        if matches!(kind, b'-' | b'!') && self.aside == 0 && self.reply.error.is_none() {
            self.reply.error = Some(ErrorCode::new());
        }
        Ok(false)
    }

    /// Takes what there is of a line, and says how many bytes that is, its CR included.
    fn line(
        &mut self,
        kind: u8,
        before: u64,
        rest: &[u8],
        sink: &mut impl ReplySink,
    ) -> Result<usize, RespError> {
        let end = memchr2(b'\r', b'\n', rest);
        let part = &rest[..end.unwrap_or(rest.len())];
        let length = before + part.len() as u64;
        if length > MOST_LINE {
            return Err(RespError::TooLong);
        }
        let numeric = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-');
        if (kind == b'_' && length > 0) || (kind == b':' && !part.iter().all(numeric)) {
            return Err(RespError::Number);
        }
        self.give(part, sink);
        match end {
            None => self.at = At::Line(kind, length),
            Some(_) if kind == b':' && length == 0 => return Err(RespError::Number),
            Some(end) if rest[end] == b'\r' => self.at = At::LineEnd,
            Some(_) => return Err(RespError::End),
        }
        Ok(part.len() + usize::from(end.is_some()))
    }

    /// Hands on bytes of a value.
    fn give(&mut self, part: &[u8], sink: &mut impl ReplySink) {
        if self.aside > 0 {
            return;
        }
        self.reply.bytes += part.len() as u64;
        // Of several errors the first tells the code, which is closed with its text.
        if let Some(error) = &mut self.reply.error {
            error.take(part);
        }
        sink.part(part);
    }

    /// Takes one byte of a length.
    fn digit(&mut self, kind: u8, mut digits: Digits, byte: u8) -> Result<bool, RespError> {
        match byte {
            b'\r' if digits.count > 0 => self.at = At::LengthEnd(kind, digits),
            b'-' if digits.count == 0 && !digits.negative => {
                digits.negative = true;
                self.at = At::Length(kind, digits);
            }
            b'0'..=b'9' if digits.count < 12 => {
                digits.value = digits.value * 10 + u64::from(byte - b'0');
                digits.count += 1;
                self.at = At::Length(kind, digits);
            }
            b'0'..=b'9' => return Err(RespError::TooLong),
            _ => return Err(RespError::Number),
        }
        Ok(false)
    }

    /// A length is whole. Says whether the value has ended with it.
    fn length(
        &mut self,
        kind: u8,
        digits: Digits,
        sink: &mut impl ReplySink,
    ) -> Result<bool, RespError> {
        if digits.negative {
            // RESP2 writes nil so.
            return match (kind, digits.value) {
                (b'$', 1) | (b'*', 1) => {
                    if self.depth == 0 {
                        self.reply.elements = 0;
                    } else if kind == b'*' && self.aside == 0 {
                        // A nil array within a reply is a value without bytes.
                        self.begin_value(sink);
                    }
                    Ok(true)
                }
                _ => Err(RespError::Number),
            };
        }
        match kind {
            b'$' | b'!' | b'=' if digits.value > MOST_BULK => Err(RespError::TooLong),
            b'$' | b'!' | b'=' => {
                self.at = match digits.value {
                    0 => At::BulkEnd { cr: false },
                    length => At::Bulk(length),
                };
                Ok(false)
            }
            _ => self.aggregate(kind, digits.value),
        }
    }

    fn begin_value(&mut self, sink: &mut impl ReplySink) {
        if self.valued {
            sink.next_value();
        }
        self.valued = true;
    }

    fn aggregate(&mut self, kind: u8, length: u64) -> Result<bool, RespError> {
        let left = match kind {
            b'%' | b'|' => length * 2,
            _ => length,
        };
        if left > MOST_ELEMENTS {
            return Err(RespError::TooLong);
        }
        self.at = At::Type;
        let beside = matches!(kind, b'>' | b'|');
        if self.depth == 0 && !beside {
            self.reply.elements = left;
        }
        if left == 0 {
            // Nothing beside a reply is a value of it.
            return Ok(!beside);
        }
        let slot = self.open.get_mut(self.depth).ok_or(RespError::TooDeep)?;
        *slot = Open { left, kind };
        self.depth += 1;
        self.aside += usize::from(beside);
        Ok(false)
    }

    /// A value has ended, and with it perhaps the aggregates around it. Gives the reply if that
    /// has ended too.
    fn value_ended(&mut self) -> Option<Reply> {
        self.at = At::Type;
        if let Some(error) = &mut self.reply.error {
            error.close();
        }
        while let Some(around) = self.depth.checked_sub(1) {
            let open = &mut self.open[around];
            open.left -= 1;
            if open.left > 0 {
                return None;
            }
            self.depth = around;
            if matches!(open.kind, b'>' | b'|') {
                // What it stood beside is still to come.
                self.aside -= 1;
                return None;
            }
        }
        self.valued = false;
        Some(std::mem::replace(&mut self.reply, NOTHING))
    }
}
