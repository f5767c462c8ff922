//! Requests: when they are due, which connection they take, how they are sent.

use lab_load::recording::Phase;
use wire::clock;
use wire::poller::Interest;

use super::connection::{Link, Use};
use super::plan::Arrival;
use super::reaction::NEGLIGIBLE;
use super::talk::Talk;
use super::{End, Engine, Source};

/// Pause of a user whose connection could not be opened, in nanoseconds; without it a
/// target that is down would be asked as fast as the kernel can refuse.
const AFTER_FAILURE: u64 = 10_000_000;

/// Why a request is sent later than it was meant to be, if it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Delay {
    /// Nothing kept it from being sent but this thread.
    #[default]
    Own,
    /// A connection had to be opened.
    Opening,
    /// All connections were busy and no more may be opened.
    Capped,
}

impl Engine {
    /// Sends what is due by `now`, as far as there are connections, and opens more where
    /// there are none.
    #[inline]
    pub(super) fn dispatch(&mut self, now: u64) {
        loop {
            let Source::Schedule(plan) = &mut self.source else {
                return;
            };
            if plan.next_due().is_none_or(|due| due > now) {
                return;
            }
            let Some(place) = self.take_free() else {
                break;
            };
            if let Source::Schedule(plan) = &mut self.source
                && let Some(arrival) = plan.take(now)
            {
                self.serve(place, arrival);
            }
        }
        self.make_room(now);
    }

    /// Opens connections for arrivals that find none free.
    fn make_room(&mut self, now: u64) {
        loop {
            let Source::Schedule(plan) = &mut self.source else {
                return;
            };
            let due = plan.next_to_fall_due().unwrap_or(u64::MAX);
            let late = now.saturating_sub(due);
            if late > NEGLIGIBLE {
                // It waits for a connection, and was looked at too late besides.
                self.reaction.sent(late, now);
            }
            let backlog = plan.backlog(now);
            let first_not_due = plan.first_not_due(now);
            self.tally.span.backlog = self.tally.span.backlog.max(backlog);
            self.excused = self.excused.max(first_not_due);
            if backlog <= u64::from(self.unbound) {
                return;
            }
            if self.open + self.opening >= self.most {
                self.capped = self.capped.max(first_not_due);
                return;
            }
            self.open_another(now);
        }
    }

    /// Sends an arrival's request over a free connection.
    fn serve(&mut self, place: u32, arrival: Arrival) {
        let delay = match arrival.number {
            number if number < self.capped => Delay::Capped,
            number if number < self.excused => Delay::Opening,
            _ => Delay::Own,
        };
        self.visit(place, self.first + arrival.number, arrival.due);
        self.ask(place, delay);
    }

    /// Begins the journey of an arrival at a place.
    fn visit(&mut self, place: u32, number: u64, intended: u64) {
        let visit = self.setup.composer.begin(number);
        let exchange = &mut self.connections[place as usize].exchange;
        exchange.visit = Some(visit);
        exchange.intended = intended;
        (exchange.again, exchange.counted) = (false, false);
    }

    /// Sends the request of the visit at a place, whose connection is open.
    pub(super) fn ask(&mut self, place: u32, delay: Delay) {
        if self.multiplexed() {
            return self.ask_stream(place, delay);
        }
        let composer = &self.setup.composer;
        let connection = &mut self.connections[place as usize];
        let exchange = &mut connection.exchange;
        let (Some(stream), Some(visit)) = (&mut connection.stream, &exchange.visit) else {
            return;
        };
        exchange.kind = composer.kind(visit);
        let request = match composer.plain() {
            Some(request) => request,
            None => {
                self.request.clear();
                if composer.write(visit, &mut self.request).is_err() {
                    exchange.used = Use::Waiting;
                    self.waiting += 1;
                    return self.fail(place, Phase::Write, "no request", clock::now());
                }
                &self.request
            }
        };
        let needs = composer.needs(visit);
        exchange.kept.begin(needs.fields, needs.body);
        let talk = &mut connection.talk;
        talk.asked(composer, visit, exchange.kind, request.len());
        let request = match talk {
            Talk::WebSocket(talk) => {
                self.framed.clear();
                talk.frame(request, composer.is_text(visit), &mut self.framed);
                &self.framed
            }
            Talk::Http1(_) | Talk::Tcp(..) | Talk::Udp => request,
        };
        connection.carried += 1;
        exchange.used = Use::Asked;
        exchange.answering = false;
        let now = clock::now();
        exchange.sent = now;
        if self.users && !exchange.counted {
            exchange.intended = now;
        }
        let sent = stream.send(request);
        self.reaction.held(now, clock::now(), request.len());
        self.tally.sent(now);
        let until = now.saturating_add(self.answer_within);
        self.answer_by.set(place, until);
        let taken = match sent {
            Ok(taken) => taken,
            Err(error) => return self.broken(place, Phase::Write, error.cause(), now),
        };
        self.tally
            .count(exchange, delay, request.len(), &mut self.reaction);
        self.tally.span.connections.reused += u64::from(connection.carried > 1);
        if taken < request.len() || stream.wants_write() {
            connection.unsent.extend_from_slice(&request[taken..]);
            self.watch_writing(place, true);
        }
    }

    /// Sends what the protocol has to say besides requests.
    pub(super) fn reply(&mut self, place: u32) {
        let connection = &mut self.connections[place as usize];
        if let Some(replies) = connection.talk.replies() {
            connection.unsent.append(replies);
            self.send_rest(place);
        }
    }

    /// Sends what the kernel did not take before.
    pub(super) fn send_rest(&mut self, place: u32) {
        let connection = &mut self.connections[place as usize];
        let Some(stream) = &mut connection.stream else {
            return;
        };
        let sent = match connection.unsent.is_empty() {
            true => stream.flush().map(|()| 0),
            false => stream.send(&connection.unsent),
        };
        match sent {
            Ok(taken) => {
                connection.unsent.drain(..taken);
                let writing = !connection.unsent.is_empty() || stream.wants_write();
                if writing != connection.writing {
                    self.watch_writing(place, writing);
                }
            }
            Err(error) => self.broken(place, Phase::Write, error.cause(), clock::now()),
        }
    }

    fn watch_writing(&mut self, place: u32, writing: bool) {
        let connection = &mut self.connections[place as usize];
        let interest = Interest::of(true, writing);
        let token = connection.token(place);
        if let Some(stream) = &connection.stream
            && self.poller.change(stream, token, interest).is_ok()
        {
            connection.writing = writing;
        }
    }

    /// Lets every user make the first request.
    pub(super) fn start_users(&mut self, now: u64) {
        while (self.connections.len() as u32) < self.held {
            self.add_place();
        }
        for place in 0..self.held {
            self.next_visit(place, now);
        }
    }

    /// The user at a place makes the next request, if there is one left.
    fn next_visit(&mut self, place: u32, now: u64) {
        let Source::Users {
            next, step, left, ..
        } = &mut self.source
        else {
            return self.rest(place, now);
        };
        if *left == 0 || self.ended.is_some() {
            return self.rest(place, now);
        }
        let number = *next;
        *next += *step;
        *left -= 1;
        self.visit(place, number, now);
        self.ask_or_open(place, now);
    }

    /// Sends the request of the visit at a place, as soon as its connection is open.
    pub(super) fn ask_or_open(&mut self, place: u32, now: u64) {
        let connection = self.connection(place);
        if connection.link == Link::Open {
            return self.ask(place, Delay::Own);
        }
        let closed = connection.link == Link::Closed;
        connection.exchange.used = Use::Waiting;
        self.waiting += 1;
        match closed {
            true => {
                self.open_at(place, now);
            }
            // It was under way for any arrival.
            false => self.unbound = self.unbound.saturating_sub(1),
        }
    }

    /// Sends a request that waited for its connection to open, unless it is one of a
    /// user whose time is over.
    pub(super) fn ask_or_drop(&mut self, place: u32, now: u64) {
        let counted = self.connection(place).exchange.counted;
        if self.users && self.ended.is_some() && !counted {
            self.connection(place).exchange.visit = None;
            return self.rest(place, now);
        }
        self.ask(place, Delay::Opening);
    }

    /// The visit at a place is over. A user pauses, then goes on; otherwise the
    /// connection is free for the next arrival.
    pub(super) fn release(&mut self, place: u32, now: u64, pause: u64) {
        self.connection(place).exchange.visit = None;
        let think = match &self.source {
            Source::Users { think, left, .. } if *left > 0 && self.ended.is_none() => *think,
            _ => return self.rest(place, now),
        };
        match think.max(pause) {
            0 => self.next_visit(place, now),
            pause => self.think(place, now.saturating_add(pause)),
        }
    }

    pub(super) fn think(&mut self, place: u32, until: u64) {
        self.connection(place).exchange.used = Use::Thinking;
        self.pauses.set(place, until);
    }

    /// The pause at a place is over.
    pub(super) fn resume(&mut self, place: u32, at: u64, now: u64) {
        let exchange = &mut self.connection(place).exchange;
        if exchange.visit.is_none() {
            return self.next_visit(place, now);
        }
        self.next_step(place, at, now);
    }

    /// The next request of a journey, due at `at`.
    pub(super) fn next_step(&mut self, place: u32, at: u64, now: u64) {
        let exchange = &mut self.connection(place).exchange;
        exchange.intended = at;
        (exchange.again, exchange.counted) = (false, false);
        self.later_steps += 1;
        self.ask_or_open(place, now);
    }

    /// Nothing is to be done at a place for now.
    fn rest(&mut self, place: u32, now: u64) {
        let connection = self.connection(place);
        connection.exchange.used = Use::Free;
        match connection.link {
            Link::Open => self.list(place),
            Link::Closed => self.replace(place, true, now),
            Link::Connecting | Link::Handshaking | Link::Upgrading => self.unbound += 1,
        }
    }

    /// A request has failed: how, and when.
    pub(super) fn fail(&mut self, place: u32, phase: Phase, cause: &'static str, now: u64) {
        let connection = &mut self.connections[place as usize];
        let exchange = &mut connection.exchange;
        match exchange.used {
            Use::Asked => {
                self.tally.ended(now);
                self.answer_by.clear(place);
            }
            Use::Waiting => self.waiting = self.waiting.saturating_sub(1),
            Use::Free | Use::Thinking => {}
        }
        if let Some(visit) = &exchange.visit {
            exchange.kind = self.setup.composer.kind(visit);
        }
        self.tally.fail(exchange.kind, phase, cause, now);
        let sample = exchange.sample(self.tally.zero, End::Failed(phase, cause));
        self.unanswered(sample);
        match self.multiplexed() {
            true => self.cancel_stream(place),
            false => self.close(place),
        }
        let pause = match phase {
            Phase::Connect | Phase::Tls => AFTER_FAILURE,
            _ => 0,
        };
        self.release(place, now, pause);
    }
}
