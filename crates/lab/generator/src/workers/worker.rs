//! A worker's side of the protocol, without a clock and without a socket.

use std::collections::VecDeque;
use std::time::Duration;

use super::coordinator::{OUTGOING, unix_ns};
use super::driver::Core;
use super::frame::{Body, Frame};
use super::link::Link;
use super::message::{
    Answer, Hello, Order, Word, from_hex, hello_subject, run_subject, worker_subject,
};

/// Time between hellos until one is answered.
const HELLO_EVERY: Duration = Duration::from_millis(250);
/// Orders that wait to be read; a coordinator sends them one by one.
const UNREAD: usize = 64;

#[derive(Debug)]
pub(crate) struct Worker {
    session: String,
    hello: Hello,
    origin_unix_ns: i64,
    max_payload: usize,
    next_hello: Duration,
    joined: Option<Joined>,
    /// Why the session is over for this worker.
    over: Option<Over>,
    orders: VecDeque<Order>,
    /// Largest number of a run that shall end.
    stopped: Option<u64>,
    outgoing: VecDeque<(String, Vec<u8>)>,
}

#[derive(Debug)]
struct Joined {
    token: u128,
    subject: String,
    silence: Duration,
    link: Link,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Over {
    /// The coordinator said that it is.
    Left,
    /// The coordinator did not want this worker.
    Refused(String),
    /// The coordinator is gone, or cannot be understood.
    Lost(String),
}

impl Worker {
    pub(crate) fn new(
        session: String,
        hello: Hello,
        origin_unix_ns: i64,
        max_payload: usize,
    ) -> Self {
        Self {
            session,
            hello,
            origin_unix_ns,
            max_payload,
            next_hello: Duration::ZERO,
            joined: None,
            over: None,
            orders: VecDeque::new(),
            stopped: None,
            outgoing: VecDeque::new(),
        }
    }

    /// The own Unix time at a moment of the axis.
    pub(crate) fn unix_ns(&self, now: Duration) -> i64 {
        unix_ns(self.origin_unix_ns, now)
    }

    /// Whether a coordinator has taken this worker in.
    pub(crate) fn has_joined(&self) -> bool {
        self.joined.is_some()
    }

    /// How the session ended, if it did.
    pub(crate) fn over(&self) -> Option<&Over> {
        self.over.as_ref()
    }

    /// The next order.
    pub(crate) fn hear(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// Whether a run shall go on.
    pub(crate) fn goes_on(&self, run: u64) -> bool {
        self.over.is_none() && self.stopped.is_none_or(|stopped| stopped < run)
    }

    /// Tells the coordinator something.
    pub(crate) fn tell(&mut self, word: &Word) {
        let (Some(joined), None) = (&mut self.joined, &self.over) else {
            return;
        };
        let sent = serde_json::to_vec(word)
            .map_err(|error| error.to_string())
            .and_then(|bytes| joined.link.send(&bytes).map_err(|error| error.to_string()));
        self.over = sent.err().map(Over::Lost);
    }

    /// Whether the coordinator has taken everything.
    pub(crate) fn is_idle(&self) -> bool {
        self.over.is_some()
            || self
                .joined
                .as_ref()
                .is_none_or(|joined| joined.link.is_idle())
    }

    fn answered(&mut self, answer: Answer, now: Duration) {
        match answer {
            Answer::Refused(why) => self.over = Some(Over::Refused(why)),
            Answer::Welcome { token, silence_ms } => {
                let Some(id) = from_hex(&token) else {
                    return;
                };
                self.joined = Some(Joined {
                    token: id,
                    subject: run_subject(&self.session, &token),
                    silence: Duration::from_millis(silence_ms),
                    link: Link::new(self.max_payload, now),
                });
            }
        }
    }

    fn take_frame(&mut self, frame: &Frame, now: Duration) {
        let came = self.unix_ns(now);
        let Some(joined) = self
            .joined
            .as_mut()
            .filter(|joined| joined.token == frame.sender)
        else {
            return;
        };
        if let Body::Ping { asked } = frame.body {
            let left = came;
            let body = Body::Pong { asked, came, left };
            let subject = joined.subject.clone();
            self.publish(subject, body);
            return;
        }
        let room = self.orders.len() < UNREAD;
        let order = match joined.link.take(&frame.body, room, now) {
            Ok(None) => return,
            Ok(Some(bytes)) => serde_json::from_slice(&bytes).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match order {
            Ok(Order::Stop { run }) => self.stopped = self.stopped.max(Some(run)),
            Ok(Order::Leave) => self.over = Some(Over::Left),
            Ok(order) => self.orders.push_back(order),
            Err(why) => {
                self.over = Some(Over::Lost(format!(
                    "it sent something else than expected: {why}"
                )))
            }
        }
    }

    fn publish(&mut self, subject: String, body: Body) {
        if let Some(sender) = from_hex(&self.hello.id)
            && self.outgoing.len() < OUTGOING
        {
            self.outgoing
                .push_back((subject, Frame { sender, body }.to_bytes()));
        }
    }
}

impl Core for Worker {
    fn subjects(&self) -> Vec<String> {
        vec![worker_subject(&self.session, &self.hello.id)]
    }

    fn take(&mut self, _subject: &str, payload: &[u8], now: Duration) {
        if self.over.is_some() {
            return;
        }
        if self.joined.is_some() {
            if let Ok(frame) = Frame::from_bytes(payload) {
                self.take_frame(&frame, now);
            }
        } else if let Ok(answer) = serde_json::from_slice(payload) {
            self.answered(answer, now);
        }
    }

    fn tick(&mut self, now: Duration) {
        let Some(joined) = &mut self.joined else {
            if self.over.is_none() && now >= self.next_hello {
                self.next_hello = now + HELLO_EVERY;
                if let Ok(bytes) = serde_json::to_vec(&self.hello) {
                    self.outgoing
                        .push_back((hello_subject(&self.session), bytes));
                }
            }
            return;
        };
        let silent = joined.link.silent(now);
        if self.over.is_none() && silent >= joined.silence {
            self.over = Some(Over::Lost(format!("silent for {} ms", silent.as_millis())));
        }
        // Someone who was told to leave still thanks for it.
        if matches!(self.over, None | Some(Over::Left)) {
            let bodies = joined.link.due(now);
            let subject = joined.subject.clone();
            for body in bodies {
                self.publish(subject.clone(), body);
            }
        }
    }

    fn outgoing(&mut self) -> Option<(String, Vec<u8>)> {
        self.outgoing.pop_front()
    }
}
