//! Loggers of the calls, made once.

use telemetry::{Fields, Logger};

/// One logger for each call that says something.
pub(crate) struct Logs {
    pub(super) request: Logger,
    pub(super) desire_task: Logger,
    pub(super) start_task: Logger,
    pub(super) complete_task: Logger,
    pub(super) delete_task: Logger,
    pub(super) desire_lrp: Logger,
    pub(super) update_lrp: Logger,
    pub(super) crash: Logger,
    pub(super) crash_create: Logger,
    pub(super) claim: Logger,
    pub(super) start: Logger,
    pub(super) remove: Logger,
    pub(super) retire: Logger,
}

impl Logs {
    pub(crate) fn new(logger: &Logger) -> Self {
        const CREATE: &str = "create-unclaimed-actual-lrp";
        let request = logger.session("request");
        Self {
            desire_task: request.session("desire-task"),
            start_task: request.session("start-task"),
            complete_task: request.session("complete-task"),
            delete_task: request.session("delete-task"),
            desire_lrp: request.session("desire-lrp").session(CREATE),
            update_lrp: request.session("update-desired-lrp").session(CREATE),
            crash_create: request.session("crash-actual-lrp").session(CREATE),
            crash: request.session("crash-actual-lrp"),
            claim: request.session("claim-actual-lrp"),
            start: request.session("start-actual-lrp"),
            remove: request.session("remove-actual-lrp"),
            retire: request.session("retire-actual-lrp"),
            request,
        }
    }
}

/// One line for each index that was created.
pub(super) fn created(logger: &Logger, process_guid: &str, indices: &[i32]) {
    for index in indices {
        let fields = Fields::new()
            .and("process-guid", process_guid)
            .and("index", index);
        logger.info("starting", fields);
    }
}
