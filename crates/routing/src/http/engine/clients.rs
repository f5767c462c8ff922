//! The clients of one thread: who there are, when each runs out of patience, and which ones
//! are to be looked at again.

use std::mem;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;

use wire::poller::{Event, Interest};
use wire::slab::Key;
use wire::stream::Stream;
use wire::timed::Timed;

use super::backends::Backends;
use super::client::{ClientConnection, Found};
use super::context::{Context, GRAIN};
use super::request::{ActiveRequest, Flow, Requests, ThreadResources};
use super::token;
use crate::http::pipeline::{Client, TlsFacts};
use crate::table::Nanos;

/// What the connections of clients work with.
pub(super) struct Parts {
    pub(super) context: Context,
    pub(super) backends: Backends,
    pub(super) requests: Requests,
}

/// A connection that was accepted.
pub(super) struct Arrival {
    pub(super) socket: OwnedFd,
    pub(super) peer: SocketAddr,
    /// Whether its client speaks TLS.
    pub(super) tls: bool,
}

/// See the module.
pub(super) struct Clients {
    /// Those with bytes that the poller does not know of (decrypted already) are looked at
    /// again.
    all: Timed<Box<Session>>,
    /// Connections of HTTP/2, which are none of `all`: their streams are.
    http2_clients: usize,
    /// Most connections, those of HTTP/2 included.
    most: usize,
    /// Some have gone since [`Clients::have_gone`] was asked.
    gone: bool,
}

impl Clients {
    pub(super) fn new(most: usize) -> Self {
        Self {
            all: Timed::with_grain(GRAIN),
            http2_clients: 0,
            most,
            gone: false,
        }
    }

    /// Whether there may be one more.
    pub(super) fn have_room(&self) -> bool {
        self.all.values.taken() + self.http2_clients < self.most
    }

    /// Whether some have gone since this was asked.
    pub(super) fn have_gone(&mut self) -> bool {
        mem::take(&mut self.gone)
    }

    /// When the first one runs out of patience: at once, if one is to be looked at again.
    pub(super) fn next_deadline(&self) -> Nanos {
        self.all.next_deadline()
    }

    /// A client that was accepted.
    pub(super) fn welcome(&mut self, arrival: Arrival, context: &mut Context) {
        let Arrival { socket, peer, tls } = arrival;
        let begins = tls && !context.shared.settings.proxy_protocol;
        let Ok(stream) = context.shared.tls.with_client(begins, socket) else {
            context.counters.failed_clients.increment();
            return;
        };
        if let Some(key) = self.add(&stream, context) {
            context.counters.accepted.increment();
            let client = ClientConnection::accepted(key, stream, peer, tls, context);
            let request = None;
            self.put(Box::new(Session { client, request }), context);
        }
    }

    /// A connection that does not come over the network, but from another part of this
    /// thread.
    pub(super) fn take_in(&mut self, stream: Stream, client: Client, context: &mut Context) {
        if let Some(key) = self.add(&stream, context) {
            let client = ClientConnection::internal(key, stream, client, context);
            let request = None;
            self.put(Box::new(Session { client, request }), context);
        }
    }

    /// A place for a connection; `None`: it cannot be watched.
    fn add(&mut self, stream: &Stream, context: &Context) -> Option<Key> {
        let (kind, poller) = (token::CLIENT, &context.poller);
        let key = self.all.watch(stream, kind, Interest::Read, poller)?;
        context.counters.open_clients.increment();
        Some(key)
    }

    /// Lets `act` work on a client, and does what comes of it. Gives a connection that goes
    /// on with HTTP/2: it stays one of the open clients, beside those that its streams
    /// become, until [`Clients::front_left`].
    pub(super) fn work(
        &mut self,
        key: Key,
        parts: &mut Parts,
        act: impl FnOnce(&mut Session, &mut Parts),
    ) -> Option<(Stream, Client)> {
        let mut session = self.all.values.take(key)?;
        act(&mut session, parts);
        session.settle(parts);
        let context = &mut parts.context;
        if session.client.speaks_http2() {
            self.http2_clients += 1;
            return Some(self.remove(session, context));
        }
        self.put(session, context);
        while let Some(socket) = parts.backends.connected_to_itself() {
            // There is one at most for each of the others that wait for it, since what comes
            // over it is signed, and what is signed goes to no further route service: no
            // bound of clients counts here. Nothing leaves the process: it counts as
            // encrypted, as gorouter's own listener is.
            let itself = SocketAddr::from(([127, 0, 0, 1], 0));
            let client = Client::new(itself, Some(TlsFacts::default()));
            self.take_in(Stream::Plain(socket), client, context);
        }
        None
    }

    /// Waits for what a connection needs, or forgets it if it was closed.
    fn put(&mut self, mut session: Box<Session>, context: &mut Context) {
        let key = session.client.key();
        if session.watch(context) {
            self.all.look_again(key);
        }
        if session.client.is_closed() {
            // Counted before the socket is closed: who sees the end may look at the count.
            self.left(context);
            self.remove(session, context);
        } else {
            let place = key.index();
            self.all.deadlines.set(place, session.deadline());
            self.all.values.put(key, session);
        }
    }

    fn remove(&mut self, session: Box<Session>, context: &mut Context) -> (Stream, Client) {
        self.all.release(session.client.key());
        session.client.into_parts(&mut context.buffers)
    }

    /// One with HTTP/2 has gone.
    pub(super) fn front_left(&mut self, context: &Context) {
        self.http2_clients -= 1;
        self.left(context);
    }

    fn left(&mut self, context: &Context) {
        context.counters.open_clients.decrement();
        self.gone = true;
    }

    /// Those that are to be looked at again.
    pub(super) fn again(&mut self) -> Vec<Key> {
        self.all.again()
    }

    /// One whose patience may be over.
    pub(super) fn expired(&mut self, now: Nanos) -> Option<Key> {
        self.all.late(now)
    }

    /// All that there are now.
    pub(super) fn keys(&self) -> Vec<Key> {
        self.all.keys()
    }
}

/// A client's connection with the request that it carries: what happens to either side is
/// handed to its part.
pub(super) struct Session {
    client: ClientConnection,
    request: Option<Box<ActiveRequest>>,
}

impl Session {
    /// When patience ends.
    fn deadline(&self) -> Nanos {
        let request = self.request.as_ref();
        request.map_or(self.client.deadline(), |it| it.deadline())
    }

    /// Whether bytes of the client have a place now.
    fn wants_bytes(&self) -> bool {
        match &self.request {
            Some(request) => request.wants_bytes(&self.client),
            None => self.client.wants_bytes(),
        }
    }

    /// Watches for what either side needs, where that changed. Whether one has bytes that
    /// the poller does not know of.
    fn watch(&mut self, context: &Context) -> bool {
        let (wants, took_all) = (self.wants_bytes(), self.client.took_all());
        self.client.watch(wants, context);
        let request = self.request.as_mut();
        let more = request.is_some_and(|it| it.watch(took_all, &context.poller));
        more || (wants && self.client.holds_bytes())
    }

    /// Something happened to the client's socket.
    pub(super) fn client_event(&mut self, event: Event, parts: &mut Parts) {
        if self.client.is_opening() {
            self.client.open(&mut parts.context);
        } else if self.wants_bytes() {
            if event.readable {
                self.read_client(parts);
            }
        } else if event.broken && self.client.took_all() {
            // Neither reading nor writing would find out.
            self.give_up(parts);
        }
    }

    /// Something happened to the connection to the backend.
    pub(super) fn backend_event(&mut self, event: Event, parts: &mut Parts) {
        self.carry(parts, |request, resources| request.event(event, resources));
    }

    /// Another look at bytes that the poller cannot see.
    pub(super) fn revisit(&mut self, parts: &mut Parts) {
        if !self.client.is_opening() && self.client.holds_bytes() && self.wants_bytes() {
            self.read_client(parts);
        }
        self.carry(parts, ActiveRequest::revisit);
    }

    /// A name was resolved that a request may wait for.
    pub(super) fn name_resolved(&mut self, parts: &mut Parts) {
        self.carry(parts, ActiveRequest::name_resolved);
    }

    /// Patience may be over.
    pub(super) fn expired(&mut self, parts: &mut Parts) {
        if self.deadline() > parts.context.clock.now() {
            return;
        }
        match self.request {
            Some(_) => _ = self.carry(parts, ActiveRequest::expired),
            None => self.client.expired(&mut parts.context),
        }
    }

    /// The engine drains: closes the connection if it carries nothing.
    pub(super) fn drain(&mut self, _: &mut Parts) {
        self.client.close_if_idle();
    }

    /// The client went away: what it carries is of no use to anybody.
    pub(super) fn give_up(&mut self, parts: &mut Parts) {
        match self.request {
            Some(_) => _ = self.carry(parts, ActiveRequest::give_up),
            None => self.client.close(),
        }
    }

    /// Takes in bytes of the client, once.
    fn read_client(&mut self, parts: &mut Parts) {
        self.client.receive(&mut parts.context);
        if self.client.has_ended() {
            self.carry(parts, ActiveRequest::client_ended);
        }
    }

    /// Does everything that can be done without waiting, and sends what there is to send.
    fn settle(&mut self, parts: &mut Parts) {
        loop {
            let waits = match self.request {
                Some(_) => self.carry(parts, ActiveRequest::carry),
                None => !self.client.settle(&mut parts.context) || !self.next_request(parts),
            };
            if waits {
                break;
            }
        }
    }

    /// Begins the next request if its head is there. Whether there is more to be done.
    fn next_request(&mut self, parts: &mut Parts) -> bool {
        let mut request = parts.requests.take();
        let found = self.client.head(request.head_mut(), &mut parts.context);
        if found == Found::Head {
            self.request = Some(request);
            self.carry(parts, ActiveRequest::begin);
        } else {
            parts.requests.spare(request, &mut parts.context.buffers);
        }
        found != Found::Part
    }

    /// Moves the request on, if there is one: whether there still is.
    fn carry(
        &mut self,
        parts: &mut Parts,
        act: impl FnOnce(&mut ActiveRequest, &mut ThreadResources<'_>) -> Flow,
    ) -> bool {
        let Some(request) = &mut self.request else {
            return false;
        };
        let mut resources = ThreadResources {
            client: &mut self.client,
            context: &mut parts.context,
            backends: &mut parts.backends,
        };
        if let ControlFlow::Continue(()) = act(request, &mut resources) {
            return true;
        }
        request.leave_backend(resources.backends, resources.context);
        if let Some(request) = self.request.take() {
            let client = self.client.client();
            parts.requests.end(request, client, &mut parts.context);
        }
        false
    }
}
