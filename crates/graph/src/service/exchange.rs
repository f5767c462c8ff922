//! One connection to a callee: a request goes out, an answer comes in.

use std::mem;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use wire::http1::KnownHead;
use wire::poller::{Event, Interest};
use wire::slab::Key;
use wire::socket;
use wire::stream::{Received, Stream};

use traces::failure;

use super::calling::route;
use super::event_loop::{EventLoop, Todo};
use super::link::{Link, PoolId};
use super::plan::CallPlan;
use super::token::Token;
use crate::script::Outcome;

impl EventLoop {
    /// Sends what waits in the outbox, and begins or ends to watch for when more can be.
    pub(super) fn send_request(&mut self, link: &mut Link) -> Result<(), &'static str> {
        link.outbox
            .send(&mut link.stream)
            .map_err(|error| why(error.cause()))?;
        let all = link.outbox.is_empty();
        // Nothing is taken before the connection is made.
        link.connected |= all;
        if link.writing == all {
            link.writing = !all;
            let interest = if all { Interest::Read } else { Interest::Both };
            let token = Token::Link(link.key).number();
            self.poller
                .change(&link.stream, token, interest)
                .map_err(|_| failure::RESET)?;
        }
        Ok(())
    }

    /// Begins a connection. Its first request may be sent at once.
    pub(super) fn open_link(
        &mut self,
        id: PoolId,
        call: &CallPlan,
    ) -> Result<Box<Link>, &'static str> {
        let address = self.pool(id).map(|pool| pool.address);
        let address = address.ok_or(failure::REFUSED)?;
        let socket: OwnedFd =
            socket::connect_tcp(address).map_err(|errno| why(socket::cause(errno)))?;
        let stream = Stream::Plain(socket);
        let key = self.links.reserve();
        let token = Token::Link(key).number();
        if self.poller.add(&stream, token, Interest::Read).is_err() {
            self.links.release(key);
            return Err(failure::NO_DESCRIPTORS);
        }
        if let Some(pool) = self.pool(id) {
            pool.open += 1;
        }
        call.counters.opened();
        let counters = Arc::clone(&call.counters);
        Ok(Box::new(Link::new(key, id, counters, address, stream)))
    }

    /// Forgets a connection that is out of its slab.
    pub(super) fn drop_link(&mut self, link: Box<Link>) {
        self.timers.links.clear(link.key.index());
        link.counters.closed();
        self.links.release(link.key);
        if let Some(pool) = self.pool(link.pool) {
            pool.open = pool.open.saturating_sub(1);
            if !pool.waiting.is_empty() {
                self.todo.push_back(Todo::Dispatch(link.pool));
            }
        }
    }

    /// Forgets a connection without a call, or with one that nobody waits for.
    pub(super) fn close_link(&mut self, key: Key) {
        if let Some(link) = self.links.take(key) {
            if let Some(pool) = self.pool(link.pool) {
                pool.idle.retain(|idle| *idle != key);
            }
            self.drop_link(link);
        }
    }

    pub(super) fn link_event(&mut self, key: Key, event: Event) {
        let Some(mut link) = self.links.take(key) else {
            return;
        };
        if link.attempt.is_none() {
            // The callee closed it, or said something that nobody asked for.
            self.links.put(key, link);
            self.close_link(key);
            return;
        }
        let result = self.turn_link(&mut link, event);
        match result {
            Ok(None) => self.links.put(key, link),
            Ok(Some(answered)) => self.answered_call(link, answered),
            Err(why) => self.broken(link, why),
        }
    }

    /// Goes on with the request and the answer of a call.
    fn turn_link(
        &mut self,
        link: &mut Link,
        event: Event,
    ) -> Result<Option<Answered>, &'static str> {
        if event.writable && link.writing {
            if !link.connected {
                link.stream
                    .outcome()
                    .map_err(|errno| why(socket::cause(errno)))?;
                link.connected = true;
                if let Some(attempt) = &mut link.attempt {
                    attempt.sent = self.now;
                }
            }
            self.send_request(link)?;
        }
        if !event.readable {
            return Ok(None);
        }
        let mut room = mem::take(&mut self.room);
        let received = link.stream.receive(&mut room);
        let result = match received {
            Ok(Received::Bytes(count)) => {
                let known = self.pool(link.pool).map(|pool| mem::take(&mut pool.known));
                let mut known = known.unwrap_or_default();
                let bytes = room.get(..count).unwrap_or_default();
                let result = scan(link, &mut known, bytes);
                if let Some(pool) = self.pool(link.pool) {
                    pool.known = known;
                }
                result
            }
            Ok(Received::Nothing) => Ok(None),
            Ok(Received::End) if link.is_silent() => Err(failure::RESET),
            Ok(Received::End) => match link.scanner.end(&mut link.answer) {
                Ok(complete) => Ok(Some(Answered {
                    status: complete.status,
                    keep: false,
                })),
                Err(_) => Err(failure::RESET),
            },
            Err(error) => Err(why(error.cause())),
        };
        self.room = room;
        result
    }

    /// A call was answered.
    fn answered_call(&mut self, mut link: Box<Link>, answered: Answered) {
        let Some(attempt) = link.attempt.take() else {
            self.drop_link(link);
            return;
        };
        if let Some(mut flight) = self.flights.take(attempt.flight) {
            if !link.answer.failed.is_empty() {
                mem::swap(&mut flight.failed, &mut link.answer.failed);
                flight.failed_edge = Some(attempt.edge);
            } else if link.answer.wanted && answered.status < 400 {
                flight.keep(attempt.step, attempt.ticket, &link.answer.body);
            }
            self.record_call(&flight, &attempt, answered.status, "");
            self.flights.put(attempt.flight, flight);
            let outcome = Outcome::Answered(answered.status);
            self.todo
                .push_back(Todo::Ended(attempt.flight, attempt.ticket, outcome));
        }
        self.release_link(link, answered.keep);
    }

    /// A connection has carried a call to its end.
    fn release_link(&mut self, mut link: Box<Link>, keep: bool) {
        let id = link.pool;
        let route = route(&mut self.instances, id);
        let warm = route.as_ref().is_some_and(|route| route.warm);
        let pool = route.and_then(|route| {
            let (most, used) = (route.most, route.used);
            let pool = route.pools.get_mut(id.place).filter(|_| id.place < used)?;
            (pool.address == link.address && pool.open <= most).then_some(pool)
        });
        let Some(pool) = pool.filter(|_| keep && warm) else {
            self.drop_link(link);
            return;
        };
        link.reused = true;
        pool.idle.push(link.key);
        if !pool.waiting.is_empty() {
            self.todo.push_back(Todo::Dispatch(id));
        }
        self.links.put(link.key, link);
    }

    /// A call's connection broke before the end of the answer.
    fn broken(&mut self, mut link: Box<Link>, why: &'static str) {
        let attempt = link.attempt.take();
        let race = link.reused && link.is_silent() && why != failure::MALFORMED;
        let id = link.pool;
        self.drop_link(link);
        let Some(attempt) = attempt else {
            return;
        };
        let Some(mut flight) = self.flights.take(attempt.flight) else {
            return;
        };
        flight.close(attempt.ticket);
        let plan = flight.plan.clone();
        let call = plan.as_ref().and_then(|plan| plan.call(attempt.step));
        if let Some(plan) = &plan
            && let Some(call) = call.filter(|_| race)
        {
            // The callee closed it while it was idle, before the request came.
            self.attempt(&mut flight, plan, call, id, attempt, true);
        } else {
            self.unanswered(&mut flight, &attempt, why);
        }
        self.flights.put(attempt.flight, flight);
    }

    /// A call's time is over, unless it ended before: an answer leaves the deadline.
    pub(super) fn link_expired(&mut self, key: Key) {
        let Some(mut link) = self.links.take(key) else {
            return;
        };
        if link.attempt.is_some() {
            link.reused = false;
            self.broken(link, failure::TIMEOUT);
        } else {
            self.links.put(key, link);
        }
    }
}

/// The words of metrics and spans for what sockets say.
pub(super) fn why(word: &'static str) -> &'static str {
    match word {
        "closed early" | "aborted" => failure::RESET,
        "host unreachable" | "network unreachable" | "network down" => "unreachable",
        "no ports left" => "no-ports",
        "no descriptors left" => failure::NO_DESCRIPTORS,
        "no memory left" => "no-memory",
        other => other,
    }
}

/// How an answer ended.
#[derive(Debug, Clone, Copy)]
struct Answered {
    status: u16,
    /// Whether the connection may carry another call.
    keep: bool,
}

/// Scans what came of an answer.
fn scan(
    link: &mut Link,
    known: &mut KnownHead,
    bytes: &[u8],
) -> Result<Option<Answered>, &'static str> {
    let mut rest = mem::take(&mut link.rest);
    let input = if rest.is_empty() {
        bytes
    } else {
        rest.extend_from_slice(bytes);
        &rest
    };
    let mut used = 0;
    let result = loop {
        let now = input.get(used..).unwrap_or_default();
        match link.scanner.scan_after(known, now, &mut link.answer) {
            Ok(scan) => {
                used += scan.consumed;
                if let Some(complete) = scan.complete {
                    let keep = complete.keep_alive
                        && !complete.upgraded
                        && used == input.len()
                        && link.outbox.is_empty();
                    let status = complete.status;
                    break Ok(Some(Answered { status, keep }));
                }
                if scan.consumed == 0 || used == input.len() {
                    break Ok(None);
                }
            }
            Err(_) => break Err(failure::MALFORMED),
        }
    };
    let left = input.get(used..).unwrap_or_default();
    link.rest = match left.is_empty() {
        true => {
            rest.clear();
            rest
        }
        false => left.to_vec(),
    };
    result
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn what_sockets_say_is_counted_by_a_word_of_its_own() {
        for errno in [
            Errno::CONNREFUSED,
            Errno::PIPE,
            Errno::TIMEDOUT,
            Errno::HOSTUNREACH,
            Errno::ADDRNOTAVAIL,
            Errno::MFILE,
            Errno::NOBUFS,
        ] {
            let word = why(socket::cause(errno));
            assert!(traces::failure::ALL.contains(&word), "{word}");
        }
    }
}
