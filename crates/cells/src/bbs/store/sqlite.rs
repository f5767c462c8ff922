//! Rows in an SQLite file.
//!
//! Tables have no index but their row numbers, which makes a new record an append.

use std::path::Path;

use commit::{Sqlite, StoreError};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};

use super::OWNER;
use super::load::{KeptRow, Loading, Reading, Unreadable};
use super::writes::{Held, Put, Writes};
use crate::bbs::encryption::Listed;
use crate::bbs::presence::StoredLock;

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
    // What has no label is not encrypted.
    "
    ALTER TABLE tasks ADD COLUMN key_label TEXT;
    ALTER TABLE desired_lrps ADD COLUMN key_label TEXT;
    ALTER TABLE actual_lrps ADD COLUMN key_label TEXT;
    ALTER TABLE presences ADD COLUMN key_label TEXT;
    CREATE TABLE encryption_keys (label TEXT PRIMARY KEY, proof BLOB NOT NULL) WITHOUT ROWID;
",
];

pub(super) const UPDATE_TASK: &str = "UPDATE tasks SET record = ?2, key_label = ?3 WHERE id = ?1";
pub(super) const UPDATE_DESIRED: &str =
    "UPDATE desired_lrps SET info = ?2, rest = ?3, key_label = ?4 WHERE id = ?1";
pub(super) const UPDATE_ACTUAL: &str =
    "UPDATE actual_lrps SET record = ?2, key_label = ?3 WHERE id = ?1";

/// Opens the database in `folder`, creating what is missing.
pub(super) fn open(folder: &Path) -> Result<Sqlite, StoreError> {
    Sqlite::open(&folder.join("bbs.sqlite"), OWNER, MIGRATIONS)
}

/// Reads all records.
pub(super) fn load(store: &Sqlite, loading: &mut Loading<'_>) -> Result<(), StoreError> {
    let query = "SELECT id, guid, key_label, record FROM tasks";
    store.rows("tasks", query, |row| {
        let (id, guid, label) = (row.get(0)?, text(row, 1)?, label(row, 2)?);
        loading.task(id, guid, label, bytes(row, 3)?)
    })?;
    let query = "SELECT id, process_guid, domain, key_label, info, rest FROM desired_lrps";
    store.rows("desired_lrps", query, |row| {
        let (id, guid, domain) = (row.get(0)?, text(row, 1)?, text(row, 2)?);
        let values = [bytes(row, 4)?, bytes(row, 5)?];
        loading.desired(id, guid, domain, label(row, 3)?, values)
    })?;
    let query = "SELECT id, process_guid, key_label, record FROM actual_lrps";
    store.rows("actual_lrps", query, |row| {
        let (id, guid, label) = (row.get(0)?, text(row, 1)?, label(row, 2)?);
        loading.actual(id, guid, label, bytes(row, 3)?)
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

fn text<'r>(row: &'r Row<'_>, column: usize) -> Result<&'r str, Unreadable> {
    Ok(row.get_ref(column)?.as_str()?)
}

fn label<'r>(row: &'r Row<'_>, column: usize) -> Result<Option<&'r str>, Unreadable> {
    Ok(row.get_ref(column)?.as_str_or_null()?)
}

/// A value; those of before encryption may be texts.
fn bytes<'r>(row: &'r Row<'_>, column: usize) -> Result<&'r [u8], Unreadable> {
    match row.get_ref(column)? {
        ValueRef::Blob(bytes) | ValueRef::Text(bytes) => Ok(bytes),
        _ => Err("expected bytes".into()),
    }
}

/// Reads who held which key.
pub(super) fn presences(
    store: &Sqlite,
    reading: &mut Reading<'_>,
) -> Result<Vec<StoredLock>, StoreError> {
    let mut presences = Vec::new();
    let query = "SELECT id, key, owner, type_code, ttl_s, key_label, value FROM presences";
    store.rows("presences", query, |row| {
        let held = KeptRow {
            id: row.get(0)?,
            key: row.get(1)?,
            owner: row.get(2)?,
            type_code: row.get(3)?,
            ttl_s: row.get(4)?,
        };
        presences.push(held.with(reading, label(row, 5)?, bytes(row, 6)?)?);
        Ok(())
    })?;
    Ok(presences)
}

/// Which keys values may be encrypted with.
pub(super) fn keys(store: &Sqlite) -> Result<Vec<Listed>, StoreError> {
    let mut keys = Vec::new();
    let query = "SELECT 0, label, proof FROM encryption_keys";
    store.rows("encryption_keys", query, |row| {
        let (label, proof) = (row.get(1)?, row.get(2)?);
        keys.push(Listed { label, proof });
        Ok(())
    })?;
    Ok(keys)
}

/// Adds keys that values may be encrypted with.
pub(super) fn add_keys(store: &mut Sqlite, keys: &[Listed]) -> Result<(), StoreError> {
    write_with(store, |transaction| {
        for Listed { label, proof } in keys {
            transaction.execute(
                "INSERT INTO encryption_keys (label, proof) VALUES (?1, ?2)",
                params![label, proof],
            )?;
        }
        Ok(())
    })
}

/// Forgets all keys but one. Values of before are gone from the file and its log before that.
pub(super) fn only_key(store: &mut Sqlite, label: &str) -> Result<(), StoreError> {
    store.rewrite()?;
    write_with(store, |transaction| {
        transaction.execute("DELETE FROM encryption_keys WHERE label <> ?1", [label])?;
        Ok(())
    })
}

/// Writes in one transaction. When it fails nothing of it is on the disk.
pub(super) fn write(store: &mut Sqlite, writes: &Writes<'_>) -> Result<(), StoreError> {
    write_with(store, |transaction| write_all(transaction, writes))
}

pub(super) fn write_with(
    store: &mut Sqlite,
    write: impl FnOnce(&Connection) -> rusqlite::Result<()>,
) -> Result<(), StoreError> {
    let written = store.write(|transaction| write(transaction));
    written.map_err(|error| StoreError::Database {
        doing: "write to",
        cause: error.to_string(),
    })
}

fn write_all(transaction: &Connection, writes: &Writes<'_>) -> rusqlite::Result<()> {
    let label = writes.label.as_deref();
    delete(
        transaction,
        "DELETE FROM tasks WHERE id = ?1",
        &writes.tasks.gone,
    )?;
    for put in &writes.tasks.put {
        let Put { guid, row, .. } = put;
        if put.new {
            transaction
                .prepare_cached(
                    "INSERT INTO tasks (id, guid, record, key_label) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![row.id, guid, put.bytes, label])?;
        } else {
            transaction
                .prepare_cached(UPDATE_TASK)?
                .execute(params![row.id, put.bytes, label])?;
        }
    }
    delete(
        transaction,
        "DELETE FROM desired_lrps WHERE id = ?1",
        &writes.desired.gone,
    )?;
    for put in &writes.desired.put {
        let Put { guid, row, .. } = put;
        if put.new {
            transaction
                .prepare_cached(
                    "INSERT INTO desired_lrps (id, process_guid, domain, info, rest, key_label)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute(params![
                    row.id, guid, row.domain, put.bytes, put.rest, label
                ])?;
        } else {
            transaction
                .prepare_cached(UPDATE_DESIRED)?
                .execute(params![row.id, put.bytes, put.rest, label])?;
        }
    }
    delete(
        transaction,
        "DELETE FROM actual_lrps WHERE id = ?1",
        &writes.actual.gone,
    )?;
    for put in &writes.actual.put {
        let Put { guid, row, .. } = put;
        if put.new {
            transaction
                .prepare_cached(
                    "INSERT INTO actual_lrps (id, process_guid, idx, presence, record, key_label)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute(params![
                    row.id,
                    guid,
                    row.index,
                    row.presence,
                    put.bytes,
                    label
                ])?;
        } else {
            transaction
                .prepare_cached(UPDATE_ACTUAL)?
                .execute(params![row.id, put.bytes, label])?;
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
    for Held { kept, value } in &writes.held {
        let StoredLock { id, resource, ttl } = kept;
        transaction
            .prepare_cached(
                "INSERT OR REPLACE INTO presences
                     (key, id, owner, value, type_code, ttl_s, key_label)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                resource.key,
                id,
                resource.owner,
                value,
                resource.type_code,
                ttl.as_secs() as i64,
                writes.label,
            ])?;
    }
    for (key, id) in &writes.gone {
        transaction
            .prepare_cached("DELETE FROM presences WHERE key = ?1 AND id <= ?2")?
            .execute(params![key, id])?;
    }
    Ok(())
}
