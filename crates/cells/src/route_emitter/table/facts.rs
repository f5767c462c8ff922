//! What the table keeps of the BBS's records.

use std::collections::BTreeMap;
use std::sync::Arc;

use diego::models::actual_lrp::Presence;
use diego::models::actual_lrp_net_info::PreferredAddress;
use diego::models::{ActualLrp, DesiredLrp, MetricTagValue, ModificationTag, PortMapping};

use super::routes::{Routes, RoutesError};
use crate::bbs::model::desired::metric_tags;

/// Which state of a record it is. The epoch names the record, the index counts its changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tag {
    epoch: Box<str>,
    index: u32,
}

impl Tag {
    /// The tag of a record; without one, one that anything succeeds.
    pub fn of(tag: Option<&ModificationTag>) -> Self {
        let tag = tag.cloned().unwrap_or_default();
        Self {
            epoch: tag.epoch.into(),
            index: tag.index,
        }
    }

    /// Whether a change with the tag `other` is news after this one.
    pub fn succeeded_by(&self, other: &Self) -> bool {
        let unknown = self.epoch.is_empty() || other.epoch.is_empty();
        unknown || self.epoch != other.epoch || self.index < other.index
    }

    /// Whether a removal of the record in state `other` removes this one.
    pub fn ended_by(&self, other: &Self) -> bool {
        self == other || self.succeeded_by(other)
    }
}

/// A desired LRP.
#[derive(Debug, Clone, PartialEq)]
pub struct Desired {
    pub(super) process: Arc<str>,
    pub(super) domain: Box<str>,
    pub(super) instances: i32,
    pub(super) log_guid: Box<str>,
    pub(super) metric_tags: BTreeMap<String, MetricTagValue>,
    pub(super) routes: Routes,
    pub(super) tag: Tag,
}

impl Desired {
    /// What a record or a routing info says.
    ///
    /// # Errors
    /// When its routes cannot be read.
    pub fn of(lrp: &DesiredLrp) -> Result<Self, RoutesError> {
        let texts = lrp.routes.as_ref().map(|routes| &routes.routes);
        Ok(Self {
            process: lrp.process_guid.as_str().into(),
            domain: lrp.domain.as_str().into(),
            instances: lrp.instances,
            log_guid: lrp.log_guid.as_str().into(),
            metric_tags: lrp.metric_tags.clone(),
            routes: texts.map(Routes::read).transpose()?.unwrap_or_default(),
            tag: Tag::of(lrp.modification_tag.as_ref()),
        })
    }

    /// The labels of an instance's registrations.
    pub(super) fn tags(&self, instance: &Instance) -> BTreeMap<String, String> {
        let mut tags = metric_tags(&self.metric_tags, instance.index, &instance.guid);
        tags.insert("component".into(), "route-emitter".into());
        tags
    }
}

/// An instance that runs and is routable.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    pub(super) process: Arc<str>,
    pub(super) guid: Arc<str>,
    pub(super) index: i32,
    pub(super) evacuating: bool,
    /// Address of the cell.
    pub(super) host: Box<str>,
    /// Address of the container.
    pub(super) container: Box<str>,
    pub(super) preferred: PreferredAddress,
    pub(super) ports: Box<[PortMapping]>,
    pub(super) zone: Box<str>,
    /// Nanoseconds since 1970.
    pub(super) since: i64,
    pub(super) tag: Tag,
}

impl Instance {
    /// What a record says, if it runs and is routable.
    pub fn of(lrp: &ActualLrp) -> Option<Self> {
        let routable = lrp.routable.unwrap_or(true);
        if lrp.state != "RUNNING" || !routable {
            return None;
        }
        let key = lrp.actual_lrp_key.as_ref()?;
        let instance = lrp.actual_lrp_instance_key.as_ref()?;
        let net = lrp.actual_lrp_net_info.clone().unwrap_or_default();
        Some(Self {
            process: key.process_guid.as_str().into(),
            guid: instance.instance_guid.as_str().into(),
            index: key.index,
            evacuating: lrp.presence() == Presence::Evacuating,
            host: net.address.as_str().into(),
            container: net.instance_address.as_str().into(),
            preferred: net.preferred_address(),
            ports: net.ports.into(),
            zone: lrp.availability_zone.as_str().into(),
            since: lrp.since,
            tag: Tag::of(lrp.modification_tag.as_ref()),
        })
    }

    /// Whether requests go to the container and not to a port of its cell.
    pub(super) fn is_direct(&self, by_default: bool) -> bool {
        match self.preferred {
            PreferredAddress::Instance => true,
            PreferredAddress::Host => false,
            PreferredAddress::Unknown => by_default,
        }
    }
}

/// The records of one instance guid: of an evacuation there may be two for a moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Slots {
    /// Ordinary, or suspect.
    pub(super) present: Option<Instance>,
    pub(super) evacuating: Option<Instance>,
}

impl Slots {
    pub(super) fn slot(&self, evacuating: bool) -> Option<&Instance> {
        match evacuating {
            true => self.evacuating.as_ref(),
            false => self.present.as_ref(),
        }
    }

    pub(super) fn slot_mut(&mut self, evacuating: bool) -> &mut Option<Instance> {
        match evacuating {
            true => &mut self.evacuating,
            false => &mut self.present,
        }
    }

    /// The ordinary one first.
    pub(super) fn all(&self) -> impl Iterator<Item = &Instance> {
        self.present.iter().chain(&self.evacuating)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.present.is_none() && self.evacuating.is_none()
    }
}
