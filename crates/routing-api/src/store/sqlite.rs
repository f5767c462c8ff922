//! Rows in an SQLite file.

use std::path::Path;

use commit::{Sqlite, StoreError};
use rusqlite::{Row as SqlRow, Transaction, params};

use super::OWNER;
use crate::model::{HttpRoute, ModificationTag, RouterGroup, TcpMapping};
use crate::state::{Row, State, Writes};

/// What leads from each version of the tables to the next.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE tcp_routes (
        id INTEGER PRIMARY KEY, expires_at INTEGER NOT NULL, router_group_guid TEXT NOT NULL,
        external_port INTEGER NOT NULL, host_ip TEXT NOT NULL, host_port INTEGER NOT NULL,
        host_tls_port INTEGER NOT NULL, sni_hostname TEXT, sni_rewrite_hostname TEXT,
        instance_id TEXT NOT NULL, modification_guid TEXT NOT NULL,
        modification_index INTEGER NOT NULL, ttl INTEGER, isolation_segment TEXT NOT NULL,
        terminate_frontend_tls INTEGER NOT NULL, alpns TEXT NOT NULL,
        enable_backend_mtls INTEGER NOT NULL) STRICT;
    CREATE TABLE routes (
        id INTEGER PRIMARY KEY, expires_at INTEGER NOT NULL, route TEXT NOT NULL,
        port INTEGER NOT NULL, ip TEXT NOT NULL, ttl INTEGER, log_guid TEXT NOT NULL,
        route_service_url TEXT NOT NULL, modification_guid TEXT NOT NULL,
        modification_index INTEGER NOT NULL) STRICT;
    CREATE TABLE router_groups (
        guid TEXT PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL,
        reservable_ports TEXT NOT NULL) STRICT, WITHOUT ROWID;
"];

/// Opens the database in a file and makes what is missing.
pub(super) fn open(path: &Path) -> Result<Sqlite, StoreError> {
    Sqlite::open(path, OWNER, MIGRATIONS)
}

/// Reads everything.
pub(super) fn load(database: &Sqlite) -> Result<State, StoreError> {
    let mut state = State::default();
    database.rows("tcp_routes", "SELECT * FROM tcp_routes", |row| {
        state.load_tcp(read_tcp(row)?);
        Ok(())
    })?;
    database.rows("routes", "SELECT * FROM routes", |row| {
        state.load_http(read_http(row)?);
        Ok(())
    })?;
    database.rows("router_groups", "SELECT * FROM router_groups", |row| {
        state.load_group(read_group(row)?);
        Ok(())
    })?;
    Ok(state)
}

/// Writes a batch in one transaction.
pub(super) fn write(database: &mut Sqlite, writes: &Writes) -> Result<(), StoreError> {
    let written = database.write(|transaction| write_all(transaction, writes));
    written.map_err(|error| StoreError::Database {
        doing: "write to",
        cause: error.to_string(),
    })
}

fn read_tcp(row: &SqlRow<'_>) -> rusqlite::Result<Row<TcpMapping>> {
    Ok(Row {
        id: row.get("id")?,
        expires: row.get("expires_at")?,
        value: TcpMapping {
            router_group_guid: row.get("router_group_guid")?,
            port: row.get("external_port")?,
            backend_ip: row.get("host_ip")?,
            backend_port: row.get("host_port")?,
            backend_tls_port: row.get("host_tls_port")?,
            backend_sni_hostname: row.get("sni_hostname")?,
            sni_rewrite_hostname: row.get("sni_rewrite_hostname")?,
            instance_id: row.get("instance_id")?,
            modification_tag: read_tag(row)?,
            ttl: row.get("ttl")?,
            isolation_segment: row.get("isolation_segment")?,
            terminate_frontend_tls: row.get("terminate_frontend_tls")?,
            alpns: row.get("alpns")?,
            enable_backend_mtls: row.get("enable_backend_mtls")?,
        },
    })
}

fn read_http(row: &SqlRow<'_>) -> rusqlite::Result<Row<HttpRoute>> {
    Ok(Row {
        id: row.get("id")?,
        expires: row.get("expires_at")?,
        value: HttpRoute {
            route: row.get("route")?,
            port: row.get("port")?,
            ip: row.get("ip")?,
            ttl: row.get("ttl")?,
            log_guid: row.get("log_guid")?,
            route_service_url: row.get("route_service_url")?,
            modification_tag: read_tag(row)?,
        },
    })
}

fn read_tag(row: &SqlRow<'_>) -> rusqlite::Result<ModificationTag> {
    Ok(ModificationTag {
        guid: row.get("modification_guid")?,
        index: row.get("modification_index")?,
    })
}

fn read_group(row: &SqlRow<'_>) -> rusqlite::Result<RouterGroup> {
    Ok(RouterGroup {
        guid: row.get("guid")?,
        name: row.get("name")?,
        kind: row.get("type")?,
        reservable_ports: row.get("reservable_ports")?,
    })
}

fn write_all(transaction: &Transaction<'_>, writes: &Writes) -> rusqlite::Result<()> {
    for id in &writes.tcp.gone {
        let mut delete = transaction.prepare_cached("DELETE FROM tcp_routes WHERE id = ?1")?;
        delete.execute([id])?;
    }
    for id in &writes.http.gone {
        let mut delete = transaction.prepare_cached("DELETE FROM routes WHERE id = ?1")?;
        delete.execute([id])?;
    }
    for guid in &writes.gone_groups {
        transaction.execute("DELETE FROM router_groups WHERE guid = ?1", [guid])?;
    }
    for row in &writes.tcp.put {
        put_tcp(transaction, row)?;
    }
    for row in &writes.http.put {
        put_http(transaction, row)?;
    }
    for group in &writes.put_groups {
        transaction.execute(
            "INSERT OR REPLACE INTO router_groups (guid, name, type, reservable_ports)
             VALUES (?1, ?2, ?3, ?4)",
            params![group.guid, group.name, group.kind, group.reservable_ports],
        )?;
    }
    Ok(())
}

fn put_tcp(transaction: &Transaction<'_>, row: &Row<TcpMapping>) -> rusqlite::Result<()> {
    let value = &row.value;
    let mut put = transaction.prepare_cached(
        "INSERT OR REPLACE INTO tcp_routes (id, expires_at, router_group_guid, external_port,
             host_ip, host_port, host_tls_port, sni_hostname, sni_rewrite_hostname, instance_id,
             modification_guid, modification_index, ttl, isolation_segment,
             terminate_frontend_tls, alpns, enable_backend_mtls)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
    )?;
    put.execute(params![
        row.id,
        row.expires,
        value.router_group_guid,
        value.port,
        value.backend_ip,
        value.backend_port,
        value.backend_tls_port,
        value.backend_sni_hostname,
        value.sni_rewrite_hostname,
        value.instance_id,
        value.modification_tag.guid,
        value.modification_tag.index,
        value.ttl,
        value.isolation_segment,
        value.terminate_frontend_tls,
        value.alpns,
        value.enable_backend_mtls,
    ])
    .map(drop)
}

fn put_http(transaction: &Transaction<'_>, row: &Row<HttpRoute>) -> rusqlite::Result<()> {
    let value = &row.value;
    let mut put = transaction.prepare_cached(
        "INSERT OR REPLACE INTO routes (id, expires_at, route, port, ip, ttl, log_guid,
             route_service_url, modification_guid, modification_index)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    put.execute(params![
        row.id,
        row.expires,
        value.route,
        value.port,
        value.ip,
        value.ttl,
        value.log_guid,
        value.route_service_url,
        value.modification_tag.guid,
        value.modification_tag.index,
    ])
    .map(drop)
}
