//! The server, a process of its own, and what it and its database have used.

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use compliance::server;

use super::{Failure, SERVE};

pub(super) struct Server {
    child: Child,
    pub(super) url: String,
    /// The first process of PostgreSQL, where that is the store.
    database: Option<u32>,
}

/// What the server and its database had used at some moment.
pub(super) struct Mark {
    at: Instant,
    cpu: f64,
    database: f64,
}

/// What was used since a mark.
#[derive(Debug, Default)]
pub(super) struct Used {
    pub(super) wall: f64,
    /// Seconds of processor time of the server, and of PostgreSQL.
    pub(super) cpu: f64,
    pub(super) database: f64,
}

impl Server {
    pub(super) async fn start(
        folder: &Path,
        store: Option<&str>,
        database: Option<u32>,
    ) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(SERVE).arg(folder).args(store);
        let address = folder.join(server::files::ADDRESS);
        Self::told_in(&address, &mut command, database).await
    }

    /// A process that writes into this file where it listens.
    pub(super) async fn told_in(
        address: &Path,
        command: &mut Command,
        database: Option<u32>,
    ) -> Result<Self, Failure> {
        let _ = std::fs::remove_file(address);
        let mut server = Self {
            child: command.spawn()?,
            url: String::new(),
            database,
        };
        while server.url.is_empty() {
            if let Some(status) = server.child.try_wait()? {
                return Err(format!("the server ended with {status}").into());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
            server.url = std::fs::read_to_string(address).unwrap_or_default();
        }
        Ok(server)
    }

    pub(super) fn kill(&mut self) -> Result<(), Failure> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Seconds of processor time of the server, user and system, in hundredths.
    pub(super) fn cpu(&self) -> Result<f64, Failure> {
        Ok(Process::read(self.pid())?.cpu)
    }

    /// That of PostgreSQL's processes: the first one and those that it started, also those that it has waited for.
    fn database_cpu(&self) -> Result<f64, Failure> {
        let Some(first) = self.database else {
            return Ok(0.0);
        };
        let first_used = Process::read(first)?;
        let mut sum = first_used.cpu + first_used.of_children;
        for entry in std::fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // One that ends meanwhile is waited for, and counted next time.
            if let Ok(process) = Process::read(pid)
                && process.parent == first
            {
                sum += process.cpu;
            }
        }
        Ok(sum)
    }

    pub(super) fn mark(&self) -> Result<Mark, Failure> {
        Ok(Mark {
            at: Instant::now(),
            cpu: self.cpu()?,
            database: self.database_cpu()?,
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.kill();
    }
}

impl Mark {
    pub(super) fn used(&self, server: &Server) -> Result<Used, Failure> {
        Ok(Used {
            wall: self.at.elapsed().as_secs_f64(),
            cpu: server.cpu()? - self.cpu,
            database: server.database_cpu()? - self.database,
        })
    }
}

impl std::ops::AddAssign for Used {
    fn add_assign(&mut self, more: Self) {
        self.wall += more.wall;
        self.cpu += more.cpu;
        self.database += more.database;
    }
}

/// What the kernel counts of a process.
struct Process {
    parent: u32,
    cpu: f64,
    /// That of children that it has waited for.
    of_children: f64,
}

impl Process {
    fn read(pid: u32) -> Result<Self, Failure> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // Before it stands the name, which may hold anything.
        let after = stat.rsplit(')').next().unwrap_or_default();
        let fields: Vec<&str> = after.split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).map_or(Ok(0.0), |text| text.parse::<f64>());
        Ok(Self {
            parent: fields.get(1).unwrap_or(&"0").parse()?,
            cpu: (ticks(11)? + ticks(12)?) / 100.0,
            of_children: (ticks(13)? + ticks(14)?) / 100.0,
        })
    }
}
