//! PostgreSQL. One server at a time uses the tables, as routing-api holds a lock in Locket. When
//! the connection breaks another server may have written since, and everything is loaded anew.

mod read;
mod write;

use std::time::Duration;

use commit::StoreError;
use commit::postgres::{Postgres, Schema};
use tokio::time::timeout;

use super::OWNER;
use crate::settings::PostgresSettings;
use crate::state::{State, Writes};

/// What is kept there.
static SCHEMA: Schema = Schema {
    owner: OWNER,
    application: "headroom routing api",
    lock: i64::from_be_bytes(*b"hr-route"),
    book: "routing_schema",
    migrations: &["
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
"],
};

/// Longest wait for a transaction, or for reading everything.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// A database that [`load`] will connect to.
pub(super) fn open(settings: &PostgresSettings) -> Result<Postgres, StoreError> {
    Postgres::new(settings.clone(), &SCHEMA)
}

/// Connects again, and reads everything.
pub(super) async fn load(store: &mut Postgres) -> Result<State, StoreError> {
    store.connect().await?;
    let read = timeout(ANSWER_WITHIN, read::read_all(store)).await;
    read.map_err(|_| StoreError::Database {
        doing: "read",
        cause: "no answer in time".to_owned(),
    })?
}

/// Writes a batch in one transaction.
pub(super) async fn commit(store: &mut Postgres, writes: &Writes) -> Result<(), StoreError> {
    store.write(&write::statements(writes), ANSWER_WITHIN).await
}
