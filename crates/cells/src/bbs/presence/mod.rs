//! Locks and presences: keys with an owner that expire unless renewed.
//!
//! Renewals are in memory alone; who holds what is on the disk as well. After a restart every
//! holder has its time to live anew, so that nobody is taken for gone who only could not
//! renew meanwhile.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use diego::json::{self, shapes};
use diego::locket::{FetchAllRequest, LockRequest, Resource, TypeCode};
use diego::models::CellPresence;
use prost::Message;

use crate::mutex::lock;

/// Most keys at once.
pub(crate) const KEYS: usize = 65_536;
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
pub(crate) const NO_RESOURCE: Refusal = refusal(3, "no-resource");
pub(crate) const NOT_FOUND: Refusal = refusal(5, "resource-not-found");
const INVALID_TYPE: Refusal = refusal(5, "invalid-type");
pub(crate) const COLLISION: Refusal = refusal(6, "lock-collision");
pub(crate) const TOO_MANY: Refusal = refusal(8, "too-many-keys");
const TOO_LONG: Refusal = refusal(8, "resource-too-long");

struct Entry {
    /// Its number is greater than that of what is on the disk if it was taken later.
    lock: StoredLock,
    expires: Instant,
    cell: Option<Arc<CellPresence>>,
    /// The disk has it as it is.
    stored: bool,
    /// Its owner has said so since the start.
    confirmed: bool,
}

/// Who holds a key, as the disk has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredLock {
    pub(crate) id: i64,
    pub(crate) resource: Resource,
    pub(crate) ttl: Duration,
}

/// What the disk is to learn about keys.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    /// Somebody holds a key.
    Held(StoredLock),
    /// Nobody holds the key as under this number any more.
    Gone(String, i64),
}

/// All keys that have not expired.
#[derive(Default)]
pub(crate) struct Presences(Mutex<Table>);

#[derive(Default)]
struct Table {
    entries: HashMap<String, Entry>,
    last_id: i64,
}

impl Presences {
    /// Those of the disk, as [`Presences::restore`] has them.
    #[cfg(test)]
    pub(crate) fn of(kept: Vec<StoredLock>, now: Instant) -> Self {
        let presences = Self::default();
        presences.restore(kept, now);
        presences
    }

    /// Those of the disk in place of all that are known; each has its whole time to live from
    /// now on.
    pub(crate) fn restore(&self, kept: Vec<StoredLock>, now: Instant) {
        let mut table = Table::default();
        for lock in kept {
            table.last_id = table.last_id.max(lock.id);
            let resource = &lock.resource;
            let presence = resource.type_code == i32::from(TypeCode::Presence);
            let cell = presence.then(|| parse_cell(&resource.value)).flatten();
            let key = resource.key.clone();
            let entry = Entry {
                expires: now + lock.ttl,
                cell: cell.map(Arc::new),
                stored: true,
                confirmed: false,
                lock,
            };
            table.entries.insert(key, entry);
        }
        *self.lock_table() = table;
    }

    fn lock_table(&self) -> MutexGuard<'_, Table> {
        lock(&self.0)
    }

    /// Takes or renews a key. What is returned is to be stored, and then to be told with
    /// [`Presences::stored`].
    pub(crate) fn lock(
        &self,
        request: LockRequest,
        now: Instant,
    ) -> Result<Option<StoredLock>, Refusal> {
        let (resource, ttl) = checked(request)?;
        let presence = resource.type_code == i32::from(TypeCode::Presence);
        let mut table = self.lock_table();
        let Table { entries, last_id } = &mut *table;
        let old = entries
            .get(&resource.key)
            .filter(|entry| entry.expires > now);
        if old.is_some_and(|old| old.lock.resource.owner != resource.owner) {
            return Err(COLLISION);
        }
        let same = old.filter(|old| old.lock.resource == resource && old.lock.ttl == ttl);
        let cell = match old {
            Some(old) if old.lock.resource.value == resource.value => old.cell.clone(),
            _ if presence => parse_cell(&resource.value).map(Arc::new),
            _ => None,
        };
        let (id, stored) = match same {
            Some(old) => (old.lock.id, old.stored),
            None => {
                *last_id += 1;
                (*last_id, false)
            }
        };
        if entries.len() >= KEYS && !entries.contains_key(&resource.key) {
            return Err(TOO_MANY);
        }
        let key = resource.key.clone();
        let lock = StoredLock { id, resource, ttl };
        let kept = (!stored).then(|| lock.clone());
        let entry = Entry {
            lock,
            expires: now + ttl,
            cell,
            stored,
            confirmed: true,
        };
        entries.insert(key, entry);
        Ok(kept)
    }

    /// The disk has this now.
    pub(crate) fn stored(&self, key: &str, id: i64) {
        let mut table = self.lock_table();
        let entry = table.entries.get_mut(key);
        if let Some(entry) = entry.filter(|entry| entry.lock.id == id) {
            entry.stored = true;
        }
    }

    /// Gives each holder its whole time to live from now on, as after a restart: nobody could
    /// renew meanwhile.
    pub(crate) fn grant_anew(&self, now: Instant) {
        for entry in self.lock_table().entries.values_mut() {
            entry.expires = now + entry.lock.ttl;
        }
    }

    /// Forgets the keys that have expired; for the disk and the log.
    pub(crate) fn sweep(&self, now: Instant) -> Vec<StoredLock> {
        let mut table = self.lock_table();
        let expired = table.entries.extract_if(|_, entry| entry.expires <= now);
        expired.map(|(_, entry)| entry.lock).collect()
    }

    /// Gives a key up; no such key is no error. What is returned is to be stored.
    pub(crate) fn release(
        &self,
        resource: Option<Resource>,
        now: Instant,
    ) -> Result<Option<StoredLock>, Refusal> {
        let resource = resource.ok_or(NO_RESOURCE)?;
        let mut table = self.lock_table();
        match table.entries.get(&resource.key) {
            Some(entry) if entry.expires > now && entry.lock.resource.owner != resource.owner => {
                Err(COLLISION)
            }
            _ => {
                let gone = table.entries.remove(&resource.key);
                Ok(gone.map(|entry| entry.lock))
            }
        }
    }

    /// One key.
    pub(crate) fn fetch(&self, key: &str, now: Instant) -> Result<Resource, Refusal> {
        let table = self.lock_table();
        let entry = table.entries.get(key).filter(|entry| entry.expires > now);
        entry
            .map(|entry| entry.lock.resource.clone())
            .ok_or(NOT_FOUND)
    }

    /// All keys of a type.
    pub(crate) fn fetch_all(
        &self,
        request: &FetchAllRequest,
        now: Instant,
    ) -> Result<Vec<Resource>, Refusal> {
        let code = wanted_type(request)?;
        let table = self.lock_table();
        let alive = table.entries.values().filter(|entry| entry.expires > now);
        let wanted = alive.filter(|entry| entry.lock.resource.type_code == code);
        Ok(wanted.map(|entry| entry.lock.resource.clone()).collect())
    }

    /// How many have not said since the start that they are there: of these cells, and of
    /// those whose presence was on the disk.
    pub(crate) fn missing(&self, cells: &[Arc<str>]) -> usize {
        let entries = &self.lock_table().entries;
        let unknown = cells.iter().filter(|cell| !entries.contains_key(&***cell));
        let held = entries.values().filter(|entry| entry.cell.is_some());
        unknown.count() + held.filter(|entry| !entry.confirmed).count()
    }

    /// The cells that are present.
    pub(crate) fn cells(&self, now: Instant) -> Vec<Arc<CellPresence>> {
        let table = self.lock_table();
        let alive = table.entries.values().filter(|entry| entry.expires > now);
        alive.filter_map(|entry| entry.cell.clone()).collect()
    }

    /// One cell, if it is present.
    pub(crate) fn cell(&self, id: &str, now: Instant) -> Option<Arc<CellPresence>> {
        let table = self.lock_table();
        table
            .entries
            .get(id)
            .filter(|entry| entry.expires > now)
            .and_then(|entry| entry.cell.clone())
    }
}

/// What is asked to be held, with the type in both its forms, and for how long.
pub(crate) fn checked(request: LockRequest) -> Result<(Resource, Duration), Refusal> {
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
    resource.r#type = type_text(code.into()).to_owned();
    let ttl = Duration::from_secs(request.ttl_in_seconds.unsigned_abs()).min(TTL_MOST);
    Ok((resource, ttl))
}

/// The type of which all keys are asked for.
pub(crate) fn wanted_type(request: &FetchAllRequest) -> Result<i32, Refusal> {
    match request.type_code {
        code @ (1 | 2) => Ok(code),
        _ => Err(INVALID_TYPE),
    }
}

/// The old text form of a type's number.
pub(crate) fn type_text(code: i32) -> &'static str {
    match TypeCode::try_from(code) {
        Ok(TypeCode::Presence) => "presence",
        _ => "lock",
    }
}

/// The value of a cell's presence; `None` when it is something else.
fn parse_cell(value: &str) -> Option<CellPresence> {
    let message = json::read(&shapes::CELL_PRESENCE, value).ok()?;
    CellPresence::decode(&*message).ok()
}
