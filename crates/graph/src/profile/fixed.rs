//! What stays as it was when a graph was started.

use crate::topology::Topology;

/// Why another profile cannot take the place of the one in force while the graph runs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "change the profile: {what} of the service {service} cannot change while the graph runs; start it again for that"
)]
pub struct Fixed {
    what: &'static str,
    service: String,
}

/// Whether only what may change does: steps, calls, faults, answers, time-outs, and what
/// runs beside; not which services there are, how many instances each has, what they speak
/// and where they run.
///
/// # Errors
/// The first service of which something else changes.
pub fn fixed(before: &Topology, after: &Topology) -> Result<(), Fixed> {
    let refuse = |what, service: &str| {
        Err(Fixed {
            what,
            service: service.to_owned(),
        })
    };
    for service in &before.services {
        let Some(new) = after.find(&service.name).and_then(|id| after.service(id)) else {
            return refuse("the existence", &service.name);
        };
        if new.replicas != service.replicas {
            return refuse("the number of replicas", &service.name);
        }
        if new.protocol != service.protocol {
            return refuse("the protocol", &service.name);
        }
        if new.placement != service.placement {
            return refuse("the placement (cpus, limits)", &service.name);
        }
    }
    let added = after
        .services
        .iter()
        .find(|service| before.find(&service.name).is_none());
    if let Some(added) = added {
        return refuse("the absence", &added.name);
    }
    let entry = |topology: &Topology| {
        let entry = topology.service(topology.entry);
        entry
            .map(|service| service.name.clone())
            .unwrap_or_default()
    };
    match entry(before) == entry(after) {
        true => Ok(()),
        false => refuse("the role of the entry", &entry(before)),
    }
}
