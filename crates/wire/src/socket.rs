//! Sockets that never block.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Begins to connect to an address over TCP, without delaying small writes. The socket
/// can be written when the connection is made or has failed: then ask [`outcome`].
///
/// # Errors
/// What the kernel says at once: no descriptor left, no port left, no route; over
/// loopback also that nobody listens.
pub fn connect_tcp(address: SocketAddr) -> Result<OwnedFd, Errno> {
    let socket = open(address, SocketType::STREAM)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    match net::connect(&socket, &address) {
        // A signal does not stop the connection from being made.
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket),
        Err(errno) => Err(errno),
    }
}

/// A UDP socket that exchanges datagrams with one address only.
///
/// # Errors
/// No descriptor left, no port left, no route.
pub fn connect_udp(address: SocketAddr) -> Result<OwnedFd, Errno> {
    let socket = open(address, SocketType::DGRAM)?;
    net::connect(&socket, &address)?;
    Ok(socket)
}

/// How an attempt to connect ended.
///
/// # Errors
/// Why it failed.
pub fn outcome(socket: impl AsFd) -> Result<(), Errno> {
    sockopt::socket_error(socket)?
}

/// Lets this process open as many descriptors as the system allows it, and says how
/// many that is.
///
/// # Errors
/// When the kernel refuses, which it does not do to a process that may raise it so far.
pub fn allow_most_descriptors() -> io::Result<u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        };
        setrlimit(Resource::Nofile, raised)?;
    }
    Ok(limit.maximum.unwrap_or(u64::MAX))
}

/// A short constant text for an error of a socket, to count errors by.
pub fn cause(errno: Errno) -> &'static str {
    match errno {
        Errno::CONNREFUSED => "refused",
        Errno::CONNRESET => "reset",
        Errno::PIPE => "closed early",
        Errno::CONNABORTED => "aborted",
        Errno::TIMEDOUT => "timeout",
        Errno::HOSTUNREACH => "host unreachable",
        Errno::NETUNREACH => "network unreachable",
        Errno::NETDOWN => "network down",
        Errno::ADDRNOTAVAIL | Errno::ADDRINUSE => "no ports left",
        Errno::MFILE | Errno::NFILE => "no descriptors left",
        Errno::NOBUFS | Errno::NOMEM => "no memory left",
        Errno::ACCESS | Errno::PERM => "not permitted",
        Errno::MSGSIZE => "message too long",
        _ => "input or output error",
    }
}

fn open(address: SocketAddr, kind: SocketType) -> Result<OwnedFd, Errno> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    net::socket_with(family, kind, flags, None)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};
    use std::time::Duration;

    use super::*;
    use crate::poller::{Interest, Poller};

    fn settled(socket: &OwnedFd) -> Result<(), Errno> {
        let mut poller = Poller::new().unwrap();
        poller.add(socket, 0, Interest::Write).unwrap();
        assert_eq!(poller.wait(Some(Duration::from_secs(5))).unwrap(), 1);
        outcome(socket)
    }

    #[test]
    fn a_connection_is_made_or_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(settled(&connect_tcp(address).unwrap()), Ok(()));
        drop(listener);
        let refused = connect_tcp(address).and_then(|socket| settled(&socket));
        assert_eq!(refused.map_err(cause), Err("refused"));
    }

    #[test]
    fn a_datagram_arrives() {
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        let near = connect_udp(far.local_addr().unwrap()).unwrap();
        assert_eq!(rustix::io::write(&near, b"hello").unwrap(), 5);
        let mut datagram = [0; 9];
        assert_eq!(far.recv(&mut datagram).unwrap(), 5);
    }
}
