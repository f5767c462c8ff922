//! What containers may take of the machine, kept by control groups.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use processes::{Bounds, Group, Groups, out_of_memory};

use super::super::super::settings::Error;
use super::super::Job;
use crate::mutex::lock;

/// The groups of all containers.
pub(super) struct Limits {
    groups: Groups,
    by_name: Mutex<HashMap<String, Arc<Group>>>,
}

impl Limits {
    /// Fails where no group can be made.
    pub(super) fn open() -> Result<Self, Error> {
        let groups = Groups::open(Path::new("/"), std::process::id());
        let some = Bounds {
            memory: Some(1 << 30),
            tasks: Some(1),
            ..Bounds::default()
        };
        groups.bound("trial", some)?;
        Ok(Self {
            groups,
            by_name: Mutex::default(),
        })
    }

    /// Makes the group of a container, if its bounds are told. The error says what failed.
    pub(super) fn make(&self, job: &Job) -> Result<(), String> {
        let bounds = Bounds {
            cpus: None,
            memory: job.memory_bytes(),
            tasks: job.tasks_max(),
        };
        if bounds == Bounds::default() {
            return Ok(());
        }
        let name = job.name();
        let group = self.groups.bound(&name, bounds);
        let group = group.map_err(|cause| cause.to_string())?;
        lock(&self.by_name).insert(name, Arc::new(group));
        Ok(())
    }

    /// Where processes of the container belong.
    pub(super) fn folders(&self, name: &str) -> Vec<PathBuf> {
        let group = lock(&self.by_name).get(name).cloned();
        group.map_or_else(Vec::new, |group| group.folders().to_vec())
    }

    /// Did a process of the container end because it took too much memory?
    pub(super) fn out_of_memory(&self, name: &str) -> bool {
        self.folders(name)
            .iter()
            .any(|folder| out_of_memory(folder))
    }

    /// Removes the group of a container, once its processes have ended; what is left is removed
    /// at the next start. Blocks for two seconds at most.
    pub(super) fn remove(&self, name: &str) {
        let group = lock(&self.by_name).remove(name);
        if let Some(group) = group.and_then(Arc::into_inner) {
            let _ = group.remove();
        }
    }
}
