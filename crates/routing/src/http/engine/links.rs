//! Connections to backends, between their requests.

use std::net::SocketAddr;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use wire::http1::{Limits, ResponseScanner};
use wire::poller::Interest;
use wire::slab::Key;
use wire::stream::{Received, Stream};

use super::buffers::Inbox;
use super::session::{Link, LinkState, Session, Whereabouts};
use super::token;
use super::worker::{RUNNING, Worker};
use crate::http::settings::ExtraField;
use crate::table::Endpoint;
use wire::deadlines::NEVER;

impl Link {
    /// The router's own end; costs a call into the kernel.
    pub(super) fn local(&self) -> Option<SocketAddr> {
        if self.local.is_some() {
            return self.local;
        }
        let address = rustix::net::getsockname(self.stream.socket()?).ok()?;
        SocketAddr::try_from(address).ok()
    }

    /// Whether it is to the same peer, in the same way, as a new one to the endpoint.
    fn fits(&self, endpoint: &Endpoint, service: bool) -> bool {
        if self.service != service {
            return false;
        }
        match &self.server_name {
            Some(name) => endpoint.tls && *name == endpoint.server_name,
            None => !endpoint.tls,
        }
    }

    /// Whether the backend has closed it, or said something that nobody asked for.
    fn is_stale(&mut self) -> bool {
        let Some(socket) = self.stream.socket() else {
            return !matches!(self.stream.receive(&mut [0; 1]), Ok(Received::Nothing));
        };
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        !matches!(
            recv(socket, &mut [0_u8; 1][..], flags),
            Err(Errno::AGAIN | Errno::INTR)
        )
    }
}

impl Worker {
    /// Whether the log tells the router's own ends of connections: each costs a call into
    /// the kernel.
    pub(super) fn logs_local_address(&self) -> bool {
        let fields = &self.shared.settings.access_log.extra_fields;
        fields.contains(&ExtraField::LocalAddress)
    }

    /// A connection that was begun for a client's request.
    pub(super) fn new_link(
        &mut self,
        client: Key,
        endpoint: &Endpoint,
        service: bool,
        stream: Stream,
    ) -> Result<Box<Link>, Errno> {
        let settings = &self.shared.settings;
        let limits = Limits {
            head_bytes: settings.response_head_bytes,
            fields: settings.response_fields,
            ..Limits::default()
        };
        let key = self.links.reserve();
        let token = key.token(token::BACKEND);
        if self.poller.add(&stream, token, Interest::Write).is_err() {
            self.links.release(key);
            return Err(Errno::NOBUFS);
        }
        self.links.put(key, Whereabouts::With(client));
        self.counters.open_backends.increment();
        Ok(Box::new(Link {
            key,
            identity: endpoint.identity.clone(),
            service,
            server_name: endpoint.tls.then(|| endpoint.server_name.clone()),
            stream,
            local: None,
            state: LinkState::Connecting,
            scanner: ResponseScanner::new(limits),
            inbox: Inbox::default(),
            interest: Interest::Write,
            watched: true,
            reused: false,
            ended: false,
        }))
    }

    /// Takes an idle connection to the endpoint. `careful`: asks the kernel whether it is
    /// still open, since the request cannot be sent twice.
    pub(super) fn idle_link(
        &mut self,
        client: Key,
        endpoint: &Endpoint,
        service: bool,
        careful: bool,
    ) -> Option<Box<Link>> {
        loop {
            let key = self.pools.take(endpoint.identity())?;
            let Some(Whereabouts::Idle(mut link)) = self.links.take(key) else {
                continue;
            };
            self.counters.idle_backends.decrement();
            self.link_deadlines.set(key.index(), NEVER);
            if !link.fits(endpoint, service) || (careful && link.is_stale()) {
                self.close_link(*link);
                continue;
            }
            self.links.put(key, Whereabouts::With(client));
            return Some(link);
        }
    }

    /// Puts a connection whose answer is whole into its pool, if it may be used again.
    pub(super) fn keep_link(&mut self, mut link: Box<Link>) {
        let settings = &self.shared.settings.backends;
        let clean = link.watched && link.inbox.is_empty() && !link.stream.holds_bytes();
        if self.state != RUNNING
            || !clean
            || !self.pools.add(&link.identity, link.key, settings.idle)
        {
            self.close_link(*link);
            return;
        }
        if link.interest != Interest::Read {
            let token = link.key.token(token::BACKEND);
            let change = self.poller.change(&link.stream, token, Interest::Read);
            if change.is_err() {
                self.close_link(*link);
                return;
            }
            link.interest = Interest::Read;
        }
        link.reused = true;
        self.counters.idle_backends.increment();
        let deadline = self.after(settings.idle_timeout);
        self.link_deadlines.set(link.key.index(), deadline);
        self.links.put(link.key, Whereabouts::Idle(link));
    }

    /// An idle connection can be read: its backend closed it, or breaks the protocol. Only
    /// of streams it may be told for nothing.
    pub(super) fn idle_link_spoke(&mut self, key: Key) {
        let Some(Whereabouts::Idle(link)) = self.links.get_mut(key) else {
            return;
        };
        if link.stream.socket().is_some() || link.is_stale() {
            self.drop_idle_link(key);
        }
    }

    /// Closes an idle connection.
    pub(super) fn drop_idle_link(&mut self, key: Key) {
        if let Some(Whereabouts::Idle(link)) = self.links.take(key) {
            self.counters.idle_backends.decrement();
            self.close_link(*link);
        }
    }

    /// Closes the idle connection that would be closed first, since a descriptor is needed;
    /// `false` when there is none.
    pub(super) fn make_room(&mut self) -> bool {
        let Some((place, _)) = self.link_deadlines.iter().min_by_key(|(_, at)| *at) else {
            return false;
        };
        let Some(key) = self.links.key_at(place as usize) else {
            return false;
        };
        if !matches!(self.links.get(key), Some(Whereabouts::Idle(_))) {
            return false;
        }
        self.counters.no_descriptors.increment();
        self.drop_idle_link(key);
        true
    }

    /// Closes a connection.
    pub(super) fn close_link(&mut self, mut link: Link) {
        link.inbox.clear(&mut self.buffers);
        self.pools.remove(&link.identity, link.key);
        self.link_deadlines.set(link.key.index(), NEVER);
        self.links.release(link.key);
        self.counters.open_backends.decrement();
    }

    /// Closes the connection that a request uses, and takes the request off its endpoint.
    pub(super) fn drop_link(&mut self, session: &mut Session) {
        let Some(flight) = &mut session.flight else {
            return;
        };
        if std::mem::take(&mut flight.counted)
            && let Some(endpoint) = &flight.endpoint
        {
            endpoint.state.end();
        }
        flight.resolving = false;
        flight.upstream.clear(&mut self.buffers);
        if let Some(link) = flight.link.take() {
            self.close_link(*link);
        }
    }
}

/// The kernel's name for an error, as Go prints it.
pub(super) fn errno_text(errno: Errno) -> &'static str {
    match errno {
        Errno::CONNREFUSED => "connection refused",
        Errno::CONNRESET => "connection reset by peer",
        Errno::PIPE => "broken pipe",
        Errno::TIMEDOUT => "connection timed out",
        Errno::HOSTUNREACH => "no route to host",
        Errno::NETUNREACH => "network is unreachable",
        Errno::ADDRNOTAVAIL => "cannot assign requested address",
        Errno::MFILE => "too many open files",
        Errno::NFILE => "too many open files in system",
        Errno::NOBUFS => "no buffer space available",
        Errno::ACCESS => "permission denied",
        Errno::PERM => "operation not permitted",
        Errno::INVAL => "invalid argument",
        _ => "input/output error",
    }
}
