//! One connection: how it is made, and what it holds.

use std::time::Duration;

use tokio::task::AbortHandle;
use tokio_postgres::{Client, Config};

use super::tls::Tls;
use super::{Schema, failed};
use crate::StoreError;

/// Longest wait for the lock of a connection of our own that the server had not yet given up.
const FREED_WITHIN: Duration = Duration::from_secs(2);
/// Time between two looks for it.
const LOOK: Duration = Duration::from_millis(20);

/// A connection, and what drives it.
pub(super) struct Session {
    pub(super) client: Client,
    driver: AbortHandle,
    /// The server's process, and when that started: a number may be used again.
    pub(super) backend: Backend,
}

/// A process of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Backend {
    pid: i32,
    started: String,
}

impl Drop for Session {
    fn drop(&mut self) {
        // One that waits for a server that does not answer would wait on.
        self.driver.abort();
    }
}

/// Who has the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    /// This connection.
    Taken,
    /// A connection of this program's that is no more, whose process was told to end and has not.
    Former,
    /// Somebody else.
    Others,
}

/// What the book says of the last one who wrote.
pub(super) struct Entry {
    pub(super) holder: Option<String>,
    pub(super) batch: i64,
}

impl Session {
    pub(super) async fn dial(config: &Config, tls: &Tls) -> Result<Self, StoreError> {
        let refuse = |error: tokio_postgres::Error| failed("connect to", &error);
        let (client, connection) = config.connect(tls.clone()).await.map_err(refuse)?;
        // It ends with the client; its error also reaches the client's next call.
        let driver = tokio::spawn(net::boxed(async move {
            let _ = connection.await;
        }));
        let mut session = Self {
            client,
            driver: driver.abort_handle(),
            backend: Backend {
                pid: 0,
                started: String::new(),
            },
        };
        let who = "SELECT pid, backend_start::text FROM pg_stat_activity
            WHERE pid = pg_backend_pid()";
        let row = session.client.query_one(who, &[]).await.map_err(refuse)?;
        session.backend = Backend {
            pid: row.get(0),
            started: row.get(1),
        };
        // A server may acknowledge before the disk has it; this one promised otherwise.
        let durable = "SELECT set_config('synchronous_commit', 'on', false)
            WHERE current_setting('synchronous_commit') = 'off'";
        session.client.execute(durable, &[]).await.map_err(refuse)?;
        Ok(session)
    }

    /// Takes the lock, if nobody else has it. `former` are the processes of connections of ours that
    /// may have taken it: one that the server has not yet given up is ended.
    pub(super) async fn lock(
        &self,
        schema: &Schema,
        former: &[Backend],
    ) -> Result<Lock, StoreError> {
        let taken = async || match self.try_lock(schema).await? {
            true => Ok(Lock::Taken),
            false => Ok(Lock::Others),
        };
        let first = taken().await?;
        if first == Lock::Taken || former.is_empty() {
            return Ok(first);
        }
        let end = "SELECT pg_terminate_backend(held.pid) FROM pg_locks held
            JOIN pg_stat_activity activity USING (pid)
            WHERE held.locktype = 'advisory' AND held.granted AND held.objsubid = 1
                AND held.classid::bigint = (($1::bigint >> 32) & 4294967295)
                AND held.objid::bigint = ($1::bigint & 4294967295)
                AND (held.pid, activity.backend_start::text)
                    IN (SELECT * FROM unnest($2::int[], $3::text[]))";
        let pids: Vec<i32> = former.iter().map(|one| one.pid).collect();
        let started: Vec<&str> = former.iter().map(|one| &*one.started).collect();
        let ours = self
            .client
            .query(end, &[&schema.lock, &pids, &started])
            .await
            .map_err(|error| failed("lock", &error))?;
        if ours.is_empty() {
            return taken().await;
        }
        let until = tokio::time::Instant::now() + FREED_WITHIN;
        while tokio::time::Instant::now() < until {
            if taken().await? == Lock::Taken {
                return Ok(Lock::Taken);
            }
            tokio::time::sleep(LOOK).await;
        }
        // It ends as soon as it goes on. Nobody else has the lock.
        Ok(Lock::Former)
    }

    async fn try_lock(&self, schema: &Schema) -> Result<bool, StoreError> {
        let lock = "SELECT pg_try_advisory_lock($1)";
        let locked = self.client.query_one(lock, &[&schema.lock]).await;
        let locked = locked.map_err(|error| failed("lock", &error))?;
        Ok(locked.get(0))
    }

    /// Takes a lock, once nobody else has it.
    pub(super) async fn wait_for(&self, lock: i64) -> Result<(), StoreError> {
        self.call("SELECT pg_advisory_lock($1)", lock).await
    }

    /// Gives a lock up.
    pub(super) async fn free(&self, lock: i64) -> Result<(), StoreError> {
        self.call("SELECT pg_advisory_unlock($1)", lock).await
    }

    async fn call(&self, function: &str, lock: i64) -> Result<(), StoreError> {
        let done = self.client.execute(function, &[&lock]).await;
        done.map(drop).map_err(|error| failed("lock", &error))
    }

    /// Brings the tables to the version that is known.
    pub(super) async fn migrate(
        &mut self,
        schema: &Schema,
        name: impl FnOnce() -> String,
    ) -> Result<(), StoreError> {
        let refuse = |error: tokio_postgres::Error| failed("prepare", &error);
        let book = schema.book;
        let transaction = self.client.transaction().await.map_err(refuse)?;
        let table = format!(
            "CREATE TABLE IF NOT EXISTS {book} (version bigint NOT NULL);
            ALTER TABLE {book} ADD COLUMN IF NOT EXISTS holder text,
                ADD COLUMN IF NOT EXISTS batch bigint NOT NULL DEFAULT 0;
            INSERT INTO {book} (version) SELECT 0 WHERE NOT EXISTS (SELECT FROM {book})"
        );
        transaction.batch_execute(&table).await.map_err(refuse)?;
        let version = format!("SELECT version FROM {book}");
        let found = transaction.query_one(&version, &[]).await;
        let found: i64 = found.map_err(refuse)?.get(0);
        let missing = StoreError::missing(schema.migrations, found, name)?;
        for migration in missing {
            transaction.batch_execute(migration).await.map_err(refuse)?;
        }
        if !missing.is_empty() {
            let known = schema.migrations.len();
            let version = format!("UPDATE {book} SET version = {known}");
            transaction.batch_execute(&version).await.map_err(refuse)?;
        }
        transaction.commit().await.map_err(refuse)
    }

    /// Writes into the book who holds the lock from now on, and says what stood there.
    pub(super) async fn sign(&self, schema: &Schema, holder: &str) -> Result<Entry, StoreError> {
        let book = schema.book;
        let sign = format!(
            "UPDATE {book} SET holder = $1 FROM (SELECT holder, batch FROM {book}) AS before
            RETURNING before.holder, before.batch"
        );
        let row = self.client.query_one(&sign, &[&holder]).await;
        let row = row.map_err(|error| failed("sign", &error))?;
        Ok(Entry {
            holder: row.get(0),
            batch: row.get(1),
        })
    }
}
