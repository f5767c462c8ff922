//! A client's connection with the request that it carries: what happens to either side is
//! handed to its part.

use std::ops::ControlFlow;

use wire::poller::Event;
use wire::slab::Key;
use wire::stream::Stream;

use super::backends::Backends;
use super::buffers::Buffers;
use super::client::{ClientConnection, Found};
use super::context::Context;
use super::request::{ActiveRequest, Course, Lent, Requests};
use crate::http::pipeline::Client;
use crate::table::Nanos;

/// What the connections of clients work with.
pub(super) struct Parts {
    pub(super) context: Context,
    pub(super) backends: Backends,
    pub(super) requests: Requests,
}

/// See the module.
pub(super) struct Session {
    client: ClientConnection,
    request: Option<Box<ActiveRequest>>,
}

impl Session {
    pub(super) fn new(client: ClientConnection) -> Self {
        let request = None;
        Self { client, request }
    }

    pub(super) fn key(&self) -> Key {
        self.client.key()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    pub(super) fn speaks_http2(&self) -> bool {
        self.client.speaks_http2()
    }

    /// What it is made of, now that it carries nothing.
    pub(super) fn into_parts(self, buffers: &mut Buffers) -> (Stream, Client) {
        self.client.into_parts(buffers)
    }

    /// When patience ends.
    pub(super) fn deadline(&self) -> Nanos {
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
    pub(super) fn watch(&mut self, context: &Context) -> bool {
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
        self.carry(parts, |request, lent| request.event(event, lent));
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

    /// Closes the connection if it carries nothing, not even a part of a request.
    pub(super) fn close_if_idle(&mut self) {
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
    pub(super) fn settle(&mut self, parts: &mut Parts) {
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
        act: impl FnOnce(&mut ActiveRequest, &mut Lent<'_>) -> Course,
    ) -> bool {
        let Some(request) = &mut self.request else {
            return false;
        };
        let mut lent = Lent {
            client: &mut self.client,
            context: &mut parts.context,
            backends: &mut parts.backends,
        };
        if let ControlFlow::Continue(()) = act(request, &mut lent) {
            return true;
        }
        request.leave_backend(lent.backends, lent.context);
        if let Some(request) = self.request.take() {
            let client = self.client.client();
            parts.requests.end(request, client, &mut parts.context);
        }
        false
    }
}
