//! HTTP/2 at both edges.
//!
//! ```text
//! client ── h2 ──▶ Server ──▶ a client's connection for each stream ──▶ pipeline
//! pipeline ──▶ a link ──▶ Backend ── h2 ──▶ backend
//! ```
//!
//! Between the edges everything is HTTP/1.1, so that there is one pipeline: a client's
//! stream is a client's connection that carries one request, and a backend's connection is
//! one of its links, with one stream at a time. Both live on the thread that accepted the
//! client, and have no descriptors but those of the connections that carry them.

use std::mem;
use std::time::Duration;

use rustix::io::Errno;
use wire::http2::gateway::{Backend, HeadBudget, OpenStreams, ServerStream};
use wire::http2::{Accepted, ClientSettings, Http2Error, Progress, Server, ServerSettings};
use wire::poller::Interest;
use wire::slab::{Key, Slab};
use wire::stream::Stream;

use super::session::{Link, Session};
use super::token;
use super::worker::{RUNNING, Worker};
use crate::http::pipeline::Client;
use crate::table::Nanos;
use wire::deadlines::{Deadlines, NEVER};

/// How long a client that was told that its connection ends may take to end it.
const FAREWELL: Duration = Duration::from_secs(5);

/// The connections of HTTP/2 of one thread.
#[derive(Default)]
pub(super) struct Http2 {
    fronts: Slab<Box<Front>>,
    backends: Slab<Box<Backend>>,
    deadlines: Deadlines,
    /// Memory for the large heads of all clients.
    heads: HeadBudget,
    /// Connections with more to read than one turn takes.
    more: Vec<u64>,
    /// Requests of a turn; kept for its memory.
    accepted: Vec<Accepted>,
}

/// A client's connection of HTTP/2.
struct Front {
    server: Server,
    streams: OpenStreams,
    client: Client,
    deadline: Nanos,
    /// It was told to open no more streams.
    shut: bool,
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
        let mut server = Server::start(stream, settings);
        let key = self.http2.fronts.reserve();
        let token = key.token(token::FRONT);
        let watched = watched_no_more
            .and_then(|()| server.watch(&self.poller, token))
            .and_then(|()| self.poller.add(server.signal(), token, Interest::Read));
        if watched.is_err() {
            self.http2.fronts.release(key);
            self.counters.open_clients.decrement();
            self.counters.failed_clients.increment();
            return;
        }
        let streams = OpenStreams::of(&server);
        let front = Box::new(Front {
            server,
            streams,
            client,
            deadline: NEVER,
            shut: false,
        });
        self.http2.fronts.put(key, front);
        // TLS may hold bytes that no event tells of.
        self.turn_front(key, true);
    }

    /// Something happened to a client's connection of HTTP/2.
    pub(super) fn turn_front(&mut self, key: Key, mut readable: bool) {
        let Some(mut front) = self.http2.fronts.take(key) else {
            return;
        };
        let driven = loop {
            let mut accepted = mem::take(&mut self.http2.accepted);
            let driven = front.server.drive(readable, &mut accepted);
            readable = false;
            for request in accepted.drain(..) {
                self.welcome_stream(request, &front);
            }
            self.http2.accepted = accepted;
            if driven.is_err() || !front.server.is_woken() {
                break driven;
            }
        };
        let watched = front.server.rewatch(&self.poller);
        match driven {
            Ok(progress) if watched.is_ok() => {
                if progress == Progress::More {
                    self.http2.more.push(key.token(token::FRONT));
                }
                self.arm_front(key, &mut front);
                self.http2.fronts.put(key, front);
            }
            driven => {
                if matches!(driven, Err(Http2Error::Protocol(_))) {
                    self.counters.malformed.increment();
                }
                self.forget_front(key);
            }
        }
    }

    /// A stream of a client becomes a connection, or is refused.
    fn welcome_stream(&mut self, (request, mut respond): Accepted, front: &Front) {
        if self.clients.taken() + self.http2.fronts() >= self.most_clients {
            self.counters.full.increment();
            self.counters.refused_streams.increment();
            respond.send_reset(wire::http2::Reason::REFUSED_STREAM);
            return;
        }
        match ServerStream::new((request, respond), &self.http2.heads, &front.streams) {
            Some(stream) => {
                self.take_in(Stream::Carried(Box::new(stream)), front.client.clone());
            }
            None => self.counters.refused_streams.increment(),
        }
    }

    /// Without a stream, patience has an end.
    fn arm_front(&mut self, key: Key, front: &mut Front) {
        let idle = front.streams.is_empty();
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
        front.server.shut_down();
        self.http2.fronts.put(key, front);
        self.turn_front(key, false);
    }

    /// Another look at connections that had more to read.
    pub(super) fn revisit_http2(&mut self) {
        for token in mem::take(&mut self.http2.more) {
            match Key::of_token(token) {
                (token::FRONT, key) => self.turn_front(key, true),
                (token::BACK, key) => self.turn_back(key, true),
                _ => {}
            }
        }
    }

    /// A backend's handshake has agreed on HTTP/2: the link goes on over streams.
    ///
    /// # Errors
    /// The connection broke, or cannot be watched. The link is of no use.
    pub(super) fn begin_back(&mut self, link: &mut Link) -> Result<(), Errno> {
        link.local = link.local();
        let key = self.http2.backends.reserve();
        let begun = self.exchange_stream(link, key);
        if begun.is_err() {
            self.http2.backends.release(key);
        }
        begun.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }

    fn exchange_stream(&mut self, link: &mut Link, key: Key) -> std::io::Result<()> {
        self.poller.remove(&link.stream)?;
        let settings = ClientSettings {
            window: 1024 * 1024,
            send_buffer: 64 * 1024,
            head_bytes: u32::try_from(self.shared.settings.response_head_bytes).unwrap_or(u32::MAX),
            read_budget: 256 * 1024,
            ..ClientSettings::default()
        };
        // The link is a whole one in any case: should this fail, it is closed as others are.
        let own = link
            .stream
            .socket()
            .map(|socket| socket.try_clone_to_owned());
        let own = own.unwrap_or_else(|| Err(Errno::BADF.into()))?;
        let stream = mem::replace(&mut link.stream, Stream::Plain(own));
        let token = key.token(token::BACK);
        let (backend, stream) = Backend::start(stream, settings, &self.poller, token)?;
        link.stream = Stream::Carried(Box::new(stream));
        let token = link.key.token(token::BACKEND);
        self.poller.add(&link.stream, token, Interest::Read)?;
        link.interest = Interest::Read;
        self.http2.backends.put(key, Box::new(backend));
        self.turn_back(key, true);
        Ok(())
    }

    /// Something happened to a backend's connection of HTTP/2. If it has ended, so has its
    /// link.
    pub(super) fn turn_back(&mut self, key: Key, readable: bool) {
        let Some(mut backend) = self.http2.backends.take(key) else {
            return;
        };
        match backend.drive(readable, &self.poller) {
            Ok(progress) => {
                if progress == Progress::More {
                    self.http2.more.push(key.token(token::BACK));
                }
                self.http2.backends.put(key, backend);
            }
            Err(_) => self.http2.backends.release(key),
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
