//! Opening a port, for one thread.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::sockopt;
use wire::socket::listen_tcp;

/// A listener that shares its port with those of the other threads: the kernel spreads
/// connections over them.
pub(super) fn listener(address: SocketAddr, backlog: u32) -> Result<OwnedFd, Errno> {
    let socket = listen_tcp(address, backlog, true)?;
    // Accepted sockets have both from their listener: no call for each of them.
    sockopt::set_tcp_nodelay(&socket, true)?;
    // Finds peers that vanished, when silence alone is no reason to end a connection.
    sockopt::set_socket_keepalive(&socket, true)?;
    Ok(socket)
}
