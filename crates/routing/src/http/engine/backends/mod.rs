//! The backends of one thread: connections that carry requests or wait for them in pools,
//! and how new ones are made.

mod connection;
mod dial;
mod http2;
mod pools;

use std::mem;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use wire::http2::gateway::Backend as Http2Backend;
use wire::poller::Interest;
use wire::slab::Key;
use wire::stream::Stream;
use wire::timed::Timed;

pub(super) use self::connection::{BackendConnection, ConnectionState};
pub(super) use self::dial::errno_text;
use self::pools::Pools;
use super::context::{Context, GRAIN};
use super::token;
use crate::http::settings::ExtraField;
use crate::table::{Endpoint, Nanos};

/// See the module.
pub(super) struct Backends {
    /// Idle connections are closed at their deadlines.
    slots: Timed<BackendSlot>,
    pools: Pools,
    /// Those with more to read than one turn takes are looked at again.
    http2: Timed<Box<Http2Backend>>,
    /// Clients' connections whose request waits for a name to be resolved.
    resolving: Vec<Key>,
    /// The other ends of connections to the router itself, which nobody has taken in yet.
    to_itself: Vec<OwnedFd>,
}

/// Where a connection to a backend is.
enum BackendSlot {
    /// In its pool.
    Idle(Box<BackendConnection>),
    /// With the client's connection whose request it carries.
    With(Key),
}

impl Backends {
    pub(super) fn new() -> Self {
        Self {
            slots: Timed::with_grain(GRAIN),
            pools: Pools::default(),
            http2: Timed::default(),
            resolving: Vec::new(),
            to_itself: Vec::new(),
        }
    }

    /// When [`Backends::expire`] has something to do, or [`Backends::revisit`].
    pub(super) fn next_deadline(&self) -> Nanos {
        self.slots.next_deadline().min(self.http2.next_deadline())
    }

    /// Something happened to a connection: gives the client's connection whose request it
    /// carries. An idle one was closed by its backend, or breaks the protocol.
    pub(super) fn event(&mut self, key: Key, context: &mut Context) -> Option<Key> {
        match self.slots.values.get_mut(key)? {
            BackendSlot::With(client) => Some(*client),
            BackendSlot::Idle(connection) => {
                // Of streams it may be told for nothing.
                if connection.stream.socket().is_some() || connection.is_stale() {
                    self.drop_idle(key, context);
                }
                None
            }
        }
    }

    /// Takes an idle connection to the endpoint. `careful`: asks the kernel whether it is
    /// still open, since the request cannot be sent twice.
    pub(super) fn idle(
        &mut self,
        client: Key,
        endpoint: &Endpoint,
        service: bool,
        careful: bool,
        context: &mut Context,
    ) -> Option<Box<BackendConnection>> {
        loop {
            let key = self.pools.take(endpoint.identity())?;
            let Some(BackendSlot::Idle(mut connection)) = self.slots.values.take(key) else {
                continue;
            };
            context.counters.idle_backends.decrement();
            self.slots.deadlines.clear(key.index());
            if !connection.fits(endpoint, service) || (careful && connection.is_stale()) {
                self.close(*connection, context);
                continue;
            }
            self.slots.values.put(key, BackendSlot::With(client));
            return Some(connection);
        }
    }

    /// A connection that was begun for a client's request.
    fn add(
        &mut self,
        client: Key,
        endpoint: &Endpoint,
        service: bool,
        stream: Stream,
        context: &Context,
    ) -> Result<Box<BackendConnection>, Errno> {
        let (kind, poller) = (token::BACKEND, &context.poller);
        let key = self.slots.watch(&stream, kind, Interest::Write, poller);
        let key = key.ok_or(Errno::NOBUFS)?;
        self.slots.values.put(key, BackendSlot::With(client));
        context.counters.open_backends.increment();
        let settings = &context.shared.settings;
        let connection = BackendConnection::new(key, endpoint, service, stream, settings);
        Ok(Box::new(connection))
    }

    /// The handshake of a connection is done.
    ///
    /// # Errors
    /// It goes on with HTTP/2, and cannot. It is of no use.
    pub(super) fn opened(
        &mut self,
        connection: &mut BackendConnection,
        context: &Context,
    ) -> Result<(), Errno> {
        let http2 = connection.stream.protocol() == Some(b"h2");
        // What the log does not tell is not worth a call into the kernel.
        let fields = &context.shared.settings.access_log.extra_fields;
        if http2 || fields.contains(&ExtraField::LocalAddress) {
            connection.local = connection.local();
        }
        match http2 {
            true => self.begin_http2(connection, context),
            false => Ok(()),
        }
    }

    /// Puts a connection whose answer is whole into its pool, if it may be used again.
    pub(super) fn keep(&mut self, mut connection: Box<BackendConnection>, context: &mut Context) {
        let settings = &context.shared.settings.backends;
        let key = connection.key;
        let clean = connection.inbox.is_empty() && !connection.stream.holds_bytes();
        let kept = context.running
            && (connection.registration.is_watched() && clean)
            && self.pools.add(&connection.identity, key, settings.idle)
            && connection.rest(&context.poller);
        if !kept {
            self.close(*connection, context);
            return;
        }
        context.counters.idle_backends.increment();
        let deadline = context.clock.after(settings.idle_timeout);
        self.slots.deadlines.set(key.index(), deadline);
        let slots = &mut self.slots.values;
        slots.put(key, BackendSlot::Idle(connection));
    }

    /// Closes a connection.
    pub(super) fn close(&mut self, mut connection: BackendConnection, context: &mut Context) {
        connection.inbox.clear(&mut context.buffers);
        self.pools.remove(&connection.identity, connection.key);
        self.slots.release(connection.key);
        context.counters.open_backends.decrement();
    }

    fn drop_idle(&mut self, key: Key, context: &mut Context) {
        if let Some(BackendSlot::Idle(connection)) = self.slots.values.take(key) {
            context.counters.idle_backends.decrement();
            self.close(*connection, context);
        }
    }

    /// Closes the idle connection that would be closed first, since a descriptor is needed;
    /// `false` when there is none.
    pub(super) fn make_room(&mut self, context: &mut Context) -> bool {
        let first = self.slots.deadlines.iter().min_by_key(|(_, at)| *at);
        let Some(key) = first.and_then(|(place, _)| self.slots.values.key_at(place as usize))
        else {
            return false;
        };
        if !matches!(self.slots.values.get(key), Some(BackendSlot::Idle(_))) {
            return false;
        }
        context.counters.no_descriptors.increment();
        self.drop_idle(key, context);
        true
    }

    /// Closes idle connections whose time is over.
    pub(super) fn expire(&mut self, context: &mut Context) {
        while let Some(key) = self.slots.late(context.clock.now()) {
            if matches!(self.slots.values.get(key), Some(BackendSlot::Idle(_))) {
                self.drop_idle(key, context);
            }
        }
    }

    /// Clients' connections that waited for names, now that some were resolved.
    pub(super) fn resolved(&mut self) -> Vec<Key> {
        mem::take(&mut self.resolving)
    }

    /// The other end of a connection to the router itself, which is to be taken in.
    pub(super) fn connected_to_itself(&mut self) -> Option<OwnedFd> {
        self.to_itself.pop()
    }

    /// The end: idle connections count no more.
    pub(super) fn give_up(&self, context: &Context) {
        for _ in 0..self.pools.len() {
            context.counters.idle_backends.decrement();
            context.counters.open_backends.decrement();
        }
    }
}
