//! Requests and answers on connections that carry one exchange at a time.

use std::sync::Arc;

use lab_load::recording::{Phase, UNFIT};
use wire::clock;
use wire::http1::KnownHead;
use wire::poller::Interest;
use wire::stream::Received;

use super::conversation::{Broken, CompleteResponse, Conversation, Step};
use super::pool::{Pool, Use};
use super::record::Record;
use super::{BUFFER, Setup};

/// What a connection without a request says: the target is about to close it, or is
/// confused. Neither is an error of a request.
const IDLE: Broken = (Phase::Read, "closed");
/// What one with a request says whose target takes its leave, as the protocol has it.
const FAREWELL: Broken = (Phase::Read, "closed early");
/// What it says where the target sent more than its answer has.
pub(super) const SURPLUS: Broken = (Phase::Protocol, "surplus");

/// What the conversations of a thread have in common.
pub(super) struct Plain {
    setup: Arc<Setup>,
    request: Vec<u8>,
    framed: Vec<u8>,
    buffer: Vec<u8>,
    /// The head of the last answer of HTTP/1.1.
    known: KnownHead,
}

impl Plain {
    pub(super) fn new(setup: Arc<Setup>) -> Self {
        Self {
            setup,
            request: Vec::new(),
            framed: Vec::new(),
            buffer: vec![0; BUFFER],
            known: KnownHead::default(),
        }
    }

    /// Sends the request of the visit at a place, whose connection is open. Says whether it
    /// is on its way; if it was never sent its place waits.
    #[inline]
    pub(super) fn send_request(
        &mut self,
        pool: &mut Pool,
        record: &mut Record,
        place: u32,
    ) -> Step {
        pool.set_used(place, Use::Asked);
        let composer = &self.setup.composer;
        let connection = &mut pool[place];
        let exchange = &mut connection.exchange;
        let (Some(stream), Some(visit)) = (&mut connection.stream, &exchange.visit) else {
            return Ok(false);
        };
        exchange.kind = composer.kind(visit);
        let request = match composer.plain() {
            Some(request) => request,
            None => {
                self.request.clear();
                if composer.write(visit, &mut self.request).is_err() {
                    pool.set_used(place, Use::Waiting);
                    return Err(UNFIT);
                }
                &self.request
            }
        };
        let needs = composer.needs(visit);
        exchange.kept.begin(needs.fields, needs.body);
        let conversation = &mut connection.conversation;
        conversation.expect_response(composer, visit, exchange.kind, request.len());
        let request = match conversation {
            Conversation::WebSocket(conversation) => {
                self.framed.clear();
                conversation.frame(request, composer.is_text(visit), &mut self.framed);
                &self.framed
            }
            Conversation::Http1(_) | Conversation::Tcp(..) | Conversation::Udp => request,
        };
        connection.carried += 1;
        exchange.answering = false;
        let now = clock::now();
        let sent = stream.send(request);
        record.reaction.held(now, clock::now(), request.len());
        record.sending(exchange, now);
        // One that the kernel refuses was made all the same: the target, and not this program, is
        // why nothing came of it.
        let bytes = sent.as_ref().map_or(0, |_| request.len());
        record.sent(exchange, bytes, connection.carried > 1);
        let taken = sent.map_err(|error| error.cause())?;
        if taken < request.len() || stream.wants_write() {
            connection.unsent.extend_from_slice(&request[taken..]);
            // Fails only for want of memory in the kernel; the next answer finds it again.
            let _ = pool.watch(place, Interest::Both);
        }
        Ok(true)
    }

    /// Takes what came in on an open connection, and says when, and whether the answer is
    /// whole.
    #[inline]
    pub(super) fn receive(
        &mut self,
        pool: &mut Pool,
        record: &mut Record,
        place: u32,
    ) -> (u64, Result<Option<CompleteResponse>, Broken>) {
        loop {
            let connection = &mut pool[place];
            let asked = connection.used() == Use::Asked;
            let Some(stream) = &mut connection.stream else {
                return (clock::now(), Ok(None));
            };
            let kept = connection.unread.len();
            self.buffer[..kept].copy_from_slice(&connection.unread);
            let received = stream.receive(&mut self.buffer[kept..]);
            let now = clock::now();
            let exchange = &mut connection.exchange;
            let received = match received {
                Ok(Received::Bytes(received)) => received,
                Ok(Received::Nothing) => return (now, Ok(None)),
                Ok(Received::End) if asked => {
                    return (
                        now,
                        connection.conversation.end(&mut exchange.kept).map(Some),
                    );
                }
                Ok(Received::End) => return (now, Err(IDLE)),
                Err(error) => return (now, Err((Phase::Read, error.cause()))),
            };
            if !asked && !connection.conversation.listens() {
                let carried = connection.carried > 0;
                let surplus = connection.conversation.is_surplus(&self.buffer[..received]);
                return (now, Err(if carried && surplus { SURPLUS } else { IDLE }));
            }
            if asked {
                exchange.answering = true;
                record.tally.kind(exchange.kind).bytes_received += received as u64;
            }
            let input = &self.buffer[..kept + received];
            let taken = connection
                .conversation
                .take(input, &mut exchange.kept, &mut self.known);
            let mut taken = match taken {
                Ok(taken) => taken,
                Err(broken) => return (now, Err(broken)),
            };
            // Each of them: one that is left here would be taken for the next answer.
            while !asked && taken.whole.is_some() {
                let behind = &input[taken.consumed..];
                let further =
                    connection
                        .conversation
                        .take(behind, &mut exchange.kept, &mut self.known);
                match further {
                    Ok(further) => {
                        taken.consumed += further.consumed;
                        taken.whole = further.whole;
                    }
                    Err(broken) => return (now, Err(broken)),
                }
            }
            let rest = &input[taken.consumed..];
            connection.unread.clear();
            if let Some(mut whole) = taken.whole
                && asked
            {
                // What nobody asked for would be taken for the next answer.
                whole.surplus = whole.keep_alive && connection.conversation.is_surplus(rest);
                whole.keep_alive &= rest.is_empty();
                // The answer is there, whatever becomes of its connection.
                whole.keep_alive &= send_replies(pool, place).is_ok();
                return (now, Ok(Some(whole)));
            }
            if rest.len() == BUFFER {
                return (now, Err((Phase::Protocol, "too long")));
            }
            connection.unread.extend_from_slice(rest);
            let holds_bytes = stream.holds_bytes();
            if let Err(broken) = send_replies(pool, place) {
                return (clock::now(), Err(broken));
            }
            if pool[place].conversation.is_over() {
                return (now, Err(if asked { FAREWELL } else { IDLE }));
            }
            // What else there is will be told again, unless TLS holds it.
            if kept + received < BUFFER && !holds_bytes {
                return (now, Ok(None));
            }
        }
    }
}

/// Sends what the protocol has to say besides requests.
fn send_replies(pool: &mut Pool, place: u32) -> Result<(), Broken> {
    let connection = &mut pool[place];
    match connection.conversation.replies() {
        Some(replies) => {
            connection.unsent.append(replies);
            send_rest(pool, place)
        }
        None => Ok(()),
    }
}

/// Sends what the kernel did not take before.
pub(super) fn send_rest(pool: &mut Pool, place: u32) -> Result<(), Broken> {
    let connection = &mut pool[place];
    let Some(stream) = &mut connection.stream else {
        return Ok(());
    };
    let sent = match connection.unsent.is_empty() {
        true => stream.flush().map(|()| 0),
        false => stream.send(&connection.unsent),
    };
    let taken = sent.map_err(|error| (Phase::Write, error.cause()))?;
    connection.unsent.drain(..taken);
    let writing = !connection.unsent.is_empty() || stream.wants_write();
    let _ = pool.watch(place, Interest::of(true, writing));
    Ok(())
}
