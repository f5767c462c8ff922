//! The loggers of a cell, by the path that each message has.

use telemetry::Logger;

/// Every line carries the cell's id.
pub(super) struct Logs {
    pub(super) cell: Logger,
    pub(super) allocate: Logger,
    pub(super) events: Logger,
    pub(super) lrp: Logger,
    pub(super) claim: Logger,
    pub(super) start: Logger,
    pub(super) remove: Logger,
    pub(super) crash: Logger,
    pub(super) task: Logger,
    pub(super) start_task: Logger,
    pub(super) create: Logger,
    pub(super) step: Logger,
    pub(super) stop: Logger,
    pub(super) bulk: Logger,
    pub(super) evacuation: Logger,
    pub(super) presence: Logger,
}

impl Logs {
    pub(super) fn new(logger: &Logger, cell_id: &str) -> Self {
        let cell = logger.with("cell-id", cell_id);
        let at = |path: &str| cell.session(path);
        Self {
            allocate: at("auction-delegate.allocate-containers"),
            events: at("event-consumer"),
            lrp: at("ordinary-lrp-processor"),
            claim: at("ordinary-lrp-processor.claim-actual-lrp"),
            start: at("ordinary-lrp-processor.start-actual-lrp"),
            remove: at("ordinary-lrp-processor.remove-actual-lrp"),
            crash: at("ordinary-lrp-processor.crash-actual-lrp"),
            task: at("task-processor"),
            start_task: at("task-processor.start-task"),
            create: at("executor.run-container.create-in-garden"),
            step: at("executor.run-container.run.run-step-process"),
            stop: at("lrp-stopper.stop"),
            bulk: at("bulk-sync"),
            evacuation: at("evacuation"),
            presence: at("presence"),
            cell,
        }
    }
}
