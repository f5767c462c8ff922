//! Opening a port, for one thread.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};

/// A listener that shares its port with those of the other threads: the kernel spreads
/// connections over them.
pub(super) fn listener(address: SocketAddr, backlog: i32) -> Result<OwnedFd, Errno> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    // Accepted sockets have both from their listener: no call for each of them.
    sockopt::set_tcp_nodelay(&socket, true)?;
    // Finds peers that vanished, when silence alone is no reason to end a connection.
    sockopt::set_socket_keepalive(&socket, true)?;
    net::bind(&socket, &address)?;
    net::listen(&socket, backlog)?;
    Ok(socket)
}
