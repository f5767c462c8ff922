//! Sockets and threads: each thread accepts on every port, and keeps its sessions to the
//! end. Threads share nothing but what ports and counters hold.

mod dial;
mod listen;
mod pipe;
mod port;
mod relay;
mod session;
mod slots;
mod token;
mod worker;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use telemetry::Logger;
use wire::poller::{Poller, Waker};

pub use port::Port;

use self::token::Token;
use self::worker::{Order, Shared, Worker};
use super::TcpSettings;
use super::counters::Counters;

/// Orders that wait for one thread; who gives more waits until it has taken some.
const ORDERS: usize = 1024;

/// The threads of a TCP router.
pub struct Engine {
    listen: IpAddr,
    backlog: i32,
    counters: Arc<Counters>,
    threads: Vec<Thread>,
}

struct Thread {
    orders: SyncSender<Order>,
    waker: Waker,
    handle: Option<JoinHandle<()>>,
}

impl Engine {
    /// Starts the threads. No port is open yet.
    ///
    /// # Errors
    /// When the process has no descriptor or thread left, or the kernel is too old.
    pub fn start(
        settings: &TcpSettings,
        counters: Arc<Counters>,
        logger: &Logger,
    ) -> io::Result<Self> {
        let processors = || std::thread::available_parallelism().map_or(1, |count| count.get());
        let count = settings.threads.unwrap_or_else(processors).max(1);
        let shared = Arc::new(Shared::new(settings, Arc::clone(&counters), logger.clone()));
        let mut engine = Self {
            listen: settings.listen,
            backlog: settings.backlog,
            counters,
            threads: Vec::with_capacity(count),
        };
        for number in 0..count {
            let poller = Poller::new()?;
            let waker = Waker::new(&poller, Token::Waker.pack())?;
            let (orders, taken) = sync_channel(ORDERS);
            let worker = Worker::new(poller, waker.clone(), taken, Arc::clone(&shared));
            let handle = std::thread::Builder::new()
                .name(format!("tcp-{number}"))
                .spawn(move || worker.run())?;
            engine.threads.push(Thread {
                orders,
                waker,
                handle: Some(handle),
            });
        }
        Ok(engine)
    }

    /// Begins to accept connections on a port.
    ///
    /// # Errors
    /// When it cannot be opened: another process has it, or this one may not. Then no
    /// thread accepts on it.
    pub fn open(&self, port: &Arc<Port>) -> io::Result<()> {
        let address = SocketAddr::new(self.listen, port.number());
        let sockets: Result<Vec<_>, _> = self
            .threads
            .iter()
            .map(|_| listen::listener(address, self.backlog))
            .collect();
        for (thread, socket) in self.threads.iter().zip(sockets?) {
            thread.order(Order::Open(Arc::clone(port), socket));
        }
        Ok(())
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

    /// Ends all connections and the threads.
    pub fn stop(mut self) {
        self.end();
    }

    fn order_all(&self, order: impl Fn() -> Order) {
        for thread in &self.threads {
            thread.order(order());
        }
    }

    fn end(&mut self) {
        self.order_all(|| Order::Stop);
        for thread in &mut self.threads {
            if let Some(handle) = thread.handle.take() {
                // A thread that panicked has said so already.
                let _ = handle.join();
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.end();
    }
}

impl Thread {
    fn order(&self, order: Order) {
        // Woken first: it makes room while we wait. An error means that it has ended.
        self.waker.wake();
        let _ = self.orders.send(order);
        self.waker.wake();
    }
}
