//! Frames from the server (RFC 6455 section 5).

use super::utf8::Utf8;
use super::{MOST_CONTROL_BYTES, WebSocketError};

/// Scans the frames of one connection. It owns no buffer: a header or a control frame
/// in part stays with the caller, who calls again with more.
#[derive(Debug, Clone)]
pub struct FrameScanner {
    most_bytes: u64,
    state: State,
    /// The message that is being read; it may go on over several frames.
    message: Option<Message>,
    utf8: Utf8,
}

#[derive(Debug, Clone, Copy)]
struct Message {
    text: bool,
    bytes: u64,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Header,
    Data { left: u64, last: bool },
    Closed,
    Failed(WebSocketError),
}

/// How far a scan came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameScan<'a> {
    /// Bytes of the input that are done with; the rest has to be given again.
    pub consumed: usize,
    /// What was found. `None`: there is nothing more to find in this input.
    pub event: Option<Event<'a>>,
}

/// Nothing is done with, and nothing found.
const NOTHING: FrameScan<'static> = FrameScan {
    consumed: 0,
    event: None,
};

/// What a server sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A part of a message, empty only where a message ends.
    Data {
        /// The message is text.
        text: bool,
        /// The bytes.
        part: &'a [u8],
        /// Bytes of the whole message, if it ends here.
        ends: Option<u64>,
    },
    /// The server asks whether we are there: to be answered with a pong of these bytes.
    Ping(&'a [u8]),
    /// The answer to a ping.
    Pong(&'a [u8]),
    /// The server will send nothing more, with its code and reason, if it gave any. To be
    /// answered with a close frame, if none was sent. What follows is ignored.
    Close(Option<u16>, &'a str),
}

/// A frame's header.
struct Header {
    opcode: u8,
    last: bool,
    length: u64,
    /// Bytes of the header itself.
    size: usize,
}

impl FrameScanner {
    /// A scanner for a connection whose handshake is done. A message may have at most
    /// `most_bytes`.
    pub fn new(most_bytes: u64) -> Self {
        Self {
            most_bytes,
            state: State::Header,
            message: None,
            utf8: Utf8::default(),
        }
    }

    /// Finds what comes next. To be called again, with the rest, until it finds nothing.
    ///
    /// # Errors
    /// When the server breaks the protocol or a message exceeds the limit. Every later
    /// call gives the same error.
    pub fn scan<'a>(&mut self, input: &'a [u8]) -> Result<FrameScan<'a>, WebSocketError> {
        let mut consumed = 0;
        loop {
            let scan = match self.advance(&input[consumed..]) {
                Ok(scan) => scan,
                Err(error) => {
                    self.state = State::Failed(error);
                    return Err(error);
                }
            };
            consumed += scan.consumed;
            if scan.event.is_some() || scan.consumed == 0 {
                return Ok(FrameScan { consumed, ..scan });
            }
        }
    }

    /// Says that the stream has ended.
    ///
    /// # Errors
    /// When no close frame came before, or the protocol was broken.
    pub fn end(&self) -> Result<(), WebSocketError> {
        match self.state {
            State::Closed => Ok(()),
            State::Failed(error) => Err(error),
            State::Header | State::Data { .. } => Err(WebSocketError::ClosedEarly),
        }
    }

    fn advance<'a>(&mut self, input: &'a [u8]) -> Result<FrameScan<'a>, WebSocketError> {
        match self.state {
            State::Header => {
                let Some(header) = Header::read(input)? else {
                    return Ok(NOTHING);
                };
                let payload = &input[header.size..];
                if header.opcode >= 0x8 {
                    return self.control(&header, payload);
                }
                self.begin(&header)?;
                let scan = self.data(header.length, header.last, payload)?;
                Ok(FrameScan {
                    consumed: header.size + scan.consumed,
                    ..scan
                })
            }
            State::Data { left, last } => self.data(left, last, input),
            State::Closed => Ok(FrameScan {
                consumed: input.len(),
                event: None,
            }),
            State::Failed(error) => Err(error),
        }
    }

    /// The header of a data frame: its message begins or goes on (section 5.4).
    fn begin(&mut self, header: &Header) -> Result<(), WebSocketError> {
        let message = match (header.opcode, &mut self.message) {
            (0x0, Some(message)) => message,
            (1 | 2, message @ None) => message.insert(Message {
                text: header.opcode == 1,
                bytes: 0,
            }),
            _ => return Err(WebSocketError::Fragment),
        };
        message.bytes = message.bytes.saturating_add(header.length);
        if message.bytes > self.most_bytes {
            return Err(WebSocketError::TooLarge);
        }
        Ok(())
    }

    /// Payload of a data frame that has `left` bytes to go.
    fn data<'a>(
        &mut self,
        left: u64,
        last: bool,
        input: &'a [u8],
    ) -> Result<FrameScan<'a>, WebSocketError> {
        let Some(message) = self.message else {
            return Err(WebSocketError::Fragment);
        };
        let take = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
        let part = &input[..take];
        let left = left - take as u64;
        if message.text && !self.utf8.take(part) {
            return Err(WebSocketError::Utf8);
        }
        let ends = left == 0 && last;
        if ends {
            self.message = None;
            if message.text && !self.utf8.end() {
                return Err(WebSocketError::Utf8);
            }
        }
        self.state = if left == 0 {
            State::Header
        } else {
            State::Data { left, last }
        };
        if part.is_empty() && !ends {
            // A frame's header without payload behind it, or an empty fragment.
            return Ok(NOTHING);
        }
        let ends = ends.then_some(message.bytes);
        Ok(FrameScan {
            consumed: take,
            event: Some(Event::Data {
                text: message.text,
                part,
                ends,
            }),
        })
    }

    /// A control frame, which may stand between the fragments of a message.
    fn control<'a>(
        &mut self,
        header: &Header,
        payload: &'a [u8],
    ) -> Result<FrameScan<'a>, WebSocketError> {
        let length = usize::try_from(header.length).unwrap_or(usize::MAX);
        if !header.last || length > MOST_CONTROL_BYTES {
            return Err(WebSocketError::Control);
        }
        let Some(payload) = payload.get(..length) else {
            return Ok(NOTHING);
        };
        let event = match header.opcode {
            0x8 => {
                let (code, reason) = close(payload)?;
                self.state = State::Closed;
                Event::Close(code, reason)
            }
            0x9 => Event::Ping(payload),
            _ => Event::Pong(payload),
        };
        Ok(FrameScan {
            consumed: header.size + length,
            event: Some(event),
        })
    }
}

impl Header {
    /// Reads a header; `None` while it is incomplete.
    fn read(input: &[u8]) -> Result<Option<Self>, WebSocketError> {
        let [first, second, rest @ ..] = input else {
            return Ok(None);
        };
        if first & 0x70 != 0 {
            return Err(WebSocketError::ReservedBit);
        }
        let opcode = first & 0x0F;
        if !matches!(opcode, 0x0..=0x2 | 0x8..=0xA) {
            return Err(WebSocketError::Opcode);
        }
        // Section 5.1: a client must close the connection then.
        if second & 0x80 != 0 {
            return Err(WebSocketError::Masked);
        }
        let (length, size) = match second & 0x7F {
            126 => match rest.first_chunk::<2>() {
                Some(length) => (u64::from(u16::from_be_bytes(*length)), 4),
                None => return Ok(None),
            },
            127 => match rest.first_chunk::<8>() {
                Some(length) => (u64::from_be_bytes(*length), 10),
                None => return Ok(None),
            },
            short => (u64::from(short), 2),
        };
        // Section 5.2: the shortest form, and the highest bit is 0.
        if (size == 4 && length < 126) || (size == 10 && length < 1 << 16) || length >> 63 != 0 {
            return Err(WebSocketError::Length);
        }
        Ok(Some(Self {
            opcode,
            last: first & 0x80 != 0,
            length,
            size,
        }))
    }
}

/// Code and reason of a close frame (section 5.5.1).
fn close(payload: &[u8]) -> Result<(Option<u16>, &str), WebSocketError> {
    match payload {
        [] => Ok((None, "")),
        [high, low, reason @ ..] => {
            let code = u16::from_be_bytes([*high, *low]);
            // Section 7.4: the others are reserved, or stand for things never sent.
            if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
                return Err(WebSocketError::Close);
            }
            let reason = std::str::from_utf8(reason).map_err(|_| WebSocketError::Utf8)?;
            Ok((Some(code), reason))
        }
        [_] => Err(WebSocketError::Close),
    }
}
