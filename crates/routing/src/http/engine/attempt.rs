//! The backend's side of a request: an endpoint, a connection to it, and what to do when
//! either fails.

use std::sync::Arc;

use rand::Rng as _;
use rustix::io::Errno;
use wire::clock;
use wire::poller::{Event, Interest};
use wire::stream::StreamError;

use super::links::errno_text;
use super::session::{Link, LinkState, Phase, Session};
use super::worker::Worker;
use crate::http::pipeline::retry::{Attempt, Failure, Fate, TlsFailure, Verdict, judge};
use crate::http::pipeline::{self, Refusal, Upgrade};
use crate::selection::{Choice, Instance, Next, Sticky, Wish};
use crate::table::{BackendProtocol, Endpoint};
use wire::deadlines::NEVER;

/// How long a client that waits for `100 Continue` waits for the backend to say it; then
/// it is told to go on. As Go's transport (`ExpectContinueTimeout`).
const CONTINUE: u64 = 1_000_000_000;

impl Worker {
    /// Sends the request to the next endpoint, or answers that there is none.
    pub(super) fn attempt(&mut self, session: &mut Session) {
        if let Some(flight) = &mut session.flight
            && let Some(service) = flight.exchange.route_service()
        {
            if self.shared.settings.route_services.attempts == 0 {
                self.refuse(session, Refusal::UnknownFailure);
                return;
            }
            flight.endpoint = Some(Arc::new(Endpoint {
                identity: format!("{}:{}", service.host, service.port).into(),
                // Within the router there is nobody to prove anything to.
                tls: !service.hairpin,
                server_name: service.host.as_str().into(),
                ..Endpoint::default()
            }));
            flight.to_service = true;
        } else if let Some(flight) = &mut session.flight
            && let Some(pool) = flight.exchange.pool()
        {
            let wish = Wish {
                sticky: flight.exchange.sticky().map(|sticky| Sticky {
                    id: sticky.instance,
                    must: sticky.must,
                }),
                instance: flight.exchange.instance().map(|instance| match instance {
                    pipeline::Instance::App(app, index) => Instance::App {
                        app: app.as_bytes(),
                        index: index.as_bytes(),
                    },
                    pipeline::Instance::Process(process, index) => Instance::Process {
                        process: process.as_bytes(),
                        index: index.map(str::as_bytes),
                    },
                }),
                hash: flight.exchange.hash_value(&flight.head),
            };
            let random = self.random.next_u64();
            let pool = Arc::clone(pool);
            flight.choice = Some(Choice::new(pool, &self.shared.selection, &wish, random));
        }
        self.next_attempt(session, Refusal::NoEndpoints);
    }

    /// As [`Worker::attempt`]; without another endpoint, `otherwise` is the answer.
    fn next_attempt(&mut self, session: &mut Session, otherwise: Refusal) {
        let Some(flight) = &mut session.flight else {
            return;
        };
        let next = match (&mut flight.choice, &flight.endpoint) {
            (_, Some(service)) if flight.to_service => Next::Endpoint(Arc::clone(service)),
            (Some(choice), _) => choice.next(&self.shared.selection, self.now),
            (None, _) => Next::None,
        };
        match next {
            Next::Endpoint(endpoint) => {
                let scope = match flight.to_service {
                    true => Ok(()),
                    false => flight.exchange.check_scope(&session.client, &endpoint),
                };
                if let Err(refusal) = scope {
                    flight.exchange.progress.endpoint = Some(endpoint);
                    self.refuse(session, refusal);
                    return;
                }
                flight.attempts += 1;
                if flight.attempts > 1 {
                    self.counters.retries.increment();
                }
                flight.endpoint = Some(endpoint);
                self.approach(session, false);
            }
            Next::Overloaded => {
                self.counters.exhausted.increment();
                self.refuse(session, Refusal::Overloaded);
            }
            Next::None => self.refuse(session, otherwise),
        }
    }

    /// Takes an idle connection to the endpoint, or begins a new one (`fresh`: in any
    /// case), and prepares the request for it.
    fn approach(&mut self, session: &mut Session, fresh: bool) {
        let Some(flight) = &mut session.flight else {
            return;
        };
        let Some(endpoint) = flight.endpoint.clone() else {
            return;
        };
        let settings = &self.shared.settings.backends;
        let patience = u64::try_from(settings.timeout.as_nanos()).unwrap_or(NEVER);
        // What the router has spent so far is its own time, and is told as such.
        self.now = clock::now();
        flight.attempt_began = self.now;
        flight.attempt_ends = self.now.saturating_add(patience);
        flight.exchange.progress.endpoint = (!flight.to_service).then(|| Arc::clone(&endpoint));
        if flight.exchange.progress.backend_started == 0 {
            flight.exchange.progress.backend_started = self.now;
        }
        endpoint.state.begin();
        flight.counted = true;
        flight.sent = 0;
        flight.upstream_broken = false;
        let sheet = flight.upstream.fresh_sheet(&mut self.buffers);
        self.shared.pipeline.write_request(
            &flight.head,
            &mut flight.exchange,
            (!flight.to_service).then_some(&*endpoint),
            sheet,
        );
        flight.head_bytes = sheet.len();
        sheet.extend_from_slice(&flight.kept);
        let careful = !flight.exchange.idempotent() || !flight.kept_whole;
        let to_service = flight.to_service;
        // A kept connection may speak HTTP/2, in which an upgrade has no form.
        let fresh = fresh
            || (endpoint.protocol == BackendProtocol::Http2
                && flight.exchange.upgrade() != Upgrade::None);
        let kept = (!fresh)
            .then(|| self.idle_link(session.key, &endpoint, to_service, careful))
            .flatten();
        if let Some(link) = kept {
            self.counters.reused.increment();
            self.engage(session, link);
            return;
        }
        let Some(flight) = &session.flight else {
            return;
        };
        let settings = &self.shared.settings.backends;
        let longest = match flight.exchange.upgrade() {
            Upgrade::None => settings.dial_timeout,
            _ => settings.upgrade_dial_timeout,
        };
        session.deadline = self.after(longest).min(flight.attempt_ends);
        self.dial(session);
    }

    /// The connection is there: the request can go.
    pub(super) fn engage(&mut self, session: &mut Session, mut link: Box<Link>) {
        let Some(flight) = &mut session.flight else {
            return;
        };
        link.state = LinkState::Open;
        link.scanner
            .expect(super::answer::expectation(&flight.head));
        flight.connected = self.now;
        flight.exchange.progress.local = link.local;
        session.deadline = flight.attempt_ends;
        flight.continue_at = NEVER;
        if flight.head.expects_continue() && !flight.body_read {
            flight.continue_at = self.now.saturating_add(CONTINUE);
            session.deadline = session.deadline.min(flight.continue_at);
        }
        flight.link = Some(link);
    }

    /// Something happened to the connection to the backend.
    pub(super) fn link_event(&mut self, session: &mut Session, event: Event) {
        let state = session
            .flight
            .as_ref()
            .and_then(|flight| flight.link.as_ref())
            .map(|link| link.state);
        match state {
            Some(LinkState::Connecting) if event.writable => self.connected(session),
            Some(LinkState::Handshaking) => self.shake_hands(session),
            Some(LinkState::Open) if event.broken && !session.outbox.is_empty() => {
                self.stop_watching(session);
            }
            Some(LinkState::Open) if session.phase == Phase::Tunnel => {
                self.tunnel_event(session, event);
            }
            Some(LinkState::Open) if event.readable => self.read_link(session),
            _ => {}
        }
        self.settle(session);
    }

    /// Sends what waits for the backend. Says whether there is more to be done at once:
    /// another attempt has begun.
    pub(super) fn push(&mut self, session: &mut Session) -> bool {
        let Some(flight) = &mut session.flight else {
            return false;
        };
        let Some(link) = &mut flight.link else {
            return false;
        };
        if link.state != LinkState::Open
            || (flight.upstream.is_empty() && !link.stream.wants_write())
        {
            return false;
        }
        match flight.upstream.send(&mut link.stream, &mut self.buffers) {
            Ok(bytes) => {
                flight.sent += bytes;
                false
            }
            Err(error) => {
                // The backend may have answered before it closed: its last word counts.
                flight.upstream_broken = true;
                flight.upstream.clear(&mut self.buffers);
                self.read_link(session);
                let silent = session
                    .flight
                    .as_ref()
                    .is_some_and(|flight| flight.upstream_broken && flight.link.is_some());
                if silent && session.phase == Phase::Flight {
                    self.fail(session, write_failure(&error));
                }
                session.phase == Phase::Flight
            }
        }
    }

    /// The attempt failed: tries another one, answers, or cuts the answer off that has
    /// begun already.
    pub(super) fn fail(&mut self, session: &mut Session, failure: Failure<'_>) {
        let Some(flight) = &mut session.flight else {
            return;
        };
        if matches!(failure, Failure::Timeout | Failure::DialTimeout) {
            self.counters.timeouts.increment();
        }
        if flight.answered {
            self.drop_link(session);
            self.cut_off(session);
            return;
        }
        let Some(endpoint) = flight.endpoint.clone() else {
            return;
        };
        let pool = flight.exchange.pool().cloned();
        let attempt = Attempt {
            number: flight.attempts,
            endpoints: pool.as_ref().map_or(0, |pool| pool.endpoints().len()),
            address: endpoint.identity(),
            local: flight.link.as_ref().and_then(|link| link.local()),
            reused: flight.link.as_ref().is_some_and(|link| link.reused),
            head_sent: flight.sent >= flight.head_bytes,
            replayable: flight.kept_whole,
            tls: endpoint.tls,
        };
        let most = if flight.to_service {
            self.shared.settings.route_services.attempts
        } else {
            self.shared.settings.backends.attempts
        };
        let (verdict, fate) = judge(failure, &attempt, most, &mut flight.exchange);
        match fate {
            Fate::Stays => {}
            Fate::MarkFailed => {
                let until = self.after(self.shared.settings.backends.failed_for);
                endpoint.state.fail_until(until);
            }
            Fate::Remove => {
                if let Some(pool) = &pool {
                    self.shared.table.remove(pool, &endpoint, self.now);
                }
            }
        }
        self.count_failure(failure);
        self.drop_link(session);
        match verdict {
            Verdict::Resend => {
                self.counters.stale_connections.increment();
                self.approach(session, true);
            }
            Verdict::Again(otherwise) => {
                self.note_failed_attempt(session);
                self.next_attempt(session, otherwise);
            }
            Verdict::GiveUp(refusal) => {
                self.note_failed_attempt(session);
                self.refuse(session, refusal);
            }
        }
    }

    fn note_failed_attempt(&mut self, session: &mut Session) {
        if let Some(flight) = &mut session.flight {
            let progress = &mut flight.exchange.progress;
            progress.failed_attempts += 1;
            progress.failed_finished = self.now;
            progress.backend_finished = self.now;
        }
    }

    fn count_failure(&self, failure: Failure<'_>) {
        let counters = &self.counters;
        match failure {
            Failure::Tls(TlsFailure::Name { .. }) => counters.invalid_backend_id.increment(),
            Failure::Tls(TlsFailure::Authority | TlsFailure::Expired(_)) => {
                counters.invalid_backend_certificate.increment();
            }
            Failure::Tls(_) => counters.failed_handshakes.increment(),
            _ => {}
        }
    }

    /// A request on its way ran out of patience.
    pub(super) fn flight_expired(&mut self, session: &mut Session) {
        let Some(flight) = &mut session.flight else {
            return;
        };
        if flight.continue_at <= self.now && flight.attempt_ends > self.now {
            flight.continue_at = NEVER;
            session.deadline = flight.attempt_ends;
            if !flight.answered {
                let sheet = session.outbox.sheet(&mut self.buffers);
                sheet.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            }
            return;
        }
        let failure = match flight.link.as_ref().map(|link| link.state) {
            // The time for the whole attempt is over, whatever it was at.
            _ if flight.attempt_ends <= self.now => Failure::Timeout,
            Some(LinkState::Connecting) | None => Failure::DialTimeout,
            Some(LinkState::Handshaking) => Failure::Tls(TlsFailure::Timeout),
            _ => Failure::Timeout,
        };
        self.fail(session, failure);
    }

    /// The connection to the backend broke, and what came before is still to be read when
    /// the client has taken more.
    fn stop_watching(&mut self, session: &mut Session) {
        if let Some(link) = session.flight.as_mut().and_then(|it| it.link.as_mut())
            && link.watched
        {
            link.watched = self.poller.remove(&link.stream).is_err();
        }
    }

    /// Watches for what the connection to the backend needs, where that changed.
    pub(super) fn arm_link(&mut self, session: &mut Session) {
        let Some(flight) = &mut session.flight else {
            return;
        };
        let Some(link) = &mut flight.link else {
            return;
        };
        if !link.watched {
            if session.outbox.is_empty() && !link.ended {
                self.look_again(session.key);
            }
            return;
        }
        let write = link.stream.wants_write()
            || match link.state {
                LinkState::Connecting => true,
                LinkState::Handshaking => false,
                LinkState::Open => !flight.upstream.is_empty(),
            };
        // What the client does not take is not read.
        let read = link.state != LinkState::Connecting
            && !link.ended
            && (session.outbox.is_empty() || link.state == LinkState::Handshaking);
        let wanted = super::session::interest(read, write);
        let was = link.interest;
        if wanted == was {
            return;
        }
        let token = link.key.token(super::token::BACKEND);
        if self.poller.change(&link.stream, token, wanted).is_ok() {
            link.interest = wanted;
            if matches!(wanted, Interest::Read | Interest::Both) && link.stream.holds_bytes() {
                self.look_again(session.key);
            }
        }
    }
}

fn write_failure(error: &StreamError) -> Failure<'static> {
    match error {
        StreamError::Socket(Errno::CONNRESET) => Failure::Reset,
        StreamError::Socket(errno) => Failure::Write(errno_text(*errno)),
        StreamError::Tls(_) => Failure::Write("tls: broken connection"),
    }
}
