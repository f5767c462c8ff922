//! The scanner of answers.

use std::mem::MaybeUninit;

use httparse::{ParserConfig, Status};

use super::chunked::{Chunked, Lines, without_empty_line};
use super::known::Meaning;
use super::length::{BodyLength, framing};
use super::{
    Complete, Expect, FIELDS_ON_STACK, KnownHead, Limits, ResponseError, Scan, Sink,
    room_for_fields,
};

/// Scans the answers of one connection, one after the other. Allocates nothing.
#[derive(Debug, Clone)]
pub struct ResponseScanner {
    limits: Limits,
    expect: Expect,
    state: State,
    /// Bytes of an incomplete head that were looked at: its end is not among them.
    seen: usize,
    interim: u32,
    status: u16,
    keep_alive: bool,
    body_bytes: u64,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Head,
    Body(u64),
    Chunked(Chunked),
    UntilClose,
    Failed(ResponseError),
}

impl ResponseScanner {
    /// A scanner for a connection on which nothing was received yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            expect: Expect::Body,
            state: State::Head,
            seen: 0,
            interim: 0,
            status: 0,
            keep_alive: false,
            body_bytes: 0,
        }
    }

    /// Says what the next answer may be. Holds for one answer; without it, an answer
    /// may have a body.
    pub fn expect(&mut self, expect: Expect) {
        self.expect = expect;
    }

    /// Whether a part of an answer was seen already, an interim answer included.
    pub fn started(&self) -> bool {
        self.seen > 0 || self.interim > 0 || !matches!(self.state, State::Head)
    }

    /// Scans until the end of an answer or of what can be used of the input.
    ///
    /// # Errors
    /// When the answer breaks the protocol or exceeds a limit. Every later call gives
    /// the same error.
    #[inline]
    pub fn scan<S: Sink>(&mut self, input: &[u8], sink: &mut S) -> Result<Scan, ResponseError> {
        let scan = self.advance(None, input, sink);
        self.note(scan)
    }

    /// The same at less cost, where heads repeat: `known` is the head of an earlier
    /// answer, of this connection or another one, and becomes that of this answer.
    ///
    /// # Errors
    /// As [`ResponseScanner::scan`].
    #[inline]
    pub fn scan_after<S: Sink>(
        &mut self,
        known: &mut KnownHead,
        input: &[u8],
        sink: &mut S,
    ) -> Result<Scan, ResponseError> {
        let scan = self.advance(Some(known), input, sink);
        self.note(scan)
    }

    fn note(&mut self, scan: Result<Scan, ResponseError>) -> Result<Scan, ResponseError> {
        if let Err(error) = scan {
            self.state = State::Failed(error);
        }
        scan
    }

    /// Says that the stream has ended, after everything received was scanned.
    ///
    /// # Errors
    /// When that is not how the answer ends.
    pub fn end<S: Sink>(&mut self, _sink: &mut S) -> Result<Complete, ResponseError> {
        let error = match self.state {
            State::UntilClose => return Ok(self.complete(false)),
            State::Failed(error) => error,
            _ if self.started() => ResponseError::ClosedEarly,
            _ => ResponseError::ClosedBefore,
        };
        self.state = State::Failed(error);
        Err(error)
    }

    fn advance<S: Sink>(
        &mut self,
        mut known: Option<&mut KnownHead>,
        input: &[u8],
        sink: &mut S,
    ) -> Result<Scan, ResponseError> {
        let mut consumed = 0;
        loop {
            let rest = &input[consumed..];
            match &mut self.state {
                State::Head => {
                    let Some((length, upgraded)) = self.head(known.as_deref_mut(), rest, sink)?
                    else {
                        return Ok(Scan {
                            consumed,
                            complete: None,
                        });
                    };
                    consumed += length;
                    if upgraded || matches!(self.state, State::Body(0)) {
                        let complete = Some(self.complete(upgraded));
                        return Ok(Scan { consumed, complete });
                    }
                }
                State::Body(left) => {
                    let take =
                        usize::try_from(*left).map_or(rest.len(), |left| left.min(rest.len()));
                    *left -= take as u64;
                    let ended = *left == 0;
                    self.body(&rest[..take], sink);
                    let complete = ended.then(|| self.complete(false));
                    return Ok(Scan {
                        consumed: consumed + take,
                        complete,
                    });
                }
                State::Chunked(chunked) => {
                    let progress = chunked.scan(
                        rest,
                        &self.limits,
                        Lines::Lenient,
                        &mut self.body_bytes,
                        sink,
                    )?;
                    let complete = progress.ended.then(|| self.complete(false));
                    return Ok(Scan {
                        consumed: consumed + progress.consumed,
                        complete,
                    });
                }
                State::UntilClose => {
                    self.body(rest, sink);
                    return Ok(Scan {
                        consumed: input.len(),
                        complete: None,
                    });
                }
                State::Failed(error) => return Err(*error),
            }
        }
    }

    /// Reads a head if all of it is there: gives its length, and whether the connection
    /// is another protocol's from here on. An interim head leaves the state as it was.
    #[inline]
    fn head<S: Sink>(
        &mut self,
        known: Option<&mut KnownHead>,
        input: &[u8],
        sink: &mut S,
    ) -> Result<Option<(usize, bool)>, ResponseError> {
        if let Some(known) = &known
            && let Some((meaning, fields, length)) =
                known.recognise(input, self.expect, &self.limits)
        {
            return Ok(Some((length, self.begin(meaning, fields, sink))));
        }
        let head = &input[..input.len().min(self.limits.head_bytes)];
        // Parsing starts anew whenever bytes are added; without this, a head that comes
        // byte by byte would cost the square of its length.
        if self.seen > 0 && !may_end(head, self.seen) {
            return self.incomplete(head.len());
        }
        let mut headers = [const { MaybeUninit::uninit() }; FIELDS_ON_STACK];
        let mut more;
        let most = self.limits.fields.min(FIELDS_ON_STACK);
        let mut response = httparse::Response::new(&mut []);
        let mut parser = ParserConfig::default();
        parser.allow_multiple_spaces_in_response_status_delimiters(self.limits.as_go);
        let mut parsed =
            parser.parse_response_with_uninit_headers(&mut response, head, &mut headers[..most]);
        if parsed == Err(httparse::Error::TooManyHeaders) && self.limits.fields > most {
            more = room_for_fields(&self.limits, head.len());
            response = httparse::Response::new(&mut []);
            parsed = parser.parse_response_with_uninit_headers(&mut response, head, &mut more);
        }
        let length = match parsed {
            Ok(Status::Complete(length)) => length,
            Ok(Status::Partial) => return self.incomplete(head.len()),
            Err(error) => return Err(refusal(error)),
        };
        let (Some(status), Some(minor)) = (response.code, response.version) else {
            return Err(ResponseError::StatusLine);
        };
        self.seen = 0;
        match status {
            0..100 => return Err(ResponseError::Status),
            100 | 102..200 => {
                self.interim += 1;
                if self.interim > self.limits.interim {
                    return Err(ResponseError::TooManyInterim);
                }
                let (begin, end) = field_lines(&head[..length]);
                sink.interim(status, &head[begin..end]);
                return Ok(Some((length, false)));
            }
            _ => {}
        }
        let as_go = self.limits.as_go;
        let framing = framing(status, minor, response.headers, self.expect, as_go)?;
        let (begin, end) = field_lines(&head[..length]);
        let meaning = Meaning { status, framing };
        if let Some(known) = known {
            let asked = (self.expect, self.limits);
            known.remember(&head[..length], (begin, end), asked, meaning);
        }
        Ok(Some((length, self.begin(meaning, &head[begin..end], sink))))
    }

    /// Begins the answer whose head this is. Says whether the connection is another
    /// protocol's from here on.
    #[inline]
    fn begin<S: Sink>(&mut self, meaning: Meaning, fields: &[u8], sink: &mut S) -> bool {
        self.seen = 0;
        self.status = meaning.status;
        self.keep_alive = meaning.framing.keep_alive;
        self.body_bytes = 0;
        sink.length(meaning.framing.length);
        sink.head(meaning.status, fields);
        self.state = match meaning.framing.length {
            BodyLength::Exactly(length) => State::Body(length),
            BodyLength::Chunked => State::Chunked(Chunked::Size),
            BodyLength::UntilClose => State::UntilClose,
            BodyLength::Upgraded => State::Head,
        };
        meaning.framing.length == BodyLength::Upgraded
    }

    fn incomplete<T>(&mut self, seen: usize) -> Result<Option<T>, ResponseError> {
        self.seen = seen;
        if seen < self.limits.head_bytes {
            Ok(None)
        } else {
            Err(ResponseError::HeadTooLarge)
        }
    }

    fn body<S: Sink>(&mut self, part: &[u8], sink: &mut S) {
        if !part.is_empty() {
            sink.body(part);
            self.body_bytes = self.body_bytes.saturating_add(part.len() as u64);
        }
    }

    /// What the answer came to; the scanner is ready for the next one.
    fn complete(&mut self, upgraded: bool) -> Complete {
        self.state = State::Head;
        self.expect = Expect::Body;
        self.interim = 0;
        Complete {
            status: self.status,
            keep_alive: self.keep_alive,
            body_bytes: self.body_bytes,
            upgraded,
        }
    }
}

/// Whether an empty line might end behind the bytes looked at before.
pub(super) fn may_end(head: &[u8], seen: usize) -> bool {
    let from = seen.saturating_sub(3).min(head.len());
    let mut at = from;
    while let Some(found) = memchr::memchr(b'\n', &head[at..]) {
        at += found + 1;
        match &head[at..] {
            [b'\n', ..] | [b'\r', b'\n', ..] => return true,
            _ => {}
        }
    }
    false
}

/// Where the lines behind the status line begin and end, without the empty one.
fn field_lines(head: &[u8]) -> (usize, usize) {
    let blank = head
        .iter()
        .take_while(|byte| matches!(byte, b'\r' | b'\n'))
        .count();
    let status_line =
        memchr::memchr(b'\n', &head[blank..]).map_or(head.len(), |end| blank + end + 1);
    let lines = without_empty_line(&head[status_line..]).len();
    (status_line, status_line + lines)
}

fn refusal(error: httparse::Error) -> ResponseError {
    match error {
        httparse::Error::HeaderName | httparse::Error::HeaderValue => ResponseError::Field,
        httparse::Error::TooManyHeaders => ResponseError::TooManyFields,
        _ => ResponseError::StatusLine,
    }
}
