//! From a batch to the tables.

use std::sync::Arc;

use commit::postgres::{Column, Statement};

use crate::model::{HttpRoute, TcpMapping};
use crate::state::{Row, Writes};

/// What writes a batch, in one transaction.
pub(super) fn statements(writes: &Writes) -> Vec<Statement<'_>> {
    let mut statements = Vec::new();
    if !writes.tcp.gone.is_empty() {
        let delete = "DELETE FROM tcp_routes WHERE id = ANY($1)";
        let gone = writes.tcp.gone.clone();
        statements.push(Statement::new(delete, vec![gone.into()]));
    }
    if !writes.http.gone.is_empty() {
        let delete = "DELETE FROM routes WHERE id = ANY($1)";
        let gone = writes.http.gone.clone();
        statements.push(Statement::new(delete, vec![gone.into()]));
    }
    if !writes.gone_groups.is_empty() {
        let delete = "DELETE FROM router_groups WHERE guid = ANY($1)";
        let gone: Vec<&str> = writes.gone_groups.iter().map(String::as_str).collect();
        statements.push(Statement::new(delete, vec![gone.into()]));
    }
    if !writes.tcp.put.is_empty() {
        statements.push(put_tcp(&writes.tcp.put));
    }
    if !writes.http.put.is_empty() {
        statements.push(put_http(&writes.http.put));
    }
    if !writes.put_groups.is_empty() {
        let put = "INSERT INTO router_groups
            SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
            ON CONFLICT (guid) DO UPDATE SET reservable_ports = excluded.reservable_ports";
        let groups = &writes.put_groups;
        let columns = vec![
            column(groups, |group| group.guid.as_str()),
            column(groups, |group| group.name.as_str()),
            column(groups, |group| group.kind.as_str()),
            column(groups, |group| group.reservable_ports.as_str()),
        ];
        statements.push(Statement::new(put, columns));
    }
    statements
}

fn put_tcp(rows: &[Arc<Row<TcpMapping>>]) -> Statement<'_> {
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
    let columns = vec![
        column(rows, |row| row.id),
        column(rows, |row| row.expires),
        column(rows, |row| row.value.router_group_guid.as_str()),
        column(rows, |row| i32::from(row.value.port)),
        column(rows, |row| row.value.backend_ip.as_str()),
        column(rows, |row| i32::from(row.value.backend_port)),
        column(rows, |row| row.value.backend_tls_port),
        column(rows, |row| row.value.backend_sni_hostname.as_deref()),
        column(rows, |row| row.value.sni_rewrite_hostname.as_deref()),
        column(rows, |row| row.value.instance_id.as_str()),
        column(rows, |row| row.value.modification_tag.guid.as_str()),
        column(rows, |row| i64::from(row.value.modification_tag.index)),
        column(rows, |row| row.value.ttl),
        column(rows, |row| row.value.isolation_segment.as_str()),
        column(rows, |row| row.value.terminate_frontend_tls),
        column(rows, |row| row.value.alpns.as_str()),
        column(rows, |row| row.value.enable_backend_mtls),
    ];
    Statement::new(put, columns)
}

fn put_http(rows: &[Arc<Row<HttpRoute>>]) -> Statement<'_> {
    let put = "INSERT INTO routes (id, expires_at, route, port, ip, ttl, log_guid,
            route_service_url, modification_guid, modification_index)
        SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::int[], $5::text[],
            $6::bigint[], $7::text[], $8::text[], $9::text[], $10::bigint[])
        ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at, ttl = excluded.ttl,
            log_guid = excluded.log_guid, modification_index = excluded.modification_index";
    let columns = vec![
        column(rows, |row| row.id),
        column(rows, |row| row.expires),
        column(rows, |row| row.value.route.as_str()),
        column(rows, |row| i32::from(row.value.port)),
        column(rows, |row| row.value.ip.as_str()),
        column(rows, |row| row.value.ttl),
        column(rows, |row| row.value.log_guid.as_str()),
        column(rows, |row| row.value.route_service_url.as_str()),
        column(rows, |row| row.value.modification_tag.guid.as_str()),
        column(rows, |row| i64::from(row.value.modification_tag.index)),
    ];
    Statement::new(put, columns)
}

fn column<'a, T, V>(rows: &'a [Arc<T>], of: impl Fn(&'a T) -> V) -> Column<'a>
where
    Column<'a>: From<Vec<V>>,
{
    let values: Vec<V> = rows.iter().map(|row| of(row)).collect();
    values.into()
}
