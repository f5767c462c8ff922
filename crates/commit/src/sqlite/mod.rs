//! A database in an SQLite file, for one process at a time. `synchronous=FULL` in WAL mode: a
//! commit that returned is on the disk.

#[cfg(test)]
mod tests;

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, Row, Transaction};

use crate::StoreError;

/// Why nothing can be written beside a database, as far as one write tells.
fn unwritable(database: &Path) -> Option<String> {
    // As much as SQLite wants to write before anything else: its log's index.
    static PROBE: [u8; 64 * 1024] = [0; 64 * 1024];
    let probe = database.with_extension("probe");
    let written = std::fs::write(&probe, PROBE);
    let _ = std::fs::remove_file(&probe);
    let cause = written.err()?;
    let folder = database.parent().unwrap_or(database).display().to_string();
    Some(match cause.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            format!("the file system of {folder} is full: make room, then start again")
        }
        _ => format!("{folder} cannot be written to: {cause}"),
    })
}

/// An open database. It is locked: no other process can use the file meanwhile.
#[derive(Debug)]
pub struct Sqlite(Connection);

impl Sqlite {
    /// Opens the database in a file and makes what is missing, its folder included. `owner`
    /// is what uses it, for errors; `migrations` are the statements that lead from each
    /// version of the tables to the next.
    ///
    /// # Errors
    /// When the file cannot be used, another process uses it, or a later program made it.
    pub fn open(path: &Path, owner: &'static str, migrations: &[&str]) -> Result<Self, StoreError> {
        let refuse = |cause: String| StoreError::Open {
            path: path.to_owned(),
            cause,
        };
        let database = || path.display().to_string();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| refuse(error.to_string()))?;
        }
        let opening = |error: rusqlite::Error| match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseBusy) => StoreError::Locked {
                database: database(),
                owner,
            },
            // SQLite names neither what it could not do nor why.
            Some(rusqlite::ErrorCode::SystemIoFailure | rusqlite::ErrorCode::DiskFull) => {
                refuse(match unwritable(path) {
                    Some(why) => format!("{error}: {why}"),
                    None => error.to_string(),
                })
            }
            _ => refuse(error.to_string()),
        };
        // There may be secrets in it. What SQLite writes beside it has its rights; what cannot be
        // made SQLite tells better.
        let _ = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path);
        let mut connection = Connection::open(path).map_err(opening)?;
        connection.set_prepared_statement_cache_capacity(32);
        // The lock comes with the first transaction and stays.
        let settings = "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL;
            PRAGMA synchronous = FULL; PRAGMA cache_size = -16384;
            PRAGMA wal_autocheckpoint = 4096; PRAGMA journal_size_limit = 67108864;
            BEGIN IMMEDIATE; COMMIT;";
        connection
            .busy_timeout(Duration::ZERO)
            .and_then(|()| connection.execute_batch(settings))
            .map_err(opening)?;
        let found: i64 = connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .map_err(opening)?;
        let missing = StoreError::missing(migrations, found, database)?;
        let migrate = |connection: &mut Connection| {
            let transaction = connection.transaction()?;
            for migration in missing {
                transaction.execute_batch(migration)?;
            }
            transaction.pragma_update(None, "user_version", migrations.len() as i64)?;
            transaction.commit()
        };
        migrate(&mut connection).map_err(opening)?;
        Ok(Self(connection))
    }

    /// Hands over every row that a query finds in `table`. Its first column is the number by
    /// which an error names a row.
    ///
    /// # Errors
    /// When the database cannot be read, or `take` cannot read a row.
    pub fn rows(
        &self,
        table: &'static str,
        query: &str,
        mut take: impl FnMut(&Row<'_>) -> Result<(), Box<dyn std::error::Error>>,
    ) -> Result<(), StoreError> {
        let refuse = |error: rusqlite::Error| StoreError::Database {
            doing: "read",
            cause: error.to_string(),
        };
        let mut statement = self.0.prepare(query).map_err(refuse)?;
        let mut rows = statement.query([]).map_err(refuse)?;
        while let Some(row) = rows.next().map_err(refuse)? {
            take(row).map_err(|error| StoreError::Damaged {
                table,
                id: row.get(0).unwrap_or_default(),
                cause: error.to_string(),
            })?;
        }
        Ok(())
    }

    /// Looks something up.
    ///
    /// # Errors
    /// What SQLite said.
    pub fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        read(&self.0)
    }

    /// Writes in one transaction. When it fails nothing of it is on the disk.
    ///
    /// # Errors
    /// What SQLite, or `write`, said.
    pub fn write(
        &mut self,
        write: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let transaction = self.0.transaction()?;
        write(&transaction)?;
        transaction.commit()
    }

    /// Writes the file anew and empties its log, so that nothing is left in them of rows that were
    /// deleted or replaced. It needs room for a second copy meanwhile.
    ///
    /// # Errors
    /// When the disk is full, or refuses; the rows are then as before.
    pub fn rewrite(&mut self) -> Result<(), StoreError> {
        let rewritten = self
            .0
            .execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);");
        rewritten.map_err(|error| StoreError::Database {
            doing: "rewrite",
            cause: error.to_string(),
        })
    }

    /// Bounds the database to so many pages of 4 KiB, or to those that it has if these are
    /// more; what does not fit then fails as it does on a full disk.
    pub fn limit_pages(&self, pages: u32) {
        // SQLite refuses no number.
        let _ = self.0.pragma_update(None, "max_page_count", pages);
    }
}
