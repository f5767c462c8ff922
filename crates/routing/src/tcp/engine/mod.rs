//! Sockets and threads: each thread accepts on every port, and keeps its sessions to the
//! end. Threads share nothing but what ports and counters hold.

mod dial;
mod opening;
mod pipe;
mod port;
mod relay;
mod session;
mod tls;
mod token;
mod worker;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::io::Errno;
use rustix::net::sockopt;
use telemetry::Logger;
use wire::poller::{Poller, Waker};
use wire::threads::{Threads, processors};
use wire::tls::TlsOptionsError;

pub use port::Port;

use self::tls::Tls;
use self::worker::{Order, Shared, Worker};
use super::TcpSettings;
use super::counters::Counters;

/// Orders that wait for one thread; who gives more waits until it has taken some.
const ORDERS: usize = 1024;

/// Why an engine does not start.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// There is no descriptor or thread left, or the kernel is too old.
    #[error("start the threads of the TCP router: {0}")]
    Threads(#[from] io::Error),
    /// Certificates or keys of the settings are of no use.
    #[error("prepare TLS: {0}")]
    Tls(#[from] TlsOptionsError),
}

/// A listener that shares its port with those of the other threads: the kernel spreads
/// connections over them.
fn listen(address: SocketAddr, backlog: u32) -> Result<OwnedFd, Errno> {
    let socket = wire::socket::listen_tcp(address, backlog, true)?;
    // Inherited by what is accepted. Finds peers that vanished, when silence alone is no
    // reason to end a connection.
    sockopt::set_socket_keepalive(&socket, true)?;
    Ok(socket)
}

/// Held by each listener of a port, from its opening until it is closed.
type Claim = Arc<()>;

/// The threads of a TCP router.
pub struct Engine {
    listen: IpAddr,
    backlog: u32,
    counters: Arc<Counters>,
    threads: Mutex<Threads>,
    /// By thread.
    orders: Vec<Orders>,
    /// By number of the port; dead: no listener of ours is open there.
    claims: Mutex<HashMap<u16, Weak<()>>>,
}

/// What a thread is asked to do, and what wakes it for that.
struct Orders(SyncSender<Order>, Waker);

impl Engine {
    /// Starts the threads. No port is open yet.
    ///
    /// # Errors
    /// When the process has no descriptor or thread left, or the kernel is too old.
    pub fn start(
        settings: &TcpSettings,
        counters: Arc<Counters>,
        logger: &Logger,
    ) -> Result<Self, EngineError> {
        let count = settings.threads.unwrap_or_else(processors).max(1);
        let tls = Tls::new(settings)?;
        let shared = Shared::new(settings, tls, Arc::clone(&counters), logger.clone());
        let shared = Arc::new(shared);
        let (mut threads, mut all) = (Threads::default(), Vec::with_capacity(count));
        for _ in 0..count {
            let poller = Poller::new()?;
            let waker = poller.waker().clone();
            let (orders, taken) = sync_channel(ORDERS);
            let worker = Worker::new(poller, taken, Arc::clone(&shared));
            all.push(Orders(orders, waker.clone()));
            threads.start("tcp", waker, move || worker.run())?;
        }
        Ok(Self {
            listen: settings.listen,
            backlog: settings.backlog,
            counters,
            threads: Mutex::new(threads),
            orders: all,
            claims: Mutex::default(),
        })
    }

    /// Begins to accept connections on a port.
    ///
    /// # Errors
    /// When it cannot be opened: another process has it, or this one may not. Then no
    /// thread accepts on it.
    pub fn open(&self, port: &Arc<Port>) -> io::Result<()> {
        let address = SocketAddr::new(self.listen, port.number());
        let claim = self.claim(address)?;
        let sockets: Result<Vec<_>, _> = self
            .orders
            .iter()
            .map(|_| listen(address, self.backlog))
            .collect();
        for (thread, socket) in self.orders.iter().zip(sockets?) {
            thread.give(Order::Open(Arc::clone(port), socket, Arc::clone(&claim)));
        }
        Ok(())
    }

    /// The claim to a port that nobody else has. Another router there would share the connections.
    fn claim(&self, address: SocketAddr) -> io::Result<Claim> {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = claims.get(&address.port()).and_then(Weak::upgrade);
        let claim = match ours {
            // Threads close it little by little; until then it is in use by us.
            Some(claim) => claim,
            None => {
                wire::socket::check_free(address)?;
                Claim::default()
            }
        };
        claims.insert(address.port(), Arc::downgrade(&claim));
        Ok(claim)
    }

    /// Ends accepting on a port. Connections that the kernel has accepted already are
    /// served by the routes that the port has then; established ones go on.
    pub fn close(&self, port: u16) {
        self.order_all(|| Order::Close(port));
    }

    /// Ends accepting on all ports, for good.
    pub fn close_all(&self) {
        self.order_all(|| Order::CloseAll);
    }

    /// Connections of clients that are open.
    pub fn active(&self) -> u64 {
        self.counters.active.load(Relaxed)
    }

    /// Ends all connections and the threads, and waits for them.
    pub fn stop(&self) {
        let threads = self.threads.lock();
        threads.unwrap_or_else(PoisonError::into_inner).stop();
    }

    fn order_all(&self, order: impl Fn() -> Order) {
        for thread in &self.orders {
            thread.give(order());
        }
    }
}

impl Orders {
    fn give(&self, order: Order) {
        // Woken first: it makes room while we wait. An error means that it has ended.
        self.1.wake();
        let _ = self.0.send(order);
        self.1.wake();
    }
}
