//! Starting processes from one thread that outlives them all.
//!
//! A child asks the kernel to be killed when its parent ends, and the kernel takes
//! "parent" to mean the thread that started it. Threads of the runtime come and
//! go, so a thread of our own starts all children; when the rep ends, however it
//! ends, that thread ends and its children with it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::sync::{Semaphore, oneshot};

use super::vfork::{Program, Stack};

pub(super) struct Spawner {
    orders: Sender<Order>,
    /// Places in the queue: whoever has none waits.
    places: Semaphore,
}

enum Order {
    Spawn {
        program: Program,
        reply: oneshot::Sender<io::Result<Spawned>>,
    },
    /// Wait for a process that was killed, so that it does not stay a zombie.
    Reap(OwnedFd),
    /// End the thread.
    End,
}

/// A process, the leader of a group of its own.
pub(super) struct Spawned {
    /// `None` once the group has been killed for good.
    group: Option<Pid>,
    /// `None` once its status has been read.
    process: Option<AsyncFd<OwnedFd>>,
    orders: Sender<Order>,
}

impl Spawner {
    /// Starts the thread. Must be called within a runtime.
    pub(super) fn start(places: usize) -> io::Result<Self> {
        let runtime = tokio::runtime::Handle::current();
        let (orders, received) = channel();
        let again = orders.clone();
        std::thread::Builder::new()
            .name("spawn".into())
            .spawn(move || {
                let _runtime = runtime.enter();
                work(&received, &again);
            })?;
        Ok(Self {
            orders,
            places: Semaphore::new(places.max(1)),
        })
    }

    /// Starts `program`. What it writes comes out of the pipe.
    pub(super) async fn spawn(
        &self,
        mut program: Program,
    ) -> io::Result<(Spawned, pipe::Receiver)> {
        let _place = self.places.acquire().await.map_err(io::Error::other)?;
        let (reader, writer) = io::pipe()?;
        program.write_to(writer.into());
        let (reply, answer) = oneshot::channel();
        let gone = || io::Error::other("the thread that starts processes has ended");
        self.orders
            .send(Order::Spawn { program, reply })
            .map_err(|_| gone())?;
        let spawned = answer.await.map_err(|_| gone())??;
        Ok((spawned, pipe::Receiver::from_owned_fd(reader.into())?))
    }
}

impl Drop for Spawner {
    /// Ends the thread, and with it every process that still runs.
    fn drop(&mut self) {
        // An error means that it has ended.
        let _ = self.orders.send(Order::End);
    }
}

fn work(orders: &Receiver<Order>, again: &Sender<Order>) {
    let mut stack = Stack::new();
    while let Ok(order) = orders.recv() {
        match order {
            Order::Spawn { program, reply } => {
                let spawned = program.spawn(&mut stack).and_then(|(group, process)| {
                    Ok(Spawned {
                        group: Some(group),
                        process: Some(register(process)?),
                        orders: again.clone(),
                    })
                });
                // Whoever gave up waiting drops the process, which kills it.
                let _ = reply.send(spawned);
            }
            Order::Reap(process) => {
                // It has been killed; an error means that it was waited for already.
                let _ = waitid(Id::PIDFd(process.as_fd()), WaitPidFlag::WEXITED);
            }
            Order::End => break,
        }
    }
}

fn register(process: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` stays open and the same for as long as it lives.
    let registered = unsafe { AsyncFd::register_with_interest(process, Interest::READABLE) };
    registered.map_err(io::Error::from)
}

impl Spawned {
    /// Waits for the end of the process and returns its status; one that was killed
    /// has 128 plus the signal, as shells say. May be dropped and called again, but
    /// not once it has returned.
    pub(super) async fn ended(&mut self) -> io::Result<i32> {
        let Some(process) = &self.process else {
            return Err(io::Error::other("its status has been read"));
        };
        let status = loop {
            let mut ready = process.readable().await?;
            let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG;
            match waitid(Id::PIDFd(process.get_ref().as_fd()), flags) {
                Ok(WaitStatus::Exited(_, status)) => break status,
                Ok(WaitStatus::Signaled(_, signal, _)) => break 128 + signal as i32,
                Ok(_) => ready.clear_ready(),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        };
        self.process = None;
        Ok(status)
    }

    /// Sends `signal` to the process and all that it started.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // An error means that nobody of the group is left.
            let _ = killpg(group, signal);
        }
    }

    /// Kills all that is left of the process and what it started.
    pub(super) fn sweep(&mut self) {
        self.signal(Signal::SIGKILL);
        // Once the group is empty its number may go to somebody else.
        self.group = None;
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        self.sweep();
        if let Some(process) = self.process.take() {
            // An error means that the rep itself ends, and init waits for it.
            let _ = self.orders.send(Order::Reap(process.into_inner()));
        }
    }
}
