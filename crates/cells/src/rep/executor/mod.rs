//! What runs the work of a container: nothing but the clock, or real processes.

pub(super) mod process;
pub(super) mod simulated;

use std::future::Future;
use std::sync::Arc;

use diego::models::{Action, DesiredLrp, EnvironmentVariable, PortMapping, TaskDefinition};
use net::Shutdown;

use super::container::{Completion, Kind};

/// Runs containers. Calls for one container come in the order create, run, forget.
pub(super) trait Executor: Send + Sync + 'static {
    /// Creates the container.
    ///
    /// # Errors
    /// The text becomes the reason of the failure.
    fn create(&self, job: Arc<Job>) -> impl Future<Output = Result<(), String>> + Send;

    /// Runs what the container is for, to its end. Calls `started` once its process
    /// runs; ends the process when `stop` is asked.
    fn run(
        &self,
        job: Arc<Job>,
        started: impl FnOnce() + Send,
        stop: Shutdown,
    ) -> impl Future<Output = End> + Send;

    /// Frees what the container held. It may never have been created.
    fn forget(&self, job: &Job);
}

/// How a process ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct End {
    /// What is told about it.
    pub(super) completion: Completion,
    /// Its exit status, when it had one.
    pub(super) exit_status: Option<i32>,
}

/// What a container is to run, and where.
#[derive(Debug, Clone)]
pub(super) struct Job {
    /// The container.
    pub(super) guid: String,
    /// The same from run to run, whatever guids are drawn: seeds what is random.
    pub(super) key: String,
    /// Address that the container is known by.
    pub(super) address: String,
    /// Its ports.
    pub(super) ports: Vec<PortMapping>,
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
    pub(super) fn kind(&self) -> Kind {
        match self.definition {
            Definition::Lrp(..) => Kind::Lrp,
            Definition::Task(_) => Kind::Task,
        }
    }

    /// Run before the action, to its end.
    pub(super) fn setup(&self) -> Option<&Action> {
        match &self.definition {
            Definition::Lrp(lrp, _) => lrp.setup.as_ref(),
            Definition::Task(_) => None,
        }
    }

    pub(super) fn action(&self) -> Option<&Action> {
        match &self.definition {
            Definition::Lrp(lrp, _) => lrp.action.as_ref(),
            Definition::Task(task) => task.action.as_ref(),
        }
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
