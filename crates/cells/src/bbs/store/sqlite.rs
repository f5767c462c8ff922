//! Rows in an SQLite file.
//!
//! Tables have no index but their row numbers, which makes a new record an append.

use std::path::Path;

use commit::{Sqlite, StoreError};
use rusqlite::{Connection, params};

use super::OWNER;
use super::load::{Loading, kept};
use super::writes::{Put, Writes};
use crate::bbs::presence::Kept;

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

/// Opens the database in `folder`, creating what is missing.
pub(super) fn open(folder: &Path) -> Result<Sqlite, StoreError> {
    Sqlite::open(&folder.join("bbs.sqlite"), OWNER, MIGRATIONS)
}

/// Reads all records.
pub(super) fn load(store: &Sqlite, loading: &mut Loading<'_>) -> Result<(), StoreError> {
    let query = "SELECT id, guid, record FROM tasks";
    store.rows("tasks", query, |row| {
        let (id, guid, record): (i64, String, Vec<u8>) = row.try_into()?;
        loading.task(id, &guid, &record)
    })?;
    let query = "SELECT id, process_guid, domain, info, rest FROM desired_lrps";
    store.rows("desired_lrps", query, |row| {
        let (id, guid, domain, info, rest): (_, String, String, _, _) = row.try_into()?;
        loading.desired(id, &guid, &domain, info, rest)
    })?;
    let query = "SELECT id, process_guid, record FROM actual_lrps";
    store.rows("actual_lrps", query, |row| {
        let (id, guid, record): (i64, String, Vec<u8>) = row.try_into()?;
        loading.actual(id, &guid, &record)
    })?;
    let query = "SELECT from_index, process_guid FROM stops";
    store.rows("stops", query, |row| {
        let (from, guid): (i32, String) = row.try_into()?;
        loading.stop(&guid, from);
        Ok(())
    })?;
    let query = "SELECT expires, domain FROM domains";
    store.rows("domains", query, |row| {
        let (expires, domain): (i64, String) = row.try_into()?;
        loading.domain(&domain, expires);
        Ok(())
    })
}

/// Reads who held which key.
pub(super) fn presences(store: &Sqlite) -> Result<Vec<Kept>, StoreError> {
    let mut presences = Vec::new();
    let query = "SELECT id, key, owner, value, type_code, ttl_s FROM presences";
    store.rows("presences", query, |row| {
        let (id, key, owner, value, type_code, ttl_s) = row.try_into()?;
        presences.push(kept(id, key, owner, value, type_code, ttl_s));
        Ok(())
    })?;
    Ok(presences)
}

/// Writes in one transaction. When it fails nothing of it is on the disk.
pub(super) fn write(store: &mut Sqlite, writes: &Writes<'_>) -> Result<(), StoreError> {
    let written = store.write(|transaction| write_all(transaction, writes));
    written.map_err(|error| StoreError::Database {
        doing: "write to",
        cause: error.to_string(),
    })
}

fn write_all(transaction: &Connection, writes: &Writes<'_>) -> rusqlite::Result<()> {
    delete(
        transaction,
        "DELETE FROM tasks WHERE id = ?1",
        &writes.tasks.gone,
    )?;
    for Put { guid, row, new } in &writes.tasks.put {
        if *new {
            transaction
                .prepare_cached("INSERT INTO tasks (id, guid, record) VALUES (?1, ?2, ?3)")?
                .execute(params![row.id, guid, &*row.bytes])?;
        } else {
            transaction
                .prepare_cached("UPDATE tasks SET record = ?2 WHERE id = ?1")?
                .execute(params![row.id, &*row.bytes])?;
        }
    }
    delete(
        transaction,
        "DELETE FROM desired_lrps WHERE id = ?1",
        &writes.desired.gone,
    )?;
    for Put { guid, row, new } in &writes.desired.put {
        if *new {
            transaction
                .prepare_cached(
                    "INSERT INTO desired_lrps (id, process_guid, domain, info, rest)
                     VALUES (?1, ?2, ?3, ?4, ?5)",
                )?
                .execute(params![row.id, guid, row.domain, &*row.info, &*row.rest])?;
        } else {
            transaction
                .prepare_cached("UPDATE desired_lrps SET info = ?2, rest = ?3 WHERE id = ?1")?
                .execute(params![row.id, &*row.info, &*row.rest])?;
        }
    }
    delete(
        transaction,
        "DELETE FROM actual_lrps WHERE id = ?1",
        &writes.actual.gone,
    )?;
    for Put { guid, row, new } in &writes.actual.put {
        if *new {
            transaction
                .prepare_cached(
                    "INSERT INTO actual_lrps (id, process_guid, idx, presence, record)
                     VALUES (?1, ?2, ?3, ?4, ?5)",
                )?
                .execute(params![row.id, guid, row.index, row.presence, &*row.bytes])?;
        } else {
            transaction
                .prepare_cached("UPDATE actual_lrps SET record = ?2 WHERE id = ?1")?
                .execute(params![row.id, &*row.bytes])?;
        }
    }
    write_keyed(transaction, writes)
}

fn delete(transaction: &Connection, statement: &str, ids: &[i64]) -> rusqlite::Result<()> {
    for id in ids {
        transaction.prepare_cached(statement)?.execute([id])?;
    }
    Ok(())
}

/// The tables whose rows have names.
fn write_keyed(transaction: &Connection, writes: &Writes<'_>) -> rusqlite::Result<()> {
    for (guid, from) in &writes.stops {
        match from {
            Some(from) => transaction
                .prepare_cached(
                    "INSERT OR REPLACE INTO stops (process_guid, from_index) VALUES (?1, ?2)",
                )?
                .execute(params![guid, from])?,
            None => transaction
                .prepare_cached("DELETE FROM stops WHERE process_guid = ?1")?
                .execute([guid])?,
        };
    }
    for (domain, expires) in &writes.domains {
        match expires {
            Some(expires) => transaction
                .prepare_cached("INSERT OR REPLACE INTO domains (domain, expires) VALUES (?1, ?2)")?
                .execute(params![domain, expires])?,
            None => transaction
                .prepare_cached("DELETE FROM domains WHERE domain = ?1")?
                .execute([domain])?,
        };
    }
    for Kept { id, resource, ttl } in &writes.held {
        transaction
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
            ])?;
    }
    for (key, id) in &writes.gone {
        transaction
            .prepare_cached("DELETE FROM presences WHERE key = ?1 AND id <= ?2")?
            .execute(params![key, id])?;
    }
    Ok(())
}
