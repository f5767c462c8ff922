//! Where records outlive the process: SQLite in a folder, or PostgreSQL.
//!
//! Both are written by one thread, a batch of commands in one transaction, and read only at the
//! start, and when what they have may differ from what is in memory. All lookups happen there.
//! With keys every record is encrypted before it reaches either.

mod load;
mod postgres;
mod reencryption;
mod sqlite;
#[cfg(test)]
mod tests;
mod writes;

use std::path::Path;

use commit::postgres::{Found, PostgresSettings};
use commit::{Postgres, Sqlite, StoreError};

use super::encryption::{EncryptionKeys, Vault, admit};
use super::presence::StoredLock;
use super::state::{Names, NextIds, State};
use load::{Loading, Reading};
use reencryption::Walk;
pub(crate) use writes::Writes;

/// What uses these databases, for errors.
const OWNER: &str = "BBS";

/// A database, and the keys of what is in it.
pub(crate) struct Store {
    database: Database,
    vault: Option<Vault>,
    /// Rows that were not encrypted with the active key when they were read, less those that were
    /// encrypted anew.
    stale: u64,
    /// Where encrypting anew has come to, while there is some to do.
    walk: Option<Walk>,
}

enum Database {
    Sqlite(Sqlite),
    Postgres(Box<Postgres>),
}

impl Store {
    /// Opens the database in `folder`, creating what is missing.
    pub(crate) fn open(folder: &Path, keys: Option<EncryptionKeys>) -> Result<Self, StoreError> {
        let database = sqlite::open(folder)?;
        Ok(Self::new(Database::Sqlite(database), keys))
    }

    /// A database in PostgreSQL, which [`Store::connect`] will connect to.
    pub(crate) fn postgres(
        settings: &PostgresSettings,
        keys: Option<EncryptionKeys>,
    ) -> Result<Self, StoreError> {
        let database = postgres::open(settings)?;
        Ok(Self::new(Database::Postgres(Box::new(database)), keys))
    }

    fn new(database: Database, keys: Option<EncryptionKeys>) -> Self {
        Self {
            database,
            vault: keys.map(Vault::new),
            stale: 0,
            walk: None,
        }
    }

    /// Connects, or connects again; a file is open.
    pub(crate) async fn connect(&mut self) -> Result<Found, StoreError> {
        match &mut self.database {
            Database::Sqlite(_) => Ok(Found::First),
            Database::Postgres(store) => store.connect().await,
        }
    }

    /// Sees whether the keys are those of the database, after the first [`Store::connect`] and
    /// before anything else.
    pub(crate) async fn unlock(&mut self) -> Result<(), super::Error> {
        let listed = match &self.database {
            Database::Sqlite(store) => sqlite::keys(store)?,
            Database::Postgres(store) => postgres::keys(store).await?,
        };
        let admitted = admit(self.vault.as_mut(), &listed)?;
        if !admitted.new.is_empty() {
            match &mut self.database {
                Database::Sqlite(store) => sqlite::add_keys(store, &admitted.new)?,
                Database::Postgres(store) => postgres::add_keys(store, &admitted.new).await?,
            }
        }
        self.walk = admitted.reencrypt.then(Walk::default);
        Ok(())
    }

    /// Whether [`Store::connect`] has to come before anything else.
    pub(crate) fn lost(&self) -> bool {
        match &self.database {
            Database::Sqlite(_) => false,
            Database::Postgres(store) => store.lost(),
        }
    }

    /// Reads all records.
    pub(crate) async fn load(&mut self, names: &mut Names) -> Result<(State, NextIds), StoreError> {
        let reading = Reading::new(self.vault.as_mut());
        let mut loading = Loading::new(names, reading);
        match &self.database {
            Database::Sqlite(store) => sqlite::load(store, &mut loading)?,
            Database::Postgres(store) => postgres::load(store, &mut loading).await?,
        }
        let (state, next, stale) = loading.finish();
        self.stale = stale;
        Ok((state, next))
    }

    /// Reads who held which key.
    pub(crate) async fn presences(&mut self) -> Result<Vec<StoredLock>, StoreError> {
        let mut reading = Reading::new(self.vault.as_mut());
        let presences = match &self.database {
            Database::Sqlite(store) => sqlite::presences(store, &mut reading)?,
            Database::Postgres(store) => postgres::presences(store, &mut reading).await?,
        };
        self.stale += reading.stale;
        Ok(presences)
    }

    /// Writes a batch in one transaction. When it returns without an error the batch
    /// survives the end of the process and of the machine. When it fails and the database is not
    /// [`lost`](Self::lost) nothing of it is stored.
    pub(crate) async fn commit(&mut self, mut writes: Writes<'_>) -> Result<(), StoreError> {
        if let Some(vault) = &mut self.vault {
            writes.seal(vault)?;
        }
        match &mut self.database {
            Database::Sqlite(store) => sqlite::write(store, &writes),
            Database::Postgres(store) => postgres::write(store, &writes).await,
        }
    }

    /// Bounds the database to so many pages of 4 KiB, where it can; tests fill disks so.
    pub(crate) fn limit_pages(&self, pages: u32) {
        if let Database::Sqlite(store) = &self.database {
            store.limit_pages(pages);
        }
    }
}
