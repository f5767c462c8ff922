//! Envelopes of the first protocol, each in a datagram, to the forwarder that gorouter's
//! `logging.metron_address` names.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::sync::Arc;
use std::time::Instant;

use super::{PATIENCE, PAUSE, Queue, apart};
use crate::http::counters::ThreadCounters;

pub(super) struct Datagrams {
    address: String,
    socket: Option<UdpSocket>,
    /// Until then envelopes are dropped: there was no socket, or no such host.
    pause_ends: Option<Instant>,
    counters: Arc<ThreadCounters>,
}

impl Datagrams {
    pub(super) fn new(address: String, counters: Arc<ThreadCounters>) -> Self {
        Self {
            address,
            socket: None,
            pause_ends: None,
            counters,
        }
    }

    pub(super) fn run(mut self, mut queue: Queue) {
        while let Some(bytes) = queue.waiting.blocking_recv() {
            for envelope in apart(&bytes) {
                match self.send(envelope) {
                    true => self.counters.envelopes.increment(),
                    false => self.counters.envelope_drops.increment(),
                }
            }
            queue.emptied(bytes);
        }
    }

    /// Whether the kernel took it. That nobody listens is told with the next one.
    fn send(&mut self, envelope: &[u8]) -> bool {
        if self.socket.is_none() {
            if self.pause_ends.is_some_and(|ends| Instant::now() < ends) {
                return false;
            }
            self.socket = open(&self.address).ok();
            if self.socket.is_none() {
                self.pause_ends = Some(Instant::now() + PAUSE);
            }
        }
        let sent = self.socket.as_ref().map(|socket| socket.send(envelope));
        sent.is_some_and(|sent| sent.is_ok())
    }
}

/// A socket to an address, whose host is preferably one of IPv4, as in gorouter.
fn open(address: &str) -> io::Result<UdpSocket> {
    let mut found: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
    found.sort_by_key(SocketAddr::is_ipv6);
    let to = found.first().ok_or(io::ErrorKind::NotFound)?;
    let socket = match to {
        SocketAddr::V4(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?,
        SocketAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?,
    };
    socket.connect(to)?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok(socket)
}
