//! Clients' connections of HTTP/2.
//!
//! ```text
//! client ── h2 ──▶ Server ──▶ a client's connection for each stream ──▶ pipeline
//! pipeline ──▶ a backend's connection ──▶ Backend ── h2 ──▶ backend
//! ```
//!
//! Between the edges everything is HTTP/1.1, so that there is one pipeline: a client's
//! stream is a client's connection that carries one request, and a backend's connection
//! stays one, with one stream at a time. Both live on the thread that accepted the client,
//! and have no descriptors but those of the connections that carry them.

use std::mem;
use std::time::Duration;

use rand::RngExt as _;
use wire::deadlines::NEVER;
use wire::http2::gateway::{HeadBudget, OpenStreams, ServerStream};
use wire::http2::{Accepted, Http2Error, Progress, Reason, Server, ServerSettings};
use wire::poller::Interest;
use wire::slab::Key;
use wire::stream::Stream;
use wire::timed::Timed;

use super::clients::Clients;
use super::context::Context;
use super::token;
use crate::http::pipeline::Client;
use crate::table::Nanos;

/// How long a client that was told that its connection ends may take to end it.
const FAREWELL: Duration = Duration::from_secs(5);

/// The clients' connections of HTTP/2 of one thread.
#[derive(Default)]
pub(super) struct Http2Clients {
    /// Those with more to read than one turn takes are looked at again.
    all: Timed<Box<Http2Client>>,
    /// Memory for the large heads of all clients.
    heads: HeadBudget,
    /// Requests of a turn; kept for its memory.
    accepted: Vec<Accepted>,
}

/// A client's connection of HTTP/2.
struct Http2Client {
    server: Server,
    streams: OpenStreams,
    client: Client,
    deadline: Nanos,
    /// It was told to open no more streams.
    shut: bool,
}

impl Http2Client {
    /// Begins on a connection that the poller watches as another one.
    fn new(
        stream: Stream,
        client: Client,
        token: u64,
        context: &Context,
    ) -> std::io::Result<Box<Self>> {
        let head_bytes = context.shared.settings.longest_head();
        let settings = ServerSettings {
            head_bytes: u32::try_from(head_bytes).unwrap_or(u32::MAX),
            extended_connect: true,
            ..ServerSettings::default()
        };
        let poller = &context.poller;
        poller.remove(&stream)?;
        let mut server = Server::start(stream, settings);
        server.watch(poller, token)?;
        poller.add(server.signal(), token, Interest::Read)?;
        Ok(Box::new(Self {
            streams: OpenStreams::of(&server),
            server,
            client,
            deadline: NEVER,
            shut: false,
        }))
    }
}

impl Http2Clients {
    /// When the first one without a stream runs out of patience: at once, if one has more to
    /// read.
    pub(super) fn next_deadline(&self) -> Nanos {
        self.all.next_deadline()
    }

    /// A client's handshake has agreed on HTTP/2.
    pub(super) fn begin(
        &mut self,
        (stream, client): (Stream, Client),
        clients: &mut Clients,
        context: &mut Context,
    ) {
        let key = self.all.values.reserve();
        match Http2Client::new(stream, client, key.token(token::HTTP2_CLIENT), context) {
            Ok(http2_client) => {
                self.all.values.put(key, http2_client);
                // TLS may hold bytes that no event tells of.
                self.turn(key, true, clients, context);
            }
            Err(_) => {
                context.counters.failed_clients.increment();
                self.forget(key, clients, context);
            }
        }
    }

    /// Something happened to a connection.
    pub(super) fn turn(
        &mut self,
        key: Key,
        mut readable: bool,
        clients: &mut Clients,
        context: &mut Context,
    ) {
        let Some(mut http2_client) = self.all.values.take(key) else {
            return;
        };
        let driven = loop {
            let mut accepted = mem::take(&mut self.accepted);
            let driven = http2_client.server.drive(readable, &mut accepted);
            readable = false;
            for request in accepted.drain(..) {
                self.welcome(request, &http2_client, clients, context);
            }
            self.accepted = accepted;
            if driven.is_err() || !http2_client.server.is_woken() {
                break driven;
            }
        };
        let watched = http2_client.server.rewatch(&context.poller);
        match driven {
            Ok(progress) if watched.is_ok() => {
                if progress == Progress::More {
                    self.all.look_again(key);
                }
                self.arm(key, &mut http2_client, context);
                self.all.values.put(key, http2_client);
            }
            driven => {
                if matches!(driven, Err(Http2Error::Protocol(_))) {
                    context.counters.malformed.increment();
                }
                self.forget(key, clients, context);
            }
        }
    }

    /// A stream of a client becomes a connection, or is refused.
    fn welcome(
        &self,
        request: Accepted,
        http2_client: &Http2Client,
        clients: &mut Clients,
        context: &mut Context,
    ) {
        if !clients.have_room() {
            context.counters.full.increment();
            context.counters.refused_streams.increment();
            request.refuse(Reason::REFUSED_STREAM);
            return;
        }
        let key = context.random.random();
        match ServerStream::new(request, &self.heads, &http2_client.streams, key) {
            Some(stream) => {
                let stream = Stream::Carried(Box::new(stream));
                clients.take_in(stream, http2_client.client.clone(), context);
            }
            None => context.counters.refused_streams.increment(),
        }
    }

    /// Without a stream, patience has an end.
    fn arm(&mut self, key: Key, http2_client: &mut Http2Client, context: &Context) {
        let idle = http2_client.streams.is_empty();
        if idle != (http2_client.deadline == NEVER) {
            return;
        }
        http2_client.deadline = match (idle, http2_client.shut) {
            (true, false) => context.clock.after(context.shared.settings.idle_timeout),
            (true, true) => context.clock.after(FAREWELL),
            (false, _) => NEVER,
        };
        self.all.deadlines.set(key.index(), http2_client.deadline);
    }

    fn forget(&mut self, key: Key, clients: &mut Clients, context: &Context) {
        self.all.release(key);
        clients.front_left(context);
    }

    /// Ends the connections without a stream whose patience is over.
    pub(super) fn expire(&mut self, clients: &mut Clients, context: &mut Context) {
        while let Some(key) = self.all.late(context.clock.now()) {
            self.shut_down(key, clients, context);
        }
    }

    /// Lets no client open more streams.
    pub(super) fn shut_all_down(&mut self, clients: &mut Clients, context: &mut Context) {
        for key in self.all.keys() {
            self.shut_down(key, clients, context);
        }
    }

    fn shut_down(&mut self, key: Key, clients: &mut Clients, context: &mut Context) {
        let Some(http2_client) = self.all.values.get_mut(key) else {
            return;
        };
        if http2_client.shut {
            // It was told, and still holds on.
            self.forget(key, clients, context);
            return;
        }
        (http2_client.shut, http2_client.deadline) = (true, NEVER);
        http2_client.server.shut_down();
        self.turn(key, false, clients, context);
    }

    /// Another look at connections that had more to read.
    pub(super) fn revisit(&mut self, clients: &mut Clients, context: &mut Context) {
        for key in self.all.again() {
            self.turn(key, true, clients, context);
        }
    }

    /// The end: what is on its way is cut off.
    pub(super) fn give_up(&mut self, clients: &mut Clients, context: &Context) {
        for key in self.all.keys() {
            self.forget(key, clients, context);
        }
    }
}
