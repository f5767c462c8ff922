//! From one client to all that subscribed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::local::Drafts;
use super::outbound::{Payload, Pushed};
use super::peer::Peer;
use super::sublist::{Receivers, Sub, Subscriber};
use super::{Counters, Shared};
use crate::codec::encode;

/// A message on its way.
pub(super) struct Message<'a> {
    pub(super) subject: &'a [u8],
    pub(super) reply: &'a [u8],
    pub(super) headers: &'a [u8],
    pub(super) payload: Payload<'a>,
}

/// What the frames of one read brought.
#[derive(Default)]
pub(super) struct Brought {
    pub(super) drafts: Drafts,
    pub(super) in_messages: u64,
    pub(super) in_bytes: u64,
    out_messages: u64,
    out_bytes: u64,
}

impl Brought {
    /// Adds to what the endpoint has counted: once for a read, not for each message.
    pub(super) fn count(&mut self, counters: &Counters) {
        for (counter, more) in [
            (&counters.in_messages, &mut self.in_messages),
            (&counters.in_bytes, &mut self.in_bytes),
            (&counters.out_messages, &mut self.out_messages),
            (&counters.out_bytes, &mut self.out_bytes),
        ] {
            counter.fetch_add(std::mem::take(more), Ordering::Relaxed);
        }
    }
}

/// Who receives what a client publishes. Messages in a row mostly have one subject, so
/// the last answer of the list is kept until the list changes.
#[derive(Default)]
pub(super) struct Route {
    subject: Vec<u8>,
    generation: Option<u64>,
    receivers: Receivers,
    /// Where groups go on.
    turn: usize,
}

/// What became of a message.
#[derive(Default)]
pub(super) struct Delivered {
    /// Whether anybody took it.
    pub(super) any: bool,
    /// One of those who took it that can hardly keep up.
    pub(super) late: Option<Arc<Peer>>,
}

impl Route {
    /// One that begins at another member of each group than the last client's: many publish
    /// one message only.
    pub(super) fn starting_at(turn: usize) -> Self {
        Self {
            turn,
            ..Self::default()
        }
    }

    /// Whether a message was published to `subject` just before this one.
    pub(super) fn is_to(&self, subject: &[u8]) -> bool {
        self.generation.is_some() && self.subject == subject
    }

    fn find(&mut self, shared: &Shared, subject: &[u8]) {
        let generation = Some(shared.subs.generation());
        if self.generation != generation || self.subject != subject {
            self.receivers = shared.subs.receivers(subject);
            self.generation = generation;
            self.subject.clear();
            self.subject.extend_from_slice(subject);
        }
    }

    /// Gives `message` of `from` to all who receive it.
    pub(super) fn publish(
        &mut self,
        shared: &Shared,
        from: &Arc<Peer>,
        message: &Message<'_>,
        brought: &mut Brought,
    ) -> Delivered {
        self.find(shared, message.subject);
        let mut delivered = Delivered::default();
        let late = &mut delivered.late;
        for sub in &self.receivers.each {
            let own = matches!(&sub.subscriber, Subscriber::Peer(peer) if Arc::ptr_eq(peer, from));
            if !own || from.echo.load(Ordering::Relaxed) {
                delivered.any |= give(shared, sub, message, brought, late);
            }
        }
        for group in &self.receivers.groups {
            self.turn = self.turn.wrapping_add(1);
            // A member that is gone passes the message on to the next one.
            for step in 0..group.len() {
                let sub = &group[(self.turn.wrapping_add(step)) % group.len()];
                if give(shared, sub, message, brought, late) {
                    delivered.any = true;
                    break;
                }
            }
        }
        delivered
    }
}

/// Whether the subscription took the message.
fn give(
    shared: &Shared,
    sub: &Arc<Sub>,
    message: &Message<'_>,
    brought: &mut Brought,
    late: &mut Option<Arc<Peer>>,
) -> bool {
    let bytes = match &sub.subscriber {
        Subscriber::Local(queue) => {
            brought.drafts.add(queue, message);
            message.payload.len()
        }
        Subscriber::Peer(peer) => match give_peer(shared, sub, peer, message, late) {
            Some(bytes) => bytes,
            None => return false,
        },
    };
    brought.out_messages += 1;
    brought.out_bytes += bytes as u64;
    true
}

/// As [`give`]: bytes of headers and payload, if the client took them.
fn give_peer(
    shared: &Shared,
    sub: &Arc<Sub>,
    peer: &Arc<Peer>,
    message: &Message<'_>,
    late: &mut Option<Arc<Peer>>,
) -> Option<usize> {
    let most = sub.most.load(Ordering::Relaxed);
    let number = sub.delivered.fetch_add(1, Ordering::Relaxed) + 1;
    if number >= most {
        shared.remove(sub);
        if number > most {
            return None;
        }
    }
    let headers = match peer.headers.load(Ordering::Relaxed) {
        true => message.headers,
        false => b"",
    };
    let bytes = headers.len() + message.payload.len();
    let pushed = peer.outbound.push(
        |out| {
            let (subject, reply) = (message.subject, message.reply);
            encode::message_line(out, subject, &sub.sid, reply, headers.len(), bytes);
            out.extend_from_slice(headers);
        },
        Some(message.payload.clone()),
    );
    match pushed {
        Pushed::Gone => return None,
        Pushed::CutOff => {
            let counters = &shared.counters;
            counters.slow_consumers.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Pushed::HalfFull => *late = Some(Arc::clone(peer)),
        Pushed::Waits => {}
    }
    Some(bytes)
}
