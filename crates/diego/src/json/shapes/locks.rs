//! What Locket keeps.

use super::super::{Kind, Shape, unless_zero};

shapes! {
    /// Locket's `Resource`: a lock or a presence.
    pub RESOURCE = "Resource": [
        unless_zero(1, "key", Kind::Text),
        unless_zero(2, "owner", Kind::Text),
        unless_zero(3, "value", Kind::Text),
        unless_zero(4, "type", Kind::Text),
        // An enum, printed as its number.
        unless_zero(5, "type_code", Kind::Int32),
    ];
}
