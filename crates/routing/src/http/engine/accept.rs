//! Clients come and go.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use wire::http1::{Limits, RequestScanner};
use wire::poller::Interest;
use wire::slab::Key;
use wire::socket;
use wire::stream::Stream;

use super::buffers::{Inbox, Outbox};
use super::session::{Phase, Session};
use super::token;
use super::worker::{RUNNING, Worker};
use crate::http::pipeline::Client;
use crate::table::Nanos;
use wire::deadlines::NEVER;

/// Connections accepted at one wake-up: a flood of new ones must not hold up the others.
const AT_ONCE: usize = 32;
/// How long accepting pauses when the system has no descriptors left.
const PAUSE: Nanos = 100_000_000;
/// Connections that wait to be accepted.
const BACKLOG: u32 = 4096;

/// Where connections are accepted.
pub(super) struct Listener {
    socket: OwnedFd,
    /// Whether clients speak TLS there.
    tls: bool,
    /// Whether it is not watched now, since there are as many clients as may be.
    paused: bool,
}

impl Listener {
    /// Listens on an address, beside other listeners of this process.
    ///
    /// # Errors
    /// When the address is not one of this machine, is taken, or may not be used.
    pub(super) fn bind(address: SocketAddr, tls: bool) -> io::Result<Self> {
        // Each thread has its own queue of new connections.
        let socket = socket::listen_tcp(address, BACKLOG, true)?;
        Ok(Self {
            socket,
            tls,
            paused: false,
        })
    }

    /// The address, with the port that was given for port 0.
    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        Ok(socket::local_address(&self.socket)?)
    }
}

impl Worker {
    /// Begins to watch the listeners.
    pub(super) fn listen(&mut self) -> io::Result<()> {
        for (index, listener) in self.listeners.iter().enumerate() {
            let token = Key::of(index as u64).token(token::LISTENER);
            self.poller.add(&listener.socket, token, Interest::Read)?;
        }
        Ok(())
    }

    /// Accepts the connections that wait.
    pub(super) fn accept(&mut self, index: usize) {
        for _ in 0..AT_ONCE {
            if self.clients.taken() + self.http2.fronts() >= self.most_clients {
                self.pause(index);
                return;
            }
            let Some(listener) = self.listeners.get(index) else {
                return;
            };
            let tls = listener.tls;
            match socket::accept(&listener.socket) {
                Ok(Some((socket, peer))) => self.welcome(socket, peer, tls),
                Ok(None) => return,
                Err(Errno::MFILE | Errno::NFILE) if self.make_room() => {}
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    self.counters.no_descriptors.increment();
                    // Level-triggered readiness would keep this thread busy.
                    self.pause(index);
                    self.accept_again = self.now.saturating_add(PAUSE);
                    return;
                }
                // One went away meanwhile.
                Err(_) => {}
            }
        }
    }

    fn pause(&mut self, index: usize) {
        let Some(listener) = self.listeners.get_mut(index) else {
            return;
        };
        let token = Key::of(index as u64).token(token::LISTENER);
        let change = self
            .poller
            .change(&listener.socket, token, Interest::Nothing);
        listener.paused = change.is_ok();
        self.counters.full.increment();
    }

    /// Watches listeners again that were paused.
    pub(super) fn resume_accepting(&mut self) {
        self.accept_again = NEVER;
        for (index, listener) in self.listeners.iter_mut().enumerate() {
            if listener.paused {
                let token = Key::of(index as u64).token(token::LISTENER);
                let change = self.poller.change(&listener.socket, token, Interest::Read);
                listener.paused = change.is_err();
            }
        }
    }

    fn welcome(&mut self, socket: OwnedFd, peer: SocketAddr, tls: bool) {
        let settings = &self.shared.settings;
        let key = self.clients.reserve();
        let opens = tls || settings.proxy_protocol;
        let stream = match self
            .shared
            .tls
            .with_client(tls && !settings.proxy_protocol, socket)
        {
            Ok(stream) => stream,
            Err(_) => {
                self.clients.release(key);
                self.counters.failed_clients.increment();
                return;
            }
        };
        let token = key.token(token::CLIENT);
        if self.poller.add(&stream, token, Interest::Read).is_err() {
            self.clients.release(key);
            return;
        }
        self.counters.accepted.increment();
        self.counters.open_clients.increment();
        let phase = if opens { Phase::Opening } else { Phase::Idle };
        let patience = if opens {
            settings.backends.handshake_timeout
        } else {
            settings.idle_timeout
        };
        let deadline = self.after(patience);
        let mut session = self.session(key, stream, Client::new(peer, None), phase);
        (session.deadline, session.awaits_tls) = (deadline, tls);
        self.arm(&mut session);
        self.clients.put(key, session);
    }

    /// Takes in a connection that does not come over the network, but from another part of
    /// this thread; `false`: there is no room for it.
    pub(super) fn take_in(&mut self, stream: Stream, client: Client) -> bool {
        let key = self.clients.reserve();
        let token = key.token(token::CLIENT);
        if self.poller.add(&stream, token, Interest::Read).is_err() {
            self.clients.release(key);
            return false;
        }
        self.counters.open_clients.increment();
        // Its head has come to the router already, if not here: a drain waits for it.
        let mut session = self.session(key, stream, client, Phase::Head);
        session.deadline = self.after(self.shared.settings.head_timeout);
        self.arm(&mut session);
        self.clients.put(key, session);
        true
    }

    /// A client's connection that the poller watches for reading.
    pub(super) fn session(
        &self,
        key: Key,
        stream: Stream,
        client: Client,
        phase: Phase,
    ) -> Box<Session> {
        let limits = Limits {
            head_bytes: self.shared.settings.longest_head(),
            ..Limits::default()
        };
        Box::new(Session {
            key,
            stream,
            client,
            scanner: RequestScanner::new(limits),
            inbox: Inbox::default(),
            outbox: Outbox::default(),
            phase,
            ended: false,
            interest: Interest::Read,
            deadline: NEVER,
            awaits_tls: false,
            introduced: false,
            domain: None,
            used: false,
            flight: None,
        })
    }

    /// Removes a connection that was closed.
    pub(super) fn forget_client(&mut self, mut session: Box<Session>) {
        session.inbox.clear(&mut self.buffers);
        session.outbox.clear(&mut self.buffers);
        self.client_deadlines.clear(session.key.index());
        self.clients.release(session.key);
        self.counters.open_clients.decrement();
        drop(session);
        if self.state == RUNNING {
            self.resume_accepting();
        }
    }

    /// Watches for what the connection needs, and sets its deadline, where they changed.
    pub(super) fn arm(&mut self, session: &mut Session) {
        if matches!(session.phase, Phase::Closed | Phase::Http2) {
            return;
        }
        if session.stream.holds_bytes() && session.wants_bytes() {
            // The poller does not know of them.
            self.look_again(session.key);
        }
        let wanted = session.wanted();
        if wanted != session.interest {
            let token = session.key.token(token::CLIENT);
            if self.poller.change(&session.stream, token, wanted).is_err() {
                session.phase = Phase::Closed;
                return;
            }
            session.interest = wanted;
        }
        let place = session.key.index();
        self.client_deadlines.set(place, session.deadline);
    }

    /// The moment after a time from now.
    pub(super) fn after(&self, time: std::time::Duration) -> Nanos {
        let time = u64::try_from(time.as_nanos()).unwrap_or(NEVER);
        self.now.saturating_add(time)
    }
}
