//! Rows of what changes.

use aws_lc_rs::digest::{SHA256, digest};
use rusqlite::{OptionalExtension, Params, Transaction, params};

use crate::reports::history::HourAggregate;
use crate::server::packed;
use crate::server::state::{
    HourOf, NodeRecord, PolicyRecord, RefusedRecord, RunRecord, TokenRecord, Write,
};
use crate::server::store::hours::counts;
use crate::server::store::words::{ACCESSES, KEYS, STANDINGS, word};
use crate::server::store::{CONFIGURATIONS, CONFIGURATIONS_KEPT, REFUSED, VERSIONS};

pub(super) fn write(transaction: &Transaction<'_>, write: &Write) -> rusqlite::Result<()> {
    match write {
        Write::Node(id, record, inventory) => node(transaction, id, record, inventory.as_deref()),
        Write::Forget(_, number) => forget(transaction, *number),
        Write::Definitions(definitions, version, at) => {
            let body = packed::pack(&serde_json::to_vec(&**definitions).map_err(not_json)?);
            let insert = "INSERT INTO definitions (version, at, body) VALUES (?1, ?2, ?3)";
            execute(transaction, insert, params![version, at, body])?;
            for statement in [
                "DELETE FROM definitions WHERE version < ?1",
                "DELETE FROM edits WHERE version < ?1",
            ] {
                execute(transaction, statement, [version - VERSIONS])?;
            }
            Ok(())
        }
        Write::Edit(edit, version, at) => {
            let body = packed::pack(&serde_json::to_vec(&**edit).map_err(not_json)?);
            let insert = "INSERT INTO edits (version, at, body) VALUES (?1, ?2, ?3)";
            execute(transaction, insert, params![version, at, body])
        }
        Write::Token(token) => {
            let TokenRecord {
                id,
                name,
                access,
                hash,
                created,
            } = &**token;
            let access = word(&ACCESSES, access);
            let insert = "INSERT INTO tokens (id, name, access, hash, created)
                VALUES (?1, ?2, ?3, ?4, ?5)";
            let values = params![id, name, access, hash, created];
            execute(transaction, insert, values)
        }
        Write::Revoke(id) => execute(transaction, "DELETE FROM tokens WHERE id = ?1", [id]),
        Write::Policy(record, node, run) => {
            policy(transaction, record, *node)?;
            forget_configurations(transaction, *node, record.begin, *run)
        }
        Write::Run(record, number, node) => run(transaction, record, *number, *node),
        Write::Refused(record) => refused(transaction, record),
        Write::History(all) => hours(transaction, all),
    }
}

/// Does a statement that is compiled once.
fn execute(transaction: &Transaction<'_>, text: &str, values: impl Params) -> rusqlite::Result<()> {
    transaction.prepare_cached(text)?.execute(values).map(drop)
}

fn not_json(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

fn node(
    transaction: &Transaction<'_>,
    id: &str,
    record: &NodeRecord,
    inventory: Option<&[u8]>,
) -> rusqlite::Result<()> {
    let node = serde_json::to_string(&*record.node).map_err(not_json)?;
    let standing = word(&STANDINGS, &record.known.standing);
    let key_status = word(&KEYS, &record.known.key_status);
    // Without an inventory the one that is there stays.
    let put = "INSERT INTO nodes (number, id, standing, key_status, certificate, node, received,
            inventory)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, coalesce(?8, x''))
        ON CONFLICT (number) DO UPDATE SET standing = ?3, key_status = ?4, certificate = ?5,
            node = ?6, received = ?7, inventory = coalesce(?8, inventory)";
    let values = params![
        record.number,
        id,
        standing,
        key_status,
        record.certificate,
        node,
        record.received,
        inventory,
    ];
    execute(transaction, put, values)
}

fn forget(transaction: &Transaction<'_>, number: i64) -> rusqlite::Result<()> {
    for statement in [
        "DELETE FROM exceptions WHERE run IN (SELECT number FROM runs WHERE node = ?1)",
        "DELETE FROM runs WHERE node = ?1",
        "DELETE FROM configurations WHERE node = ?1",
        "DELETE FROM nodes WHERE number = ?1",
    ] {
        execute(transaction, statement, [number])?;
    }
    Ok(())
}

/// The number of a content, which is kept once.
fn content(transaction: &Transaction<'_>, body: &[u8]) -> rusqlite::Result<i64> {
    let hash = digest(&SHA256, body);
    let known = transaction
        .prepare_cached("SELECT number FROM contents WHERE hash = ?1")?
        .query_row([hash.as_ref()], |row| row.get(0))
        .optional()?;
    if let Some(known) = known {
        return Ok(known);
    }
    transaction
        .prepare_cached("INSERT INTO contents (hash, body) VALUES (?1, ?2)")?
        .insert(params![hash.as_ref(), body])
}

fn policy(transaction: &Transaction<'_>, record: &PolicyRecord, node: i64) -> rusqlite::Result<()> {
    let served = record.served.as_ref();
    let policy = served.map(|served| content(transaction, &served.document));
    let policy = policy.transpose()?;
    let expected = served.map(|_| content(transaction, &record.expected));
    let expected = expected.transpose()?;
    let config_id = served.map(|served| &*served.config_id);
    let current = transaction
        .prepare_cached(
            "SELECT number, config_id FROM configurations WHERE node = ?1
             ORDER BY number DESC LIMIT 1",
        )?
        .query_row([node], |row| <(i64, Option<String>)>::try_from(row))
        .optional()?;
    if let Some((number, _)) = current.filter(|(_, id)| id.as_deref() == config_id) {
        let update = "UPDATE configurations SET policy = ?2, expected = ?3 WHERE number = ?1";
        return execute(transaction, update, params![number, policy, expected]);
    }
    let insert = "INSERT INTO configurations (node, config_id, digest, begin, policy, expected)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let (digest, begin) = (served.map(|served| served.digest), record.begin);
    let values = params![node, config_id, digest, begin, policy, expected];
    execute(transaction, insert, values)
}

/// Removes configurations that ended long before `begin`, and those beyond what may be there at
/// most, but that of this run.
fn forget_configurations(
    transaction: &Transaction<'_>,
    node: i64,
    begin: i64,
    run: Option<i64>,
) -> rusqlite::Result<()> {
    // A configuration ended when the next one began.
    let delete = "DELETE FROM configurations WHERE node = ?1
        AND number <= (SELECT number FROM configurations WHERE node = ?1
            ORDER BY number DESC LIMIT 1 OFFSET ?2)
        AND (number < (SELECT max(number) FROM configurations WHERE node = ?1 AND begin < ?3)
            OR number <= (SELECT number FROM configurations WHERE node = ?1
                ORDER BY number DESC LIMIT 1 OFFSET ?4))
        AND number IS NOT (SELECT max(c.number) FROM runs r
            JOIN configurations c ON c.node = ?1 AND c.config_id = r.config_id
            WHERE r.number = ?5)";
    let (kept, most) = CONFIGURATIONS;
    let since = begin.saturating_sub(CONFIGURATIONS_KEPT);
    execute(transaction, delete, params![node, kept, since, most, run])
}

fn run(
    transaction: &Transaction<'_>,
    record: &RunRecord,
    number: i64,
    node: i64,
) -> rusqlite::Result<()> {
    let insert = "INSERT INTO runs (number, node, start, received, config_id, whole, reports,
            message, signed, part, digest)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    let values = params![
        number,
        node,
        record.start,
        record.received,
        record.config_id,
        record.whole,
        record.reports,
        &record.message[..],
        record.signed,
        record.part(),
        record.repeat_digest(),
    ];
    execute(transaction, insert, values)?;
    let mut insert = transaction.prepare_cached(
        "INSERT INTO exceptions (run, rule, directive, component, key, kind, message)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for one in &record.exceptions {
        insert.execute(params![
            number,
            one.rule,
            one.directive,
            one.component,
            one.key,
            one.kind,
            one.message,
        ])?;
    }
    Ok(())
}

fn refused(transaction: &Transaction<'_>, record: &RefusedRecord) -> rusqlite::Result<()> {
    let RefusedRecord {
        at,
        name,
        why,
        body,
    } = record;
    let insert = "INSERT INTO refused (at, name, why, body) VALUES (?1, ?2, ?3, ?4)";
    execute(transaction, insert, params![at, name, why, &body[..]])?;
    let delete = "DELETE FROM refused WHERE number <= (SELECT max(number) FROM refused) - ?1";
    execute(transaction, delete, [REFUSED])
}

/// Writes hours in the place of what there was of them.
fn hours(transaction: &Transaction<'_>, hours: &[HourOf]) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(
        "INSERT OR REPLACE INTO history (thing, begin, known, lowest, highest, weighted, level)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for (thing, hour) in hours {
        let level = counts(hour);
        let HourAggregate {
            begin,
            known,
            lowest,
            highest,
            weighted,
            ..
        } = hour;
        insert.execute(params![
            thing, begin, known, lowest, highest, weighted, level
        ])?;
    }
    Ok(())
}
