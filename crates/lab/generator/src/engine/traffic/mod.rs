//! What becomes of each request, and of the place that it has: sent when it is due and its
//! connection is open, answered or missed, and followed by the next.

mod carriers;

use std::sync::Arc;
use std::time::Duration;

use lab_load::recording::{KEPT, NONE_FREE, Phase, UNFIT};
use lab_load::request::Next;
use lab_load::{Protocol, Segment};
use wire::clock;
use wire::deadlines::Deadlines;
use wire::poller::{Event, Poller};
use wire::socket;

use super::conversation::{Broken, CompleteResponse};
use super::exchange::Delay;
use super::opening::{self, Opening};
use super::pipeline::{BEHIND, Pipelines};
use super::plain::{self, Plain, SURPLUS};
use super::pool::{Link, Pool, Use};
use super::reaction::NEGLIGIBLE;
use super::record::Record;
use super::sampling::Sampler;
use super::source::Source;
use super::streams::Streams;
use super::{Multiplexing, ReportSender, Setup, nanos};

/// Pause of a user whose connection could not be opened, in nanoseconds; without it a
/// target that is down would be asked as fast as the kernel can refuse. The same of one whose
/// request could not be made: the next one may be no better.
const AFTER_FAILURE: u64 = 10_000_000;

/// See the module. The loop looks at connections, schedule and record too.
pub(super) struct Traffic {
    setup: Arc<Setup>,
    pub(super) pool: Pool,
    pub(super) source: Source,
    pub(super) record: Record,
    pub(super) opening: Opening,
    plain: Plain,
    streams: Streams,
    pipelines: Pipelines,
    /// How long requests may wait for a connection, and then for their answer; and until when
    /// those under way do.
    answer_within: u64,
    pub(super) answer_by: Deadlines,
    /// Whether the target hung up after the first answer, when it last did: a connection that is
    /// opened before it is needed would only take a thread of it.
    one_each: bool,
}

impl Traffic {
    /// None yet; that of the generator's thread `index`.
    pub(super) fn new(
        setup: Arc<Setup>,
        index: u32,
        poller: Poller,
        sampler: Option<Sampler>,
    ) -> Self {
        let workload = &setup.workload;
        let thread = workload.share.first + index;
        let threads = workload.share.threads.max(workload.threads);
        Self {
            pool: Pool::new(poller, workload, index, setup.addresses.are_several()),
            source: Source::new(thread, threads),
            record: Record::new(Arc::clone(&setup), sampler),
            opening: Opening::new(Arc::clone(&setup), thread),
            plain: Plain::new(Arc::clone(&setup)),
            streams: Streams::new(Arc::clone(&setup)),
            pipelines: Pipelines::new(Arc::clone(&setup)),
            answer_within: nanos(workload.timeout),
            answer_by: Deadlines::default(),
            one_each: false,
            setup,
        }
    }

    /// A segment begins.
    pub(super) fn begin(&mut self, segment: &Segment, began: u64, sender: &ReportSender) {
        self.source.begin(segment, began, &self.setup.workload);
        self.record.begin(began, self.source.is_users(), sender);
        self.opening.begin(segment.first);
    }

    /// Whether no request is under way, and no user pauses.
    pub(super) fn is_idle(&self) -> bool {
        self.record.tally.in_flight() == 0 && !self.pool.is_awaited() && self.source.is_idle()
    }

    /// When something is to be done even if no socket has anything to tell.
    pub(super) fn next_wake(&self, now: u64) -> u64 {
        let within = self.answer_within;
        let due = self.source.next_wake(now, self.pool.has_room(), within);
        due.min(self.answer_by.next()).min(self.opening.by.next())
    }

    /// When the first request or connection is given up.
    pub(super) fn first_deadline(&self) -> u64 {
        let arrival = self.source.first_given_up(self.answer_within);
        let under_way = self.answer_by.next().min(self.opening.by.next());
        under_way.min(arrival)
    }

    /// Handles what has run out.
    pub(super) fn expire(&mut self, now: u64) {
        while let Some((place, _)) = self.answer_by.expired(now) {
            let connection = &self.pool[place];
            let broken = match (connection.used(), connection.link()) {
                // It waited for its turn on a connection that takes no more.
                (Use::Waiting, Link::Open) => (Phase::Connect, NONE_FREE),
                (Use::Waiting, _) => (Phase::Connect, "timeout"),
                _ => (Phase::Timeout, "timeout"),
            };
            self.fail(place, broken, now);
        }
        while let Some((carrier, _)) = self.opening.by.expired(now) {
            let phase = opening::phase(self.pool[carrier].link());
            self.opening_failed(carrier, (phase, "timeout"), now);
        }
        let (opening, busy) = (!self.opening.by.is_empty(), self.busy());
        while let Some(cause) = self.source.overdue(now, self.answer_within, opening, busy) {
            self.fail_arrival((Phase::Connect, cause), now);
        }
        while let Some((place, at)) = self.source.paused(now) {
            match self.pool[place].exchange.visit {
                None => self.next_visit(place, now),
                Some(_) => self.next_step(place, at, now),
            }
        }
    }

    /// Why no connection is free.
    pub(super) fn busy(&self) -> &'static str {
        match self.pool.is_kept() {
            true => KEPT,
            false => NONE_FREE,
        }
    }

    /// Handles one event of a socket, and says when it did.
    #[inline]
    pub(super) fn handle(&mut self, event: &Event) -> u64 {
        let Some(place) = self.pool.place(event) else {
            return clock::now();
        };
        let connection = &self.pool[place];
        match connection.link() {
            Link::Closed => clock::now(),
            Link::Connecting | Link::Handshaking | Link::Upgrading => self.go_on_opening(place),
            Link::Open if connection.session.is_some() => self.drive(place, true),
            Link::Open if connection.pipeline.is_some() => {
                self.drive_pipeline(place, event.readable)
            }
            Link::Open => {
                let written = match event.writable && connection.registration.tells_writable() {
                    true => plain::send_rest(&mut self.pool, place),
                    false => Ok(()),
                };
                let now = match event.readable {
                    true => self.take_answer(place),
                    false => clock::now(),
                };
                // A target may answer before it has all of a request, and hang up: its answer
                // counts.
                if let Err(broken) = written
                    && self.pool.place(event) == Some(place)
                {
                    self.broken(place, broken, now);
                }
                now
            }
        }
    }

    /// Sends what is due by `now`, as far as there are connections, and opens more where
    /// there are none.
    #[inline]
    pub(super) fn dispatch(&mut self, now: u64) {
        let mut waits = false;
        while self.source.is_due(now) {
            let Some(place) = self.pool.take_free() else {
                self.make_room(now);
                waits = true;
                break;
            };
            if let Some((arrival, delay, found_late)) = self.source.take(now) {
                self.visit(place, arrival.number, arrival.due);
                self.pool[place].exchange.found_late = found_late;
                self.send_request(place, delay);
                self.offer_parked(place);
            }
        }
        if !waits {
            self.record.reaction.none_waits();
            self.source.none_waits();
        }
        while let Some(carrier) = self.streams.take_unsent() {
            self.drive(carrier, false);
        }
        self.streams.all_sent(&mut self.record);
        while let Some(carrier) = self.pipelines.take_unsent() {
            self.drive_pipeline(carrier, false);
        }
        self.pipelines.all_sent(&mut self.record);
    }

    /// Offers another place on a connection whose target takes more again than it did.
    #[inline]
    fn offer_parked(&mut self, place: u32) {
        if self.setup.multiplexing() == Multiplexing::Streams
            && let Some(parked) = self.streams.take_parked(&mut self.pool, place)
        {
            self.pool.offer(parked);
        }
    }

    /// Opens connections for arrivals that find none free.
    fn make_room(&mut self, now: u64) {
        self.record.reaction.some_wait();
        while let Some((backlog, late)) = self.source.shortage(now) {
            if late > NEGLIGIBLE {
                // They were looked at too late besides.
                self.record.reaction.sent(late, now);
            }
            let most = &mut self.record.tally.span.backlog;
            *most = backlog.max(*most);
            if backlog <= u64::from(self.pool.unbound()) {
                return;
            }
            if !self.pool.has_room() {
                return self.source.cap();
            }
            self.open_another(now);
        }
    }

    /// Begins the journey of request `number` at a place.
    fn visit(&mut self, place: u32, number: u64, intended: u64) {
        let exchange = &mut self.pool[place].exchange;
        exchange.visit = Some(self.setup.composer.begin(number));
        exchange.renew(intended);
    }

    /// Sends the request of the visit at a place, whose connection is open.
    fn send_request(&mut self, place: u32, delay: Delay) {
        let (pool, record) = (&mut self.pool, &mut self.record);
        pool[place].exchange.put_off(delay);
        let sent = match self.setup.multiplexing() {
            Multiplexing::Plain => self.plain.send_request(pool, record, place),
            Multiplexing::Streams => self.streams.send_request(pool, record, place),
            Multiplexing::Pipeline => self.pipelines.send_request(pool, record, place),
        };
        let asked = self.pool[place].exchange.sent;
        match sent {
            Ok(true) => {
                // Not from when it was due: one that had waited for a connection would have it
                // closed at once again, and a target that stands still would be flooded with new
                // ones.
                let until = asked.saturating_add(self.answer_within);
                self.answer_by.set(place, until);
            }
            Ok(false) => self.wait_in_line(place),
            Err(UNFIT) => self.fail(place, (Phase::Write, UNFIT), clock::now()),
            Err(cause) => self.broken(place, (Phase::Write, cause), asked),
        }
    }

    /// The connection of a place takes no request now: it is sent once it does, within the time
    /// that its user waits.
    fn wait_in_line(&mut self, place: u32) {
        let now = clock::now();
        let full = self.streams.is_full(&mut self.pool, place);
        let exchange = &mut self.pool[place].exchange;
        if exchange.delay == Delay::Own && !exchange.counted {
            // It was looked at too late besides.
            let late = now.saturating_sub(exchange.intended);
            exchange.found_late = late;
            self.record.reaction.sent(late, now);
        }
        exchange.put_off(if full { Delay::Capped } else { Delay::Opening });
        // One that was sent before has had its time to be answered in; this is the second try's.
        let since = if exchange.again {
            now
        } else {
            exchange.intended
        };
        let until = since.saturating_add(self.answer_within);
        self.answer_by.set(place, until);
    }

    /// No user goes on: those whose requests wait in line make none.
    pub(super) fn leave_line(&mut self, now: u64) {
        for place in self.pool.queued() {
            if !self.pool[place].exchange.counted {
                self.withdraw(place);
                self.rest(place, now);
            }
        }
    }

    /// Nobody waits for the request of a place any more, which was not sent.
    fn withdraw(&mut self, place: u32) {
        self.answer_by.clear(place);
        self.pool[place].exchange.visit = None;
        match self.setup.multiplexing() {
            Multiplexing::Plain => {}
            Multiplexing::Streams => self.streams.cancel(&mut self.pool, place),
            Multiplexing::Pipeline => {
                self.pipelines.forget(&mut self.pool, place);
            }
        }
    }

    /// Sends the request of the visit at a place, as soon as its connection is open.
    fn send_or_open(&mut self, place: u32, now: u64) {
        let link = self.pool[place].link();
        if link == Link::Open {
            return self.send_request(place, Delay::Own);
        }
        self.pool.set_used(place, Use::Waiting);
        if link == Link::Closed {
            self.open(place, now);
        }
    }

    /// Lets every user make the first request.
    pub(super) fn start_users(&mut self, now: u64) {
        for place in self.pool.places() {
            self.next_visit(place, now);
        }
    }

    /// The user at a place makes the next request, if there is one left.
    fn next_visit(&mut self, place: u32, now: u64) {
        match self.source.next_of_user() {
            Some(number) => {
                self.visit(place, number, now);
                self.send_or_open(place, now);
            }
            None => self.rest(place, now),
        }
    }

    /// The next request of a journey, due at `at`.
    fn next_step(&mut self, place: u32, at: u64, now: u64) {
        let exchange = &mut self.pool[place].exchange;
        exchange.renew(at);
        exchange.found_late = now.saturating_sub(at);
        let held = std::mem::take(&mut exchange.holds);
        self.source.step();
        if held && self.pool[place].link() == Link::Closed {
            // The transaction is undone, and this would be no part of it.
            return self.fail(place, (Phase::Connect, "closed early"), now);
        }
        self.send_or_open(place, now);
    }

    /// The visit at a place is over. A user pauses, then goes on; otherwise the
    /// connection is free for the next arrival.
    fn release(&mut self, place: u32, now: u64, pause: u64) {
        self.pool[place].exchange.visit = None;
        match self.source.think().map(|think| think.max(pause)) {
            None => self.rest(place, now),
            Some(0) => self.next_visit(place, now),
            Some(pause) => self.pause(place, now.saturating_add(pause)),
        }
    }

    /// The user of a place does not go on after the pause.
    pub(super) fn break_off(&mut self, place: u32, now: u64) {
        if std::mem::take(&mut self.pool[place].exchange.holds) {
            self.shut_pipeline(place, (Phase::Read, BEHIND), now);
        }
        self.release(place, now, 0);
    }

    fn pause(&mut self, place: u32, until: u64) {
        self.pool.set_used(place, Use::Thinking);
        self.source.pause(place, until);
    }

    /// Nothing is to be done at a place for now.
    fn rest(&mut self, place: u32, now: u64) {
        self.pool.set_used(place, Use::Free);
        match self.pool[place].link() {
            Link::Open => self.pool.offer(place),
            Link::Closed => self.replace(place, true, now),
            Link::Connecting | Link::Handshaking | Link::Upgrading => {}
        }
    }

    /// Takes what came in on an open connection, and says when.
    #[inline]
    fn take_answer(&mut self, place: u32) -> u64 {
        let (now, taken) = self.plain.receive(&mut self.pool, &mut self.record, place);
        match taken {
            Ok(None) => {}
            Ok(Some(whole)) => self.answered(place, whole, now),
            Err(broken) => self.broken(place, broken, now),
        }
        now
    }

    /// A whole answer came in.
    fn answered(&mut self, place: u32, whole: CompleteResponse, now: u64) {
        self.answer_by.clear(place);
        let connection = &mut self.pool[place];
        let next = self.record.answered(&mut connection.exchange, whole, now);
        let Some(next) = next else { return };
        let each = self.setup.workload.connections.requests_each;
        let ends = match next {
            Next::Done => true,
            Next::After(pause) => !pause.is_zero() && self.source.is_cut_off(),
        };
        // A request that was answered before all of it was sent leaves the target in
        // the middle of it.
        if connection.stream.is_none() {
            // Its connection carries others too, but for a transaction that was left open: that
            // is not for the next journey.
            connection.exchange.holds = !whole.keep_alive && !ends;
            if !whole.keep_alive && ends {
                self.shut_pipeline(place, (Phase::Read, BEHIND), now);
            }
        } else {
            let worn = each.is_some_and(|each| connection.carried >= each);
            if worn || !whole.keep_alive || !connection.unsent.is_empty() {
                let counts = &mut self.record.tally.span.connections;
                counts.surplus += u64::from(whole.surplus);
                counts.closed += u64::from(!whole.surplus && !worn);
                self.one_each = !whole.keep_alive && connection.carried == 1;
                self.pool.close(place);
            }
        }
        match next {
            Next::Done => self.release(place, now, 0),
            Next::After(Duration::ZERO) => self.next_step(place, now, now),
            Next::After(_) if self.source.is_cut_off() => self.release(place, now, 0),
            Next::After(pause) => self.pause(place, now.saturating_add(nanos(pause))),
        }
    }

    /// A connection is of no further use, whatever it was used for.
    fn broken(&mut self, place: u32, broken: Broken, now: u64) {
        let connection = &self.pool[place];
        let exchange = &connection.exchange;
        let idle = connection.used() != Use::Asked;
        // The target may close a connection that is kept open at the moment at which a
        // request is sent. Browsers then ask once more, and so do we; nobody would call
        // that a failure of the target.
        let stale = self.setup.workload.target.protocol == Protocol::Http1
            && connection.carried > 1
            && !exchange.answering
            && !exchange.again
            && matches!(broken.0, Phase::Read | Phase::Write)
            && exchange
                .visit
                .as_ref()
                .is_some_and(|visit| self.setup.composer.idempotent(visit));
        if !idle && !stale {
            return self.fail(place, broken, now);
        }
        let worth = connection.carried > 0;
        let free = connection.used() == Use::Free;
        let counts = &mut self.record.tally.span.connections;
        counts.surplus += u64::from(broken == SURPLUS);
        counts.closed += u64::from(broken != SURPLUS);
        self.pool.close(place);
        if !idle {
            self.resend(place, now);
        } else if free {
            // A target that closes connections which carried nothing would be asked
            // for the next one without end.
            self.replace(place, worth, now);
        }
    }

    /// A request did not reach the target, as far as that knows.
    fn resend(&mut self, place: u32, now: u64) {
        self.record
            .tally
            .retried(&mut self.pool[place].exchange, now);
        self.answer_by.clear(place);
        self.send_or_open(place, now);
    }

    /// A request has failed: how, and when.
    fn fail(&mut self, place: u32, broken: Broken, now: u64) {
        self.answer_by.clear(place);
        if self.pool[place].used() == Use::Asked {
            self.record.tally.ended(now);
        }
        let exchange = &mut self.pool[place].exchange;
        self.record.failed(exchange, broken, now);
        match self.setup.multiplexing() {
            Multiplexing::Plain => {
                let first = self.pool[place].carried == 1;
                let unserved = first && broken.0 == Phase::Timeout;
                self.record.tally.span.connections.unserved += u64::from(unserved);
                self.pool.close(place);
            }
            Multiplexing::Streams => self.streams.cancel(&mut self.pool, place),
            // Answers come in order: those behind it would never come.
            Multiplexing::Pipeline => {
                if self.pipelines.forget(&mut self.pool, place) {
                    let carrier = self.pool.carrier(place);
                    self.shut_pipeline(carrier, (Phase::Read, BEHIND), now);
                }
            }
        }
        let pause = match broken.0 {
            Phase::Connect | Phase::Tls | Phase::Open => AFTER_FAILURE,
            Phase::Write if broken.1 == UNFIT => AFTER_FAILURE,
            _ => 0,
        };
        self.release(place, now, pause);
    }

    /// The arrival that waits longest fails. Says whether there was one.
    pub(super) fn fail_arrival(&mut self, broken: Broken, now: u64) -> bool {
        let arrival = self.source.take(now);
        if let Some((arrival, ..)) = &arrival {
            self.record.arrival_failed(arrival, broken, now);
        }
        arrival.is_some()
    }

    /// Replaces connections that were lost while there was no load. Failure is no trouble
    /// here: arrivals try again, and their failures count.
    pub(super) fn hold(&mut self, now: u64) {
        while self.replaces() && self.pool.lacks() && self.open_another(now) {}
        self.opening.trouble = None;
    }

    /// Whether a lost connection is replaced before an arrival needs one. With one
    /// request for each connection the opening is a part of what an arrival waits for.
    fn replaces(&self) -> bool {
        self.setup.workload.connections.requests_each != Some(1) && !self.one_each
    }

    /// Begins to open a connection that any arrival may use. Says whether one is under
    /// way.
    pub(super) fn open_another(&mut self, now: u64) -> bool {
        let place = self.pool.take_closed();
        self.open(place, now)
    }

    /// Begins to open the connection of a closed place.
    fn open(&mut self, place: u32, now: u64) -> bool {
        let carrier = self.pool.carrier(place);
        let started = self.opening.start(&mut self.pool, carrier, now);
        if let Err(errno) = started {
            self.opening_failed(carrier, (Phase::Connect, socket::cause(errno)), now);
        }
        started.is_ok()
    }

    /// Goes on with a connection under way whose socket has something to tell.
    fn go_on_opening(&mut self, carrier: u32) -> u64 {
        let advanced = self.opening.advance(&mut self.pool, carrier);
        let now = clock::now();
        let opened = match advanced {
            Ok(false) => return now,
            Ok(true) => self.opening.finish(&mut self.pool, carrier),
            Err(cause) => Err((opening::phase(self.pool[carrier].link()), cause)),
        };
        match opened {
            Ok(()) => self.opened(carrier, now),
            Err(broken) => self.opening_failed(carrier, broken, now),
        }
        now
    }

    /// A connection can carry requests from now on.
    fn opened(&mut self, carrier: u32, now: u64) {
        let counts = &mut self.record.tally.span.connections;
        counts.opened += 1;
        match self.pool[carrier].resumed {
            Some(true) => counts.resumed += 1,
            Some(false) => counts.handshakes += 1,
            None => {}
        }
        for member in self.pool.members(carrier) {
            let connection = &mut self.pool[member];
            match connection.used() {
                // That of a user whose time is over is not sent any more.
                Use::Waiting
                    if self.source.is_users()
                        && self.source.ended().is_some()
                        && !connection.exchange.counted =>
                {
                    self.withdraw(member);
                    self.rest(member, now);
                }
                Use::Waiting => self.send_request(member, Delay::Opening),
                // Its user still pauses.
                Use::Thinking => {}
                Use::Free | Use::Asked => self.pool.offer(member),
            }
        }
    }

    /// A connection could not be opened. The request that needs it fails: the one bound
    /// to it, or else the arrival that waits longest.
    fn opening_failed(&mut self, carrier: u32, broken: Broken, now: u64) {
        self.record.tally.span.connections.failed += 1;
        self.opening.give_up(&mut self.pool, carrier, broken);
        let mut bound = false;
        for member in self.pool.members(carrier) {
            match self.pool[member].used() {
                Use::Waiting => {
                    bound = true;
                    self.fail(member, broken, now);
                }
                Use::Thinking => {}
                Use::Free | Use::Asked => self.pool.offer(member),
            }
        }
        if !bound {
            self.fail_arrival(broken, now);
        }
    }

    /// Has a closed, free connection opened again if it is to be held; otherwise it
    /// waits for an arrival that needs it.
    fn replace(&mut self, place: u32, worth: bool, now: u64) {
        let lasts = self.source.ended().is_none() && !self.source.is_users();
        if worth && lasts && self.pool.lacks() && self.replaces() {
            self.open(place, now);
        } else {
            self.pool.offer(place);
        }
    }
}
