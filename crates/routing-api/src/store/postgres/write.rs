//! From a batch to the tables.

use std::sync::Arc;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Transaction};

use crate::model::{HttpRoute, TcpMapping};
use crate::state::{Row, Writes};

/// Writes a batch as one transaction.
pub(super) async fn write_all(
    client: &mut Client,
    writes: &Writes,
) -> Result<(), tokio_postgres::Error> {
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
