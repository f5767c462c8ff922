//! What is in the database at the start.

use std::collections::HashMap;
use std::sync::Arc;

use commit::StoreError;

use super::words::{ACCESSES, KEYS, STANDINGS, parse_word};
use super::{Row, RowError, Store, StoredRun};
use crate::acceptance::Known;
use crate::model::node::Node;
use crate::reports::changes::SLOT;
use crate::reports::decision::UnixMillis;
use crate::reports::runlog::ReportKind;
use crate::reports::signature::NodeCertificate;
use crate::server::packed;
use crate::server::state::{NodeRecord, ServedPolicy, State, TokenRecord};

/// What was in the database.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// For readers.
    pub(crate) state: State,
    /// Greater than the number of any node.
    pub(crate) next_node: i64,
    /// Greater than the number of any run.
    pub(crate) next_run: i64,
    /// The last run of each node that counts, by their numbers.
    pub(crate) last_runs: HashMap<i64, i64>,
}

/// A configuration that a node has or had.
#[derive(Debug)]
pub(crate) struct StoredConfig {
    /// Its number: later ones came later.
    pub(crate) number: i64,
    pub(crate) node: Arc<str>,
    pub(crate) config_id: String,
    /// Since when.
    pub(crate) begin: UnixMillis,
    /// The JSON of what is expected, packed.
    pub(crate) expected: Vec<u8>,
}

impl Store {
    /// Reads nodes, definitions and current policies.
    pub(crate) async fn load(&self) -> Result<Loaded, StoreError> {
        let mut loaded = Loaded {
            next_node: 1,
            next_run: 1,
            last_runs: self.last_run_numbers().await?,
            ..Loaded::default()
        };
        self.load_nodes(&mut loaded).await?;
        self.load_definitions(&mut loaded.state).await?;
        self.load_tokens(&mut loaded.state).await?;
        self.load_policies(&mut loaded.state).await?;
        let take = |row: Row<'_>| {
            loaded.next_run = row.number_or_none(0)?.unwrap_or(0) + 1;
            Ok(())
        };
        self.rows("runs", "SELECT max(number) FROM runs", take)
            .await?;
        Ok(loaded)
    }

    async fn load_nodes(&self, loaded: &mut Loaded) -> Result<(), StoreError> {
        let query = "SELECT number, id, standing, key_status, certificate, node, received
             FROM nodes";
        let take = |row: Row<'_>| {
            let (number, certificate) = (row.number(0)?, row.text(4)?);
            let node: Node = serde_json::from_str(&row.text(5)?)?;
            let known = Known {
                standing: parse_word(&STANDINGS, &row.text(2)?)?,
                hostname: node.hostname.clone(),
                key: NodeCertificate::from_pem(certificate.as_bytes())?,
                key_status: parse_word(&KEYS, &row.text(3)?)?,
            };
            let record = NodeRecord {
                number,
                known,
                certificate: certificate.into(),
                node: Arc::new(node),
                received: row.number(6)?,
            };
            let nodes = &mut loaded.state.nodes;
            nodes.insert(row.text(1)?.into(), Arc::new(record));
            loaded.next_node = loaded.next_node.max(number + 1);
            Ok(())
        };
        self.rows("nodes", query, take).await
    }

    async fn load_definitions(&self, state: &mut State) -> Result<(), StoreError> {
        let query = "SELECT version, body FROM definitions ORDER BY version DESC LIMIT 1";
        let take = |row: Row<'_>| {
            let body = packed::unpack(&row.bytes(1)?)?;
            state.definitions = Arc::new(serde_json::from_slice(&body)?);
            state.version = row.number(0)?;
            Ok(())
        };
        self.rows("definitions", query, take).await?;
        let base = state.version;
        let all = Arc::make_mut(&mut state.definitions);
        let query = "SELECT version, body FROM edits ORDER BY version";
        let take = |row: Row<'_>| {
            let version = row.number(0)?;
            if version > base {
                let body = packed::unpack(&row.bytes(1)?)?;
                all.edit(&serde_json::from_slice(&body)?);
                state.version = version;
            }
            Ok(())
        };
        self.rows("edits", query, take).await
    }

    async fn load_tokens(&self, state: &mut State) -> Result<(), StoreError> {
        let query = "SELECT created, id, name, access, hash FROM tokens";
        let take = |row: Row<'_>| {
            let hash = row.bytes(4)?;
            let record = TokenRecord {
                id: row.text(1)?.into(),
                name: row.text(2)?,
                access: parse_word(&ACCESSES, &row.text(3)?)?,
                hash: <[u8; 32]>::try_from(&hash[..])?,
                created: row.number(0)?,
            };
            let id = Arc::clone(&record.id);
            state.tokens.insert(id, Arc::new(record));
            Ok(())
        };
        self.rows("tokens", query, take).await
    }

    /// The highest number of a node's configurations is its current one.
    async fn load_policies(&self, state: &mut State) -> Result<(), StoreError> {
        let query = "SELECT c.number, n.id, c.config_id, c.digest, b.body FROM configurations c
             JOIN nodes n ON n.number = c.node LEFT JOIN contents b ON b.number = c.policy
             WHERE c.number IN (SELECT max(number) FROM configurations GROUP BY node)";
        let take = |row: Row<'_>| {
            let (config_id, digest) = (row.text_or_none(2)?, row.bytes_or_none(3)?);
            if let (Some(config_id), Some(digest), Some(document)) =
                (config_id, digest, row.bytes_or_none(4)?)
            {
                let served = ServedPolicy {
                    config_id: config_id.into(),
                    digest: <[u8; 32]>::try_from(&digest[..])?,
                    document: document.into(),
                };
                state.policies.insert(row.text(1)?.into(), served);
            }
            Ok(())
        };
        self.rows("configurations", query, take).await
    }

    /// Hands over the configurations of all nodes, from the oldest.
    pub(crate) async fn configurations(
        &self,
        mut take: impl FnMut(StoredConfig) -> Result<(), RowError>,
    ) -> Result<(), StoreError> {
        let query = "SELECT c.number, n.id, c.config_id, c.begin, b.body FROM configurations c
             JOIN nodes n ON n.number = c.node JOIN contents b ON b.number = c.expected
             ORDER BY c.number";
        let read = |row: Row<'_>| {
            take(StoredConfig {
                number: row.number(0)?,
                node: row.text(1)?.into(),
                config_id: row.text(2)?,
                begin: row.number(3)?,
                expected: row.bytes(4)?,
            })
        };
        self.rows("configurations", query, read).await
    }

    /// Hands over the inventory of each node, packed, by its identity.
    pub(crate) async fn all_inventories(
        &self,
        mut take: impl FnMut(&str, Vec<u8>) -> Result<(), RowError>,
    ) -> Result<(), StoreError> {
        let query = "SELECT number, id, inventory FROM nodes ORDER BY id";
        let read = |row: Row<'_>| take(&row.text(1)?, row.bytes(2)?);
        self.rows("nodes", query, read).await
    }

    /// Hands over how often rules repaired something in the slots since this time: a rule, a
    /// time within the slot, and how often. A run that seems to be later than it came counts as
    /// of then. Of a run with more reports than have rows only these are counted.
    pub(crate) async fn repairs(
        &self,
        since: UnixMillis,
        mut take: impl FnMut(&str, UnixMillis, u32),
    ) -> Result<(), StoreError> {
        let kind = self.literal(ReportKind::ResultRepaired.name());
        let at = "CASE WHEN r.start < r.received THEN r.start ELSE r.received END";
        // In this order SQLite looks up the runs of what was repaired, and no others.
        let query = format!(
            "SELECT min(e.run), e.rule, ({at}) / {SLOT} AS slot, count(*)
             FROM exceptions e CROSS JOIN runs r
             WHERE e.kind = {kind} AND r.number = e.run AND {at} >= {since}
             GROUP BY e.rule, slot"
        );
        let read = |row: Row<'_>| {
            let count = u32::try_from(row.number(3)?).unwrap_or(u32::MAX);
            take(&row.text(1)?, row.number(2)?.saturating_mul(SLOT), count);
            Ok(())
        };
        self.rows("exceptions", &query, read).await
    }

    /// Hands over the last run of each node that counts, with its node.
    pub(crate) async fn last_runs(
        &self,
        mut take: impl FnMut(&str, StoredRun) -> Result<(), RowError>,
    ) -> Result<(), StoreError> {
        let query = "SELECT r.number, n.id, r.config_id, r.message, r.signed FROM runs r
             JOIN nodes n ON n.number = r.node
             WHERE r.number IN
                 (SELECT (SELECT max(number) FROM runs WHERE node = o.number AND whole) FROM nodes o)
             ORDER BY r.number";
        let read = |row: Row<'_>| {
            let run = StoredRun {
                number: row.number(0)?,
                config_id: row.text_or_none(2)?,
                message: row.bytes(3)?,
                signed: row.flag(4)?,
            };
            take(&row.text(1)?, run)
        };
        self.rows("runs", query, read).await
    }
}
