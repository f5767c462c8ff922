//! The disk: one SQLite database, written by one thread.
//!
//! All lookups happen in memory, so tables have no index but their row numbers,
//! which makes a new record an append.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use commit::{Sqlite, StoreError};
use diego::locket::Resource;
use prost::Message;
use rusqlite::{Connection, params};

use super::presence::{self, Kept};
use super::state::{Actual, Desired, Names, NextIds, Overlay, Process, State, Task};

/// What leads from each version of the tables to the next. Folders of before the first one
/// was numbered have its tables already.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE IF NOT EXISTS tasks (id INTEGER PRIMARY KEY, guid TEXT NOT NULL,
        record BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS desired_lrps (id INTEGER PRIMARY KEY, process_guid TEXT NOT NULL,
        domain TEXT NOT NULL, info BLOB NOT NULL, rest BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS actual_lrps (id INTEGER PRIMARY KEY, process_guid TEXT NOT NULL,
        idx INTEGER NOT NULL, presence INTEGER NOT NULL, record BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS domains (domain TEXT PRIMARY KEY, expires INTEGER NOT NULL)
        WITHOUT ROWID;
",
    "
    CREATE TABLE stops (process_guid TEXT PRIMARY KEY, from_index INTEGER NOT NULL)
        WITHOUT ROWID;
    CREATE TABLE presences (key TEXT PRIMARY KEY, id INTEGER NOT NULL, owner TEXT NOT NULL,
        value TEXT NOT NULL, type_code INTEGER NOT NULL, ttl_s INTEGER NOT NULL) WITHOUT ROWID;
",
];

/// The open database.
pub(crate) struct Store(Sqlite);

impl Store {
    /// Opens the database in `folder`, creating what is missing.
    pub(crate) fn open(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join("bbs.sqlite");
        Sqlite::open(&path, "BBS", MIGRATIONS).map(Self)
    }

    /// Reads everything.
    pub(crate) fn load(&self, names: &mut Names) -> Result<(State, NextIds), StoreError> {
        let (mut tasks, mut processes) = (HashMap::new(), HashMap::<Arc<str>, Process>::new());
        let mut domains = HashMap::new();
        let mut next = NextIds {
            task: 1,
            desired: 1,
            actual: 1,
        };
        self.0
            .rows("tasks", "SELECT id, guid, record FROM tasks", |row| {
                let (id, guid, bytes): (i64, String, Vec<u8>) = row.try_into()?;
                let task = diego::models::Task::decode(&*bytes)?;
                let task = Task::new(id, &task, names);
                tasks.insert(Arc::from(guid), task);
                next.task = next.task.max(id + 1);
                Ok(())
            })?;
        self.0.rows(
            "desired_lrps",
            "SELECT id, process_guid, domain, info, rest FROM desired_lrps",
            |row| {
                let (id, guid, domain, info, rest): (i64, String, String, Vec<u8>, Vec<u8>) =
                    row.try_into()?;
                let mut desired = Desired {
                    id,
                    info: info.into(),
                    rest: rest.into(),
                    domain: names.shared(&domain),
                    instances: 0,
                };
                desired.instances = desired.decode()?.instances;
                processes.entry(guid.into()).or_default().desired = Some(desired);
                next.desired = next.desired.max(id + 1);
                Ok(())
            },
        )?;
        self.0.rows(
            "actual_lrps",
            "SELECT id, process_guid, record FROM actual_lrps",
            |row| {
                let (id, guid, bytes): (i64, String, Vec<u8>) = row.try_into()?;
                let row = diego::models::ActualLrp::decode(&*bytes)?;
                let row = Actual::new(id, &row, names);
                let rows = &mut processes.entry(guid.into()).or_default().actual;
                if rows.is_empty() {
                    // Most processes have one.
                    rows.reserve_exact(1);
                }
                rows.push(row);
                next.actual = next.actual.max(id + 1);
                Ok(())
            },
        )?;
        let stops = "SELECT from_index, process_guid FROM stops";
        self.0.rows("stops", stops, |row| {
            let (from, guid): (i32, String) = row.try_into()?;
            processes.entry(guid.into()).or_default().stop_from = Some(from);
            Ok(())
        })?;
        self.0
            .rows("domains", "SELECT expires, domain FROM domains", |row| {
                let (expires, domain): (i64, String) = row.try_into()?;
                domains.insert(names.shared(&domain), expires);
                Ok(())
            })?;
        Ok((State::of(tasks, processes, domains), next))
    }

    /// Reads who held which key.
    pub(crate) fn presences(&self) -> Result<Vec<Kept>, StoreError> {
        let mut presences = Vec::new();
        let query = "SELECT id, key, owner, value, type_code, ttl_s FROM presences";
        self.0.rows("presences", query, |row| {
            let (id, key, owner, value, type_code, ttl): (i64, _, _, _, i32, i64) =
                row.try_into()?;
            let resource = Resource {
                key,
                owner,
                value,
                type_code,
                r#type: presence::type_text(type_code).to_owned(),
            };
            let ttl = Duration::from_secs(ttl.unsigned_abs());
            presences.push(Kept { id, resource, ttl });
            Ok(())
        })?;
        Ok(presences)
    }

    /// Writes a batch over `base` in one transaction. When it fails nothing of the
    /// batch is on the disk.
    pub(crate) fn commit(&mut self, base: &State, batch: &Overlay) -> rusqlite::Result<()> {
        self.0.write(|transaction| {
            for (guid, task) in batch.tasks.changes() {
                write_task(transaction, guid, base.tasks.get(guid), task)?;
            }
            let nothing = Process::default();
            for (guid, layer) in &batch.processes {
                let old = base.processes.get(guid).unwrap_or(&nothing);
                if let Some(desired) = &layer.desired {
                    write_desired(transaction, guid, old.desired.as_ref(), desired.as_ref())?;
                }
                if let Some(from) = layer.stop_from {
                    write_stop(transaction, guid, from)?;
                }
                for (place, row) in layer.rows.changes() {
                    write_actual(transaction, guid, old.row(*place), row)?;
                }
            }
            for (domain, expires) in batch.domains.changes() {
                match expires {
                    Some(expires) => transaction
                        .prepare_cached(
                            "INSERT OR REPLACE INTO domains (domain, expires) VALUES (?1, ?2)",
                        )?
                        .execute(params![domain, expires])?,
                    None => transaction
                        .prepare_cached("DELETE FROM domains WHERE domain = ?1")?
                        .execute([domain])?,
                };
            }
            for change in &batch.presences {
                write_presence(transaction, change)?;
            }
            Ok(())
        })
    }

    /// Bounds the database to so many pages of 4 KiB.
    pub(crate) fn limit_pages(&self, pages: u32) {
        self.0.limit_pages(pages);
    }
}

fn delete(transaction: &Connection, table: &str, id: i64) -> rusqlite::Result<()> {
    let statement = match table {
        "tasks" => "DELETE FROM tasks WHERE id = ?1",
        "desired_lrps" => "DELETE FROM desired_lrps WHERE id = ?1",
        _ => "DELETE FROM actual_lrps WHERE id = ?1",
    };
    transaction
        .prepare_cached(statement)?
        .execute([id])
        .map(drop)
}

fn write_task(
    transaction: &Connection,
    guid: &Arc<str>,
    old: Option<&Task>,
    new: Option<&Task>,
) -> rusqlite::Result<()> {
    match (old, new) {
        (Some(old), Some(new)) if old.id == new.id => transaction
            .prepare_cached("UPDATE tasks SET record = ?2 WHERE id = ?1")?
            .execute(params![new.id, &*new.bytes])
            .map(drop),
        (old, new) => {
            if let Some(old) = old {
                delete(transaction, "tasks", old.id)?;
            }
            if let Some(new) = new {
                transaction
                    .prepare_cached("INSERT INTO tasks (id, guid, record) VALUES (?1, ?2, ?3)")?
                    .execute(params![new.id, guid, &*new.bytes])?;
            }
            Ok(())
        }
    }
}

fn write_desired(
    transaction: &Connection,
    guid: &Arc<str>,
    old: Option<&Desired>,
    new: Option<&Desired>,
) -> rusqlite::Result<()> {
    match (old, new) {
        (Some(old), Some(new)) if Arc::ptr_eq(&old.info, &new.info) => Ok(()),
        (Some(old), Some(new)) if old.id == new.id => transaction
            .prepare_cached("UPDATE desired_lrps SET info = ?2, rest = ?3 WHERE id = ?1")?
            .execute(params![new.id, &*new.info, &*new.rest])
            .map(drop),
        (old, new) => {
            if let Some(old) = old {
                delete(transaction, "desired_lrps", old.id)?;
            }
            if let Some(new) = new {
                transaction
                    .prepare_cached(
                        "INSERT INTO desired_lrps (id, process_guid, domain, info, rest)
                         VALUES (?1, ?2, ?3, ?4, ?5)",
                    )?
                    .execute(params![new.id, guid, new.domain, &*new.info, &*new.rest])?;
            }
            Ok(())
        }
    }
}

fn write_stop(
    transaction: &Connection,
    guid: &Arc<str>,
    from: Option<i32>,
) -> rusqlite::Result<()> {
    let done = match from {
        Some(from) => transaction
            .prepare_cached(
                "INSERT OR REPLACE INTO stops (process_guid, from_index) VALUES (?1, ?2)",
            )?
            .execute(params![guid, from]),
        None => transaction
            .prepare_cached("DELETE FROM stops WHERE process_guid = ?1")?
            .execute([guid]),
    };
    done.map(drop)
}

fn write_presence(transaction: &Connection, change: &presence::Change) -> rusqlite::Result<()> {
    let done = match change {
        presence::Change::Held(Kept { id, resource, ttl }) => transaction
            .prepare_cached(
                "INSERT OR REPLACE INTO presences (key, id, owner, value, type_code, ttl_s)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![
                resource.key,
                id,
                resource.owner,
                resource.value,
                resource.type_code,
                ttl.as_secs() as i64,
            ]),
        // Under a greater number it is held by somebody who came later.
        presence::Change::Gone(key, id) => transaction
            .prepare_cached("DELETE FROM presences WHERE key = ?1 AND id <= ?2")?
            .execute(params![key, id]),
    };
    done.map(drop)
}

fn write_actual(
    transaction: &Connection,
    guid: &Arc<str>,
    old: Option<&Actual>,
    new: Option<&Actual>,
) -> rusqlite::Result<()> {
    match (old, new) {
        (Some(old), Some(new)) if Arc::ptr_eq(&old.bytes, &new.bytes) => Ok(()),
        (Some(old), Some(new)) if old.id == new.id => transaction
            .prepare_cached("UPDATE actual_lrps SET record = ?2 WHERE id = ?1")?
            .execute(params![new.id, &*new.bytes])
            .map(drop),
        (old, new) => {
            if let Some(old) = old {
                delete(transaction, "actual_lrps", old.id)?;
            }
            if let Some(new) = new {
                transaction
                    .prepare_cached(
                        "INSERT INTO actual_lrps (id, process_guid, idx, presence, record)
                         VALUES (?1, ?2, ?3, ?4, ?5)",
                    )?
                    .execute(params![new.id, guid, new.index, new.presence, &*new.bytes])?;
            }
            Ok(())
        }
    }
}
