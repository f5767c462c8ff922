//! Where all of it outlives the process: one SQLite file, or PostgreSQL. Both are written by one
//! thread, a transaction for each batch, and read by the same queries.
//!
//! A run is one row: the signed message as it came, so that it can be checked again, and a row
//! for each report of which something is to be told. A row for each report would be the limit of
//! the whole server long before signatures are. Policies and what is expected of them are kept by
//! their content: the same is there once.

mod hours;
mod load;
mod look;
mod postgres;
mod purge;
mod row;
mod sqlite;
#[cfg(test)]
mod tests;
mod words;

use std::path::Path;
use std::time::Duration;

use commit::postgres::{Found, PostgresSettings};
use commit::{Postgres, Sqlite, StoreError};

use super::state::Write;
use crate::reports::decision::ConfigTime;
use crate::reports::fleet::{CONFIGS, MOST_CONFIGS};

pub(crate) use load::{Loaded, StoredConfig};
#[cfg(test)]
pub(crate) use look::Stored;
pub(crate) use look::StoredRun;
use row::Row;
pub(crate) use words::ACCESSES;

/// Why a row cannot be read.
pub(crate) type RowError = Box<dyn std::error::Error>;

/// What uses these databases, for errors.
const OWNER: &str = "compliance server";
/// The database in the folder of the server's data; its log has `-wal` at the end.
pub(crate) const FILE: &str = "compliance.sqlite";
/// Configurations of a node that are kept however long ago they ended, and those that are kept at
/// most: as many as compliance is computed with.
const CONFIGURATIONS: (i64, i64) = (CONFIGS as i64, MOST_CONFIGS as i64);
/// How long a configuration is kept after its end in any case, in milliseconds: as long as
/// compliance may be computed with it when agents run once a day, which is the least often. That
/// of a node's last run is kept as long as the run.
const CONFIGURATIONS_KEPT: i64 = {
    let (begin, interval) = (0, 86_400);
    2 * ConfigTime { begin, interval }.validity()
};
/// Versions of the definitions that are kept.
const VERSIONS: i64 = 100;
/// Refused uploads that are kept; the oldest make room.
const REFUSED: u32 = 1_000;
/// Longest wait for a query or a transaction, but for what is read at the start.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// A database.
pub(crate) enum Store {
    Sqlite(Sqlite),
    Postgres(Box<Postgres>),
}

impl Store {
    /// Opens the database in `folder` and makes what is missing.
    pub(crate) fn open(folder: &Path) -> Result<Self, StoreError> {
        sqlite::open(folder).map(Self::Sqlite)
    }

    /// A database in PostgreSQL, which [`Store::connect`] will connect to.
    pub(crate) fn postgres(settings: &PostgresSettings) -> Result<Self, StoreError> {
        let store = Postgres::new(settings.clone(), &postgres::SCHEMA)?;
        Ok(Self::Postgres(Box::new(store)))
    }

    /// Connects, or connects again; a file is open.
    pub(crate) async fn connect(&mut self) -> Result<Found, StoreError> {
        match self {
            Self::Sqlite(_) => Ok(Found::First),
            Self::Postgres(store) => store.connect().await,
        }
    }

    /// Whether [`Store::connect`] has to come before anything else.
    pub(crate) fn lost(&self) -> bool {
        match self {
            Self::Sqlite(_) => false,
            Self::Postgres(store) => store.lost(),
        }
    }

    /// Writes a batch in one transaction. When it fails and the database is not
    /// [`lost`](Self::lost) nothing of it is stored.
    pub(crate) async fn commit(&mut self, writes: &[Write]) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(store) => sqlite::write(store, writes),
            Self::Postgres(store) => postgres::write(store, writes).await,
        }
    }

    /// Hands over what a query finds in `table`, however long it takes. Its first column is the
    /// number by which an error names a row.
    async fn rows(
        &self,
        table: &'static str,
        query: &str,
        mut take: impl FnMut(Row<'_>) -> Result<(), RowError>,
    ) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(store) => sqlite::rows(store, table, query, take),
            Self::Postgres(store) => {
                let take = |row: &_| take(Row::Postgres(row));
                store.rows(table, query, take).await
            }
        }
    }

    /// The same for what somebody waits for: a database that does not answer is given up.
    async fn find(
        &mut self,
        table: &'static str,
        query: &str,
        take: impl FnMut(Row<'_>) -> Result<(), RowError>,
    ) -> Result<(), StoreError> {
        if matches!(self, Self::Sqlite(_)) {
            return self.rows(table, query, take).await;
        }
        let found = tokio::time::timeout(ANSWER_WITHIN, self.rows(table, query, take)).await;
        found.unwrap_or_else(|_| {
            if let Self::Postgres(store) = self {
                store.give_up();
            }
            Err(StoreError::Database {
                doing: "read",
                cause: format!("no answer within {} s", ANSWER_WITHIN.as_secs()),
            })
        })
    }

    /// Does statements that both databases understand in one transaction.
    async fn execute(&mut self, statements: &[String]) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(store) => sqlite::execute(store, statements),
            Self::Postgres(store) => postgres::execute(store, statements).await,
        }
    }

    /// A text as a query of this database has it.
    fn literal(&self, text: &str) -> String {
        let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        match self {
            Self::Sqlite(_) => format!("CAST(x'{hex}' AS TEXT)"),
            Self::Postgres(_) => format!("decode('{hex}', 'hex')"),
        }
    }

    /// Bounds the database to so many pages of 4 KiB, where it can.
    #[cfg(test)]
    pub(crate) fn limit_pages(&self, pages: u32) {
        if let Self::Sqlite(store) = self {
            store.limit_pages(pages);
        }
    }
}
