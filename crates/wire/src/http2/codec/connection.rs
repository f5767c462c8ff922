//! One side of a connection.

use std::collections::VecDeque;

use super::fields::Fields;
use super::flow::{Allowance, Window};
use super::frames::{self, MOST};
use super::hpack::{Decoder, Encoder};
use super::streams::{Incoming, Outgoing, StreamKey, Streams};
use crate::http2::{Http2Error, Reason, StreamError};

/// Streams that were given up here while the peer may still send on them are remembered, this
/// many of them, so that what comes late is no error.
const MOST_CUT: usize = 128;

/// Which side this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It opens streams.
    Client,
    /// It answers on them.
    Server,
}

/// What one side allows and takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Most streams open at once: those that a server lets a client open, and those that a client
    /// opens at most.
    pub streams: u32,
    /// A client's streams before the server has said how many it allows.
    pub early_streams: u32,
    /// Bytes that the peer may send ahead on one stream.
    pub stream_window: u32,
    /// The same for the connection, which bounds what is kept of bodies. At least 64 KiB - 1.
    pub connection_window: u32,
    /// Bytes that wait to be sent before no more of bodies is taken, and no more is read.
    pub out_bytes: usize,
    /// Bytes of one message's fields, as RFC 9113 section 6.5.2 counts them, and of its trailers.
    pub head_bytes: u32,
    /// Streams that the client opened and reset before anybody looked at them.
    pub early_resets: usize,
    /// Streams that were reset because the peer broke a rule on them.
    pub broken_streams: usize,
    /// Let clients open other protocols on streams (extended CONNECT, RFC 8441).
    pub extended_connect: bool,
}

/// What goes on while a block of fields comes in several frames.
#[derive(Debug)]
pub(super) struct Continuing {
    pub(super) stream: u32,
    pub(super) ends: bool,
    pub(super) malformed: bool,
    pub(super) frames: usize,
}

/// How far this side is with telling a peer that the connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GoAwayState {
    Unsaid,
    /// The peer was told to open no more streams; what is on its way is served.
    Announced,
    /// Streams behind this one are not served.
    Said(u32),
}

/// One side of a connection. See the [module](super).
#[derive(Debug)]
pub struct Connection {
    pub(super) role: Role,
    pub(super) settings: Settings,
    /// Bytes that were received and not read: a frame that is not whole, or all that came while
    /// nothing more is taken in.
    pub(super) input: Vec<u8>,
    /// Bytes of the peer's preface that are to come.
    pub(super) preface: usize,
    /// The peer's settings came.
    pub(super) greeted: bool,
    pub(super) decoder: Decoder,
    pub(super) encoder: Encoder,
    /// A block that is not whole.
    pub(super) block: Vec<u8>,
    pub(super) continuing: Option<Continuing>,
    /// Fields of heads that nobody takes, and of ones that have no stream yet.
    pub(super) scratch: Fields,

    pub(super) streams: Streams,
    /// The last number of a stream that the peer opened.
    pub(super) last_theirs: u32,
    /// The next number of a stream that this side opens.
    pub(super) next_ours: u32,
    /// Streams with a request that nobody has looked at.
    pub(super) opened: VecDeque<StreamKey>,
    /// Bytes of their heads.
    pub(super) opened_bytes: usize,
    /// Those of them that were reset.
    pub(super) reset_early: usize,
    /// Streams to which something happened.
    pub(super) touched: VecDeque<StreamKey>,
    /// Streams that wait for room of the connection's, the longest first.
    pub(super) blocked: VecDeque<StreamKey>,
    /// Numbers of streams that were given up here.
    pub(super) cut: VecDeque<u32>,
    /// One of these was forgotten.
    pub(super) cut_forgotten: bool,
    pub(super) broken: usize,
    pub(super) empty_frames: usize,

    pub(super) window: Window,
    pub(super) allowance: Allowance,
    /// What the peer said of itself.
    pub(super) their_window: u32,
    pub(super) their_streams: u32,

    pub(super) out: Vec<u8>,
    /// Bytes of these that were sent.
    pub(super) sent: usize,
    pub(super) goaway: GoAwayState,
    /// The last stream that the peer serves, and why it says so.
    pub(super) their_goaway: Option<(u32, Reason)>,
    pub(super) ended: Option<Http2Error>,
}

impl Connection {
    /// A connection on which nothing was sent or received. What is to be sent first is in
    /// [`out`](Self::out).
    pub fn new(role: Role, settings: Settings) -> Self {
        let mut out = Vec::new();
        let mut said = vec![
            (
                frames::INITIAL_WINDOW_SIZE,
                settings.stream_window.min(MOST),
            ),
            (frames::MAX_HEADER_LIST_SIZE, settings.head_bytes),
        ];
        match role {
            Role::Client => {
                out.extend_from_slice(frames::PREFACE);
                said.push((frames::ENABLE_PUSH, 0));
            }
            Role::Server => {
                said.push((frames::MAX_CONCURRENT_STREAMS, settings.streams));
                if settings.extended_connect {
                    said.push((frames::ENABLE_CONNECT_PROTOCOL, 1));
                }
            }
        }
        frames::settings(&said, &mut out);
        let window = settings.connection_window.clamp(frames::FIRST_WINDOW, MOST);
        if window > frames::FIRST_WINDOW {
            frames::window_update(0, window - frames::FIRST_WINDOW, &mut out);
        }
        Self {
            role,
            settings,
            input: Vec::new(),
            preface: match role {
                Role::Client => 0,
                Role::Server => frames::PREFACE.len(),
            },
            greeted: false,
            decoder: Decoder::default(),
            encoder: Encoder::default(),
            block: Vec::new(),
            continuing: None,
            scratch: Fields::default(),
            streams: Streams::default(),
            last_theirs: 0,
            next_ours: 1,
            opened: VecDeque::new(),
            opened_bytes: 0,
            reset_early: 0,
            touched: VecDeque::new(),
            blocked: VecDeque::new(),
            cut: VecDeque::new(),
            cut_forgotten: false,
            broken: 0,
            empty_frames: 0,
            window: Window::new(window),
            allowance: Allowance::new(frames::FIRST_WINDOW),
            their_window: frames::FIRST_WINDOW,
            their_streams: match role {
                Role::Client => settings.early_streams,
                Role::Server => 0,
            },
            out,
            sent: 0,
            goaway: GoAwayState::Unsaid,
            their_goaway: None,
            ended: None,
        }
    }

    /// The next stream to which something happened since it was told of: something came, there is
    /// room to send, it has failed. To be asked for until there is none.
    #[inline]
    pub fn touched(&mut self) -> Option<StreamKey> {
        loop {
            let key = self.touched.pop_front()?;
            if let Some(stream) = self.streams.get_mut(key)
                && std::mem::take(&mut stream.touched)
            {
                return Some(key);
            }
        }
    }

    /// The next stream with a request that nobody has looked at. Whoever takes it must
    /// [`release`](Self::release) it.
    pub fn opened(&mut self) -> Option<StreamKey> {
        loop {
            let key = self.opened.pop_front()?;
            let Some(stream) = self.streams.get_mut(key) else {
                self.reset_early = self.reset_early.saturating_sub(1);
                continue;
            };
            stream.held = true;
            self.opened_bytes = self.opened_bytes.saturating_sub(stream.head.memory());
            return Some(key);
        }
    }

    /// How many streams are open.
    pub fn open_streams(&self) -> usize {
        self.streams.count_open()
    }

    /// Why the connection is of no further use; `None`: it goes on. What is to be sent is still to
    /// be sent.
    pub fn ended(&self) -> Option<&Http2Error> {
        self.ended.as_ref()
    }

    /// Most streams that this client may have open at once, as far as the peer has said.
    pub fn most_streams(&self) -> usize {
        self.their_streams.min(self.settings.streams) as usize
    }

    /// Nothing more comes from the peer: a failure of the socket, or its end.
    pub fn close(&mut self, error: Http2Error) {
        let error = match (&self.their_goaway, error) {
            (Some((_, reason)), Http2Error::Closed) if *reason != Reason::NO_ERROR => {
                Http2Error::GoAway(*reason)
            }
            (_, error) => error,
        };
        self.end(error);
    }

    /// Ends the connection and with it all streams.
    pub(super) fn end(&mut self, error: Http2Error) {
        if self.ended.is_some() {
            return;
        }
        let of_stream = StreamError::from(&error);
        self.ended = Some(error);
        let open: Vec<StreamKey> = self.streams.open().collect();
        for key in open {
            self.fail(key, of_stream);
        }
    }

    /// Tells the peer that it broke a rule, and ends the connection.
    pub(super) fn break_off(&mut self, reason: Reason) {
        if self.ended.is_none() {
            frames::go_away(self.last_theirs, reason, &mut self.out);
            self.end(Http2Error::Protocol(reason));
        }
    }

    /// Tells the peer to open no more streams. What is on its way is served, and the connection
    /// ends with the last stream.
    pub fn shut_down(&mut self) {
        if self.goaway == GoAwayState::Unsaid && self.ended.is_none() {
            self.goaway = GoAwayState::Announced;
            frames::go_away(MOST, Reason::NO_ERROR, &mut self.out);
            frames::ping(0, super::LAST_PING, &mut self.out);
        }
    }

    /// The connection ends if both sides are done with it. To be called when streams had their
    /// turn.
    pub fn end_if_idle(&mut self) {
        let last_said = match self.role {
            Role::Server => {
                matches!(self.goaway, GoAwayState::Said(_)) || self.their_goaway.is_some()
            }
            Role::Client => self.their_goaway.is_some(),
        };
        if last_said && self.streams.count_open() == 0 && self.opened.is_empty() {
            let error = match self.their_goaway {
                Some((_, reason)) if reason != Reason::NO_ERROR => Http2Error::GoAway(reason),
                _ => Http2Error::Closed,
            };
            self.end(error);
        }
    }

    /// Something happened to a stream.
    #[inline]
    pub(super) fn touch(&mut self, key: StreamKey) {
        if let Some(stream) = self.streams.get_mut(key)
            && stream.held
            && !std::mem::replace(&mut stream.touched, true)
        {
            self.touched.push_back(key);
        }
    }

    /// A stream has failed. What of its body waits stays.
    pub(super) fn fail(&mut self, key: StreamKey, error: StreamError) {
        let Some(stream) = self.streams.get_mut(key) else {
            return;
        };
        if stream.failed.is_none() {
            stream.failed = Some(error);
            if !stream.held {
                let memory = stream.head.memory();
                let waiting = stream.waiting();
                self.opened_bytes = self.opened_bytes.saturating_sub(memory);
                self.give_back(waiting);
            }
            self.touch(key);
        }
        self.settle(key);
    }

    /// Looks whether a stream is over, and whether anybody needs it.
    pub(super) fn settle(&mut self, key: StreamKey) {
        let Some(stream) = self.streams.get(key) else {
            return;
        };
        if !stream.is_over() {
            return;
        }
        let held = stream.held;
        self.streams.close(key);
        if !held {
            self.streams.remove(key);
        }
    }

    /// Remembers a stream that was given up while the peer may still send on it.
    pub(super) fn remember_cut(&mut self, id: u32) {
        if self.cut.len() >= MOST_CUT {
            self.cut.pop_front();
            self.cut_forgotten = true;
        }
        self.cut.push_back(id);
    }

    /// Gives a stream up: the peer is told, and whoever has it is not told any more.
    pub fn reset(&mut self, key: StreamKey, reason: Reason) {
        let Some(stream) = self.streams.get_mut(key) else {
            return;
        };
        if stream.is_over() {
            return;
        }
        let (id, ended) = (stream.id, stream.incoming == Incoming::Ended);
        stream.failed = Some(StreamError::Reset(reason));
        frames::reset(id, reason, &mut self.out);
        if !ended {
            self.remember_cut(id);
        }
        self.settle(key);
    }

    /// Nobody is interested in a stream any more. If it is not over, the peer is told to send no
    /// more (`NO_ERROR`, if it got an answer), or that it gets no more (`CANCEL`).
    pub fn release(&mut self, key: StreamKey) {
        let Some(stream) = self.streams.get_mut(key) else {
            return;
        };
        let waiting = stream.waiting();
        stream.held = false;
        let answered = self.role == Role::Server && stream.outgoing == Outgoing::Ended;
        self.give_back(waiting);
        self.reset(
            key,
            if answered {
                Reason::NO_ERROR
            } else {
                Reason::CANCEL
            },
        );
        self.streams.remove(key);
        self.wake_blocked();
    }

    /// Bytes of bodies are out of the way: the peer may send more on the connection.
    pub(super) fn give_back(&mut self, bytes: usize) {
        if bytes > 0
            && let Some(more) = self.window.give_back(bytes)
        {
            frames::window_update(0, more, &mut self.out);
        }
    }
}
