//! Calls over HTTP/1.1: each has a connection to itself.

use std::mem;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use traces::failure;
use wire::clock;
use wire::poller::{Event, Interest};
use wire::slab::Key;
use wire::socket;
use wire::stream::Stream;

use super::causes::cause_word;
use super::link::{Answered, Link};
use crate::Nanos;
use crate::script::Outcome;
use crate::service::context::Context;
use crate::service::message::write_request;
use crate::service::plan::CallPlan;
use crate::service::request_state::{ActiveRequest, Attempt, Open, OpenKind, PoolId};
use crate::service::token;
use wire::timed::Timed;

/// See the module.
#[derive(Default)]
pub(super) struct Links(Timed<Box<Link>>);

impl Links {
    /// Sends the request of an attempt, over a connection that is kept, or over a new one.
    pub(super) fn attempt(
        &mut self,
        active: &mut ActiveRequest,
        mut attempt: Attempt,
        context: &mut Context,
    ) {
        let Some(call) = active.plan.call(attempt.step) else {
            context.unanswered(active, &attempt, failure::REFUSED);
            return;
        };
        loop {
            let idle = context
                .routes
                .pool(attempt.pool)
                .filter(|_| !attempt.fresh)
                .and_then(|pool| pool.idle.pop())
                .and_then(|key| self.0.values.take(key));
            let opened = idle.map_or_else(|| self.open(attempt.pool, call, context), Ok);
            let mut link = match opened {
                Ok(link) => link,
                Err(cause) => {
                    context.unanswered(active, &attempt, cause);
                    return;
                }
            };
            context.now = clock::now();
            attempt.sent = context.now;
            link.attempt = Some(attempt);
            link.answer.wanted = active.echoes();
            write_request(active, call, &attempt, context.now, &mut link.outbox);
            match link.send(&context.poller) {
                Ok(()) => {
                    let open = Open::new(attempt.operation_id, OpenKind::Call(link.key));
                    active.state.open.push(open);
                    let place = link.key.index();
                    self.0.deadlines.set(place, attempt.deadline);
                    self.0.values.put(link.key, link);
                    return;
                }
                Err(why) => {
                    let reused = link.reused;
                    self.forget(link, context);
                    if !reused {
                        context.unanswered(active, &attempt, why);
                        return;
                    }
                    // The callee closed it while it was idle.
                    attempt.fresh = true;
                }
            }
        }
    }

    /// Begins a connection. Its first request may be sent at once.
    fn open(
        &mut self,
        id: PoolId,
        call: &CallPlan,
        context: &mut Context,
    ) -> Result<Box<Link>, &'static str> {
        let pool = context.routes.pool(id).ok_or(failure::REFUSED)?;
        let connected = socket::connect_tcp(pool.address);
        let socket: OwnedFd = connected.map_err(|errno| cause_word(socket::cause(errno)))?;
        let (stream, poller) = (Stream::Plain(socket), &context.poller);
        let key = self.0.watch(&stream, token::LINK, Interest::Read, poller);
        let key = key.ok_or(failure::NO_DESCRIPTORS)?;
        pool.open += 1;
        call.counters.opened();
        let counters = Arc::clone(&call.counters);
        Ok(Box::new(Link::new(key, id, counters, pool.address, stream)))
    }

    /// Forgets a connection that is out of its place.
    fn forget(&mut self, link: Box<Link>, context: &mut Context) {
        link.counters.closed();
        self.0.release(link.key);
        if let Some(pool) = context.routes.pool(link.pool) {
            pool.open = pool.open.saturating_sub(1);
        }
        context.freed(link.pool);
    }

    /// Ends a connection without a call, or with one that nobody waits for.
    pub(super) fn close(&mut self, key: Key, context: &mut Context) -> Option<Attempt> {
        let mut link = self.0.values.take(key)?;
        let attempt = link.attempt.take();
        if attempt.is_none()
            && let Some(pool) = context.routes.pool(link.pool)
        {
            pool.idle.retain(|idle| *idle != key);
        }
        self.forget(link, context);
        attempt
    }

    pub(super) fn event(&mut self, key: Key, event: Event, context: &mut Context) {
        let Some(link) = self.0.values.get_mut(key) else {
            return;
        };
        if link.attempt.is_none() {
            // The callee closed it, or said something that nobody asked for.
            self.close(key, context);
            return;
        }
        match link.turn(event, context) {
            Ok(None) => {}
            Ok(Some(answered)) => self.answered(key, answered, context),
            Err(why) => self.broken(key, why, context),
        }
    }

    /// A call was answered.
    fn answered(&mut self, key: Key, answered: Answered, context: &mut Context) {
        let Some(link) = self.0.values.get_mut(key) else {
            return;
        };
        if let Some(attempt) = link.attempt.take()
            && let Some(mut active) = context.active_requests.take(attempt.request)
        {
            let state = &mut active.state;
            if !link.answer.failed.is_empty() {
                mem::swap(&mut state.failed, &mut link.answer.failed);
                state.failed_edge = Some(attempt.edge);
            } else if link.answer.wanted && answered.status < 400 {
                state.keep(attempt.step, attempt.operation_id, &link.answer.body);
            }
            let (recordings, status) = (&mut context.recordings, answered.status);
            recordings.call(&active, &attempt, status, "", context.now);
            context.active_requests.put(active);
            context.ended(
                attempt.request,
                attempt.operation_id,
                Outcome::Answered(status),
            );
        }
        // The connection has carried a call to its end.
        match context.routes.keeps(link.pool, link.address) {
            Some(pool) if answered.keep => {
                link.reused = true;
                pool.idle.push(key);
                context.freed(link.pool);
            }
            _ => {
                self.close(key, context);
            }
        }
    }

    /// A call's connection broke before the end of the answer.
    fn broken(&mut self, key: Key, why: &'static str, context: &mut Context) {
        let link = self.0.values.get(key);
        let race = link.is_some_and(|link| link.reused && link.is_silent());
        if let Some(attempt) = self.close(key, context) {
            context.lost(attempt, why, race && why != failure::MALFORMED);
        }
    }

    /// Handles a call whose time is over, unless it ended before: an answer leaves the
    /// deadline. `false`: there is none.
    pub(super) fn expire(&mut self, context: &mut Context) -> bool {
        let Some(key) = self.0.late(context.now) else {
            return false;
        };
        if let Some(link) = self
            .0
            .values
            .get_mut(key)
            .filter(|link| link.attempt.is_some())
        {
            link.reused = false;
            self.broken(key, failure::TIMEOUT, context);
        }
        true
    }

    pub(super) fn next_deadline(&self) -> Nanos {
        self.0.next_deadline()
    }

    /// The end of all.
    pub(super) fn end(&mut self, context: &mut Context) {
        for key in self.0.keys() {
            self.close(key, context);
        }
    }
}
