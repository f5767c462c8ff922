//! Encrypts anew, a few rows at a time, what is not encrypted with the active key.
//!
//! What is done shows in the rows: each has the label of its key. A walk that was cut off begins
//! again and passes over what it had done. It goes by row numbers up to the newest row that it finds
//! in a table at first: whatever is written meanwhile is encrypted with the active key already, so
//! after one walk nothing else is left.

use commit::postgres::{Row, Statement};
use commit::{Postgres, Sqlite, StoreError};
use rusqlite::params;

use super::{Database, Store, postgres, sqlite};
use crate::bbs::encryption::{Column, Vault};

/// Most rows of one step.
const ROWS: usize = 256;
/// Most bytes of the values of one step, but for those of a single row.
const BYTES: usize = 4 << 20;

/// Where it has come to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Walk {
    /// Index of the table.
    table: usize,
    /// Number of the last row that was seen; they begin at 1.
    after: i64,
    /// The newest row when it came to the table.
    newest: Option<i64>,
}

/// What one step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reencrypted {
    /// Rows that were encrypted anew.
    pub(crate) rows: u64,
    /// Rows that may be left, as far as they were there at the start.
    pub(crate) left: u64,
    /// All is encrypted with the active key, and the store needs no other any more.
    pub(crate) done: bool,
}

/// A table whose rows have encrypted values.
pub(super) struct Table {
    name: &'static str,
    /// Columns that a row is written with, beside its number.
    names: &'static [&'static str],
    values: &'static [(&'static str, Column)],
}

const TABLES: [Table; 4] = [
    Table {
        name: "tasks",
        names: &["guid"],
        values: &[("record", Column::Task)],
    },
    Table {
        name: "desired_lrps",
        names: &["process_guid", "domain"],
        values: &[("info", Column::Info), ("rest", Column::Rest)],
    },
    Table {
        name: "actual_lrps",
        names: &["process_guid"],
        values: &[("record", Column::Actual)],
    },
    Table {
        name: "presences",
        names: &["key"],
        values: &[("value", Column::Presence)],
    },
];

impl Table {
    fn columns(&self) -> String {
        let names = self.names.iter().copied();
        let values = self.values.iter().map(|(name, _)| *name);
        let all: Vec<&str> = names.chain(values).collect();
        all.join(", ")
    }
}

/// A row as it is stored.
struct Stored {
    id: i64,
    label: Option<String>,
    names: Vec<Vec<u8>>,
    values: Vec<Vec<u8>>,
}

impl Stored {
    fn bytes(&self) -> usize {
        self.values.iter().map(Vec::len).sum()
    }

    /// Encrypts it with the active key.
    fn renew(&mut self, table: &Table, vault: &mut Vault) -> Result<(), StoreError> {
        for ((_, column), value) in table.values.iter().zip(&mut self.values) {
            if let Some(label) = &self.label {
                let opened = vault.open(label, *column, self.id, value);
                *value = opened.map_err(|error| StoreError::Damaged {
                    table: table.name,
                    id: self.id,
                    cause: error.to_string(),
                })?;
            }
            *value = vault.seal(*column, self.id, value)?;
        }
        self.label = Some(vault.active().to_owned());
        Ok(())
    }
}

impl Store {
    /// Whether values may be under another key than the active one, or under none.
    pub(crate) fn is_to_reencrypt(&self) -> bool {
        self.walk.is_some()
    }

    /// The label of the key that everything is encrypted with.
    pub(crate) fn active_key(&self) -> Option<&str> {
        self.vault.as_ref().map(Vault::active)
    }

    /// How many rows are left to be encrypted anew, at most.
    pub(crate) fn rows_to_reencrypt(&self) -> u64 {
        self.stale
    }

    /// Encrypts a few rows anew, in one transaction. After an error it may be called again.
    ///
    /// # Errors
    /// What the database said.
    pub(crate) async fn reencrypt(&mut self) -> Result<Reencrypted, StoreError> {
        let (Some(walk), Some(vault)) = (self.walk, &mut self.vault) else {
            return Ok(Reencrypted {
                rows: 0,
                left: 0,
                done: true,
            });
        };
        let Some(table) = TABLES.get(walk.table) else {
            let label = vault.active();
            match &mut self.database {
                Database::Sqlite(store) => sqlite::only_key(store, label)?,
                Database::Postgres(store) => postgres::only_key(store, label).await?,
            }
            self.walk = None;
            self.stale = 0;
            return Ok(Reencrypted {
                rows: 0,
                left: 0,
                done: true,
            });
        };
        let newest = match (walk.newest, &self.database) {
            (Some(newest), _) => newest,
            (None, Database::Sqlite(store)) => newest_sqlite(store, table)?,
            (None, Database::Postgres(store)) => newest_postgres(store, table).await?,
        };
        let mut rows = match &self.database {
            Database::Sqlite(store) => read_sqlite(store, table, walk.after)?,
            Database::Postgres(store) => read_postgres(store, table, walk.after).await?,
        };
        let next = match rows.last() {
            Some(last) if last.id < newest => Walk {
                after: last.id,
                newest: Some(newest),
                ..walk
            },
            _ => Walk {
                table: walk.table + 1,
                ..Walk::default()
            },
        };
        rows.retain(|row| row.label.as_deref() != Some(vault.active()));
        for row in &mut rows {
            row.renew(table, vault)?;
        }
        if !rows.is_empty() {
            match &mut self.database {
                Database::Sqlite(store) => write_sqlite(store, table, &rows)?,
                Database::Postgres(store) => write_postgres(store, table, &rows).await?,
            }
        }
        self.walk = Some(next);
        let count = rows.len() as u64;
        self.stale = self.stale.saturating_sub(count);
        Ok(Reencrypted {
            rows: count,
            left: self.stale,
            done: false,
        })
    }
}

/// The number of a table's newest row.
fn newest_sqlite(store: &Sqlite, table: &Table) -> Result<i64, StoreError> {
    let query = format!("SELECT coalesce(max(id), 0) FROM {}", table.name);
    let mut newest = 0;
    store.rows(table.name, &query, |row| {
        newest = row.get(0)?;
        Ok(())
    })?;
    Ok(newest)
}

async fn newest_postgres(store: &Postgres, table: &Table) -> Result<i64, StoreError> {
    let query = format!("SELECT coalesce(max(id), 0) FROM bbs_{}", table.name);
    let mut newest = 0;
    let take = |row: &Row| {
        newest = row.try_get(0)?;
        Ok(())
    };
    store.rows(table.name, &query, take).await?;
    Ok(newest)
}

/// The next rows of a table.
fn read_sqlite(store: &Sqlite, table: &Table, after: i64) -> Result<Vec<Stored>, StoreError> {
    let query = format!(
        "SELECT id, key_label, {} FROM {} WHERE id > ?1 ORDER BY id LIMIT {ROWS}",
        table.columns(),
        table.name
    );
    let read = store.read(|connection| {
        let mut statement = connection.prepare_cached(&query)?;
        let mut found = statement.query([after])?;
        let (mut rows, mut bytes): (Vec<Stored>, usize) = (Vec::new(), 0);
        while let Some(row) = found.next()? {
            let columns = |from: usize, count: usize| {
                let columns = (from..from + count).map(|at| {
                    let bytes = row.get_ref(at)?.as_bytes()?;
                    Ok(bytes.to_vec())
                });
                columns.collect::<rusqlite::Result<Vec<Vec<u8>>>>()
            };
            let names = table.names.len();
            let stored = Stored {
                id: row.get(0)?,
                label: row.get(1)?,
                names: columns(2, names)?,
                values: columns(2 + names, table.values.len())?,
            };
            bytes += stored.bytes();
            if bytes > BYTES && !rows.is_empty() {
                break;
            }
            rows.push(stored);
        }
        Ok(rows)
    });
    read.map_err(|error| StoreError::Database {
        doing: "read",
        cause: error.to_string(),
    })
}

fn write_sqlite(store: &mut Sqlite, table: &Table, rows: &[Stored]) -> Result<(), StoreError> {
    sqlite::write_with(store, |transaction| {
        for row in rows {
            let Stored { id, label, .. } = row;
            let statement = match table.name {
                "tasks" => sqlite::UPDATE_TASK,
                "desired_lrps" => sqlite::UPDATE_DESIRED,
                "actual_lrps" => sqlite::UPDATE_ACTUAL,
                _ => "UPDATE presences SET value = ?2, key_label = ?3 WHERE key = ?1",
            };
            let mut statement = transaction.prepare_cached(statement)?;
            match (&row.values[..], table.name) {
                ([value], "presences") => {
                    let key = String::from_utf8_lossy(&row.names[0]);
                    statement.execute(params![key, value, label])?
                }
                ([first, second], _) => statement.execute(params![id, first, second, label])?,
                (values, _) => statement.execute(params![id, values[0], label])?,
            };
        }
        Ok(())
    })
}

async fn read_postgres(
    store: &Postgres,
    table: &Table,
    after: i64,
) -> Result<Vec<Stored>, StoreError> {
    let columns = table.columns();
    let lengths = table
        .values
        .iter()
        .map(|(name, _)| format!("octet_length({name})"));
    let length = lengths.collect::<Vec<_>>().join(" + ");
    // The first row always, and those that fit with it.
    let query = format!(
        "SELECT id, key_label, {columns} FROM (
            SELECT *, sum({length}) OVER (ORDER BY id) AS total,
                row_number() OVER (ORDER BY id) AS number
            FROM (SELECT * FROM bbs_{} WHERE id > {after} ORDER BY id LIMIT {ROWS}) AS next
        ) AS next WHERE total <= {BYTES} OR number = 1 ORDER BY id",
        table.name
    );
    let mut rows = Vec::new();
    let take = |row: &Row| {
        let columns = |from: usize, count: usize| {
            let columns = (from..from + count).map(|at| row.try_get::<_, Vec<u8>>(at));
            columns.collect::<Result<Vec<_>, _>>()
        };
        let names = table.names.len();
        rows.push(Stored {
            id: row.try_get(0)?,
            label: row.try_get(1)?,
            names: columns(2, names)?,
            values: columns(2 + names, table.values.len())?,
        });
        Ok(())
    };
    store.rows(table.name, &query, take).await?;
    Ok(rows)
}

async fn write_postgres(
    store: &mut Postgres,
    table: &Table,
    rows: &[Stored],
) -> Result<(), StoreError> {
    let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
    let labels: Vec<Option<&str>> = rows.iter().map(|row| row.label.as_deref()).collect();
    let name = |at: usize| -> Vec<&[u8]> { rows.iter().map(|row| &*row.names[at]).collect() };
    let value = |at: usize| -> Vec<&[u8]> { rows.iter().map(|row| &*row.values[at]).collect() };
    let put = match table.name {
        "tasks" => postgres::records(postgres::PUT_TASKS, ids, name(0), value(0), labels),
        "desired_lrps" => {
            postgres::desired_lrps(ids, name(0), name(1), [value(0), value(1)], labels)
        }
        "actual_lrps" => {
            postgres::records(postgres::PUT_ACTUAL_LRPS, ids, name(0), value(0), labels)
        }
        _ => {
            let update = "UPDATE bbs_presences SET value = new.value, key_label = new.label
                FROM unnest($1::bytea[], $2::bytea[], $3::text[]) AS new (key, value, label)
                WHERE sha256(bbs_presences.key) = sha256(new.key)";
            let columns = vec![name(0).into(), value(0).into(), labels.into()];
            Statement::new(update, columns)
        }
    };
    store.write(&[put], postgres::ANSWER_WITHIN).await
}
