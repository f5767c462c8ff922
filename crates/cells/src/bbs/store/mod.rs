//! Where records outlive the process: SQLite in a folder, or PostgreSQL.
//!
//! Both are written by one thread, a batch of commands in one transaction, and read only at the
//! start, and when what they have may differ from what is in memory. All lookups happen there.

mod load;
mod postgres;
mod sqlite;
#[cfg(test)]
mod tests;
mod writes;

use std::path::Path;

use commit::postgres::{Found, PostgresSettings};
use commit::{Postgres, Sqlite, StoreError};

use super::presence::Kept;
use super::state::{Names, NextIds, State};
use load::Loading;
pub(crate) use writes::Writes;

/// What uses these databases, for errors.
const OWNER: &str = "BBS";

/// A database.
pub(crate) enum Store {
    Sqlite(Sqlite),
    Postgres(Box<Postgres>),
}

impl Store {
    /// Opens the database in `folder`, creating what is missing.
    pub(crate) fn open(folder: &Path) -> Result<Self, StoreError> {
        sqlite::open(folder).map(Self::Sqlite)
    }

    /// A database in PostgreSQL, which [`Store::connect`] will connect to.
    pub(crate) fn postgres(settings: &PostgresSettings) -> Result<Self, StoreError> {
        let store = postgres::open(settings)?;
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

    /// Reads all records.
    pub(crate) async fn load(&self, names: &mut Names) -> Result<(State, NextIds), StoreError> {
        let mut loading = Loading::new(names);
        match self {
            Self::Sqlite(store) => sqlite::load(store, &mut loading)?,
            Self::Postgres(store) => postgres::load(store, &mut loading).await?,
        }
        Ok(loading.finish())
    }

    /// Reads who held which key.
    pub(crate) async fn presences(&self) -> Result<Vec<Kept>, StoreError> {
        match self {
            Self::Sqlite(store) => sqlite::presences(store),
            Self::Postgres(store) => postgres::presences(store).await,
        }
    }

    /// Writes a batch in one transaction. When it returns without an error the batch
    /// survives the end of the process and of the machine. When it fails and the database is not
    /// [`lost`](Self::lost) nothing of it is stored.
    pub(crate) async fn commit(&mut self, writes: &Writes<'_>) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(store) => sqlite::write(store, writes),
            Self::Postgres(store) => postgres::write(store, writes).await,
        }
    }

    /// Bounds the database to so many pages of 4 KiB, where it can; tests fill disks so.
    pub(crate) fn limit_pages(&self, pages: u32) {
        if let Self::Sqlite(store) = self {
            store.limit_pages(pages);
        }
    }
}
