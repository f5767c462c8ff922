//! Desired LRPs.

use super::super::{
    Form, Kind, Shape, always, field, flat, if_sent, list, list_or_null, map, message, messages,
    unless_zero,
};
use super::actions::{
    ACTION, CACHED_DEPENDENCY, CERTIFICATE_PROPERTIES, CHECK_DEFINITION, ENVIRONMENT_VARIABLE,
    FILE, IMAGE_LAYER, LOG_RATE_LIMIT, NETWORK, SECURITY_GROUP_RULE, SIDECAR, VOLUME_MOUNT,
};
use super::{METRIC_TAG_VALUE, MODIFICATION_TAG};

shapes! {
    /// `DesiredLRP`.
    pub DESIRED_LRP = "DesiredLRP": [
        always(1, "process_guid", Kind::Text),
        always(2, "domain", Kind::Text),
        always(3, "rootfs", Kind::Text),
        always(4, "instances", Kind::Int32),
        list_or_null(5, "env", Kind::Message(&ENVIRONMENT_VARIABLE)),
        message(6, "setup", &ACTION),
        message(7, "action", &ACTION),
        always(27, "start_timeout_ms", Kind::Int64),
        unless_zero(8, "deprecated_timeout_ns", Kind::Uint32),
        message(9, "monitor", &ACTION),
        always(10, "disk_mb", Kind::Int32),
        always(11, "memory_mb", Kind::Int32),
        always(12, "cpu_weight", Kind::Uint32),
        always(13, "privileged", Kind::Bool),
        list(14, "ports", Kind::Uint32),
        field(15, "routes", Kind::Routes, Form::UnlessZero),
        always(16, "log_source", Kind::Text),
        always(17, "log_guid", Kind::Text),
        always(18, "metrics_guid", Kind::Text),
        always(19, "annotation", Kind::Text),
        messages(20, "egress_rules", &SECURITY_GROUP_RULE),
        message(21, "modification_tag", &MODIFICATION_TAG),
        messages(22, "cached_dependencies", &CACHED_DEPENDENCY),
        unless_zero(23, "legacy_download_user", Kind::Text),
        unless_zero(24, "trusted_system_certificates_path", Kind::Text),
        messages(25, "volume_mounts", &VOLUME_MOUNT),
        message(26, "network", &NETWORK),
        list(28, "placement_tags", Kind::Text),
        always(29, "max_pids", Kind::Int32),
        message(30, "certificate_properties", &CERTIFICATE_PROPERTIES),
        unless_zero(31, "image_username", Kind::Text),
        unless_zero(32, "image_password", Kind::Text),
        message(33, "check_definition", &CHECK_DEFINITION),
        messages(34, "image_layers", &IMAGE_LAYER),
        map(35, "metric_tags", Kind::Message(&METRIC_TAG_VALUE)),
        messages(36, "sidecars", &SIDECAR),
        message(37, "log_rate_limit", &LOG_RATE_LIMIT),
        list_or_null(38, "volume_mounted_files", Kind::Message(&FILE)),
        // An enum, printed as its number.
        always(39, "update_strategy", Kind::Int32),
    ];

    /// `DesiredLRPUpdate`: what is absent stays as it is.
    pub DESIRED_LRP_UPDATE = "DesiredLRPUpdate": [
        if_sent(1, "instances", Kind::Int32),
        field(2, "routes", Kind::Routes, Form::UnlessZero),
        if_sent(3, "annotation", Kind::Text),
        map(4, "metric_tags", Kind::Message(&METRIC_TAG_VALUE)),
        if_sent(5, "image_username", Kind::Text),
        if_sent(6, "image_password", Kind::Text),
    ];

    /// `DesiredLRPSchedulingInfo`.
    pub DESIRED_LRP_SCHEDULING_INFO = "DesiredLRPSchedulingInfo": [
        flat(1, &DESIRED_LRP_KEY),
        always(2, "annotation", Kind::Text),
        always(3, "instances", Kind::Int32),
        flat(4, &DESIRED_LRP_RESOURCE),
        always(5, "routes", Kind::Routes),
        flat(6, &MODIFICATION_TAG),
        message(7, "volume_placement", &VOLUME_PLACEMENT),
        list(8, "placement_tags", Kind::Text),
    ];
    DESIRED_LRP_KEY = "DesiredLRPKey": [
        always(1, "process_guid", Kind::Text),
        always(2, "domain", Kind::Text),
        always(3, "log_guid", Kind::Text),
    ];
    DESIRED_LRP_RESOURCE = "DesiredLRPResource": [
        always(1, "memory_mb", Kind::Int32),
        always(2, "disk_mb", Kind::Int32),
        always(3, "rootfs", Kind::Text),
        always(4, "max_pids", Kind::Int32),
    ];
    VOLUME_PLACEMENT = "VolumePlacement": [list_or_null(1, "driver_names", Kind::Text)];
}
