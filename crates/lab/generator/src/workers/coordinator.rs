//! The coordinator's side of a session, without a clock and without a socket.

use std::collections::VecDeque;
use std::time::Duration;

use lab_load::GenerateError;

use super::connection::Connection;
use super::driver::{Core, Outgoing};
use super::message::{
    Hello, Order, Packet, WorkerReport, hello_subject, run_subject, worker_subject,
};

/// Refusals that are remembered, and the longest name of a worker, in bytes.
const REFUSALS: usize = 8;
const NAME_BYTES: usize = 100;

/// What a coordinator knows before anyone is there.
#[derive(Debug, Clone)]
pub(crate) struct SessionConfig {
    pub(crate) session: String,
    pub(crate) token: u64,
    pub(crate) version: String,
    /// Workers that take part; later ones are refused.
    pub(crate) wanted: usize,
    pub(crate) silence: Duration,
}

#[derive(Debug)]
pub(crate) struct Coordinator {
    config: SessionConfig,
    max_payload: usize,
    /// In the order in which they came, the lost ones too.
    pub(crate) workers: Vec<Peer>,
    /// Why hellos were refused, the last few; for a person who waits for workers.
    pub(crate) refusals: VecDeque<String>,
}

/// A worker that takes part.
#[derive(Debug)]
pub(crate) struct Peer {
    id: u64,
    pub(crate) name: String,
    pub(crate) cores: u32,
    pub(crate) connection: Connection<WorkerReport>,
}

impl Coordinator {
    pub(crate) fn new(config: SessionConfig, max_payload: usize) -> Self {
        Self {
            config,
            max_payload,
            workers: Vec::new(),
            refusals: VecDeque::new(),
        }
    }

    /// Whether every worker that is needed has come.
    pub(crate) fn is_complete(&self) -> bool {
        self.workers.len() == self.config.wanted
    }

    /// Whether every worker that is left has taken everything it was told.
    pub(crate) fn is_idle(&self) -> bool {
        self.workers.iter().all(|peer| peer.connection.is_idle())
    }

    /// Sends an order to all workers. Lost ones receive nothing any more.
    pub(crate) fn broadcast(&mut self, order: &Order) {
        for peer in &mut self.workers {
            peer.connection.send(order);
        }
    }

    /// What workers said since the last call, by the worker's number.
    pub(crate) fn reports(&mut self) -> Vec<(usize, WorkerReport)> {
        let mut reports = Vec::new();
        for (worker, peer) in self.workers.iter_mut().enumerate() {
            for report in std::mem::take(peer.connection.received()) {
                if report == WorkerReport::Bye {
                    peer.connection.lose("ended by its own user".into());
                }
                reports.push((worker, report));
            }
        }
        reports
    }

    /// An error that a worker told of, with its name.
    pub(crate) fn of_worker(&self, worker: usize, error: GenerateError) -> GenerateError {
        let name = self.workers.get(worker).map_or("?", |peer| &peer.name);
        GenerateError {
            doing: format!("worker {name}: {}", error.doing),
            ..error
        }
    }

    fn peer(&mut self, id: u64) -> Option<&mut Peer> {
        self.workers.iter_mut().find(|peer| peer.id == id)
    }

    fn greet(&mut self, hello: Hello, now: Duration) -> Packet {
        let welcome = Packet::Welcome {
            token: self.config.token,
            silence_ms: u64::try_from(self.config.silence.as_millis()).unwrap_or(u64::MAX),
        };
        if let Some(known) = self.peer(hello.id) {
            return match known.connection.lost() {
                Some(_) => Packet::Refused("this worker was lost and cannot come back".into()),
                None => welcome,
            };
        }
        let name = short(&hello.name);
        if let Some(why) = self.objection(&hello) {
            if self.refusals.len() == REFUSALS {
                self.refusals.pop_front();
            }
            self.refusals.push_back(format!("{name}: {why}"));
            return Packet::Refused(why);
        }
        let SessionConfig { token, silence, .. } = self.config;
        self.workers.push(Peer {
            id: hello.id,
            name: self.free_name(name),
            cores: hello.cores,
            connection: Connection::new(token, self.max_payload, silence, now),
        });
        welcome
    }

    fn objection(&self, hello: &Hello) -> Option<String> {
        if hello.version != self.config.version {
            return Some(format!(
                "the worker is version {}, the coordinator {}; use the same on every machine",
                short(&hello.version),
                self.config.version
            ));
        }
        self.is_complete()
            .then(|| format!("all {} workers are there already", self.config.wanted))
    }

    /// A name that no other worker has.
    fn free_name(&self, name: String) -> String {
        let numbered = (2..).map(|number| format!("{name}#{number}"));
        std::iter::once(name.clone())
            .chain(numbered)
            .find(|name| self.workers.iter().all(|peer| peer.name != *name))
            .unwrap_or(name)
    }
}

impl Core for Coordinator {
    fn subjects(&self) -> Vec<String> {
        let session = &self.config.session;
        vec![
            hello_subject(session),
            run_subject(session, self.config.token),
        ]
    }

    fn take(&mut self, packet: Packet, now: Duration) -> Option<Outgoing> {
        let (id, answer) = match packet {
            Packet::Hello(hello) => (hello.id, self.greet(hello, now)),
            Packet::Request(request) => {
                let peer = self.peer(request.sender)?;
                let reply = peer.connection.take_request(&request, now)?;
                (peer.id, Packet::Reply(reply))
            }
            Packet::Reply(reply) => {
                self.peer(reply.sender)?.connection.take_reply(&reply, now);
                return None;
            }
            Packet::Welcome { .. } | Packet::Refused(_) => return None,
        };
        Some((worker_subject(&self.config.session, id), answer))
    }

    fn tick(&mut self, now: Duration) -> Vec<Outgoing> {
        let session = &self.config.session;
        let due = self.workers.iter_mut().filter_map(|peer| {
            let request = peer.connection.request(now)?;
            Some((worker_subject(session, peer.id), Packet::Request(request)))
        });
        due.collect()
    }
}

/// The start of a text that came from outside, without anything unprintable.
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
