//! How a BBS comes to hold its database.

use std::time::Duration;

use commit::StoreError;
use telemetry::{Fields, Logger};

use super::config::Config;
use super::store::Store;

/// Time between two attempts to open a database that another BBS uses.
const STANDBY_LOOK: Duration = Duration::from_millis(250);

/// The database: a file is open and locked, PostgreSQL is yet to be [held](hold). One that stands
/// by waits for the file, whose lock the kernel takes from a process that dies.
pub(super) async fn open(config: &Config, logger: &Logger) -> Result<Store, StoreError> {
    if let Some(settings) = &config.postgres {
        return Store::postgres(settings, config.encryption.clone());
    }
    let mut wait = Wait::new(config.standby, logger);
    loop {
        match Store::open(&config.data_dir, config.encryption.clone()) {
            Err(error) => wait.after(error).await?,
            Ok(store) => {
                wait.over();
                return Ok(store);
            }
        }
    }
}

/// Connects and takes the lock, which PostgreSQL takes from a connection that breaks. One that
/// stands by waits for it, also while the database is away meanwhile.
pub(super) async fn hold(
    store: &mut Store,
    standby: bool,
    logger: &Logger,
) -> Result<(), StoreError> {
    let mut wait = Wait::new(standby, logger);
    loop {
        match store.connect().await {
            Err(error) => wait.after(error).await?,
            Ok(_) => {
                wait.over();
                return Ok(());
            }
        }
    }
}

/// A wait for another BBS to end.
struct Wait {
    standby: bool,
    logger: Logger,
    told: bool,
}

impl Wait {
    fn new(standby: bool, logger: &Logger) -> Self {
        Self {
            standby,
            logger: logger.session("lock"),
            told: false,
        }
    }

    /// Waits a little, if this error goes by itself.
    async fn after(&mut self, error: StoreError) -> Result<(), StoreError> {
        match error {
            StoreError::Locked { database, .. } if self.standby => {
                if !std::mem::replace(&mut self.told, true) {
                    let fields = Fields::new().and("database", database);
                    self.logger.info("waiting", fields);
                }
            }
            // It was there a moment ago.
            StoreError::Database { .. } if self.told => {}
            error => return Err(error),
        }
        tokio::time::sleep(STANDBY_LOOK).await;
        Ok(())
    }

    fn over(&self) {
        if self.told {
            self.logger.info("acquired", Fields::new());
        }
    }
}
