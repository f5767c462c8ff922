//! The disk: one SQLite database, written by one thread.
//!
//! All lookups happen in memory, so tables have no index but their row numbers,
//! which makes a new record an append. `synchronous=FULL` in WAL mode: a commit
//! that returned is on the disk.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::fcntl::{Flock, FlockArg};
use prost::Message;
use rusqlite::{Connection, OptionalExtension, params};

use super::state::{Actual, Desired, Names, NextIds, Overlay, Process, State, Task};

/// Version of the tables below.
const SCHEMA: i64 = 1;

const TABLES: &str = "
    CREATE TABLE schema (version INTEGER NOT NULL);
    CREATE TABLE tasks (id INTEGER PRIMARY KEY, guid TEXT NOT NULL, record BLOB NOT NULL);
    CREATE TABLE desired_lrps (id INTEGER PRIMARY KEY, process_guid TEXT NOT NULL,
        domain TEXT NOT NULL, info BLOB NOT NULL, rest BLOB NOT NULL);
    CREATE TABLE actual_lrps (id INTEGER PRIMARY KEY, process_guid TEXT NOT NULL,
        idx INTEGER NOT NULL, presence INTEGER NOT NULL, record BLOB NOT NULL);
    CREATE TABLE domains (domain TEXT PRIMARY KEY, expires INTEGER NOT NULL) WITHOUT ROWID;
";

/// Why the data folder could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder cannot be used.
    #[error("open the data folder {}: {cause}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        cause: String,
    },
    /// Another BBS uses it.
    #[error("open the data folder {}: another BBS holds its lock; stop it or use another folder", path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// A later version of the program wrote it.
    #[error(
        "open {}: its tables have version {found}, this program knows versions up to {SCHEMA}; use a newer program or another folder",
        path.display()
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its version.
        found: i64,
    },
    /// The database cannot be read.
    #[error("read {}: {cause}", path.display())]
    Database {
        /// The database.
        path: PathBuf,
        /// What SQLite said.
        cause: String,
    },
    /// A record in it cannot be read.
    #[error("read {}: row {id} of {table} is damaged: {cause}; restore the folder from a copy", path.display())]
    Damaged {
        /// The database.
        path: PathBuf,
        /// The table.
        table: &'static str,
        /// The row.
        id: i64,
        /// What is wrong with it.
        cause: String,
    },
}

/// The open database, and the lock of its folder.
pub(crate) struct Store {
    connection: Connection,
    _lock: Flock<File>,
}

impl Store {
    /// Opens the database in `folder`, creating what is missing.
    pub(crate) fn open(folder: &Path) -> Result<Self, StoreError> {
        let refuse = |cause: String| StoreError::Folder {
            path: folder.to_owned(),
            cause,
        };
        std::fs::create_dir_all(folder).map_err(|error| refuse(error.to_string()))?;
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(folder.join("bbs.lock"))
            .map_err(|error| refuse(error.to_string()))?;
        let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| {
            if errno == nix::errno::Errno::EWOULDBLOCK {
                let path = folder.to_owned();
                StoreError::Locked { path }
            } else {
                refuse(format!("lock it: {errno}"))
            }
        })?;
        let path = folder.join("bbs.sqlite");
        let database = |error: rusqlite::Error| StoreError::Database {
            path: path.clone(),
            cause: error.to_string(),
        };
        let connection = Connection::open(&path).map_err(database)?;
        connection.set_prepared_statement_cache_capacity(32);
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                 PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -16384;
                 PRAGMA wal_autocheckpoint = 4096; PRAGMA journal_size_limit = 67108864;",
            )
            .map_err(database)?;
        let tables: bool = connection
            .prepare("SELECT 1 FROM sqlite_master WHERE name = 'schema'")
            .and_then(|mut found| found.exists([]))
            .map_err(database)?;
        if !tables {
            let create = format!("BEGIN; {TABLES} INSERT INTO schema VALUES ({SCHEMA}); COMMIT;");
            connection.execute_batch(&create).map_err(database)?;
        }
        let found: i64 = connection
            .query_row("SELECT version FROM schema", [], |row| row.get(0))
            .optional()
            .map_err(database)?
            .unwrap_or(0);
        if found > SCHEMA {
            return Err(StoreError::Newer { path, found });
        }
        Ok(Self {
            connection,
            _lock: lock,
        })
    }

    /// Reads everything.
    pub(crate) fn load(&self, names: &mut Names) -> Result<(State, NextIds), StoreError> {
        let mut loaded = Overlay::default();
        let tasks = self.rows(
            "tasks",
            "SELECT id, guid, record FROM tasks",
            |row| {
                let bytes: Vec<u8> = row.get(2)?;
                Ok((row.get::<_, String>(1)?, bytes))
            },
            |id, (guid, bytes)| {
                let task = diego::models::Task::decode(&*bytes)?;
                let task = Task::new(id, &task, names);
                loaded.tasks.insert(guid.into(), Some(task));
                Ok(())
            },
        )?;
        let desired = self.rows(
            "desired_lrps",
            "SELECT id, process_guid, domain, info, rest FROM desired_lrps",
            |row| {
                let domain: String = row.get(2)?;
                let (info, rest): (Vec<u8>, Vec<u8>) = (row.get(3)?, row.get(4)?);
                Ok((row.get::<_, String>(1)?, domain, info, rest))
            },
            |id, (guid, domain, info, rest)| {
                let desired = Desired {
                    id,
                    info: info.into(),
                    rest: rest.into(),
                    domain: names.shared(&domain),
                };
                desired.decode()?;
                let process = loaded.processes.entry(guid.into()).or_default();
                process.desired = Some(desired);
                Ok(())
            },
        )?;
        let actual = self.rows(
            "actual_lrps",
            "SELECT id, process_guid, record FROM actual_lrps",
            |row| {
                let bytes: Vec<u8> = row.get(2)?;
                Ok((row.get::<_, String>(1)?, bytes))
            },
            |id, (guid, bytes)| {
                let row = diego::models::ActualLrp::decode(&*bytes)?;
                let row = Actual::new(id, &row, names);
                let process: &mut Process = loaded.processes.entry(guid.into()).or_default();
                process.put(row);
                Ok(())
            },
        )?;
        self.rows(
            "domains",
            "SELECT expires, domain FROM domains",
            |row| row.get::<_, String>(1),
            |expires, domain| {
                loaded.domains.insert(names.shared(&domain), expires);
                Ok(())
            },
        )?;
        let mut state = State::default();
        state.merge(loaded);
        let next = NextIds {
            task: tasks + 1,
            desired: desired + 1,
            actual: actual + 1,
        };
        Ok((state, next))
    }

    /// Reads the rows of a query whose first column is an integer and returns the
    /// largest of them.
    fn rows<R>(
        &self,
        table: &'static str,
        query: &str,
        read: impl Fn(&rusqlite::Row<'_>) -> rusqlite::Result<R>,
        mut take: impl FnMut(i64, R) -> Result<(), prost::DecodeError>,
    ) -> Result<i64, StoreError> {
        let path = || PathBuf::from(self.connection.path().unwrap_or_default());
        let database = |error: rusqlite::Error| StoreError::Database {
            path: path(),
            cause: error.to_string(),
        };
        let mut statement = self.connection.prepare(query).map_err(database)?;
        let mut rows = statement.query([]).map_err(database)?;
        let mut largest = 0;
        while let Some(row) = rows.next().map_err(database)? {
            let id: i64 = row.get(0).map_err(database)?;
            let found = read(row).map_err(database)?;
            take(id, found).map_err(|error| StoreError::Damaged {
                path: path(),
                table,
                id,
                cause: error.to_string(),
            })?;
            largest = largest.max(id);
        }
        Ok(largest)
    }

    /// Writes a batch over `base` in one transaction. When it fails nothing of the
    /// batch is on the disk.
    pub(crate) fn commit(&mut self, base: &State, batch: &Overlay) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        for (guid, task) in &batch.tasks {
            let old = base.tasks.get(guid);
            write_task(&transaction, guid, old, task.as_ref())?;
        }
        let nothing = Process::default();
        for (guid, process) in &batch.processes {
            let old = base.processes.get(guid).unwrap_or(&nothing);
            write_desired(
                &transaction,
                guid,
                old.desired.as_ref(),
                process.desired.as_ref(),
            )?;
            write_actual(&transaction, guid, &old.actual, &process.actual)?;
        }
        for (domain, expires) in &batch.domains {
            transaction
                .prepare_cached("INSERT OR REPLACE INTO domains (domain, expires) VALUES (?1, ?2)")?
                .execute(params![domain, expires])?;
        }
        for domain in &batch.expired {
            transaction
                .prepare_cached("DELETE FROM domains WHERE domain = ?1")?
                .execute([domain])?;
        }
        transaction.commit()
    }

    /// Bounds the database to so many pages of 4 KiB.
    pub(crate) fn limit_pages(&self, pages: u32) -> rusqlite::Result<()> {
        self.connection.pragma_update(None, "max_page_count", pages)
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
