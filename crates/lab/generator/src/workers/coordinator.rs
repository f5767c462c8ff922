//! The coordinator's side of the protocol, without a clock and without a socket.

use std::collections::VecDeque;
use std::time::Duration;

use super::driver::Core;
use super::frame::{Body, Frame};
use super::link::Link;
use super::message::{
    Answer, Hello, Order, Word, from_hex, hello_subject, hex, run_subject, worker_subject,
};
use super::offset::{Exchanges, Offset};

/// Words of one worker that wait to be read. Beyond it the worker keeps them.
const UNREAD: usize = 64;
/// Frames that wait to be published; beyond it they are dropped, and sent again later.
pub(crate) const OUTGOING: usize = 4096;
/// Exchanges of time that are made at once when a worker joins.
const FIRST_PINGS: usize = 16;
/// Time between them, and between the later ones.
const PING_SOON: Duration = Duration::from_millis(10);
const PING_LATER: Duration = Duration::from_millis(500);
/// Longest name of a worker, in bytes.
const NAME_BYTES: usize = 100;

/// What a coordinator knows before anyone is there.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    pub(crate) session: String,
    pub(crate) token: u128,
    pub(crate) version: String,
    /// Workers that take part; later ones are refused.
    pub(crate) wanted: usize,
    pub(crate) silence: Duration,
}

#[derive(Debug)]
pub(crate) struct Coordinator {
    terms: Terms,
    /// Own Unix time at zero of the axis that all `now`s are on.
    origin_unix_ns: i64,
    max_payload: usize,
    workers: Vec<Peer>,
    /// Why hellos were refused, the last few; for a person who waits for workers.
    refusals: VecDeque<String>,
    outgoing: VecDeque<(String, Vec<u8>)>,
}

/// A worker that takes part.
#[derive(Debug)]
pub(crate) struct Peer {
    id: u128,
    pub(crate) name: String,
    pub(crate) cores: u32,
    link: Link,
    exchanges: Exchanges,
    next_ping: Duration,
    words: VecDeque<Vec<u8>>,
    /// Why it takes part no more.
    pub(crate) lost: Option<String>,
}

impl Peer {
    /// Its clock, once it answered a first time.
    pub(crate) fn offset(&self) -> Option<Offset> {
        self.exchanges.best()
    }

    /// Whether its clock is known as well as it will be.
    pub(crate) fn aligned(&self) -> bool {
        self.exchanges.len() >= FIRST_PINGS
    }
}

impl Coordinator {
    pub(crate) fn new(terms: Terms, origin_unix_ns: i64, max_payload: usize) -> Self {
        Self {
            terms,
            origin_unix_ns,
            max_payload,
            workers: Vec::new(),
            refusals: VecDeque::new(),
            outgoing: VecDeque::new(),
        }
    }

    /// Workers in the order in which they came, the lost ones too.
    pub(crate) fn workers(&self) -> &[Peer] {
        &self.workers
    }

    /// Whether every worker that is needed has come.
    pub(crate) fn complete(&self) -> bool {
        self.workers.len() == self.terms.wanted
    }

    /// Why workers were refused so far.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = &str> {
        self.refusals.iter().map(String::as_str)
    }

    /// The own Unix time at a moment of the axis.
    pub(crate) fn unix_ns(&self, now: Duration) -> i64 {
        unix_ns(self.origin_unix_ns, now)
    }

    /// Tells a worker to do something. A lost one hears nothing any more.
    pub(crate) fn tell(&mut self, worker: usize, order: &Order) {
        let Some(peer) = self.workers.get_mut(worker) else {
            return;
        };
        if peer.lost.is_some() {
            return;
        }
        let sent = serde_json::to_vec(order)
            .map_err(|error| error.to_string())
            .and_then(|bytes| peer.link.send(&bytes).map_err(|error| error.to_string()));
        peer.lost = sent.err();
    }

    /// The next word of a worker.
    pub(crate) fn hear(&mut self, worker: usize) -> Option<Word> {
        let peer = self.workers.get_mut(worker)?;
        let bytes = peer.words.pop_front()?;
        match serde_json::from_slice(&bytes) {
            Ok(word) => Some(word),
            Err(error) => {
                let _ = peer
                    .lost
                    .get_or_insert(format!("it sent something else than expected: {error}"));
                None
            }
        }
    }

    /// Takes a worker for lost.
    pub(crate) fn give_up(&mut self, worker: usize, why: String) {
        if let Some(peer) = self.workers.get_mut(worker) {
            let _ = peer.lost.get_or_insert(why);
        }
    }

    /// Whether every worker that is left has taken everything it was told.
    pub(crate) fn is_idle(&self) -> bool {
        self.workers
            .iter()
            .all(|peer| peer.lost.is_some() || peer.link.is_idle())
    }

    fn greet(&mut self, hello: Hello, now: Duration) {
        let Some(id) = from_hex(&hello.id) else {
            return;
        };
        let known = self.workers.iter().find(|peer| peer.id == id);
        let answer = if known.is_some_and(|peer| peer.lost.is_some()) {
            Answer::Refused("this worker was lost and cannot come back".into())
        } else if known.is_some() {
            self.welcome()
        } else {
            match self.objection(&hello) {
                Some(why) => {
                    if self.refusals.len() == 8 {
                        self.refusals.pop_front();
                    }
                    self.refusals
                        .push_back(format!("{}: {why}", short(&hello.name)));
                    Answer::Refused(why)
                }
                None => {
                    self.workers.push(Peer {
                        id,
                        name: self.free_name(short(&hello.name)),
                        cores: hello.cores,
                        link: Link::new(self.max_payload, now),
                        exchanges: Exchanges::default(),
                        next_ping: now,
                        words: VecDeque::new(),
                        lost: None,
                    });
                    self.welcome()
                }
            }
        };
        if let Ok(bytes) = serde_json::to_vec(&answer) {
            let subject = worker_subject(&self.terms.session, &hello.id);
            self.publish(subject, bytes);
        }
    }

    fn welcome(&self) -> Answer {
        Answer::Welcome {
            token: hex(self.terms.token),
            silence_ms: u64::try_from(self.terms.silence.as_millis()).unwrap_or(u64::MAX),
        }
    }

    fn objection(&self, hello: &Hello) -> Option<String> {
        if hello.version != self.terms.version {
            return Some(format!(
                "the worker is version {}, the coordinator {}; use the same on every machine",
                short(&hello.version),
                self.terms.version
            ));
        }
        self.complete()
            .then(|| format!("all {} workers are there already", self.terms.wanted))
    }

    /// A name that no other worker has.
    fn free_name(&self, name: String) -> String {
        let taken = |name: &str| self.workers.iter().any(|peer| peer.name == name);
        if !taken(&name) {
            return name;
        }
        let numbers = 2..=self.workers.len() + 2;
        numbers
            .map(|number| format!("{name}#{number}"))
            .find(|name| !taken(name))
            .unwrap_or(name)
    }

    fn publish(&mut self, subject: String, bytes: Vec<u8>) {
        if self.outgoing.len() < OUTGOING {
            self.outgoing.push_back((subject, bytes));
        }
    }

    fn take_frame(&mut self, frame: &Frame, now: Duration) {
        let answered = self.unix_ns(now);
        let Some(peer) = self.workers.iter_mut().find(|peer| peer.id == frame.sender) else {
            return;
        };
        if peer.lost.is_some() {
            return;
        }
        if let Body::Pong { asked, came, left } = frame.body {
            peer.exchanges.count(asked, came, left, answered);
        }
        let room = peer.words.len() < UNREAD;
        match peer.link.take(&frame.body, room, now) {
            Ok(word) => peer.words.extend(word),
            Err(error) => peer.lost = Some(error.to_string()),
        }
    }
}

impl Core for Coordinator {
    fn subjects(&self) -> Vec<String> {
        let session = &self.terms.session;
        vec![
            hello_subject(session),
            run_subject(session, &hex(self.terms.token)),
        ]
    }

    fn take(&mut self, subject: &str, payload: &[u8], now: Duration) {
        if subject == hello_subject(&self.terms.session) {
            if let Ok(hello) = serde_json::from_slice(payload) {
                self.greet(hello, now);
            }
        } else if let Ok(frame) = Frame::from_bytes(payload) {
            self.take_frame(&frame, now);
        }
    }

    fn tick(&mut self, now: Duration) {
        let asked = self.unix_ns(now);
        let mut out = Vec::new();
        for peer in self.workers.iter_mut().filter(|peer| peer.lost.is_none()) {
            let silent = peer.link.silent(now);
            if silent >= self.terms.silence {
                peer.lost = Some(format!("silent for {} ms", silent.as_millis()));
                continue;
            }
            let mut bodies = peer.link.due(now);
            if now >= peer.next_ping {
                bodies.push(Body::Ping { asked });
                let wait = if peer.aligned() {
                    PING_LATER
                } else {
                    PING_SOON
                };
                peer.next_ping = now + wait;
            }
            let subject = worker_subject(&self.terms.session, &hex(peer.id));
            out.extend(bodies.into_iter().map(|body| {
                let sender = self.terms.token;
                (subject.clone(), Frame { sender, body }.to_bytes())
            }));
        }
        for (subject, bytes) in out {
            self.publish(subject, bytes);
        }
    }

    fn outgoing(&mut self) -> Option<(String, Vec<u8>)> {
        self.outgoing.pop_front()
    }
}

/// The Unix time at a moment of an axis.
pub(crate) fn unix_ns(origin_unix_ns: i64, now: Duration) -> i64 {
    let since = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
    origin_unix_ns.saturating_add(since)
}

/// The begin of a text that came from outside, without anything unprintable.
fn short(text: &str) -> String {
    let mut short = String::new();
    for char in text.chars().filter(|char| !char.is_control()) {
        if short.len() + char.len_utf8() > NAME_BYTES {
            break;
        }
        short.push(char);
    }
    short
}
