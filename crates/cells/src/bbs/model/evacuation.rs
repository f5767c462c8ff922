//! What becomes of instances on a cell that is being emptied.

use std::sync::Arc;

use diego::error::{Type, error};
use diego::models::actual_lrp::Presence;
use diego::models::{ActualLrp, ActualLrpInstanceKey, ActualLrpKey, Error, ModificationTag};

use super::Context;
use super::actual::{self, Running};
use super::slot::{CLAIMED, CRASHED, RUNNING, Row, Slot, fits, new_row};

/// What the cell and the auctioneer are to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Evacuated {
    /// Must the cell keep the container?
    pub keep_container: bool,
    /// Does the index want a cell?
    pub auction: bool,
}

const LET_GO: Evacuated = Evacuated {
    keep_container: false,
    auction: false,
};
const KEEP: Evacuated = Evacuated {
    keep_container: true,
    auction: false,
};
const MOVE: Evacuated = Evacuated {
    keep_container: false,
    auction: true,
};

/// The cell has reserved the instance and will not run it.
///
/// # Errors
/// ResourceNotFound when no record belongs to the instance.
pub fn claimed(
    slot: &mut Slot,
    instance: &ActualLrpInstanceKey,
    now: i64,
) -> Result<Evacuated, Error> {
    if remove_unless_ordinary(slot, instance)? {
        return Ok(LET_GO);
    }
    actual::unclaim(slot, now)?;
    Ok(MOVE)
}

/// The instance crashed while its cell is being emptied. No auction follows.
///
/// # Errors
/// ResourceNotFound, ActualLRPCannotBeCrashed.
pub fn crashed(
    slot: &mut Slot,
    instance: &ActualLrpInstanceKey,
    reason: &str,
    now: i64,
) -> Result<Evacuated, Error> {
    if !remove_unless_ordinary(slot, instance)? {
        actual::crash(slot, instance, reason, now)?;
    }
    Ok(LET_GO)
}

/// The instance stopped while its cell is being emptied.
///
/// # Errors
/// ResourceNotFound.
pub fn stopped(slot: &mut Slot, instance: &ActualLrpInstanceKey) -> Result<Evacuated, Error> {
    if !remove_unless_ordinary(slot, instance)? {
        actual::remove(slot, Some(instance))?;
    }
    Ok(LET_GO)
}

/// The cell reports that an evacuating instance is done.
///
/// # Errors
/// ResourceNotFound unless the evacuating record belongs to the instance.
pub fn remove_evacuating(slot: &mut Slot, instance: &ActualLrpInstanceKey) -> Result<(), Error> {
    match &slot.evacuating {
        Some(row) if row.has_instance(instance) => {
            slot.evacuating = None;
            Ok(())
        }
        _ => Err(error(Type::ResourceNotFound)),
    }
}

/// What the desired LRP says about replacing instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// Nobody desires the process any more.
    NotDesired,
    /// The old instance runs on until the new one runs.
    Rolling,
    /// The old instance ends first, one at a time.
    Recreate {
        /// Do as many instances run as are desired?
        all_running: bool,
    },
}

/// The instance runs on a cell that is being emptied.
///
/// # Errors
/// InvalidRequest when what the cell sent is longer than a record holds.
pub fn running(
    slot: &mut Slot,
    key: &ActualLrpKey,
    instance: &ActualLrpInstanceKey,
    sent: Running,
    strategy: Strategy,
    context: &mut Context<'_>,
) -> Result<Evacuated, Error> {
    let replaced = match &slot.ordinary {
        None => true,
        Some(row) => !row.has_instance(instance) && matches!(row.state.as_str(), RUNNING | CRASHED),
    };
    if replaced || strategy == Strategy::NotDesired {
        let _ = remove_evacuating(slot, instance);
        return Ok(LET_GO);
    }
    let target = slot.of_instance(instance).cloned();
    let presence = target.as_ref().map(|row| row.presence());
    if let Strategy::Recreate { all_running } = strategy {
        return recreate(slot, target.as_deref(), all_running, context.now);
    }
    match (target, presence) {
        (Some(row), Some(Presence::Ordinary | Presence::Suspect)) => {
            if !matches!(row.state.as_str(), CLAIMED | RUNNING) {
                return Ok(LET_GO);
            }
            let copy = evacuating_copy(&row, slot.evacuating.as_deref(), context);
            slot.evacuating = Some(Arc::new(copy));
            if presence == Some(Presence::Suspect) {
                slot.suspect = None;
                return Ok(KEEP);
            }
            actual::unclaim(slot, context.now)?;
            Ok(Evacuated {
                keep_container: true,
                auction: true,
            })
        }
        _ => refresh(slot, key, instance, sent, context),
    }
}

fn recreate(
    slot: &mut Slot,
    target: Option<&ActualLrp>,
    all_running: bool,
    now: i64,
) -> Result<Evacuated, Error> {
    let Some(row) = target else {
        return Ok(LET_GO);
    };
    if row.presence() != Presence::Ordinary {
        *slot.place(row.presence()) = None;
        return Ok(LET_GO);
    }
    if !all_running {
        return Ok(KEEP);
    }
    actual::unclaim(slot, now)?;
    Ok(MOVE)
}

/// Creates or refreshes the evacuating record with what the cell sent.
fn refresh(
    slot: &mut Slot,
    key: &ActualLrpKey,
    instance: &ActualLrpInstanceKey,
    sent: Running,
    context: &mut Context<'_>,
) -> Result<Evacuated, Error> {
    let mut sent = sent;
    let mut row = match &slot.evacuating {
        Some(row) if !row.has_instance(instance) => return Ok(LET_GO),
        // Where it can be reached is all that still counts. A cell of an older version sends no
        // routes and tags, and those of the record must outlast its calls.
        Some(row) if row.key() == key && is_reached_by(row, &sent) => return Ok(KEEP),
        Some(row) => {
            sent.routable = row.routable.unwrap_or(true);
            let mut row = row.touched(context.now);
            row.actual_lrp_key = Some(key.clone());
            row
        }
        None => {
            let mut row = new_row(key.clone(), RUNNING, (context.new_guid)(), context.now);
            row.presence = Presence::Evacuating.into();
            row.actual_lrp_instance_key = Some(instance.clone());
            row
        }
    };
    sent.write(&mut row);
    fits(&row)?;
    slot.evacuating = Some(Arc::new(row));
    Ok(KEEP)
}

/// Is the instance of the record where the cell says?
fn is_reached_by(row: &ActualLrp, sent: &Running) -> bool {
    Running::of(row).net_info == sent.net_info
}

/// The record of a running instance as an evacuating one, from the record itself
/// and not from what the cell sent: so the recorded server does.
///
/// There is one evacuating record per index: that of another instance is taken
/// over, and its cell learns when it reports next that it may let go. What such a record says of
/// traffic stays, as when it is refreshed.
fn evacuating_copy(
    row: &ActualLrp,
    other: Option<&ActualLrp>,
    context: &mut Context<'_>,
) -> ActualLrp {
    let modification_tag = match other {
        Some(other) => other.touched(context.now).modification_tag,
        None => Some(ModificationTag {
            epoch: (context.new_guid)(),
            index: 0,
        }),
    };
    ActualLrp {
        state: RUNNING.to_owned(),
        routable: other.unwrap_or(row).routable,
        presence: Presence::Evacuating.into(),
        since: context.now,
        modification_tag,
        crash_count: 0,
        crash_reason: String::new(),
        placement_error: String::new(),
        ..row.clone()
    }
}

/// Removes the record of the instance if it is evacuating or suspect, and says
/// whether it was.
fn remove_unless_ordinary(slot: &mut Slot, instance: &ActualLrpInstanceKey) -> Result<bool, Error> {
    let row = slot
        .of_instance(instance)
        .ok_or_else(|| error(Type::ResourceNotFound))?;
    let presence = row.presence();
    if presence == Presence::Ordinary {
        return Ok(false);
    }
    *slot.place(presence) = None;
    Ok(true)
}
