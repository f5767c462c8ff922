//! One connection, and the one exchange that it carries at a time.

use lab_load::request::Visit;
use wire::http2::StreamKey;
use wire::stream::Stream;

use super::asking::Delay;
use super::streams::Session;
use super::talk::{Kept, Talk};

/// How far a connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    /// There is none.
    Closed,
    /// TCP has begun.
    Connecting,
    /// TLS has begun.
    Handshaking,
    /// The upgrade to WebSocket was asked for.
    Upgrading,
    /// It can carry requests.
    Open,
}

/// What a connection is used for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Use {
    /// Nothing: it waits for an arrival.
    #[default]
    Free,
    /// A request that will be sent as soon as the connection is open.
    Waiting,
    /// A request was sent, or a part of it.
    Asked,
    /// Its user pauses.
    Thinking,
}

/// One connection. See the module.
pub(super) struct Connection {
    pub(super) link: Link,
    pub(super) stream: Option<Stream>,
    pub(super) talk: Talk,
    /// Instead of stream and conversation, where a connection carries several
    /// exchanges; it stands at the first of their places.
    pub(super) session: Option<Box<Session>>,
    /// Tells events of this stream from those of an earlier one in the same place.
    pub(super) generation: u32,
    /// Requests that the stream has carried.
    pub(super) carried: u64,
    /// Bytes of the request that the kernel has not taken yet.
    pub(super) unsent: Vec<u8>,
    /// Whether the poller was asked to tell when the socket can be written.
    pub(super) writing: bool,
    /// Bytes received that do not yet make sense by themselves.
    pub(super) unread: Vec<u8>,
    /// Whether it stands in the list of free connections. It may stand there when it
    /// is not free any more.
    pub(super) listed: bool,
    /// The same for the list of spare ones.
    pub(super) saved: bool,
    pub(super) exchange: Exchange,
}

/// A request and its answer.
#[derive(Default)]
pub(super) struct Exchange {
    pub(super) used: Use,
    /// The journey that the request is part of.
    pub(super) visit: Option<Visit>,
    /// Its kind, as an index.
    pub(super) kind: usize,
    /// When it was meant to be sent, in nanoseconds from the start of the segment.
    pub(super) intended: u64,
    /// When it was sent.
    pub(super) sent: u64,
    /// Whether it was sent before, on a connection that the target was closing.
    pub(super) again: bool,
    /// Whether it is counted as sent.
    pub(super) counted: bool,
    /// Why it was sent later than it was due, if it was.
    pub(super) delay: Delay,
    /// How late it was sent by the thread's own fault, in nanoseconds.
    pub(super) late: u64,
    /// How late any request was, then, that the target had not caught up with.
    pub(super) burst: u64,
    /// Whether something of the answer has come in.
    pub(super) answering: bool,
    pub(super) kept: Kept,
    /// Its stream, where a connection carries several.
    pub(super) stream: Option<StreamKey>,
}

impl Connection {
    pub(super) fn closed(talk: Talk) -> Self {
        Self {
            link: Link::Closed,
            stream: None,
            talk,
            session: None,
            generation: 0,
            carried: 0,
            unsent: Vec::new(),
            writing: false,
            unread: Vec::new(),
            listed: false,
            saved: false,
            exchange: Exchange::default(),
        }
    }

    /// What the poller tells its events by.
    pub(super) fn token(&self, place: u32) -> u64 {
        u64::from(self.generation) << 32 | u64::from(place)
    }

    /// Lets the stream go, which closes it.
    pub(super) fn close(&mut self) {
        self.stream = None;
        self.session = None;
        self.link = Link::Closed;
        self.generation = self.generation.wrapping_add(1);
        self.carried = 0;
        self.writing = false;
        // What a large answer made of these is given back.
        self.unsent = Vec::new();
        self.unread = Vec::new();
    }
}
