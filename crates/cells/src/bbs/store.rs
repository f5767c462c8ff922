//! The disk: one SQLite database, written by one thread.
//!
//! All lookups happen in memory, so tables have no index but their row numbers,
//! which makes a new record an append.

use std::path::Path;
use std::sync::Arc;

use commit::{Sqlite, StoreError};
use prost::Message;
use rusqlite::{Connection, params};

use super::state::{Actual, Desired, Names, NextIds, Overlay, Process, State, Task};

/// What leads from each version of the tables to the next. Folders of before the first one
/// was numbered have its tables already.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE IF NOT EXISTS tasks (id INTEGER PRIMARY KEY, guid TEXT NOT NULL,
        record BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS desired_lrps (id INTEGER PRIMARY KEY, process_guid TEXT NOT NULL,
        domain TEXT NOT NULL, info BLOB NOT NULL, rest BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS actual_lrps (id INTEGER PRIMARY KEY, process_guid TEXT NOT NULL,
        idx INTEGER NOT NULL, presence INTEGER NOT NULL, record BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS domains (domain TEXT PRIMARY KEY, expires INTEGER NOT NULL)
        WITHOUT ROWID;
"];

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
        let mut loaded = Overlay::default();
        let nothing = State::default();
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
                loaded.tasks.put(guid.into(), Some(task));
                next.task = next.task.max(id + 1);
                Ok(())
            })?;
        self.0.rows(
            "desired_lrps",
            "SELECT id, process_guid, domain, info, rest FROM desired_lrps",
            |row| {
                let (id, guid, domain, info, rest): (i64, String, String, Vec<u8>, Vec<u8>) =
                    row.try_into()?;
                let desired = Desired {
                    id,
                    info: info.into(),
                    rest: rest.into(),
                    domain: names.shared(&domain),
                };
                desired.decode()?;
                let process = loaded.processes.edit(&nothing.processes, guid.into());
                process.desired = Some(desired);
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
                loaded
                    .processes
                    .edit(&nothing.processes, guid.into())
                    .put(row);
                next.actual = next.actual.max(id + 1);
                Ok(())
            },
        )?;
        self.0
            .rows("domains", "SELECT expires, domain FROM domains", |row| {
                let (expires, domain): (i64, String) = row.try_into()?;
                loaded.domains.put(names.shared(&domain), Some(expires));
                Ok(())
            })?;
        let mut state = State::default();
        state.merge(loaded);
        Ok((state, next))
    }

    /// Writes a batch over `base` in one transaction. When it fails nothing of the
    /// batch is on the disk.
    pub(crate) fn commit(&mut self, base: &State, batch: &Overlay) -> rusqlite::Result<()> {
        self.0.write(|transaction| {
            for (guid, task) in batch.tasks.changes() {
                write_task(transaction, guid, base.tasks.get(guid), task)?;
            }
            let nothing = Process::default();
            for (guid, process) in batch.processes.changes() {
                let old = base.processes.get(guid).unwrap_or(&nothing);
                let new = process.unwrap_or(&nothing);
                let (before, after) = (old.desired.as_ref(), new.desired.as_ref());
                write_desired(transaction, guid, before, after)?;
                write_actual(transaction, guid, &old.actual, &new.actual)?;
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

fn write_actual(
    transaction: &Connection,
    guid: &Arc<str>,
    old: &[Actual],
    new: &[Actual],
) -> rusqlite::Result<()> {
    // Both lists are sorted by place, and a row keeps its number as long as it lives.
    let mut rest = old.iter().peekable();
    for row in new {
        while let Some(gone) = rest.next_if(|old| old.place() < row.place()) {
            delete(transaction, "actual_lrps", gone.id)?;
        }
        match rest.next_if(|old| old.place() == row.place()) {
            Some(twin) if Arc::ptr_eq(&twin.bytes, &row.bytes) => {}
            Some(twin) if twin.id == row.id => {
                transaction
                    .prepare_cached("UPDATE actual_lrps SET record = ?2 WHERE id = ?1")?
                    .execute(params![row.id, &*row.bytes])?;
            }
            twin => {
                if let Some(gone) = twin {
                    delete(transaction, "actual_lrps", gone.id)?;
                }
                transaction
                    .prepare_cached(
                        "INSERT INTO actual_lrps (id, process_guid, idx, presence, record)
                         VALUES (?1, ?2, ?3, ?4, ?5)",
                    )?
                    .execute(params![row.id, guid, row.index, row.presence, &*row.bytes])?;
            }
        }
    }
    for gone in rest {
        delete(transaction, "actual_lrps", gone.id)?;
    }
    Ok(())
}
