//! A database in PostgreSQL, for one program at a time, and the way back to it.
//!
//! Who writes holds an advisory lock on its one connection. When that breaks the lock goes with
//! it, and whether the last transaction took place may be unknown. Therefore each transaction
//! writes its number into a book, a table of one row, in which the holder of the lock has signed:
//! whoever comes back reads there what became of it, and whether somebody else wrote meanwhile.

#[cfg(test)]
mod cluster;
mod session;
mod settings;
mod shared;
mod statement;
#[cfg(test)]
mod tests;
mod tls;

pub use settings::{AddressError, PostgresSettings};
pub use shared::Shared;
pub use statement::{Column, Statement};
pub use tokio_postgres::Row;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use futures_util::TryStreamExt;
use tokio::time::timeout;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::Severity;

use crate::StoreError;
use session::{Backend, Lock, Session};
use tls::Tls;

/// Longest wait for a connection, its lock and its tables.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Longest wait for migrations, which may rewrite tables.
const MIGRATE_WITHIN: Duration = Duration::from_secs(600);
/// Processes that are remembered because they may hold the lock. Each but the first stands for an attempt
/// that was not answered in time.
const HOLDERS: usize = 32;
/// A connection on which nothing is said is looked after from then on, and so often.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);
const KEEPALIVE_RETRIES: u32 = 3;

/// What a program keeps in a database.
#[derive(Debug)]
pub struct Schema {
    /// What uses such databases, for errors.
    pub owner: &'static str,
    /// What the server's own lists call it.
    pub application: &'static str,
    /// The advisory lock.
    pub lock: i64,
    /// The table of the book: version of the tables, who holds the lock, number of the last
    /// transaction.
    pub book: &'static str,
    /// The statements that lead from each version of the tables to the next.
    pub migrations: &'static [&'static str],
}

/// What a connection found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The first connection: everything is to be read.
    First,
    /// Everything is as the last transaction that was confirmed left it.
    AsLeft,
    /// The transaction of which this was unknown took place; beside it nothing changed.
    Done,
    /// Transactions are missing that were confirmed, as in a database that was restored from a
    /// copy.
    Behind,
    /// Somebody else has held the lock meanwhile.
    Others,
}

/// What is known of the database without looking.
struct Known {
    /// Number of the last transaction that was confirmed.
    batch: i64,
    /// Whether the one after it took place is unknown.
    doubt: bool,
}

/// A database, and the connection to it while there is one.
pub struct Postgres {
    settings: PostgresSettings,
    config: Config,
    tls: Tls,
    schema: &'static Schema,
    /// By which this program signs.
    holder: String,
    known: Option<Known>,
    /// Processes of connections of ours that may hold the lock.
    holders: Vec<Backend>,
    session: Option<Session>,
    /// A connection that waits for the lock.
    waiting: Option<Session>,
}

impl Postgres {
    /// A database that [`Postgres::connect`] will connect to.
    ///
    /// # Errors
    /// When the authority of its certificate cannot be read.
    pub fn new(settings: PostgresSettings, schema: &'static Schema) -> Result<Self, StoreError> {
        Ok(Self {
            config: config_of(&settings, schema),
            tls: Tls::new(settings.authority.as_deref())?,
            schema,
            holder: format!("{:016x}", RandomState::new().build_hasher().finish()),
            known: None,
            holders: Vec::new(),
            session: None,
            waiting: None,
            settings,
        })
    }

    /// The database, as an error may name it.
    pub fn name(&self) -> String {
        self.settings.name()
    }

    /// Connects, or connects again, takes the lock and brings the tables up to date.
    ///
    /// # Errors
    /// [`StoreError::Locked`] while another program holds the lock, [`StoreError::Newer`] when a
    /// later one made the tables, and when the database cannot be reached.
    pub async fn connect(&mut self) -> Result<Found, StoreError> {
        // The old connection, if it is still open, holds the lock.
        self.session = None;
        let waiting = self.waiting.take();
        let mut session = match waiting.filter(|session| !session.client.is_closed()) {
            Some(session) => session,
            None => self.dial().await?,
        };
        let former = self.holders.clone();
        // Should its answer not arrive it may hold the lock all the same.
        self.remember(session.backend.clone());
        match within(CONNECT_WITHIN, session.lock(self.schema, &former)).await? {
            Lock::Taken => self.holders = vec![session.backend.clone()],
            Lock::Former => {
                self.holders = former;
                self.waiting = Some(session);
                return Err(stands_still());
            }
            Lock::Others => {
                self.holders = former;
                self.waiting = Some(session);
                return Err(StoreError::Locked {
                    database: self.name(),
                    owner: self.schema.owner,
                });
            }
        }
        let name = || self.settings.name();
        within(MIGRATE_WITHIN, session.migrate(self.schema, name)).await?;
        let entry = within(CONNECT_WITHIN, session.sign(self.schema, &self.holder)).await?;
        let found = match &self.known {
            None => Found::First,
            Some(_) if entry.holder.as_deref() != Some(&*self.holder) => Found::Others,
            Some(known) if entry.batch == known.batch => Found::AsLeft,
            Some(known) if known.doubt && entry.batch == known.batch + 1 => Found::Done,
            Some(_) => Found::Behind,
        };
        self.known = Some(Known {
            batch: entry.batch,
            doubt: false,
        });
        self.session = Some(session);
        Ok(found)
    }

    fn remember(&mut self, backend: Backend) {
        if self.holders.len() == HOLDERS {
            // The first is the one that had it.
            self.holders.remove(1);
        }
        self.holders.push(backend);
    }

    async fn dial(&self) -> Result<Session, StoreError> {
        let dialled = within(CONNECT_WITHIN, Session::dial(&self.config, &self.tls)).await;
        dialled.map_err(|error| not_dialled(&self.settings, error))
    }

    /// Whether there is no connection: [`Postgres::connect`] has to come before anything else.
    pub fn lost(&self) -> bool {
        let session = self.session.as_ref();
        session.is_none_or(|session| session.client.is_closed())
    }

    /// Gives the connection up, as one that does not answer.
    pub fn give_up(&mut self) {
        self.session = None;
    }

    /// Hands over every row that a query finds in `table`. Its first column is the `bigint` by
    /// which an error names a row.
    ///
    /// # Errors
    /// When the database cannot be read, or `take` cannot read a row.
    pub async fn rows(
        &self,
        table: &'static str,
        query: &str,
        mut take: impl FnMut(&Row) -> Result<(), Box<dyn std::error::Error>>,
    ) -> Result<(), StoreError> {
        let refuse = |error: tokio_postgres::Error| failed("read", &error);
        let client = &self
            .session
            .as_ref()
            .ok_or_else(|| unavailable("read"))?
            .client;
        let nothing: [i64; 0] = [];
        let rows = client.query_raw(query, nothing).await.map_err(refuse)?;
        let mut rows = std::pin::pin!(rows);
        while let Some(row) = rows.try_next().await.map_err(refuse)? {
            take(&row).map_err(|error| StoreError::Damaged {
                table,
                id: row.try_get(0).unwrap_or_default(),
                cause: error.to_string(),
            })?;
        }
        Ok(())
    }

    /// Writes in one transaction, in the order of the statements and in one flight. When it
    /// returns without an error the transaction survives the end of this process and of the
    /// server. When it fails and the connection is not [`lost`](Self::lost) nothing of it took
    /// place; otherwise the next [`connect`](Self::connect) says whether it did.
    ///
    /// # Errors
    /// What the database said, or that it did not within `most`.
    pub async fn write(
        &mut self,
        statements: &[Statement<'_>],
        most: Duration,
    ) -> Result<(), StoreError> {
        let (Some(session), Some(known)) = (&self.session, &mut self.known) else {
            return Err(unavailable("write to"));
        };
        known.doubt = true;
        let mark = format!(
            "UPDATE {} SET batch = {}",
            self.schema.book,
            known.batch + 1
        );
        let transaction = statement::transaction(&session.client, statements, &mark);
        let error = match timeout(most, transaction).await {
            Ok(Ok(())) => {
                known.batch += 1;
                known.doubt = false;
                return Ok(());
            }
            Ok(Err(error)) => {
                let database = error.as_db_error();
                let severity = database.and_then(|error| error.parsed_severity());
                if severity == Some(Severity::Error) && !session.client.is_closed() {
                    known.doubt = false;
                    return Err(failed("write to", &error));
                }
                failed("write to", &error)
            }
            Err(_) => late("write to"),
        };
        self.session = None;
        Err(error)
    }
}

/// The error with the database's name and what to look at.
fn not_dialled(settings: &PostgresSettings, error: StoreError) -> StoreError {
    match error {
        StoreError::Database { doing, cause } => StoreError::Database {
            doing,
            cause: format!(
                "{}: {cause}; is the server there, and may this user connect?",
                settings.name()
            ),
        },
        error => error,
    }
}

/// How the library connects.
fn config_of(settings: &PostgresSettings, schema: &Schema) -> Config {
    let mut config = settings.config.clone();
    // The library's default takes TLS where the server offers it. A server with a
    // certificate of its own making would then be refused, though nobody asked.
    if config.get_ssl_mode() == SslMode::Prefer {
        config.ssl_mode(SslMode::Disable);
    }
    config
        .connect_timeout(CONNECT_WITHIN)
        .keepalives_idle(KEEPALIVE_IDLE)
        .keepalives_interval(KEEPALIVE_INTERVAL)
        .keepalives_retries(KEEPALIVE_RETRIES)
        .application_name(schema.application);
    config
}

async fn within<T>(
    most: Duration,
    doing: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let done = timeout(most, doing).await;
    done.unwrap_or_else(|_| Err(late("connect to")))
}

fn failed(doing: &'static str, error: &tokio_postgres::Error) -> StoreError {
    // The message of the database says more than that of the library.
    let cause = match error.as_db_error() {
        Some(error) => error.to_string(),
        None => std::error::Error::source(error)
            .map_or_else(|| error.to_string(), |source| format!("{error}: {source}")),
    };
    StoreError::Database { doing, cause }
}

fn stands_still() -> StoreError {
    let cause =
        "the process of this program's former connection still holds the lock; it was told \
        to end and has not yet, as if it or its disk stood still"
            .to_owned();
    StoreError::Database {
        doing: "lock",
        cause,
    }
}

fn late(doing: &'static str) -> StoreError {
    let cause = "no answer in time".to_owned();
    StoreError::Database { doing, cause }
}

fn unavailable(doing: &'static str) -> StoreError {
    let cause = "the connection was lost and is not there again yet".to_owned();
    StoreError::Database { doing, cause }
}
