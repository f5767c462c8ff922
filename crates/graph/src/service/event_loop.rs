//! One thread: it waits for its sockets, timers and workers, and handles what happens.
//!
//! What happens leads to things to do ([`Todo`]), which are done one after the other:
//! none of them calls another, so that each may take what it works on out of its slab.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use wire::clock;
use wire::deadlines::NEVER;
use wire::http1::RequestHead;
use wire::poller::{Event, Poller, Waker};
use wire::slab::{Key, Slab};

use super::draining::QUIET;
use super::flight::Flight;
use super::host::{DRAINING, KEPT_REVISIONS, Orders, RUNNING};
use super::http2::{Channel, Front};
use super::link::{Link, PoolId, Route};
use super::plan::Plan;
use super::session::Session;
use super::timers::Timers;
use super::token::Token;
use crate::Nanos;
use crate::script::{Command, Outcome, Ticket};
use crate::trace::Recorder;
use crate::work::{Ended, Inbox, Site, Worker};
use traces::ids::Run;

/// Requests whose memory is kept for the next ones.
const SPARE_FLIGHTS: usize = 256;
/// Bytes that one read takes.
const ROOM: usize = 64 * 1024;

/// An instance of a service, which lives on this thread.
pub(super) struct Instance {
    /// `None`: no more connections are accepted.
    pub(super) listener: Option<OwnedFd>,
    /// Whether the listener is not watched now.
    pub(super) paused: bool,
    /// It accepts nothing more, since the host drains.
    pub(super) leaving: bool,
    /// The newest is the first.
    pub(super) plans: VecDeque<Arc<Plan>>,
    /// By the slots of callees.
    pub(super) routes: Vec<Route>,
    /// The last request's head, to recognise the next one by.
    pub(super) head: RequestHead,
    /// The number of the next request without a trace, and what to add for the one after.
    pub(super) number: u64,
    pub(super) step: u64,
}

impl Instance {
    /// One that listens. Requests without a trace are numbered from `number` on, `step`
    /// apart, so that replicas never give the same number.
    pub(super) fn new(listener: OwnedFd, number: u64, step: u64) -> Self {
        Self {
            listener: Some(listener),
            paused: false,
            leaving: false,
            plans: VecDeque::new(),
            routes: Vec::new(),
            head: RequestHead::default(),
            number,
            step,
        }
    }
}

/// Something to do.
pub(super) enum Todo {
    /// A request is there.
    Begin(Key),
    /// Something that a request waited for has ended.
    Ended(Key, Ticket, Outcome),
    /// A request's time is over.
    Expired(Key),
    /// An answer that took several sends is sent.
    Sent(Key),
    /// A caller's connection may go on.
    Resume(Key),
    /// There may be a connection for those who wait.
    Dispatch(PoolId),
    /// A caller's connection of HTTP/2 has something to send.
    Front(Key),
    /// A connection of HTTP/2 to a callee has.
    Channel(Key),
    /// A request is of no use to anybody.
    Abandon(Key, &'static str),
}

/// One thread. See the module.
pub(super) struct EventLoop {
    pub(super) orders: Arc<Orders>,
    /// Its place among the threads.
    pub(super) thread: usize,
    pub(super) poller: Poller,
    waker: Waker,
    inbox: Arc<Inbox>,
    pub(super) worker: Worker,
    pub(super) recorder: Recorder,
    /// Part of the trace ids that are made here.
    pub(super) run: Run,
    pub(super) instances: Vec<Instance>,
    pub(super) sessions: Slab<Box<Session>>,
    pub(super) links: Slab<Box<Link>>,
    pub(super) fronts: Slab<Box<Front>>,
    pub(super) channels: Slab<Box<Channel>>,
    pub(super) flights: Slab<Box<Flight>>,
    /// Work in hand of workers.
    pub(super) jobs: Slab<Job>,
    #[expect(clippy::vec_box, reason = "flights are large, and move in and out")]
    spare: Vec<Box<Flight>>,
    pub(super) timers: Timers,
    pub(super) todo: VecDeque<Todo>,
    pub(super) commands: Vec<Command>,
    ended: Vec<Ended>,
    pub(super) room: Vec<u8>,
    /// When the event came that is being handled.
    pub(super) now: Nanos,
    /// When the kernel last told of events.
    pub(super) woken: Nanos,
    /// Most connections of callers.
    pub(super) most_sessions: usize,
    /// The state and the revision as this thread saw them last.
    pub(super) state: u8,
    /// When some thread last had a request in hand, while the host drains.
    pub(super) busy_at: Nanos,
    revision: u64,
}

/// Work in the hands of a worker.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    pub(super) flight: Key,
    pub(super) ticket: Ticket,
    pub(super) step: crate::topology::StepId,
    pub(super) span: traces::SpanId,
}

/// What a thread starts with.
pub(super) struct Beginning {
    pub(super) orders: Arc<Orders>,
    pub(super) thread: usize,
    pub(super) poller: Poller,
    pub(super) waker: Waker,
    pub(super) inbox: Arc<Inbox>,
    pub(super) site: Arc<Site>,
    pub(super) recorder: Recorder,
    pub(super) run: Run,
    pub(super) instances: Vec<Instance>,
    pub(super) most_sessions: usize,
}

impl EventLoop {
    pub(super) fn new(beginning: Beginning) -> io::Result<Self> {
        let mut it = Self {
            inbox: beginning.inbox,
            orders: beginning.orders,
            thread: beginning.thread,
            poller: beginning.poller,
            waker: beginning.waker,
            worker: Worker::new(&beginning.site),
            recorder: beginning.recorder,
            run: beginning.run,
            instances: beginning.instances,
            sessions: Slab::default(),
            links: Slab::default(),
            fronts: Slab::default(),
            channels: Slab::default(),
            flights: Slab::default(),
            jobs: Slab::default(),
            spare: Vec::new(),
            timers: Timers::default(),
            todo: VecDeque::new(),
            commands: Vec::new(),
            ended: Vec::new(),
            room: vec![0; ROOM],
            now: clock::now(),
            woken: 0,
            most_sessions: beginning.most_sessions,
            state: RUNNING,
            busy_at: 0,
            revision: 0,
        };
        it.adopt();
        it.listen()?;
        Ok(it)
    }

    /// Runs until the host stops, or all is done after it drains.
    pub(super) fn run(mut self) {
        clock::precise_timers();
        loop {
            if !self.follow() {
                break;
            }
            let until = match self.state {
                DRAINING => self.timers.next().min(clock::now() + QUIET / 2),
                _ => self.timers.next(),
            };
            let longest =
                (until != NEVER).then(|| Duration::from_nanos(until.saturating_sub(clock::now())));
            // Only a broken poller fails here: nothing can be served any more.
            let Ok(events) = self.poller.wait(longest) else {
                break;
            };
            self.woken = clock::now();
            self.now = self.woken;
            // Whoever sends a request under a new revision published it before.
            self.adopt();
            for index in 0..events {
                let Some(event) = self.poller.event(index) else {
                    break;
                };
                if index > 0 {
                    self.now = clock::now();
                }
                self.handle(event);
                self.settle();
            }
            self.ring();
        }
        self.end();
    }

    fn handle(&mut self, event: Event) {
        match Token::of(event.token) {
            Token::Waker => {
                self.waker.clear();
                self.take_ended();
            }
            Token::Listener(index) => self.accept(index as usize),
            Token::Session(key) => self.session_event(key, event),
            Token::Link(key) => self.link_event(key, event),
            Token::Front(key) => self.front_event(key, event),
            Token::Channel(key) => self.channel_event(key, event),
        }
    }

    /// Does what there is to do.
    pub(super) fn settle(&mut self) {
        while let Some(todo) = self.todo.pop_front() {
            match todo {
                Todo::Begin(key) => self.begin(key),
                Todo::Ended(key, ticket, outcome) => self.ended(key, ticket, outcome),
                Todo::Expired(key) => self.expired(key),
                Todo::Sent(key) => self.sent(key),
                Todo::Resume(key) => self.resume(key),
                Todo::Dispatch(pool) => self.dispatch(pool),
                Todo::Front(key) => self.drive_front(key, false),
                Todo::Channel(key) => self.drive_channel(key, false),
                Todo::Abandon(key, cause) => self.abandon(key, cause),
            }
        }
    }

    /// Handles what has run out.
    fn ring(&mut self) {
        if self.timers.next() == NEVER {
            return;
        }
        self.now = clock::now();
        while let Some((place, _)) = self.timers.sessions.expired(self.now) {
            let key = self.sessions.key_at(place as usize);
            self.expire(key, Self::session_expired);
        }
        while let Some((place, _)) = self.timers.links.expired(self.now) {
            let key = self.links.key_at(place as usize);
            self.expire(key, Self::link_expired);
        }
        while let Some((place, _)) = self.timers.fronts.expired(self.now) {
            let key = self.fronts.key_at(place as usize);
            self.expire(key, Self::front_expired);
        }
        while let Some((place, _)) = self.timers.channels.expired(self.now) {
            let key = self.channels.key_at(place as usize);
            self.expire(key, Self::channel_expired);
        }
        while let Some((place, _)) = self.timers.waits.expired(self.now) {
            let key = self.flights.key_at(place as usize);
            self.expire(key, Self::wait_expired);
        }
        if self.timers.accept <= self.now {
            self.resume_accepting();
        }
    }

    fn expire(&mut self, key: Option<Key>, what: impl FnOnce(&mut Self, Key)) {
        if let Some(key) = key {
            what(self, key);
            self.settle();
        }
    }

    /// What workers have done.
    fn take_ended(&mut self) {
        let mut ended = mem::take(&mut self.ended);
        self.inbox.drain(&mut ended);
        for ended in ended.drain(..) {
            self.work_ended(&ended);
        }
        self.ended = ended;
    }

    /// Takes over new revisions, if there are any.
    fn adopt(&mut self) {
        let newest = self.orders.newest();
        if newest == self.revision {
            return;
        }
        let before = std::mem::replace(&mut self.revision, newest);
        let revisions = self.orders.revisions();
        for revision in revisions.iter().rev().filter(|one| one.number > before) {
            let own = revision.plans.get(self.thread).map(Vec::as_slice);
            for (index, plan) in own.unwrap_or_default().iter().enumerate() {
                self.adopt_plan(index, plan);
            }
        }
        self.settle();
    }

    fn adopt_plan(&mut self, index: usize, plan: &Arc<Plan>) {
        let Some(instance) = self.instances.get_mut(index) else {
            return;
        };
        instance.plans.push_front(Arc::clone(plan));
        instance.plans.truncate(KEPT_REVISIONS);
        let slots = plan.callees.len().max(instance.routes.len());
        instance.routes.resize_with(slots, Route::default);
        let mut stale = Vec::new();
        for (slot, route) in instance.routes.iter_mut().enumerate() {
            let callee = plan.callees.get(slot).and_then(Option::as_ref);
            let before: Vec<_> = route.pools.iter().map(|pool| pool.address).collect();
            match callee {
                Some(callee) => route.adopt(callee),
                None => route.used = 0,
            }
            for (place, pool) in route.pools.iter_mut().enumerate() {
                if place >= route.used || before.get(place) != Some(&pool.address) || !route.warm {
                    stale.append(&mut pool.idle);
                }
            }
        }
        for key in stale {
            self.close_link(key);
        }
    }

    /// The end: what is on its way is cut off.
    fn end(mut self) {
        let flights: Vec<_> = self.flights.keys().collect();
        for key in flights {
            self.abandon(key, "stopped");
        }
        let links: Vec<_> = self.links.keys().collect();
        for key in links {
            self.close_link(key);
        }
        self.end_channels();
        self.end_fronts();
        let sessions: Vec<_> = self.sessions.keys().collect();
        for key in sessions {
            if let Some(session) = self.sessions.take(key) {
                self.forget_session(session);
            }
        }
        for instance in &mut self.instances {
            for plan in instance.plans.drain(..) {
                if let Ok(Some(workers)) = &plan.workers {
                    workers.ask_to_stop();
                }
            }
        }
    }

    /// Memory for a request.
    pub(super) fn new_flight(&mut self) -> Box<Flight> {
        self.spare.pop().unwrap_or_default()
    }

    /// Keeps the memory of a request for another one.
    pub(super) fn spare_flight(&mut self, mut flight: Box<Flight>) {
        if self.spare.len() < SPARE_FLIGHTS {
            flight.clear();
            self.spare.push(flight);
        }
    }
}
