//! Sockets that never block.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A socket that connects.
#[derive(Debug)]
pub enum Dialed {
    /// It is connected already, as it happens over loopback.
    Connected(OwnedFd),
    /// It can be written when it is connected or has failed: then ask [`outcome`].
    Underway(OwnedFd),
}

/// Begins to connect to an address over TCP, without delaying small writes.
///
/// # Errors
/// What the kernel says at once: no descriptor left, no port left, no route; over
/// loopback also that nobody listens.
pub fn dial_tcp(address: SocketAddr) -> Result<Dialed, Errno> {
    let socket = open(address, SocketType::STREAM)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    match net::connect(&socket, &address) {
        Ok(()) => Ok(Dialed::Connected(socket)),
        // A signal does not stop the connection from being made.
        Err(Errno::INPROGRESS | Errno::INTR) => Ok(Dialed::Underway(socket)),
        Err(errno) => Err(errno),
    }
}

/// As [`dial_tcp`], for those who wait in either case.
///
/// # Errors
/// As there.
pub fn connect_tcp(address: SocketAddr) -> Result<OwnedFd, Errno> {
    let (Dialed::Connected(socket) | Dialed::Underway(socket)) = dial_tcp(address)?;
    Ok(socket)
}

/// Listens for TCP connections. Those that it [`accept`]s do not delay small writes. At
/// most `backlog` of them wait (or what the kernel allows, `net.core.somaxconn`).
/// `reuse_port`: several listeners share the address, and each connection comes to one of
/// them, chosen by a hash (`SO_REUSEPORT`).
///
/// # Errors
/// The address is in use, not one of this machine, or not permitted; no descriptor left.
pub fn listen_tcp(address: SocketAddr, backlog: u32, reuse_port: bool) -> Result<OwnedFd, Errno> {
    let socket = open(address, SocketType::STREAM)?;
    // Connections of an earlier process that are not forgotten yet do not hinder.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if reuse_port {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    // Inherited by what is accepted, so that it costs no call there.
    sockopt::set_tcp_nodelay(&socket, true)?;
    net::bind(&socket, &address)?;
    net::listen(&socket, i32::try_from(backlog).unwrap_or(i32::MAX))?;
    Ok(socket)
}

/// Tells whether an address is free to listen on, before listeners with `reuse_port` are opened: they
/// would share it with those of any other process of the same user, and each process would serve a
/// part of the connections. Takes no connection itself.
///
/// # Errors
/// As [`listen_tcp`].
pub fn check_free(address: SocketAddr) -> Result<(), Errno> {
    let socket = open(address, SocketType::STREAM)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    net::bind(&socket, &address)
}

/// The next connection of a listener, and who made it; `None`: none waits.
///
/// # Errors
/// No descriptor or memory left: the connection waits on, and the caller should pause.
pub fn accept(listener: impl AsFd) -> Result<Option<(OwnedFd, SocketAddr)>, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    next(|| {
        let (socket, peer) = net::acceptfrom_with(&listener, flags)?;
        // Who has gone already has no address.
        let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
        Ok((socket, peer.ok_or(Errno::CONNABORTED)?))
    })
}

/// As [`accept`], for those who do not ask who it is.
///
/// # Errors
/// As there.
pub fn accept_anybody(listener: impl AsFd) -> Result<Option<OwnedFd>, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    next(|| net::accept_with(&listener, flags))
}

fn next<T>(accept: impl Fn() -> Result<T, Errno>) -> Result<Option<T>, Errno> {
    loop {
        match accept() {
            Ok(connection) => return Ok(Some(connection)),
            Err(Errno::AGAIN) => return Ok(None),
            // Of the connection, not of the listener (accept(2)).
            Err(
                Errno::INTR
                | Errno::CONNABORTED
                | Errno::PROTO
                | Errno::PERM
                | Errno::NETDOWN
                | Errno::NETUNREACH
                | Errno::NOPROTOOPT
                | Errno::NONET
                | Errno::HOSTDOWN
                | Errno::HOSTUNREACH
                | Errno::OPNOTSUPP,
            ) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Two sockets that are connected to each other, within this process.
///
/// # Errors
/// No descriptor or memory left.
pub fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// The own address of a socket.
///
/// # Errors
/// When it is not an internet socket.
pub fn local_address(socket: impl AsFd) -> Result<SocketAddr, Errno> {
    SocketAddr::try_from(net::getsockname(socket)?)
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
    fn connections_are_accepted() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let first = listen_tcp(any, 16, true).unwrap();
        let address = local_address(&first).unwrap();
        assert!(accept(&first).unwrap().is_none());
        let near = connect_tcp(address).unwrap();
        assert_eq!(settled(&near), Ok(()));
        let (far, peer) = accept(&first).unwrap().unwrap();
        assert_eq!(peer, local_address(&near).unwrap());
        assert_eq!(local_address(&far).unwrap(), address);
        assert_eq!(sockopt::tcp_nodelay(&far), Ok(true));
        let mut byte = [0];
        let nothing = rustix::io::read(&far, &mut byte);
        assert_eq!(nothing, Err(Errno::AGAIN));
        // Another listener may share the address if both say so.
        assert!(listen_tcp(address, 16, true).is_ok());
        assert_eq!(check_free(address), Err(Errno::ADDRINUSE));
        assert_eq!(check_free(any), Ok(()));
        assert_eq!(listen_tcp(address, 16, false).err(), Some(Errno::ADDRINUSE));
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
