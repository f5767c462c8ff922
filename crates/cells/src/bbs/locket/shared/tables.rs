//! What is said to the database.
//!
//! Whether a key has expired its clock alone says. And nothing has expired while the pulse has stopped: each
//! Locket renews it every second, so while it is old none was there that could have renewed
//! anything.

use std::time::Duration;

use commit::postgres::{Row, Schema, Statement};
use diego::locket::Resource;

use crate::bbs::presence::type_text;

/// Keys are bytes there, and the index over them is one of their sums: see the tables of the BBS.
/// Rows that are written again and again find room on their page.
pub(super) static SCHEMA: Schema = Schema {
    owner: "Locket",
    application: "headroom locket",
    lock: i64::from_be_bytes(*b"hr-lockt"),
    book: "locket_schema",
    migrations: &["
    CREATE TABLE locket_keys (key bytea NOT NULL, owner bytea NOT NULL, value bytea NOT NULL,
        type_code integer NOT NULL, ttl_s bigint NOT NULL, expires timestamptz NOT NULL)
        WITH (fillfactor = 50);
    CREATE UNIQUE INDEX locket_keys_of ON locket_keys (sha256(key));
    CREATE TABLE locket_pulse (seen timestamptz NOT NULL) WITH (fillfactor = 10);
    INSERT INTO locket_pulse (seen) VALUES (clock_timestamp());
"],
};

/// A key that somebody asks for.
#[derive(Debug, Clone)]
pub(super) struct KeyRequest {
    pub(super) resource: Resource,
    pub(super) ttl: Duration,
}

/// Takes or renews keys; says which. They must be sorted by their bytes, so that two servers never
/// wait for each other, and each may be there once. While there are too many, only those that are
/// there already are taken.
pub(super) fn lock<'a>(wanted: &[&'a KeyRequest], full: bool) -> Statement<'a> {
    // The row is locked before the condition is judged, by its newest version.
    let text = "INSERT INTO locket_keys AS held (key, owner, value, type_code, ttl_s, expires)
        SELECT key, owner, value, type_code, ttl_s, clock_timestamp() + ttl_s * interval '1 s'
        FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::integer[], $5::bigint[])
            AS wanted (key, owner, value, type_code, ttl_s)
        WHERE NOT ($6::boolean[])[1]
            OR EXISTS (SELECT FROM locket_keys known WHERE sha256(known.key) = sha256(wanted.key))
        ON CONFLICT (sha256(key)) DO UPDATE SET owner = excluded.owner, value = excluded.value,
            type_code = excluded.type_code, ttl_s = excluded.ttl_s,
            expires = clock_timestamp() + excluded.ttl_s * interval '1 s'
        WHERE held.owner = excluded.owner OR held.expires <= clock_timestamp()
            AND (SELECT seen > clock_timestamp() - interval '5 s' FROM locket_pulse)
        RETURNING held.key";
    let bytes = |of: fn(&Resource) -> &String| -> Vec<&'a [u8]> {
        let wanted = wanted.iter().copied();
        wanted
            .map(|wanted| of(&wanted.resource).as_bytes())
            .collect()
    };
    let codes = wanted.iter().map(|wanted| wanted.resource.type_code);
    let ttls = wanted.iter().map(|wanted| wanted.ttl.as_secs() as i64);
    let columns = vec![
        bytes(|resource| &resource.key).into(),
        bytes(|resource| &resource.owner).into(),
        bytes(|resource| &resource.value).into(),
        codes.collect::<Vec<i32>>().into(),
        ttls.collect::<Vec<i64>>().into(),
        vec![full].into(),
    ];
    Statement::new(text, columns)
}

/// Gives a key up; a row comes back where another holds it.
pub(super) fn release<'a>(key: &'a str, owner: &'a str) -> Statement<'a> {
    let text = "WITH held AS (
            SELECT key, owner = ($2::bytea[])[1] OR expires <= clock_timestamp()
                AND seen > clock_timestamp() - interval '5 s' AS free
            FROM locket_keys, locket_pulse WHERE sha256(key) = sha256(($1::bytea[])[1])
            FOR UPDATE OF locket_keys
        ), gone AS (
            DELETE FROM locket_keys USING held
            WHERE sha256(locket_keys.key) = sha256(held.key) AND held.free
        )
        SELECT FROM held WHERE NOT free";
    let columns = vec![vec![key.as_bytes()].into(), vec![owner.as_bytes()].into()];
    Statement::new(text, columns)
}

/// One key, if it is held.
pub(super) fn fetch(key: &str) -> Statement<'_> {
    let text = "SELECT key, owner, value, type_code FROM locket_keys, locket_pulse
        WHERE sha256(key) = sha256(($1::bytea[])[1])
            AND (expires > clock_timestamp() OR seen <= clock_timestamp() - interval '5 s')";
    Statement::new(text, vec![vec![key.as_bytes()].into()])
}

/// All keys of a type that are held.
pub(super) fn fetch_all(code: i32) -> Statement<'static> {
    let text = "SELECT key, owner, value, type_code FROM locket_keys, locket_pulse
        WHERE type_code = ($1::integer[])[1]
            AND (expires > clock_timestamp() OR seen <= clock_timestamp() - interval '5 s')";
    Statement::new(text, vec![vec![code].into()])
}

/// Renews the pulse. Where it had stopped, what was held when it was seen last is held for
/// its whole time to live from now on; where the clock was put back, all is, which would be held for
/// so much longer otherwise. One server after the other does so.
pub(super) const BEAT: &str = "BEGIN;
    SELECT FROM locket_pulse FOR UPDATE;
    UPDATE locket_keys SET expires = clock_timestamp() + ttl_s * interval '1 s'
    FROM (
        SELECT key FROM locket_keys, locket_pulse
        WHERE seen <= clock_timestamp() - interval '5 s' AND expires > seen
            OR seen > clock_timestamp() + interval '5 s'
        ORDER BY key FOR UPDATE OF locket_keys
    ) AS held
    WHERE sha256(locket_keys.key) = sha256(held.key);
    UPDATE locket_pulse SET seen = clock_timestamp();
    COMMIT";

/// Forgets what has expired; says whose it was, to one server alone. Rows that somebody takes at
/// this moment are left.
pub(super) fn sweep() -> Statement<'static> {
    let text = "WITH lapsed AS (
            SELECT key FROM locket_keys, locket_pulse
            WHERE expires <= clock_timestamp() AND seen > clock_timestamp() - interval '5 s'
            FOR UPDATE OF locket_keys SKIP LOCKED
        )
        DELETE FROM locket_keys USING lapsed
        WHERE sha256(locket_keys.key) = sha256(lapsed.key)
        RETURNING locket_keys.key, locket_keys.owner";
    Statement::new(text, Vec::new())
}

/// How many keys there are.
pub(super) fn count() -> Statement<'static> {
    Statement::new("SELECT count(*) FROM locket_keys", Vec::new())
}

/// The text in a column.
pub(super) fn text(row: &Row, column: usize) -> Option<String> {
    let bytes: Vec<u8> = row.try_get(column).ok()?;
    String::from_utf8(bytes).ok()
}

/// A key of [`fetch`] or [`fetch_all`].
pub(super) fn resource(row: &Row) -> Option<Resource> {
    let type_code = row.try_get(3).ok()?;
    Some(Resource {
        key: text(row, 0)?,
        owner: text(row, 1)?,
        value: text(row, 2)?,
        r#type: type_text(type_code).to_owned(),
        type_code,
    })
}
