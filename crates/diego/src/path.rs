//! Paths of the BBS API. All are POST, except where a name says otherwise.

macro_rules! paths {
    ($($(#[$doc:meta])* $name:ident = $path:literal;)*) => {
        $($(#[$doc])* pub const $name: &str = $path;)*
    };
}

paths! {
    /// `PingResponse`; the body of the request is not read.
    PING = "/v1/ping";
    /// `DomainsResponse`; the body of the request is not read.
    DOMAINS = "/v1/domains/list";
    /// `UpsertDomainRequest`.
    UPSERT_DOMAIN = "/v1/domains/upsert";
    /// `CellsResponse`.
    CELLS = "/v1/cells/list.r1";

    /// `ActualLRPsRequest`.
    ACTUAL_LRPS = "/v1/actual_lrps/list";
    /// `ActualLRPsByProcessGuidsRequest`.
    ACTUAL_LRPS_BY_PROCESS_GUIDS = "/v1/actual_lrps/list_by_process_guids";
    /// `ActualLRPGroupsRequest`; deprecated upstream.
    ACTUAL_LRP_GROUPS = "/v1/actual_lrp_groups/list";
    /// `ActualLRPGroupsByProcessGuidRequest`; deprecated upstream.
    ACTUAL_LRP_GROUPS_BY_PROCESS_GUID = "/v1/actual_lrp_groups/list_by_process_guid";
    /// `ActualLRPGroupByProcessGuidAndIndexRequest`; deprecated upstream.
    ACTUAL_LRP_GROUP_BY_PROCESS_GUID_AND_INDEX =
        "/v1/actual_lrp_groups/get_by_process_guid_and_index";
    /// `ClaimActualLRPRequest`.
    CLAIM_ACTUAL_LRP = "/v1/actual_lrps/claim";
    /// `StartActualLRPRequest`.
    START_ACTUAL_LRP = "/v1/actual_lrps/start.r1";
    /// `StartActualLRPRequest` without internal routes and metric tags.
    START_ACTUAL_LRP_R0 = "/v1/actual_lrps/start";
    /// `CrashActualLRPRequest`.
    CRASH_ACTUAL_LRP = "/v1/actual_lrps/crash";
    /// `FailActualLRPRequest`.
    FAIL_ACTUAL_LRP = "/v1/actual_lrps/fail";
    /// `RemoveActualLRPRequest`.
    REMOVE_ACTUAL_LRP = "/v1/actual_lrps/remove";
    /// `RetireActualLRPRequest`.
    RETIRE_ACTUAL_LRP = "/v1/actual_lrps/retire";
    /// `RemoveEvacuatingActualLRPRequest`.
    REMOVE_EVACUATING_ACTUAL_LRP = "/v1/actual_lrps/remove_evacuating";
    /// `EvacuateClaimedActualLRPRequest`.
    EVACUATE_CLAIMED_ACTUAL_LRP = "/v1/actual_lrps/evacuate_claimed";
    /// `EvacuateCrashedActualLRPRequest`.
    EVACUATE_CRASHED_ACTUAL_LRP = "/v1/actual_lrps/evacuate_crashed";
    /// `EvacuateStoppedActualLRPRequest`.
    EVACUATE_STOPPED_ACTUAL_LRP = "/v1/actual_lrps/evacuate_stopped";
    /// `EvacuateRunningActualLRPRequest`.
    EVACUATE_RUNNING_ACTUAL_LRP = "/v1/actual_lrps/evacuate_running.r1";
    /// `EvacuateRunningActualLRPRequest` without internal routes and metric tags.
    EVACUATE_RUNNING_ACTUAL_LRP_R0 = "/v1/actual_lrps/evacuate_running";

    /// `DesiredLRPsRequest` to scheduling infos.
    DESIRED_LRP_SCHEDULING_INFOS = "/v1/desired_lrp_scheduling_infos/list";
    /// `DesiredLRPByProcessGuidRequest` to one scheduling info.
    DESIRED_LRP_SCHEDULING_INFO = "/v1/desired_lrp_scheduling_infos/get_by_process_guid";
    /// `DesiredLRPsRequest` to the parts that routing needs.
    DESIRED_LRP_ROUTING_INFOS = "/v1/desired_lrp_routing_infos/list";
    /// `DesiredLRPsRequest`.
    DESIRED_LRPS = "/v1/desired_lrps/list.r3";
    /// `DesiredLRPByProcessGuidRequest`.
    DESIRED_LRP_BY_PROCESS_GUID = "/v1/desired_lrps/get_by_process_guid.r3";
    /// `DesiredLRPsRequest`, answered in the second version's form.
    DESIRED_LRPS_R2 = "/v1/desired_lrps/list.r2";
    /// `DesiredLRPByProcessGuidRequest`, answered in the second version's form.
    DESIRED_LRP_BY_PROCESS_GUID_R2 = "/v1/desired_lrps/get_by_process_guid.r2";
    /// `DesireLRPRequest`.
    DESIRE_LRP = "/v1/desired_lrp/desire.r2";
    /// `UpdateDesiredLRPRequest`.
    UPDATE_DESIRED_LRP = "/v1/desired_lrp/update";
    /// `RemoveDesiredLRPRequest`.
    REMOVE_DESIRED_LRP = "/v1/desired_lrp/remove";

    /// `TasksRequest`.
    TASKS = "/v1/tasks/list.r3";
    /// `TasksRequest`, answered in the second version's form.
    TASKS_R2 = "/v1/tasks/list.r2";
    /// `TaskByGuidRequest`.
    TASK_BY_GUID = "/v1/tasks/get_by_task_guid.r3";
    /// `TaskByGuidRequest`, answered in the second version's form.
    TASK_BY_GUID_R2 = "/v1/tasks/get_by_task_guid.r2";
    /// `DesireTaskRequest`.
    DESIRE_TASK = "/v1/tasks/desire.r2";
    /// `StartTaskRequest`.
    START_TASK = "/v1/tasks/start";
    /// `TaskGuidRequest`.
    CANCEL_TASK = "/v1/tasks/cancel";
    /// `FailTaskRequest`; deprecated upstream.
    FAIL_TASK = "/v1/tasks/fail";
    /// `RejectTaskRequest`.
    REJECT_TASK = "/v1/tasks/reject";
    /// `CompleteTaskRequest`.
    COMPLETE_TASK = "/v1/tasks/complete";
    /// `TaskGuidRequest`.
    RESOLVING_TASK = "/v1/tasks/resolving";
    /// `TaskGuidRequest`.
    DELETE_TASK = "/v1/tasks/delete";

    /// GET with `EventsByCellId` as body: desired LRPs and groups of actual LRPs.
    GROUP_EVENTS = "/v1/events.r1";
    /// As [`GROUP_EVENTS`], in the first version's form.
    GROUP_EVENTS_R0 = "/v1/events";
    /// Events of tasks; no body.
    TASK_EVENTS = "/v1/events/tasks.r1";
    /// As [`TASK_EVENTS`], in the first version's form.
    TASK_EVENTS_R0 = "/v1/events/tasks";
    /// `EventsByCellId`: desired LRPs and instances of actual LRPs.
    INSTANCE_EVENTS = "/v1/events/lrp_instances.r1";
    /// As [`INSTANCE_EVENTS`], in the first version's form.
    INSTANCE_EVENTS_R0 = "/v1/events/lrp_instances";

    /// Locket's `LockRequest`: take or renew a lock or a presence.
    LOCKET_LOCK = "/models.Locket/Lock";
    /// Locket's `ReleaseRequest`.
    LOCKET_RELEASE = "/models.Locket/Release";
    /// Locket's `FetchRequest`.
    LOCKET_FETCH = "/models.Locket/Fetch";
    /// Locket's `FetchAllRequest`.
    LOCKET_FETCH_ALL = "/models.Locket/FetchAll";
}
