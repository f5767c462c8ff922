//! The clients of one thread: who there are, when each runs out of patience, and which ones
//! are to be looked at again.

use std::mem;

use wire::deadlines::Deadlines;
use wire::poller::Interest;
use wire::slab::{Key, Slab};
use wire::stream::Stream;

use super::client::ClientConnection;
use super::context::Context;
use super::listeners::Arrival;
use super::session::Session;
use super::token;
use super::worker::GRAIN;
use crate::http::pipeline::Client;
use crate::table::Nanos;

/// See the module.
pub(super) struct Clients {
    all: Slab<Box<Session>>,
    deadlines: Deadlines,
    /// Connections with bytes that the poller does not know of (decrypted already).
    again: Vec<Key>,
    /// Connections of HTTP/2, which are none of `all`: their streams are.
    fronts: usize,
    /// Most connections, those of HTTP/2 included.
    most: usize,
    /// Some have gone since [`Clients::have_gone`] was asked.
    gone: bool,
}

impl Clients {
    pub(super) fn new(most: usize) -> Self {
        Self {
            all: Slab::default(),
            deadlines: Deadlines::with_grain(GRAIN),
            again: Vec::new(),
            fronts: 0,
            most,
            gone: false,
        }
    }

    /// Whether there may be one more.
    pub(super) fn have_room(&self) -> bool {
        self.all.taken() + self.fronts < self.most
    }

    /// Whether some have gone since this was asked.
    pub(super) fn have_gone(&mut self) -> bool {
        mem::take(&mut self.gone)
    }

    /// When the first one runs out of patience: at once, if one is to be looked at again.
    pub(super) fn next_deadline(&self) -> Nanos {
        match self.again.is_empty() {
            true => self.deadlines.next(),
            false => 0,
        }
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
            self.put(Box::new(Session::new(client)), context);
        }
    }

    /// A connection that does not come over the network, but from another part of this
    /// thread.
    pub(super) fn take_in(&mut self, stream: Stream, client: Client, context: &mut Context) {
        if let Some(key) = self.add(&stream, context) {
            let client = ClientConnection::internal(key, stream, client, context);
            self.put(Box::new(Session::new(client)), context);
        }
    }

    /// A place for a connection; `None`: it cannot be watched.
    fn add(&mut self, stream: &Stream, context: &Context) -> Option<Key> {
        let key = self.all.reserve();
        let token = key.token(token::CLIENT);
        if context.poller.add(stream, token, Interest::Read).is_err() {
            self.all.release(key);
            return None;
        }
        context.counters.open_clients.increment();
        Some(key)
    }

    /// Takes one out, to work on it; [`Clients::put`] brings it back.
    pub(super) fn take(&mut self, key: Key) -> Option<Box<Session>> {
        self.all.take(key)
    }

    /// Waits for what a connection needs, or forgets it if it was closed.
    pub(super) fn put(&mut self, mut session: Box<Session>, context: &mut Context) {
        let key = session.key();
        if session.watch(context) && !self.again.contains(&key) {
            self.again.push(key);
        }
        if session.is_closed() {
            // Counted before the socket is closed: who sees the end may look at the count.
            self.left(context);
            self.remove(session, context);
        } else {
            self.deadlines.set(key.index(), session.deadline());
            self.all.put(key, session);
        }
    }

    fn remove(&mut self, session: Box<Session>, context: &mut Context) -> (Stream, Client) {
        self.deadlines.clear(session.key().index());
        self.all.release(session.key());
        session.into_parts(&mut context.buffers)
    }

    /// One goes on with HTTP/2, as one of the open clients beside those that its streams
    /// become, until [`Clients::front_left`].
    pub(super) fn become_front(
        &mut self,
        session: Box<Session>,
        context: &mut Context,
    ) -> (Stream, Client) {
        self.fronts += 1;
        self.remove(session, context)
    }

    /// One with HTTP/2 has gone.
    pub(super) fn front_left(&mut self, context: &Context) {
        self.fronts -= 1;
        self.left(context);
    }

    fn left(&mut self, context: &Context) {
        context.counters.open_clients.decrement();
        self.gone = true;
    }

    /// Those that are to be looked at again.
    pub(super) fn again(&mut self) -> Vec<Key> {
        mem::take(&mut self.again)
    }

    /// One whose patience may be over.
    pub(super) fn expired(&mut self, now: Nanos) -> Option<Key> {
        loop {
            let (place, _) = self.deadlines.expired(now)?;
            if let Some(key) = self.all.key_at(place as usize) {
                return Some(key);
            }
        }
    }

    /// All that there are now.
    pub(super) fn keys(&self) -> Vec<Key> {
        self.all.keys().collect()
    }
}
