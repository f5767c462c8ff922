//! From events of the BBS to what they mean for routes.

use std::sync::Arc;

use diego::models::actual_lrp::Presence;
use diego::models::{
    ActualLrp, ActualLrpInfo, ActualLrpInstanceChangedEvent, ActualLrpInstanceCreatedEvent,
    ActualLrpInstanceRemovedEvent, DesiredLrp, DesiredLrpChangedEvent, DesiredLrpCreatedEvent,
    DesiredLrpRemovedEvent,
};
use prost::Message;

use super::facts::{Desired, Instance, Tag};
use super::routes::RoutesError;

/// What happened, as far as it concerns routes.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A process is desired so.
    Desired(Desired),
    /// A process is not desired any more.
    DesiredGone {
        /// Its guid.
        process: Arc<str>,
        /// The record's last state.
        tag: Tag,
    },
    /// An instance runs and is routable.
    Instance(Instance),
    /// An instance does not run any more, or is not routable.
    InstanceGone {
        /// Guid of its process.
        process: Arc<str>,
        /// Its own.
        guid: Arc<str>,
        /// Which of its records: the one of an evacuation?
        evacuating: bool,
        /// The record's state.
        tag: Tag,
    },
}

/// Why an event cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    /// Its message cannot be decoded.
    #[error("decode {name}: {cause}")]
    Message {
        /// The event's name.
        name: String,
        /// What is wrong.
        cause: prost::DecodeError,
    },
    /// The routes of a process cannot be read; those that are known stay.
    #[error("process {process}: {cause}")]
    Routes {
        /// Guid of the process.
        process: String,
        /// What is wrong.
        cause: RoutesError,
    },
}

/// What an event of the BBS's instance stream means, in the order in which it is to be applied.
/// Nothing, when it does not concern routes.
///
/// # Errors
/// See [`EventError`].
pub fn events_of(name: &str, payload: &[u8]) -> Result<Vec<Event>, EventError> {
    Ok(match name {
        "desired_lrp_created" => {
            let event: DesiredLrpCreatedEvent = decode(name, payload)?;
            desired(event.desired_lrp)?
        }
        "desired_lrp_changed" => {
            let event: DesiredLrpChangedEvent = decode(name, payload)?;
            desired(event.after)?
        }
        "desired_lrp_removed" => {
            let event: DesiredLrpRemovedEvent = decode(name, payload)?;
            let gone = event.desired_lrp.map(|lrp| Event::DesiredGone {
                tag: Tag::of(lrp.modification_tag.as_ref()),
                process: lrp.process_guid.into(),
            });
            gone.into_iter().collect()
        }
        "actual_lrp_instance_created" => {
            let event: ActualLrpInstanceCreatedEvent = decode(name, payload)?;
            event.actual_lrp.map(|lrp| now(&lrp)).unwrap_or_default()
        }
        "actual_lrp_instance_changed" => changed(decode(name, payload)?),
        "actual_lrp_instance_removed" => {
            let event: ActualLrpInstanceRemovedEvent = decode(name, payload)?;
            event
                .actual_lrp
                .and_then(|lrp| removal_of(&lrp))
                .into_iter()
                .collect()
        }
        // The crash itself is told by another event, too.
        _ => Vec::new(),
    })
}

fn decode<M: Message + Default>(name: &str, payload: &[u8]) -> Result<M, EventError> {
    M::decode(payload).map_err(|cause| EventError::Message {
        name: name.to_owned(),
        cause,
    })
}

fn desired(lrp: Option<DesiredLrp>) -> Result<Vec<Event>, EventError> {
    let Some(lrp) = lrp else {
        return Ok(Vec::new());
    };
    match Desired::of(&lrp) {
        Ok(desired) => Ok(vec![Event::Desired(desired)]),
        Err(cause) => Err(EventError::Routes {
            process: lrp.process_guid,
            cause,
        }),
    }
}

/// What a record's state says: it runs and is routable, or there is nothing of it.
fn now(lrp: &ActualLrp) -> Vec<Event> {
    match Instance::of(lrp) {
        Some(instance) => vec![Event::Instance(instance)],
        None => removal_of(lrp).into_iter().collect(),
    }
}

/// The end of an instance. One that has no cell yet has none.
fn removal_of(lrp: &ActualLrp) -> Option<Event> {
    let instance = lrp.actual_lrp_instance_key.as_ref()?;
    if instance.instance_guid.is_empty() {
        return None;
    }
    Some(Event::InstanceGone {
        process: lrp.actual_lrp_key.as_ref()?.process_guid.as_str().into(),
        guid: instance.instance_guid.as_str().into(),
        evacuating: lrp.presence() == Presence::Evacuating,
        tag: Tag::of(lrp.modification_tag.as_ref()),
    })
}

fn changed(event: ActualLrpInstanceChangedEvent) -> Vec<Event> {
    let record = |info: Option<ActualLrpInfo>| {
        let info = info?;
        Some(ActualLrp {
            actual_lrp_key: event.actual_lrp_key.clone(),
            actual_lrp_instance_key: event.actual_lrp_instance_key.clone(),
            actual_lrp_net_info: info.actual_lrp_net_info,
            state: info.state,
            since: info.since,
            modification_tag: info.modification_tag,
            presence: info.presence,
            routable: info.routable,
            availability_zone: info.availability_zone,
            ..ActualLrp::default()
        })
    };
    let Some(after) = record(event.after.clone()) else {
        return Vec::new();
    };
    let before = record(event.before.clone());
    let mut events = now(&after);
    // An evacuation moves the instance to another record. The new one comes first, so that
    // somebody has the routes all the time.
    let evacuating = |lrp: &ActualLrp| lrp.presence() == Presence::Evacuating;
    if let Some(before) = before
        && evacuating(&before) != evacuating(&after)
    {
        events.extend(removal_of(&before));
    }
    events
}
