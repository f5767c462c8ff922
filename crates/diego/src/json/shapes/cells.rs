//! Cells.

use super::super::{Form, Kind, Shape, always, field, list, message, messages};

shapes! {
    /// `CellPresence`.
    pub CELL_PRESENCE = "CellPresence": [
        always(1, "cell_id", Kind::Text),
        always(2, "rep_address", Kind::Text),
        always(3, "zone", Kind::Text),
        message(4, "capacity", &CELL_CAPACITY),
        messages(5, "rootfs_provider_list", &PROVIDER),
        list(6, "placement_tags", Kind::Text),
        list(7, "optional_placement_tags", Kind::Text),
        always(8, "rep_url", Kind::Text),
        field(9, "annotations", Kind::Text, Form::MapAlways),
    ];
    CELL_CAPACITY = "CellCapacity": [
        always(1, "memory_mb", Kind::Int32),
        always(2, "disk_mb", Kind::Int32),
        always(3, "containers", Kind::Int32),
    ];
    PROVIDER = "Provider": [
        always(1, "name", Kind::Text),
        list(2, "properties", Kind::Text),
    ];
}
