//! The backend's side of a request: an endpoint, a connection to it, and what to do when
//! either fails.

use std::sync::Arc;

use rand::Rng as _;
use rustix::io::Errno;
use wire::deadlines::NEVER;
use wire::http1::{Expect, RequestHead};
use wire::stream::StreamError;

use super::answer::AnswerError;
use super::{ActiveRequest, FINISHED, Flow, ONGOING, ThreadResources};
use crate::http::engine::backends::errno_text;
use crate::http::engine::context::Context;
use crate::http::engine::tls::PeerKind;
use crate::http::pipeline::retry::{Attempt, Failure, Fate, Verdict, judge, note_no_endpoint};
use crate::http::pipeline::{Refusal, Upgrade};
use crate::selection::{Choice, Next};
use crate::table::{BackendProtocol, Endpoint, Nanos};

/// How long a client that waits for `100 Continue` waits for the backend to say it; then
/// it is told to go on. As Go's transport (`ExpectContinueTimeout`).
const CONTINUE: Nanos = 1_000_000_000;

/// What the request lets its answer be. gorouter sends `CONNECT` on as any method.
fn expectation(head: &RequestHead) -> Expect {
    match head.method() {
        b"HEAD" => Expect::NoBody,
        _ => Expect::Body,
    }
}

impl ActiveRequest {
    /// Sends the request to the next endpoint, or answers that there is none.
    pub(super) fn attempt(&mut self, resources: &mut ThreadResources<'_>) -> Flow {
        let shared = &resources.context.shared;
        if let Some(service) = self.exchange.route_service() {
            if shared.settings.route_services.attempts == 0 {
                return self.refuse(Refusal::UnknownFailure, resources);
            }
            self.endpoint = Some(Arc::new(Endpoint {
                identity: format!("{}:{}", service.host, service.port).into(),
                // Within the router there is nobody to prove anything to.
                tls: !service.hairpin,
                server_name: service.host.as_str().into(),
                ..Endpoint::default()
            }));
            self.to_service = true;
        } else if let Some(pool) = self.exchange.pool() {
            let selection_request = self.exchange.selection_request(&self.head);
            let random = resources.context.random.next_u64();
            let pool = Arc::clone(pool);
            self.choice = Some(Choice::new(
                pool,
                &shared.selection,
                &selection_request,
                random,
            ));
        }
        self.next_attempt(Refusal::EndpointFailure, resources)
    }

    /// Names the endpoint whose turn it is for the log alone: gorouter does so of a request
    /// whose head is too large.
    pub(super) fn name_endpoint(&mut self, context: &mut Context) {
        let Some(pool) = self.exchange.pool().cloned() else {
            return;
        };
        let random = context.random.next_u64();
        let settings = &context.shared.selection;
        let selection_request = self.exchange.selection_request(&self.head);
        let mut choice = Choice::new(pool, settings, &selection_request, random);
        if let Next::Endpoint(endpoint) = choice.next(settings, context.clock.now()) {
            self.exchange.progress.endpoint = Some(endpoint);
        }
    }

    /// As [`ActiveRequest::attempt`]; without another endpoint, `otherwise` is the answer.
    fn next_attempt(&mut self, otherwise: Refusal, resources: &mut ThreadResources<'_>) -> Flow {
        let context = &resources.context;
        let next = match (&mut self.choice, &self.endpoint) {
            (_, Some(service)) if self.to_service => Next::Endpoint(Arc::clone(service)),
            (Some(choice), _) => choice.next(&context.shared.selection, context.clock.now()),
            (None, _) => Next::None,
        };
        match next {
            Next::Endpoint(endpoint) => {
                let scope = match self.to_service {
                    true => Ok(()),
                    false => self
                        .exchange
                        .check_scope(resources.client.client(), &endpoint),
                };
                if let Err(refusal) = scope {
                    self.exchange.progress.endpoint = Some(endpoint);
                    return self.refuse(refusal, resources);
                }
                self.attempts += 1;
                if self.attempts > 1 {
                    context.counters.retries.increment();
                }
                if !self.to_service {
                    context.counters.routed.increment();
                }
                self.endpoint = Some(endpoint);
                self.connect(false, resources)
            }
            Next::Overloaded if self.attempts == 0 => self.refuse(Refusal::Overloaded, resources),
            // What failed before is told rather than that nobody else may be asked.
            Next::Overloaded | Next::None => {
                if self.attempts == 0 {
                    note_no_endpoint(&mut self.exchange);
                }
                self.refuse(otherwise, resources)
            }
        }
    }

    /// Takes an idle connection to the endpoint, or begins a new one (`fresh`: in any
    /// case), and prepares the request for it.
    fn connect(&mut self, fresh: bool, resources: &mut ThreadResources<'_>) -> Flow {
        let Some(endpoint) = self.endpoint.clone() else {
            return ONGOING;
        };
        let context = &mut *resources.context;
        // What the router has spent so far is its own time, and is told as such.
        let now = context.clock.look();
        let http2 = resources.client.client().http2();
        let timeout = context.shared.settings.backends.timeout_of(http2);
        self.attempt_began = now;
        // As in gorouter: nobody knows how long what a WebSocket asks for takes.
        self.attempt_ends = match self.exchange.upgrade() {
            Upgrade::WebSocket => NEVER,
            _ => context.clock.after(timeout),
        };
        self.exchange.progress.endpoint = (!self.to_service).then(|| Arc::clone(&endpoint));
        let progress = &mut self.exchange.progress;
        if progress.backend_started == 0 {
            progress.backend_started = now;
        }
        (progress.attempt_started, progress.attempt_finished) = (now, now);
        (progress.backend_status, progress.backend_length) = (0, None);
        endpoint.state.begin();
        self.counted = true;
        self.sent = 0;
        self.upstream_broken = false;
        let write_buffer = self.upstream.fresh_write_buffer(&mut context.buffers);
        context.shared.pipeline.write_request(
            &self.head,
            &mut self.exchange,
            (!self.to_service).then_some(&*endpoint),
            write_buffer,
        );
        self.head_bytes = write_buffer.len();
        write_buffer.extend_from_slice(&self.kept);
        let upgrades = self.exchange.upgrade() != Upgrade::None;
        // A kept connection may speak HTTP/2, in which an upgrade has no form.
        let fresh = fresh || (endpoint.protocol == BackendProtocol::Http2 && upgrades);
        if !fresh {
            let careful = !self.exchange.idempotent() || !self.kept_whole;
            let (client, service) = (resources.client.key(), self.to_service);
            let backends = &mut resources.backends;
            if let Some(kept) = backends.idle(client, &endpoint, service, careful, context) {
                context.counters.reused.increment();
                self.connection = Some(kept);
                self.begin_exchange(now);
                return ONGOING;
            }
        }
        let settings = &context.shared.settings.backends;
        let longest = match upgrades {
            false => settings.dial_timeout,
            true => settings.upgrade_dial_timeout,
        };
        self.deadline = context.clock.after(longest).min(self.attempt_ends);
        self.dial(resources)
    }

    /// Begins a connection to the endpoint, whose name may have to be resolved first.
    fn dial(&mut self, resources: &mut ThreadResources<'_>) -> Flow {
        let Some(endpoint) = self.endpoint.clone() else {
            return ONGOING;
        };
        let upgrades = self.exchange.upgrade() != Upgrade::None;
        let http2 = resources.context.shared.settings.http2;
        let to = match (self.exchange.route_service(), endpoint.protocol) {
            (Some(service), _) if service.hairpin => PeerKind::Itself,
            (Some(_), _) => PeerKind::Service,
            // An upgrade has no form in HTTP/2.
            (None, BackendProtocol::Http2) if http2 && !upgrades => PeerKind::Http2Backend,
            (None, _) => PeerKind::Backend,
        };
        let client = resources.client.key();
        match resources
            .backends
            .dial(client, &endpoint, to, resources.context)
        {
            Ok(connection) => {
                self.resolving = connection.is_none();
                self.connection = connection;
                ONGOING
            }
            Err(failure) => self.fail(failure, resources),
        }
    }

    /// A name was resolved: if it is this request's, it goes on.
    pub(crate) fn name_resolved(&mut self, resources: &mut ThreadResources<'_>) -> Flow {
        match self.resolving {
            true => self.dial(resources),
            false => ONGOING,
        }
    }

    /// The connection is there, or cannot be made.
    pub(super) fn connected(&mut self, resources: &mut ThreadResources<'_>) -> Flow {
        let Some(connection) = &mut self.connection else {
            return ONGOING;
        };
        if let Err(errno) = connection.begin_handshake() {
            return self.fail(Failure::Dial(errno_text(errno)), resources);
        }
        let clock = &resources.context.clock;
        let longest = resources.context.shared.settings.backends.handshake_timeout;
        let took = clock.now().saturating_sub(self.attempt_began);
        self.exchange.progress.dial = took.max(1);
        self.deadline = clock.after(longest).min(self.attempt_ends);
        self.handshake(resources)
    }

    /// Goes on with TLS's handshake, if there is to be one.
    pub(super) fn handshake(&mut self, resources: &mut ThreadResources<'_>) -> Flow {
        let Some(connection) = &mut self.connection else {
            return ONGOING;
        };
        let now = resources.context.clock.now();
        match connection.handshake() {
            Ok(true) => {
                if connection.has_tls() {
                    let since = self.attempt_began + self.exchange.progress.dial;
                    self.exchange.progress.tls = now.saturating_sub(since).max(1);
                }
                if let Err(errno) = resources.backends.opened(connection, resources.context) {
                    return self.fail(Failure::Dial(errno_text(errno)), resources);
                }
                self.begin_exchange(now);
                ONGOING
            }
            Ok(false) => ONGOING,
            Err(error) => self.fail_tls(&error, Failure::TlsOther("EOF"), resources),
        }
    }

    /// The connection is there: the request can go.
    fn begin_exchange(&mut self, now: Nanos) {
        if let Some(connection) = &mut self.connection {
            connection.expect(expectation(&self.head));
            self.exchange.progress.local = connection.known_local();
        }
        self.deadline = self.attempt_ends;
        self.continue_at = NEVER;
        if self.head.expects_continue() && !self.body_read {
            self.continue_at = now.saturating_add(CONTINUE);
            self.deadline = self.deadline.min(self.continue_at);
        }
    }

    /// No answer comes.
    pub(super) fn fail_answer(
        &mut self,
        error: &AnswerError,
        resources: &mut ThreadResources<'_>,
    ) -> Flow {
        match error {
            AnswerError::Closed => self.fail(Failure::Closed, resources),
            AnswerError::Broken(StreamError::Socket(Errno::CONNRESET)) => {
                self.fail(Failure::Reset, resources)
            }
            // In TLS 1.3 a server refuses the client's certificate only now.
            AnswerError::Broken(error) => self.fail_tls(error, Failure::Closed, resources),
            AnswerError::Protocol(text) => self.fail(Failure::Protocol(text), resources),
        }
    }

    /// The request cannot be written.
    pub(super) fn fail_write(
        &mut self,
        error: &StreamError,
        resources: &mut ThreadResources<'_>,
    ) -> Flow {
        let failure = match error {
            StreamError::Socket(Errno::CONNRESET) => Failure::Reset,
            StreamError::Socket(errno) => Failure::Write(errno_text(*errno)),
            StreamError::Tls(_) => Failure::Write("tls: broken connection"),
        };
        self.fail(failure, resources)
    }

    /// The connection failed within TLS, or beside it: `otherwise`.
    fn fail_tls(
        &mut self,
        error: &StreamError,
        otherwise: Failure<'_>,
        resources: &mut ThreadResources<'_>,
    ) -> Flow {
        let failure = error.tls_failure();
        self.fail(failure.as_ref().map_or(otherwise, Failure::Tls), resources)
    }

    /// The attempt failed: tries another one, answers, or cuts the answer off that has
    /// begun already.
    pub(super) fn fail(
        &mut self,
        failure: Failure<'_>,
        resources: &mut ThreadResources<'_>,
    ) -> Flow {
        let context = &mut *resources.context;
        if matches!(failure, Failure::Timeout | Failure::DialTimeout) {
            context.counters.timeouts.increment();
        }
        if self.answered {
            resources.client.cut_off();
            return FINISHED;
        }
        let Some(endpoint) = self.endpoint.clone() else {
            return ONGOING;
        };
        let pool = self.exchange.pool().cloned();
        let wanted = self.exchange.instance();
        let is_other = |it: &&Arc<Endpoint>| {
            !Arc::ptr_eq(&it.state, &endpoint.state) && wanted.is_none_or(|wanted| wanted.is(it))
        };
        let others = pool
            .as_ref()
            .map_or(0, |pool| pool.endpoints().iter().filter(is_other).count());
        let connection = self.connection.as_ref();
        let attempt = Attempt {
            number: self.attempts,
            endpoints: self.gone + 1 + others,
            address: endpoint.identity(),
            local: connection.and_then(|it| it.local()),
            reused: connection.is_some_and(|it| it.was_used()),
            head_sent: self.sent >= self.head_bytes,
            replayable: self.kept_whole,
            tls: endpoint.tls,
        };
        let settings = &context.shared.settings;
        let most = match self.to_service {
            true => settings.route_services.attempts,
            false => settings.backends.attempts,
        };
        let (verdict, fate) = judge(failure, &attempt, most, &mut self.exchange);
        let now = context.clock.now();
        match (fate, &pool) {
            (Fate::MarkFailed, _) => {
                let until = context.clock.after(settings.backends.failed_for);
                endpoint.state.fail_until(until);
            }
            (Fate::Remove, Some(pool)) => {
                context.shared.table.remove(pool, &endpoint, now);
                self.gone += 1;
            }
            (Fate::Remove, None) | (Fate::Stays, _) => {}
        }
        self.leave_backend(resources.backends, context);
        match verdict {
            Verdict::Resend => {
                context.counters.stale_connections.increment();
                self.connect(true, resources)
            }
            Verdict::Again(otherwise) => {
                self.note_failed_attempt(now);
                self.next_attempt(otherwise, resources)
            }
            Verdict::GiveUp(refusal) => {
                self.note_failed_attempt(now);
                self.refuse(refusal, resources)
            }
        }
    }
}
