//! A request on its way: what is known of it, and how it ends.
//!
//! ```text
//! course ──▶ attempt (an endpoint, a connection) ──▶ answer (on its way back) ──▶ tunnel
//! ```

mod answer;
mod attempt;
mod course;
mod malformed;
mod record;
mod tunnel;

use std::ops::ControlFlow;
use std::sync::Arc;

use wire::deadlines::NEVER;
use wire::http1::RequestHead;

use super::backends::{BackendConnection, Backends};
use super::buffers::Outbox;
use super::client::ClientConnection;
use super::context::Context;
use crate::http::pipeline::{Exchange, Promise, Refusal, retry};
use crate::selection::Choice;
use crate::table::{Endpoint, Nanos};

pub(super) use self::record::{RequestSinks, Requests};

/// Memory for a head, and for a body that may be sent again, that stays with a request.
const KEPT_MEMORY: usize = 8 * 1024;

/// Whether a request goes on. When it is over, its client's connection knows how to go on.
pub(super) type Flow = ControlFlow<()>;
const ONGOING: Flow = ControlFlow::Continue(());
const FINISHED: Flow = ControlFlow::Break(());

/// What a request works with.
pub(super) struct ThreadResources<'l> {
    pub(super) client: &'l mut ClientConnection,
    pub(super) context: &'l mut Context,
    pub(super) backends: &'l mut Backends,
}

/// A request on its way. Used again for others, so that nothing is allocated for one.
#[derive(Default)]
pub(super) struct ActiveRequest {
    head: RequestHead,
    exchange: Exchange,
    /// Chooses endpoints, one for each attempt.
    choice: Option<Choice>,
    /// The request goes to a route service, not to an endpoint of its pool.
    to_service: bool,
    /// The endpoint's name is being resolved.
    resolving: bool,
    /// Attempts so far; those that were resent do not count.
    attempts: u32,
    /// Endpoints that left the pool when it had tried them.
    gone: usize,
    endpoint: Option<Arc<Endpoint>>,
    /// Whether the endpoint counts this request as one that waits for it.
    counted: bool,
    connection: Option<Box<BackendConnection>>,
    /// Whether the body has come whole.
    body_read: bool,
    /// To the backend: the head, and the body as it comes.
    upstream: Outbox,
    /// The body so far as it is sent, for another attempt.
    kept: Vec<u8>,
    /// Whether `kept` holds all of it.
    kept_whole: bool,
    /// Bytes of its head, and how many bytes this attempt has given to the kernel.
    head_bytes: usize,
    sent: usize,
    /// The backend takes no more: it may have answered without reading everything.
    upstream_broken: bool,
    /// When patience ends with what the attempt is at.
    deadline: Nanos,
    /// When this attempt began and must be over.
    attempt_began: Nanos,
    attempt_ends: Nanos,
    /// When a client that waits for `100 Continue` is told to go on.
    continue_at: Nanos,
    /// Behind an upgrade, bytes go both ways as they are.
    tunnels: bool,
    /// The answer's head is on its way to the client.
    answered: bool,
    /// What the router said in place of an answer.
    refused: Option<Refusal>,
    /// Not to be logged: the server itself answers it.
    unlogged: bool,
    /// What was promised to the client with it.
    promise: Option<Promise>,
}

impl ActiveRequest {
    /// Where its head is read into.
    pub(super) fn head_mut(&mut self) -> &mut RequestHead {
        &mut self.head
    }

    pub(super) fn deadline(&self) -> Nanos {
        self.deadline
    }

    /// The client went away: its request is of no use to anybody. A client that may have
    /// ended only its own side is told so.
    pub(super) fn give_up(&mut self, resources: &mut ThreadResources<'_>) -> Flow {
        let context = &mut *resources.context;
        if !self.tunnels {
            context.counters.clients_gone.increment();
        }
        if self.answered {
            resources.client.close();
            return FINISHED;
        }
        if self.attempts > 0 {
            retry::note_cancelled(&mut self.exchange);
            self.note_failed_attempt(context.clock.now());
        }
        self.write_refusal(Refusal::Cancelled, false, resources);
        match resources.client.has_ended() {
            true => resources.client.close_after_answer(resources.context),
            false => resources.client.close(),
        }
        FINISHED
    }

    /// Writes the router's own answer; whether the client's connection may go on.
    fn write_refusal(
        &mut self,
        refusal: Refusal,
        keep_alive: bool,
        resources: &mut ThreadResources<'_>,
    ) -> bool {
        let context = &mut *resources.context;
        let times = context.clock.times();
        context.shared.pipeline.write_refusal(
            &self.head,
            &mut self.exchange,
            refusal,
            keep_alive,
            times,
            resources.client.outbox().write_buffer(&mut context.buffers),
        )
    }

    /// Notes that an attempt came to nothing.
    fn note_failed_attempt(&mut self, now: Nanos) {
        let progress = &mut self.exchange.progress;
        progress.failed_attempts += 1;
        progress.failed_finished = now;
        progress.attempt_finished = now;
        progress.backend_finished = now;
    }

    /// Closes the connection that it uses, and takes it off its endpoint.
    pub(super) fn leave_backend(&mut self, backends: &mut Backends, context: &mut Context) {
        self.leave_endpoint();
        self.resolving = false;
        self.upstream.clear(&mut context.buffers);
        if let Some(connection) = self.connection.take() {
            backends.close(*connection, context);
        }
    }

    /// The endpoint does not wait for it any more.
    fn leave_endpoint(&mut self) {
        if std::mem::take(&mut self.counted)
            && let Some(endpoint) = &self.endpoint
        {
            endpoint.state.end();
        }
    }

    /// Makes it ready for another request.
    fn reset(&mut self) {
        self.choice = None;
        (self.to_service, self.resolving) = (false, false);
        (self.attempts, self.gone) = (0, 0);
        self.endpoint = None;
        self.counted = false;
        self.connection = None;
        self.body_read = false;
        self.kept.clear();
        self.kept_whole = true;
        (self.head_bytes, self.sent) = (0, 0);
        self.upstream_broken = false;
        (self.deadline, self.attempt_ends) = (NEVER, NEVER);
        self.continue_at = NEVER;
        (self.tunnels, self.answered, self.unlogged) = (false, false, false);
        self.refused = None;
        self.promise = None;
    }

    /// Lets go of what it holds of its last request, but for memory up to a bound.
    fn release(&mut self) {
        self.choice = None;
        self.endpoint = None;
        self.exchange.progress.endpoint = None;
        self.kept.clear();
        self.kept.shrink_to(KEPT_MEMORY);
        if self.head.bytes().len() > KEPT_MEMORY {
            self.head.clear(KEPT_MEMORY);
        }
    }
}
