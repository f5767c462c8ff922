//! The few fields that counting needs, so that an event costs little to decode.

use prost::Message;

/// Of `models.Task`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TaskHead {
    #[prost(string, tag = "2")]
    pub(super) task_guid: String,
    #[prost(int64, tag = "5")]
    pub(super) updated_at: i64,
    #[prost(int32, tag = "7")]
    pub(super) state: i32,
    #[prost(bool, tag = "10")]
    pub(super) failed: bool,
}

/// `TaskCreatedEvent` and `TaskRemovedEvent`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TaskEvent {
    #[prost(message, optional, tag = "1")]
    pub(super) task: Option<TaskHead>,
}

/// Of `TaskChangedEvent`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TaskChanged {
    #[prost(message, optional, tag = "2")]
    pub(super) after: Option<TaskHead>,
}

/// Of `ActualLRPKey`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Key {
    #[prost(string, tag = "1")]
    pub(super) process_guid: String,
    #[prost(int32, tag = "2")]
    pub(super) index: i32,
}

/// `ModificationTag`: the epoch names a record, the index counts its changes.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Tag {
    #[prost(string, tag = "1")]
    pub(super) epoch: String,
    #[prost(uint32, tag = "2")]
    pub(super) index: u32,
}

/// Of `ActualLRP`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InstanceHead {
    #[prost(message, optional, tag = "1")]
    pub(super) key: Option<Key>,
    #[prost(string, tag = "6")]
    pub(super) state: String,
    #[prost(message, optional, tag = "9")]
    pub(super) tag: Option<Tag>,
}

/// `ActualLRPInstanceCreatedEvent` and `ActualLRPInstanceRemovedEvent`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InstanceEvent {
    #[prost(message, optional, tag = "1")]
    pub(super) instance: Option<InstanceHead>,
}

/// Of `ActualLRPInfo`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InstanceInfo {
    #[prost(string, tag = "6")]
    pub(super) state: String,
    #[prost(message, optional, tag = "9")]
    pub(super) tag: Option<Tag>,
}

/// Of `ActualLRPInstanceChangedEvent`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InstanceChanged {
    #[prost(message, optional, tag = "1")]
    pub(super) key: Option<Key>,
    #[prost(message, optional, tag = "4")]
    pub(super) after: Option<InstanceInfo>,
}

/// Of `TasksResponse`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TaskList {
    #[prost(message, optional, tag = "1")]
    pub(super) error: Option<diego::models::Error>,
    #[prost(message, repeated, tag = "2")]
    pub(super) tasks: Vec<TaskHead>,
}

/// Of `ActualLRPsResponse`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InstanceList {
    #[prost(message, optional, tag = "1")]
    pub(super) error: Option<diego::models::Error>,
    #[prost(message, repeated, tag = "2")]
    pub(super) instances: Vec<InstanceHead>,
}

impl diego::Failed for TaskList {
    fn failed(&mut self) -> Option<diego::models::Error> {
        self.error.take()
    }
}

impl diego::Failed for InstanceList {
    fn failed(&mut self) -> Option<diego::models::Error> {
        self.error.take()
    }
}
