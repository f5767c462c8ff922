//! Rows in PostgreSQL.
//!
//! Names are bytes there: clients may put into them what PostgreSQL refuses in a text, and the
//! index over them is one of their sums, as they may be longer than an index takes. What one
//! client sends must not fail the batch of others.

use std::time::Duration;

use commit::StoreError;
use commit::postgres::{Column, Postgres, PostgresSettings, Row, Schema, Statement};

use super::OWNER;
use super::load::{Loading, LockRow, Reading, Unreadable};
use super::writes::{EncodedLock, Put, Rows, Writes};
use crate::bbs::encryption::Listed;
use crate::bbs::presence::StoredLock;
use crate::bbs::state::{Actual, Desired, Task};

/// Rows that are written again and again find room on their page.
static SCHEMA: Schema = Schema {
    owner: OWNER,
    application: "headroom bbs",
    lock: i64::from_be_bytes(*b"hr-bbs\0\0"),
    book: "bbs_schema",
    migrations: &[
        "
    CREATE TABLE bbs_tasks (id bigint PRIMARY KEY, guid bytea NOT NULL, record bytea NOT NULL)
        WITH (fillfactor = 70);
    CREATE TABLE bbs_desired_lrps (id bigint PRIMARY KEY, process_guid bytea NOT NULL,
        domain bytea NOT NULL, info bytea NOT NULL, rest bytea NOT NULL);
    CREATE TABLE bbs_actual_lrps (id bigint PRIMARY KEY, process_guid bytea NOT NULL,
        record bytea NOT NULL) WITH (fillfactor = 70);
    CREATE TABLE bbs_stops (process_guid bytea NOT NULL, from_index integer NOT NULL);
    CREATE UNIQUE INDEX bbs_stops_of ON bbs_stops (sha256(process_guid));
    CREATE TABLE bbs_domains (domain bytea NOT NULL, expires bigint NOT NULL);
    CREATE UNIQUE INDEX bbs_domains_of ON bbs_domains (sha256(domain));
    CREATE TABLE bbs_presences (key bytea NOT NULL, id bigint NOT NULL, owner bytea NOT NULL,
        value bytea NOT NULL, type_code integer NOT NULL, ttl_s bigint NOT NULL);
    CREATE UNIQUE INDEX bbs_presences_of ON bbs_presences (sha256(key));
",
        "
    ALTER TABLE bbs_tasks ADD COLUMN key_label text;
    ALTER TABLE bbs_desired_lrps ADD COLUMN key_label text;
    ALTER TABLE bbs_actual_lrps ADD COLUMN key_label text;
    ALTER TABLE bbs_presences ADD COLUMN key_label text;
    CREATE TABLE bbs_encryption_keys (label text PRIMARY KEY, proof bytea NOT NULL);
",
    ],
};

/// Longest wait for a transaction.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Bytes of records in one statement, but for those of a single record; PostgreSQL takes 1 GiB.
const STATEMENT_BYTES: usize = 32 << 20;

/// A database that is to be connected to.
pub(super) fn open(settings: &PostgresSettings) -> Result<Postgres, StoreError> {
    Postgres::new(settings.clone(), &SCHEMA)
}

/// Reads all records.
pub(super) async fn load(store: &Postgres, loading: &mut Loading<'_>) -> Result<(), StoreError> {
    let query = "SELECT id, guid, key_label, record FROM bbs_tasks";
    let take = |row: &Row| {
        let (id, guid, label) = (row.try_get(0)?, text(row, 1)?, row.try_get(2)?);
        loading.task(id, &guid, label, row.try_get(3)?)
    };
    store.rows("bbs_tasks", query, take).await?;
    let query = "SELECT id, process_guid, domain, key_label, info, rest FROM bbs_desired_lrps";
    let take = |row: &Row| {
        let (guid, domain) = (text(row, 1)?, text(row, 2)?);
        let values = [row.try_get(4)?, row.try_get(5)?];
        loading.desired(row.try_get(0)?, &guid, &domain, row.try_get(3)?, values)
    };
    store.rows("bbs_desired_lrps", query, take).await?;
    let query = "SELECT id, process_guid, key_label, record FROM bbs_actual_lrps";
    let take = |row: &Row| {
        let (id, guid, label) = (row.try_get(0)?, text(row, 1)?, row.try_get(2)?);
        loading.actual(id, &guid, label, row.try_get(3)?)
    };
    store.rows("bbs_actual_lrps", query, take).await?;
    let query = "SELECT from_index::bigint, process_guid FROM bbs_stops";
    let take = |row: &Row| {
        let from: i64 = row.try_get(0)?;
        loading.stop(&text(row, 1)?, i32::try_from(from)?);
        Ok(())
    };
    store.rows("bbs_stops", query, take).await?;
    let query = "SELECT expires, domain FROM bbs_domains";
    let take = |row: &Row| {
        loading.domain(&text(row, 1)?, row.try_get(0)?);
        Ok(())
    };
    store.rows("bbs_domains", query, take).await
}

fn text(row: &Row, column: usize) -> Result<String, Unreadable> {
    let bytes: Vec<u8> = row.try_get(column)?;
    Ok(String::from_utf8(bytes)?)
}

/// Reads who held which key.
pub(super) async fn presences(
    store: &Postgres,
    reading: &mut Reading<'_>,
) -> Result<Vec<StoredLock>, StoreError> {
    let mut presences = Vec::new();
    let query = "SELECT id, key, owner, type_code, ttl_s, key_label, value FROM bbs_presences";
    let take = |row: &Row| {
        let held = LockRow {
            id: row.try_get(0)?,
            key: text(row, 1)?,
            owner: text(row, 2)?,
            type_code: row.try_get(3)?,
            ttl_s: row.try_get(4)?,
        };
        presences.push(held.with(reading, row.try_get(5)?, row.try_get(6)?)?);
        Ok(())
    };
    store.rows("bbs_presences", query, take).await?;
    Ok(presences)
}

/// Which keys values may be encrypted with.
pub(super) async fn keys(store: &Postgres) -> Result<Vec<Listed>, StoreError> {
    let mut keys = Vec::new();
    let query = "SELECT 0::bigint, label, proof FROM bbs_encryption_keys";
    let take = |row: &Row| {
        let (label, proof) = (row.try_get(1)?, row.try_get(2)?);
        keys.push(Listed { label, proof });
        Ok(())
    };
    store.rows("bbs_encryption_keys", query, take).await?;
    Ok(keys)
}

/// Adds keys that values may be encrypted with.
pub(super) async fn add_keys(store: &mut Postgres, keys: &[Listed]) -> Result<(), StoreError> {
    let text = "INSERT INTO bbs_encryption_keys (label, proof)
        SELECT * FROM unnest($1::text[], $2::bytea[])";
    let labels: Vec<&str> = keys.iter().map(|key| &*key.label).collect();
    let proofs: Vec<&[u8]> = keys.iter().map(|key| &*key.proof).collect();
    let add = Statement::new(text, vec![labels.into(), proofs.into()]);
    store.write(&[add], ANSWER_WITHIN).await
}

/// Forgets all keys but one.
pub(super) async fn only_key(store: &mut Postgres, label: &str) -> Result<(), StoreError> {
    let text = "DELETE FROM bbs_encryption_keys WHERE label <> ALL ($1::text[])";
    let forget = Statement::new(text, vec![vec![label].into()]);
    store.write(&[forget], ANSWER_WITHIN).await
}

/// Writes in one transaction.
pub(super) async fn write(store: &mut Postgres, writes: &Writes<'_>) -> Result<(), StoreError> {
    store.write(&statements(writes), ANSWER_WITHIN).await
}

fn statements<'a>(writes: &'a Writes<'a>) -> Vec<Statement<'a>> {
    let mut all = Vec::new();
    let label = writes.label.as_deref();
    numbered(
        &mut all,
        &writes.tasks,
        "DELETE FROM bbs_tasks WHERE id = ANY($1)",
        |rows| {
            records(
                PUT_TASKS,
                ids(rows, |task: &Task| task.id),
                guids(rows),
                bytes(rows),
                vec![label; rows.len()],
            )
        },
    );
    numbered(
        &mut all,
        &writes.desired,
        "DELETE FROM bbs_desired_lrps WHERE id = ANY($1)",
        |rows| {
            let domains = rows.iter().map(|put| put.row.domain.as_bytes());
            desired_lrps(
                ids(rows, |desired: &Desired| desired.id),
                guids(rows),
                domains.collect(),
                [bytes(rows), rows.iter().map(|put| &*put.rest).collect()],
                vec![label; rows.len()],
            )
        },
    );
    numbered(
        &mut all,
        &writes.actual,
        "DELETE FROM bbs_actual_lrps WHERE id = ANY($1)",
        |rows| {
            records(
                PUT_ACTUAL_LRPS,
                ids(rows, |row: &Actual| row.id),
                guids(rows),
                bytes(rows),
                vec![label; rows.len()],
            )
        },
    );
    keyed(&mut all, writes);
    all
}

fn numbered<'a, T>(
    all: &mut Vec<Statement<'a>>,
    rows: &'a Rows<'a, T>,
    delete: &'static str,
    put: impl Fn(&'a [Put<'a, T>]) -> Statement<'a>,
) {
    if !rows.gone.is_empty() {
        all.push(Statement::new(delete, vec![rows.gone.clone().into()]));
    }
    let mut left = &rows.put[..];
    while !left.is_empty() {
        let mut sum = 0;
        let fits = left.iter().take_while(|put| {
            sum += put.bytes.len() + put.rest.len();
            sum <= STATEMENT_BYTES
        });
        let (now, later) = left.split_at(fits.count().max(1));
        all.push(put(now));
        left = later;
    }
}

fn ids<T>(rows: &[Put<'_, T>], id: impl Fn(&T) -> i64) -> Vec<i64> {
    rows.iter().map(|put| id(put.row)).collect()
}

fn guids<'a, T>(rows: &[Put<'a, T>]) -> Vec<&'a [u8]> {
    rows.iter().map(|put| put.guid.as_bytes()).collect()
}

fn bytes<'a, T>(rows: &'a [Put<'a, T>]) -> Vec<&'a [u8]> {
    rows.iter().map(|put| &*put.bytes).collect()
}

// What is there is found by its number, whatever PostgreSQL believes of the table's size.

pub(super) const PUT_TASKS: &str = "INSERT INTO bbs_tasks (id, guid, record, key_label)
    SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::text[])
    ON CONFLICT (id) DO UPDATE SET record = excluded.record, key_label = excluded.key_label";

pub(super) const PUT_ACTUAL_LRPS: &str = "INSERT INTO bbs_actual_lrps
    (id, process_guid, record, key_label)
    SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::text[])
    ON CONFLICT (id) DO UPDATE SET record = excluded.record, key_label = excluded.key_label";

/// Puts tasks or actual LRPs: their numbers, guids, records and the keys of these.
pub(super) fn records<'a>(
    put: &'a str,
    ids: Vec<i64>,
    guids: Vec<&'a [u8]>,
    records: Vec<&'a [u8]>,
    labels: Vec<Option<&'a str>>,
) -> Statement<'a> {
    let columns = vec![ids.into(), guids.into(), records.into(), labels.into()];
    Statement::new(put, columns)
}

/// Puts desired LRPs, each of two values.
pub(super) fn desired_lrps<'a>(
    ids: Vec<i64>,
    guids: Vec<&'a [u8]>,
    domains: Vec<&'a [u8]>,
    [infos, rests]: [Vec<&'a [u8]>; 2],
    labels: Vec<Option<&'a str>>,
) -> Statement<'a> {
    let put = "INSERT INTO bbs_desired_lrps (id, process_guid, domain, info, rest, key_label)
        SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[],
            $6::text[])
        ON CONFLICT (id) DO UPDATE SET info = excluded.info, rest = excluded.rest,
            key_label = excluded.key_label";
    let columns = vec![
        ids.into(),
        guids.into(),
        domains.into(),
        infos.into(),
        rests.into(),
        labels.into(),
    ];
    Statement::new(put, columns)
}

/// The tables whose rows have names.
fn keyed<'a>(all: &mut Vec<Statement<'a>>, writes: &'a Writes<'a>) {
    named(
        all,
        &writes.stops,
        "INSERT INTO bbs_stops (process_guid, from_index)
            SELECT * FROM unnest($1::bytea[], $2::integer[])
            ON CONFLICT (sha256(process_guid)) DO UPDATE SET from_index = excluded.from_index",
        "DELETE FROM bbs_stops USING unnest($1::bytea[]) AS gone (name)
            WHERE sha256(process_guid) = sha256(gone.name)",
    );
    named(
        all,
        &writes.domains,
        "INSERT INTO bbs_domains (domain, expires)
            SELECT * FROM unnest($1::bytea[], $2::bigint[])
            ON CONFLICT (sha256(domain)) DO UPDATE SET expires = excluded.expires",
        "DELETE FROM bbs_domains USING unnest($1::bytea[]) AS gone (name)
            WHERE sha256(domain) = sha256(gone.name)",
    );
    if !writes.held.is_empty() {
        all.push(put_presences(&writes.held, writes.label.as_deref()));
    }
    if !writes.gone.is_empty() {
        let text = "DELETE FROM bbs_presences
            USING unnest($1::bytea[], $2::bigint[]) AS gone (name, number)
            WHERE sha256(key) = sha256(gone.name) AND id <= gone.number";
        let (keys, ids): (Vec<&[u8]>, Vec<i64>) = writes
            .gone
            .iter()
            .map(|(key, id)| (key.as_bytes(), *id))
            .unzip();
        all.push(Statement::new(text, vec![keys.into(), ids.into()]));
    }
}

/// Puts the names with a value, and deletes those without.
fn named<'a, V: Copy>(
    all: &mut Vec<Statement<'a>>,
    changes: &[(&'a str, Option<V>)],
    put: &'a str,
    delete: &'a str,
) where
    Column<'a>: From<Vec<V>>,
{
    let kept = changes
        .iter()
        .filter_map(|(name, value)| Some((name.as_bytes(), (*value)?)));
    let (names, values): (Vec<&[u8]>, Vec<V>) = kept.unzip();
    if !names.is_empty() {
        let columns = vec![Column::Bytea(names), Column::from(values)];
        all.push(Statement::new(put, columns));
    }
    let gone = changes.iter().filter(|(_, value)| value.is_none());
    let gone: Vec<&[u8]> = gone.map(|(name, _)| name.as_bytes()).collect();
    if !gone.is_empty() {
        all.push(Statement::new(delete, vec![Column::Bytea(gone)]));
    }
}

fn put_presences<'a>(held: &'a [EncodedLock<'a>], label: Option<&'a str>) -> Statement<'a> {
    let put = "INSERT INTO bbs_presences (key, id, owner, value, type_code, ttl_s, key_label)
        SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bytea[], $4::bytea[], $5::integer[],
            $6::bigint[], $7::text[])
        ON CONFLICT (sha256(key)) DO UPDATE SET id = excluded.id, owner = excluded.owner,
            value = excluded.value, type_code = excluded.type_code, ttl_s = excluded.ttl_s,
            key_label = excluded.key_label";
    let bytes = |of: fn(&'a EncodedLock<'a>) -> &'a [u8]| -> Vec<&'a [u8]> {
        held.iter().map(of).collect()
    };
    let number = |of: fn(&StoredLock) -> i64| -> Vec<i64> {
        held.iter().map(|held| of(held.kept)).collect()
    };
    let codes = held.iter().map(|held| held.kept.resource.type_code);
    let columns = vec![
        bytes(|held| held.kept.resource.key.as_bytes()).into(),
        number(|kept| kept.id).into(),
        bytes(|held| held.kept.resource.owner.as_bytes()).into(),
        bytes(|held| &held.value).into(),
        codes.collect::<Vec<i32>>().into(),
        number(|kept| kept.ttl.as_secs() as i64).into(),
        vec![label; held.len()].into(),
    ];
    Statement::new(put, columns)
}
