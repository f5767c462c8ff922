//! Which backends serve a port and a name, and for how long. Pure: time comes in.
//!
//! Facts kept from cf-tcp-router: a mapping whose modification tag is not newer changes
//! nothing; a delete with the same tag or a newer one removes; entries whose names are not
//! those of DNS are skipped. Unlike there, a pruned backend is out of use at once.

mod backend;
mod entry;
mod port;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

pub use backend::{Backend, BackendTls};
pub use port::{Pool, PortRoutes, Termination, Turn};

use crate::table::{Modification, Nanos};

use self::entry::{BackendKey, Details, Entry};
use super::{Change, TcpMapping};

/// Most backends in a table; more are skipped. A router group has fewer than 65,536 ports.
pub const MOST_BACKENDS: usize = 1_000_000;

/// What the router can do for a mapping; what it cannot do is skipped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// There is a certificate to show to clients.
    pub termination: bool,
    /// TLS to backends is switched on.
    pub backend_tls: bool,
    /// There are authorities of backends: whom they signed is one, whatever its name.
    pub own_authority: bool,
    /// There is a certificate to show to backends.
    pub client_certificate: bool,
}

/// Why a mapping is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkipCause {
    /// The external port is 0.
    #[error("port is 0; expected 1 to 65535")]
    Port,
    /// The name within TLS is none of DNS.
    #[error("backend_sni_hostname is {0:?}; expected a DNS name")]
    Name(String),
    /// The backend's address is no IP address and no name of DNS.
    #[error("backend_ip is {0:?}; expected an IP address or a DNS name")]
    Address(String),
    /// The backend's port is 0.
    #[error("backend_port is 0; expected 1 to 65535")]
    BackendPort,
    /// The backend's port for TLS is out of range.
    #[error("backend_tls_port is {0}; expected -1 (off), 0 (none) or 1 to 65535")]
    BackendTlsPort(i64),
    /// The backend wants TLS, which is switched off here.
    #[error("the backend wants TLS; expected [backend_tls] in the router's settings")]
    BackendTlsOff,
    /// There is no name that the backend's certificate could prove.
    #[error("instance_id is {0:?}; expected the name that the backend's certificate proves")]
    InstanceId(String),
    /// The name to send as SNI to the backend is none of DNS.
    #[error("sni_rewrite_hostname is {0:?}; expected a DNS name")]
    RewrittenName(String),
    /// The backend wants a certificate, and there is none to show.
    #[error("enable_backend_mtls is set; expected a certificate in [backend_tls]")]
    NoClientCertificate,
    /// The client's TLS should end here, and there is no certificate to show.
    #[error("terminate_frontend_tls is set; expected a certificate in [termination]")]
    NoTermination,
    /// The other backends of the port and name say otherwise.
    #[error(
        "terminate_frontend_tls is {0}, but the other backends of this port and name have {other}; \
         expected all of them to agree",
        other = !.0
    )]
    Disagrees(bool),
    /// The table is full.
    #[error("the table has {MOST_BACKENDS} backends; expected no more")]
    Full,
}

/// A mapping that is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The external port.
    pub port: u16,
    /// Where the backend is said to be.
    pub backend: String,
    /// Why it is not used.
    pub cause: SkipCause,
}

/// What changes did, gathered over any number of them.
#[derive(Debug, Default)]
pub struct Effects {
    /// Ports whose routes are different now: ask [`Table::port`] for them.
    pub ports: BTreeSet<u16>,
    /// Mappings that are not used.
    pub skipped: Vec<Skipped>,
    /// Backends that nobody refreshed, and that are gone.
    pub pruned: usize,
    /// A backend came whose address must be found by name.
    pub names: bool,
}

/// The port and the name within TLS that a route is for; the empty name: every other one.
type RouteKey = (u16, Box<str>);

/// The mappings of a router.
#[derive(Debug)]
pub struct Table {
    capabilities: Capabilities,
    stale_after: Nanos,
    entries: BTreeMap<RouteKey, Entry>,
    backends: usize,
}

impl Table {
    /// A table without mappings. Those that name no TTL are stale at the age of
    /// `stale_after`.
    pub fn new(capabilities: Capabilities, stale_after: Duration) -> Self {
        Self {
            capabilities,
            stale_after: nanos(stale_after),
            entries: BTreeMap::new(),
            backends: 0,
        }
    }

    /// Applies a change at the moment `now`.
    pub fn apply(&mut self, change: Change, now: Nanos, effects: &mut Effects) {
        match change {
            Change::Upsert(mapping) => self.upsert(&mapping, now, false, effects),
            Change::Delete(mapping) => self.delete(&mapping, effects),
            Change::Full(mappings) => self.replace(&mappings, now, effects),
        }
    }

    /// Removes backends that nobody refreshed for the time of their TTL.
    pub fn prune(&mut self, now: Nanos, effects: &mut Effects) {
        let default = self.stale_after;
        let before = self.backends;
        self.retain(effects, |_, _, details| {
            let ttl = details.ttl.unwrap_or(default);
            now.saturating_sub(details.updated) <= ttl
        });
        effects.pruned += before - self.backends;
    }

    /// The routes of a port as they are now; `None` when it has none.
    pub fn port(&self, port: u16) -> Option<PortRoutes> {
        let mut routes = PortRoutes::default();
        for ((_, name), entry) in self.entries.range((port, Box::default())..) {
            if entry.port != port {
                break;
            }
            routes.insert(name, Arc::clone(entry.pool()));
        }
        (!routes.is_empty()).then_some(routes)
    }

    /// Ports that have routes, in order.
    pub fn ports(&self) -> Vec<u16> {
        let mut ports: Vec<u16> = self.entries.keys().map(|(port, _)| *port).collect();
        ports.dedup();
        ports
    }

    /// Routes: pairs of a port and a name.
    pub fn routes(&self) -> usize {
        self.entries.len()
    }

    /// Backends of all routes.
    pub fn backends(&self) -> usize {
        self.backends
    }

    /// Backends that are known by name: somebody must find their addresses.
    pub fn named_backends(&self) -> Vec<Arc<Backend>> {
        let backends = self.entries.values().flat_map(|entry| entry.backends());
        let named = backends.filter(|backend| backend.host().is_some());
        named.cloned().collect()
    }

    /// `listed`: the mapping is part of a whole list, which shows that it is alive even
    /// when its tag is not newer.
    fn upsert(&mut self, mapping: &TcpMapping, now: Nanos, listed: bool, effects: &mut Effects) {
        if let Err(cause) = self.try_upsert(mapping, now, listed, effects) {
            effects.skipped.push(Skipped {
                port: mapping.port,
                backend: format!("{}:{}", mapping.backend_ip, mapping.backend_port),
                cause,
            });
        }
    }

    fn try_upsert(
        &mut self,
        mapping: &TcpMapping,
        now: Nanos,
        listed: bool,
        effects: &mut Effects,
    ) -> Result<(), SkipCause> {
        let name = route_name(mapping)?;
        let backend = backend::checked(mapping, self.capabilities)?;
        if mapping.terminate_frontend_tls && !self.capabilities.termination {
            return Err(SkipCause::NoTermination);
        }
        let named = backend.host().is_some();
        let (key, details) = (BackendKey::of(mapping), Details::of(mapping, now));
        let full = self.backends >= MOST_BACKENDS;
        let route = (mapping.port, name);
        let Some(entry) = self.entries.get_mut(&route) else {
            if full {
                return Err(SkipCause::Full);
            }
            let entry = Entry::new(mapping.port, key, details, backend);
            self.entries.insert(route, entry);
            self.backends += 1;
            effects.ports.insert(mapping.port);
            effects.names |= named;
            return Ok(());
        };
        let terminates = mapping.terminate_frontend_tls;
        if !entry.agrees(&key, terminates) {
            return Err(SkipCause::Disagrees(terminates));
        }
        if full && !entry.has(&key) {
            return Err(SkipCause::Full);
        }
        let before = entry.len();
        if entry.upsert(key, details, backend, listed) {
            effects.ports.insert(mapping.port);
            effects.names |= named;
        }
        self.backends += entry.len() - before;
        Ok(())
    }

    fn delete(&mut self, mapping: &TcpMapping, effects: &mut Effects) {
        // A mapping that cannot be used was never taken.
        let Ok(name) = route_name(mapping) else {
            return;
        };
        let route = (mapping.port, name);
        let Some(entry) = self.entries.get_mut(&route) else {
            return;
        };
        let modification = Modification::from(&mapping.modification_tag);
        if entry.delete(&BackendKey::of(mapping), &modification) {
            self.backends -= 1;
            effects.ports.insert(mapping.port);
            if entry.len() == 0 {
                self.entries.remove(&route);
            }
        }
    }

    fn replace(&mut self, mappings: &[TcpMapping], now: Nanos, effects: &mut Effects) {
        let mut listed = BTreeMap::new();
        for mapping in mappings {
            if let Ok(name) = route_name(mapping) {
                listed.insert((mapping.port, name, BackendKey::of(mapping)), mapping);
            }
        }
        // What is gone goes first, and what handles TLS in another way now: it could disagree
        // with what is new.
        self.retain(effects, |(port, name), key, details| {
            let mapping = listed.get(&(*port, name.clone(), key.clone()));
            mapping.is_some_and(|mapping| !details.turns_into(mapping))
        });
        for mapping in mappings {
            self.upsert(mapping, now, true, effects);
        }
    }

    fn retain(
        &mut self,
        effects: &mut Effects,
        mut keep: impl FnMut(&RouteKey, &BackendKey, &Details) -> bool,
    ) {
        self.entries.retain(|route, entry| {
            let before = entry.len();
            if entry.retain(|key, details| keep(route, key, details)) {
                effects.ports.insert(route.0);
                self.backends -= before - entry.len();
            }
            entry.len() > 0
        });
    }
}

/// The name within TLS of a mapping's route, in lower case.
fn route_name(mapping: &TcpMapping) -> Result<Box<str>, SkipCause> {
    if mapping.port == 0 {
        return Err(SkipCause::Port);
    }
    let name = mapping.backend_sni_hostname.as_deref().unwrap_or_default();
    if name.is_empty() || backend::is_dns_name(name) {
        return Ok(name.to_ascii_lowercase().into());
    }
    Err(SkipCause::Name(name.to_owned()))
}

fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
