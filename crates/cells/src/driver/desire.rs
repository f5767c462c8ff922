//! Requests for tasks and long-running processes.

use std::collections::BTreeMap;

use diego::models::metric_tag_value::DynamicValue;
use diego::models::{
    Action, DesireLrpRequest, DesireTaskRequest, DesiredLrp, DesiredLrpUpdate, MetricTagValue,
    RemoveDesiredLrpRequest, RunAction, TaskDefinition, UpdateDesiredLrpRequest,
};
use units::parse_bytes;

use super::DOMAIN;
use super::protocol::Make;

/// Settings of `make` that are understood.
const OPTIONS: [&str; 5] = ["path", "args", "memory", "disk", "rootfs"];
const MIB: u64 = 1 << 20;
const MEMORY: &str = "32MiB";
const DISK: &str = "64MiB";
const ROOTFS: &str = "preloaded:cflinuxfs4";
const USER: &str = "vcap";

/// The settings of a make, with defaults for those that it does not give.
struct Settings<'a>(&'a BTreeMap<String, String>);

impl<'a> Settings<'a> {
    fn of(make: &'a Make) -> Result<Self, String> {
        match make
            .options
            .keys()
            .find(|key| !OPTIONS.contains(&key.as_str()))
        {
            None => Ok(Self(&make.options)),
            Some(key) => Err(format!(
                "{key:?} is no setting of make; it has {}",
                OPTIONS.join(", ")
            )),
        }
    }

    fn text(&self, key: &str, default: &str) -> String {
        self.0.get(key).map_or(default, String::as_str).to_owned()
    }

    /// A size in whole MiB, rounded up.
    fn mib(&self, key: &str, default: &str) -> Result<i32, String> {
        let text = self.text(key, default);
        let bytes = parse_bytes(&text).map_err(|error| format!("{key} = {text:?}: {error}"))?;
        i32::try_from(bytes.div_ceil(MIB)).map_err(|_| format!("{key} = {text:?} is too much"))
    }

    fn action(&self, path: &str, args: &str) -> Action {
        let run = RunAction {
            path: self.text("path", path),
            args: self
                .text("args", args)
                .split_whitespace()
                .map(str::to_owned)
                .collect(),
            user: USER.to_owned(),
            ..RunAction::default()
        };
        Action::from(run)
    }
}

/// What all tasks of a make have in common.
pub(super) struct Task(TaskDefinition);

/// Reads the settings of a make of tasks.
pub(super) fn task(make: &Make, callbacks: &str) -> Result<Task, String> {
    let settings = Settings::of(make)?;
    if let Some(shape) = &make.shape {
        return Err(format!(
            "tasks are made one by one; `as = {shape:?}` has no meaning"
        ));
    }
    Ok(Task(TaskDefinition {
        root_fs: settings.text("rootfs", ROOTFS),
        action: Some(settings.action("/bin/true", "")),
        memory_mb: settings.mib("memory", MEMORY)?,
        disk_mb: settings.mib("disk", DISK)?,
        completion_callback_url: callbacks.to_owned(),
        ..TaskDefinition::default()
    }))
}

impl Task {
    pub(super) fn request(&self, guid: String) -> DesireTaskRequest {
        let mut definition = self.0.clone();
        definition.log_guid.clone_from(&guid);
        DesireTaskRequest {
            task_definition: Some(definition),
            task_guid: guid,
            domain: DOMAIN.to_owned(),
        }
    }
}

/// What all LRPs of a make have in common.
pub(super) struct Lrp(DesiredLrp);

/// Reads the settings of a make of LRPs.
pub(super) fn lrp(make: &Make) -> Result<Lrp, String> {
    let settings = Settings::of(make)?;
    Ok(Lrp(DesiredLrp {
        domain: DOMAIN.to_owned(),
        root_fs: settings.text("rootfs", ROOTFS),
        action: Some(settings.action("/bin/sleep", "86400")),
        memory_mb: settings.mib("memory", MEMORY)?,
        disk_mb: settings.mib("disk", DISK)?,
        start_timeout_ms: 60_000,
        ..DesiredLrp::default()
    }))
}

impl Lrp {
    pub(super) fn desire(&self, guid: String, instances: i32) -> DesireLrpRequest {
        let mut desired = self.0.clone();
        desired.instances = instances;
        desired.log_guid.clone_from(&guid);
        // The protocol wants at least one tag.
        desired.metric_tags.insert(
            "source_id".to_owned(),
            MetricTagValue {
                r#static: guid.clone(),
                dynamic: DynamicValue::default().into(),
            },
        );
        desired.process_guid = guid;
        DesireLrpRequest {
            desired_lrp: Some(desired),
        }
    }
}

/// Another number of instances.
pub(super) fn update(guid: String, instances: i32) -> UpdateDesiredLrpRequest {
    let update = DesiredLrpUpdate {
        instances: Some(instances),
        ..DesiredLrpUpdate::default()
    };
    UpdateDesiredLrpRequest {
        process_guid: guid,
        update: Some(update),
    }
}

/// The end of an LRP.
pub(super) fn remove(guid: String) -> RemoveDesiredLrpRequest {
    RemoveDesiredLrpRequest { process_guid: guid }
}
