//! From one client to all that subscribed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Shared;
use super::outbound::{Payload, Pushed};
use super::peer::Peer;
use super::sublist::{Receivers, Sub};
use crate::codec::encode;

/// A message on its way.
pub(super) struct Message<'a> {
    pub(super) subject: &'a [u8],
    pub(super) reply: &'a [u8],
    pub(super) headers: &'a [u8],
    pub(super) payload: Payload<'a>,
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

impl Route {
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

    /// Gives `message` of `from` to all who receive it, and returns one of them that can
    /// hardly keep up.
    pub(super) fn publish(
        &mut self,
        shared: &Shared,
        from: &Arc<Peer>,
        message: &Message<'_>,
    ) -> Option<Arc<Peer>> {
        self.find(shared, message.subject);
        let mut late = None;
        for sub in &self.receivers.each {
            if !Arc::ptr_eq(&sub.peer, from) || from.echo.load(Ordering::Relaxed) {
                give(shared, sub, message, &mut late);
            }
        }
        for group in &self.receivers.groups {
            self.turn = self.turn.wrapping_add(1);
            // A member that is gone passes the message on to the next one.
            for step in 0..group.len() {
                let sub = &group[(self.turn.wrapping_add(step)) % group.len()];
                if give(shared, sub, message, &mut late) {
                    break;
                }
            }
        }
        late
    }
}

/// Whether the subscription took the message.
fn give(
    shared: &Shared,
    sub: &Arc<Sub>,
    message: &Message<'_>,
    late: &mut Option<Arc<Peer>>,
) -> bool {
    let most = sub.most.load(Ordering::Relaxed);
    let number = sub.delivered.fetch_add(1, Ordering::Relaxed) + 1;
    if number >= most {
        shared.remove(sub);
        if number > most {
            return false;
        }
    }
    let headers = match sub.peer.headers.load(Ordering::Relaxed) {
        true => message.headers,
        false => b"",
    };
    let bytes = headers.len() + message.payload.len();
    let pushed = sub.peer.outbound.push(
        |out| {
            let (subject, reply) = (message.subject, message.reply);
            encode::message_line(out, subject, &sub.sid, reply, headers.len(), bytes);
            out.extend_from_slice(headers);
        },
        Some(message.payload.clone()),
    );
    let counters = &shared.counters;
    match pushed {
        Pushed::Gone => return false,
        Pushed::CutOff => {
            counters.slow_consumers.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        Pushed::HalfFull => *late = Some(Arc::clone(&sub.peer)),
        Pushed::Waits => {}
    }
    counters.out_messages.fetch_add(1, Ordering::Relaxed);
    counters
        .out_bytes
        .fetch_add(bytes as u64, Ordering::Relaxed);
    true
}
