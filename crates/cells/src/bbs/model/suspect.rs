//! Instances on cells that have disappeared: they may run still, so they stay until somebody knows.

use std::sync::Arc;

use diego::error::{Type, error};
use diego::models::actual_lrp::Presence;
use diego::models::{ActualLrp, Error};

use super::Context;
use super::actual::unclaimed;
use super::slot::{Row, Slot};

/// The instance's cell has disappeared: it becomes suspect, and a new record wants a cell. The
/// instance itself has not changed, so its modification tag stays.
///
/// # Errors
/// ResourceNotFound without an ordinary record, ResourceExists beside a suspect one.
pub fn suspect(slot: &mut Slot, context: &mut Context<'_>) -> Result<(), Error> {
    let row = slot.ordinary.as_ref();
    let row = row.ok_or_else(|| error(Type::ResourceNotFound))?;
    if slot.suspect.is_some() {
        return Err(error(Type::ResourceExists));
    }
    let replacement = unclaimed(row.key().clone(), context);
    let suspect = with_presence(row, Presence::Suspect);
    slot.suspect = Some(Arc::new(suspect));
    slot.ordinary = Some(Arc::new(replacement));
    Ok(())
}

/// The suspect's cell is back: it is the ordinary instance again, and its replacement goes, in
/// whatever state that is.
///
/// # Errors
/// ResourceNotFound without a suspect record.
pub fn promote(slot: &mut Slot) -> Result<(), Error> {
    let row = slot.suspect.take();
    let row = row.ok_or_else(|| error(Type::ResourceNotFound))?;
    slot.ordinary = Some(Arc::new(with_presence(&row, Presence::Ordinary)));
    Ok(())
}

fn with_presence(row: &ActualLrp, presence: Presence) -> ActualLrp {
    ActualLrp {
        presence: presence.into(),
        ..row.clone()
    }
}
