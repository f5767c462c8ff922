//! Ports that a test names before somebody listens there.

use std::net::{Ipv4Addr, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicU32, Ordering};

/// A port that nobody has. Below those that systems hand out themselves, so that no other
/// socket is given it before somebody listens there, and leased for as long as this process lives,
/// as laboratories lease theirs, so that none of them takes it.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let own = std::process::id().wrapping_mul(61);
        let number = own.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = 10_000 + (number % 20_000) as u16;
        let lease = SocketAddr::from_abstract_name(format!("headroom-port-{port}"))
            .and_then(|name| UnixDatagram::bind_addr(&name));
        let Ok(lease) = lease else { continue };
        std::mem::forget(lease);
        // Asked by a connection: a process that another test is just starting would hold a
        // listener, in the way of the one that the port is for.
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            return port;
        }
    }
}
