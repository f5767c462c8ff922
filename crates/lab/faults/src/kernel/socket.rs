//! Orders to the kernel, and its answers.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{self, AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::KernelError;
use super::message::{KernelReply, parse_replies};

/// Longest wait for an answer, which is given at once.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest piece of an answer: the kernel makes none that is longer.
const LONGEST: usize = 1 << 16;
/// Most pieces of a list that are read.
const MOST: usize = 1 << 16;

/// Sends messages, and reads until `answers` of them are answered; one that is refused is
/// told by its number and what the kernel says.
pub(super) fn order(
    protocol: Option<Protocol>,
    messages: &[u8],
    answers: usize,
    what: impl Fn(u32) -> String,
) -> Result<(), KernelError> {
    let socket = Socket::open(protocol, &|| what(0))?;
    socket.send(messages, &|| what(0))?;
    let mut left = answers;
    while left > 0 {
        let bytes = socket.receive(&|| what(0))?;
        for answer in parse_replies(&bytes) {
            match answer {
                KernelReply::Answer(_, 0) => left = left.saturating_sub(1),
                KernelReply::Answer(number, code) => {
                    return Err(KernelError::Refused {
                        order: what(number),
                        found: io::Error::from_raw_os_error(code),
                    });
                }
                KernelReply::Over | KernelReply::Piece(_) => {}
            }
        }
    }
    Ok(())
}

/// Asks for a list, and gives its pieces.
pub(super) fn list(
    protocol: Option<Protocol>,
    question: &[u8],
    what: &dyn Fn() -> String,
) -> Result<Vec<Vec<u8>>, KernelError> {
    let socket = Socket::open(protocol, what)?;
    socket.send(question, what)?;
    let mut pieces = Vec::new();
    while pieces.len() < MOST {
        let bytes = socket.receive(what)?;
        for answer in parse_replies(&bytes) {
            match answer {
                KernelReply::Over | KernelReply::Answer(_, 0) => return Ok(pieces),
                KernelReply::Answer(_, code) => {
                    return Err(KernelError::Refused {
                        order: what(),
                        found: io::Error::from_raw_os_error(code),
                    });
                }
                KernelReply::Piece(piece) => pieces.push(piece.to_vec()),
            }
        }
    }
    Ok(pieces)
}

struct Socket(OwnedFd);

impl Socket {
    /// A socket in the network of the calling thread.
    fn open(protocol: Option<Protocol>, what: &dyn Fn() -> String) -> Result<Self, KernelError> {
        let open = || -> rustix::io::Result<OwnedFd> {
            let socket = net::socket_with(
                AddressFamily::NETLINK,
                SocketType::RAW,
                SocketFlags::CLOEXEC,
                protocol,
            )?;
            net::bind(&socket, &SocketAddrNetlink::new(0, 0))?;
            let timeout = net::sockopt::Timeout::Recv;
            net::sockopt::set_socket_timeout(&socket, timeout, Some(PATIENCE))?;
            Ok(socket)
        };
        open().map(Self).map_err(|found| refused(what(), found))
    }

    fn send(&self, bytes: &[u8], what: &dyn Fn() -> String) -> Result<(), KernelError> {
        let kernel = SocketAddrNetlink::new(0, 0);
        let sent = net::sendto(&self.0, bytes, SendFlags::empty(), &kernel);
        sent.map(drop).map_err(|found| refused(what(), found))
    }

    fn receive(&self, what: &dyn Fn() -> String) -> Result<Vec<u8>, KernelError> {
        let mut bytes = vec![0_u8; LONGEST];
        loop {
            match net::recv(&self.0, &mut *bytes, RecvFlags::empty()) {
                Ok((length, _)) => {
                    bytes.truncate(length);
                    return Ok(bytes);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => {
                    return Err(KernelError::Silent {
                        order: what(),
                        within_s: PATIENCE.as_secs(),
                    });
                }
                Err(found) => return Err(refused(what(), found)),
            }
        }
    }
}

fn refused(order: String, found: rustix::io::Errno) -> KernelError {
    KernelError::Refused {
        order,
        found: found.into(),
    }
}
