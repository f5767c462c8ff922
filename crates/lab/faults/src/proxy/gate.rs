//! A listener that the kernel stops completing handshakes for.
//!
//! A partition drops SYNs, so that connecting hangs and is tried again after one, three, seven
//! seconds. A program cannot drop packets, but Linux drops SYNs to a listener whose accept queue
//! is full (`tcp_conn_request`, `sk_acceptq_is_full`), and the length of that queue can be
//! changed at any time by calling `listen` again. With a length of 0 one connection fills it,
//! and that one we make ourselves.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rustix::net::listen;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: i32 = 1024;
/// Nobody is in the queue when it yields nothing for so long.
const QUIET: Duration = Duration::from_millis(2);
/// How long our own connection may take. On loopback it is there at once, unless a client's has
/// filled the queue before it.
const FILLED_WITHIN: Duration = Duration::from_millis(50);

/// A listener that can be shut to handshakes.
#[derive(Debug)]
pub(super) struct Gate {
    listener: TcpListener,
    address: SocketAddr,
    /// What fills the queue while it is shut; `None`: it is open.
    shut: Option<Option<TcpStream>>,
    /// Our own connections that are still in the queue, by their addresses.
    fillers: Vec<SocketAddr>,
}

impl Gate {
    pub(super) fn new(listener: TcpListener, address: SocketAddr) -> Self {
        Self {
            listener,
            address,
            shut: None,
            fillers: Vec::new(),
        }
    }

    pub(super) fn is_shut(&self) -> bool {
        self.shut.is_some()
    }

    /// No handshake is completed from now on. Returns the connections whose handshake was.
    pub(super) async fn shut(&mut self) -> io::Result<Vec<(TcpStream, SocketAddr)>> {
        let mut before = Vec::new();
        if self.is_shut() {
            return Ok(before);
        }
        listen(&self.listener, 0)?;
        // At most a queue full of them, and no new ones beside.
        for _ in 0..=BACKLOG {
            let Ok(Ok(accepted)) = timeout(QUIET, self.accept()).await else {
                break;
            };
            before.push(accepted);
        }
        // One that does not come found the queue filled by a client.
        let filler = timeout(FILLED_WITHIN, TcpStream::connect(self.address)).await;
        let filler = filler.ok().and_then(Result::ok);
        self.fillers
            .extend(filler.as_ref().and_then(|filler| filler.local_addr().ok()));
        self.shut = Some(filler);
        Ok(before)
    }

    /// Handshakes are completed again; SYNs that clients repeat get through.
    pub(super) fn open(&mut self) -> io::Result<()> {
        if self.shut.take().is_some() {
            listen(&self.listener, BACKLOG)?;
        }
        Ok(())
    }

    /// The next connection of a client.
    pub(super) async fn accept(&mut self) -> io::Result<(TcpStream, SocketAddr)> {
        loop {
            let (stream, client) = self.listener.accept().await?;
            match self.fillers.iter().position(|filler| *filler == client) {
                Some(place) => self.fillers.swap_remove(place),
                None => return Ok((stream, client)),
            };
        }
    }
}
