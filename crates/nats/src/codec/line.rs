//! A frame from its line and the bytes behind it.

use super::{Excerpt, Frame, Message, ProtocolError};

/// What a line and the bytes behind it are.
pub(super) enum Parsed<'a> {
    /// A frame; `payload` bytes behind the line belong to it.
    Whole { frame: Frame<'a>, payload: usize },
    /// The frame needs so many bytes behind the line.
    Payload(usize),
}

/// Reads a line of the form that nearly all have that carry a payload: `PUB subject bytes` or
/// `MSG subject sid bytes`, in capitals, with one space between words. It goes from the end,
/// over each byte once. `None`: the line is of another form, or wrong.
#[inline]
pub(super) fn usual<'a>(
    line: &'a [u8],
    behind: &'a [u8],
    most: usize,
) -> Option<Result<Parsed<'a>, ProtocolError>> {
    let (operation, words) = line.split_at_checked(4)?;
    let (words, digits) = last_word(words)?;
    let bytes = number(digits)?;
    let (subject, sid) = match operation {
        b"PUB " => (words, None),
        b"MSG " => last_word(words).map(|(subject, sid)| (subject, Some(sid)))?,
        _ => return None,
    };
    let is_word = |text: &[u8]| !text.is_empty() && !text.iter().any(|byte| is_space(*byte));
    if !is_word(subject) || !sid.is_none_or(is_word) {
        return None;
    }
    let frame = |message| match sid {
        None => Frame::Pub(message),
        Some(sid) => Frame::Msg { sid, message },
    };
    let names = (subject, &b""[..]);
    Some(with_payload(names, (0, bytes), behind, most, frame))
}

/// What is before the last space, and behind it.
#[inline]
fn last_word(words: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = words.iter().rposition(|byte| *byte == b' ')?;
    Some((&words[..at], &words[at + 1..]))
}

const PUB: &str = "PUB <subject> [reply] <bytes>";
const HPUB: &str = "HPUB <subject> [reply] <header bytes> <all bytes>";
const SUB: &str = "SUB <subject> [queue] <sid>";
const UNSUB: &str = "UNSUB <sid> [messages]";
const MSG: &str = "MSG <subject> <sid> [reply] <bytes>";
const HMSG: &str = "HMSG <subject> <sid> [reply] <header bytes> <all bytes>";

/// Operations are known in any case; the shortest is `-ERR` with its text, or `PING`.
pub(super) fn parse<'a>(
    line: &'a [u8],
    behind: &'a [u8],
    most: usize,
) -> Result<Parsed<'a>, ProtocolError> {
    let end = line.iter().position(|byte| is_space(*byte));
    let (operation, arguments) = line.split_at(end.unwrap_or(line.len()));
    let mut upper = [0; 7];
    let Some(name) = upper.get_mut(..operation.len()) else {
        return Err(ProtocolError::UnknownOperation(Excerpt::new(line)));
    };
    name.copy_from_slice(operation);
    name.make_ascii_uppercase();
    let line = Line { line, arguments };
    let frame = match &*name {
        b"MSG" => return line.msg(MSG, false, behind, most),
        b"PUB" => return line.publish(PUB, false, behind, most),
        b"HMSG" => return line.msg(HMSG, true, behind, most),
        b"HPUB" => return line.publish(HPUB, true, behind, most),
        b"SUB" => line.sub()?,
        b"UNSUB" => line.unsub()?,
        b"PING" => Frame::Ping,
        b"PONG" => Frame::Pong,
        b"+OK" => Frame::Ok,
        b"-ERR" => Frame::Err(unquoted(arguments.trim_ascii())),
        b"INFO" => Frame::Info(arguments.trim_ascii()),
        b"CONNECT" => Frame::Connect(arguments.trim_ascii()),
        _ => return Err(ProtocolError::UnknownOperation(Excerpt::new(line.line))),
    };
    Ok(Parsed::Whole { frame, payload: 0 })
}

#[derive(Clone, Copy)]
struct Line<'a> {
    line: &'a [u8],
    arguments: &'a [u8],
}

impl<'a> Line<'a> {
    fn publish(
        self,
        expected: &'static str,
        headers: bool,
        behind: &'a [u8],
        most: usize,
    ) -> Result<Parsed<'a>, ProtocolError> {
        let mut words = Words::default();
        let sizes = self.words_and_sizes(expected, headers, &mut words)?;
        let (subject, reply) = match words.as_slice() {
            [subject] => (*subject, &b""[..]),
            [subject, reply] => (*subject, *reply),
            _ => return Err(self.wrong(expected)),
        };
        with_payload((subject, reply), sizes, behind, most, Frame::Pub)
    }

    fn msg(
        self,
        expected: &'static str,
        headers: bool,
        behind: &'a [u8],
        most: usize,
    ) -> Result<Parsed<'a>, ProtocolError> {
        let mut words = Words::default();
        let sizes = self.words_and_sizes(expected, headers, &mut words)?;
        let (subject, sid, reply) = match words.as_slice() {
            [subject, sid] => (*subject, *sid, &b""[..]),
            [subject, sid, reply] => (*subject, *sid, *reply),
            _ => return Err(self.wrong(expected)),
        };
        let frame = |message| Frame::Msg { sid, message };
        with_payload((subject, reply), sizes, behind, most, frame)
    }

    fn sub(self) -> Result<Frame<'a>, ProtocolError> {
        let mut words = Words::default();
        self.words(SUB, &mut words)?;
        let (subject, queue, sid) = match *words.as_slice() {
            [subject, sid] => (subject, &b""[..], sid),
            [subject, queue, sid] => (subject, queue, sid),
            _ => return Err(self.wrong(SUB)),
        };
        Ok(Frame::Sub {
            subject,
            queue,
            sid,
        })
    }

    fn unsub(self) -> Result<Frame<'a>, ProtocolError> {
        let mut words = Words::default();
        self.words(UNSUB, &mut words)?;
        match words.as_slice() {
            [sid] => Ok(Frame::Unsub { sid, after: 0 }),
            [sid, after] => Ok(Frame::Unsub {
                sid,
                after: number(after).ok_or_else(|| self.wrong(UNSUB))?,
            }),
            _ => Err(self.wrong(UNSUB)),
        }
    }

    /// The words, and the sizes of headers and of all at their end. Words are written in
    /// place: to hand them back costs as much as to find them.
    #[inline]
    fn words_and_sizes(
        self,
        expected: &'static str,
        headers: bool,
        words: &mut Words<'a>,
    ) -> Result<(u64, u64), ProtocolError> {
        self.words(expected, words)?;
        let mut size = || words.pop().and_then(number);
        let all = size().ok_or_else(|| self.wrong(expected))?;
        let head = if headers {
            size()
                .filter(|head| *head <= all)
                .ok_or_else(|| self.wrong(expected))?
        } else {
            0
        };
        Ok((head, all))
    }

    #[inline]
    fn words(self, expected: &'static str, words: &mut Words<'a>) -> Result<(), ProtocolError> {
        let mut rest = self.arguments;
        loop {
            let skip = rest.iter().position(|byte| !is_space(*byte));
            let Some(skip) = skip else { return Ok(()) };
            rest = &rest[skip..];
            let end = rest.iter().position(|byte| is_space(*byte));
            let (word, more) = rest.split_at(end.unwrap_or(rest.len()));
            if !words.push(word) {
                return Err(self.wrong(expected));
            }
            rest = more;
        }
    }

    fn wrong(self, expected: &'static str) -> ProtocolError {
        ProtocolError::Arguments {
            expected,
            line: Excerpt::new(self.line),
        }
    }
}

/// The frame with the message whose subject and reply its line has, and behind it so many bytes
/// of headers and so many in all.
#[inline]
fn with_payload<'a>(
    (subject, reply): (&'a [u8], &'a [u8]),
    (headers, bytes): (u64, u64),
    behind: &'a [u8],
    most: usize,
    frame: impl FnOnce(Message<'a>) -> Frame<'a>,
) -> Result<Parsed<'a>, ProtocolError> {
    let large = || ProtocolError::LargePayload { found: bytes, most };
    let length = usize::try_from(bytes).map_err(|_| large())?;
    if length > most {
        return Err(large());
    }
    let Some((all, rest)) = behind.split_at_checked(length) else {
        return Ok(Parsed::Payload(length + 2));
    };
    match rest {
        [b'\r', b'\n', ..] => {
            // Not above `length`: checked where the sizes were read.
            let (headers, payload) = all.split_at(headers as usize);
            let message = Message {
                subject,
                reply,
                headers,
                payload,
            };
            Ok(Parsed::Whole {
                frame: frame(message),
                payload: length + 2,
            })
        }
        [] | [b'\r'] => Ok(Parsed::Payload(length + 2)),
        _ => Err(ProtocolError::PayloadEnd(length)),
    }
}

/// Words of a line, without the heap. `HMSG` has the most: five.
#[derive(Default)]
struct Words<'a> {
    words: [&'a [u8]; 5],
    length: usize,
}

impl<'a> Words<'a> {
    fn push(&mut self, word: &'a [u8]) -> bool {
        let Some(free) = self.words.get_mut(self.length) else {
            return false;
        };
        *free = word;
        self.length += 1;
        true
    }

    fn pop(&mut self) -> Option<&'a [u8]> {
        self.length = self.length.checked_sub(1)?;
        Some(self.words[self.length])
    }

    fn as_slice(&self) -> &[&'a [u8]] {
        &self.words[..self.length]
    }
}

fn is_space(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// A decimal number of at most 18 digits.
#[inline]
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    digits.iter().try_fold(0, |number, digit| {
        digit
            .is_ascii_digit()
            .then(|| number * 10 + u64::from(digit - b'0'))
    })
}

fn unquoted(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"'")
        .and_then(|text| text.strip_suffix(b"'"))
        .unwrap_or(text)
}
