//! The deprecated view of an index: one instance and one evacuating record.

use std::sync::Arc;

use diego::models::{ActualLrp, ActualLrpGroup};

use super::slot::{CLAIMED, RUNNING, Slot};

/// The record that stands for the index: the ordinary one, unless the suspect one
/// is further on its way.
pub fn instance(slot: &Slot) -> Option<&Arc<ActualLrp>> {
    match (&slot.ordinary, &slot.suspect) {
        (Some(ordinary), Some(suspect)) => {
            let suspect_serves = matches!(suspect.state.as_str(), RUNNING | CLAIMED);
            if ordinary.state != RUNNING && suspect_serves {
                Some(suspect)
            } else {
                Some(ordinary)
            }
        }
        (ordinary, suspect) => ordinary.as_ref().or(suspect.as_ref()),
    }
}

/// The group of an index; `None` when there is no record.
pub fn group(slot: &Slot) -> Option<ActualLrpGroup> {
    let group = ActualLrpGroup {
        instance: instance(slot).map(|row| ActualLrp::clone(row)),
        evacuating: slot.evacuating.as_deref().cloned(),
    };
    (group.instance.is_some() || group.evacuating.is_some()).then_some(group)
}
