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

static DESIRED_LRP_CREATED: Shape = Shape {
    name: "DesiredLRPCreatedEvent",
    fields: &[
        message(1, "desired_lrp", &DESIRED_LRP),
        always(2, "trace_id", Kind::Text),
    ],
};

static DESIRED_LRP_CHANGED: Shape = Shape {
    name: "DesiredLRPChangedEvent",
    fields: &[
        message(1, "before", &DESIRED_LRP),
        message(2, "after", &DESIRED_LRP),
        always(3, "trace_id", Kind::Text),
    ],
};

static DESIRED_LRP_REMOVED: Shape = Shape {
    name: "DesiredLRPRemovedEvent",
    fields: &[
        message(1, "desired_lrp", &DESIRED_LRP),
        always(2, "trace_id", Kind::Text),
    ],
};

static ACTUAL_LRP_CREATED: Shape = Shape {
    name: "ActualLRPCreatedEvent",
    fields: &[message(1, "actual_lrp_group", &ACTUAL_LRP_GROUP)],
};

static ACTUAL_LRP_CHANGED: Shape = Shape {
    name: "ActualLRPChangedEvent",
    fields: &[
        message(1, "before", &ACTUAL_LRP_GROUP),
        message(2, "after", &ACTUAL_LRP_GROUP),
    ],
};

static ACTUAL_LRP_REMOVED: Shape = Shape {
    name: "ActualLRPRemovedEvent",
    fields: &[message(1, "actual_lrp_group", &ACTUAL_LRP_GROUP)],
};

static ACTUAL_LRP_INSTANCE_CREATED: Shape = Shape {
    name: "ActualLRPInstanceCreatedEvent",
    fields: &[
        message(1, "actual_lrp", &ACTUAL_LRP),
        always(2, "trace_id", Kind::Text),
    ],
};

static ACTUAL_LRP_INSTANCE_CHANGED: Shape = Shape {
    name: "ActualLRPInstanceChangedEvent",
    fields: &[
        flat(1, &ACTUAL_LRP_KEY),
        flat(2, &ACTUAL_LRP_INSTANCE_KEY),
        message(3, "before", &ACTUAL_LRP_INFO),
        message(4, "after", &ACTUAL_LRP_INFO),
        always(5, "trace_id", Kind::Text),
    ],
};

static ACTUAL_LRP_INSTANCE_REMOVED: Shape = Shape {
    name: "ActualLRPInstanceRemovedEvent",
    fields: &[
        message(1, "actual_lrp", &ACTUAL_LRP),
        always(2, "trace_id", Kind::Text),
    ],
};

static ACTUAL_LRP_CRASHED: Shape = Shape {
    name: "ActualLRPCrashedEvent",
    fields: &[
        flat(1, &ACTUAL_LRP_KEY),
        flat(2, &ACTUAL_LRP_INSTANCE_KEY),
        always(3, "crash_count", Kind::Int32),
        unless_zero(4, "crash_reason", Kind::Text),
        always(5, "since", Kind::Int64),
    ],
};

static TASK_CREATED: Shape = Shape {
    name: "TaskCreatedEvent",
    fields: &[message(1, "task", &TASK)],
};

static TASK_CHANGED: Shape = Shape {
    name: "TaskChangedEvent",
    fields: &[message(1, "before", &TASK), message(2, "after", &TASK)],
};

static TASK_REMOVED: Shape = Shape {
    name: "TaskRemovedEvent",
    fields: &[message(1, "task", &TASK)],
};
