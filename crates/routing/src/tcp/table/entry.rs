//! One route: its backends, with what decides whether they stay.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use super::backend::Backend;
use super::port::{Pool, Termination};
use crate::table::{Modification, Nanos};
use crate::tcp::TcpMapping;

/// What tells backends of a route apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BackendKey {
    address: Box<str>,
    port: u16,
    tls_port: i64,
    instance_id: Box<str>,
    mtls: bool,
}

impl BackendKey {
    pub(super) fn of(mapping: &TcpMapping) -> Self {
        Self {
            address: mapping.backend_ip.as_str().into(),
            port: mapping.backend_port,
            tls_port: mapping.backend_tls_port,
            instance_id: mapping.instance_id.as_str().into(),
            mtls: mapping.enable_backend_mtls,
        }
    }
}

/// The latest that is known of a backend.
#[derive(Debug)]
pub(super) struct Details {
    modification: Modification,
    /// Its own; `None`: the table's.
    pub(super) ttl: Option<Nanos>,
    pub(super) updated: Nanos,
    terminates: bool,
    alpns: Box<[Box<str>]>,
}

impl Details {
    pub(super) fn of(mapping: &TcpMapping, now: Nanos) -> Self {
        let ttl = mapping.ttl.filter(|seconds| *seconds > 0);
        let alpns = mapping.alpns.split(',');
        let alpns = alpns.map(str::trim).filter(|name| !name.is_empty());
        Self {
            modification: (&mapping.modification_tag).into(),
            ttl: ttl.map(|seconds| seconds.unsigned_abs().saturating_mul(1_000_000_000)),
            updated: now,
            terminates: mapping.terminate_frontend_tls,
            alpns: alpns.map(Box::from).collect(),
        }
    }

    /// Whether a mapping is newer, and handles the client's TLS in another way.
    pub(super) fn turns_into(&self, mapping: &TcpMapping) -> bool {
        let tag = &mapping.modification_tag;
        self.terminates != mapping.terminate_frontend_tls
            && self.modification.succeeded_by(&tag.into())
    }

    fn routes_like(&self, other: &Self) -> bool {
        self.terminates == other.terminates && self.alpns == other.alpns
    }
}

/// A route with at least one backend, unless one was just taken from it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) port: u16,
    backends: BTreeMap<BackendKey, (Details, Arc<Backend>)>,
    /// Where round robin goes on: kept when backends change, or the first of them would
    /// serve more than the others.
    cursor: Arc<AtomicU32>,
    pool: Arc<Pool>,
}

impl Entry {
    pub(super) fn new(port: u16, key: BackendKey, details: Details, backend: Backend) -> Self {
        let cursor = Arc::default();
        let mut entry = Self {
            port,
            backends: BTreeMap::from([(key, (details, Arc::new(backend)))]),
            pool: Arc::new(Pool::new(Vec::new(), None, Arc::clone(&cursor))),
            cursor,
        };
        entry.rebuild();
        entry
    }

    pub(super) fn len(&self) -> usize {
        self.backends.len()
    }

    pub(super) fn has(&self, key: &BackendKey) -> bool {
        self.backends.contains_key(key)
    }

    pub(super) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    pub(super) fn backends(&self) -> impl Iterator<Item = &Arc<Backend>> {
        self.backends.values().map(|(_, backend)| backend)
    }

    /// Whether all backends but `key` handle the client's TLS in this way.
    pub(super) fn agrees(&self, key: &BackendKey, terminates: bool) -> bool {
        let mut others = self.backends.iter().filter(|(other, _)| *other != key);
        others.all(|(_, (details, _))| details.terminates == terminates)
    }

    /// Adds a backend or renews it, and says whether connections see a difference.
    pub(super) fn upsert(
        &mut self,
        key: BackendKey,
        details: Details,
        backend: Backend,
        listed: bool,
    ) -> bool {
        let mut changed = true;
        if let Some((known, present)) = self.backends.get_mut(&key) {
            if !known.modification.succeeded_by(&details.modification) {
                if listed {
                    known.updated = details.updated;
                }
                return false;
            }
            changed = !known.routes_like(&details);
            *known = details;
            // The present one knows whether it failed, and where its host is.
            if !present.is_like(&backend) {
                *present = Arc::new(backend);
                changed = true;
            }
        } else {
            self.backends.insert(key, (details, Arc::new(backend)));
        }
        if changed {
            self.rebuild();
        }
        changed
    }

    /// Removes a backend unless it is newer than `modification`, and says whether it did.
    pub(super) fn delete(&mut self, key: &BackendKey, modification: &Modification) -> bool {
        let Some((known, _)) = self.backends.get(key) else {
            return false;
        };
        let known = &known.modification;
        if known != modification && !known.succeeded_by(modification) {
            return false;
        }
        self.backends.remove(key);
        self.rebuild();
        true
    }

    /// Removes backends that `keep` does not want, and says whether there were any.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&BackendKey, &Details) -> bool) -> bool {
        let before = self.backends.len();
        self.backends.retain(|key, (details, _)| keep(key, details));
        let changed = self.backends.len() != before;
        if changed {
            self.rebuild();
        }
        changed
    }

    fn rebuild(&mut self) {
        let backends = self.backends().cloned().collect();
        let termination = self.termination();
        self.pool = Arc::new(Pool::new(backends, termination, Arc::clone(&self.cursor)));
    }

    /// Any of the backends may serve what was agreed on with the client: so only protocols
    /// that all of them name are offered.
    fn termination(&self) -> Option<Termination> {
        let mut all = self.backends.values().map(|(details, _)| details);
        let first = all.next().filter(|details| details.terminates)?;
        let mut protocols = first.alpns.to_vec();
        for other in all {
            protocols.retain(|protocol| other.alpns.contains(protocol));
        }
        Some(Termination {
            protocols: protocols.into(),
        })
    }
}
