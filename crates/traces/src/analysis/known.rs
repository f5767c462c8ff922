//! What is known of a system from elsewhere than its spans.

use std::fmt::Debug;

use super::floors::Floors;
use crate::Span;

/// A system as its makers describe it. Whatever it does not name is judged by spans alone.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    /// Its services, in the order in which they are shown.
    pub services: Vec<KnownService>,
    /// Who calls whom, in the order in which it is shown.
    pub calls: Vec<KnownCall>,
    /// The service at which requests enter.
    pub entry: Option<String>,
    /// Share of the requests that are traced, 0 to 1; `None`: it is not known.
    pub sampled: Option<f64>,
}

/// A service of which more is known than its spans tell.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownService {
    /// As spans name it.
    pub name: String,
    /// How many of it run.
    pub instances: u32,
    /// Work that each does at once, at most.
    pub workers: u32,
    /// Processors' worth of time that each may use.
    pub cpu_limit: Option<f64>,
    /// Whether it is asked to add time of its own: an injected delay, a least time to the
    /// answer.
    pub adds_time: bool,
}

/// Calls of one service to another.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownCall {
    /// Who calls.
    pub from: String,
    /// Who is called.
    pub to: String,
    /// Connections that each instance of the caller may have to it.
    pub connections: u32,
    /// Whether the caller waits for the answers of any of them.
    pub awaited: bool,
}

impl Known {
    /// The service with a name.
    pub(super) fn service(&self, name: &str) -> Option<&KnownService> {
        self.services.iter().find(|one| one.name == name)
    }

    /// Work that all instances of a service do at once, at most.
    pub(super) fn workers(&self, name: &str) -> Option<u64> {
        let service = self.service(name)?;
        Some(u64::from(service.workers.max(1)) * u64::from(service.instances))
    }

    /// Connections of all instances of the caller, as if all were on one thread each.
    pub(super) fn connections(&self, from: &str, to: &str) -> Option<u64> {
        let same = |one: &&KnownCall| one.from == from && one.to == to;
        let call = self.calls.iter().find(same)?;
        let instances = self.service(from)?.instances;
        Some(u64::from(call.connections) * u64::from(instances))
    }
}

/// What requests would take without contention.
pub trait Budget: Debug {
    /// Makes the spans of typical requests to a path, as they would be on a machine whose
    /// hops, handling and handing over take what `floors` says, and tells of each request's.
    ///
    /// # Errors
    /// Why there is no budget, in words for people.
    fn requests(
        &self,
        path: &str,
        floors: &Floors,
        each: &mut dyn FnMut(&[Span]),
    ) -> Result<(), String>;
}
