//! Starting processes from one thread that outlives them all.
//!
//! A child asks the kernel to be killed when its parent ends, and the kernel takes
//! "parent" to mean the thread that started it. Threads of the runtime come and
//! go, so a thread of our own starts all children; when the rep ends, however it
//! ends, that thread ends and its children with it.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, Sender, channel};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::{Semaphore, oneshot};

pub(super) struct Spawner {
    orders: Sender<Order>,
    /// Places in the queue: whoever has none waits.
    places: Semaphore,
}

struct Order {
    command: Command,
    reply: oneshot::Sender<io::Result<Child>>,
}

/// A process, the leader of a group of its own.
pub(super) struct Spawned {
    child: Child,
    group: Option<Pid>,
}

impl Spawner {
    /// Starts the thread. Must be called within a runtime.
    pub(super) fn start(places: usize) -> io::Result<Self> {
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
            places: Semaphore::new(places.max(1)),
        })
    }

    /// Starts `program` in `folder` with exactly this environment. What it writes
    /// comes out of the pipe.
    pub(super) async fn spawn(
        &self,
        program: &Path,
        args: &[String],
        folder: &Path,
        env: impl IntoIterator<Item = (String, String)>,
        files_max: Option<u64>,
    ) -> io::Result<(Spawned, pipe::Receiver)> {
        let _place = self.places.acquire().await.map_err(io::Error::other)?;
        let (reader, writer) = io::pipe()?;
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(folder)
            .env_clear()
            .envs(env)
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .process_group(0)
            .kill_on_drop(true);
        // SAFETY: between fork and exec only these two system calls are made; they
        // neither allocate nor take locks.
        unsafe {
            command.pre_exec(move || {
                set_pdeathsig(Signal::SIGKILL)?;
                if let Some(files) = files_max {
                    setrlimit(Resource::RLIMIT_NOFILE, files, files)?;
                }
                Ok(())
            });
        }
        let (reply, answer) = oneshot::channel();
        let gone = || io::Error::other("the thread that starts processes has ended");
        self.orders
            .send(Order { command, reply })
            .map_err(|_| gone())?;
        let child = answer.await.map_err(|_| gone())??;
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        let group = id.map(Pid::from_raw);
        let output = pipe::Receiver::from_owned_fd(reader.into())?;
        Ok((Spawned { child, group }, output))
    }
}

fn work(orders: &Receiver<Order>) {
    while let Ok(Order { mut command, reply }) = orders.recv() {
        // Whoever gave up waiting drops the child, which kills it.
        let _ = reply.send(command.spawn());
    }
}

impl Spawned {
    /// Waits for the end of the process and returns its status; one that was killed
    /// has 128 plus the signal, as shells say. May be dropped and called again.
    pub(super) async fn ended(&mut self) -> io::Result<i32> {
        use std::os::unix::process::ExitStatusExt;
        let status = self.child.wait().await?;
        Ok(status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
    }

    /// Sends `signal` to the process and all that it started.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // An error means that nobody of the group is left.
            let _ = killpg(group, signal);
        }
    }
}

impl Spawned {
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
    }
}
