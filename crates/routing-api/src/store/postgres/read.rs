//! From the tables to rows.

use commit::StoreError;
use commit::postgres::{Postgres, Row as SqlRow};

use crate::model::{HttpRoute, ModificationTag, RouterGroup, TcpMapping};
use crate::state::{Row, State};

type Read<T> = Result<T, Box<dyn std::error::Error>>;

/// Reads everything.
pub(super) async fn read_all(store: &Postgres) -> Result<State, StoreError> {
    let mut state = State::default();
    let query = "SELECT * FROM tcp_routes";
    let take = |row: &SqlRow| {
        state.load_tcp(read_tcp(row)?);
        Ok(())
    };
    store.rows("tcp_routes", query, take).await?;
    let query = "SELECT * FROM routes";
    let take = |row: &SqlRow| {
        state.load_http(read_http(row)?);
        Ok(())
    };
    store.rows("routes", query, take).await?;
    let query = "SELECT guid, name, type, reservable_ports FROM router_groups";
    let take = |row: &SqlRow| {
        state.load_group(read_group(row)?);
        Ok(())
    };
    store.rows("router_groups", query, take).await?;
    Ok(state)
}

fn read_group(row: &SqlRow) -> Read<RouterGroup> {
    Ok(RouterGroup {
        guid: row.try_get(0)?,
        name: row.try_get(1)?,
        kind: row.try_get(2)?,
        reservable_ports: row.try_get(3)?,
    })
}

fn read_tcp(row: &SqlRow) -> Read<Row<TcpMapping>> {
    Ok(Row {
        id: row.try_get("id")?,
        expires: row.try_get("expires_at")?,
        value: TcpMapping {
            router_group_guid: row.try_get("router_group_guid")?,
            port: read_port(row, "external_port")?,
            backend_ip: row.try_get("host_ip")?,
            backend_port: read_port(row, "host_port")?,
            backend_tls_port: row.try_get("host_tls_port")?,
            backend_sni_hostname: row.try_get("sni_hostname")?,
            sni_rewrite_hostname: row.try_get("sni_rewrite_hostname")?,
            instance_id: row.try_get("instance_id")?,
            modification_tag: read_tag(row)?,
            ttl: row.try_get("ttl")?,
            isolation_segment: row.try_get("isolation_segment")?,
            terminate_frontend_tls: row.try_get("terminate_frontend_tls")?,
            alpns: row.try_get("alpns")?,
            enable_backend_mtls: row.try_get("enable_backend_mtls")?,
        },
    })
}

fn read_http(row: &SqlRow) -> Read<Row<HttpRoute>> {
    Ok(Row {
        id: row.try_get("id")?,
        expires: row.try_get("expires_at")?,
        value: HttpRoute {
            route: row.try_get("route")?,
            port: read_port(row, "port")?,
            ip: row.try_get("ip")?,
            ttl: row.try_get("ttl")?,
            log_guid: row.try_get("log_guid")?,
            route_service_url: row.try_get("route_service_url")?,
            modification_tag: read_tag(row)?,
        },
    })
}

fn read_port(row: &SqlRow, column: &str) -> Read<u16> {
    let port: i32 = row.try_get(column)?;
    u16::try_from(port).map_err(|_| out_of_bounds(column, port))
}

fn read_tag(row: &SqlRow) -> Read<ModificationTag> {
    let column = "modification_index";
    let index: i64 = row.try_get(column)?;
    let index = u32::try_from(index).map_err(|_| out_of_bounds(column, index))?;
    let guid = row.try_get("modification_guid")?;
    Ok(ModificationTag { guid, index })
}

fn out_of_bounds(column: &str, found: impl std::fmt::Display) -> Box<dyn std::error::Error> {
    format!("{column} is {found}, which is out of bounds").into()
}
