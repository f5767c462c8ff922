//! Tasks.

use super::super::{
    Form, Kind, Shape, always, field, list, list_or_null, map, message, messages, unless_zero,
};
use super::METRIC_TAG_VALUE;
use super::actions::{
    ACTION, CACHED_DEPENDENCY, CERTIFICATE_PROPERTIES, ENVIRONMENT_VARIABLE, FILE, IMAGE_LAYER,
    LOG_RATE_LIMIT, NETWORK, SECURITY_GROUP_RULE, VOLUME_MOUNT,
};

shapes! {
    /// `Task`, with its definition's keys among its own.
    pub TASK = "Task": [
        field(1, "", Kind::Message(&TASK_DEFINITION), Form::FlatIfSent),
        always(2, "task_guid", Kind::Text),
        always(3, "domain", Kind::Text),
        always(4, "created_at", Kind::Int64),
        always(5, "updated_at", Kind::Int64),
        always(6, "first_completed_at", Kind::Int64),
        always(
            7,
            "state",
            Kind::Named(&[
                (0, "Invalid"),
                (1, "Pending"),
                (2, "Running"),
                (3, "Completed"),
                (4, "Resolving"),
            ]),
        ),
        always(8, "cell_id", Kind::Text),
        always(9, "result", Kind::Text),
        always(10, "failed", Kind::Bool),
        always(11, "failure_reason", Kind::Text),
        always(12, "rejection_count", Kind::Int32),
        always(13, "rejection_reason", Kind::Text),
    ];
    TASK_DEFINITION = "TaskDefinition": [
        always(1, "rootfs", Kind::Text),
        messages(2, "env", &ENVIRONMENT_VARIABLE),
        message(3, "action", &ACTION),
        always(4, "disk_mb", Kind::Int32),
        always(5, "memory_mb", Kind::Int32),
        always(6, "cpu_weight", Kind::Uint32),
        always(7, "privileged", Kind::Bool),
        always(8, "log_source", Kind::Text),
        always(9, "log_guid", Kind::Text),
        always(10, "metrics_guid", Kind::Text),
        always(11, "result_file", Kind::Text),
        unless_zero(12, "completion_callback_url", Kind::Text),
        unless_zero(13, "annotation", Kind::Text),
        messages(14, "egress_rules", &SECURITY_GROUP_RULE),
        messages(15, "cached_dependencies", &CACHED_DEPENDENCY),
        unless_zero(16, "legacy_download_user", Kind::Text),
        unless_zero(17, "trusted_system_certificates_path", Kind::Text),
        messages(18, "volume_mounts", &VOLUME_MOUNT),
        message(19, "network", &NETWORK),
        list(20, "placement_tags", Kind::Text),
        always(21, "max_pids", Kind::Int32),
        message(22, "certificate_properties", &CERTIFICATE_PROPERTIES),
        always(23, "image_username", Kind::Text),
        always(24, "image_password", Kind::Text),
        messages(25, "image_layers", &IMAGE_LAYER),
        message(26, "log_rate_limit", &LOG_RATE_LIMIT),
        map(27, "metric_tags", Kind::Message(&METRIC_TAG_VALUE)),
        list_or_null(28, "volume_mounted_files", Kind::Message(&FILE)),
    ];
}
