//! A client's connection whose streams become connections of HTTP/1.1.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use h2::server::SendResponse;
use http::{Method, Response, StatusCode};

use super::head_budget::{HeadBudget, HeadShare};
use super::heads::{self, Untranslatable};
use super::inward::{Inward, InwardError};
use super::outward::{Outward, Parts};
use super::{ROOM, interest, watch};
use crate::http1::{Complete, Expect, Limits, ResponseScanner, Sink};
use crate::http2::wake::{SlotWaker, Wakes};
use crate::http2::{Accepted, Http2Error, Progress, Server, ServerSettings};
use crate::poller::{Interest, Poller};
use crate::socket;
use crate::stream::{Received, Stream};

/// The connection's token; streams have those from 0 on.
const CONNECTION: u64 = u64::MAX;

/// A client's connection of HTTP/2, each stream of which becomes a connection of HTTP/1.1
/// that carries one request. See the [module](super).
pub struct Front {
    poller: Poller,
    server: Server<Stream>,
    /// The connection's socket once more, to watch it by.
    socket: OwnedFd,
    interest: Interest,
    /// TLS may hold bytes that no event tells of.
    readable: bool,
    slots: Vec<Slot>,
    free: Vec<u32>,
    wakes: Arc<Wakes>,
    woken: Vec<u32>,
    accepted: Vec<Accepted>,
    heads: HeadBudget,
    refused: u64,
}

/// Room for one stream, used again.
struct Slot {
    lane: Option<Box<Lane>>,
    flag: Arc<SlotWaker>,
    waker: Waker,
}

impl Front {
    /// Begins to serve a connection whose TLS handshake is done. Its large heads take their
    /// memory from `heads`.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn start(stream: Stream, settings: ServerSettings, heads: &HeadBudget) -> io::Result<Self> {
        let poller = Poller::new()?;
        let socket = rustix::io::fcntl_dupfd_cloexec(&stream, 0)?;
        poller.add(&socket, CONNECTION, Interest::Read)?;
        Ok(Self {
            poller,
            server: Server::start(stream, settings),
            socket,
            interest: Interest::Read,
            readable: true,
            slots: Vec::new(),
            free: Vec::new(),
            wakes: Arc::default(),
            woken: Vec::new(),
            accepted: Vec::new(),
            heads: heads.clone(),
            refused: 0,
        })
    }

    /// Does everything that can be done without waiting, and adds the ends of new
    /// connections of HTTP/1.1 to `opened`. To be called once at first, whenever the
    /// descriptor can be read, after [`shut_down`](Self::shut_down), and again when it
    /// says that there is more.
    ///
    /// # Errors
    /// When the connection has ended: [`Http2Error::Closed`] if nothing was wrong. Drop
    /// it; its connections of HTTP/1.1 end too.
    pub fn turn(&mut self, opened: &mut Vec<OwnedFd>) -> Result<Progress, Http2Error> {
        let events = self.poller.wait(Some(Duration::ZERO)).map_err(broken)?;
        let mut readable = std::mem::take(&mut self.readable);
        for index in 0..events {
            let Some(event) = self.poller.event(index) else {
                break;
            };
            readable |= event.token == CONNECTION && event.readable;
            if let Some(slot) = usize::try_from(event.token)
                .ok()
                .and_then(|slot| self.slots.get_mut(slot))
            {
                if let Some(lane) = &mut slot.lane {
                    lane.readable |= event.readable;
                }
                slot.waker.wake_by_ref();
            }
        }
        let progress = loop {
            let progress = self.server.drive(readable, &mut self.accepted)?;
            readable = false;
            let mut accepted = std::mem::take(&mut self.accepted);
            for (request, respond) in accepted.drain(..) {
                opened.extend(self.open(request, respond));
            }
            self.accepted = accepted;
            if !self.advance()? && !self.server.is_woken() {
                break progress;
            }
        };
        let wanted = interest(true, self.server.wants_write());
        if wanted != self.interest {
            self.poller
                .change(&self.socket, CONNECTION, wanted)
                .map_err(broken)?;
            self.interest = wanted;
        }
        Ok(progress)
    }

    /// Streams that are open.
    pub fn streams(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Streams so far that were refused: tunnels, and those for which no descriptor or no
    /// memory was left.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Lets the client open no more streams. The connection ends with the last one.
    pub fn shut_down(&mut self) {
        self.server.shut_down();
    }

    /// Opens a connection of HTTP/1.1 for a request.
    fn open(
        &mut self,
        request: http::Request<h2::RecvStream>,
        mut respond: SendResponse<Bytes>,
    ) -> Option<OwnedFd> {
        let (head, body) = request.into_parts();
        let mut bytes = Vec::new();
        let Ok(framing) = heads::write_request(&head, body.is_end_stream(), &mut bytes) else {
            self.refused += 1;
            let mut answer = Response::new(());
            *answer.status_mut() = StatusCode::NOT_IMPLEMENTED;
            // Fails only when the client has reset the stream.
            let _ = respond.send_response(answer, true);
            return None;
        };
        let Some(share) = self.heads.take(bytes.len()) else {
            self.refused += 1;
            respond.send_reset(Reason::ENHANCE_YOUR_CALM);
            return None;
        };
        let Ok((near, far)) = socket::pair() else {
            self.refused += 1;
            respond.send_reset(Reason::REFUSED_STREAM);
            return None;
        };
        let mut scanner = ResponseScanner::new(Limits {
            head_bytes: 2 * 1024 * 1024,
            ..Limits::default()
        });
        if head.method == Method::HEAD {
            scanner.expect(Expect::NoBody);
        }
        let number = self.free.pop().unwrap_or_else(|| {
            let number = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
            let flag = SlotWaker::new(number, Arc::clone(&self.wakes));
            let waker = Waker::from(Arc::clone(&flag));
            self.slots.push(Slot {
                lane: None,
                flag,
                waker,
            });
            number
        });
        let near = Stream::Plain(near);
        if self
            .poller
            .add(&near, u64::from(number), Interest::Read)
            .is_err()
        {
            self.free.push(number);
            self.refused += 1;
            respond.send_reset(Reason::REFUSED_STREAM);
            return None;
        }
        let slot = self.slots.get_mut(number as usize)?;
        slot.lane = Some(Box::new(Lane {
            pair: near,
            interest: Interest::Read,
            readable: false,
            inbox: Vec::new(),
            scanner,
            inward: Inward::new(bytes, body, framing),
            share: Some(share),
            answer: Answer::Awaited(respond),
        }));
        slot.waker.wake_by_ref();
        Some(far)
    }

    /// Lets the streams go on that something happened to; whether there were any.
    fn advance(&mut self) -> Result<bool, Http2Error> {
        let mut woken = std::mem::take(&mut self.woken);
        self.wakes.take(&mut woken);
        let any = !woken.is_empty();
        for &number in &woken {
            let Some(slot) = self.slots.get_mut(number as usize) else {
                continue;
            };
            slot.flag.reset();
            let Some(lane) = &mut slot.lane else {
                continue;
            };
            let mut context = Context::from_waker(&slot.waker);
            let ended = lane.advance(&mut context).is_err();
            if ended {
                slot.lane = None;
                self.free.push(number);
                continue;
            }
            let wanted = lane.wanted();
            let Lane { pair, interest, .. } = &mut **lane;
            watch(&self.poller, pair, u64::from(number), interest, wanted).map_err(broken)?;
        }
        self.woken = woken;
        Ok(any)
    }
}

impl AsFd for Front {
    /// Can be read when [`Front::turn`] has something to do.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

fn broken(error: io::Error) -> Http2Error {
    Http2Error::Io(error.kind())
}

/// One stream and its connection of HTTP/1.1.
struct Lane {
    pair: Stream,
    interest: Interest,
    readable: bool,
    inbox: Vec<u8>,
    scanner: ResponseScanner,
    inward: Inward,
    /// Of the memory for heads, until the head was written.
    share: Option<HeadShare>,
    answer: Answer,
}

/// The answer's way.
enum Answer {
    Awaited(SendResponse<Bytes>),
    Begun(Outward),
}

/// The stream is over, well or not; who had to be told was told.
struct Over;

impl Lane {
    fn wanted(&self) -> Interest {
        interest(self.takes(), self.inward.wants_write())
    }

    /// Whether more of the answer is read.
    fn takes(&self) -> bool {
        match &self.answer {
            Answer::Awaited(_) => true,
            Answer::Begun(outward) => !outward.whole() && !outward.is_full(),
        }
    }

    fn advance(&mut self, context: &mut Context<'_>) -> Result<(), Over> {
        match self.inward.advance(&mut self.pair, context) {
            Ok(()) => {}
            // The router takes no more: its answer may be there already.
            Err(InwardError::To) => {
                self.inward.abandon();
                self.readable = true;
            }
            // The client gave up, or broke the protocol.
            Err(InwardError::From) => return Err(Over),
        }
        if !self.inward.wants_write() {
            self.share = None;
        }
        loop {
            let read = self.readable && self.takes();
            if read {
                self.read()?;
            }
            match &mut self.answer {
                Answer::Awaited(respond) => {
                    if respond.poll_reset(context).is_ready() {
                        return Err(Over);
                    }
                }
                Answer::Begun(outward) => {
                    outward.advance(context).map_err(|_| Over)?;
                    if outward.ended() {
                        // If the request goes on, the client is told that the rest is not
                        // needed (NO_ERROR, RFC 9113 section 8.1): the codec does that, behind
                        // the answer.
                        return Err(Over);
                    }
                }
            }
            if !read {
                return Ok(());
            }
        }
    }

    /// Takes in what the router says, once.
    fn read(&mut self) -> Result<(), Over> {
        let mut buffer = [0; ROOM / 4];
        match self.pair.receive(&mut buffer) {
            Ok(Received::Bytes(length)) => {
                self.readable = length == buffer.len();
                self.inbox.extend_from_slice(&buffer[..length]);
                self.scan()
            }
            Ok(Received::Nothing) => {
                self.readable = false;
                Ok(())
            }
            Ok(Received::End) | Err(_) => {
                self.readable = false;
                if self.scanner.end(&mut ()).is_err() {
                    return Err(self.fail());
                }
                self.finish();
                Ok(())
            }
        }
    }

    fn scan(&mut self) -> Result<(), Over> {
        let mut parts = Parts::default();
        let mut sink = AnswerSink {
            head: None,
            interim: Vec::new(),
            parts: match &mut self.answer {
                Answer::Awaited(_) => &mut parts,
                Answer::Begun(outward) => outward.parts(),
            },
        };
        let scan = match self.scanner.scan(&self.inbox, &mut sink) {
            Ok(scan) => scan,
            Err(_) => return Err(self.fail()),
        };
        let AnswerSink { head, interim, .. } = sink;
        self.inbox.drain(..scan.consumed);
        let upgraded = matches!(scan.complete, Some(Complete { upgraded: true, .. }));
        if let Answer::Awaited(respond) = &mut self.answer {
            for answer in interim {
                // Fails only when the client has reset the stream.
                let _ = respond.send_informational(answer);
            }
            if let Some(head) = head {
                let ends = scan.complete.is_some() && parts.is_empty();
                let sent = match head {
                    Ok(head) if !upgraded => respond.send_response(head, ends).ok(),
                    _ => None,
                };
                let Some(send) = sent else {
                    return Err(self.fail());
                };
                let mut outward = Outward::new(send, ends);
                *outward.parts() = parts;
                self.answer = Answer::Begun(outward);
            }
        }
        if scan.complete.is_some() {
            self.finish();
        }
        Ok(())
    }

    /// The answer is whole.
    fn finish(&mut self) {
        if let Answer::Begun(outward) = &mut self.answer {
            outward.finish();
        }
    }

    /// The router broke off: the client must notice.
    fn fail(&mut self) -> Over {
        match &mut self.answer {
            Answer::Awaited(respond) => respond.send_reset(Reason::INTERNAL_ERROR),
            Answer::Begun(outward) => outward.reset(Reason::INTERNAL_ERROR),
        }
        Over
    }
}

/// What is found in an answer.
struct AnswerSink<'a> {
    head: Option<Result<Response<()>, Untranslatable>>,
    interim: Vec<Response<()>>,
    parts: &'a mut Parts,
}

impl Sink for AnswerSink<'_> {
    fn interim(&mut self, status: u16, fields: &[u8]) {
        self.interim.extend(heads::answer(status, fields));
    }

    fn head(&mut self, status: u16, fields: &[u8]) {
        self.head = Some(heads::answer(status, fields));
    }

    fn body(&mut self, part: &[u8]) {
        self.parts.body(part);
    }

    fn trailers(&mut self, fields: &[u8]) {
        self.parts.trailers(fields);
    }
}
