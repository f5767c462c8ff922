//! Locks and presences: keys with an owner that expire unless renewed.
//!
//! In memory: owners renew every few seconds, so they come back by themselves
//! after a restart.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use diego::locket::{FetchAllRequest, LockRequest, Resource, TypeCode};
use diego::models::{CellCapacity, CellPresence, Provider};
use serde::{Deserialize, Deserializer};

/// Most keys at once.
const KEYS: usize = 65_536;
/// Most bytes of key, owner and value together.
const RESOURCE_BYTES: usize = 64 * 1024;
/// Longest time to live; a longer one counts as this.
const TTL_MOST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Why a call is refused, with its gRPC code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: u32,
    pub(crate) text: &'static str,
}

const fn refusal(code: u32, text: &'static str) -> Refusal {
    Refusal { code, text }
}

const INVALID_TTL: Refusal = refusal(3, "invalid-ttl");
const INVALID_OWNER: Refusal = refusal(3, "invalid-owner");
const NO_RESOURCE: Refusal = refusal(3, "no-resource");
const NOT_FOUND: Refusal = refusal(5, "resource-not-found");
const INVALID_TYPE: Refusal = refusal(5, "invalid-type");
const COLLISION: Refusal = refusal(6, "lock-collision");
const TOO_MANY: Refusal = refusal(8, "too-many-keys");
const TOO_LONG: Refusal = refusal(8, "resource-too-long");

struct Entry {
    resource: Resource,
    expires: Instant,
    cell: Option<Arc<CellPresence>>,
}

/// All keys that have not expired.
#[derive(Default)]
pub(crate) struct Presences(Mutex<HashMap<String, Entry>>);

impl Presences {
    fn lock_table(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes or renews a key.
    pub(crate) fn lock(&self, request: LockRequest, now: Instant) -> Result<(), Refusal> {
        let mut resource = request.resource.ok_or(NO_RESOURCE)?;
        let code = match (resource.type_code, resource.r#type.as_str()) {
            (1, _) => TypeCode::Lock,
            // Older clients give the type of a presence as text alone.
            (2, _) | (0, "presence") => TypeCode::Presence,
            _ => return Err(INVALID_TYPE),
        };
        if request.ttl_in_seconds <= 0 {
            return Err(INVALID_TTL);
        }
        if resource.owner.is_empty() {
            return Err(INVALID_OWNER);
        }
        if resource.key.len() + resource.owner.len() + resource.value.len() > RESOURCE_BYTES {
            return Err(TOO_LONG);
        }
        resource.type_code = code.into();
        resource.r#type = type_text(code).to_owned();
        let ttl = Duration::from_secs(request.ttl_in_seconds.unsigned_abs()).min(TTL_MOST);
        let mut table = self.lock_table();
        let old = table.get(&resource.key).filter(|entry| entry.expires > now);
        if old.is_some_and(|old| old.resource.owner != resource.owner) {
            return Err(COLLISION);
        }
        let cell = match old {
            Some(old) if old.resource.value == resource.value => old.cell.clone(),
            _ if code == TypeCode::Presence => parse_cell(&resource.value).map(Arc::new),
            _ => None,
        };
        if table.len() >= KEYS && !table.contains_key(&resource.key) {
            table.retain(|_, entry| entry.expires > now);
            if table.len() >= KEYS {
                return Err(TOO_MANY);
            }
        }
        let entry = Entry {
            expires: now + ttl,
            cell,
            resource,
        };
        table.insert(entry.resource.key.clone(), entry);
        Ok(())
    }

    /// Gives a key up; no such key is no error.
    pub(crate) fn release(&self, resource: Option<Resource>, now: Instant) -> Result<(), Refusal> {
        let resource = resource.ok_or(NO_RESOURCE)?;
        let mut table = self.lock_table();
        match table.get(&resource.key) {
            Some(entry) if entry.expires > now && entry.resource.owner != resource.owner => {
                Err(COLLISION)
            }
            _ => {
                table.remove(&resource.key);
                Ok(())
            }
        }
    }

    /// One key.
    pub(crate) fn fetch(&self, key: &str, now: Instant) -> Result<Resource, Refusal> {
        let table = self.lock_table();
        let entry = table.get(key).filter(|entry| entry.expires > now);
        entry.map(|entry| entry.resource.clone()).ok_or(NOT_FOUND)
    }

    /// All keys of a type.
    pub(crate) fn fetch_all(
        &self,
        request: &FetchAllRequest,
        now: Instant,
    ) -> Result<Vec<Resource>, Refusal> {
        if !matches!(request.type_code, 1 | 2) {
            return Err(INVALID_TYPE);
        }
        let table = self.lock_table();
        let alive = table.values().filter(|entry| entry.expires > now);
        let wanted = alive.filter(|entry| entry.resource.type_code == request.type_code);
        Ok(wanted.map(|entry| entry.resource.clone()).collect())
    }

    /// The cells that are present.
    pub(crate) fn cells(&self, now: Instant) -> Vec<Arc<CellPresence>> {
        let table = self.lock_table();
        let alive = table.values().filter(|entry| entry.expires > now);
        alive.filter_map(|entry| entry.cell.clone()).collect()
    }

    /// One cell, if it is present.
    pub(crate) fn cell(&self, id: &str, now: Instant) -> Option<Arc<CellPresence>> {
        let table = self.lock_table();
        table
            .get(id)
            .filter(|entry| entry.expires > now)
            .and_then(|entry| entry.cell.clone())
    }
}

fn type_text(code: TypeCode) -> &'static str {
    match code {
        TypeCode::Presence => "presence",
        TypeCode::Lock | TypeCode::Unknown => "lock",
    }
}

/// The value of a cell's presence; `None` when it is something else.
fn parse_cell(value: &str) -> Option<CellPresence> {
    let cell: CellJson = serde_json::from_str(value).ok()?;
    Some(CellPresence {
        cell_id: cell.cell_id,
        rep_address: cell.rep_address,
        zone: cell.zone,
        capacity: cell.capacity.map(|capacity| CellCapacity {
            memory_mb: capacity.memory_mb,
            disk_mb: capacity.disk_mb,
            containers: capacity.containers,
        }),
        rootfs_providers: cell
            .rootfs_provider_list
            .into_iter()
            .map(|provider| Provider {
                name: provider.name,
                properties: provider.properties,
            })
            .collect(),
        placement_tags: cell.placement_tags,
        optional_placement_tags: cell.optional_placement_tags,
        rep_url: cell.rep_url,
        annotations: cell.annotations,
    })
}

fn null_is_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CellJson {
    cell_id: String,
    rep_address: String,
    zone: String,
    capacity: Option<CapacityJson>,
    #[serde(deserialize_with = "null_is_empty")]
    rootfs_provider_list: Vec<ProviderJson>,
    #[serde(deserialize_with = "null_is_empty")]
    placement_tags: Vec<String>,
    #[serde(deserialize_with = "null_is_empty")]
    optional_placement_tags: Vec<String>,
    rep_url: String,
    #[serde(deserialize_with = "null_is_empty")]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CapacityJson {
    memory_mb: i32,
    disk_mb: i32,
    containers: i32,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ProviderJson {
    name: String,
    #[serde(deserialize_with = "null_is_empty")]
    properties: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(key: &str, owner: &str, code: i32, ttl: i64) -> LockRequest {
        LockRequest {
            resource: Some(Resource {
                key: key.into(),
                owner: owner.into(),
                value: r#"{"cell_id":"c"}"#.into(),
                type_code: code,
                ..Resource::default()
            }),
            ttl_in_seconds: ttl,
        }
    }

    #[test]
    fn a_key_belongs_to_its_owner_until_it_expires() {
        let (table, start) = (Presences::default(), Instant::now());
        assert_eq!(table.lock(request("a", "o1", 1, 5), start), Ok(()));
        assert_eq!(table.lock(request("a", "o2", 1, 5), start), Err(COLLISION));
        let later = start + Duration::from_secs(4);
        assert_eq!(table.lock(request("a", "o1", 1, 5), later), Ok(()));
        let much_later = start + Duration::from_secs(8);
        assert_eq!(
            table.lock(request("a", "o2", 1, 5), much_later),
            Err(COLLISION)
        );
        let expired = start + Duration::from_secs(9);
        assert_eq!(table.fetch("a", expired), Err(NOT_FOUND));
        assert_eq!(table.lock(request("a", "o2", 1, 5), expired), Ok(()));
    }

    #[test]
    fn refusals_come_in_the_order_type_ttl_owner() {
        let (table, now) = (Presences::default(), Instant::now());
        assert_eq!(table.lock(request("a", "", 0, 0), now), Err(INVALID_TYPE));
        assert_eq!(table.lock(request("a", "", 1, 0), now), Err(INVALID_TTL));
        assert_eq!(table.lock(request("a", "", 1, 1), now), Err(INVALID_OWNER));
        assert_eq!(table.lock(LockRequest::default(), now), Err(NO_RESOURCE));
        assert_eq!(table.lock(request("a", "o", 1, i64::MAX), now), Ok(()));
    }

    #[test]
    fn only_presences_are_cells() {
        let (table, now) = (Presences::default(), Instant::now());
        table.lock(request("lock", "o", 1, 9), now).unwrap();
        table.lock(request("c", "o", 2, 9), now).unwrap();
        assert_eq!(table.cells(now).len(), 1);
        assert!(table.cell("lock", now).is_none());
        assert!(table.cell("c", now + Duration::from_secs(9)).is_none());
    }
}
