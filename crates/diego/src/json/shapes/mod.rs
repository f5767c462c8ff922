//! The messages that are printed and read.

/// Each with its name in `bbs.proto` and its fields.
macro_rules! shapes {
    ($(
        $(#[$doc:meta])*
        $visibility:vis $name:ident = $message:literal: [$($field:expr),+ $(,)?];
    )+) => {
        $($(#[$doc])* $visibility static $name: Shape = Shape {
            name: $message,
            fields: &[$($field),+],
        };)+
    };
}

mod actions;
mod actual;
mod cells;
mod desired;
mod events;
mod locks;
mod tasks;

pub use actual::{ACTUAL_LRP, ACTUAL_LRP_GROUP};
pub use cells::CELL_PRESENCE;
pub use desired::{DESIRED_LRP, DESIRED_LRP_SCHEDULING_INFO, DESIRED_LRP_UPDATE};
pub use events::of_event;
pub use locks::RESOURCE;
pub use tasks::TASK;

use super::{Kind, Shape, always, unless_zero};

shapes! {
    MODIFICATION_TAG = "ModificationTag": [
        always(1, "epoch", Kind::Text),
        always(2, "index", Kind::Uint32),
    ];
    METRIC_TAG_VALUE = "MetricTagValue": [
        unless_zero(1, "static", Kind::Text),
        unless_zero(
            2,
            "dynamic",
            Kind::Named(&[
                (0, "DynamicValueInvalid"),
                (1, "INDEX"),
                (2, "INSTANCE_GUID"),
            ]),
        ),
    ];
}
