//! A connection to the database that comes back by itself.

use std::time::Duration;

use commit::StoreError;
use commit::postgres::{PostgresSettings, Row, Shared, Statement};
use tokio::sync::RwLock;

use super::tables::SCHEMA;

/// Longest wait for one statement.
const STATEMENT_WITHIN: Duration = Duration::from_secs(5);

/// A connection; statements of several callers go over it at once.
pub(super) struct Connection(RwLock<Shared>);

impl Connection {
    /// Connects.
    pub(super) async fn open(settings: PostgresSettings) -> Result<Self, StoreError> {
        let mut shared = Shared::new(settings, &SCHEMA)?;
        shared.connect().await?;
        Ok(Self(RwLock::new(shared)))
    }

    /// Does a statement, over a new connection where the old one was lost.
    pub(super) async fn query(&self, statement: &Statement<'_>) -> Result<Vec<Row>, StoreError> {
        self.revive().await?;
        let shared = self.0.read().await;
        let asked = shared.query(statement, STATEMENT_WITHIN).await;
        drop(shared);
        self.judge(asked).await
    }

    /// Does statements without parameters as one transaction.
    pub(super) async fn execute(&self, statements: &str) -> Result<(), StoreError> {
        self.revive().await?;
        let shared = self.0.read().await;
        let done = shared.execute(statements, STATEMENT_WITHIN).await;
        drop(shared);
        self.judge(done).await
    }

    async fn revive(&self) -> Result<(), StoreError> {
        if !self.0.read().await.lost() {
            return Ok(());
        }
        let mut shared = self.0.write().await;
        // Another caller may have been first.
        if shared.lost() {
            shared.connect().await?;
        }
        Ok(())
    }

    /// After a failure nobody knows what state the session is in: a new one is begun.
    async fn judge<T>(&self, done: Result<T, StoreError>) -> Result<T, StoreError> {
        if done.is_err() {
            self.0.write().await.give_up();
        }
        done
    }
}
