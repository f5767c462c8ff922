//! The conversation on one connection: when an answer is whole, and what it is.

use lab_load::Protocol;
use lab_load::recording::Phase;
use lab_load::request::{Answer, AnswerEnd, Composer, Visit, is_redirect};
use wire::framing::{self, AnswerScanner};
use wire::http1::{Expect, KnownHead, Limits, ResponseError, ResponseScanner, Sink};
use wire::resp::ErrorCode;

use super::websocket::WebSocket;

/// Most bytes of fields, and of body, that are kept of an answer; the rest is counted
/// and let go.
const MOST_KEPT: usize = Answer::KEPT;

/// Memory that each connection may keep for the next answer.
const USUAL: usize = 16 * 1024;

/// Parts of an answer that are looked at after its end.
#[derive(Debug, Default)]
pub(super) struct ResponseCapture {
    pub(super) want_fields: bool,
    pub(super) want_body: bool,
    pub(super) fields: Vec<u8>,
    pub(super) body: Vec<u8>,
    /// The code of a database's error, and the rows of its answer.
    pub(super) code: Option<ErrorCode>,
    pub(super) rows: u64,
}

impl ResponseCapture {
    /// Begins a new answer.
    pub(super) fn begin(&mut self, want_fields: bool, want_body: bool) {
        (self.want_fields, self.want_body) = (want_fields, want_body);
        self.fields.clear();
        self.body.clear();
    }

    /// Keeps what was kept elsewhere.
    pub(super) fn set(&mut self, fields: Vec<u8>, body: &[u8]) {
        self.fields = fields;
        self.body(body);
    }

    /// Gives back the memory of an answer that was larger than usual.
    pub(super) fn forget(&mut self) {
        if self.fields.capacity() + self.body.capacity() > USUAL {
            (self.fields, self.body) = (Vec::new(), Vec::new());
        }
    }
}

impl Sink for ResponseCapture {
    fn head(&mut self, status: u16, fields: &[u8]) {
        // Of a redirect it is told where to.
        if self.want_fields || is_redirect(status) {
            keep(&mut self.fields, fields);
        }
    }

    fn body(&mut self, part: &[u8]) {
        if self.want_body {
            keep(&mut self.body, part);
        }
    }
}

fn keep(kept: &mut Vec<u8>, part: &[u8]) {
    let room = MOST_KEPT - kept.len().min(MOST_KEPT);
    kept.extend_from_slice(&part[..part.len().min(room)]);
}

/// A whole answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct CompleteResponse {
    /// Its status, where the protocol has one.
    pub(super) status: Option<u16>,
    /// Whether the connection can carry another request.
    pub(super) keep_alive: bool,
    /// Whether more came than it has: the connection is of no use, and the target does not know.
    pub(super) surplus: bool,
    /// Bytes of its body.
    pub(super) body_bytes: u64,
}

impl CompleteResponse {
    /// An answer of a protocol without status.
    pub(super) fn of(body_bytes: u64, keep_alive: bool) -> Self {
        Self {
            status: None,
            keep_alive,
            surplus: false,
            body_bytes,
        }
    }
}

/// What a piece of input came to.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScanResult {
    /// Bytes that are done with; the rest is to be given again with more behind it.
    pub(super) consumed: usize,
    pub(super) whole: Option<CompleteResponse>,
}

/// Why there will be no whole answer.
pub(super) type Broken = (Phase, &'static str);

/// Whether something is done; or why it will never be.
pub(super) type Step = Result<bool, &'static str>;

/// The conversation on one connection.
#[derive(Debug, Default)]
pub(super) enum Conversation {
    /// HTTP/1.1.
    Http1(ResponseScanner),
    /// Bytes whose end the request's kind tells, with that kind.
    Tcp(AnswerScanner, usize),
    /// Datagrams.
    #[default]
    Udp,
    /// Messages, first of all the handshake.
    WebSocket(Box<WebSocket>),
}

impl Conversation {
    /// The conversation on a new connection; `number` tells connections apart.
    pub(super) fn new(protocol: Protocol, number: u64) -> Self {
        match protocol {
            Protocol::Tcp => Self::Tcp(AnswerScanner::new(&framing::AnswerEnd::Close), usize::MAX),
            Protocol::Udp => Self::Udp,
            Protocol::WebSocket => Self::WebSocket(Box::new(WebSocket::new(number))),
            Protocol::Http1
            | Protocol::Http2
            | Protocol::Grpc
            | Protocol::Redis
            | Protocol::Postgres => Self::Http1(ResponseScanner::new(Limits::default())),
        }
    }

    /// Expects the response to the visit's request, of so many bytes, which is being sent.
    #[inline]
    pub(super) fn expect_response(
        &mut self,
        composer: &Composer,
        visit: &Visit,
        kind: usize,
        bytes: usize,
    ) {
        match self {
            Self::Http1(scanner) => scanner.expect(match composer.no_body(visit) {
                true => Expect::NoBody,
                false => Expect::Body,
            }),
            Self::Tcp(scanner, last) => {
                if *last != kind {
                    (*scanner, *last) = (AnswerScanner::new(&end_of(composer, visit)), kind);
                }
                scanner.expect(bytes as u64);
            }
            Self::Udp | Self::WebSocket(_) => {}
        }
    }

    /// Looks at what came in. There may be no request, when `kept` is of no use.
    #[inline]
    pub(super) fn take(
        &mut self,
        input: &[u8],
        kept: &mut ResponseCapture,
        known: &mut KnownHead,
    ) -> Result<ScanResult, Broken> {
        match self {
            Self::Http1(scanner) => {
                let scan = scanner.scan_after(known, input, kept).map_err(broken)?;
                let whole = scan.complete.map(|complete| CompleteResponse {
                    status: Some(complete.status),
                    keep_alive: complete.keep_alive && !complete.upgraded,
                    surplus: false,
                    body_bytes: complete.body_bytes,
                });
                Ok(ScanResult {
                    consumed: scan.consumed,
                    whole,
                })
            }
            Self::Tcp(scanner, _) => {
                let scan = scanner.scan(input);
                kept.body(&input[..scan.consumed]);
                Ok(ScanResult {
                    consumed: scan.consumed,
                    whole: scan.complete.map(|bytes| CompleteResponse::of(bytes, true)),
                })
            }
            Self::Udp => {
                kept.body(input);
                Ok(ScanResult {
                    consumed: input.len(),
                    whole: Some(CompleteResponse::of(input.len() as u64, true)),
                })
            }
            Self::WebSocket(conversation) => conversation.take(input, kept),
        }
    }

    /// Says that the target sends no more.
    pub(super) fn end(&mut self, kept: &mut ResponseCapture) -> Result<CompleteResponse, Broken> {
        match self {
            Self::Http1(scanner) => {
                let complete = scanner.end(kept).map_err(broken)?;
                Ok(CompleteResponse {
                    status: Some(complete.status),
                    keep_alive: false,
                    surplus: false,
                    body_bytes: complete.body_bytes,
                })
            }
            Self::Tcp(scanner, _) => match scanner.end() {
                Ok(bytes) => Ok(CompleteResponse::of(bytes, false)),
                Err(error) => Err((Phase::Read, error.cause())),
            },
            // A datagram may be empty.
            Self::Udp => Ok(CompleteResponse::of(0, true)),
            Self::WebSocket(_) => Err((Phase::Read, "closed early")),
        }
    }

    /// Whether bytes behind a whole answer are too many for it. What announces that the target
    /// closes the connection is not: some servers of HTTP say 408 before, and WebSocket has frames
    /// of its own.
    pub(super) fn is_surplus(&self, rest: &[u8]) -> bool {
        const TIMED_OUT: &[u8] = b"HTTP/1.x 408";
        const CONTROL: u8 = 8;
        let Some(first) = rest.first() else {
            return false;
        };
        match self {
            Self::Http1(_) => {
                let mut begun = TIMED_OUT.iter().zip(rest);
                !begun.all(|(expected, found)| expected == found || *expected == b'x')
            }
            Self::Tcp(..) | Self::Udp => true,
            Self::WebSocket(_) => first & CONTROL == 0,
        }
    }

    /// Whether the target may say something without being asked.
    pub(super) fn listens(&self) -> bool {
        matches!(self, Self::WebSocket(_))
    }

    /// Whether the target has said that it says no more, and may wait for us to hang up.
    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::WebSocket(conversation) => conversation.is_over(),
            Self::Http1(_) | Self::Tcp(..) | Self::Udp => false,
        }
    }

    /// What the protocol itself has to say by now: answers to pings.
    pub(super) fn replies(&mut self) -> Option<&mut Vec<u8>> {
        match self {
            Self::WebSocket(conversation) => conversation.replies(),
            Self::Http1(_) | Self::Tcp(..) | Self::Udp => None,
        }
    }
}

fn end_of(composer: &Composer, visit: &Visit) -> framing::AnswerEnd {
    match composer.answer_end(visit) {
        AnswerEnd::Bytes(bytes) => framing::AnswerEnd::Bytes(*bytes),
        AnswerEnd::Delimiter(bytes) => framing::AnswerEnd::Delimiter(bytes.clone()),
        AnswerEnd::Echo => framing::AnswerEnd::Echo,
        AnswerEnd::Close => framing::AnswerEnd::Close,
    }
}

fn broken(error: ResponseError) -> Broken {
    let phase = match error {
        ResponseError::ClosedBefore | ResponseError::ClosedEarly => Phase::Read,
        _ => Phase::Protocol,
    };
    (phase, error.cause())
}
