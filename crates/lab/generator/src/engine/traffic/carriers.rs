//! Connections that carry several requests at once: sessions of HTTP/2, and pipelines.

use lab_load::recording::Phase;
use wire::http2::{Answer, StreamError};

use super::Traffic;
use crate::engine::conversation::Broken;
use crate::engine::pipeline::BEHIND;
use crate::engine::pool::{Link, Use};

impl Traffic {
    /// Sends and takes what there is on a connection with several exchanges, and says when.
    pub(super) fn drive(&mut self, carrier: u32, readable: bool) -> u64 {
        let driven = self.streams.drive(&mut self.pool, carrier, readable);
        let now = driven.at;
        let kind = self.pool[carrier].exchange.kind;
        let kind = self.record.tally.kind(kind);
        kind.bytes_sent += driven.bytes.sent;
        kind.bytes_received += driven.bytes.received;
        for (place, result) in driven.ended {
            self.end_stream(place, result, now);
        }
        if driven.closed {
            self.record.tally.span.connections.closed += 1;
            self.shut_session(carrier, now);
            return now;
        }
        // What the target did not take before, as far as it does now.
        while let Some(place) = self.streams.take_queued(&mut self.pool, carrier) {
            self.send_request(place, self.pool[place].exchange.delay);
        }
        if self.streams.is_spent(&mut self.pool, carrier) {
            self.shut_session(carrier, now);
        } else {
            self.offer_parked(carrier);
        }
        now
    }

    /// An exchange among several has ended, well or not.
    fn end_stream(&mut self, place: u32, result: Result<Answer, StreamError>, now: u64) {
        let connection = &mut self.pool[place];
        if connection.used() != Use::Asked {
            return;
        }
        let exchange = &mut connection.exchange;
        exchange.stream = None;
        match result {
            Ok(answer) => match self.streams.take(exchange, &answer) {
                Ok(whole) => self.answered(place, whole, now),
                Err(broken) => self.fail(place, broken, now),
            },
            // The target did nothing with it.
            Err(StreamError::Refused) if !exchange.again => self.resend(place, now),
            Err(error) => {
                let phase = match error.is_protocol() {
                    true => Phase::Protocol,
                    false => Phase::Read,
                };
                self.fail(place, (phase, error.cause()), now);
            }
        }
    }

    /// Closes a connection with several exchanges. Requests that it did not take yet
    /// have another one opened.
    fn shut_session(&mut self, carrier: u32, now: u64) {
        let connection = &mut self.pool[carrier];
        let used = connection.carried > 0;
        let Some(session) = connection.session.take() else {
            return;
        };
        self.pool.close(carrier);
        for place in session.into_queue() {
            self.send_or_open(place, now);
        }
        self.replace_members(carrier, used, now);
    }

    /// Sends and takes what there is on a pipeline, and says when.
    pub(super) fn drive_pipeline(&mut self, carrier: u32, readable: bool) -> u64 {
        let (pool, record) = (&mut self.pool, &mut self.record);
        let pumped = self.pipelines.drive(pool, record, carrier, readable);
        let now = pumped.at;
        let mut answered = std::mem::take(&mut self.pipelines.answered);
        for (place, whole) in answered.drain(..) {
            self.answered(place, whole, now);
        }
        self.pipelines.answered = answered;
        if let Some(broken) = pumped.broken {
            self.record.tally.span.connections.closed += 1;
            self.shut_pipeline(carrier, broken, now);
        } else if self.pipelines.is_spent(&self.pool, carrier) {
            self.shut_pipeline(carrier, (Phase::Read, BEHIND), now);
        }
        now
    }

    /// Closes a pipeline. Requests whose answers were to come fail; those that were not sent
    /// have another connection opened.
    pub(super) fn shut_pipeline(&mut self, carrier: u32, broken: Broken, now: u64) {
        let connection = &mut self.pool[carrier];
        let used = connection.carried > 0;
        let Some(pipeline) = connection.pipeline.take() else {
            return;
        };
        self.pool.close(carrier);
        let (asked, queue) = pipeline.into_places();
        for place in asked {
            self.fail(place, broken, now);
        }
        for place in queue {
            self.send_or_open(place, now);
        }
        self.replace_members(carrier, used, now);
    }

    /// Has the connection of a carrier that was closed opened again, if it is to be held.
    fn replace_members(&mut self, carrier: u32, used: bool, now: u64) {
        for member in self.pool.members(carrier) {
            let connection = &self.pool[member];
            if connection.link() == Link::Closed && connection.used() == Use::Free {
                self.replace(member, used, now);
            }
        }
    }
}
