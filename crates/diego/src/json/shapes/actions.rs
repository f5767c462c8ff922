//! What containers do, and what they get for it.

use super::super::{
    Form, Kind, Shape, always, field, if_sent, list, list_or_null, map, message, messages,
    unless_zero,
};

shapes! {
    pub(super) ENVIRONMENT_VARIABLE = "EnvironmentVariable": [
        always(1, "name", Kind::Text),
        always(2, "value", Kind::Text),
    ];
    pub(super) FILE = "File": [
        always(1, "path", Kind::Text),
        always(2, "content", Kind::Text),
    ];
    pub(super) ACTION = "Action": [
        message(1, "download", &DOWNLOAD),
        message(2, "upload", &UPLOAD),
        message(3, "run", &RUN),
        message(4, "timeout", &TIMEOUT),
        message(5, "emit_progress", &EMIT_PROGRESS),
        message(6, "try", &TRY),
        message(7, "parallel", &PARALLEL),
        message(8, "serial", &SERIAL),
        message(9, "codependent", &CODEPENDENT),
    ];
    DOWNLOAD = "DownloadAction": [
        unless_zero(1, "artifact", Kind::Text),
        always(2, "from", Kind::Text),
        always(3, "to", Kind::Text),
        always(4, "cache_key", Kind::Text),
        unless_zero(5, "log_source", Kind::Text),
        always(6, "user", Kind::Text),
        unless_zero(7, "checksum_algorithm", Kind::Text),
        unless_zero(8, "checksum_value", Kind::Text),
    ];
    UPLOAD = "UploadAction": [
        unless_zero(1, "artifact", Kind::Text),
        always(2, "from", Kind::Text),
        always(3, "to", Kind::Text),
        unless_zero(4, "log_source", Kind::Text),
        always(5, "user", Kind::Text),
    ];
    RUN = "RunAction": [
        always(1, "path", Kind::Text),
        list(2, "args", Kind::Text),
        unless_zero(3, "dir", Kind::Text),
        messages(4, "env", &ENVIRONMENT_VARIABLE),
        message(5, "resource_limits", &RESOURCE_LIMITS),
        always(6, "user", Kind::Text),
        unless_zero(7, "log_source", Kind::Text),
        always(8, "suppress_log_output", Kind::Bool),
        list_or_null(9, "volume_mounted_files", Kind::Message(&FILE)),
    ];
    RESOURCE_LIMITS = "ResourceLimits": [
        if_sent(1, "nofile", Kind::Uint64),
        if_sent(2, "nproc", Kind::Uint64),
    ];
    TIMEOUT = "TimeoutAction": [
        message(1, "action", &ACTION),
        unless_zero(2, "timeout", Kind::Int64),
        unless_zero(3, "log_source", Kind::Text),
        always(4, "timeout_ms", Kind::Int64),
    ];
    EMIT_PROGRESS = "EmitProgressAction": [
        message(1, "action", &ACTION),
        always(2, "start_message", Kind::Text),
        always(3, "success_message", Kind::Text),
        always(4, "failure_message_prefix", Kind::Text),
        unless_zero(5, "log_source", Kind::Text),
    ];
    TRY = "TryAction": [
        message(1, "action", &ACTION),
        unless_zero(2, "log_source", Kind::Text),
    ];
    PARALLEL = "ParallelAction": [
        messages(1, "actions", &ACTION),
        unless_zero(2, "log_source", Kind::Text),
    ];
    SERIAL = "SerialAction": [
        messages(1, "actions", &ACTION),
        unless_zero(2, "log_source", Kind::Text),
    ];
    CODEPENDENT = "CodependentAction": [
        messages(1, "actions", &ACTION),
        unless_zero(2, "log_source", Kind::Text),
    ];
    pub(super) CACHED_DEPENDENCY = "CachedDependency": [
        always(1, "name", Kind::Text),
        always(2, "from", Kind::Text),
        always(3, "to", Kind::Text),
        always(4, "cache_key", Kind::Text),
        always(5, "log_source", Kind::Text),
        unless_zero(6, "checksum_algorithm", Kind::Text),
        unless_zero(7, "checksum_value", Kind::Text),
    ];
    pub(super) IMAGE_LAYER = "ImageLayer": [
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
    ];
    pub(super) SECURITY_GROUP_RULE = "SecurityGroupRule": [
        unless_zero(1, "protocol", Kind::Text),
        list(2, "destinations", Kind::Text),
        list(3, "ports", Kind::Uint32),
        message(4, "port_range", &PORT_RANGE),
        message(5, "icmp_info", &ICMP_INFO),
        always(6, "log", Kind::Bool),
        list(7, "annotations", Kind::Text),
    ];
    PORT_RANGE = "PortRange": [
        always(1, "start", Kind::Uint32),
        always(2, "end", Kind::Uint32),
    ];
    ICMP_INFO = "ICMPInfo": [
        always(1, "type", Kind::Int32),
        always(2, "code", Kind::Int32),
    ];
    pub(super) VOLUME_MOUNT = "VolumeMount": [
        always(1, "driver", Kind::Text),
        always(3, "container_dir", Kind::Text),
        always(6, "mode", Kind::Text),
        field(7, "shared", Kind::Message(&SHARED_DEVICE), Form::Always),
        field(8, "dedicated", Kind::Message(&DEDICATED_DEVICE), Form::Always),
    ];
    SHARED_DEVICE = "SharedDevice": [
        always(1, "volume_id", Kind::Text),
        always(2, "mount_config", Kind::Text),
    ];
    DEDICATED_DEVICE = "DedicatedDevice": [
        always(1, "mounter_id", Kind::Text),
        always(2, "mount_config", Kind::Text),
        always(3, "device_config", Kind::Text),
    ];
    pub(super) NETWORK = "Network": [map(1, "properties", Kind::Text)];
    pub(super) CERTIFICATE_PROPERTIES = "CertificateProperties": [
        list(1, "organizational_unit", Kind::Text),
    ];
    pub(super) LOG_RATE_LIMIT = "LogRateLimit": [unless_zero(1, "bytes_per_second", Kind::Int64)];
    pub(super) CHECK_DEFINITION = "CheckDefinition": [
        messages(1, "checks", &CHECK),
        always(2, "log_source", Kind::Text),
        messages(3, "readiness_checks", &CHECK),
    ];
    CHECK = "Check": [
        message(1, "tcp_check", &TCP_CHECK),
        message(2, "http_check", &HTTP_CHECK),
    ];
    TCP_CHECK = "TCPCheck": [
        always(1, "port", Kind::Uint32),
        unless_zero(2, "connect_timeout_ms", Kind::Uint64),
        unless_zero(3, "interval_ms", Kind::Uint64),
    ];
    HTTP_CHECK = "HTTPCheck": [
        always(1, "port", Kind::Uint32),
        unless_zero(2, "request_timeout_ms", Kind::Uint64),
        always(3, "path", Kind::Text),
        unless_zero(4, "interval_ms", Kind::Uint64),
    ];
    pub(super) SIDECAR = "Sidecar": [
        message(1, "action", &ACTION),
        always(2, "disk_mb", Kind::Int32),
        always(3, "memory_mb", Kind::Int32),
    ];
}
