//! PostgreSQL. One server at a time uses the tables: it holds an advisory lock on its one
//! connection, as routing-api holds one in Locket. When the connection breaks the lock is
//! gone with it, another server may have written since, and everything is loaded anew.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Row as SqlRow, Transaction};

use super::postgres_tls::Tls;
use super::{Store, StoreError};
use crate::api::model::{HttpRoute, ModificationTag, RouterGroup, TcpMapping};
use crate::api::settings::PostgresSettings;
use crate::api::state::{Row, State, Writes};

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
    /// A database that [`Store::load`] will connect to.
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
        tokio::spawn(async move {
            let _ = connection.await;
        });
        let locked = client
            .query_one("SELECT pg_try_advisory_lock($1)", &[&LOCK])
            .await
            .map_err(|error| failed("lock", &error))?;
        if !locked.get::<_, bool>(0) {
            let database = self.name();
            return Err(StoreError::Locked { database });
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
        let known = MIGRATIONS.len() as i64;
        let Some(missing) = usize::try_from(found)
            .ok()
            .and_then(|found| MIGRATIONS.get(found..))
        else {
            let database = self.name();
            return Err(StoreError::Newer {
                database,
                found,
                known,
            });
        };
        if !missing.is_empty() {
            for migration in missing {
                transaction.batch_execute(migration).await.map_err(refuse)?;
            }
            let version =
                format!("DELETE FROM routing_schema; INSERT INTO routing_schema VALUES ({known})");
            transaction.batch_execute(&version).await.map_err(refuse)?;
        }
        transaction.commit().await.map_err(refuse)
    }
}

impl Store for Postgres {
    async fn load(&mut self) -> Result<State, StoreError> {
        // The old connection, if it is still open, holds the lock.
        self.client = None;
        let client = self.connect().await?;
        let state = timeout(ANSWER_WITHIN, read_all(&client))
            .await
            .map_err(|_| late("read"))??;
        self.client = Some(client);
        Ok(state)
    }

    async fn commit(&mut self, writes: &Writes) -> Result<(), StoreError> {
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

    fn lost(&self) -> bool {
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

async fn read_all(client: &Client) -> Result<State, StoreError> {
    let refuse = |error: tokio_postgres::Error| failed("read", &error);
    let mut state = State::default();
    let query = "SELECT * FROM tcp_routes";
    for row in client.query(query, &[]).await.map_err(refuse)? {
        state.load_tcp(read_tcp(&row)?);
    }
    let query = "SELECT * FROM routes";
    for row in client.query(query, &[]).await.map_err(refuse)? {
        state.load_http(read_http(&row)?);
    }
    let query = "SELECT guid, name, type, reservable_ports FROM router_groups";
    for row in client.query(query, &[]).await.map_err(refuse)? {
        state.load_group(RouterGroup {
            guid: row.get(0),
            name: row.get(1),
            kind: row.get(2),
            reservable_ports: row.get(3),
        });
    }
    Ok(state)
}

fn read_tcp(row: &SqlRow) -> Result<Row<TcpMapping>, StoreError> {
    let table = "tcp_routes";
    Ok(Row {
        id: row.get("id"),
        expires: row.get("expires_at"),
        value: TcpMapping {
            router_group_guid: row.get("router_group_guid"),
            port: read_port(row, table, "external_port")?,
            backend_ip: row.get("host_ip"),
            backend_port: read_port(row, table, "host_port")?,
            backend_tls_port: row.get("host_tls_port"),
            backend_sni_hostname: row.get("sni_hostname"),
            sni_rewrite_hostname: row.get("sni_rewrite_hostname"),
            instance_id: row.get("instance_id"),
            modification_tag: read_tag(row, table)?,
            ttl: row.get("ttl"),
            isolation_segment: row.get("isolation_segment"),
            terminate_frontend_tls: row.get("terminate_frontend_tls"),
            alpns: row.get("alpns"),
            enable_backend_mtls: row.get("enable_backend_mtls"),
        },
    })
}

fn read_http(row: &SqlRow) -> Result<Row<HttpRoute>, StoreError> {
    let table = "routes";
    Ok(Row {
        id: row.get("id"),
        expires: row.get("expires_at"),
        value: HttpRoute {
            route: row.get("route"),
            port: read_port(row, table, "port")?,
            ip: row.get("ip"),
            ttl: row.get("ttl"),
            log_guid: row.get("log_guid"),
            route_service_url: row.get("route_service_url"),
            modification_tag: read_tag(row, table)?,
        },
    })
}

fn read_port(row: &SqlRow, table: &'static str, column: &str) -> Result<u16, StoreError> {
    let port: i32 = row.get(column);
    u16::try_from(port).map_err(|_| StoreError::damaged(table, row.get("id"), column, port))
}

fn read_tag(row: &SqlRow, table: &'static str) -> Result<ModificationTag, StoreError> {
    let column = "modification_index";
    let index: i64 = row.get(column);
    let index = u32::try_from(index)
        .map_err(|_| StoreError::damaged(table, row.get("id"), column, index))?;
    let guid = row.get("modification_guid");
    Ok(ModificationTag { guid, index })
}

async fn write_all(client: &mut Client, writes: &Writes) -> Result<(), tokio_postgres::Error> {
    let transaction = client.transaction().await?;
    if !writes.tcp.gone.is_empty() {
        let delete = "DELETE FROM tcp_routes WHERE id = ANY($1)";
        transaction.execute(delete, &[&writes.tcp.gone]).await?;
    }
    if !writes.http.gone.is_empty() {
        let delete = "DELETE FROM routes WHERE id = ANY($1)";
        transaction.execute(delete, &[&writes.http.gone]).await?;
    }
    if !writes.gone_groups.is_empty() {
        let delete = "DELETE FROM router_groups WHERE guid = ANY($1)";
        transaction.execute(delete, &[&writes.gone_groups]).await?;
    }
    put_tcp(&transaction, &writes.tcp.put).await?;
    put_http(&transaction, &writes.http.put).await?;
    for group in &writes.put_groups {
        let put = "INSERT INTO router_groups VALUES ($1, $2, $3, $4) ON CONFLICT (guid)
            DO UPDATE SET reservable_ports = excluded.reservable_ports";
        let values: [&(dyn ToSql + Sync); 4] = [
            &group.guid,
            &group.name,
            &group.kind,
            &group.reservable_ports,
        ];
        transaction.execute(put, &values).await?;
    }
    transaction.commit().await
}

/// One statement for all rows, a column at a time: a statement for each would cost a round
/// trip each.
async fn put_tcp(
    transaction: &Transaction<'_>,
    rows: &[Arc<Row<TcpMapping>>],
) -> Result<(), tokio_postgres::Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let put = "INSERT INTO tcp_routes (id, expires_at, router_group_guid, external_port, host_ip,
            host_port, host_tls_port, sni_hostname, sni_rewrite_hostname, instance_id,
            modification_guid, modification_index, ttl, isolation_segment,
            terminate_frontend_tls, alpns, enable_backend_mtls)
        SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::int[], $5::text[],
            $6::int[], $7::bigint[], $8::text[], $9::text[], $10::text[], $11::text[],
            $12::bigint[], $13::bigint[], $14::text[], $15::boolean[], $16::text[],
            $17::boolean[])
        ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at,
            sni_rewrite_hostname = excluded.sni_rewrite_hostname,
            modification_index = excluded.modification_index, ttl = excluded.ttl,
            isolation_segment = excluded.isolation_segment";
    let values: [&(dyn ToSql + Sync); 17] = [
        &column(rows, |row| row.id),
        &column(rows, |row| row.expires),
        &column(rows, |row| row.value.router_group_guid.as_str()),
        &column(rows, |row| i32::from(row.value.port)),
        &column(rows, |row| row.value.backend_ip.as_str()),
        &column(rows, |row| i32::from(row.value.backend_port)),
        &column(rows, |row| row.value.backend_tls_port),
        &column(rows, |row| row.value.backend_sni_hostname.as_deref()),
        &column(rows, |row| row.value.sni_rewrite_hostname.as_deref()),
        &column(rows, |row| row.value.instance_id.as_str()),
        &column(rows, |row| row.value.modification_tag.guid.as_str()),
        &column(rows, |row| i64::from(row.value.modification_tag.index)),
        &column(rows, |row| row.value.ttl),
        &column(rows, |row| row.value.isolation_segment.as_str()),
        &column(rows, |row| row.value.terminate_frontend_tls),
        &column(rows, |row| row.value.alpns.as_str()),
        &column(rows, |row| row.value.enable_backend_mtls),
    ];
    let put = transaction.prepare(put).await?;
    transaction.execute(&put, &values).await.map(drop)
}

async fn put_http(
    transaction: &Transaction<'_>,
    rows: &[Arc<Row<HttpRoute>>],
) -> Result<(), tokio_postgres::Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let put = "INSERT INTO routes (id, expires_at, route, port, ip, ttl, log_guid,
            route_service_url, modification_guid, modification_index)
        SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::int[], $5::text[],
            $6::bigint[], $7::text[], $8::text[], $9::text[], $10::bigint[])
        ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at, ttl = excluded.ttl,
            log_guid = excluded.log_guid, modification_index = excluded.modification_index";
    let values: [&(dyn ToSql + Sync); 10] = [
        &column(rows, |row| row.id),
        &column(rows, |row| row.expires),
        &column(rows, |row| row.value.route.as_str()),
        &column(rows, |row| i32::from(row.value.port)),
        &column(rows, |row| row.value.ip.as_str()),
        &column(rows, |row| row.value.ttl),
        &column(rows, |row| row.value.log_guid.as_str()),
        &column(rows, |row| row.value.route_service_url.as_str()),
        &column(rows, |row| row.value.modification_tag.guid.as_str()),
        &column(rows, |row| i64::from(row.value.modification_tag.index)),
    ];
    transaction.execute(put, &values).await.map(drop)
}

fn column<'a, T, V: 'a>(rows: &'a [Arc<Row<T>>], of: impl Fn(&'a Row<T>) -> V) -> Vec<V> {
    rows.iter().map(|row| of(row)).collect()
}
