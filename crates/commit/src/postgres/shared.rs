//! A database in PostgreSQL that several programs use at once.
//!
//! None of them holds it: what must not happen twice is for a statement's conditions to prevent.
//! Each statement is a transaction of its own.

use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::Row;

use super::session::Session;
use super::settings::PostgresSettings;
use super::tls::Tls;
use super::{
    CONNECT_WITHIN, MIGRATE_WITHIN, Schema, Statement, config_of, failed, late, not_dialled,
    unavailable, within,
};
use crate::StoreError;

/// One connection to a database that others use as well.
pub struct Shared {
    settings: PostgresSettings,
    config: tokio_postgres::Config,
    tls: Tls,
    schema: &'static Schema,
    session: Option<Session>,
}

impl Shared {
    /// A database that [`Shared::connect`] will connect to. The book of `schema` has the version
    /// of the tables; its lock is held only while these are brought up to date.
    ///
    /// # Errors
    /// When the authority of its certificate cannot be read.
    pub fn new(settings: PostgresSettings, schema: &'static Schema) -> Result<Self, StoreError> {
        Ok(Self {
            config: config_of(&settings, schema),
            tls: Tls::new(settings.authority.as_deref())?,
            schema,
            session: None,
            settings,
        })
    }

    /// Connects, or connects again, and brings the tables up to date, one program after the other.
    ///
    /// # Errors
    /// [`StoreError::Newer`] when a later program made the tables, and when the database cannot be
    /// reached.
    pub async fn connect(&mut self) -> Result<(), StoreError> {
        self.session = None;
        let dialled = Session::dial(&self.config, &self.tls);
        let dialled = within(CONNECT_WITHIN, dialled).await;
        let mut session = dialled.map_err(|error| not_dialled(&self.settings, error))?;
        let name = || self.settings.name();
        let migrating = async {
            session.wait_for(self.schema.lock).await?;
            session.migrate(self.schema, name).await?;
            session.free(self.schema.lock).await
        };
        within(MIGRATE_WITHIN, migrating).await?;
        self.session = Some(session);
        Ok(())
    }

    /// Whether there is no connection: [`Shared::connect`] has to come before anything else.
    pub fn lost(&self) -> bool {
        let session = self.session.as_ref();
        session.is_none_or(|session| session.client.is_closed())
    }

    /// Gives the connection up, as one that does not answer.
    pub fn give_up(&mut self) {
        self.session = None;
    }

    /// Does a statement, and returns what it found. Several that are begun before the first is
    /// answered go in one flight.
    ///
    /// # Errors
    /// What the database said, or that it did not within `most`. Where the connection is
    /// [`lost`](Self::lost) the statement may have taken place.
    pub async fn query(
        &self,
        statement: &Statement<'_>,
        most: Duration,
    ) -> Result<Vec<Row>, StoreError> {
        let client = &self
            .session
            .as_ref()
            .ok_or_else(|| unavailable("ask"))?
            .client;
        match timeout(most, statement.query(client)).await {
            Ok(rows) => rows.map_err(|error| failed("ask", &error)),
            Err(_) => Err(late("ask")),
        }
    }

    /// Does statements without parameters, separated by semicolons, as one transaction.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub async fn execute(&self, statements: &str, most: Duration) -> Result<(), StoreError> {
        let client = &self
            .session
            .as_ref()
            .ok_or_else(|| unavailable("ask"))?
            .client;
        match timeout(most, client.batch_execute(statements)).await {
            Ok(done) => done.map_err(|error| failed("ask", &error)),
            Err(_) => Err(late("ask")),
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.settings.name();
        formatter.debug_tuple("Shared").field(&name).finish()
    }
}
