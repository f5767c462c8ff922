//! What a container is for, as the auctioneer gave it.

use diego::auction::{Lrp, Resource, Task};
use diego::models::{ActualLrpInstanceKey, ActualLrpKey};
use rand::{Rng, RngExt as _};
use telemetry::Fields;

use super::container::{Kind, Phase};

/// An instance or a task on a cell.
#[derive(Debug, Clone)]
pub(super) enum Work {
    /// An instance; its instance guid is that of the container.
    Lrp(Lrp),
    /// A task; its guid is that of the container.
    Task(Task),
}

impl Work {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Lrp(_) => Kind::Lrp,
            Self::Task(_) => Kind::Task,
        }
    }

    /// The container's guid.
    pub(super) fn guid(&self) -> &str {
        match self {
            Self::Lrp(lrp) => &lrp.instance_guid,
            Self::Task(task) => &task.task_guid,
        }
    }

    pub(super) fn resource(&self) -> Resource {
        match self {
            Self::Lrp(lrp) => lrp.resource,
            Self::Task(task) => task.resource,
        }
    }

    /// Names the work without anything drawn at random.
    pub(super) fn key(&self) -> String {
        match self {
            Self::Lrp(lrp) => format!("{}.{}", lrp.process_guid, lrp.index),
            Self::Task(task) => task.task_guid.clone(),
        }
    }

    /// What log lines about the container carry.
    pub(super) fn fields(&self) -> Fields {
        let fields = Fields::new().and("container-guid", self.guid());
        match self {
            Self::Lrp(lrp) => fields
                .and("instance-guid", &lrp.instance_guid)
                .and("process-guid", &lrp.process_guid)
                .and("index", lrp.index),
            Self::Task(task) => fields.and("task-guid", &task.task_guid),
        }
    }
}

/// Keys of an instance on the cell `cell_id`, for the BBS.
pub(super) fn keys(lrp: &Lrp, cell_id: &str) -> (ActualLrpKey, ActualLrpInstanceKey) {
    let key = ActualLrpKey {
        process_guid: lrp.process_guid.clone(),
        index: lrp.index,
        domain: lrp.domain.clone(),
    };
    let instance_key = ActualLrpInstanceKey {
        instance_guid: lrp.instance_guid.clone(),
        cell_id: cell_id.to_owned(),
    };
    (key, instance_key)
}

/// The state of an instance as a cell reports it.
pub(super) fn lrp_state(phase: &Phase) -> &'static str {
    match phase {
        Phase::Reserved | Phase::Creating | Phase::Created => "CLAIMED",
        Phase::Running => "RUNNING",
        Phase::Completed(end) if end.failed => "CRASHED",
        Phase::Completed(_) | Phase::Deleted => "SHUTDOWN",
    }
}

/// The state of a task as a cell reports it.
pub(super) fn task_state(phase: &Phase) -> &'static str {
    match phase {
        Phase::Reserved | Phase::Creating | Phase::Created | Phase::Running => "Running",
        Phase::Completed(_) | Phase::Deleted => "Completed",
    }
}

/// A random (version 4) UUID as text.
pub(super) fn uuid(rng: &mut impl Rng) -> String {
    uuid::Builder::from_random_bytes(rng.random())
        .into_uuid()
        .to_string()
}

/// A guid for an instance: a UUID cut to 28 characters, as containers' names must
/// be short.
pub(super) fn instance_guid(rng: &mut impl Rng) -> String {
    let mut guid = uuid(rng);
    guid.truncate(28);
    guid
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::super::container::Completion;
    use super::*;

    #[test]
    fn a_cell_tells_states_as_diegos_do() {
        let completed = |failed| {
            Phase::Completed(Completion {
                failed,
                ..Completion::default()
            })
        };
        for (phase, lrp, task) in [
            (Phase::Reserved, "CLAIMED", "Running"),
            (Phase::Created, "CLAIMED", "Running"),
            (Phase::Running, "RUNNING", "Running"),
            (completed(false), "SHUTDOWN", "Completed"),
            (completed(true), "CRASHED", "Completed"),
        ] {
            assert_eq!((lrp_state(&phase), task_state(&phase)), (lrp, task));
        }
    }

    #[test]
    fn guids_have_version_and_variant() {
        let mut rng = StdRng::seed_from_u64(1);
        for _ in 0..100 {
            let uuid = uuid(&mut rng);
            assert_eq!(uuid.len(), 36);
            assert_eq!(&uuid[14..15], "4");
            assert!("89ab".contains(&uuid[19..20]), "{uuid}");
        }
        assert_eq!(instance_guid(&mut rng).len(), 28);
    }
}
