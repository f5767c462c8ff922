//! One index of a process: at most one record of each presence.

use std::sync::Arc;

use diego::models::actual_lrp::Presence;
use diego::models::{
    ActualLrp, ActualLrpInstanceKey, ActualLrpKey, ActualLrpNetInfo, Error, ModificationTag,
};

/// Not placed yet.
pub const UNCLAIMED: &str = "UNCLAIMED";
/// A cell has reserved it.
pub const CLAIMED: &str = "CLAIMED";
/// A cell runs it.
pub const RUNNING: &str = "RUNNING";
/// It crashed too often and waits.
pub const CRASHED: &str = "CRASHED";

/// The state of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Not placed yet.
    Unclaimed,
    /// A cell has reserved it.
    Claimed,
    /// A cell runs it.
    Running,
    /// It crashed too often and waits.
    Crashed,
}

impl Phase {
    /// All of them, as their names are ordered here.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Unclaimed, UNCLAIMED),
        (Self::Claimed, CLAIMED),
        (Self::Running, RUNNING),
        (Self::Crashed, CRASHED),
    ];

    /// The state that a record names. An unknown one counts as not placed.
    pub fn of(row: &ActualLrp) -> Self {
        let known = Self::ALL.iter().find(|(_, name)| *name == row.state);
        known.map_or(Self::Unclaimed, |(phase, _)| *phase)
    }
}

/// The records of one index of a process.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Slot {
    /// The record that almost every call is about.
    pub ordinary: Option<Arc<ActualLrp>>,
    /// The instance on a cell that is being emptied.
    pub evacuating: Option<Arc<ActualLrp>>,
    /// The instance on a cell that has disappeared.
    pub suspect: Option<Arc<ActualLrp>>,
}

impl Slot {
    /// All records, the ordinary one first.
    pub fn rows(&self) -> impl Iterator<Item = &Arc<ActualLrp>> {
        self.ordinary
            .iter()
            .chain(&self.suspect)
            .chain(&self.evacuating)
    }

    /// The place of a presence.
    pub fn place(&mut self, presence: Presence) -> &mut Option<Arc<ActualLrp>> {
        match presence {
            Presence::Ordinary => &mut self.ordinary,
            Presence::Evacuating => &mut self.evacuating,
            Presence::Suspect => &mut self.suspect,
        }
    }

    /// The record that belongs to an instance.
    pub fn of_instance(&self, key: &ActualLrpInstanceKey) -> Option<&Arc<ActualLrp>> {
        self.rows().find(|row| row.has_instance(key))
    }

    /// Does the suspect record belong to this instance?
    pub fn is_suspect(&self, key: &ActualLrpInstanceKey) -> bool {
        self.suspect
            .as_ref()
            .is_some_and(|row| row.has_instance(key))
    }
}

/// Parts of a record that the wire leaves optional and the BBS always sets.
pub trait Row {
    /// Which process and index.
    fn key(&self) -> &ActualLrpKey;
    /// Which instance on which cell; empty while nobody has claimed it.
    fn instance(&self) -> &ActualLrpInstanceKey;
    /// Does the record belong to this instance?
    fn has_instance(&self, key: &ActualLrpInstanceKey) -> bool;
    /// The record with its modification index raised and `since` set to now.
    fn touched(&self, now: i64) -> ActualLrp;
}

static NO_KEY: ActualLrpKey = ActualLrpKey {
    process_guid: String::new(),
    index: 0,
    domain: String::new(),
};
static NO_INSTANCE: ActualLrpInstanceKey = ActualLrpInstanceKey {
    instance_guid: String::new(),
    cell_id: String::new(),
};

impl Row for ActualLrp {
    fn key(&self) -> &ActualLrpKey {
        self.actual_lrp_key.as_ref().unwrap_or(&NO_KEY)
    }

    fn instance(&self) -> &ActualLrpInstanceKey {
        self.actual_lrp_instance_key
            .as_ref()
            .unwrap_or(&NO_INSTANCE)
    }

    fn has_instance(&self, key: &ActualLrpInstanceKey) -> bool {
        !key.instance_guid.is_empty() && self.instance() == key
    }

    fn touched(&self, now: i64) -> ActualLrp {
        let tag = self.modification_tag.clone().unwrap_or_default();
        ActualLrp {
            since: now,
            modification_tag: Some(ModificationTag {
                index: tag.index.wrapping_add(1),
                ..tag
            }),
            ..self.clone()
        }
    }
}

/// Can a record be this long? Names are bounded as those of requests are.
///
/// # Errors
/// InvalidRequest with the general text.
pub fn fits(row: &ActualLrp) -> Result<(), Error> {
    let (key, instance) = (row.key(), row.instance());
    super::validate::names_fit([
        &key.process_guid,
        &key.domain,
        &instance.instance_guid,
        &instance.cell_id,
        &row.availability_zone,
    ])
}

/// A record with everything set that Go's types always write.
pub fn new_row(key: ActualLrpKey, state: &str, epoch: String, now: i64) -> ActualLrp {
    ActualLrp {
        actual_lrp_key: Some(key),
        actual_lrp_instance_key: Some(ActualLrpInstanceKey::default()),
        actual_lrp_net_info: Some(ActualLrpNetInfo::default()),
        state: state.to_owned(),
        since: now,
        modification_tag: Some(ModificationTag { epoch, index: 0 }),
        routable: Some(false),
        ..ActualLrp::default()
    }
}
