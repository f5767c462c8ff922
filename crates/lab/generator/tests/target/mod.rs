//! A target whose behaviour is known: it answers after a fixed time, stops at planned
//! times, and remembers when each request came in.
#![allow(dead_code, unreachable_pub)]

pub mod queue;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use wire::clock;
use wire::poller::{Interest, Poller, WAKER, Waker};
use wire::slab::Key;

const LISTENER: u64 = u64::MAX;

const REFUSED: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";

/// How a target behaves.
#[derive(Debug, Clone, Default)]
pub struct Behaviour {
    /// Time from a request to its answer.
    pub delay: Duration,
    /// Work that follows the delay, in a queue; refused requests get a 503 at once.
    pub queue: Option<queue::Queue>,
    /// Stops, as begin and end after the first request: nothing is read or answered.
    pub stops: Vec<(Duration, Duration)>,
    /// Bytes of each answer's body.
    pub body: usize,
    /// Whether the arrival of each request is remembered.
    pub log: bool,
}

/// A target in a thread of its own. Ends when dropped.
pub struct Target {
    /// Where it listens.
    pub address: SocketAddr,
    end: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<Vec<u64>>>,
}

impl Target {
    /// Listens on a port of 127.0.0.1; 0 takes any.
    pub fn start(port: u16, behaviour: Behaviour) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port))?;
        // Of what reconnects while it stands still, nothing is to wait for a second handshake.
        rustix::net::listen(&listener, 4096)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let poller = Poller::new()?;
        poller.add(&listener, LISTENER, Interest::Read)?;
        let waker = poller.waker().clone();
        let end = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&end);
        let thread = std::thread::spawn(move || {
            clock::precise_timers();
            let mut server = Server::new(listener, poller, behaviour);
            while !ended.load(Ordering::Relaxed) {
                server.turn();
            }
            server.seen
        });
        Ok(Self {
            address,
            end,
            waker,
            thread: Some(thread),
        })
    }

    /// Ends it, and says when requests came in, in nanoseconds of the monotonic clock.
    pub fn end(mut self) -> Vec<u64> {
        self.join()
    }

    fn join(&mut self) -> Vec<u64> {
        self.end.store(true, Ordering::Relaxed);
        self.waker.wake();
        let seen = self.thread.take().and_then(|thread| thread.join().ok());
        seen.unwrap_or_default()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.join();
    }
}

struct Server {
    listener: TcpListener,
    poller: Poller,
    behaviour: Behaviour,
    connections: Vec<Option<TcpStream>>,
    /// Requests that wait for their answer: when, and on which connection.
    pending: BinaryHeap<Reverse<(u64, usize)>>,
    first: Option<u64>,
    seen: Vec<u64>,
    answer: Vec<u8>,
    buffer: Vec<u8>,
}

impl Server {
    fn new(listener: TcpListener, poller: Poller, behaviour: Behaviour) -> Self {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n",
            behaviour.body
        );
        let mut answer = head.into_bytes();
        answer.resize(answer.len() + behaviour.body, b'x');
        Self {
            listener,
            poller,
            behaviour,
            connections: Vec::new(),
            pending: BinaryHeap::new(),
            first: None,
            seen: Vec::new(),
            answer,
            buffer: vec![0; 16 * 1024],
        }
    }

    fn turn(&mut self) {
        self.stand_still();
        let now = clock::now();
        while self.pending.peek().is_some_and(|first| first.0.0 <= now) {
            if let Some(Reverse((_, place))) = self.pending.pop() {
                self.send(place);
            }
        }
        let wait = match self.pending.peek() {
            Some(Reverse((due, _))) => Duration::from_nanos(due.saturating_sub(clock::now())),
            None => Duration::from_secs(1),
        };
        let wait = wait.min(self.until_stop());
        let _ = self.poller.wait(Some(wait));
        self.stand_still();
        while let Some(event) = self.poller.next_event() {
            match event.token {
                LISTENER => self.accept(),
                token if Key::of_token(token).0 == WAKER => {}
                place => self.read(place as usize),
            }
        }
    }

    /// Sleeps through a stop that has begun.
    fn stand_still(&self) {
        let Some(first) = self.first else { return };
        let passed = Duration::from_nanos(clock::now() - first);
        for (begin, end) in &self.behaviour.stops {
            if (*begin..*end).contains(&passed) {
                std::thread::sleep(*end - passed);
            }
        }
    }

    fn until_stop(&self) -> Duration {
        let Some(first) = self.first else {
            return Duration::MAX;
        };
        let passed = Duration::from_nanos(clock::now() - first);
        let stops = self.behaviour.stops.iter();
        let next = stops
            .filter_map(|(begin, _)| begin.checked_sub(passed))
            .min();
        next.unwrap_or(Duration::MAX)
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            let _ = stream.set_nonblocking(true);
            let _ = stream.set_nodelay(true);
            let place = self.connections.len();
            if self
                .poller
                .add(&stream, place as u64, Interest::Read)
                .is_ok()
            {
                self.connections.push(Some(stream));
            }
        }
    }

    fn read(&mut self, place: usize) {
        let Some(Some(stream)) = self.connections.get_mut(place) else {
            return;
        };
        let read = match stream.read(&mut self.buffer) {
            Ok(0) => {
                self.connections[place] = None;
                return;
            }
            Ok(read) => read,
            Err(_) => return,
        };
        // Requests without bodies, one at a time and whole in one read: that is how they
        // are sent.
        if self.buffer[..read].ends_with(b"\r\n\r\n") {
            let now = clock::now();
            self.first.get_or_insert(now);
            if self.behaviour.log {
                self.seen.push(now);
            }
            let arrived = now + self.behaviour.delay.as_nanos() as u64;
            let due = match &mut self.behaviour.queue {
                Some(queue) => queue.take(arrived),
                None => Some(arrived),
            };
            match due {
                None => self.write(place, REFUSED),
                Some(due) if due <= now => self.send(place),
                Some(due) => self.pending.push(Reverse((due, place))),
            }
        }
    }

    fn send(&mut self, place: usize) {
        let answer = std::mem::take(&mut self.answer);
        self.write(place, &answer);
        self.answer = answer;
    }

    fn write(&mut self, place: usize, answer: &[u8]) {
        if let Some(Some(stream)) = self.connections.get_mut(place) {
            // A client that does not read such a small answer is not ours.
            let _ = stream.write_all(answer);
        }
    }
}
