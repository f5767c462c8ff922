//! Cells.

use super::super::{Form, Kind, Shape, always, field, list, message, messages};

/// `CellPresence`.
pub static CELL_PRESENCE: Shape = Shape {
    name: "CellPresence",
    fields: &[
        always(1, "cell_id", Kind::Text),
        always(2, "rep_address", Kind::Text),
        always(3, "zone", Kind::Text),
        message(4, "capacity", &CELL_CAPACITY),
        messages(5, "rootfs_provider_list", &PROVIDER),
        list(6, "placement_tags", Kind::Text),
        list(7, "optional_placement_tags", Kind::Text),
        always(8, "rep_url", Kind::Text),
        field(9, "annotations", Kind::Text, Form::MapAlways),
    ],
};

static CELL_CAPACITY: Shape = Shape {
    name: "CellCapacity",
    fields: &[
        always(1, "memory_mb", Kind::Int32),
        always(2, "disk_mb", Kind::Int32),
        always(3, "containers", Kind::Int32),
    ],
};

static PROVIDER: Shape = Shape {
    name: "Provider",
    fields: &[
        always(1, "name", Kind::Text),
        list(2, "properties", Kind::Text),
    ],
};
