//! Rows in an SQLite file.

mod write;

use std::path::Path;

use commit::{Sqlite, StoreError};

use super::{FILE, OWNER, Row};
use crate::private;
use crate::server::state::Write;

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
    "
    CREATE INDEX runs_that_count ON runs (node, number) WHERE whole;
",
    "
    ALTER TABLE runs ADD COLUMN part INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN digest INTEGER;
    UPDATE runs SET part = number WHERE NOT whole;
    DROP INDEX runs_of_nodes;
    CREATE UNIQUE INDEX runs_of_nodes ON runs (node, start, part);
",
];

/// Opens the database in `folder` and makes what is missing.
pub(super) fn open(folder: &Path) -> Result<Sqlite, StoreError> {
    let path = folder.join(FILE);
    // What SQLite writes beside it has its rights. What cannot be made SQLite tells better.
    let _ = private::folder(folder).and_then(|()| private::file(&path));
    Sqlite::open(&path, OWNER, MIGRATIONS)
}

/// Hands over what a query finds in `table`.
pub(super) fn rows(
    store: &Sqlite,
    table: &'static str,
    query: &str,
    mut take: impl FnMut(Row<'_>) -> Result<(), super::RowError>,
) -> Result<(), StoreError> {
    store.rows(table, query, |row| take(Row::Sqlite(row)))
}

/// Writes a batch in one transaction.
pub(super) fn write(store: &mut Sqlite, writes: &[Write]) -> Result<(), StoreError> {
    let done = store.write(|transaction| {
        let mut writes = writes.iter();
        writes.try_for_each(|one| write::write(transaction, one))
    });
    done.map_err(refused)
}

/// Does statements in one transaction.
pub(super) fn execute(store: &mut Sqlite, statements: &[String]) -> Result<(), StoreError> {
    let done = store.write(|transaction| {
        let mut all = statements.iter();
        all.try_for_each(|one| transaction.execute(one, []).map(drop))
    });
    done.map_err(refused)
}

fn refused(error: rusqlite::Error) -> StoreError {
    StoreError::Database {
        doing: "write to",
        cause: error.to_string(),
    }
}
