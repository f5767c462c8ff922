//! Events.

use super::super::{Kind, Shape, always, flat, message, unless_zero};
use super::actual::{
    ACTUAL_LRP, ACTUAL_LRP_GROUP, ACTUAL_LRP_INFO, ACTUAL_LRP_INSTANCE_KEY, ACTUAL_LRP_KEY,
};
use super::desired::DESIRED_LRP;
use super::tasks::TASK;

/// The message of an event with this name in its stream.
pub fn of_event(name: &str) -> Option<&'static Shape> {
    Some(match name {
        "desired_lrp_created" => &DESIRED_LRP_CREATED,
        "desired_lrp_changed" => &DESIRED_LRP_CHANGED,
        "desired_lrp_removed" => &DESIRED_LRP_REMOVED,
        "actual_lrp_created" => &ACTUAL_LRP_CREATED,
        "actual_lrp_changed" => &ACTUAL_LRP_CHANGED,
        "actual_lrp_removed" => &ACTUAL_LRP_REMOVED,
        "actual_lrp_instance_created" => &ACTUAL_LRP_INSTANCE_CREATED,
        "actual_lrp_instance_changed" => &ACTUAL_LRP_INSTANCE_CHANGED,
        "actual_lrp_instance_removed" => &ACTUAL_LRP_INSTANCE_REMOVED,
        "actual_lrp_crashed" => &ACTUAL_LRP_CRASHED,
        "task_created" => &TASK_CREATED,
        "task_changed" => &TASK_CHANGED,
        "task_removed" => &TASK_REMOVED,
        _ => return None,
    })
}

shapes! {
    DESIRED_LRP_CREATED = "DesiredLRPCreatedEvent": [
        message(1, "desired_lrp", &DESIRED_LRP),
        always(2, "trace_id", Kind::Text),
    ];
    DESIRED_LRP_CHANGED = "DesiredLRPChangedEvent": [
        message(1, "before", &DESIRED_LRP),
        message(2, "after", &DESIRED_LRP),
        always(3, "trace_id", Kind::Text),
    ];
    DESIRED_LRP_REMOVED = "DesiredLRPRemovedEvent": [
        message(1, "desired_lrp", &DESIRED_LRP),
        always(2, "trace_id", Kind::Text),
    ];
    ACTUAL_LRP_CREATED = "ActualLRPCreatedEvent": [
        message(1, "actual_lrp_group", &ACTUAL_LRP_GROUP),
    ];
    ACTUAL_LRP_CHANGED = "ActualLRPChangedEvent": [
        message(1, "before", &ACTUAL_LRP_GROUP),
        message(2, "after", &ACTUAL_LRP_GROUP),
    ];
    ACTUAL_LRP_REMOVED = "ActualLRPRemovedEvent": [
        message(1, "actual_lrp_group", &ACTUAL_LRP_GROUP),
    ];
    ACTUAL_LRP_INSTANCE_CREATED = "ActualLRPInstanceCreatedEvent": [
        message(1, "actual_lrp", &ACTUAL_LRP),
        always(2, "trace_id", Kind::Text),
    ];
    ACTUAL_LRP_INSTANCE_CHANGED = "ActualLRPInstanceChangedEvent": [
        flat(1, &ACTUAL_LRP_KEY),
        flat(2, &ACTUAL_LRP_INSTANCE_KEY),
        message(3, "before", &ACTUAL_LRP_INFO),
        message(4, "after", &ACTUAL_LRP_INFO),
        always(5, "trace_id", Kind::Text),
    ];
    ACTUAL_LRP_INSTANCE_REMOVED = "ActualLRPInstanceRemovedEvent": [
        message(1, "actual_lrp", &ACTUAL_LRP),
        always(2, "trace_id", Kind::Text),
    ];
    ACTUAL_LRP_CRASHED = "ActualLRPCrashedEvent": [
        flat(1, &ACTUAL_LRP_KEY),
        flat(2, &ACTUAL_LRP_INSTANCE_KEY),
        always(3, "crash_count", Kind::Int32),
        unless_zero(4, "crash_reason", Kind::Text),
        always(5, "since", Kind::Int64),
    ];
    TASK_CREATED = "TaskCreatedEvent": [message(1, "task", &TASK)];
    TASK_CHANGED = "TaskChangedEvent": [message(1, "before", &TASK), message(2, "after", &TASK)];
    TASK_REMOVED = "TaskRemovedEvent": [message(1, "task", &TASK)];
}
