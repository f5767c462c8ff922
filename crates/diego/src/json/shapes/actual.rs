//! Actual LRPs.

use super::super::{
    Form, Kind, Shape, always, field, flat, list_or_null, map, message, messages, unless_zero,
    whole,
};
use super::MODIFICATION_TAG;

shapes! {
    /// `ActualLRP`.
    pub ACTUAL_LRP = "ActualLRP": [
        flat(1, &ACTUAL_LRP_KEY),
        flat(2, &ACTUAL_LRP_INSTANCE_KEY),
        flat(3, &ACTUAL_LRP_NET_INFO),
        always(4, "crash_count", Kind::Int32),
        unless_zero(5, "crash_reason", Kind::Text),
        always(6, "state", Kind::Text),
        unless_zero(7, "placement_error", Kind::Text),
        always(8, "since", Kind::Int64),
        whole(9, "modification_tag", &MODIFICATION_TAG),
        always(10, "presence", PRESENCE),
        messages(11, "actual_lrp_internal_routes", &INTERNAL_ROUTE),
        map(12, "metric_tags", Kind::Text),
        field(
            13,
            "OptionalRoutable",
            Kind::Bool,
            Form::Within {
                key: "routable",
                false_too: true,
            },
        ),
        always(14, "availability_zone", Kind::Text),
    ];

    /// `ActualLRPGroup`: what a process and an index have, as it was once answered.
    pub ACTUAL_LRP_GROUP = "ActualLRPGroup": [
        message(1, "instance", &ACTUAL_LRP),
        message(2, "evacuating", &ACTUAL_LRP),
    ];

    /// `ActualLRPInfo`: an instance in events, where its keys stand beside it.
    pub(super) ACTUAL_LRP_INFO = "ActualLRPInfo": [
        flat(3, &ACTUAL_LRP_NET_INFO),
        always(4, "crash_count", Kind::Int32),
        unless_zero(5, "crash_reason", Kind::Text),
        always(6, "state", Kind::Text),
        unless_zero(7, "placement_error", Kind::Text),
        always(8, "since", Kind::Int64),
        whole(9, "modification_tag", &MODIFICATION_TAG),
        always(10, "presence", PRESENCE),
        field(
            11,
            "OptionalRoutable",
            Kind::Bool,
            Form::Within {
                key: "Routable",
                false_too: false,
            },
        ),
        always(12, "availability_zone", Kind::Text),
    ];
    pub(super) ACTUAL_LRP_KEY = "ActualLRPKey": [
        always(1, "process_guid", Kind::Text),
        always(2, "index", Kind::Int32),
        always(3, "domain", Kind::Text),
    ];
    pub(super) ACTUAL_LRP_INSTANCE_KEY = "ActualLRPInstanceKey": [
        always(1, "instance_guid", Kind::Text),
        always(2, "cell_id", Kind::Text),
    ];
    ACTUAL_LRP_NET_INFO = "ActualLRPNetInfo": [
        always(1, "address", Kind::Text),
        list_or_null(2, "ports", Kind::Message(&PORT_MAPPING)),
        unless_zero(3, "instance_address", Kind::Text),
        always(
            4,
            "preferred_address",
            Kind::Named(&[(0, "UNKNOWN"), (1, "INSTANCE"), (2, "HOST")]),
        ),
        unless_zero(5, "instance_ipv6_address", Kind::Text),
    ];
    PORT_MAPPING = "PortMapping": [
        always(1, "container_port", Kind::Uint32),
        always(2, "host_port", Kind::Uint32),
        always(3, "container_tls_proxy_port", Kind::Uint32),
        always(4, "host_tls_proxy_port", Kind::Uint32),
    ];
    INTERNAL_ROUTE = "ActualLRPInternalRoute": [always(1, "hostname", Kind::Text)];
}

const PRESENCE: Kind = Kind::Named(&[(0, "ORDINARY"), (1, "EVACUATING"), (2, "SUSPECT")]);
