//! Messages of syslog in a stream, by RFC 6587: each told its length before it (`83 <182>…`), or each ended by a
//! line feed.

use thiserror::Error;

/// Bytes of a message at most: those of a datagram.
pub const MESSAGE_BYTES: usize = 64 << 10;

/// Digits of a length at most.
const DIGITS: usize = 6;

/// Why a stream cannot be read on.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// A length is not followed by a space.
    #[error(
        "reading a stream of syslog: a message begins with a digit but with no length and a space"
    )]
    Length,
    /// A message tells a greater length than there may be.
    #[error(
        "reading a stream of syslog: a message of {found} bytes; expected at most {MESSAGE_BYTES}"
    )]
    TooLong {
        /// What it tells.
        found: usize,
    },
}

/// A part of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A message.
    Message(Vec<u8>),
    /// A line that was longer than a message may be.
    LongLine,
}

/// Cuts a stream into messages. It holds at most one that is not whole, and what was pushed last.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Where what was not handed out yet begins.
    from: usize,
    /// Bytes from there on that are known to hold no line feed.
    searched: usize,
    /// Is the rest of a long line left out?
    skipping: bool,
}

impl Frames {
    /// Adds what came. Whoever reads a stream takes all frames before the next.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.from);
        self.from = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message, if it is whole.
    ///
    /// # Errors
    /// What follows cannot be cut into messages.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        loop {
            let rest = self.bytes.get(self.from..).unwrap_or_default();
            let Some(first) = rest.first() else {
                return Ok(None);
            };
            if !self.skipping && first.is_ascii_digit() {
                return self.counted();
            }
            let searched = self.searched.min(rest.len());
            let Some(end) = memchr::memchr(b'\n', &rest[searched..]) else {
                self.searched = rest.len();
                if rest.len() <= MESSAGE_BYTES {
                    return Ok(None);
                }
                self.from = self.bytes.len();
                self.searched = 0;
                if !std::mem::replace(&mut self.skipping, true) {
                    return Ok(Some(Frame::LongLine));
                }
                return Ok(None);
            };
            let line = &rest[..searched + end];
            self.from += line.len() + 1;
            self.searched = 0;
            if std::mem::take(&mut self.skipping) || line.is_empty() {
                continue;
            }
            if line.len() > MESSAGE_BYTES {
                return Ok(Some(Frame::LongLine));
            }
            return Ok(Some(Frame::Message(line.to_vec())));
        }
    }

    /// What stands at the end of the stream: senders leave out the last line feed.
    pub fn rest(self) -> Option<Vec<u8>> {
        let rest = self.bytes.get(self.from..)?;
        let line = rest.first().is_some_and(|first| !first.is_ascii_digit());
        (line && !self.skipping && rest.len() <= MESSAGE_BYTES).then(|| rest.to_vec())
    }

    fn counted(&mut self) -> Result<Option<Frame>, FrameError> {
        let rest = self.bytes.get(self.from..).unwrap_or_default();
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        match rest.get(digits) {
            _ if digits > DIGITS => return Err(FrameError::Length),
            None => return Ok(None),
            Some(b' ') => {}
            Some(_) => return Err(FrameError::Length),
        }
        let number = str::from_utf8(&rest[..digits]).unwrap_or_default();
        let found: usize = number.parse().map_err(|_| FrameError::Length)?;
        if found > MESSAGE_BYTES {
            return Err(FrameError::TooLong { found });
        }
        let begin = digits + 1;
        let Some(message) = rest.get(begin..begin + found) else {
            return Ok(None);
        };
        let message = message.to_vec();
        self.from += begin + found;
        self.searched = 0;
        Ok(Some(Frame::Message(message)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Frame, FrameError, Frames, MESSAGE_BYTES};

    /// All frames of a stream that comes in these pieces, and what ended it.
    fn frames<'a>(
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> (Vec<Frame>, Result<Option<Vec<u8>>, FrameError>) {
        let (mut frames, mut found) = (Frames::default(), Vec::new());
        for piece in pieces {
            frames.push(piece);
            loop {
                match frames.next_frame() {
                    Ok(Some(frame)) => found.push(frame),
                    Ok(None) => break,
                    Err(error) => return (found, Err(error)),
                }
            }
        }
        (found, Ok(frames.rest()))
    }

    fn message(text: &str) -> Frame {
        Frame::Message(text.into())
    }

    #[test]
    fn both_ways_of_framing_are_read_even_mixed() {
        let stream = "5 <1>ab<1>line\n\n7 <2>a\nb <3>two words\n<4>last";
        let (found, rest) = frames([stream.as_bytes()]);
        let expected = ["<1>ab", "<1>line", "<2>a\nb ", "<3>two words"].map(message);
        assert_eq!(found, expected);
        assert_eq!(rest, Ok(Some(b"<4>last".to_vec())));
    }

    #[test]
    fn lengths_and_lines_are_bounded() {
        let (_, ended) = frames([&b"65537 <1>"[..]]);
        assert_eq!(ended, Err(FrameError::TooLong { found: 65_537 }));
        let (_, ended) = frames([&b"1234567"[..]]);
        assert_eq!(ended, Err(FrameError::Length));
        let (_, ended) = frames([&b"12<1>"[..]]);
        assert_eq!(ended, Err(FrameError::Length));

        let long = vec![b'x'; MESSAGE_BYTES];
        let (found, _) = frames([&long[..], b"\n<1>good\n"]);
        assert_eq!(found, [Frame::Message(long.clone()), message("<1>good")]);
        let pieces = [&long[..], b"1", b"2345", &long, b"9 \n", b"<1>good\n"];
        let (found, rest) = frames(pieces);
        assert_eq!(found, [Frame::LongLine, message("<1>good")]);
        assert_eq!(rest, Ok(None));
    }

    proptest! {
        /// In whatever pieces a stream comes, it has the same messages.
        #[test]
        fn pieces_do_not_matter(
            stream in "([0-9]{0,2} |[<>a-z0-9]{0,5}|\n|5 abcde){0,20}",
            cuts in prop::collection::vec(1_usize..7, 1..60),
        ) {
            let whole = frames([stream.as_bytes()]);
            let (mut pieces, mut left) = (Vec::new(), stream.as_bytes());
            for cut in cuts.iter().cycle() {
                if left.is_empty() {
                    break;
                }
                let (piece, rest) = left.split_at((*cut).min(left.len()));
                pieces.push(piece);
                left = rest;
            }
            prop_assert_eq!(frames(pieces), whole);
        }

        #[test]
        fn messages_are_read_as_they_were_framed(
            messages in prop::collection::vec(("<[a-z 0-9]{1,9}", prop::bool::ANY), 0..20),
        ) {
            let stream: String = messages
                .iter()
                .map(|(text, counted)| match counted {
                    true => format!("{} {text}", text.len()),
                    false => format!("{text}\n"),
                })
                .collect();
            let expected: Vec<_> = messages.iter().map(|(text, _)| message(text)).collect();
            prop_assert_eq!(frames([stream.as_bytes()]).0, expected);
        }
    }
}
