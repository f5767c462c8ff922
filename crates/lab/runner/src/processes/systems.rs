//! The systems of a plan: all started, all ready, all stopped.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lab_experiment::plan::{Program, System};
use lab_store::{EventKind, RunFile, RunFolder};
use measure::Marks;
use processes::{Group, GroupError, Groups, Reaper, ReaperError, Signal};
use tokio::task::JoinSet;

use super::addresses::Addresses;
use super::children::{Child, Children, LaunchError};
use super::launch::{Launch, Output, itself};
use super::ports::Ports;
use super::ready::{describe, until_ready};
use super::tail::last_lines;
use crate::progress::Status;
use crate::record::Recorder;

/// Why the systems could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A memory limit cannot be kept.
    #[error("limit the memory of {system} to {bytes} bytes: {cause}")]
    Limit {
        /// Name of the copy.
        system: String,
        /// As its `memory` says.
        bytes: u64,
        /// What went wrong.
        cause: GroupError,
    },
    /// A process could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The reaper was lost.
    #[error(transparent)]
    Reaper(#[from] ReaperError),
    /// A system ended before it was ready.
    #[error("{name} {ended} before it was ready; its command was `{command_line}`{output}")]
    EndedEarly {
        /// Name of the copy.
        name: String,
        /// How it ended.
        ended: String,
        /// Its command line.
        command_line: String,
        /// The last lines of its output.
        output: String,
    },
    /// A system was not ready in time.
    #[error(
        "{name} was not ready within {limit:?}: {missing}; its command was `{command_line}`{output}"
    )]
    NotReady {
        /// Name of the copy.
        name: String,
        /// How long it was waited for.
        limit: Duration,
        /// What did not happen.
        missing: String,
        /// Its command line.
        command_line: String,
        /// The last lines of its output.
        output: String,
    },
    /// Systems wait for each other.
    #[error("{} wait for each other; take one of them out of `after`", names.join(" and "))]
    Circle {
        /// Their names.
        names: Vec<String>,
    },
}

/// A copy of a system that was started.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    /// The system, with `.index` when it has several copies.
    pub(crate) name: String,
    pub(crate) child: Arc<Child>,
    /// How the processes that it starts are known to be its own.
    pub(crate) marks: Marks,
}

/// Names of the copies of a system: its own, or `name.0`, `name.1` and so on.
pub(crate) fn copy_names(system: &System) -> Vec<String> {
    match system.count {
        1 => vec![system.name.clone()],
        count => (0..count)
            .map(|index| format!("{}.{index}", system.name))
            .collect(),
    }
}

/// The systems that were started, in order, and what has to be removed with them.
#[derive(Debug, Default)]
pub(crate) struct Systems {
    /// One entry for each system, in order of their start.
    started: Vec<Vec<Running>>,
    /// Control groups of copies, by their names.
    groups: Vec<(String, Group)>,
}

/// The environment variable that says of which copy of which run a process is.
const COPY: &str = "HEADROOM_SYSTEM";

/// The value of [`COPY`].
fn mark(run: &str, name: &str) -> String {
    format!("{run}/{name}")
}

/// What starting needs to know.
pub(crate) struct Starting<'a> {
    pub(crate) children: &'a Children,
    pub(crate) reaper: &'a Reaper,
    pub(crate) addresses: &'a Addresses,
    pub(crate) folder: &'a RunFolder,
    pub(crate) recorder: &'a Recorder,
    pub(crate) status: &'a Status,
    /// Path of the binary that makes the run.
    pub(crate) own_binary: OsString,
    /// Name of the run, unlike that of any other.
    pub(crate) tag: String,
}

impl Systems {
    /// Makes the control groups that the plan needs, before anything starts.
    pub(crate) fn prepare(
        &mut self,
        systems: &[System],
        starting: &Starting<'_>,
    ) -> Result<(), StartError> {
        if systems.iter().all(|system| system.memory_bytes.is_none()) {
            return Ok(());
        }
        let owner = std::process::id();
        starting.reaper.limits(owner)?;
        let groups = Groups::open(Path::new("/"), owner);
        for system in systems {
            let Some(bytes) = system.memory_bytes else {
                continue;
            };
            for copy in copy_names(system) {
                let name = format!("{}-{copy}", starting.tag);
                let group = groups.make(&name, None, Some(bytes));
                let group = group.map_err(|cause| StartError::Limit {
                    system: copy.clone(),
                    bytes,
                    cause,
                })?;
                self.groups.push((copy, group));
            }
        }
        Ok(())
    }

    /// Starts every system once those that it comes after are ready, and returns
    /// when all are. `started` hears of each copy at once. On an error the ones
    /// that run are left to [`Systems::stop`].
    pub(crate) async fn start(
        &mut self,
        systems: &[System],
        ports: &mut Ports,
        starting: &Starting<'_>,
        mut started: impl FnMut(&System, &Running),
    ) -> Result<(), StartError> {
        let mut waiting: Vec<&System> = systems.iter().collect();
        let mut ready: Vec<&str> = Vec::new();
        while !waiting.is_empty() {
            let (now, later): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|system| {
                system
                    .after
                    .iter()
                    .all(|name| ready.contains(&name.as_str()))
            });
            if now.is_empty() {
                let names = later.iter().map(|system| system.name.clone()).collect();
                return Err(StartError::Circle { names });
            }
            let mut waits = JoinSet::new();
            let mut unready = BTreeSet::new();
            for system in &now {
                let copies = self.start_copies(system, ports, starting)?;
                for (index, running) in copies.iter().enumerate() {
                    started(system, running);
                    let port = starting.addresses.port(&system.name, index as u32);
                    waits.spawn(net::boxed(wait_for(
                        System::clone(system),
                        running.clone(),
                        port,
                    )));
                    unready.insert(running.name.clone());
                }
            }
            loop {
                let names: Vec<&str> = unready.iter().map(String::as_str).collect();
                let doing = format!("wait until {} can be used", names.join(", "));
                starting.status.doing(doing);
                let Some(waited) = waits.join_next().await else {
                    break;
                };
                // The waits do not panic and are not cancelled.
                let Ok(waited) = waited else { continue };
                let name = waited?;
                starting.recorder.event(EventKind::SystemReady, &name, "");
                unready.remove(&name);
            }
            ready.extend(now.iter().map(|system| system.name.as_str()));
            waiting = later;
        }
        Ok(())
    }

    fn start_copies(
        &mut self,
        system: &System,
        ports: &mut Ports,
        starting: &Starting<'_>,
    ) -> Result<&[Running], StartError> {
        // Pushed first: a copy that runs is stopped even if the next fails.
        let slot = self.started.len();
        self.started.push(Vec::new());
        for (index, name) in (0..).zip(copy_names(system)) {
            for port in starting.addresses.ports(&system.name, index) {
                ports.release(*port);
            }
            let launch = self.launch(system, index, &name, starting);
            let marks = Marks {
                variable: Some(format!("{COPY}={}", mark(&starting.tag, &name))),
                cgroup: launch.cgroup.clone(),
            };
            let child = starting.children.start(launch)?;
            let text = format!("process {}: {}", child.pid, child.command_line);
            starting
                .recorder
                .event(EventKind::SystemStarted, &name, &text);
            self.started[slot].push(Running {
                name,
                child: Arc::new(child),
                marks,
            });
        }
        Ok(&self.started[slot])
    }

    fn launch(&self, system: &System, index: u32, name: &str, starting: &Starting<'_>) -> Launch {
        let render = |template| starting.addresses.render_for(template, &system.name, index);
        let mut groups = self.groups.iter();
        let group = groups.find(|(copy, _)| copy == name);
        Launch {
            name: name.to_owned(),
            program: match &system.program {
                Program::OwnBinary => starting.own_binary.clone(),
                Program::Path(path) => render(path).into(),
            },
            args: system.args.iter().map(|arg| render(arg).into()).collect(),
            env: itself(&starting.own_binary)
                .into_iter()
                .chain(
                    system
                        .env
                        .iter()
                        .map(|(name, value)| (name.clone(), render(value))),
                )
                .chain([(COPY.to_owned(), mark(&starting.tag, name))])
                .collect(),
            cpus: system.cpus.clone(),
            cgroup: group.and_then(|(_, group)| group.folders().first().cloned()),
            stdout: Output::File(starting.folder.file(RunFile::Log(name))),
            stderr: starting.folder.file(RunFile::Log(&format!("{name}.err"))),
        }
    }

    /// Every copy that was started, in order.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Running> {
        self.started.iter().flatten()
    }

    /// Waits until one of the copies ends.
    pub(crate) async fn first_exit(&self) -> Running {
        let mut exits = JoinSet::new();
        for running in self.running().cloned() {
            exits.spawn(net::boxed(async move {
                running.child.exit().await;
                running
            }));
        }
        match exits.join_next().await {
            Some(Ok(running)) => running,
            // No systems, so none ends.
            _ => std::future::pending().await,
        }
    }

    /// Stops the systems in reverse order of their start, all copies of one at once.
    pub(crate) async fn stop(&self) {
        for copies in self.started.iter().rev() {
            let mut stops = JoinSet::new();
            for running in copies.iter().cloned() {
                stops.spawn(net::boxed(async move { running.child.stop().await }));
            }
            while stops.join_next().await.is_some() {}
        }
    }

    /// Kills every copy without asking.
    pub(crate) fn kill(&self) {
        for running in self.running() {
            running.child.signal(Signal::SIGKILL);
        }
    }

    /// Removes the control groups; to be called when all processes have ended.
    pub(crate) fn remove_groups(&mut self) -> std::io::Result<()> {
        let mut groups = self.groups.drain(..);
        groups.try_for_each(|(_, group)| group.remove())
    }
}

async fn wait_for(system: System, running: Running, port: u16) -> Result<String, StartError> {
    let child = &running.child;
    let ended_early = |ended: super::Ended| StartError::EndedEarly {
        name: running.name.clone(),
        ended: ended.to_string(),
        command_line: child.command_line.clone(),
        output: last_lines(&child.logs),
    };
    let Some(ready) = &system.ready else {
        return match child.ended() {
            None => Ok(running.name),
            Some(ended) => Err(ended_early(ended)),
        };
    };
    tokio::select! {
        // A process that ended is not ready, whoever answers on its port.
        biased;
        ended = child.exit() => Err(ended_early(ended)),
        waited = tokio::time::timeout(system.ready_within, until_ready(ready, port, &child.logs)) => {
            match waited {
                Ok(()) => Ok(running.name.clone()),
                Err(_) => Err(StartError::NotReady {
                    name: running.name.clone(),
                    limit: system.ready_within,
                    missing: describe(ready, port),
                    command_line: child.command_line.clone(),
                    output: last_lines(&child.logs),
                }),
            }
        }
    }
}
