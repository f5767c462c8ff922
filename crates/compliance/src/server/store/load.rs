//! What is on the disk at the start.

use std::sync::Arc;

use commit::StoreError;

use super::super::state::{NodeRecord, ServedPolicy, State, TokenRecord};
use super::Store;
use super::write::{ACCESSES, KEYS, STANDINGS};
use crate::acceptance::Known;
use crate::policy::digest::Digest;
use crate::reports::decision::UnixMillis;
use crate::reports::signature::NodeCertificate;
use crate::server::packed;

/// Why a row cannot be read.
type RowError = Box<dyn std::error::Error>;

/// What was on the disk.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// For readers.
    pub(crate) state: State,
    /// Greater than the number of any node.
    pub(crate) next_node: i64,
    /// Greater than the number of any run.
    pub(crate) next_run: i64,
}

/// A configuration that a node has or had.
#[derive(Debug)]
pub(crate) struct StoredConfig {
    /// The node.
    pub(crate) node: Arc<str>,
    /// Its identity.
    pub(crate) config_id: String,
    /// Since when.
    pub(crate) begin: UnixMillis,
    /// The JSON of what is expected, packed.
    pub(crate) expected: Vec<u8>,
}

/// A run.
#[derive(Debug)]
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

fn meant<T: Copy>(words: &[(T, &str)], word: &str) -> Result<T, RowError> {
    let found = words.iter().find(|(_, known)| *known == word);
    let found = found.map(|(meant, _)| *meant);
    found.ok_or_else(|| format!("the word {word:?} is not known").into())
}

impl Store {
    /// Reads nodes, definitions and current policies.
    pub(crate) fn load(&self) -> Result<Loaded, StoreError> {
        let mut loaded = Loaded {
            next_node: 1,
            next_run: 1,
            ..Loaded::default()
        };
        let state = &mut loaded.state;
        self.0.rows(
            "nodes",
            "SELECT number, id, standing, key_status, certificate, node, received FROM nodes",
            |row| {
                let (number, id, standing, key_status, certificate, node, received): (
                    i64,
                    String,
                    String,
                    String,
                    String,
                    String,
                    i64,
                ) = row.try_into()?;
                let node: crate::model::node::Node = serde_json::from_str(&node)?;
                let known = Known {
                    standing: meant(&STANDINGS, &standing)?,
                    hostname: node.hostname.clone(),
                    key: NodeCertificate::from_pem(certificate.as_bytes())?,
                    key_status: meant(&KEYS, &key_status)?,
                };
                let record = NodeRecord {
                    number,
                    known,
                    certificate: certificate.into(),
                    node: Arc::new(node),
                    received,
                };
                state.nodes.insert(id.into(), Arc::new(record));
                loaded.next_node = loaded.next_node.max(number + 1);
                Ok(())
            },
        )?;
        self.0.rows(
            "definitions",
            "SELECT version, body FROM definitions ORDER BY version DESC LIMIT 1",
            |row| {
                let (version, body): (i64, Vec<u8>) = row.try_into()?;
                state.definitions = Arc::new(serde_json::from_slice(&packed::unpack(&body)?)?);
                state.version = version;
                Ok(())
            },
        )?;
        let base = state.version;
        let all = Arc::make_mut(&mut state.definitions);
        self.0.rows(
            "edits",
            "SELECT version, body FROM edits ORDER BY version",
            |row| {
                let (version, body): (i64, Vec<u8>) = row.try_into()?;
                if version > base {
                    all.edit(&serde_json::from_slice(&packed::unpack(&body)?)?);
                    state.version = version;
                }
                Ok(())
            },
        )?;
        self.0.rows(
            "tokens",
            "SELECT id, name, access, hash, created FROM tokens",
            |row| {
                let (id, name, access, hash, created): (String, String, String, _, i64) =
                    row.try_into()?;
                let record = TokenRecord {
                    id: id.into(),
                    name,
                    access: meant(&ACCESSES, &access)?,
                    hash,
                    created,
                };
                state
                    .tokens
                    .insert(Arc::clone(&record.id), Arc::new(record));
                Ok(())
            },
        )?;
        // The highest number of a node's configurations is its current one.
        self.0.rows(
            "configurations",
            "SELECT max(c.number), n.id, c.config_id, c.digest, b.body FROM configurations c
             JOIN nodes n ON n.number = c.node LEFT JOIN contents b ON b.number = c.policy
             GROUP BY c.node",
            |row| {
                let (_, node, config_id, digest, document): (
                    i64,
                    String,
                    Option<String>,
                    Option<Digest>,
                    Option<Vec<u8>>,
                ) = row.try_into()?;
                if let (Some(config_id), Some(digest), Some(document)) =
                    (config_id, digest, document)
                {
                    let served = ServedPolicy {
                        config_id: config_id.into(),
                        digest,
                        document: document.into(),
                    };
                    state.policies.insert(node.into(), served);
                }
                Ok(())
            },
        )?;
        self.0.rows("runs", "SELECT max(number) FROM runs", |row| {
            let last: Option<i64> = row.get(0)?;
            loaded.next_run = last.unwrap_or(0) + 1;
            Ok(())
        })?;
        Ok(loaded)
    }

    /// Hands over the configurations of all nodes, from the oldest.
    pub(crate) fn configurations(
        &self,
        mut take: impl FnMut(StoredConfig) -> Result<(), RowError>,
    ) -> Result<(), StoreError> {
        self.0.rows(
            "configurations",
            "SELECT c.number, n.id, c.config_id, c.begin, b.body FROM configurations c
             JOIN nodes n ON n.number = c.node JOIN contents b ON b.number = c.expected
             ORDER BY c.number",
            |row| {
                let (_, node, config_id, begin, expected): (i64, String, String, i64, Vec<u8>) =
                    row.try_into()?;
                take(StoredConfig {
                    node: node.into(),
                    config_id,
                    begin,
                    expected,
                })
            },
        )
    }

    /// Hands over the last run of each node that counts, with its node.
    pub(crate) fn last_runs(
        &self,
        mut take: impl FnMut(&str, StoredRun) -> Result<(), RowError>,
    ) -> Result<(), StoreError> {
        self.0.rows(
            "runs",
            "SELECT r.number, n.id, r.config_id, r.message, r.signed FROM runs r JOIN nodes n ON n.number = r.node
             WHERE r.number IN (SELECT max(number) FROM runs WHERE whole GROUP BY node)
             ORDER BY r.number",
            |row| {
                let (number, node, config_id, message, signed): (i64, String, _, _, _) =
                    row.try_into()?;
                let run = StoredRun {
                    number,
                    config_id,
                    message,
                    signed,
                };
                take(&node, run)
            },
        )
    }
}
