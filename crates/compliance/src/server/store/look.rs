//! What is looked up while the server runs.

use std::collections::HashMap;

use commit::StoreError;
use serde::Serialize;

use super::Store;
use crate::server::state::RunKey;

/// A run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredRun {
    /// Its number: later ones came later.
    pub(crate) number: i64,
    /// The configuration that it was made with.
    pub(crate) config_id: Option<String>,
    /// The signed message, or the log itself, packed.
    pub(crate) message: Vec<u8>,
    /// Which of them it is.
    pub(crate) signed: bool,
}

/// How much is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Stored {
    /// Runs.
    pub(crate) runs: i64,
    /// Reports in them.
    pub(crate) reports: i64,
    /// Bytes of their messages, packed.
    pub(crate) bytes: i64,
    /// Reports of which something is to be told.
    pub(crate) exceptions: i64,
    /// Uploads that were refused and are kept aside.
    pub(crate) refused: i64,
}

impl Store {
    /// Which of these runs are kept, with their digests where these are known.
    pub(crate) async fn known_runs(
        &mut self,
        runs: &[RunKey],
    ) -> Result<HashMap<RunKey, Option<i64>>, StoreError> {
        let mut known = HashMap::new();
        if runs.is_empty() {
            return Ok(known);
        }
        let wanted: Vec<_> = runs
            .iter()
            .map(|(node, start, part)| format!("({node}, {start}, {part})"))
            .collect();
        // In this order SQLite looks each up, and reads no table.
        let query = format!(
            "SELECT r.number, r.node, r.start, r.part, r.digest
             FROM (VALUES {}) AS wanted CROSS JOIN runs r
             WHERE r.node = wanted.column1 AND r.start = wanted.column2
             AND r.part = wanted.column3",
            wanted.join(", ")
        );
        let take = |row: super::Row<'_>| {
            let key = (row.number(1)?, row.number(2)?, row.number(3)?);
            known.insert(key, row.number_or_none(4)?);
            Ok(())
        };
        self.find("runs", &query, take).await?;
        Ok(known)
    }

    /// The inventories of these nodes, packed.
    pub(crate) async fn inventories(
        &mut self,
        nodes: &[i64],
    ) -> Result<HashMap<i64, Vec<u8>>, StoreError> {
        let mut found = HashMap::new();
        if nodes.is_empty() {
            return Ok(found);
        }
        let query = format!(
            "SELECT number, inventory FROM nodes WHERE number IN ({})",
            listed(nodes)
        );
        let take = |row: super::Row<'_>| {
            found.insert(row.number(0)?, row.bytes(1)?);
            Ok(())
        };
        self.find("nodes", &query, take).await?;
        Ok(found)
    }

    /// The last run of a node that counts.
    pub(crate) async fn last_run(&mut self, node: i64) -> Result<Option<StoredRun>, StoreError> {
        let mut found = None;
        let query = format!(
            "SELECT number, config_id, message, signed FROM runs WHERE node = {node} AND whole
             ORDER BY number DESC LIMIT 1"
        );
        let take = |row: super::Row<'_>| {
            found = Some(StoredRun {
                number: row.number(0)?,
                config_id: row.text_or_none(1)?,
                message: row.bytes(2)?,
                signed: row.flag(3)?,
            });
            Ok(())
        };
        self.find("runs", &query, take).await?;
        Ok(found)
    }

    /// What is expected of a node by the configuration with this identity, its newest without
    /// one: JSON, packed.
    pub(crate) async fn expected(
        &mut self,
        node: i64,
        config_id: Option<&str>,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let mut found = None;
        let wanted = config_id.map(|id| format!("AND c.config_id = {}", self.literal(id)));
        let query = format!(
            "SELECT c.number, b.body FROM configurations c JOIN contents b ON b.number = c.expected
             WHERE c.node = {node} {} ORDER BY c.number DESC LIMIT 1",
            wanted.unwrap_or_default()
        );
        let take = |row: super::Row<'_>| {
            found = Some(row.bytes(1)?);
            Ok(())
        };
        self.find("configurations", &query, take).await?;
        Ok(found)
    }

    /// The last run of each node that counts, by their numbers.
    pub(crate) async fn last_run_numbers(&self) -> Result<HashMap<i64, i64>, StoreError> {
        let mut last = HashMap::new();
        // One look into the index for each node, however many runs there are.
        let query = "SELECT n.number,
             (SELECT max(number) FROM runs WHERE node = n.number AND whole) FROM nodes n";
        let take = |row: super::Row<'_>| {
            if let Some(run) = row.number_or_none(1)? {
                last.insert(row.number(0)?, run);
            }
            Ok(())
        };
        self.rows("nodes", query, take).await?;
        Ok(last)
    }

    /// How much is kept. It looks at every run: for whoever audits, not for what is asked often.
    pub(crate) async fn stored(&self) -> Result<Stored, StoreError> {
        let mut stored = Stored::default();
        let query = "SELECT count(*), CAST(coalesce(sum(reports), 0) AS bigint),
             CAST(coalesce(sum(length(message)), 0) AS bigint),
             (SELECT count(*) FROM exceptions), (SELECT count(*) FROM refused) FROM runs";
        let take = |row: super::Row<'_>| {
            stored = Stored {
                runs: row.number(0)?,
                reports: row.number(1)?,
                bytes: row.number(2)?,
                exceptions: row.number(3)?,
                refused: row.number(4)?,
            };
            Ok(())
        };
        self.rows("runs", query, take).await?;
        Ok(stored)
    }
}

/// Numbers as a query lists them.
pub(super) fn listed(numbers: &[i64]) -> String {
    let all: Vec<_> = numbers.iter().map(ToString::to_string).collect();
    all.join(", ")
}
