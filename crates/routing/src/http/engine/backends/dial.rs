//! A new connection to a backend: its address, its socket, its TLS.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use wire::slab::Key;
use wire::socket;
use wire::stream::Stream;

use super::{BackendConnection, Backends};
use crate::http::engine::context::Context;
use crate::http::engine::resolver::Resolved;
use crate::http::engine::tls::PeerKind;
use crate::http::pipeline::retry::{Failure, NO_SUCH_HOST};
use crate::table::Endpoint;

impl Backends {
    /// Begins a connection to an endpoint for a client's request. `None`: the endpoint's
    /// name is being resolved; [`Backends::resolved`] tells when to try again.
    ///
    /// # Errors
    /// Why there is none, as the request's attempt fails.
    pub(crate) fn dial(
        &mut self,
        client: Key,
        endpoint: &Endpoint,
        to: PeerKind,
        context: &mut Context,
    ) -> Result<Option<Box<BackendConnection>>, Failure<'static>> {
        let failed = |errno| Failure::Dial(errno_text(errno));
        let stream = if to == PeerKind::Itself {
            Stream::Plain(self.connect_to_itself(context).map_err(failed)?)
        } else {
            let identity = endpoint.identity();
            let resolved = match identity.parse::<SocketAddr>() {
                Ok(address) => Resolved::Address(address),
                Err(_) => {
                    let resolver = &context.shared.resolver;
                    resolver.resolve(identity, context.clock.now(), context.poller.waker())
                }
            };
            let address = match resolved {
                Resolved::Address(address) => address,
                Resolved::Pending => {
                    self.resolving.push(client);
                    return Ok(None);
                }
                Resolved::Unknown => return Err(Failure::Dial(NO_SUCH_HOST)),
            };
            // Not before: a name may stand for any address.
            if to == PeerKind::Service && !context.shared.pipeline.may_call(address.ip()) {
                return Err(Failure::Blocked(address));
            }
            let socket = self.with_room(|| socket::connect_tcp(address), context);
            let socket = socket.map_err(failed)?;
            match endpoint.tls {
                // The handshake begins when the connection is there.
                true => match context.shared.tls.to_backend(socket, endpoint, to) {
                    Ok(stream) => Stream::Tls(Box::new(stream)),
                    Err(_) => return Err(Failure::TlsOther("tls: the name cannot be proven")),
                },
                false => Stream::Plain(socket),
            }
        };
        let service = matches!(to, PeerKind::Service | PeerKind::Itself);
        let connection = self.add(client, endpoint, service, stream, context);
        let connection = connection.map_err(failed)?;
        context.counters.dialed.increment();
        Ok(Some(connection))
    }

    /// A connection to this router, for a request to a route service that is itself a route
    /// of this router.
    ///
    /// ```text
    /// client ──▶ first pass ──▶ pair of sockets ──▶ as another client: second pass ──▶ service
    /// ```
    ///
    /// gorouter listens for itself on a port of loopback, with certificates that live in its
    /// memory only. A pair of sockets needs neither: nobody else can reach it. What the
    /// service gets and what the log says is the same, but for the second client's port,
    /// which is 0.
    fn connect_to_itself(&mut self, context: &mut Context) -> Result<OwnedFd, Errno> {
        let (near, far) = self.with_room(socket::pair, context)?;
        self.to_itself.push(far);
        Ok(near)
    }

    /// Opens something. Without a descriptor left, idle connections give way.
    fn with_room<T>(
        &mut self,
        open: impl Fn() -> Result<T, Errno>,
        context: &mut Context,
    ) -> Result<T, Errno> {
        loop {
            match open() {
                Err(Errno::MFILE | Errno::NFILE) if self.make_room(context) => {}
                result => return result,
            }
        }
    }
}

/// The kernel's name for an error, as Go prints it.
pub(crate) fn errno_text(errno: Errno) -> &'static str {
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
