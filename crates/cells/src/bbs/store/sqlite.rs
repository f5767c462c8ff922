//! Rows in an SQLite file.
//!
//! Tables have no index but their row numbers, which makes a new record an append.

use std::path::Path;

use commit::{Sqlite, StoreError};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, ToSql, params};

use super::OWNER;
use super::load::{Loading, LockRow, Reading, Unreadable};
use super::writes::{EncodedLock, Put, Writes};
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
        let held = LockRow {
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
    let run = |statement, params: &[&dyn ToSql]| execute(transaction, statement, params);
    for id in &writes.tasks.gone {
        run("DELETE FROM tasks WHERE id = ?1", params![id])?;
    }
    for put in &writes.tasks.put {
        let Put { guid, row, .. } = put;
        if put.new {
            let insert = "INSERT INTO tasks (id, guid, record, key_label) VALUES (?1, ?2, ?3, ?4)";
            run(insert, params![row.id, guid, put.bytes, label])?;
        } else {
            run(UPDATE_TASK, params![row.id, put.bytes, label])?;
        }
    }
    for id in &writes.desired.gone {
        run("DELETE FROM desired_lrps WHERE id = ?1", params![id])?;
    }
    for put in &writes.desired.put {
        let Put { guid, row, .. } = put;
        let (info, rest) = (&put.bytes, &put.rest);
        if put.new {
            let insert = "INSERT INTO desired_lrps
                (id, process_guid, domain, info, rest, key_label)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            run(insert, params![row.id, guid, row.domain, info, rest, label])?;
        } else {
            run(UPDATE_DESIRED, params![row.id, info, rest, label])?;
        }
    }
    for id in &writes.actual.gone {
        run("DELETE FROM actual_lrps WHERE id = ?1", params![id])?;
    }
    for put in &writes.actual.put {
        let Put {
            guid, row, bytes, ..
        } = put;
        if put.new {
            let insert = "INSERT INTO actual_lrps
                (id, process_guid, idx, presence, record, key_label)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            let (index, presence) = (row.index, row.presence);
            run(insert, params![row.id, guid, index, presence, bytes, label])?;
        } else {
            run(UPDATE_ACTUAL, params![row.id, bytes, label])?;
        }
    }
    // The tables whose rows have names.
    for (guid, from) in &writes.stops {
        let put = "INSERT OR REPLACE INTO stops (process_guid, from_index) VALUES (?1, ?2)";
        match from {
            Some(from) => run(put, params![guid, from])?,
            None => run("DELETE FROM stops WHERE process_guid = ?1", params![guid])?,
        }
    }
    for (domain, expires) in &writes.domains {
        let put = "INSERT OR REPLACE INTO domains (domain, expires) VALUES (?1, ?2)";
        match expires {
            Some(expires) => run(put, params![domain, expires])?,
            None => run("DELETE FROM domains WHERE domain = ?1", params![domain])?,
        }
    }
    for EncodedLock { kept, value } in &writes.held {
        let StoredLock { id, resource, ttl } = kept;
        let put = "INSERT OR REPLACE INTO presences
            (key, id, owner, value, type_code, ttl_s, key_label)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let (key, owner, code) = (&resource.key, &resource.owner, resource.type_code);
        let ttl_s = ttl.as_secs() as i64;
        run(put, params![key, id, owner, value, code, ttl_s, label])?;
    }
    for (key, id) in &writes.gone {
        let delete = "DELETE FROM presences WHERE key = ?1 AND id <= ?2";
        run(delete, params![key, id])?;
    }
    Ok(())
}

fn execute(
    transaction: &Connection,
    statement: &str,
    params: &[&dyn ToSql],
) -> rusqlite::Result<()> {
    transaction.prepare_cached(statement)?.execute(params)?;
    Ok(())
}
