//! The disk: one SQLite database, written by one thread, a transaction and a sync for each batch.
//!
//! A run is one row: the signed message as it came, so that it can be checked again, and a row
//! for each report of which something is to be told. A row for each report would be the limit of
//! the whole server long before signatures are. Policies and what is expected of them are kept by
//! their content: the same is there once.

mod hours;
mod load;
mod write;

use std::collections::HashMap;
use std::path::Path;

use commit::{Sqlite, StoreError};
use rusqlite::{OptionalExtension, params};
use serde::Serialize;

use super::state::Write;
use crate::reports::decision::UnixMillis;

pub(crate) use load::{Loaded, StoredRun};
pub(crate) use write::ACCESSES;

const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE nodes (number INTEGER PRIMARY KEY, id TEXT NOT NULL, standing TEXT NOT NULL,
        key_status TEXT NOT NULL, certificate TEXT NOT NULL, node TEXT NOT NULL,
        received INTEGER NOT NULL, inventory BLOB NOT NULL);
    CREATE TABLE definitions (version INTEGER PRIMARY KEY, at INTEGER NOT NULL,
        body BLOB NOT NULL);
    CREATE TABLE contents (number INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE,
        body BLOB NOT NULL);
    CREATE TABLE configurations (number INTEGER PRIMARY KEY, node INTEGER NOT NULL,
        config_id TEXT, digest BLOB, begin INTEGER NOT NULL, policy INTEGER, expected INTEGER);
    CREATE INDEX configurations_of_nodes ON configurations (node, number);
    CREATE TABLE runs (number INTEGER PRIMARY KEY, node INTEGER NOT NULL, start INTEGER NOT NULL,
        received INTEGER NOT NULL, config_id TEXT, whole INTEGER NOT NULL,
        reports INTEGER NOT NULL, message BLOB NOT NULL);
    CREATE UNIQUE INDEX runs_of_nodes ON runs (node, start);
    CREATE TABLE exceptions (number INTEGER PRIMARY KEY, run INTEGER NOT NULL, rule TEXT NOT NULL,
        directive TEXT NOT NULL, component TEXT NOT NULL, key TEXT NOT NULL, kind TEXT NOT NULL,
        message TEXT NOT NULL);
    CREATE INDEX exceptions_of_runs ON exceptions (run);
    CREATE TABLE refused (number INTEGER PRIMARY KEY, at INTEGER NOT NULL, name TEXT NOT NULL,
        why TEXT NOT NULL, body BLOB NOT NULL);
",
    "
    CREATE TABLE edits (version INTEGER PRIMARY KEY, at INTEGER NOT NULL, body BLOB NOT NULL);
    CREATE TABLE tokens (id TEXT PRIMARY KEY, name TEXT NOT NULL, access TEXT NOT NULL,
        hash BLOB NOT NULL, created INTEGER NOT NULL) WITHOUT ROWID;
",
    "
    CREATE TABLE history (thing TEXT NOT NULL, begin INTEGER NOT NULL, known INTEGER NOT NULL,
        lowest REAL NOT NULL, highest REAL NOT NULL, weighted REAL NOT NULL, level TEXT NOT NULL,
        PRIMARY KEY (thing, begin)) WITHOUT ROWID;
    CREATE INDEX history_of_hours ON history (begin);
",
    "
    ALTER TABLE runs ADD COLUMN signed INTEGER NOT NULL DEFAULT 1;
",
];

/// Runs that one purge removes at most, so that uploads need not wait for it.
const PURGED: usize = 2_000;

/// The database in the folder of the server's data; its log has `-wal` at the end.
pub(crate) const FILE: &str = "compliance.sqlite";

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Stored {
    /// Runs.
    pub(crate) runs: i64,
    /// Reports in them.
    pub(crate) reports: i64,
    /// Bytes of their messages, packed.
    pub(crate) bytes: i64,
    /// Reports of which something is to be told.
    pub(crate) exceptions: i64,
    /// Uploads that were refused and are kept aside.
    pub(crate) refused: i64,
}

/// The open database.
#[derive(Debug)]
pub(crate) struct Store(Sqlite);

impl Store {
    /// Opens the database in `folder` and makes what is missing.
    pub(crate) fn open(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(FILE);
        Sqlite::open(&path, "compliance server", MIGRATIONS).map(Self)
    }

    /// Writes a batch in one transaction.
    pub(crate) fn commit(&mut self, writes: &[Write]) -> rusqlite::Result<()> {
        self.0.write(|transaction| {
            let mut writes = writes.iter();
            writes.try_for_each(|one| write::write(transaction, one))
        })
    }

    /// Is there a run of this node with this start?
    pub(crate) fn has_run(&self, node: i64, start: UnixMillis) -> rusqlite::Result<bool> {
        self.0.read(|connection| {
            connection
                .prepare_cached("SELECT 1 FROM runs WHERE node = ?1 AND start = ?2")?
                .exists(params![node, start])
        })
    }

    /// The last run of a node that counts.
    pub(crate) fn last_run(&self, node: i64) -> rusqlite::Result<Option<StoredRun>> {
        self.0.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT number, config_id, message, signed FROM runs
                     WHERE node = ?1 AND whole ORDER BY number DESC LIMIT 1",
                )?
                .query_row([node], |row| {
                    let (number, config_id, message, signed) = row.try_into()?;
                    Ok(StoredRun {
                        number,
                        config_id,
                        message,
                        signed,
                    })
                })
                .optional()
        })
    }

    /// What is expected of a node by the configuration with this identity, its newest without
    /// one: JSON, packed.
    pub(crate) fn expected(
        &self,
        node: i64,
        config_id: Option<&str>,
    ) -> rusqlite::Result<Option<Vec<u8>>> {
        self.0.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT body FROM configurations JOIN contents ON contents.number = expected
                     WHERE node = ?1 AND (?2 IS NULL OR config_id = ?2)
                     ORDER BY configurations.number DESC LIMIT 1",
                )?
                .query_row(params![node, config_id], |row| row.get(0))
                .optional()
        })
    }

    /// The last run of each node that counts, by their numbers.
    pub(crate) fn last_run_numbers(&self) -> Result<HashMap<i64, i64>, StoreError> {
        let mut last = HashMap::new();
        let query = "SELECT max(number), node FROM runs WHERE whole GROUP BY node";
        self.0.rows("runs", query, |row| {
            let (run, node) = row.try_into()?;
            last.insert(node, run);
            Ok(())
        })?;
        Ok(last)
    }

    /// The inventory of a node, packed.
    pub(crate) fn inventory(&self, node: i64) -> rusqlite::Result<Vec<u8>> {
        self.0.read(|connection| {
            connection
                .prepare_cached("SELECT inventory FROM nodes WHERE number = ?1")?
                .query_row([node], |row| row.get(0))
        })
    }

    /// How much is kept. It looks at every run: for whoever audits, not for what is asked often.
    pub(crate) fn stored(&self) -> rusqlite::Result<Stored> {
        self.0.read(|connection| {
            let query =
                "SELECT count(*), coalesce(sum(reports), 0), coalesce(sum(length(message)), 0),
                 (SELECT count(*) FROM exceptions), (SELECT count(*) FROM refused) FROM runs";
            connection.query_row(query, [], |row| {
                let (runs, reports, bytes, exceptions, refused) = row.try_into()?;
                Ok(Stored {
                    runs,
                    reports,
                    bytes,
                    exceptions,
                    refused,
                })
            })
        })
    }

    /// Bounds the database to so many pages of 4 KiB.
    #[cfg(test)]
    pub(crate) fn limit_pages(&self, pages: u32) {
        self.0.limit_pages(pages);
    }

    /// Removes runs that came before `before`, but those that are a node's last, and what nothing
    /// refers to any more. Says whether there may be more.
    pub(crate) fn purge(
        &mut self,
        before: UnixMillis,
        is_last: impl Fn(i64, i64) -> bool,
    ) -> rusqlite::Result<bool> {
        // Runs are numbered as they come: the old ones stand first, behind those that are kept.
        let old: Vec<i64> = self.0.read(|connection| {
            let mut query = connection
                .prepare_cached("SELECT number, node, received FROM runs ORDER BY number")?;
            let rows = query.query_map([], |row| <(i64, i64, i64)>::try_from(row))?;
            let old = rows
                .take_while(|row| row.as_ref().map_or(true, |(_, _, at)| *at < before))
                .filter(|row| {
                    row.as_ref()
                        .map_or(true, |(run, node, _)| !is_last(*node, *run))
                })
                .map(|row| row.map(|(run, _, _)| run));
            old.take(PURGED).collect()
        })?;
        let more = old.len() == PURGED;
        self.0.write(|transaction| {
            let mut exceptions =
                transaction.prepare_cached("DELETE FROM exceptions WHERE run = ?1")?;
            let mut runs = transaction.prepare_cached("DELETE FROM runs WHERE number = ?1")?;
            for run in old {
                exceptions.execute([run])?;
                runs.execute([run])?;
            }
            if !more {
                let unused = "DELETE FROM contents WHERE number NOT IN (
                    SELECT policy FROM configurations WHERE policy IS NOT NULL
                    UNION SELECT expected FROM configurations WHERE expected IS NOT NULL)";
                transaction.execute(unused, [])?;
            }
            Ok(())
        })?;
        Ok(more)
    }
}
