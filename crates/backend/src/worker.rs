//! A thread of a backend: its listener, its connections and its delays.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::net::sockopt;
use wire::deadlines::NEVER;
use wire::http1::RequestHead;
use wire::listeners::{AT_ONCE, LISTENER, Listeners, PAUSE};
use wire::poller::{Event, Interest, Poller, Registration};
use wire::slab::Key;
use wire::socket;
use wire::stream::{Received, Stream};
use wire::threads::Phase;
use wire::timed::Timed;

use super::answers::Answers;
use super::connection::{Connection, Next, State};
use super::{Behaviour, Script, Shared};

/// The kind of the tokens of connections.
const CONNECTION: u32 = 0;

/// Bytes taken from a connection at once, and the most that one may hold back.
const BUFFER: usize = 64 * 1024;

pub(super) struct Worker {
    poller: Poller,
    listeners: Listeners<()>,
    shared: Arc<Shared>,
    behaviour: Arc<Behaviour>,
    answers: Answers,
    /// By the tokens of their sockets. Their delays end at their deadlines.
    connections: Timed<Connection>,
    buffer: Vec<u8>,
    head: RequestHead,
}

impl Worker {
    pub(super) fn new(poller: Poller, listener: OwnedFd, shared: Arc<Shared>) -> io::Result<Self> {
        let mut listeners = Listeners::default();
        listeners.add(listener, (), &poller)?;
        let behaviour = shared.behaviour.load_full();
        Ok(Self {
            answers: Answers::new(Arc::clone(&shared)),
            poller,
            listeners,
            shared,
            behaviour,
            connections: Timed::default(),
            buffer: vec![0; BUFFER],
            head: RequestHead::default(),
        })
    }

    /// Serves until it is told to stop.
    pub(super) fn run(mut self) {
        wire::clock::precise_timers();
        while self.poller.phase() != Phase::Stopped {
            let deadline = self.connections.next_deadline();
            let next = deadline.min(self.listeners.next_deadline());
            let waited = self.poller.wait_until(next, wire::clock::now());
            if waited.is_err() {
                return;
            }
            self.refresh();
            while let Some(event) = self.poller.next_event() {
                self.handle(event);
            }
            self.end_delays();
            let due = self.listeners.next_deadline();
            if due != NEVER && due <= wire::clock::now() {
                self.listeners.resume(due, &self.poller);
            }
        }
    }

    /// Looks once for each wake-up whether the behaviour or the second has changed.
    fn refresh(&mut self) {
        let behaviour = self.shared.behaviour.load();
        if !Arc::ptr_eq(&behaviour, &self.behaviour) {
            self.behaviour = Arc::clone(&behaviour);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let second = now.unwrap_or_default().as_secs();
        self.answers.set_second(i64::try_from(second).unwrap_or(0));
    }

    fn handle(&mut self, event: Event) {
        match Key::of_token(event.token) {
            (LISTENER, key) => self.accept(key),
            (CONNECTION, key) => {
                let Some(mut connection) = self.connections.values.take(key) else {
                    return;
                };
                if connection.state == State::Handshake {
                    let next = connection.shake_hands();
                    let next = self.take_held(&mut connection, next);
                    self.put(key, connection, next);
                    return;
                }
                let next = match event.writable {
                    true => connection.writable(),
                    false => Next::Read,
                };
                let next = match (next, event.readable) {
                    (Next::Read, true) => self.receive(&mut connection),
                    // A peer that went away while we wait for it to read.
                    (Next::Write, true) if !event.writable => Next::Close,
                    (Next::Read, false) if !connection.input.is_empty() => {
                        self.answer(&mut connection, 0)
                    }
                    (next, _) => next,
                };
                let next = self.take_held(&mut connection, next);
                self.put(key, connection, next);
            }
            // Only a stop wakes a thread, and the loop looks for it.
            _ => {}
        }
    }

    /// Takes what TLS has decrypted already, which no event will tell of.
    fn take_held(&mut self, connection: &mut Connection, mut next: Next) -> Next {
        while next == Next::Read
            && connection.state != State::Handshake
            && connection.stream.holds_bytes()
        {
            next = self.receive(connection);
        }
        next
    }

    fn accept(&mut self, listener: Key) {
        for _ in 0..AT_ONCE {
            let Some((_, socket)) = self.listeners.get(listener) else {
                return;
            };
            let Ok(socket) = socket::accept_anybody(socket) else {
                let until = wire::clock::now() + PAUSE;
                self.listeners.pause(listener, until, &self.poller);
                return;
            };
            let Some(socket) = socket else { return };
            let (kind, poller) = (CONNECTION, &self.poller);
            let Some(key) = self
                .connections
                .watch(&socket, kind, Interest::Read, poller)
            else {
                return;
            };
            let stream = match &self.shared.tls {
                None => Ok(Stream::Plain(socket)),
                Some(tls) => tls.begin(socket).map(|tls| Stream::Tls(Box::new(tls))),
            };
            // Without randomness there is no TLS, and the connection is closed.
            let Ok(stream) = stream else {
                self.connections.release(key);
                continue;
            };
            let registration = Registration::added(key.token(CONNECTION), Interest::Read);
            let connection = Connection::new(stream, registration);
            self.connections.values.put(key, connection);
            self.shared.accepted.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn put(&mut self, key: Key, mut connection: Connection, next: Next) {
        match next {
            Next::Read | Next::Write | Next::Delay(_) => {
                if let Next::Delay(at) = next {
                    self.connections.deadlines.set(key.index(), at);
                }
                let write = next == Next::Write;
                let wanted = Some(Interest::of(!write, write));
                let registration = &mut connection.registration;
                let set = registration.set(&connection.stream, wanted, &self.poller);
                if set.is_ok() {
                    self.connections.values.put(key, connection);
                    return;
                }
            }
            Next::Reset => {
                // Closed with a linger of nothing, a connection is reset. An error leaves
                // a close, which is the next best.
                if let Some(socket) = connection.stream.socket() {
                    let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
                }
            }
            Next::Close if connection.stream.tls().is_some() => {
                // The peer is to know that nothing was cut off. It may be gone already.
                let _ = connection.stream.close_write();
            }
            Next::Close => {}
        }
        self.connections.release(key);
    }

    fn receive(&mut self, connection: &mut Connection) -> Next {
        let held = connection.input.len();
        if held == self.buffer.len() {
            return Next::Close;
        }
        match connection.stream.receive(&mut self.buffer[held..]) {
            Ok(Received::Bytes(_)) if connection.state == State::Hung => Next::Read,
            Ok(Received::Bytes(received)) => self.answer(connection, received),
            Ok(Received::Nothing) => Next::Read,
            Ok(Received::End) | Err(_) => Next::Close,
        }
    }

    /// Answers what the connection held back and the `received` bytes behind it.
    fn answer(&mut self, connection: &mut Connection, received: usize) -> Next {
        let held = connection.input.len();
        self.buffer[..held].copy_from_slice(&connection.input);
        connection.input.clear();
        let bytes = &self.buffer[..held + received];
        let script: &dyn Script = match &self.shared.script {
            Some(script) => &**script,
            None => &*self.behaviour,
        };
        let fate = || {
            // Before its answer is sent: whoever has that finds it counted.
            self.shared.requests.fetch_add(1, Ordering::Relaxed);
            script.fate(wire::clock::now())
        };
        let (used, next) = connection.take(bytes, &mut self.head, fate, &mut self.answers);
        connection.input.extend_from_slice(&bytes[used..]);
        next
    }

    fn end_delays(&mut self) {
        while let Some(key) = self.connections.late(wire::clock::now()) {
            let Some(mut connection) = self.connections.values.take(key) else {
                continue;
            };
            let mut next = connection.delay_over(&mut self.answers);
            if next == Next::Read && !connection.input.is_empty() {
                next = self.answer(&mut connection, 0);
            }
            let next = self.take_held(&mut connection, next);
            self.put(key, connection, next);
        }
    }
}
