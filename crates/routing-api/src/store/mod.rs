//! Where rows outlive the process: SQLite in a file, or PostgreSQL.
//!
//! Both are written by one thread, one transaction for a batch of calls, and read only
//! when the server starts or has lost sight of what is stored. So neither needs an index
//! beside the rows' numbers, and both keep the same columns.

mod postgres;
mod sqlite;

use commit::{Postgres, Sqlite, StoreError};

use super::settings::Database;
use super::state::{State, Writes};

/// What uses these databases, for errors.
const OWNER: &str = "routing API";

/// A database.
pub(crate) enum Store {
    Sqlite(Sqlite),
    Postgres(Box<Postgres>),
}

impl Store {
    /// Opens a file, or prepares to connect.
    ///
    /// # Errors
    /// When the file cannot be opened, or the settings of the connection make no sense.
    pub(crate) fn open(database: &Database) -> Result<Self, StoreError> {
        match database {
            Database::Sqlite(path) => sqlite::open(path).map(Self::Sqlite),
            Database::Postgres(settings) => {
                let store = postgres::open(settings)?;
                Ok(Self::Postgres(Box::new(store)))
            }
        }
    }

    /// Reads everything, after connecting again where that is needed.
    pub(crate) async fn load(&mut self) -> Result<State, StoreError> {
        match self {
            Self::Sqlite(store) => sqlite::load(store),
            Self::Postgres(store) => postgres::load(store).await,
        }
    }

    /// Writes a batch in one transaction. When it returns without an error the batch
    /// survives the end of the process and of the machine.
    pub(crate) async fn commit(&mut self, writes: &Writes) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(store) => sqlite::write(store, writes),
            Self::Postgres(store) => postgres::commit(store, writes).await,
        }
    }

    /// Whether what is stored may differ from what was last loaded and committed: a
    /// connection was lost. Then [`Store::load`] has to come before the next commit.
    pub(crate) fn lost(&self) -> bool {
        match self {
            // A failed transaction leaves no trace, so nothing is ever unsure.
            Self::Sqlite(_) => false,
            Self::Postgres(store) => store.lost(),
        }
    }

    /// Bounds the database to so many pages, where it can; tests fill disks so.
    pub(crate) fn limit_pages(&self, pages: u32) {
        if let Self::Sqlite(store) = self {
            store.limit_pages(pages);
        }
    }
}
