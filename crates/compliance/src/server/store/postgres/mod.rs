//! Rows in PostgreSQL: a batch is one transaction of one flight, with a statement for all rows of
//! a kind.

mod rows;
mod statements;

use commit::StoreError;
use commit::postgres::{Postgres, Schema, Statement};

use super::{ANSWER_WITHIN, OWNER};
use crate::server::state::Write;
use rows::Rows;

/// What is packed already is not packed again.
pub(super) static SCHEMA: Schema = Schema {
    owner: OWNER,
    application: "headroom compliance",
    lock: i64::from_be_bytes(*b"hr-compl"),
    book: "compliance_schema",
    migrations: &[
        "
    CREATE TABLE nodes (number bigint PRIMARY KEY, id bytea NOT NULL, standing bytea NOT NULL,
        key_status bytea NOT NULL, certificate bytea NOT NULL, node bytea NOT NULL,
        received bigint NOT NULL, inventory bytea NOT NULL);
    CREATE TABLE definitions (version bigint PRIMARY KEY, at bigint NOT NULL,
        body bytea NOT NULL);
    CREATE TABLE edits (version bigint PRIMARY KEY, at bigint NOT NULL, body bytea NOT NULL);
    CREATE TABLE tokens (id bytea PRIMARY KEY, name bytea NOT NULL, access bytea NOT NULL,
        hash bytea NOT NULL, created bigint NOT NULL);
    CREATE TABLE contents (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        hash bytea NOT NULL UNIQUE, body bytea NOT NULL);
    CREATE TABLE configurations (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        node bigint NOT NULL, config_id bytea, digest bytea, begin bigint NOT NULL,
        policy bigint, expected bigint);
    CREATE INDEX configurations_of_nodes ON configurations (node, number);
    CREATE TABLE runs (number bigint PRIMARY KEY, node bigint NOT NULL, start bigint NOT NULL,
        received bigint NOT NULL, config_id bytea, whole boolean NOT NULL,
        reports bigint NOT NULL, message bytea NOT NULL, signed boolean NOT NULL);
    CREATE UNIQUE INDEX runs_of_nodes ON runs (node, start);
    CREATE INDEX runs_that_count ON runs (node, number) WHERE whole;
    CREATE TABLE exceptions (run bigint NOT NULL, rule bytea NOT NULL, directive bytea NOT NULL,
        component bytea NOT NULL, key bytea NOT NULL, kind bytea NOT NULL,
        message bytea NOT NULL);
    CREATE INDEX exceptions_of_runs ON exceptions (run);
    CREATE TABLE refused (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        at bigint NOT NULL, name bytea NOT NULL, why bytea NOT NULL, body bytea NOT NULL);
    CREATE TABLE history (thing bytea NOT NULL, begin bigint NOT NULL, known bigint NOT NULL,
        lowest double precision NOT NULL, highest double precision NOT NULL,
        weighted double precision NOT NULL, level bytea NOT NULL, PRIMARY KEY (thing, begin));
    CREATE INDEX history_of_hours ON history (begin);
    ALTER TABLE nodes ALTER inventory SET STORAGE EXTERNAL;
    ALTER TABLE definitions ALTER body SET STORAGE EXTERNAL;
    ALTER TABLE contents ALTER body SET STORAGE EXTERNAL;
    ALTER TABLE runs ALTER message SET STORAGE EXTERNAL;
",
        "
    ALTER TABLE runs ADD part bigint NOT NULL DEFAULT 0, ADD digest bigint;
    UPDATE runs SET part = number WHERE NOT whole;
    DROP INDEX runs_of_nodes;
    CREATE UNIQUE INDEX runs_of_nodes ON runs (node, start, part);
",
    ],
};

/// Writes a batch in one transaction.
pub(super) async fn write(store: &mut Postgres, writes: &[Write]) -> Result<(), StoreError> {
    let rows = Rows::of(writes)?;
    let statements: Vec<Statement<'_>> = rows.iter().flat_map(Rows::statements).collect();
    store.write(&statements, ANSWER_WITHIN).await
}

/// Does statements in one transaction.
pub(super) async fn execute(store: &mut Postgres, texts: &[String]) -> Result<(), StoreError> {
    let all = texts.iter().map(|text| Statement::new(text, Vec::new()));
    let all: Vec<_> = all.collect();
    store.write(&all, ANSWER_WITHIN).await
}
