//! A process that outlives this one for a moment, and removes its control groups and network
//! namespaces: nobody else can when this one is killed.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use graph::placement;

/// Longest wait for the processes of a group to end.
const WITHIN: Duration = Duration::from_secs(10);

/// Time between two tries.
const EVERY: Duration = Duration::from_millis(50);

/// The sweeper of this process. Dropping it waits for its end.
pub(super) struct Sweeper(Child);

impl Sweeper {
    /// Starts it. It has a process group of its own: what ends ours does not end it.
    pub(super) fn start(program: &Path) -> Result<Self> {
        let child = Command::new(program)
            .args(["graph", "sweep", "--of"])
            .arg(std::process::id().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("start the process that removes groups and namespaces")?;
        Ok(Self(child))
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // One that was killed has nothing left to do: all is removed in order.
        let _ = self.0.wait();
    }
}

/// Waits until the process that started this one has ended, and removes what it made.
pub(in crate::graph) fn sweep(owner: u32) {
    // Its side of the pipe is closed by its end, whatever that is; nothing is written.
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    let until = Instant::now() + WITHIN;
    while !placement::remove_all_of(owner) && Instant::now() < until {
        std::thread::sleep(EVERY);
    }
}
