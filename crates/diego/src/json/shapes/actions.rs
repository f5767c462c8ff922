//! What containers do, and what they get for it.

use super::super::{
    Form, Kind, Shape, always, field, if_sent, list, list_or_null, map, message, messages,
    unless_zero,
};

pub(super) static ENVIRONMENT_VARIABLE: Shape = Shape {
    name: "EnvironmentVariable",
    fields: &[
        always(1, "name", Kind::Text),
        always(2, "value", Kind::Text),
    ],
};

pub(super) static FILE: Shape = Shape {
    name: "File",
    fields: &[
        always(1, "path", Kind::Text),
        always(2, "content", Kind::Text),
    ],
};

pub(super) static ACTION: Shape = Shape {
    name: "Action",
    fields: &[
        message(1, "download", &DOWNLOAD),
        message(2, "upload", &UPLOAD),
        message(3, "run", &RUN),
        message(4, "timeout", &TIMEOUT),
        message(5, "emit_progress", &EMIT_PROGRESS),
        message(6, "try", &TRY),
        message(7, "parallel", &PARALLEL),
        message(8, "serial", &SERIAL),
        message(9, "codependent", &CODEPENDENT),
    ],
};

static DOWNLOAD: Shape = Shape {
    name: "DownloadAction",
    fields: &[
        unless_zero(1, "artifact", Kind::Text),
        always(2, "from", Kind::Text),
        always(3, "to", Kind::Text),
        always(4, "cache_key", Kind::Text),
        unless_zero(5, "log_source", Kind::Text),
        always(6, "user", Kind::Text),
        unless_zero(7, "checksum_algorithm", Kind::Text),
        unless_zero(8, "checksum_value", Kind::Text),
    ],
};

static UPLOAD: Shape = Shape {
    name: "UploadAction",
    fields: &[
        unless_zero(1, "artifact", Kind::Text),
        always(2, "from", Kind::Text),
        always(3, "to", Kind::Text),
        unless_zero(4, "log_source", Kind::Text),
        always(5, "user", Kind::Text),
    ],
};

static RUN: Shape = Shape {
    name: "RunAction",
    fields: &[
        always(1, "path", Kind::Text),
        list(2, "args", Kind::Text),
        unless_zero(3, "dir", Kind::Text),
        messages(4, "env", &ENVIRONMENT_VARIABLE),
        message(5, "resource_limits", &RESOURCE_LIMITS),
        always(6, "user", Kind::Text),
        unless_zero(7, "log_source", Kind::Text),
        always(8, "suppress_log_output", Kind::Bool),
        list_or_null(9, "volume_mounted_files", Kind::Message(&FILE)),
    ],
};

static RESOURCE_LIMITS: Shape = Shape {
    name: "ResourceLimits",
    fields: &[
        if_sent(1, "nofile", Kind::Uint64),
        if_sent(2, "nproc", Kind::Uint64),
    ],
};

static TIMEOUT: Shape = Shape {
    name: "TimeoutAction",
    fields: &[
        message(1, "action", &ACTION),
        unless_zero(2, "timeout", Kind::Int64),
        unless_zero(3, "log_source", Kind::Text),
        always(4, "timeout_ms", Kind::Int64),
    ],
};

static EMIT_PROGRESS: Shape = Shape {
    name: "EmitProgressAction",
    fields: &[
        message(1, "action", &ACTION),
        always(2, "start_message", Kind::Text),
        always(3, "success_message", Kind::Text),
        always(4, "failure_message_prefix", Kind::Text),
        unless_zero(5, "log_source", Kind::Text),
    ],
};

static TRY: Shape = Shape {
    name: "TryAction",
    fields: &[
        message(1, "action", &ACTION),
        unless_zero(2, "log_source", Kind::Text),
    ],
};

static PARALLEL: Shape = Shape {
    name: "ParallelAction",
    fields: &[
        messages(1, "actions", &ACTION),
        unless_zero(2, "log_source", Kind::Text),
    ],
};

static SERIAL: Shape = Shape {
    name: "SerialAction",
    fields: &[
        messages(1, "actions", &ACTION),
        unless_zero(2, "log_source", Kind::Text),
    ],
};

static CODEPENDENT: Shape = Shape {
    name: "CodependentAction",
    fields: &[
        messages(1, "actions", &ACTION),
        unless_zero(2, "log_source", Kind::Text),
    ],
};

pub(super) static CACHED_DEPENDENCY: Shape = Shape {
    name: "CachedDependency",
    fields: &[
        always(1, "name", Kind::Text),
        always(2, "from", Kind::Text),
        always(3, "to", Kind::Text),
        always(4, "cache_key", Kind::Text),
        always(5, "log_source", Kind::Text),
        unless_zero(6, "checksum_algorithm", Kind::Text),
        unless_zero(7, "checksum_value", Kind::Text),
    ],
};

pub(super) static IMAGE_LAYER: Shape = Shape {
    name: "ImageLayer",
    fields: &[
        unless_zero(1, "name", Kind::Text),
        always(2, "url", Kind::Text),
        always(3, "destination_path", Kind::Text),
        always(
            4,
            "layer_type",
            Kind::Named(&[(0, "LayerTypeInvalid"), (1, "SHARED"), (2, "EXCLUSIVE")]),
        ),
        always(
            5,
            "media_type",
            Kind::Named(&[(0, "MediaTypeInvalid"), (1, "TGZ"), (2, "TAR"), (3, "ZIP")]),
        ),
        unless_zero(
            6,
            "digest_algorithm",
            Kind::Named(&[(0, "DigestAlgorithmInvalid"), (1, "SHA256"), (2, "SHA512")]),
        ),
        unless_zero(7, "digest_value", Kind::Text),
    ],
};

pub(super) static SECURITY_GROUP_RULE: Shape = Shape {
    name: "SecurityGroupRule",
    fields: &[
        unless_zero(1, "protocol", Kind::Text),
        list(2, "destinations", Kind::Text),
        list(3, "ports", Kind::Uint32),
        message(4, "port_range", &PORT_RANGE),
        message(5, "icmp_info", &ICMP_INFO),
        always(6, "log", Kind::Bool),
        list(7, "annotations", Kind::Text),
    ],
};

static PORT_RANGE: Shape = Shape {
    name: "PortRange",
    fields: &[
        always(1, "start", Kind::Uint32),
        always(2, "end", Kind::Uint32),
    ],
};

static ICMP_INFO: Shape = Shape {
    name: "ICMPInfo",
    fields: &[
        always(1, "type", Kind::Int32),
        always(2, "code", Kind::Int32),
    ],
};

pub(super) static VOLUME_MOUNT: Shape = Shape {
    name: "VolumeMount",
    fields: &[
        always(1, "driver", Kind::Text),
        always(3, "container_dir", Kind::Text),
        always(6, "mode", Kind::Text),
        field(7, "shared", Kind::Message(&SHARED_DEVICE), Form::Always),
        field(
            8,
            "dedicated",
            Kind::Message(&DEDICATED_DEVICE),
            Form::Always,
        ),
    ],
};

static SHARED_DEVICE: Shape = Shape {
    name: "SharedDevice",
    fields: &[
        always(1, "volume_id", Kind::Text),
        always(2, "mount_config", Kind::Text),
    ],
};

static DEDICATED_DEVICE: Shape = Shape {
    name: "DedicatedDevice",
    fields: &[
        always(1, "mounter_id", Kind::Text),
        always(2, "mount_config", Kind::Text),
        always(3, "device_config", Kind::Text),
    ],
};

pub(super) static NETWORK: Shape = Shape {
    name: "Network",
    fields: &[map(1, "properties", Kind::Text)],
};

pub(super) static CERTIFICATE_PROPERTIES: Shape = Shape {
    name: "CertificateProperties",
    fields: &[list(1, "organizational_unit", Kind::Text)],
};

pub(super) static LOG_RATE_LIMIT: Shape = Shape {
    name: "LogRateLimit",
    fields: &[unless_zero(1, "bytes_per_second", Kind::Int64)],
};

pub(super) static CHECK_DEFINITION: Shape = Shape {
    name: "CheckDefinition",
    fields: &[
        messages(1, "checks", &CHECK),
        always(2, "log_source", Kind::Text),
        messages(3, "readiness_checks", &CHECK),
    ],
};

static CHECK: Shape = Shape {
    name: "Check",
    fields: &[
        message(1, "tcp_check", &TCP_CHECK),
        message(2, "http_check", &HTTP_CHECK),
    ],
};

static TCP_CHECK: Shape = Shape {
    name: "TCPCheck",
    fields: &[
        always(1, "port", Kind::Uint32),
        unless_zero(2, "connect_timeout_ms", Kind::Uint64),
        unless_zero(3, "interval_ms", Kind::Uint64),
    ],
};

static HTTP_CHECK: Shape = Shape {
    name: "HTTPCheck",
    fields: &[
        always(1, "port", Kind::Uint32),
        unless_zero(2, "request_timeout_ms", Kind::Uint64),
        always(3, "path", Kind::Text),
        unless_zero(4, "interval_ms", Kind::Uint64),
    ],
};

pub(super) static SIDECAR: Shape = Shape {
    name: "Sidecar",
    fields: &[
        message(1, "action", &ACTION),
        always(2, "disk_mb", Kind::Int32),
        always(3, "memory_mb", Kind::Int32),
    ],
};
