//! HTTP/2 at both edges.
//!
//! ```text
//! client ── h2 ──▶ Front ──▶ a client's connection for each stream ──▶ pipeline
//! pipeline ──▶ a link ──▶ Back ── h2 ──▶ backend
//! ```
//!
//! Between the edges everything is HTTP/1.1, so that there is one pipeline: a client's
//! stream is a client's connection that carries one request, and a backend's connection is
//! one of its links, with one stream at a time. Both live on the thread that accepted the
//! client; their ends are pairs of sockets, so that each side waits for the other as it
//! does for any peer.

use std::mem;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use wire::http2::gateway::{Back, Front, HeadBudget};
use wire::http2::{ClientSettings, Http2Error, Progress, ServerSettings};
use wire::poller::Interest;
use wire::slab::{Key, Slab};
use wire::socket;
use wire::stream::Stream;

use super::session::{Link, Session};
use super::token::Token;
use super::worker::{RUNNING, Worker};
use crate::http::pipeline::Client;
use crate::table::Nanos;
use wire::deadlines::{Deadlines, NEVER};

/// How long a client that was told that its connection ends may take to end it.
const FAREWELL: Duration = Duration::from_secs(5);

/// The connections of HTTP/2 of one thread.
#[derive(Default)]
pub(super) struct Http2 {
    fronts: Slab<Box<ClientFront>>,
    backs: Slab<Box<Back>>,
    deadlines: Deadlines,
    /// Memory for the large heads of all clients.
    heads: HeadBudget,
    /// Connections with more to read than one turn takes.
    more: Vec<Token>,
    /// New connections of a turn; kept for its memory.
    opened: Vec<OwnedFd>,
}

/// A client's connection of HTTP/2.
struct ClientFront {
    front: Front,
    client: Client,
    deadline: Nanos,
    /// It was told to open no more streams.
    shut: bool,
    /// Streams that were refused, as far as they were counted.
    refused: u64,
}

impl Http2 {
    /// Connections of clients.
    pub(super) fn fronts(&self) -> usize {
        self.fronts.taken()
    }

    /// Whether some have more to read.
    pub(super) fn has_more(&self) -> bool {
        !self.more.is_empty()
    }

    /// When the first one without a stream runs out of patience.
    pub(super) fn next_deadline(&self) -> Nanos {
        self.deadlines.next()
    }
}

impl Worker {
    /// A client's handshake has agreed on HTTP/2.
    pub(super) fn begin_front(&mut self, session: Box<Session>) {
        // It stays one of the open clients, beside those that its streams become.
        self.client_deadlines.set(session.key.index(), NEVER);
        self.clients.release(session.key);
        let Session { stream, client, .. } = *session;
        let head_bytes = self.shared.settings.longest_head();
        let settings = ServerSettings {
            head_bytes: u32::try_from(head_bytes).unwrap_or(u32::MAX),
            ..ServerSettings::default()
        };
        let watched_no_more = self.poller.remove(&stream);
        let front = match watched_no_more
            .and_then(|()| Front::start(stream, settings, &self.http2.heads))
        {
            Ok(front) => front,
            Err(_) => {
                self.counters.open_clients.decrement();
                self.counters.failed_clients.increment();
                return;
            }
        };
        let key = self.http2.fronts.reserve();
        let token = Token::Front(key).number();
        if self.poller.add(&front, token, Interest::Read).is_err() {
            self.http2.fronts.release(key);
            self.counters.open_clients.decrement();
            self.counters.failed_clients.increment();
            return;
        }
        let deadline = NEVER;
        let front = Box::new(ClientFront {
            front,
            client,
            deadline,
            shut: false,
            refused: 0,
        });
        self.http2.fronts.put(key, front);
        self.turn_front(key);
    }

    /// Something happened to a client's connection of HTTP/2.
    pub(super) fn turn_front(&mut self, key: Key) {
        let Some(mut front) = self.http2.fronts.take(key) else {
            return;
        };
        let mut opened = mem::take(&mut self.http2.opened);
        let turned = front.front.turn(&mut opened);
        for end in opened.drain(..) {
            self.welcome_stream(end, &front.client);
        }
        self.http2.opened = opened;
        let refused = front.front.refused();
        if refused > front.refused {
            self.counters.refused_streams.add(refused - front.refused);
            front.refused = refused;
        }
        match turned {
            Ok(progress) => {
                if progress == Progress::More {
                    self.http2.more.push(Token::Front(key));
                }
                self.arm_front(key, &mut front);
                self.http2.fronts.put(key, front);
            }
            Err(error) => {
                if matches!(error, Http2Error::Protocol(_)) {
                    self.counters.malformed.increment();
                }
                self.forget_front(key);
            }
        }
    }

    /// A stream of a client became a connection. It is refused by dropping it.
    fn welcome_stream(&mut self, end: OwnedFd, client: &Client) {
        if self.clients.taken() + self.http2.fronts() >= self.most_clients {
            self.counters.full.increment();
            return;
        }
        self.take_in(end, client.clone());
    }

    /// Without a stream, patience has an end.
    fn arm_front(&mut self, key: Key, front: &mut ClientFront) {
        let idle = front.front.streams() == 0;
        if idle != (front.deadline == NEVER) {
            return;
        }
        front.deadline = match (idle, front.shut) {
            (true, false) => self.after(self.shared.settings.idle_timeout),
            (true, true) => self.after(FAREWELL),
            (false, _) => NEVER,
        };
        self.http2.deadlines.set(key.index(), front.deadline);
    }

    fn forget_front(&mut self, key: Key) {
        self.http2.deadlines.set(key.index(), NEVER);
        self.http2.fronts.release(key);
        self.counters.open_clients.decrement();
        if self.state == RUNNING {
            self.resume_accepting();
        }
    }

    /// Ends the connections without a stream whose patience is over.
    pub(super) fn expire_fronts(&mut self) {
        while let Some((place, _)) = self.http2.deadlines.expired(self.now) {
            if let Some(key) = self.http2.fronts.key_at(place as usize) {
                self.shut_front_down(key);
            }
        }
    }

    /// Lets no client of HTTP/2 open more streams.
    pub(super) fn shut_fronts_down(&mut self) {
        for index in 0..self.http2.fronts.places() {
            if let Some(key) = self.http2.fronts.key_at(index) {
                self.shut_front_down(key);
            }
        }
    }

    fn shut_front_down(&mut self, key: Key) {
        let Some(mut front) = self.http2.fronts.take(key) else {
            return;
        };
        if front.shut {
            // It was told, and still holds on.
            self.forget_front(key);
            return;
        }
        (front.shut, front.deadline) = (true, NEVER);
        front.front.shut_down();
        self.http2.fronts.put(key, front);
        self.turn_front(key);
    }

    /// Another look at connections that had more to read.
    pub(super) fn revisit_http2(&mut self) {
        for token in mem::take(&mut self.http2.more) {
            match token {
                Token::Front(key) => self.turn_front(key),
                Token::Back(key) => self.turn_back(key),
                _ => {}
            }
        }
    }

    /// A backend's handshake has agreed on HTTP/2: the link goes on over a pair of sockets.
    ///
    /// # Errors
    /// No descriptor is left. The link is of no use.
    pub(super) fn begin_back(&mut self, link: &mut Link) -> Result<(), Errno> {
        let (near, far) = socket::pair()?;
        link.local = link.local();
        let far = Stream::Plain(far);
        let token = Token::Backend(link.key).number();
        let watched = self
            .poller
            .remove(&link.stream)
            .and_then(|()| self.poller.add(&far, token, Interest::Read));
        link.interest = Interest::Read;
        let stream = mem::replace(&mut link.stream, far);
        let settings = ClientSettings {
            head_bytes: u32::try_from(self.shared.settings.response_head_bytes).unwrap_or(u32::MAX),
            ..ClientSettings::default()
        };
        let back = watched.and_then(|()| Back::start(stream, near, settings));
        let back = back.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let key = self.http2.backs.reserve();
        let token = Token::Back(key).number();
        if self.poller.add(&back, token, Interest::Read).is_err() {
            self.http2.backs.release(key);
            return Err(Errno::NOBUFS);
        }
        self.http2.backs.put(key, Box::new(back));
        self.turn_back(key);
        Ok(())
    }

    /// Something happened to a backend's connection of HTTP/2. If it has ended, its link
    /// sees the end of its pair.
    pub(super) fn turn_back(&mut self, key: Key) {
        let Some(mut back) = self.http2.backs.take(key) else {
            return;
        };
        match back.turn() {
            Ok(progress) => {
                if progress == Progress::More {
                    self.http2.more.push(Token::Back(key));
                }
                self.http2.backs.put(key, back);
            }
            Err(_) => self.http2.backs.release(key),
        }
    }

    /// The end: what is on its way is cut off.
    pub(super) fn give_up_http2(&mut self) {
        for index in 0..self.http2.fronts.places() {
            if let Some(key) = self.http2.fronts.key_at(index) {
                self.http2.fronts.take(key);
                self.forget_front(key);
            }
        }
    }
}
