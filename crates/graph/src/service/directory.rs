//! Where the instances of services listen.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Addresses of instances, by the name of their service and their number among its
/// replicas, counted from 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Directory {
    known: BTreeMap<String, BTreeMap<u32, SocketAddr>>,
}

impl Directory {
    /// Says where an instance listens, instead of what was known of it.
    pub fn set(&mut self, service: &str, replica: u32, address: SocketAddr) {
        let replicas = self.known.entry(service.to_owned()).or_default();
        replicas.insert(replica, address);
    }

    /// Where an instance listens.
    pub fn get(&self, service: &str, replica: u32) -> Option<SocketAddr> {
        self.known.get(service)?.get(&replica).copied()
    }

    /// Where all known instances of a service listen, in the order of their numbers.
    pub fn all(&self, service: &str) -> impl Iterator<Item = SocketAddr> {
        self.known
            .get(service)
            .into_iter()
            .flat_map(|replicas| replicas.values().copied())
    }
}
