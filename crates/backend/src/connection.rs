//! One connection of a backend: what was read and not understood yet, what is still to be
//! sent, and what it waits for.

use wire::http1::{Limits, RequestBody, RequestHead, RequestScanner};
use wire::poller::Registration;
use wire::stream::Stream;

use super::Fate;
use super::answers::Answers;

/// Bytes of a request's head at most; a longer one ends the connection.
const HEAD_BYTES: usize = 32 * 1024;

/// A connection.
pub(super) struct Connection {
    pub(super) stream: Stream,
    scanner: RequestScanner,
    /// Received and not used: a head in part, or requests behind one that waits.
    pub(super) input: Vec<u8>,
    /// What the socket did not take yet.
    output: Vec<u8>,
    /// The body of the last request goes on; it is thrown away.
    in_body: bool,
    pub(super) state: State,
    /// Nothing follows what is sent now.
    closing: bool,
    /// The poller tells when it can be read, or else when it can be written.
    pub(super) registration: Registration,
}

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The end of TLS's handshake.
    Handshake,
    /// The next request.
    Open,
    /// The end of a delay, with the answer that is due then.
    Delayed {
        failing: Option<u16>,
        closing: bool,
        with_body: bool,
    },
    /// Nothing: it is never answered.
    Hung,
}

/// What the thread does with the connection next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Waits for bytes.
    Read,
    /// Waits until bytes can be sent.
    Write,
    /// Waits until this moment of the monotonic clock.
    Delay(u64),
    /// Closes it.
    Close,
    /// Resets it.
    Reset,
}

impl Connection {
    pub(super) fn new(stream: Stream, registration: Registration) -> Self {
        let limits = Limits {
            head_bytes: HEAD_BYTES,
            ..Limits::default()
        };
        let state = match stream.tls() {
            Some(_) => State::Handshake,
            None => State::Open,
        };
        Self {
            stream,
            scanner: RequestScanner::new(limits),
            input: Vec::new(),
            output: Vec::new(),
            in_body: false,
            state,
            closing: false,
            registration,
        }
    }

    /// Goes on with the handshake of TLS. What the peer does wrong ends the connection.
    pub(super) fn shake_hands(&mut self) -> Next {
        match self.stream.handshake() {
            Ok(true) => {
                self.state = State::Open;
                Next::Read
            }
            Ok(false) if self.stream.wants_write() => Next::Write,
            Ok(false) => Next::Read,
            Err(_) => Next::Close,
        }
    }

    /// Takes what came in, answers what can be answered, and says how many bytes were
    /// used. `fate` is asked once for each request, before it is answered.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        head: &mut RequestHead,
        mut fate: impl FnMut() -> Fate,
        answers: &mut Answers,
    ) -> (usize, Next) {
        let mut used = 0;
        loop {
            let rest = bytes.get(used..).unwrap_or_default();
            if self.in_body {
                match self.scanner.body(rest, &mut ()) {
                    Ok(scan) => {
                        used += scan.consumed;
                        self.in_body = !scan.ended;
                    }
                    // The answer is on its way; what follows it makes no sense.
                    Err(_) => self.closing = true,
                }
            }
            if self.in_body || self.state != State::Open || self.closing || !self.output.is_empty()
            {
                break;
            }
            let rest = bytes.get(used..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            let length = match self.scanner.head(rest, head) {
                Ok(Some(length)) => length,
                Ok(None) => break,
                Err(error) => {
                    self.closing = true;
                    self.send(error.answer());
                    break;
                }
            };
            used += length;
            match self.answer(head, fate(), answers) {
                None => {}
                Some(next) => return (used, next),
            }
        }
        (used, self.next())
    }

    /// Answers a request as its fate is; `None`: and goes on.
    fn answer(&mut self, head: &RequestHead, fate: Fate, answers: &mut Answers) -> Option<Next> {
        let closing = !head.keep_alive();
        self.in_body = head.body() != RequestBody::None;
        if self.in_body && head.expects_continue() && fate != Fate::Hang {
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        let with_body = head.method() != b"HEAD";
        match fate {
            Fate::Answer { at: None, failing } => {
                self.closing = closing;
                self.send(answers.bytes(failing, closing, with_body));
                None
            }
            Fate::Answer {
                at: Some(at),
                failing,
            } => {
                self.state = State::Delayed {
                    failing,
                    closing,
                    with_body,
                };
                Some(Next::Delay(at))
            }
            Fate::Hang => {
                self.state = State::Hung;
                None
            }
            Fate::Reset => Some(Next::Reset),
            Fate::Close => Some(Next::Close),
        }
    }

    /// The delay is over: sends the answer.
    pub(super) fn delay_over(&mut self, answers: &mut Answers) -> Next {
        if let State::Delayed {
            failing,
            closing,
            with_body,
        } = self.state
        {
            self.state = State::Open;
            self.closing = closing;
            self.send(answers.bytes(failing, closing, with_body));
        }
        self.next()
    }

    /// The socket takes bytes again.
    pub(super) fn writable(&mut self) -> Next {
        let output = std::mem::take(&mut self.output);
        self.send(&output);
        self.next()
    }

    fn next(&self) -> Next {
        if !self.output.is_empty() || self.stream.wants_write() {
            Next::Write
        } else if self.closing {
            Next::Close
        } else {
            Next::Read
        }
    }

    /// Sends now what the socket takes, and keeps the rest. Nothing more is read
    /// meanwhile, so one answer is the most that is kept.
    fn send(&mut self, bytes: &[u8]) {
        if !self.output.is_empty() {
            self.output.extend_from_slice(bytes);
            return;
        }
        match self.stream.send(bytes) {
            Ok(sent) => self
                .output
                .extend_from_slice(bytes.get(sent..).unwrap_or_default()),
            // The peer is gone; there is nobody to send the rest to.
            Err(_) => self.closing = true,
        }
    }
}
