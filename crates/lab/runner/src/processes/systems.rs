//! The systems of a plan: all started, all ready, all stopped.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lab_experiment::plan::{Program, System, Watch};
use lab_store::{EventKind, RunFile, RunFolder};
use measure::Marks;
use processes::{DiskError, Group, GroupError, Groups, Reaper, ReaperError, Signal, mount_disk};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::addresses::Addresses;
use super::children::{Children, Ended, LaunchError};
use super::copy::{Copy, Running, copy_names, pause};
use super::launch::{Launch, Output, itself};
use super::ports::Ports;
use super::ready::{describe, until_ready};
use super::tail::last_lines;
use crate::profile::Profiler;
use crate::progress::Status;
use crate::record::Recorder;
use crate::standstill;
use crate::watch::Watcher;

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
    /// A file system of a copy's own could not be made.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A process could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The reaper was lost.
    #[error(transparent)]
    Reaper(#[from] ReaperError),
    /// A system ended before it was ready.
    #[error(
        "{name} {ended} before it was ready; its command was `{command_line}`{waiting}{output}"
    )]
    EndedEarly {
        /// Name of the copy.
        name: String,
        /// How it ended.
        ended: String,
        /// Its command line.
        command_line: String,
        /// Why that may be: it went into the background, or there are systems that it is told of and does
        /// not wait for. As sentences; or nothing.
        waiting: String,
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
    /// A copy was started again too often.
    #[error("{name} ended {times} times, the most that it is started again (`on_exit`){output}")]
    Unstable {
        /// Name of the copy.
        name: String,
        /// How often it was started again.
        times: u32,
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

/// A process of a copy has ended: places of system and copy, and its number.
pub(super) type End = ((usize, usize), u32);

/// A copy that is to be started again.
#[derive(Debug)]
pub(super) struct Due {
    /// When.
    pub(super) at: Instant,
    pub(super) end: End,
    /// What its process has left running, which may still hold memory, files and ports that the
    /// next one needs.
    pub(super) left: Vec<OwnedFd>,
    /// When that is waited for no longer.
    pub(super) until: Instant,
}

/// The systems that were started, in order, and what has to be removed with them.
#[derive(Debug)]
pub(crate) struct Systems {
    /// One entry for each system, in order of their start.
    pub(super) started: Vec<Vec<Copy>>,
    /// Control groups of copies, by their names.
    groups: Vec<(String, Group)>,
    /// Whoever supervises hears of each end here.
    pub(super) ends: (UnboundedSender<End>, Mutex<UnboundedReceiver<End>>),
    /// Copies that are to be started again, unless they were meanwhile.
    pub(super) due: RefCell<Vec<Due>>,
}

impl Default for Systems {
    fn default() -> Self {
        let (tell, ends) = unbounded_channel();
        Self {
            started: Vec::new(),
            groups: Vec::new(),
            ends: (tell, Mutex::new(ends)),
            due: RefCell::default(),
        }
    }
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
    pub(crate) watcher: Option<&'a Watcher>,
    pub(crate) profiler: Option<&'a Profiler>,
    pub(crate) systems: &'a [System],
    /// Path of the binary that makes the run.
    pub(crate) own_binary: OsString,
    /// Name of the run, unlike that of any other.
    pub(crate) tag: String,
}

impl Systems {
    /// Makes the control groups and file systems that the plan needs, before anything starts.
    pub(crate) fn prepare(&mut self, starting: &Starting<'_>) -> Result<(), StartError> {
        let systems = starting.systems;
        let is_plain =
            |system: &System| system.memory_bytes.is_none() && system.disk_bytes.is_none();
        if systems.iter().all(is_plain) {
            return Ok(());
        }
        let owner = std::process::id();
        starting.reaper.limits(owner)?;
        for system in systems {
            for (index, bytes) in (0..system.count).zip(std::iter::repeat(system.disk_bytes)) {
                if let Some(bytes) = bytes {
                    let path = starting.addresses.disk(&system.name, index);
                    mount_disk(&path, bytes, owner)?;
                }
            }
        }
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
    /// when all are. On an error the ones that run are left to [`Systems::stop`].
    pub(crate) async fn start(
        &mut self,
        ports: &mut Ports,
        starting: &Starting<'_>,
    ) -> Result<(), StartError> {
        let mut waiting: Vec<(usize, &System)> = starting.systems.iter().enumerate().collect();
        let mut up: Vec<&str> = Vec::new();
        while !waiting.is_empty() {
            let (now, later): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(_, system)| {
                system.after.iter().all(|name| up.contains(&name.as_str()))
            });
            if now.is_empty() {
                let names = later.iter().map(|(_, system)| system.name.clone());
                let names = names.collect();
                return Err(StartError::Circle { names });
            }
            let mut waits = JoinSet::new();
            let mut unready = BTreeSet::new();
            for (place, _) in &now {
                for copy in self.start_copies(*place, ports, starting)? {
                    waits.spawn(net::boxed(ready(copy, starting)));
                    unready.insert(copy.name.clone());
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
                unready.remove(&waited?);
            }
            up.extend(now.iter().map(|(_, system)| system.name.as_str()));
            waiting = later;
        }
        Ok(())
    }

    fn start_copies(
        &mut self,
        place: usize,
        ports: &mut Ports,
        starting: &Starting<'_>,
    ) -> Result<&[Copy], StartError> {
        let system = &starting.systems[place];
        // Pushed first: a copy that runs is stopped even if the next fails.
        let slot = self.started.len();
        self.started.push(Vec::new());
        for (index, name) in (0..).zip(copy_names(system)) {
            for port in starting.addresses.ports(&system.name, index) {
                ports.release(*port);
            }
            let at = (slot, self.started[slot].len());
            let running = self.start_process(system, index, &name, (at, 1), starting)?;
            self.started[slot].push(Copy {
                name,
                at,
                system: place,
                index,
                running: RefCell::new(running),
                starts: Cell::new(1),
                ready: watch::channel(0).0,
                is_held: Cell::new(false),
                is_paused: Cell::new(false),
                is_under_fault: Cell::new(false),
                is_end_reported: Cell::new(false),
            });
        }
        Ok(&self.started[slot])
    }

    fn start_process(
        &self,
        system: &System,
        index: u32,
        name: &str,
        end: End,
        starting: &Starting<'_>,
    ) -> Result<Running, StartError> {
        let launch = self.launch(system, index, name, starting);
        let marks = Marks {
            variable: Some(format!("{COPY}={}", mark(&starting.tag, name))),
            cgroup: launch.cgroup.clone(),
        };
        let child = starting.children.start(launch)?;
        let text = format!("process {}: {}", child.pid, child.command_line);
        starting
            .recorder
            .event(EventKind::SystemStarted, name, &text);
        let is_sampled = system.watch.contains(&Watch::Cpu);
        if let Some(profiler) = starting.profiler.filter(|_| is_sampled) {
            profiler.add(name, child.pid);
        }
        if let Some(watcher) = starting.watcher.filter(|_| !system.watch.is_empty()) {
            watcher.add(name, child.pid, marks.clone());
        }
        let (exit, tell) = (child.watch(), self.ends.0.clone());
        tokio::spawn(net::boxed(async move {
            exit.ended().await;
            // Nobody listens any more when the run is over.
            let _ = tell.send(end);
        }));
        Ok(Running {
            name: name.to_owned(),
            child: Arc::new(child),
            marks,
        })
    }

    /// The next process of a copy; it is ready later.
    pub(super) fn start_again(
        &self,
        copy: &Copy,
        starting: &Starting<'_>,
    ) -> Result<(), StartError> {
        let (system, number) = (&starting.systems[copy.system], copy.start() + 1);
        let end = (copy.at, number);
        let running = self.start_process(system, copy.index, &copy.name, end, starting)?;
        copy.running.replace(running);
        copy.starts.set(number);
        copy.is_end_reported.set(false);
        copy.is_paused.set(false);
        Ok(())
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
    pub(crate) fn copies(&self) -> impl Iterator<Item = &Copy> {
        self.started.iter().flatten()
    }

    /// The copies of a system of the plan, by its name.
    pub(crate) fn copies_of(&self, systems: &[System], name: &str) -> &[Copy] {
        let of = |copies: &&Vec<Copy>| {
            let first = copies.first();
            first.is_some_and(|copy| systems[copy.system].name == name)
        };
        self.started.iter().find(of).map_or(&[], Vec::as_slice)
    }

    /// Processes whose end was not reported yet.
    pub(crate) fn unreported(&self) -> impl Iterator<Item = Running> {
        let untold = self.copies().filter(|copy| !copy.is_end_reported.get());
        untold.map(Copy::running)
    }

    /// Stops the systems in reverse order of their start, all copies of one at once.
    pub(crate) async fn stop(&self) {
        for copies in self.started.iter().rev() {
            let mut stops = JoinSet::new();
            // A process that is stopped hears nothing.
            let paused: Vec<&Copy> = copies.iter().filter(|copy| copy.is_paused()).collect();
            if !paused.is_empty() {
                pause(&paused, false);
            }
            for copy in copies {
                let running = copy.running();
                stops.spawn(net::boxed(async move { running.child.stop().await }));
            }
            while stops.join_next().await.is_some() {}
        }
    }

    /// Kills every copy without asking.
    pub(crate) fn kill(&self) {
        for copy in self.copies() {
            copy.running().child.signal(Signal::SIGKILL);
        }
    }

    /// Removes the control groups; to be called when all processes have ended.
    pub(crate) fn remove_groups(&mut self) -> std::io::Result<()> {
        let mut groups = self.groups.drain(..);
        groups.try_for_each(|(_, group)| group.remove())
    }
}

/// Waits until the newest process of a copy is ready, and says so; gives the copy's name.
pub(super) fn ready(
    copy: &Copy,
    starting: &Starting<'_>,
) -> impl Future<Output = Result<String, StartError>> + Send + use<> {
    let system = starting.systems[copy.system].clone();
    let port = starting.addresses.port(&system.name, copy.index);
    let (running, recorder) = (copy.running(), starting.recorder.clone());
    let (tell, start) = (copy.ready.clone(), copy.start());
    async move {
        let name = wait_for(system, running, port).await?;
        recorder.event(EventKind::SystemReady, &name, "");
        tell.send_replace(start);
        Ok(name)
    }
}

/// What ends well before it serves has mostly left a process behind that does.
fn in_the_background(ended: Ended) -> String {
    match ended.well() {
        true => {
            "; a system runs in the foreground: one that goes into the background by itself has an \
                 option against that"
                .to_owned()
        }
        false => String::new(),
    }
}

async fn wait_for(system: System, running: Running, port: u16) -> Result<String, StartError> {
    let child = &running.child;
    let ended_early = |ended: Ended| StartError::EndedEarly {
        name: running.name.clone(),
        ended: ended.to_string(),
        command_line: child.command_line.clone(),
        waiting: in_the_background(ended) + &not_waited_for(&system),
        output: last_lines(&child.logs),
    };
    let Some(ready) = &system.ready else {
        return match child.ended() {
            None => Ok(running.name),
            Some(ended) => Err(ended_early(ended)),
        };
    };
    let logs = child.logs.iter().zip(child.logs_from.iter().copied());
    tokio::select! {
        // A process that ended is not ready, whoever answers on its port.
        biased;
        ended = child.exit() => Err(ended_early(ended)),
        waited = standstill::within(system.ready_within, until_ready(ready, port, logs)) => {
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

/// The systems that one is told of and does not wait for, and what would have it wait.
fn not_waited_for(system: &System) -> String {
    let mut told = system.referenced_systems();
    told.retain(|name| !system.after.contains(name));
    if told.is_empty() {
        return String::new();
    }
    let quoted = |names: &[String]| {
        let quoted: Vec<_> = names.iter().map(|name| format!("\"{name}\"")).collect();
        quoted.join(", ")
    };
    format!(
        "; it is told where {} is and does not wait for it: if it needs it from the start, give it \
         `after = [{}]`",
        told.join(" and "),
        quoted(&[&system.after[..], &told[..]].concat())
    )
}
