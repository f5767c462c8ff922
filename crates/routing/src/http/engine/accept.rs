//! Clients come and go.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, acceptfrom_with, sockopt};
use wire::http1::{Limits, RequestScanner};
use wire::poller::Interest;
use wire::stream::Stream;

use super::buffers::{Inbox, Outbox};
use super::deadlines::NEVER;
use super::session::{Phase, Session};
use super::slab::Token;
use super::worker::{RUNNING, Worker};
use crate::http::pipeline::Client;
use crate::table::Nanos;

/// Connections accepted at one wake-up: a flood of new ones must not hold up the others.
const AT_ONCE: usize = 32;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 4096;

/// Where connections are accepted.
pub(super) struct Listener {
    socket: OwnedFd,
    /// Whether it is not watched now, since there are as many clients as may be.
    paused: bool,
}

impl Listener {
    /// Listens on an address, beside other listeners of this process.
    ///
    /// # Errors
    /// When the address is not one of this machine, is taken, or may not be used.
    pub(super) fn bind(address: SocketAddr) -> io::Result<Self> {
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        // Each thread has its own queue of new connections.
        sockopt::set_socket_reuseport(&socket, true)?;
        // Inherited by what is accepted: one call less for each connection.
        sockopt::set_tcp_nodelay(&socket, true)?;
        rustix::net::bind(&socket, &address)?;
        rustix::net::listen(&socket, BACKLOG)?;
        Ok(Self {
            socket,
            paused: false,
        })
    }

    /// The address, with the port that was given for port 0.
    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        let address = rustix::net::getsockname(&self.socket)?;
        SocketAddr::try_from(address).map_err(io::Error::from)
    }
}

impl Worker {
    /// Begins to watch the listeners.
    pub(super) fn listen(&mut self) -> io::Result<()> {
        for (index, listener) in self.listeners.iter().enumerate() {
            let token = Token::Listener(index as u32).number();
            self.poller.add(&listener.socket, token, Interest::Read)?;
        }
        Ok(())
    }

    /// Accepts the connections that wait.
    pub(super) fn accept(&mut self, index: usize) {
        for _ in 0..AT_ONCE {
            if self.clients.len() >= self.most_clients {
                self.pause(index);
                return;
            }
            let Some(listener) = self.listeners.get(index) else {
                return;
            };
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match acceptfrom_with(&listener.socket, flags) {
                Ok((socket, peer)) => {
                    let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
                    if let Some(peer) = peer {
                        self.welcome(socket, peer);
                    }
                }
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    // Goes on when a connection has ended; level-triggered readiness
                    // would keep this thread busy until then.
                    self.pause(index);
                    return;
                }
                // None waits, or it went away meanwhile.
                Err(_) => return,
            }
        }
    }

    fn pause(&mut self, index: usize) {
        let Some(listener) = self.listeners.get_mut(index) else {
            return;
        };
        let token = Token::Listener(index as u32).number();
        let change = self
            .poller
            .change(&listener.socket, token, Interest::Nothing);
        listener.paused = change.is_ok();
        self.counters.full.increment();
    }

    fn resume_accepting(&mut self) {
        for (index, listener) in self.listeners.iter_mut().enumerate() {
            if listener.paused {
                let token = Token::Listener(index as u32).number();
                let change = self.poller.change(&listener.socket, token, Interest::Read);
                listener.paused = change.is_err();
            }
        }
    }

    fn welcome(&mut self, socket: OwnedFd, peer: SocketAddr) {
        let settings = &self.shared.settings;
        let limits = Limits {
            head_bytes: settings.request_head_bytes,
            ..Limits::default()
        };
        let key = self.clients.reserve();
        let token = Token::Client(key).number();
        if self.poller.add(&socket, token, Interest::Read).is_err() {
            self.clients.release(key);
            return;
        }
        self.counters.accepted.increment();
        self.counters.open_clients.increment();
        let mut session = Box::new(Session {
            key,
            stream: Stream::Plain(socket),
            client: Client::new(peer, None),
            scanner: RequestScanner::new(limits),
            inbox: Inbox::default(),
            outbox: Outbox::default(),
            phase: Phase::Idle,
            ended: false,
            interest: Interest::Read,
            deadline: self.after(settings.idle_timeout),
            armed: NEVER,
            used: false,
            flight: None,
        });
        self.arm(&mut session);
        self.clients.put(key, session);
    }

    /// Removes a connection that was closed.
    pub(super) fn forget_client(&mut self, mut session: Box<Session>) {
        session.inbox.clear(&mut self.buffers);
        session.outbox.clear(&mut self.buffers);
        self.client_deadlines.set(session.key.index, NEVER);
        self.clients.release(session.key);
        self.counters.open_clients.decrement();
        drop(session);
        if self.state == RUNNING {
            self.resume_accepting();
        }
    }

    /// Watches for what the connection needs, and sets its deadline, where they changed.
    pub(super) fn arm(&mut self, session: &mut Session) {
        if session.phase == Phase::Closed {
            return;
        }
        let wanted = session.wanted();
        if wanted != session.interest {
            let token = Token::Client(session.key).number();
            if self.poller.change(&session.stream, token, wanted).is_err() {
                session.phase = Phase::Closed;
                return;
            }
            session.interest = wanted;
        }
        if session.deadline != session.armed {
            session.armed = session.deadline;
            self.client_deadlines
                .set(session.key.index, session.deadline);
        }
    }

    /// The moment after a time from now.
    pub(super) fn after(&self, time: std::time::Duration) -> Nanos {
        let time = u64::try_from(time.as_nanos()).unwrap_or(NEVER);
        self.now.saturating_add(time)
    }
}
