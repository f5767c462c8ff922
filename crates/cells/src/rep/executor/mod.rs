//! What runs the work of a container: nothing but the clock, or real processes.

pub(super) mod process;
pub(super) mod simulated;

use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

pub use process::unpack_archive;

use diego::models::{
    Action, CachedDependency, DesiredLrp, EnvironmentVariable, File, PortMapping, TaskDefinition,
};
use net::Shutdown;

use super::container::Completion;
use super::steps::Sign;

/// Bytes of a guid that a container's name has beside the number of its cell; the names of folders have
/// 255 at most.
const LONGEST_IN_NAME: usize = 240;

/// Runs containers. Calls for one container come in the order create, run, forget.
pub(super) trait Executor: Send + Sync + 'static {
    /// The network of a container that is to be created, by its [name](name_of).
    fn network(&self, _name: &str) -> Network {
        Network::Shared
    }

    /// Creates the container.
    ///
    /// # Errors
    /// The text becomes the reason of the failure.
    fn create(&self, job: Arc<Job>) -> impl Future<Output = Result<(), String>> + Send;

    /// Runs what the container is for, to its end. Gives signs of what becomes of it
    /// meanwhile; ends it when `stop` is asked.
    fn run(
        &self,
        job: Arc<Job>,
        signs: impl Fn(Sign) + Send + Sync,
        stop: Shutdown,
    ) -> impl Future<Output = End> + Send;

    /// Frees what the container held. It may never have been created.
    fn forget(&self, job: &Job);
}

/// Where a container's ports are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Network {
    /// On the machine's own addresses, beside all others.
    Shared,
    /// At an address of its own.
    Own {
        /// Its address.
        address: String,
        /// The file of its namespace.
        namespace: PathBuf,
    },
    /// All are taken.
    NoneLeft,
}

/// How a process ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct End {
    /// What is told about it.
    pub(super) completion: Completion,
    /// Its exit status, when it had one.
    pub(super) exit_status: Option<i32>,
}

/// What a container is called among those of all cells: one cell may still have a task that was
/// given to another.
pub(super) fn name_of(cell: i32, guid: &str) -> String {
    if guid.len() <= LONGEST_IN_NAME {
        return format!("{cell}-{guid}");
    }
    // A guid may be as long as the name of a folder.
    let begin = &guid[..guid.floor_char_boundary(LONGEST_IN_NAME - 17)];
    let mut hash = DefaultHasher::new();
    guid.hash(&mut hash);
    format!("{cell}-{begin}-{:016x}", hash.finish())
}

/// What a container is to run, and where.
#[derive(Debug, Clone)]
pub(super) struct Job {
    /// The number of its cell.
    pub(super) cell: i32,
    /// The container.
    pub(super) guid: String,
    /// The same from run to run, whatever guids are drawn: seeds what is random.
    pub(super) key: String,
    /// Address that the container is known by.
    pub(super) address: String,
    /// Its ports.
    pub(super) ports: Vec<PortMapping>,
    /// The file of its network namespace; `None`: it shares the machine's network, and its
    /// host ports were given to it.
    pub(super) network: Option<PathBuf>,
    /// What is to be run.
    pub(super) definition: Definition,
}

/// What is to be run, as the BBS tells it.
#[derive(Debug, Clone)]
pub(super) enum Definition {
    /// An instance with its index.
    Lrp(Arc<DesiredLrp>, i32),
    /// A task.
    Task(Box<TaskDefinition>),
}

impl Job {
    /// What it is called among the containers of all cells.
    pub(super) fn name(&self) -> String {
        name_of(self.cell, &self.guid)
    }

    /// What is put into the container before it runs.
    pub(super) fn cached_dependencies(&self) -> &[CachedDependency] {
        match &self.definition {
            Definition::Lrp(lrp, _) => &lrp.cached_dependencies,
            Definition::Task(task) => &task.cached_dependencies,
        }
    }

    /// Files that are put into the container before it runs, with their content.
    pub(super) fn mounted_files(&self) -> &[File] {
        match &self.definition {
            Definition::Lrp(lrp, _) => &lrp.volume_mounted_files,
            Definition::Task(task) => &task.volume_mounted_files,
        }
    }

    /// Organizational units that its certificate names.
    pub(super) fn organizational_units(&self) -> &[String] {
        let properties = match &self.definition {
            Definition::Lrp(lrp, _) => &lrp.certificate_properties,
            Definition::Task(task) => &task.certificate_properties,
        };
        match properties {
            Some(properties) => &properties.organizational_unit,
            None => &[],
        }
    }

    /// Does it want the certificates that the machine trusts?
    pub(super) fn wants_trusted_certificates(&self) -> bool {
        let path = match &self.definition {
            Definition::Lrp(lrp, _) => &lrp.trusted_system_certificates_path,
            Definition::Task(task) => &task.trusted_system_certificates_path,
        };
        !path.is_empty()
    }

    /// The user of the first program that it is for; empty: none is named.
    pub(super) fn user(&self) -> &str {
        let action = match &self.definition {
            Definition::Lrp(lrp, _) => &lrp.action,
            Definition::Task(task) => &task.action,
        };
        let user = action.as_ref().and_then(first_user);
        user.unwrap_or_default()
    }

    /// Bytes that its files may take; 0: any number.
    pub(super) fn disk_bytes(&self) -> u64 {
        let megabytes = match &self.definition {
            Definition::Lrp(lrp, _) => lrp.disk_mb,
            Definition::Task(task) => task.disk_mb,
        };
        u64::try_from(megabytes).unwrap_or(0) << 20
    }

    /// Bytes of memory that it may take; `None`: any number.
    pub(super) fn memory_bytes(&self) -> Option<u64> {
        let megabytes = match &self.definition {
            Definition::Lrp(lrp, _) => lrp.memory_mb,
            Definition::Task(task) => task.memory_mb,
        };
        let megabytes = u64::try_from(megabytes).ok()?;
        (megabytes > 0).then_some(megabytes << 20)
    }

    /// Processes and threads that it may have; `None`: any number.
    pub(super) fn tasks_max(&self) -> Option<u64> {
        let most = match &self.definition {
            Definition::Lrp(lrp, _) => lrp.max_pids,
            Definition::Task(task) => task.max_pids,
        };
        u64::try_from(most).ok().filter(|most| *most > 0)
    }

    /// Bytes that it may log in a second; -1: any number.
    pub(super) fn log_bytes_per_second(&self) -> i64 {
        let limit = match &self.definition {
            Definition::Lrp(lrp, _) => lrp.log_rate_limit,
            Definition::Task(task) => task.log_rate_limit,
        };
        limit.map_or(-1, |limit| limit.bytes_per_second)
    }

    /// The host port behind a port of the container; it stands for itself if there is none.
    pub(super) fn host_port(&self, port: u16) -> u16 {
        let mut ports = self.ports.iter();
        let behind = ports.find(|it| it.container_port == u32::from(port));
        let behind = behind.and_then(|it| u16::try_from(it.host_port).ok());
        behind.unwrap_or(port)
    }

    pub(super) fn env(&self) -> &[EnvironmentVariable] {
        match &self.definition {
            Definition::Lrp(lrp, _) => &lrp.environment_variables,
            Definition::Task(task) => &task.environment_variables,
        }
    }

    /// Source of its log lines where an action names none.
    pub(super) fn log_source(&self) -> &str {
        let source = match &self.definition {
            Definition::Lrp(lrp, _) => &lrp.log_source,
            Definition::Task(task) => &task.log_source,
        };
        if source.is_empty() { "LOG" } else { source }
    }
}

/// The user of an action's first program.
fn first_user(action: &Action) -> Option<&str> {
    if let Some(run) = &action.run_action {
        return Some(&run.user);
    }
    let (timeout, progress, tried) = (
        action.timeout_action.as_ref(),
        action.emit_progress_action.as_ref(),
        action.try_action.as_ref(),
    );
    let inner = [
        timeout.and_then(|it| it.action.as_deref()),
        progress.and_then(|it| it.action.as_deref()),
        tried.and_then(|it| it.action.as_deref()),
    ];
    let (parallel, serial, codependent) = (
        action.parallel_action.as_ref(),
        action.serial_action.as_ref(),
        action.codependent_action.as_ref(),
    );
    let lists = [
        parallel.map(|it| &it.actions),
        serial.map(|it| &it.actions),
        codependent.map(|it| &it.actions),
    ];
    let inner = inner.into_iter().flatten();
    let mut all = inner.chain(lists.into_iter().flatten().flatten());
    all.find_map(first_user)
}

#[cfg(test)]
mod tests {
    use diego::models::{RunAction, SerialAction, TimeoutAction};

    use super::*;

    #[test]
    fn the_first_program_says_whose_the_container_is() {
        let run = |user: &str| {
            Action::from(RunAction {
                user: user.into(),
                ..RunAction::default()
            })
        };
        let limited = Action::from(TimeoutAction {
            action: Some(Box::new(run("first"))),
            ..TimeoutAction::default()
        });
        let serial = Action::from(SerialAction {
            actions: vec![Action::default(), limited, run("second")],
            ..SerialAction::default()
        });
        assert_eq!(first_user(&serial), Some("first"));
        assert_eq!(first_user(&run("")), Some(""));
        assert_eq!(first_user(&Action::default()), None);
    }

    #[test]
    fn a_name_is_no_longer_than_a_folder_s_may_be_and_stays_one_container_s() {
        assert_eq!(name_of(7, "a-task"), "7-a-task");
        let (one, other) = ("a".repeat(255), format!("{}b", "a".repeat(254)));
        for guid in [&one, &other] {
            assert!(name_of(i32::MAX, guid).len() <= 255);
        }
        assert_ne!(name_of(7, &one), name_of(7, &other));
    }
}
