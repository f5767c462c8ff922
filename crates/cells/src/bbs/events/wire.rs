//! Changes as the events of each stream.

use std::sync::Arc;

use diego::models::{
    ActualLrp, ActualLrpChangedEvent, ActualLrpCrashedEvent, ActualLrpCreatedEvent, ActualLrpGroup,
    ActualLrpInfo, ActualLrpInstanceChangedEvent, ActualLrpInstanceCreatedEvent,
    ActualLrpInstanceRemovedEvent, ActualLrpRemovedEvent, DesiredLrp, DesiredLrpChangedEvent,
    DesiredLrpCreatedEvent, DesiredLrpRemovedEvent, Task, TaskChangedEvent, TaskCreatedEvent,
    TaskRemovedEvent, actual_lrp::Presence,
};
use diego::sse;
use prost::Message;

use super::{Event, Stream};
use crate::bbs::apply::Change;
use crate::bbs::model::events::{RecordEvent, of_groups, of_instances};
use crate::bbs::model::slot::Row;
use crate::bbs::model::versions;

/// The events that `stream` shows of a change.
pub(super) fn of_change(stream: Stream, change: &Change, events: &mut Vec<Event>) {
    match (stream, change) {
        (Stream::Tasks { old_form }, Change::Task { before, after }) => {
            let form = |task: &Arc<Task>| {
                let task = Task::clone(task);
                if old_form {
                    versions::task_v2(task)
                } else {
                    task
                }
            };
            let event = task(before.as_ref().map(form), after.as_ref().map(form));
            events.extend(event);
        }
        (Stream::Tasks { .. }, _) | (_, Change::Task { .. }) => {}
        (
            Stream::Groups { old_form } | Stream::Instances { old_form },
            Change::Desired {
                before,
                after,
                trace,
            },
        ) => {
            let form = |lrp: &Arc<DesiredLrp>| {
                let lrp = DesiredLrp::clone(lrp);
                if old_form {
                    versions::desired_v0(lrp)
                } else {
                    lrp
                }
            };
            let event = desired(before.as_ref().map(form), after.as_ref().map(form), trace);
            events.extend(event);
        }
        (
            Stream::Instances { .. },
            Change::Slot {
                before,
                after,
                crashed,
                trace,
            },
        ) => {
            let happened = of_instances(before, after, *crashed);
            events.extend(happened.iter().map(|happened| instance(happened, trace)));
        }
        (
            Stream::Groups { .. },
            Change::Slot {
                before,
                after,
                crashed,
                ..
            },
        ) => {
            events.extend(of_groups(before, after, *crashed).iter().map(group));
        }
    }
}

fn event(name: &str, payload: &impl Message, cells: Option<[&str; 2]>) -> Event {
    Event {
        text: sse::encode(name, &payload.encode_to_vec()),
        cells: cells.map(|cells| cells.map(Arc::from)),
    }
}

fn task(before: Option<Task>, after: Option<Task>) -> Option<Event> {
    Some(match (before, after) {
        (None, Some(task)) => event("task_created", &TaskCreatedEvent { task: Some(task) }, None),
        (Some(before), Some(after)) => {
            let (before, after) = (Some(before), Some(after));
            event("task_changed", &TaskChangedEvent { before, after }, None)
        }
        (Some(task), None) => event("task_removed", &TaskRemovedEvent { task: Some(task) }, None),
        (None, None) => return None,
    })
}

fn desired(before: Option<DesiredLrp>, after: Option<DesiredLrp>, trace: &str) -> Option<Event> {
    let trace_id = trace.to_owned();
    Some(match (before, after) {
        (None, after @ Some(_)) => {
            let payload = DesiredLrpCreatedEvent {
                desired_lrp: after,
                trace_id,
            };
            event("desired_lrp_created", &payload, None)
        }
        (before @ Some(_), after @ Some(_)) => {
            let payload = DesiredLrpChangedEvent {
                before,
                after,
                trace_id,
            };
            event("desired_lrp_changed", &payload, None)
        }
        (before @ Some(_), None) => {
            let payload = DesiredLrpRemovedEvent {
                desired_lrp: before,
                trace_id,
            };
            event("desired_lrp_removed", &payload, None)
        }
        (None, None) => return None,
    })
}

fn instance(happened: &RecordEvent, trace: &str) -> Event {
    let trace_id = trace.to_owned();
    match happened {
        RecordEvent::Crashed { before, after } => crashed(before, after),
        RecordEvent::Created(row) => {
            let actual_lrp = Some(ActualLrp::clone(row));
            let payload = ActualLrpInstanceCreatedEvent {
                actual_lrp,
                trace_id,
            };
            event("actual_lrp_instance_created", &payload, Some(on(row, row)))
        }
        RecordEvent::Changed { before, after } => {
            let of = |row: &ActualLrp, other: &ActualLrp| {
                let own = !row.instance().instance_guid.is_empty();
                if own {
                    row.instance().clone()
                } else {
                    other.instance().clone()
                }
            };
            let key = of(after, before);
            let cell = key.cell_id.clone();
            let payload = ActualLrpInstanceChangedEvent {
                actual_lrp_key: Some(after.key().clone()),
                actual_lrp_instance_key: Some(key),
                before: Some(info(before)),
                after: Some(info(after)),
                trace_id,
            };
            event(
                "actual_lrp_instance_changed",
                &payload,
                Some([&cell, &cell]),
            )
        }
        RecordEvent::Removed(row) => {
            let actual_lrp = Some(ActualLrp::clone(row));
            let payload = ActualLrpInstanceRemovedEvent {
                actual_lrp,
                trace_id,
            };
            event("actual_lrp_instance_removed", &payload, Some(on(row, row)))
        }
    }
}

fn group(happened: &RecordEvent) -> Event {
    match happened {
        RecordEvent::Crashed { before, after } => crashed(before, after),
        RecordEvent::Created(row) => {
            let payload = ActualLrpCreatedEvent {
                actual_lrp_group: Some(group_of(row)),
            };
            event("actual_lrp_created", &payload, Some(on(row, row)))
        }
        RecordEvent::Changed { before, after } => {
            let payload = ActualLrpChangedEvent {
                before: Some(group_of(before)),
                after: Some(group_of(after)),
            };
            event("actual_lrp_changed", &payload, Some(on(before, after)))
        }
        RecordEvent::Removed(row) => {
            let payload = ActualLrpRemovedEvent {
                actual_lrp_group: Some(group_of(row)),
            };
            event("actual_lrp_removed", &payload, Some(on(row, row)))
        }
    }
}

fn crashed(before: &ActualLrp, after: &ActualLrp) -> Event {
    let payload = ActualLrpCrashedEvent {
        actual_lrp_key: Some(after.key().clone()),
        actual_lrp_instance_key: Some(before.instance().clone()),
        crash_count: after.crash_count,
        crash_reason: after.crash_reason.clone(),
        since: after.since,
    };
    event("actual_lrp_crashed", &payload, Some(on(before, before)))
}

fn on<'a>(before: &'a ActualLrp, after: &'a ActualLrp) -> [&'a str; 2] {
    [&before.instance().cell_id, &after.instance().cell_id]
}

fn group_of(row: &ActualLrp) -> ActualLrpGroup {
    let row = row.clone();
    if row.presence() == Presence::Evacuating {
        ActualLrpGroup {
            instance: None,
            evacuating: Some(row),
        }
    } else {
        ActualLrpGroup {
            instance: Some(row),
            evacuating: None,
        }
    }
}

fn info(row: &ActualLrp) -> ActualLrpInfo {
    ActualLrpInfo {
        actual_lrp_net_info: Some(row.actual_lrp_net_info.clone().unwrap_or_default()),
        crash_count: row.crash_count,
        crash_reason: row.crash_reason.clone(),
        state: row.state.clone(),
        placement_error: row.placement_error.clone(),
        since: row.since,
        modification_tag: row.modification_tag.clone(),
        presence: row.presence,
        routable: row.routable,
        availability_zone: row.availability_zone.clone(),
    }
}
