//! Actual LRPs: claim, start, crash, fail, remove, retire, unclaim.
//!
//! Each rule changes a [`Slot`] or returns an error and leaves it as it was. Long
//! reasons are whole in events and cut when they are stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use diego::error::{Type, error};
use diego::models::{
    ActualLrp, ActualLrpInstanceKey, ActualLrpInternalRoute, ActualLrpKey, ActualLrpNetInfo, Error,
};

use super::Context;
use super::slot::{CLAIMED, CRASHED, RUNNING, Row, Slot, UNCLAIMED, fits, new_row};

/// An instance that ran for longer than this starts counting crashes anew, in ns.
pub const CRASH_RESET_NS: i64 = 300 * 1_000_000_000;

/// Crashes from which on an instance is not restarted at once.
pub const IMMEDIATE_RESTARTS: i32 = 3;

/// What a cell reports of an instance that runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Running {
    /// Where it can be reached.
    pub net_info: ActualLrpNetInfo,
    /// Names under which other instances reach it.
    pub internal_routes: Vec<ActualLrpInternalRoute>,
    /// Tags of its metrics.
    pub metric_tags: BTreeMap<String, String>,
    /// May it get traffic?
    pub routable: bool,
    /// Zone of its cell.
    pub availability_zone: String,
}

impl Running {
    /// What the record says.
    pub fn of(row: &ActualLrp) -> Self {
        Self {
            net_info: row.actual_lrp_net_info.clone().unwrap_or_default(),
            internal_routes: row.actual_lrp_internal_routes.clone(),
            metric_tags: row.metric_tags.clone(),
            routable: row.routable.unwrap_or(true),
            availability_zone: row.availability_zone.clone(),
        }
    }

    /// Writes it into the record.
    pub fn write(self, row: &mut ActualLrp) {
        row.actual_lrp_net_info = Some(self.net_info);
        row.actual_lrp_internal_routes = self.internal_routes;
        row.metric_tags = self.metric_tags;
        row.routable = Some(self.routable);
        row.availability_zone = self.availability_zone;
    }
}

/// A new record that waits for a cell.
pub fn unclaimed(key: ActualLrpKey, context: &mut Context<'_>) -> ActualLrp {
    new_row(key, UNCLAIMED, (context.new_guid)(), context.now)
}

/// A cell reserves the index. Ignored when the instance is the suspect one.
///
/// # Errors
/// ResourceNotFound, ActualLRPCannotBeClaimed; InvalidRequest when the key is too long.
pub fn claim(slot: &mut Slot, key: &ActualLrpInstanceKey, now: i64) -> Result<(), Error> {
    if slot.is_suspect(key) {
        return Ok(());
    }
    let row = ordinary(slot)?;
    match row.state.as_str() {
        UNCLAIMED => {}
        CLAIMED if row.instance() == key => return Ok(()),
        RUNNING if row.instance() == key => {}
        _ => return Err(error(Type::ActualLrpCannotBeClaimed)),
    }
    let mut row = row.touched(now);
    row.state = CLAIMED.to_owned();
    row.actual_lrp_instance_key = Some(key.clone());
    row.actual_lrp_net_info = Some(ActualLrpNetInfo::default());
    row.placement_error.clear();
    fits(&row)?;
    slot.ordinary = Some(Arc::new(row));
    Ok(())
}

/// A cell runs the instance. Creates the record when there is none; ignored when
/// the instance is the suspect one; nothing is written when nothing differs. The
/// evacuating and suspect records have then done their duty and go.
///
/// # Errors
/// ActualLRPCannotBeStarted; InvalidRequest when a name is too long.
pub fn start(
    slot: &mut Slot,
    key: &ActualLrpKey,
    instance: &ActualLrpInstanceKey,
    running: Running,
    context: &mut Context<'_>,
) -> Result<(), Error> {
    if slot.is_suspect(instance) {
        return Ok(());
    }
    match &slot.ordinary {
        None => {
            let mut row = new_row(key.clone(), RUNNING, (context.new_guid)(), context.now);
            row.actual_lrp_instance_key = Some(instance.clone());
            running.write(&mut row);
            fits(&row)?;
            slot.ordinary = Some(Arc::new(row));
        }
        Some(row) => {
            let may = match row.state.as_str() {
                UNCLAIMED | CLAIMED => true,
                RUNNING => row.instance() == instance,
                _ => false,
            };
            if !may || row.key().domain != key.domain {
                return Err(error(Type::ActualLrpCannotBeStarted));
            }
            let same =
                row.state == RUNNING && row.instance() == instance && Running::of(row) == running;
            if !same {
                let mut row = row.touched(context.now);
                row.state = RUNNING.to_owned();
                row.actual_lrp_instance_key = Some(instance.clone());
                row.placement_error.clear();
                running.write(&mut row);
                fits(&row)?;
                slot.ordinary = Some(Arc::new(row));
            }
        }
    }
    slot.evacuating = None;
    slot.suspect = None;
    Ok(())
}

/// What a crash leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// The suspect instance is gone; nothing follows.
    SuspectGone,
    /// UNCLAIMED again: it wants a cell at once.
    Restart,
    /// CRASHED: it waits.
    Wait,
}

/// The instance crashed.
///
/// # Errors
/// ResourceNotFound, ActualLRPCannotBeCrashed.
pub fn crash(
    slot: &mut Slot,
    instance: &ActualLrpInstanceKey,
    reason: &str,
    now: i64,
) -> Result<Crash, Error> {
    if slot.is_suspect(instance) {
        slot.suspect = None;
        return Ok(Crash::SuspectGone);
    }
    let row = ordinary(slot)?;
    if !matches!(row.state.as_str(), CLAIMED | RUNNING) || row.instance() != instance {
        return Err(error(Type::ActualLrpCannotBeCrashed));
    }
    let ran_long = row.state == RUNNING && now.saturating_sub(row.since) > CRASH_RESET_NS;
    let count = if ran_long {
        1
    } else {
        row.crash_count.saturating_add(1)
    };
    let restart = count < IMMEDIATE_RESTARTS;
    let mut row = without_instance(row.touched(now));
    row.crash_count = count;
    row.crash_reason = reason.to_owned();
    row.state = if restart { UNCLAIMED } else { CRASHED }.to_owned();
    slot.ordinary = Some(Arc::new(row));
    Ok(if restart { Crash::Restart } else { Crash::Wait })
}

/// The auctioneer found no cell. No record is no error.
///
/// # Errors
/// ActualLRPCannotBeFailed.
pub fn fail(slot: &mut Slot, reason: &str, now: i64) -> Result<(), Error> {
    let Some(row) = &slot.ordinary else {
        return Ok(());
    };
    if row.state != UNCLAIMED {
        return Err(error(Type::ActualLrpCannotBeFailed));
    }
    let mut row = row.touched(now);
    row.placement_error = reason.to_owned();
    slot.ordinary = Some(Arc::new(row));
    Ok(())
}

/// The record goes, if it belongs to the instance (any, when none is given).
///
/// # Errors
/// ResourceNotFound.
pub fn remove(slot: &mut Slot, instance: Option<&ActualLrpInstanceKey>) -> Result<(), Error> {
    let row = ordinary(slot)?;
    if instance.is_some_and(|key| row.instance() != key) {
        return Err(error(Type::ResourceNotFound));
    }
    slot.ordinary = None;
    Ok(())
}

/// What retiring an index takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Retire {
    /// It was on no cell and is gone.
    Gone,
    /// Its cell must stop it.
    Stop(ActualLrpInstanceKey),
}

/// The index is not wanted any more.
///
/// # Errors
/// ResourceNotFound.
pub fn retire(slot: &mut Slot) -> Result<Retire, Error> {
    let row = ordinary(slot)?;
    if matches!(row.state.as_str(), CLAIMED | RUNNING) {
        return Ok(Retire::Stop(row.instance().clone()));
    }
    slot.ordinary = None;
    Ok(Retire::Gone)
}

/// The index wants a cell again.
///
/// # Errors
/// ResourceNotFound, ActualLRPCannotBeUnclaimed.
pub fn unclaim(slot: &mut Slot, now: i64) -> Result<(), Error> {
    let row = ordinary(slot)?;
    if row.state == UNCLAIMED {
        return Err(error(Type::ActualLrpCannotBeUnclaimed));
    }
    let mut row = without_instance(row.touched(now));
    row.state = UNCLAIMED.to_owned();
    slot.ordinary = Some(Arc::new(row));
    Ok(())
}

fn ordinary(slot: &Slot) -> Result<&Arc<ActualLrp>, Error> {
    slot.ordinary
        .as_ref()
        .ok_or_else(|| error(Type::ResourceNotFound))
}

fn without_instance(row: ActualLrp) -> ActualLrp {
    ActualLrp {
        actual_lrp_instance_key: Some(ActualLrpInstanceKey::default()),
        actual_lrp_net_info: Some(ActualLrpNetInfo::default()),
        ..row
    }
}
