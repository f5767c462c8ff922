//! A connection to a callee, which carries calls side by side.

use std::collections::VecDeque;
use std::mem;
use std::net::SocketAddr;
use std::sync::Arc;

use http::Request;
use wire::http2::{Answer, ClientSettings, Exchanges, Http2Error, Payload, StreamError, StreamKey};
use wire::poller::{Event, Poller};
use wire::slab::Key;
use wire::socket;
use wire::stream::Stream;

use traces::failure;

use super::causes::cause_word;
use crate::Nanos;
use crate::metrics::ClientCounters;
use crate::script::{OperationId, Outcome};
use crate::service::context::{Context, Deferred};
use crate::service::http2::message;
use crate::service::request_state::{Attempt, PoolId};
use crate::service::token;
use crate::topology::Protocol;

/// See the module.
pub(super) struct Channel {
    pub(super) key: Key,
    pub(super) pool: PoolId,
    pub(super) counters: Arc<ClientCounters>,
    pub(super) address: SocketAddr,
    pub(super) protocol: Protocol,
    pub(super) stage: Stage,
    /// Calls whose requests the callee does not take yet.
    pub(super) unsent: VecDeque<QueuedCall>,
    /// Calls that wait for their answers, by the slots of their streams.
    pub(super) calls: Vec<Option<(StreamKey, Attempt)>>,
    /// It has carried a call to its end: that it breaks now may be a race with the callee
    /// closing what was idle.
    pub(super) reused: bool,
    /// When the callee last said anything.
    pub(super) heard: Nanos,
    /// It carries one call only.
    pub(super) once: bool,
    /// It is to be driven, which is among the things to do.
    pub(super) pending: bool,
}

/// How far a connection is.
pub(super) enum Stage {
    Dialing(Stream),
    Open(Box<Exchanges>),
    Ended,
}

/// A call that waits for a stream.
pub(super) struct QueuedCall {
    pub(super) attempt: Attempt,
    pub(super) request: Request<()>,
    pub(super) body: Payload,
    pub(super) keep: usize,
}

/// How a call over a channel ended.
pub(super) type Ended = (Attempt, Result<Answer, StreamError>);

impl Channel {
    /// It is to be driven soon.
    pub(super) fn drive_later(&mut self, context: &mut Context) {
        if !mem::replace(&mut self.pending, true) {
            context.deferred.push_back(Deferred::Channel(self.key));
        }
    }

    /// Begins to speak as soon as the connection is made.
    pub(super) fn begin(&mut self, event: Event, poller: &Poller) -> Result<(), &'static str> {
        if let Stage::Dialing(stream) = &self.stage {
            if !event.writable {
                return Ok(());
            }
            stream
                .outcome()
                .map_err(|errno| cause_word(socket::cause(errno)))?;
            if let Stage::Dialing(stream) = mem::replace(&mut self.stage, Stage::Ended) {
                let watched = poller.remove(&stream);
                let mut connection = Exchanges::start(stream, ClientSettings::default());
                watched
                    .and_then(|()| connection.watch(poller, self.key.token(token::CHANNEL)))
                    .map_err(|_| failure::NO_DESCRIPTORS)?;
                self.stage = Stage::Open(Box::new(connection));
            }
        }
        Ok(())
    }

    /// Sends and reads what can be now, and adds the calls that ended.
    pub(super) fn drive(
        &mut self,
        mut readable: bool,
        poller: &Poller,
        ended: &mut Vec<Ended>,
    ) -> Result<(), &'static str> {
        self.pending = false;
        let Stage::Open(connection) = &mut self.stage else {
            return Ok(());
        };
        loop {
            let driven = connection.drive(mem::take(&mut readable));
            for (key, answer) in connection.finished() {
                let place = self.calls.get_mut(key.slot());
                let call = place.and_then(|place| place.take_if(|(of, _)| *of == key));
                ended.extend(call.map(|(_, attempt)| (attempt, answer)));
            }
            driven.map_err(|error| match error {
                Http2Error::Protocol(_) => failure::MALFORMED,
                _ => failure::RESET,
            })?;
            let mut sent = false;
            while connection.can_send()
                && let Some(unsent) = self.unsent.pop_front()
            {
                let QueuedCall {
                    attempt,
                    request,
                    body,
                    keep,
                } = unsent;
                match connection.send(request, body, keep) {
                    Ok(key) => {
                        if key.slot() >= self.calls.len() {
                            self.calls.resize(key.slot() + 1, None);
                        }
                        self.calls[key.slot()] = Some((key, attempt));
                    }
                    Err(_) => ended.push((attempt, Err(StreamError::Closed))),
                }
                sent = true;
            }
            if !sent {
                return connection.rewatch(poller).map_err(|_| failure::RESET);
            }
        }
    }

    /// A call's stream has ended.
    pub(super) fn ended(
        &mut self,
        attempt: Attempt,
        answer: Result<Answer, StreamError>,
        context: &mut Context,
    ) {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                let why = match error {
                    StreamError::Protocol(_) => failure::MALFORMED,
                    _ => failure::RESET,
                };
                // Those that the callee surely did nothing with, or that met its end.
                let race = self.reused
                    && matches!(
                        error,
                        StreamError::Refused
                            | StreamError::GoAway(_)
                            | StreamError::Closed
                            | StreamError::Io(_)
                    );
                self.unheard(attempt, why, race, context);
                return;
            }
        };
        self.reused = true;
        context.unload(self.pool);
        let Some(mut active) = context.active_requests.take(attempt.request) else {
            return;
        };
        let (outcome, failed, body) = message::outcome(&answer, self.protocol);
        let (status, why) = match outcome {
            Outcome::Unanswered(why) => (0, why),
            Outcome::Answered(status) => (status, ""),
            _ => (0, failure::MALFORMED),
        };
        let echoes = active.echoes();
        let state = &mut active.state;
        if status >= 400 && !failed.is_empty() {
            state.failed.clear();
            state.failed.extend_from_slice(failed);
            state.failed_edge = Some(attempt.edge);
        } else if echoes && (200..400).contains(&status) {
            state.keep(attempt.step, attempt.operation_id, body);
        }
        let recordings = &mut context.recordings;
        recordings.call(&active, &attempt, status, why, context.now);
        context.active_requests.put(active);
        context.ended(attempt.request, attempt.operation_id, outcome);
    }

    /// A call got no answer; `race`: since the callee may have closed the connection while
    /// it was idle, to which nobody goes any more.
    pub(super) fn unheard(
        &self,
        attempt: Attempt,
        why: &'static str,
        race: bool,
        context: &mut Context,
    ) {
        context.unload(self.pool);
        if race {
            context.routes.forget_channel(self.pool, self.key);
        }
        context.lost(attempt, why, race);
    }

    /// Gives up a call; `None`: it is not there.
    pub(super) fn cancel(
        &mut self,
        request: Key,
        operation_id: OperationId,
        context: &mut Context,
    ) -> Option<Attempt> {
        let mut unsent = self.unsent.iter();
        if let Some(at) = unsent.position(|one| one.attempt.is(request, operation_id)) {
            return self.unsent.remove(at).map(|unsent| unsent.attempt);
        }
        let is = |place: &&mut Option<_>| {
            place.is_some_and(|(_, attempt): (_, Attempt)| attempt.is(request, operation_id))
        };
        let (key, attempt) = self.calls.iter_mut().find(is)?.take()?;
        if let Stage::Open(connection) = &mut self.stage {
            connection.cancel(key);
        }
        self.drive_later(context);
        Some(attempt)
    }

    /// All calls that it carries.
    pub(super) fn attempts(&self) -> impl Iterator<Item = Attempt> {
        let unsent = self.unsent.iter().map(|one| one.attempt);
        let calls = self.calls.iter().flatten().map(|(_, attempt)| *attempt);
        unsent.chain(calls)
    }

    /// Whether it takes more calls.
    pub(super) fn takes_more(&mut self, address: SocketAddr) -> bool {
        self.address == address
            && !self.once
            && match &mut self.stage {
                Stage::Dialing(_) => true,
                Stage::Open(connection) => !connection.is_draining(),
                Stage::Ended => false,
            }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.unsent.is_empty() && self.calls.iter().all(Option::is_none)
    }
}
