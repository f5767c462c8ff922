//! Callers' connections: HTTP/1.1, a request at a time.

mod session;

use wire::http1::RequestHead;
use wire::poller::{Event, Interest};
use wire::slab::Key;
use wire::stream::Stream;

use self::session::{Phase, Session};
use super::context::Context;
use super::recordings::GONE;
use super::reply::Reply;
use super::request_state::{ActiveRequest, RequestState};
use super::token;
use crate::Nanos;
use wire::timed::Timed;

/// See the module.
pub(super) struct Sessions {
    all: Timed<Box<Session>>,
    /// The last request's head, by instance, to recognise the next one by.
    heads: Vec<RequestHead>,
}

impl Sessions {
    /// Those of so many instances.
    pub(super) fn new(instances: usize) -> Self {
        Self {
            all: Timed::default(),
            heads: (0..instances).map(|_| RequestHead::default()).collect(),
        }
    }

    /// A caller has connected to an instance.
    pub(super) fn welcome(&mut self, instance: usize, stream: Stream, context: &mut Context) {
        let poller = &context.poller;
        let Some(key) = self
            .all
            .watch(&stream, token::SESSION, Interest::Read, poller)
        else {
            return;
        };
        context.instances.caller_connected(instance);
        let session = Box::new(Session::new(key, instance, stream, context));
        self.all.deadlines.set(key.index(), session.deadline);
        self.all.values.put(key, session);
    }

    /// Lets `act` work on a connection, and forgets it if that closed it; `None`: it is gone.
    fn work(
        &mut self,
        key: Key,
        context: &mut Context,
        act: impl FnOnce(&mut Session, &mut RequestHead, &mut Context),
    ) -> Option<()> {
        let session = self.all.values.get_mut(key)?;
        let head = self.heads.get_mut(session.instance)?;
        act(session, head, context);
        if session.phase == Phase::Closed {
            context.instances.caller_disconnected(session.instance);
            self.all.release(key);
        } else {
            self.all.deadlines.set(key.index(), session.deadline);
        }
        Some(())
    }

    pub(super) fn event(&mut self, key: Key, event: Event, context: &mut Context) {
        self.work(key, context, |session, head, context| {
            if event.writable && session.registration.tells_writable() {
                session.go_on_sending(context);
            }
            if event.readable && session.phase != Phase::Closed {
                session.read(head, context);
            }
        });
    }

    /// Looks at what came behind a request that is answered now.
    pub(super) fn resume(&mut self, key: Key, context: &mut Context) {
        self.work(key, context, Session::resume);
    }

    /// Answers a request.
    pub(super) fn answer(
        &mut self,
        active: &mut ActiveRequest,
        reply: Reply,
        context: &mut Context,
    ) {
        let key = active.state.session;
        let there = key.is_some_and(|key| self.all.values.get(key).is_some());
        let Some(key) = key.filter(|_| there) else {
            context.recordings.conclude(active, GONE, context.now);
            return;
        };
        self.work(key, context, |session, _, context| {
            session.answer(active, reply, context);
        });
    }

    /// The caller of a request gets no answer.
    pub(super) fn drop(&mut self, state: &RequestState, context: &mut Context) {
        if let Some(key) = state.session {
            self.work(key, context, |session, _, _| session.phase = Phase::Closed);
        }
    }

    /// Handles one whose time is over; `false`: there is none.
    pub(super) fn expire(&mut self, context: &mut Context) -> bool {
        let key = self.all.late(context.now);
        key.map(|key| self.work(key, context, |session, _, context| session.expired(context)))
            .is_some()
    }

    pub(super) fn next_deadline(&self) -> Nanos {
        self.all.next_deadline()
    }

    /// Ends those without a request, of instances that accept nothing more.
    pub(super) fn leave(&mut self, context: &mut Context) {
        for key in self.all.keys() {
            self.work(key, context, |session, head, context| {
                if context.instances.is_leaving(session.instance) && session.is_idle() {
                    // A request may be there already.
                    session.read(head, context);
                    if session.is_idle() {
                        session.phase = Phase::Closed;
                    }
                }
            });
        }
    }

    /// The end of all.
    pub(super) fn end(&mut self, context: &mut Context) {
        for key in self.all.keys() {
            self.work(key, context, |session, _, _| session.phase = Phase::Closed);
        }
    }
}
