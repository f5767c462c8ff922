//! Starting processes from one thread that outlives them all.
//!
//! A child asks the kernel to be killed when its parent ends, and the kernel takes
//! "parent" to mean the thread that started it. Threads of the runtime come and
//! go, so a thread of our own starts all children; when the rep ends, however it
//! ends, that thread ends and its children with it.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use processes::{AsyncProcess, Program, StartError};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use crate::pool::Pool;

pub(super) struct Spawner {
    /// Closed, it ends the thread.
    orders: Sender<Order>,
    /// Who has none waits.
    pool: Pool,
}

struct Order {
    program: Program,
    reply: oneshot::Sender<Result<AsyncProcess, StartError>>,
}

impl Spawner {
    /// Starts the thread. Must be called within a runtime.
    pub(super) fn start(workers: usize) -> io::Result<Self> {
        let runtime = tokio::runtime::Handle::current();
        let (orders, received) = channel();
        std::thread::Builder::new()
            .name("spawn".into())
            .spawn(move || {
                let _runtime = runtime.enter();
                work(&received);
            })?;
        Ok(Self {
            orders,
            pool: Pool::new("spawns", workers),
        })
    }

    /// Those who have a process started.
    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Starts `program`. What it writes comes out of the pipe.
    pub(super) async fn spawn(
        &self,
        mut program: Program,
    ) -> Result<(AsyncProcess, pipe::Receiver), StartError> {
        let _worker = self.pool.worker(Instant::now()).await;
        let output = program.output()?;
        let (reply, answer) = oneshot::channel();
        let order = Order { program, reply };
        self.orders.send(order).map_err(|_| ended())?;
        Ok((answer.await.map_err(|_| ended())??, output))
    }
}

fn ended() -> StartError {
    let said = "the thread that starts processes has ended";
    StartError::needs("start a process", io::Error::other(said))
}

/// Works until the rep ends; with this thread ends every process that still runs.
fn work(orders: &Receiver<Order>) {
    while let Ok(Order { program, reply }) = orders.recv() {
        // Whoever gave up waiting drops the process, which kills it.
        let _ = reply.send(program.start());
    }
}
