//! From the tables to rows.

use commit::StoreError;
use tokio_postgres::{Client, Row as SqlRow};

use super::failed;
use crate::model::{HttpRoute, ModificationTag, RouterGroup, TcpMapping};
use crate::state::{Row, State};

/// Reads everything.
pub(super) async fn read_all(client: &Client) -> Result<State, StoreError> {
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
    u16::try_from(port).map_err(|_| damaged(table, row.get("id"), column, port))
}

fn read_tag(row: &SqlRow, table: &'static str) -> Result<ModificationTag, StoreError> {
    let column = "modification_index";
    let index: i64 = row.get(column);
    let index = u32::try_from(index).map_err(|_| damaged(table, row.get("id"), column, index))?;
    let guid = row.get("modification_guid");
    Ok(ModificationTag { guid, index })
}

fn damaged(
    table: &'static str,
    id: i64,
    column: &str,
    found: impl std::fmt::Display,
) -> StoreError {
    StoreError::Damaged {
        table,
        id,
        cause: format!("{column} is {found}, which is out of bounds"),
    }
}
