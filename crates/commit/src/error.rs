//! Why a database cannot be used.

use std::path::PathBuf;

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
    /// Another process uses it.
    #[error(
        "open the database {database}: another {owner} holds its lock; stop that one, wait until it stops, or use another database"
    )]
    Locked {
        /// The database, without a password.
        database: String,
        /// What uses such databases.
        owner: &'static str,
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
    /// The versions that lead from the tables that were found to those that are known.
    ///
    /// # Errors
    /// [`StoreError::Newer`] when a later program made them.
    pub fn missing<'a>(
        migrations: &'a [&'a str],
        found: i64,
        database: impl FnOnce() -> String,
    ) -> Result<&'a [&'a str], Self> {
        let missing = usize::try_from(found)
            .ok()
            .and_then(|found| migrations.get(found..));
        missing.ok_or_else(|| Self::Newer {
            database: database(),
            found,
            known: migrations.len() as i64,
        })
    }
}
