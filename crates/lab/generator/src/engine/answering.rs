//! Answers: taken, judged, or missed.

use std::time::Duration;

use lab_load::Protocol;
use lab_load::recording::Phase;
use wire::clock;
use wire::stream::Received;

use super::connection::Use;
use super::reaction::Answered;
use super::talk::Whole;
use super::{BUFFER, End, Engine, nanos};
use lab_load::request::{Answer, Next, is_redirect};

impl Engine {
    /// Takes what came in on an open connection, and says when.
    pub(super) fn take_answer(&mut self, place: u32) -> u64 {
        loop {
            let connection = &mut self.connections[place as usize];
            let Some(stream) = &mut connection.stream else {
                return clock::now();
            };
            let kept = connection.unread.len();
            self.buffer[..kept].copy_from_slice(&connection.unread);
            let received = stream.receive(&mut self.buffer[kept..]);
            let now = clock::now();
            let received = match received {
                Ok(Received::Bytes(received)) => received,
                Ok(Received::Nothing) => return now,
                Ok(Received::End) => {
                    self.end_of_stream(place, now);
                    return now;
                }
                Err(error) => {
                    self.broken(place, Phase::Read, error.cause(), now);
                    return now;
                }
            };
            let exchange = &mut connection.exchange;
            let asked = exchange.used == Use::Asked;
            if !asked && !connection.talk.listens() {
                // Nothing was asked, so this answers nothing: the target says that it
                // is about to close, or is confused. Neither is an error of a request.
                self.closed_idle(place, now);
                return now;
            }
            if asked {
                exchange.answering = true;
                self.tally.kind(exchange.kind).bytes_received += received as u64;
            }
            let input = &self.buffer[..kept + received];
            let taken = match connection
                .talk
                .take(input, &mut exchange.kept, &mut self.known)
            {
                Ok(taken) => taken,
                Err((phase, cause)) => {
                    self.broken(place, phase, cause, now);
                    return now;
                }
            };
            let rest = &input[taken.consumed..];
            if let Some(mut whole) = taken.whole
                && asked
            {
                // What nobody asked for would be taken for the next answer.
                whole.keep_alive &= rest.is_empty();
                connection.unread.clear();
                self.answered(place, whole, now);
                return now;
            }
            if rest.len() == BUFFER {
                self.broken(place, Phase::Protocol, "too long", now);
                return now;
            }
            connection.unread.clear();
            connection.unread.extend_from_slice(rest);
            let holds_bytes = stream.holds_bytes();
            self.reply(place);
            // What else there is will be told again, unless TLS holds it.
            if kept + received < BUFFER && !holds_bytes {
                return now;
            }
        }
    }

    /// The target sends no more.
    fn end_of_stream(&mut self, place: u32, now: u64) {
        let connection = &mut self.connections[place as usize];
        if connection.exchange.used != Use::Asked {
            return self.closed_idle(place, now);
        }
        match connection.talk.end(&mut connection.exchange.kept) {
            Ok(whole) => self.answered(place, whole, now),
            Err((phase, cause)) => self.broken(place, phase, cause, now),
        }
    }

    /// A whole answer came in.
    pub(super) fn answered(&mut self, place: u32, whole: Whole, now: u64) {
        self.tally.ended(now);
        self.answer_by.clear(place);
        let connection = &mut self.connections[place as usize];
        let exchange = &mut connection.exchange;
        let in_flight = self.tally.in_flight();
        let kind = self.tally.kind(exchange.kind);
        kind.answered += 1;
        let intended = now.saturating_sub(exchange.intended);
        let actual = now.saturating_sub(exchange.sent);
        kind.intended.record_ns(intended);
        kind.actual.record_ns(actual);
        let answered = Answered {
            kind: exchange.kind,
            at: now,
            intended,
            actual,
            late: exchange.late,
            burst: exchange.burst,
        };
        self.reaction.answered(answered, in_flight);
        if let Some(status) = whole.status {
            *kind.statuses.entry(status).or_insert(0) += 1;
        }
        let Some(visit) = &mut exchange.visit else {
            return;
        };
        let answer = Answer {
            status: whole.status.unwrap_or(0),
            fields: &exchange.kept.fields,
            body: &exchange.kept.body,
            body_bytes: whole.body_bytes,
        };
        if is_redirect(answer.status) {
            kind.redirect = kind.redirect.take().or_else(|| answer.redirect());
        }
        let end = self.setup.composer.finish(visit, &answer);
        if let Some(refusal) = end.refusal {
            let name = self.setup.composer.refusals().get(refusal);
            kind.refuse(name.map_or("refused", String::as_str));
        }
        let due = exchange.intended.saturating_sub(self.tally.zero);
        self.setup.outages.ended(due, end.refusal.is_none());
        if let Some(sampler) = &mut self.sampler {
            let answered = End::Answered {
                at: now.saturating_sub(self.tally.zero),
                status: whole.status,
                refusal: end.refusal,
            };
            sampler.take(exchange.sample(self.tally.zero, answered));
        }
        exchange.kept.forget();
        let each = self.setup.workload.connections.requests_each;
        // A request that was answered before all of it was sent leaves the target in
        // the middle of it.
        if connection.stream.is_none() {
            // Its connection carries others too.
        } else if !whole.keep_alive || !connection.unsent.is_empty() {
            self.tally.span.connections.closed += 1;
            self.close(place);
        } else if each.is_some_and(|each| connection.carried >= each) {
            self.close(place);
        }
        match end.next {
            Next::Done => self.release(place, now, 0),
            Next::After(Duration::ZERO) => self.next_step(place, now, now),
            Next::After(pause) => self.think(place, now.saturating_add(nanos(pause))),
        }
    }

    /// A connection is of no further use, whatever it was used for.
    pub(super) fn broken(&mut self, place: u32, phase: Phase, cause: &'static str, now: u64) {
        let connection = &self.connections[place as usize];
        let exchange = &connection.exchange;
        if exchange.used != Use::Asked {
            return self.closed_idle(place, now);
        }
        // The target may close a connection that is kept open at the moment at which a
        // request is sent. Browsers then ask once more, and so do we; nobody would call
        // that a failure of the target.
        let stale = self.setup.workload.target.protocol == Protocol::Http1
            && connection.carried > 1
            && !exchange.answering
            && !exchange.again
            && matches!(phase, Phase::Read | Phase::Write)
            && exchange
                .visit
                .as_ref()
                .is_some_and(|visit| self.setup.composer.idempotent(visit));
        if !stale {
            return self.fail(place, phase, cause, now);
        }
        let exchange = &mut self.connections[place as usize].exchange;
        exchange.again = true;
        self.tally.retried(exchange, now);
        self.answer_by.clear(place);
        self.tally.span.connections.closed += 1;
        self.close(place);
        self.ask_or_open(place, now);
    }
}
