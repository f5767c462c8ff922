//! A client's stream as a connection of HTTP/1.1.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::io::Errno;

use super::head_budget::{HeadBudget, HeadShare};
use super::heads;
use super::inward::Inward;
use super::outward::{Outward, Parts};
use super::{LIMITS, ROOM};
use crate::http1::{Complete, Expect, ResponseScanner, Sink};
use crate::http2::codec::{Connection, Reading, StreamKey};
use crate::http2::shared::Handle;
use crate::http2::{Accepted, Reason, Server};
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
    handle: Handle,
    signal: Signal,
    message: Message,
    open: OpenStreams,
    _share: HeadShare,
}

/// The request and its answer.
struct Message {
    request: Inward,
    /// The request may have more than what was received.
    more: bool,
    /// `None`: its head did not come.
    answer: Option<Outward>,
    /// Bytes of the answer that are half a line.
    unread: Vec<u8>,
    scanner: ResponseScanner,
    /// The key of the handshake, if the stream is to be a WebSocket.
    websocket: Option<Key>,
    /// The handshake was good: bytes go both ways as they are.
    tunnels: bool,
    end: Option<End>,
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
        Accepted(handle): Accepted,
        heads: &HeadBudget,
        open: &OpenStreams,
        random: [u8; 16],
    ) -> Option<Self> {
        let taken = handle.with(|connection, key| take_on(connection, key, heads, random));
        let (message, share) = taken?;
        open.0.open.fetch_add(1, Ordering::Relaxed);
        let signal = Signal::default();
        handle.watch(&signal);
        Some(Self {
            handle,
            signal,
            message,
            open: open.clone(),
            _share: share,
        })
    }
}

/// The request of a stream in HTTP/1.1, and the share of its head.
fn take_on(
    connection: &mut Connection,
    key: StreamKey,
    heads: &HeadBudget,
    random: [u8; 16],
) -> Option<(Message, HeadShare)> {
    let head = connection.head(key)?;
    let mut bytes = Vec::with_capacity(USUAL_HEAD);
    let websocket = heads::opens_websocket(head).then(|| Key::new(random));
    let whole = connection.reading(key) == Reading::Ended && connection.body(key).is_empty();
    let whole = whole && !connection.has_trailers(key);
    let Ok(framing) = heads::write_request(head, whole, websocket.as_ref(), &mut bytes) else {
        connection.answer(key, true, |block| block.status(501));
        return None;
    };
    let mut scanner = ResponseScanner::new(LIMITS);
    if head.method() == b"HEAD" {
        scanner.expect(Expect::NoBody);
    }
    let Some(share) = heads.take(bytes.len()) else {
        connection.reset(key, Reason::ENHANCE_YOUR_CALM);
        return None;
    };
    connection.forget_head(key);
    let message = Message {
        request: Inward::new(bytes, framing, whole),
        more: true,
        answer: None,
        unread: Vec::new(),
        scanner,
        websocket,
        tunnels: false,
        end: None,
    };
    Some((message, share))
}

impl Message {
    /// Sends on what the client takes; the end may be one of it. Says whether it is.
    fn advance(
        &mut self,
        connection: &mut Connection,
        key: StreamKey,
    ) -> Result<bool, StreamError> {
        let Some(outward) = &mut self.answer else {
            return Ok(false);
        };
        if self.end.is_some() {
            return Ok(false);
        }
        match outward.advance(connection, key) {
            // If the request goes on, the client is told that the rest is not needed
            // (NO_ERROR, RFC 9113 section 8.1): the connection does that when the stream is
            // given up.
            Ok(()) if outward.ended() => {
                self.end = Some(End::Whole);
                Ok(true)
            }
            Ok(()) => Ok(false),
            Err(_) => Err(self.broke()),
        }
    }

    /// The client has given up.
    fn broke(&mut self) -> StreamError {
        self.end = Some(End::Broken);
        StreamError::Socket(Errno::CONNRESET)
    }

    /// The answer breaks off, or is none: the client must notice.
    fn fail(&mut self, connection: &mut Connection, key: StreamKey) -> StreamError {
        connection.reset(key, Reason::INTERNAL_ERROR);
        self.end = Some(End::Broken);
        StreamError::Socket(Errno::PIPE)
    }

    /// Takes the next bytes of the answer.
    fn scan(
        &mut self,
        bytes: &[u8],
        connection: &mut Connection,
        key: StreamKey,
    ) -> Result<(), StreamError> {
        if self.tunnels
            && let Some(outward) = &mut self.answer
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
            begun: self.answer.is_some(),
            connection,
            key,
            parts: match &mut self.answer {
                None => &mut parts,
                Some(outward) => outward.parts(),
            },
        };
        let Ok(scan) = self.scanner.scan(bytes, &mut sink) else {
            return Err(self.fail(connection, key));
        };
        let head = sink.head;
        self.unread = bytes.get(scan.consumed..).unwrap_or_default().to_vec();
        let upgraded = matches!(scan.complete, Some(Complete { upgraded: true, .. }));
        if let Some((status, lines)) = head
            && self.answer.is_none()
        {
            let tunnels = upgraded && self.websocket.is_some();
            let ends = scan.complete.is_some() && parts.is_empty() && !tunnels;
            let status = match heads::status(status, &lines, self.websocket.as_ref()) {
                Ok(status) if !upgraded || tunnels => status,
                _ => return Err(self.fail(connection, key)),
            };
            connection.answer(key, ends, |block| {
                heads::write_lines(status, &lines, tunnels, block);
            });
            let mut outward = Outward::new(parts, ends);
            if tunnels {
                self.tunnels = true;
                outward.parts().body(&mem::take(&mut self.unread));
            }
            self.answer = Some(outward);
        }
        if scan.complete.is_some()
            && !self.tunnels
            && let Some(outward) = &mut self.answer
        {
            outward.finish();
        }
        Ok(())
    }

    /// Nothing more is sent: that may be where the answer ends. Says whether it is.
    fn finish(&mut self, connection: &mut Connection, key: StreamKey) -> Result<bool, StreamError> {
        if self.end.is_some() {
            return Ok(false);
        }
        if let Some(outward) = &mut self.answer
            && (self.tunnels || outward.whole() || self.scanner.end(&mut ()).is_ok())
        {
            outward.finish();
            return self.advance(connection, key);
        }
        Err(self.fail(connection, key))
    }

    /// Takes what came of the request.
    fn receive(
        &mut self,
        into: &mut [u8],
        connection: &mut Connection,
        key: StreamKey,
    ) -> Result<Received, StreamError> {
        self.more = false;
        match self.end {
            Some(End::Whole) => return Ok(Received::End),
            Some(End::Broken) => return Err(StreamError::Socket(Errno::CONNRESET)),
            None => {}
        }
        let Ok(received) = self.request.take(into, connection, key) else {
            return Err(self.broke());
        };
        // Of a tunnel the client's end is an end, which is told behind the last bytes.
        let ended = self.tunnels && self.request.ended();
        self.more = received == into.len() || (ended && received > 0);
        if ended && received == 0 {
            return Ok(Received::End);
        }
        match connection.failure(key) {
            Some(_) if received == 0 => Err(self.broke()),
            None if received == 0 => Ok(Received::Nothing),
            _ => Ok(Received::Bytes(received)),
        }
    }
}

impl Carried for ServerStream {
    fn send(&mut self, bytes: &[u8]) -> Result<usize, StreamError> {
        let Self {
            handle, message, ..
        } = self;
        // Of more at once only so much is kept.
        let bytes = bytes.get(..ROOM).unwrap_or(bytes);
        let (sent, ended) = handle.with(|connection, key| {
            let ended = message.advance(connection, key)?;
            match (message.end, &message.answer) {
                (Some(End::Broken), _) => return Err(StreamError::Socket(Errno::PIPE)),
                (None, Some(outward)) if outward.is_full() => return Ok((0, ended)),
                _ => {}
            }
            message.scan(bytes, connection, key)?;
            Ok((bytes.len(), message.advance(connection, key)? || ended))
        })?;
        if ended {
            self.signal.ring();
        }
        Ok(sent)
    }

    fn flush(&mut self) -> Result<(), StreamError> {
        let Self {
            handle, message, ..
        } = self;
        if handle.with(|connection, key| message.advance(connection, key))? {
            self.signal.ring();
        }
        Ok(())
    }

    fn wants_write(&self) -> bool {
        match &self.message.answer {
            Some(outward) => self.message.end.is_none() && outward.has_more(),
            None => false,
        }
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Received, StreamError> {
        let Self {
            handle, message, ..
        } = self;
        handle.with(|connection, key| message.receive(into, connection, key))
    }

    fn holds_bytes(&self) -> bool {
        self.message.more
    }

    fn close_write(&mut self) -> Result<bool, StreamError> {
        let Self {
            handle, message, ..
        } = self;
        if handle.with(|connection, key| message.finish(connection, key))? {
            self.signal.ring();
        }
        Ok(self.message.end.is_some())
    }

    fn signal(&self) -> &Signal {
        &self.signal
    }
}

impl Drop for ServerStream {
    fn drop(&mut self) {
        // What is wrong was told to the client, who is the only one to hear of it.
        let _ = self.close_write();
        self.open.0.open.fetch_sub(1, Ordering::Relaxed);
        self.open.0.signal.ring();
    }
}

/// What is found in an answer.
struct AnswerSink<'a> {
    head: Option<(u16, Vec<u8>)>,
    /// The answer's head was sent.
    begun: bool,
    connection: &'a mut Connection,
    key: StreamKey,
    parts: &'a mut Parts,
}

impl Sink for AnswerSink<'_> {
    fn interim(&mut self, status: u16, fields: &[u8]) {
        if !self.begun && heads::status(status, fields, None).is_ok() {
            self.connection.answer_interim(self.key, |block| {
                heads::write_lines(status, fields, false, block);
            });
        }
    }

    fn head(&mut self, status: u16, fields: &[u8]) {
        self.head = Some((status, fields.to_vec()));
    }

    fn body(&mut self, part: &[u8]) {
        self.parts.body(part);
    }

    fn trailers(&mut self, fields: &[u8]) {
        self.parts.trailers(fields);
    }
}
