//! Where rows outlive the process: SQLite in a file, or PostgreSQL.
//!
//! Both are written by one thread, one transaction for a batch of calls, and read only
//! when the server starts or has lost sight of what is stored. So neither needs an index
//! beside the rows' numbers, and both keep the same columns.

mod postgres;
mod sqlite;

use std::path::PathBuf;

use super::settings::Database;
use super::state::{State, Writes};

pub(crate) use postgres::Postgres;
pub(crate) use sqlite::Sqlite;

/// Keeps rows.
pub(crate) trait Store: Send + 'static {
    /// Reads everything, after connecting again where that is needed.
    fn load(&mut self) -> impl Future<Output = Result<State, StoreError>>;

    /// Writes a batch in one transaction. When it returns without an error the batch
    /// survives the end of the process and of the machine.
    fn commit(&mut self, writes: &Writes) -> impl Future<Output = Result<(), StoreError>>;

    /// Whether what is stored may differ from what was last loaded and committed: a
    /// connection was lost. Then [`Store::load`] has to come before the next commit.
    fn lost(&self) -> bool;

    /// Bounds the database to so many pages, where it can; tests fill disks so.
    fn limit_pages(&mut self, _pages: u32) {}
}

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Its file or folder cannot be used.
    #[error("open the database {}: {cause}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: String,
    },
    /// Another routing API uses it.
    #[error(
        "open the database {database}: another routing API holds its lock; stop that one, or wait until it stops"
    )]
    Locked {
        /// The database, without a password.
        database: String,
    },
    /// A later version of the program made it.
    #[error(
        "open the database {database}: its tables have version {found}, this program knows versions up to {known}; use a newer program or another database"
    )]
    Newer {
        /// The database, without a password.
        database: String,
        /// The version of its tables.
        found: i64,
        /// The version that this program writes.
        known: i64,
    },
    /// A row cannot be read.
    #[error(
        "read row {id} of {table}: {cause}; remove the row or restore the database from a copy"
    )]
    Damaged {
        /// The table.
        table: &'static str,
        /// The row.
        id: i64,
        /// What is wrong with it.
        cause: String,
    },
    /// The database refused, or is out of reach.
    #[error("{doing} the database: {cause}")]
    Database {
        /// What was being done.
        doing: &'static str,
        /// What the database said.
        cause: String,
    },
}

impl StoreError {
    fn damaged(table: &'static str, id: i64, column: &str, found: impl std::fmt::Display) -> Self {
        Self::Damaged {
            table,
            id,
            cause: format!("{column} is {found}, which is out of bounds"),
        }
    }
}

/// A store, by the kind of its database.
pub(crate) enum AnyStore {
    Sqlite(Sqlite),
    Postgres(Box<Postgres>),
}

impl AnyStore {
    /// Opens a file, or prepares to connect.
    ///
    /// # Errors
    /// When the file cannot be opened, or the settings of the connection make no sense.
    pub(crate) fn open(database: &Database) -> Result<Self, StoreError> {
        match database {
            Database::Sqlite(path) => Sqlite::open(path).map(Self::Sqlite),
            Database::Postgres(settings) => {
                let store = Postgres::new(settings)?;
                Ok(Self::Postgres(Box::new(store)))
            }
        }
    }
}

impl Store for AnyStore {
    async fn load(&mut self) -> Result<State, StoreError> {
        match self {
            Self::Sqlite(store) => store.load().await,
            Self::Postgres(store) => store.load().await,
        }
    }

    async fn commit(&mut self, writes: &Writes) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(store) => store.commit(writes).await,
            Self::Postgres(store) => store.commit(writes).await,
        }
    }

    fn lost(&self) -> bool {
        match self {
            Self::Sqlite(store) => store.lost(),
            Self::Postgres(store) => store.lost(),
        }
    }

    fn limit_pages(&mut self, pages: u32) {
        match self {
            Self::Sqlite(store) => store.limit_pages(pages),
            Self::Postgres(store) => store.limit_pages(pages),
        }
    }
}
