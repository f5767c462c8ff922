//! One end of the connection between the coordinator and a worker, without a clock and
//! without a socket.
//!
//! Messages come whole, each once and in order, over a bus that may lose, repeat or delay
//! what it carries: each end has one numbered request under way, sends it again until its
//! reply comes, and takes the number that it expects and no other.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::message::{HEAD_BYTES, Reply, Request};
use super::offset::{Exchanges, Offset};

/// Time after which a request without a reply is sent again.
const RESEND_AFTER: Duration = Duration::from_millis(500);
/// Time between heartbeats, and between the first ones, which tell the clocks.
const HEARTBEAT_EVERY: Duration = Duration::from_millis(250);
const FIRST_HEARTBEATS_EVERY: Duration = Duration::from_millis(10);
/// Exchanges of times after which a clock is known well enough.
const FIRST_EXCHANGES: usize = 16;
/// Longest part, however much the server would take.
const PART_BYTES: usize = 256 * 1024;
/// Longest message, and the most that waits to be taken by the other side.
const MESSAGE_BYTES: usize = 64 * 1024 * 1024;
/// Messages that wait to be read. Beyond it the other side keeps them.
const UNREAD: usize = 64;

/// One end; messages of type `R` come from the other.
#[derive(Debug)]
pub(crate) struct Connection<R> {
    /// What the other end knows this one by.
    id: u64,
    part_bytes: usize,
    /// Silence after which the other end is lost.
    silence: Duration,
    /// What was not cut into parts yet, the oldest message first.
    outgoing: VecDeque<Bytes>,
    /// Bytes in it and in the part under way.
    waiting: usize,
    /// What waits for its reply, and whether it ends a message.
    under_way: Option<(Bytes, bool)>,
    /// Its number, or that of the next.
    number: u64,
    /// When a request was last sent.
    sent: Option<Duration>,
    /// Number of the request to take next.
    expected: u64,
    /// Parts of the message that is coming.
    incoming: Vec<u8>,
    received: VecDeque<R>,
    exchanges: Exchanges,
    /// When something last came.
    heard: Duration,
    lost: Option<String>,
}

impl<R: DeserializeOwned> Connection<R> {
    /// An end called `id` over a bus that takes `max_payload` bytes at a time. All times
    /// are Unix time on a clock that is never set.
    pub(crate) fn new(id: u64, max_payload: usize, silence: Duration, now: Duration) -> Self {
        Self {
            id,
            part_bytes: max_payload.saturating_sub(HEAD_BYTES).clamp(1, PART_BYTES),
            silence,
            outgoing: VecDeque::new(),
            waiting: 0,
            under_way: None,
            number: 0,
            sent: None,
            expected: 0,
            incoming: Vec::new(),
            received: VecDeque::new(),
            exchanges: Exchanges::default(),
            heard: now,
            lost: None,
        }
    }

    /// Queues a message. One that finds no room loses the connection.
    pub(crate) fn send(&mut self, message: &impl Serialize) {
        match serde_json::to_vec(message) {
            Ok(bytes) => self.queue(bytes.into()),
            Err(error) => self.lose(format!("the message for it cannot be written: {error}")),
        }
    }

    fn queue(&mut self, message: Bytes) {
        let waiting = self.waiting + message.len();
        if waiting > MESSAGE_BYTES {
            return self.lose(format!(
                "{waiting} bytes wait to be taken by the other side; at most {MESSAGE_BYTES} may"
            ));
        }
        self.waiting = waiting;
        self.outgoing.push_back(message);
    }

    /// What came and was not read yet, the oldest first.
    pub(crate) fn received(&mut self) -> &mut VecDeque<R> {
        &mut self.received
    }

    /// What is to be sent now.
    pub(crate) fn request(&mut self, now: Duration) -> Option<Request> {
        let silent = now.saturating_sub(self.heard);
        if silent >= self.silence {
            self.lose(format!("silent for {} ms", silent.as_millis()));
        }
        let pause = match (&self.under_way, self.outgoing.is_empty()) {
            (Some(_), _) => RESEND_AFTER,
            (None, false) => Duration::ZERO,
            (None, true) if self.is_aligned() => HEARTBEAT_EVERY,
            (None, true) => FIRST_HEARTBEATS_EVERY,
        };
        let early = |sent| now.saturating_sub(sent) < pause;
        if self.lost.is_some() || self.sent.is_some_and(early) {
            return None;
        }
        self.sent = Some(now);
        let part = self.under_way.take().unwrap_or_else(|| self.next_part());
        let (content, last) = self.under_way.insert(part).clone();
        Some(Request {
            sender: self.id,
            number: self.number,
            last,
            sent_ns: unix_ns(now),
            content,
        })
    }

    /// The next part of what is to be sent; without anything, an empty one.
    fn next_part(&mut self) -> (Bytes, bool) {
        let Some(message) = self.outgoing.front_mut() else {
            return (Bytes::new(), false);
        };
        let part = message.split_to(message.len().min(self.part_bytes));
        let last = message.is_empty();
        if last {
            self.outgoing.pop_front();
        }
        (part, last)
    }

    /// Takes a request; its reply, or none if it must come again.
    pub(crate) fn take_request(&mut self, request: &Request, now: Duration) -> Option<Reply> {
        if self.lost.is_some() {
            return None;
        }
        self.heard = now;
        let is_new = request.number == self.expected;
        if request.number > self.expected || is_new && self.received.len() >= UNREAD {
            return None;
        }
        if is_new {
            self.expected += 1;
            self.take_part(request);
        }
        Some(Reply {
            sender: self.id,
            number: request.number,
            sent_ns: request.sent_ns,
            came_ns: unix_ns(now),
        })
    }

    fn take_part(&mut self, request: &Request) {
        if self.incoming.len() + request.content.len() > MESSAGE_BYTES {
            return self.lose(format!("a message of more than {MESSAGE_BYTES} bytes came"));
        }
        self.incoming.extend_from_slice(&request.content);
        if request.last {
            match serde_json::from_slice(&std::mem::take(&mut self.incoming)) {
                Ok(message) => self.received.push_back(message),
                Err(error) => {
                    self.lose(format!("it sent something unexpected: {error}"));
                }
            }
        }
    }

    /// Takes the reply to a request. An old one still tells the time.
    pub(crate) fn take_reply(&mut self, reply: &Reply, now: Duration) {
        self.heard = now;
        self.exchanges
            .count(reply.sent_ns, reply.came_ns, unix_ns(now));
        if reply.number == self.number
            && let Some((part, _)) = self.under_way.take()
        {
            self.number += 1;
            self.waiting -= part.len();
        }
    }

    /// Whether everything was taken by the other side.
    pub(crate) fn is_idle(&self) -> bool {
        self.lost.is_some() || self.waiting == 0
    }

    /// The other end's clock, once it answered a first time.
    pub(crate) fn offset(&self) -> Option<Offset> {
        self.exchanges.best()
    }

    /// Whether the other end's clock is known as well as it will be.
    pub(crate) fn is_aligned(&self) -> bool {
        self.exchanges.len() >= FIRST_EXCHANGES
    }

    /// Gives the other end up, for good and for the first reason.
    pub(crate) fn lose(&mut self, why: String) {
        self.lost.get_or_insert(why);
    }

    /// Why it was given up.
    pub(crate) fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }
}

/// Unix time in nanoseconds.
pub(crate) fn unix_ns(now: Duration) -> i64 {
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STEP: Duration = Duration::from_millis(100);
    const SILENCE: Duration = Duration::from_secs(3);

    /// What becomes of one request or reply on the way.
    #[derive(Debug, Clone, Copy)]
    enum Fate {
        Arrives,
        Lost,
        Twice,
        Late,
    }

    fn fates() -> impl Strategy<Value = Vec<Fate>> {
        let fate = prop_oneof![
            3 => Just(Fate::Arrives),
            1 => Just(Fate::Lost),
            1 => Just(Fate::Twice),
            1 => Just(Fate::Late),
        ];
        proptest::collection::vec(fate, 1..200)
    }

    fn end(payload: usize) -> Connection<Vec<u8>> {
        Connection::new(1, payload, Duration::MAX, Duration::ZERO)
    }

    /// Carries messages from one end to another over a bus with these fates, and then over
    /// a good one.
    fn carry(messages: &[Vec<u8>], fates: &[Fate], payload: usize) -> Vec<Vec<u8>> {
        enum Going {
            There(Request),
            Back(Reply),
        }
        let mut now = Duration::ZERO;
        let (mut from, mut to) = (end(payload), end(payload));
        for message in messages {
            from.send(message);
        }
        let mut fates = fates.iter().copied();
        let (mut got, mut late) = (Vec::new(), Vec::new());
        for _ in 0..100_000 {
            if from.is_idle() {
                break;
            }
            now += STEP;
            let mut going: VecDeque<_> = std::mem::take(&mut late).into();
            going.extend(from.request(now).map(Going::There));
            while let Some(next) = going.pop_front() {
                let count = match fates.next().unwrap_or(Fate::Arrives) {
                    Fate::Arrives => 1,
                    Fate::Lost => 0,
                    Fate::Twice => 2,
                    Fate::Late => {
                        late.push(next);
                        continue;
                    }
                };
                for _ in 0..count {
                    match &next {
                        Going::There(request) => {
                            going.extend(to.take_request(request, now).map(Going::Back));
                        }
                        Going::Back(reply) => from.take_reply(reply, now),
                    }
                }
            }
            got.extend(to.received().drain(..));
        }
        assert!(from.is_idle(), "everything is taken in the end");
        got
    }

    proptest! {
        #[test]
        fn each_message_comes_once_and_in_order(
            messages in proptest::collection::vec(
                proptest::collection::vec(any::<u8>(), 0..300), 0..12),
            fates in fates(),
            part in 1usize..64,
        ) {
            prop_assert_eq!(carry(&messages, &fates, HEAD_BYTES + part), messages);
        }
    }

    #[test]
    fn a_request_is_sent_again_until_its_reply_comes_and_one_at_a_time() {
        let (mut a, mut b) = (end(1000), end(1000));
        a.send(b"1");
        a.send(b"2");
        let first = a.request(STEP).unwrap();
        assert_eq!(a.request(STEP + RESEND_AFTER - STEP / 2), None);
        let again = a.request(STEP + RESEND_AFTER).unwrap();
        assert_eq!((again.number, &again.content), (0, &first.content));
        let reply = b.take_request(&again, STEP).unwrap();
        a.take_reply(&reply, STEP);
        a.take_reply(&reply, STEP);
        assert_eq!(a.request(STEP).unwrap().number, 1);
    }

    #[test]
    fn silence_is_counted_and_anything_ends_it() {
        let mut end = Connection::<()>::new(1, 1000, SILENCE, Duration::ZERO);
        let reply = Reply {
            sender: 2,
            number: 7,
            sent_ns: 0,
            came_ns: 0,
        };
        end.take_reply(&reply, STEP);
        end.request(SILENCE);
        assert_eq!(end.lost(), None);
        end.request(SILENCE + STEP);
        assert_eq!(end.lost(), Some("silent for 3000 ms"));
    }

    #[test]
    fn a_heartbeat_leaves_when_nothing_else_does() {
        let (mut a, mut b) = (end(1000), end(1000));
        let mut now = Duration::ZERO;
        for number in 0..20 {
            let heartbeat = a.request(now).unwrap();
            assert_eq!((heartbeat.number, heartbeat.content.len()), (number, 0));
            let reply = b.take_request(&heartbeat, now).unwrap();
            a.take_reply(&reply, now);
            assert!(a.is_idle() && b.received().is_empty());
            let pause = match a.is_aligned() {
                true => HEARTBEAT_EVERY,
                false => FIRST_HEARTBEATS_EVERY,
            };
            assert_eq!(a.request(now + pause / 2), None);
            now += pause;
        }
        assert!(a.is_aligned());
    }

    #[test]
    fn without_room_nothing_is_taken_and_it_comes_again() {
        let (mut a, mut b) = (end(1000), end(1000));
        b.received().resize(UNREAD, Vec::new());
        a.send(b"one");
        let request = a.request(STEP).unwrap();
        assert_eq!(b.take_request(&request, STEP), None);
        assert!(!a.is_idle());
        b.received().clear();
        let again = a.request(STEP + RESEND_AFTER).unwrap();
        a.take_reply(&b.take_request(&again, STEP).unwrap(), STEP);
        assert!(a.is_idle());
        assert_eq!(b.received().pop_front(), Some(b"one".to_vec()));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut end = end(1 << 20);
        end.queue(vec![0; MESSAGE_BYTES].into());
        assert_eq!(end.lost(), None);
        // Replies to what was never sent make no room.
        for number in [0, 1 << 40] {
            let reply = Reply {
                sender: 2,
                number,
                sent_ns: 0,
                came_ns: 0,
            };
            end.take_reply(&reply, STEP);
        }
        end.queue(vec![0].into());
        let why = end.lost().unwrap();
        assert!(why.starts_with("67108865 bytes wait"), "{why}");
    }

    #[test]
    fn a_message_that_never_ends_loses_the_connection() {
        let mut end = end(1 << 20);
        let mut number = 0;
        while end.lost().is_none() {
            let request = Request {
                sender: 2,
                number,
                last: false,
                sent_ns: 0,
                content: vec![b' '; 1 << 20].into(),
            };
            end.take_request(&request, STEP);
            number += 1;
        }
        assert_eq!(number, 65);
    }
}
