//! A client's stream as a connection of HTTP/1.1.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::Reason;
use h2::server::SendResponse;
use http::{Method, Response, StatusCode};
use rustix::io::Errno;

use super::head_budget::{HeadBudget, HeadShare};
use super::heads::{self, Untranslatable};
use super::inward::Inward;
use super::outward::{Outward, Parts};
use super::{LIMITS, ROOM};
use crate::http1::{Complete, Expect, ResponseScanner, Sink};
use crate::http2::{Accepted, Server};
use crate::signal::Signal;
use crate::stream::{Carried, Received, StreamError};
use crate::websocket::Key;

/// Bytes that most heads have room in.
const USUAL_HEAD: usize = 1024;

/// The streams of one client that are served as connections.
#[derive(Debug, Clone)]
pub struct OpenStreams(Arc<Count>);

#[derive(Debug)]
struct Count {
    open: AtomicUsize,
    /// The connection's.
    signal: Signal,
}

impl OpenStreams {
    /// None yet. The server's signal rings whenever one of them ends.
    pub fn of(server: &Server) -> Self {
        Self(Arc::new(Count {
            open: AtomicUsize::new(0),
            signal: server.signal().clone(),
        }))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.open.load(Ordering::Relaxed)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A client's stream as a connection of HTTP/1.1 that carries one request. What it was sent
/// is the request, what it is sent is the answer. Dropped before that is whole, it tells the
/// client that it failed (`INTERNAL_ERROR`).
pub struct ServerStream {
    signal: Signal,
    waker: Waker,
    request: Inward,
    /// The request may have more than what was received.
    more: bool,
    answer: Answer,
    /// Bytes of the answer that are half a line.
    unread: Vec<u8>,
    scanner: ResponseScanner,
    /// The key of the handshake, if the stream is to be a WebSocket.
    websocket: Option<Key>,
    /// The handshake was good: bytes go both ways as they are.
    tunnels: bool,
    end: Option<End>,
    open: OpenStreams,
    _share: HeadShare,
}

/// The answer's way.
enum Answer {
    Awaited(SendResponse<Bytes>),
    Begun(Outward),
}

/// How a stream has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// All of the answer was handed to the client's connection.
    Whole,
    /// One side gave up; the other was told.
    Broken,
}

impl ServerStream {
    /// Takes on a request; `None`: it is a tunnel but no WebSocket, which has no other form, or
    /// there is no memory for its head in `heads`. The client is told so. Of a WebSocket,
    /// `random` becomes the key of its handshake.
    pub fn new(
        (request, mut respond): Accepted,
        heads: &HeadBudget,
        open: &OpenStreams,
        random: [u8; 16],
    ) -> Option<Self> {
        let (head, body) = request.into_parts();
        let mut bytes = Vec::with_capacity(USUAL_HEAD);
        let key = heads::opens_websocket(&head).then(|| Key::new(random));
        let ends = body.is_end_stream();
        let Ok(framing) = heads::write_request(&head, ends, key.as_ref(), &mut bytes) else {
            let mut answer = Response::new(());
            *answer.status_mut() = StatusCode::NOT_IMPLEMENTED;
            // Fails only when the client has reset the stream.
            let _ = respond.send_response(answer, true);
            return None;
        };
        let Some(share) = heads.take(bytes.len()) else {
            respond.send_reset(Reason::ENHANCE_YOUR_CALM);
            return None;
        };
        let mut scanner = ResponseScanner::new(LIMITS);
        if head.method == Method::HEAD {
            scanner.expect(Expect::NoBody);
        }
        open.0.open.fetch_add(1, Ordering::Relaxed);
        let signal = Signal::default();
        Some(Self {
            waker: signal.waker(),
            signal,
            request: Inward::new(bytes, body, framing),
            more: true,
            answer: Answer::Awaited(respond),
            unread: Vec::new(),
            scanner,
            websocket: key,
            tunnels: false,
            end: None,
            open: open.clone(),
            _share: share,
        })
    }

    /// Sends on what the client takes; the end may be one of it.
    fn advance(&mut self) -> Result<(), StreamError> {
        let Answer::Begun(outward) = &mut self.answer else {
            return Ok(());
        };
        if self.end.is_some() {
            return Ok(());
        }
        match outward.advance(&mut Context::from_waker(&self.waker)) {
            // If the request goes on, the client is told that the rest is not needed
            // (NO_ERROR, RFC 9113 section 8.1): the codec does that, behind the answer.
            Ok(()) if outward.ended() => {
                self.end = Some(End::Whole);
                self.signal.ring();
                Ok(())
            }
            Ok(()) => Ok(()),
            Err(_) => Err(self.broke()),
        }
    }

    /// The client has given up.
    fn broke(&mut self) -> StreamError {
        self.end = Some(End::Broken);
        StreamError::Socket(Errno::CONNRESET)
    }

    /// The answer breaks off, or is none: the client must notice.
    fn fail(&mut self) -> StreamError {
        match &mut self.answer {
            Answer::Awaited(respond) => respond.send_reset(Reason::INTERNAL_ERROR),
            Answer::Begun(outward) => outward.reset(Reason::INTERNAL_ERROR),
        }
        self.end = Some(End::Broken);
        StreamError::Socket(Errno::PIPE)
    }

    /// Takes the next bytes of the answer.
    fn scan(&mut self, bytes: &[u8]) -> Result<(), StreamError> {
        if self.tunnels
            && let Answer::Begun(outward) = &mut self.answer
        {
            outward.parts().body(bytes);
            return Ok(());
        }
        let mut all = mem::take(&mut self.unread);
        let bytes = match all.is_empty() {
            true => bytes,
            false => {
                all.extend_from_slice(bytes);
                &all
            }
        };
        let mut parts = Parts::default();
        let mut sink = AnswerSink {
            head: None,
            websocket: self.websocket.as_ref(),
            interim: Vec::new(),
            parts: match &mut self.answer {
                Answer::Awaited(_) => &mut parts,
                Answer::Begun(outward) => outward.parts(),
            },
        };
        let Ok(scan) = self.scanner.scan(bytes, &mut sink) else {
            return Err(self.fail());
        };
        let AnswerSink { head, interim, .. } = sink;
        self.unread = bytes.get(scan.consumed..).unwrap_or_default().to_vec();
        let upgraded = matches!(scan.complete, Some(Complete { upgraded: true, .. }));
        if let Answer::Awaited(respond) = &mut self.answer {
            for answer in interim {
                // Fails only when the client has reset the stream.
                let _ = respond.send_informational(answer);
            }
            if let Some(head) = head {
                let tunnels = upgraded && self.websocket.is_some();
                let ends = scan.complete.is_some() && parts.is_empty() && !tunnels;
                let sent = match head {
                    Ok(head) if !upgraded || tunnels => respond.send_response(head, ends).ok(),
                    _ => None,
                };
                let Some(send) = sent else {
                    return Err(self.fail());
                };
                let mut outward = Outward::new(send, ends);
                *outward.parts() = parts;
                if tunnels {
                    self.tunnels = true;
                    outward.parts().body(&mem::take(&mut self.unread));
                }
                self.answer = Answer::Begun(outward);
            }
        }
        if scan.complete.is_some()
            && !self.tunnels
            && let Answer::Begun(outward) = &mut self.answer
        {
            outward.finish();
        }
        Ok(())
    }

    /// Nothing more is sent: that may be where the answer ends.
    fn finish(&mut self) -> Result<(), StreamError> {
        if self.end.is_some() {
            return Ok(());
        }
        if let Answer::Begun(outward) = &mut self.answer
            && (self.tunnels || outward.whole() || self.scanner.end(&mut ()).is_ok())
        {
            outward.finish();
            return self.advance();
        }
        Err(self.fail())
    }
}

impl Carried for ServerStream {
    fn send(&mut self, bytes: &[u8]) -> Result<usize, StreamError> {
        self.advance()?;
        match (self.end, &self.answer) {
            (Some(End::Broken), _) => return Err(StreamError::Socket(Errno::PIPE)),
            (None, Answer::Begun(outward)) if outward.is_full() => return Ok(0),
            _ => {}
        }
        // Of more at once only so much is kept.
        let bytes = bytes.get(..ROOM).unwrap_or(bytes);
        self.scan(bytes)?;
        self.advance()?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<(), StreamError> {
        self.advance()
    }

    fn wants_write(&self) -> bool {
        match &self.answer {
            Answer::Begun(outward) => self.end.is_none() && outward.has_more(),
            Answer::Awaited(_) => false,
        }
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Received, StreamError> {
        self.more = false;
        match self.end {
            Some(End::Whole) => return Ok(Received::End),
            Some(End::Broken) => return Err(StreamError::Socket(Errno::CONNRESET)),
            None => {}
        }
        let mut context = Context::from_waker(&self.waker);
        let Ok(received) = self.request.take(into, &mut context) else {
            return Err(self.broke());
        };
        // Of a tunnel the client's end is an end, which is told behind the last bytes.
        let ended = self.tunnels && self.request.ended();
        self.more = received == into.len() || (ended && received > 0);
        if ended && received == 0 {
            return Ok(Received::End);
        }
        let reset = match &mut self.answer {
            Answer::Awaited(respond) => respond.poll_reset(&mut context).map(drop),
            Answer::Begun(outward) => outward.poll_reset(&mut context),
        };
        match reset {
            Poll::Ready(_) if received == 0 => Err(self.broke()),
            Poll::Pending if received == 0 => Ok(Received::Nothing),
            _ => Ok(Received::Bytes(received)),
        }
    }

    fn holds_bytes(&self) -> bool {
        self.more
    }

    fn close_write(&mut self) -> Result<bool, StreamError> {
        self.finish()?;
        Ok(self.end.is_some())
    }

    fn signal(&self) -> &Signal {
        &self.signal
    }
}

impl Drop for ServerStream {
    fn drop(&mut self) {
        // What is wrong was told to the client, who is the only one to hear of it.
        let _ = self.finish();
        self.open.0.open.fetch_sub(1, Ordering::Relaxed);
        self.open.0.signal.ring();
    }
}

/// What is found in an answer.
struct AnswerSink<'a> {
    websocket: Option<&'a Key>,
    head: Option<Result<Response<()>, Untranslatable>>,
    interim: Vec<Response<()>>,
    parts: &'a mut Parts,
}

impl Sink for AnswerSink<'_> {
    fn interim(&mut self, status: u16, fields: &[u8]) {
        self.interim.extend(heads::answer(status, fields));
    }

    fn head(&mut self, status: u16, fields: &[u8]) {
        self.head = Some(match self.websocket {
            Some(key) => heads::websocket_answer(status, fields, key),
            None => heads::answer(status, fields),
        });
    }

    fn body(&mut self, part: &[u8]) {
        self.parts.body(part);
    }

    fn trailers(&mut self, fields: &[u8]) {
        self.parts.trailers(fields);
    }
}
