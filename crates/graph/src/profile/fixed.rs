//! What stays as it was when a graph was started.

use std::collections::HashSet;

use crate::topology::Topology;

/// Why another profile cannot take the place of the one in force while the graph runs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fixed {
    /// Services that run are not in it.
    #[error(
        "change the profile: it leaves out {0}; every service stays while the graph runs. To call one no more, keep its call with probability = 0; to be without it, stop the graph and start it with this profile"
    )]
    Gone(String),
    /// It has services that do not run.
    #[error(
        "change the profile: it adds {0}; no service is added while the graph runs. Stop the graph and start it with this profile"
    )]
    New(String),
    /// Something of a service is other that was decided at the start.
    #[error(
        "change the profile: {what} of the service {service} cannot change while the graph runs. Stop the graph and start it with this profile"
    )]
    Changed {
        /// What is other.
        what: &'static str,
        /// Of whom.
        service: String,
    },
}

/// Whether only what may change does: steps, calls, faults, answers, time-outs, workers,
/// and what runs beside; not which services there are, how many instances each has, what
/// they speak and where they run.
///
/// # Errors
/// All services that are missing or new; or else the first of which something else changes.
pub fn fixed(before: &Topology, after: &Topology) -> Result<(), Fixed> {
    if let Some(gone) = missing(before, after) {
        return Err(Fixed::Gone(gone));
    }
    if let Some(new) = missing(after, before) {
        return Err(Fixed::New(new));
    }
    let refuse = |what, service: &str| {
        Err(Fixed::Changed {
            what,
            service: service.to_owned(),
        })
    };
    for service in &before.services {
        let Some(new) = after.named(&service.name) else {
            continue;
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

/// The services of one graph that another lacks, by their names; the first few of many.
fn missing(of: &Topology, from: &Topology) -> Option<String> {
    const SHOWN: usize = 10;
    let known: HashSet<&str> = from.services.iter().map(|one| one.name.as_str()).collect();
    let missing = of.services.iter().map(|one| one.name.as_str());
    let missing: Vec<&str> = missing.filter(|name| !known.contains(name)).collect();
    let shown = missing.get(..SHOWN).unwrap_or(&missing).join(", ");
    match missing.len().saturating_sub(SHOWN) {
        0 => (!missing.is_empty()).then_some(shown),
        more => Some(format!("{shown} and {more} more")),
    }
}
