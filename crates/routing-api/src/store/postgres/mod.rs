//! PostgreSQL. One server at a time uses the tables: it holds an advisory lock on its one
//! connection, as routing-api holds one in Locket. When the connection breaks the lock is
//! gone with it, another server may have written since, and everything is loaded anew.

mod read;
mod tls;
mod write;

use std::time::Duration;

use commit::StoreError;
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config};

use super::OWNER;
use crate::settings::PostgresSettings;
use crate::state::{State, Writes};
use read::read_all;
use tls::Tls;
use write::write_all;

/// What leads from each version of the tables to the next.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE tcp_routes (
        id bigint PRIMARY KEY, expires_at bigint NOT NULL, router_group_guid text NOT NULL,
        external_port integer NOT NULL, host_ip text NOT NULL, host_port integer NOT NULL,
        host_tls_port bigint NOT NULL, sni_hostname text, sni_rewrite_hostname text,
        instance_id text NOT NULL, modification_guid text NOT NULL,
        modification_index bigint NOT NULL, ttl bigint, isolation_segment text NOT NULL,
        terminate_frontend_tls boolean NOT NULL, alpns text NOT NULL,
        enable_backend_mtls boolean NOT NULL);
    CREATE TABLE routes (
        id bigint PRIMARY KEY, expires_at bigint NOT NULL, route text NOT NULL,
        port integer NOT NULL, ip text NOT NULL, ttl bigint, log_guid text NOT NULL,
        route_service_url text NOT NULL, modification_guid text NOT NULL,
        modification_index bigint NOT NULL);
    CREATE TABLE router_groups (
        guid text PRIMARY KEY, name text NOT NULL, type text NOT NULL,
        reservable_ports text NOT NULL);
"];

/// The advisory lock: the bytes of `hr-route`.
const LOCK: i64 = i64::from_be_bytes(*b"hr-route");
/// Longest wait for a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Longest wait for a transaction, or for reading everything.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// A database, and the connection to it while there is one.
pub(crate) struct Postgres {
    config: Config,
    tls: Tls,
    client: Option<Client>,
}

impl Postgres {
    /// A database that [`Postgres::load`] will connect to.
    pub(crate) fn new(settings: &PostgresSettings) -> Result<Self, StoreError> {
        let mut config = settings.config.clone();
        // The library's default takes TLS where the server offers it. A server with a
        // certificate of its own making would then be refused, though nobody asked.
        if config.get_ssl_mode() == SslMode::Prefer {
            config.ssl_mode(SslMode::Disable);
        }
        config
            .connect_timeout(CONNECT_WITHIN)
            .application_name("headroom routing api");
        Ok(Self {
            config,
            tls: Tls::new(settings.authority.as_deref())?,
            client: None,
        })
    }

    /// The database, as an error may name it.
    fn name(&self) -> String {
        let hosts: Vec<_> = self
            .config
            .get_hosts()
            .iter()
            .map(|host| match host {
                tokio_postgres::config::Host::Tcp(host) => host.clone(),
                tokio_postgres::config::Host::Unix(path) => path.display().to_string(),
            })
            .collect();
        let database = self.config.get_dbname().unwrap_or_default();
        format!("{database} at {}", hosts.join(","))
    }

    async fn connect(&self) -> Result<Client, StoreError> {
        let (mut client, connection) =
            timeout(CONNECT_WITHIN, self.config.connect(self.tls.clone()))
                .await
                .map_err(|_| late("connect to"))?
                .map_err(|error| failed("connect to", &error))?;
        // It ends with the client; its error also reaches the client's next call.
        tokio::spawn(net::boxed(async move {
            let _ = connection.await;
        }));
        let locked = client
            .query_one("SELECT pg_try_advisory_lock($1)", &[&LOCK])
            .await
            .map_err(|error| failed("lock", &error))?;
        if !locked.get::<_, bool>(0) {
            let database = self.name();
            let owner = OWNER;
            return Err(StoreError::Locked { database, owner });
        }
        self.migrate(&mut client).await?;
        Ok(client)
    }

    async fn migrate(&self, client: &mut Client) -> Result<(), StoreError> {
        let refuse = |error: tokio_postgres::Error| failed("prepare", &error);
        let transaction = client.transaction().await.map_err(refuse)?;
        let table = "CREATE TABLE IF NOT EXISTS routing_schema (version bigint NOT NULL)";
        transaction.batch_execute(table).await.map_err(refuse)?;
        let found = transaction
            .query_opt("SELECT version FROM routing_schema", &[])
            .await
            .map_err(refuse)?
            .map_or(0, |row| row.get::<_, i64>(0));
        let missing = StoreError::missing(MIGRATIONS, found, || self.name())?;
        if !missing.is_empty() {
            let known = MIGRATIONS.len();
            for migration in missing {
                transaction.batch_execute(migration).await.map_err(refuse)?;
            }
            let version =
                format!("DELETE FROM routing_schema; INSERT INTO routing_schema VALUES ({known})");
            transaction.batch_execute(&version).await.map_err(refuse)?;
        }
        transaction.commit().await.map_err(refuse)
    }
    /// Connects again, and reads everything.
    pub(super) async fn load(&mut self) -> Result<State, StoreError> {
        // The old connection, if it is still open, holds the lock.
        self.client = None;
        let client = self.connect().await?;
        let state = timeout(ANSWER_WITHIN, read_all(&client))
            .await
            .map_err(|_| late("read"))??;
        self.client = Some(client);
        Ok(state)
    }

    /// Writes a batch in one transaction.
    pub(super) async fn commit(&mut self, writes: &Writes) -> Result<(), StoreError> {
        let Some(client) = &mut self.client else {
            return Err(StoreError::Database {
                doing: "write to",
                cause: "the connection was lost and is not there again yet".to_owned(),
            });
        };
        let result = match timeout(ANSWER_WITHIN, write_all(client, writes)).await {
            Ok(result) => result.map_err(|error| failed("write to", &error)),
            Err(_) => Err(late("write to")),
        };
        // Whether the transaction took place may be unknown: look again before the next.
        if result.is_err() {
            self.client = None;
        }
        result
    }

    /// Whether the connection was lost.
    pub(super) fn lost(&self) -> bool {
        self.client.as_ref().is_none_or(Client::is_closed)
    }
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

fn late(doing: &'static str) -> StoreError {
    let cause = "no answer in time".to_owned();
    StoreError::Database { doing, cause }
}
