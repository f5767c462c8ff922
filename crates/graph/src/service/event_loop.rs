//! One thread: it waits for its sockets, timers and workers, and hands on what happens.

use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::io::Errno;
use wire::clock;
use wire::deadlines::NEVER;
use wire::listeners::{AT_ONCE, LISTENER, Listeners, PAUSE};
use wire::poller::{Event, Poller, WAKER};
use wire::slab::Key;
use wire::socket;
use wire::stream::Stream;
use wire::threads::Phase;

use super::context::Context;
use super::jobs::Jobs;
use super::orders::Orders;
use super::requests::Requests;
use super::token;
use crate::Nanos;
use crate::topology::Protocol;
use crate::trace::Recorder;
use crate::work::{Inbox, SharedResources};
use traces::ids::Run;

/// For how long no thread must have a request in hand: what one thread says of itself may
/// be old when another one looks at it.
const QUIET: Nanos = 5_000_000;

/// One thread. See the module.
pub(super) struct EventLoop {
    orders: Arc<Orders>,
    /// Its place among the threads.
    thread: usize,
    /// The phase and the revision as this thread saw them last.
    phase: Phase,
    revision: u64,
    /// When some thread last had a request in hand, while the host drains.
    busy_at: Nanos,
    /// By instance.
    listeners: Listeners<()>,
    /// Most connections of callers.
    most_callers: usize,
    context: Context,
    requests: Requests,
}

/// A thread before it runs.
pub(super) struct ThreadSetup {
    /// Processors that it is pinned to; empty: any.
    pub(super) cpus: Vec<u32>,
    /// Those of its instances.
    pub(super) listeners: Vec<OwnedFd>,
    pub(super) context: Context,
    pub(super) inbox: Arc<Inbox>,
}

impl ThreadSetup {
    /// One without instances so far.
    pub(super) fn new(run: Run, recorder: Recorder) -> io::Result<Self> {
        let poller = Poller::new()?;
        Ok(Self {
            cpus: Vec::new(),
            listeners: Vec::new(),
            inbox: Inbox::new(poller.waker().clone()),
            context: Context::new(poller, run, recorder),
        })
    }
}

impl EventLoop {
    pub(super) fn new(
        seat: ThreadSetup,
        orders: &Arc<Orders>,
        thread: usize,
        resources: &Arc<SharedResources>,
        most_callers: usize,
    ) -> io::Result<Self> {
        let mut listeners = Listeners::default();
        let instances = seat.listeners.len();
        for socket in seat.listeners {
            listeners.add(socket, (), &seat.context.poller)?;
        }
        let mut it = Self {
            orders: Arc::clone(orders),
            thread,
            phase: Phase::Running,
            revision: 0,
            busy_at: 0,
            requests: Requests::new(instances, Jobs::new(resources, seat.inbox)),
            listeners,
            most_callers,
            context: seat.context,
        };
        it.adopt();
        Ok(it)
    }

    /// Runs until the host stops, or all is done after it drains.
    pub(super) fn run(mut self) {
        clock::precise_timers();
        while self.follow() {
            let until = match self.phase {
                Phase::Draining => self.next_deadline().min(clock::now() + QUIET / 2),
                _ => self.next_deadline(),
            };
            // Only a broken poller fails here: nothing can be served any more.
            let waited = self.context.poller.wait_until(until, clock::now());
            if waited.is_err() {
                break;
            }
            self.context.woken = clock::now();
            self.context.now = self.context.woken;
            // Whoever sends a request under a new revision published it before.
            self.adopt();
            let mut first = true;
            while let Some(event) = self.context.poller.next_event() {
                if !mem::replace(&mut first, false) {
                    self.context.now = clock::now();
                }
                self.handle(event);
                self.requests.settle(&mut self.context);
            }
            self.expire_timers();
        }
        self.requests.end(&mut self.context);
        self.context.instances.stop();
    }

    fn handle(&mut self, event: Event) {
        let (requests, context) = (&mut self.requests, &mut self.context);
        match Key::of_token(event.token) {
            (token::SESSION, key) => requests.sessions.event(key, event, context),
            (token::LINK, key) => requests.calls.link_event(key, event, context),
            (token::HTTP2_CALLER, key) => {
                requests.http2_callers.drive(key, event.readable, context)
            }
            (token::CHANNEL, key) => requests.calls.channel_event(key, event, context),
            (LISTENER, key) => self.accept(key),
            (WAKER, _) => requests.jobs.take_ended(context),
            _ => {}
        }
    }

    fn next_deadline(&self) -> Nanos {
        let requests = self.requests.next_deadline(&self.context);
        requests.min(self.listeners.next_deadline())
    }

    /// Handles what has run out.
    fn expire_timers(&mut self) {
        if self.next_deadline() == NEVER {
            return;
        }
        self.context.now = clock::now();
        self.requests.expire(&mut self.context);
        if self.listeners.next_deadline() <= self.context.now {
            self.listeners
                .resume(self.context.now, &self.context.poller);
        }
    }

    /// Does what the host was told; `false`: end.
    ///
    /// A host that drains ends in good order: instances that nobody of it calls leave first,
    /// the others go on for those that still work, until no thread has a request in hand.
    fn follow(&mut self) -> bool {
        let before = mem::replace(&mut self.phase, self.context.poller.phase());
        if self.phase != Phase::Draining {
            return self.phase != Phase::Stopped;
        }
        if before != Phase::Draining {
            self.leave();
        }
        let (instances, active_requests) = (&self.context.instances, &self.context.active_requests);
        let busy = active_requests.count() + instances.leaving_callers();
        let now = clock::now();
        if !self.orders.report_busy(self.thread, busy) {
            self.busy_at = now;
        }
        now.saturating_sub(self.busy_at) < QUIET
    }

    /// Those whom nobody calls from here accept nothing more, and close the connections
    /// that carry no request.
    fn leave(&mut self) {
        for index in self.context.instances.leave() {
            let key = Key::of(index as u64);
            // Those that were made already are not turned away.
            self.accept(key);
            self.listeners.close(key);
        }
        self.requests.sessions.leave(&mut self.context);
        self.requests.http2_callers.leave(&mut self.context);
        self.requests.settle(&mut self.context);
    }

    /// Takes over new revisions, if there are any.
    fn adopt(&mut self) {
        let newest = self.orders.newest.load(Ordering::Acquire);
        if newest == self.revision {
            return;
        }
        let before = mem::replace(&mut self.revision, newest);
        let revisions = self.orders.revisions.load();
        let (calls, context) = (&mut self.requests.calls, &mut self.context);
        for revision in revisions.iter().rev().filter(|one| one.number > before) {
            let own = revision.plans.get(self.thread).map(Vec::as_slice);
            for (index, plan) in own.unwrap_or_default().iter().enumerate() {
                context.instances.adopt(index, plan);
                calls.adopt(index, plan, context);
            }
        }
        self.requests.settle(context);
    }

    /// Accepts the connections that wait.
    fn accept(&mut self, key: Key) {
        let (requests, context) = (&mut self.requests, &mut self.context);
        let index = key.index() as usize;
        for _ in 0..AT_ONCE {
            let Some((_, listener)) = self.listeners.get(key) else {
                return;
            };
            let accepted = match context.instances.callers() < self.most_callers {
                true => socket::accept_anybody(listener),
                false => Err(Errno::NOBUFS),
            };
            match accepted {
                Ok(Some(socket)) => {
                    let stream = Stream::Plain(socket);
                    match context.instances.plan(index).map(|plan| plan.protocol) {
                        Some(protocol @ (Protocol::Http2 | Protocol::Grpc)) => {
                            requests
                                .http2_callers
                                .welcome(index, protocol, stream, context);
                        }
                        _ => requests.sessions.welcome(index, stream, context),
                    }
                }
                Ok(None) => return,
                Err(_) => {
                    self.listeners
                        .pause(key, context.after(PAUSE), &context.poller);
                    return;
                }
            }
        }
    }
}
