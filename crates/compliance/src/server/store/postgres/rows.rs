//! From a batch to rows that can be written together.

use std::collections::{BTreeMap, BTreeSet};

use aws_lc_rs::digest::{Digest, SHA256, digest};
use commit::StoreError;

use super::super::hours::counts;
use crate::reports::history::HourAggregate;
use crate::server::packed;
use crate::server::state::{
    NodeRecord, PolicyRecord, RefusedRecord, RunRecord, TokenRecord, Write,
};

/// Rows that may be written in any order but this: what is put, then what is forgotten.
#[derive(Default)]
pub(super) struct Rows<'a> {
    /// By their numbers: a node that comes twice is as it came last.
    pub(super) nodes: BTreeMap<i64, NodeRow<'a>>,
    pub(super) definitions: Vec<Version>,
    pub(super) edits: Vec<Version>,
    pub(super) tokens: Vec<&'a TokenRecord>,
    pub(super) revoked: Vec<&'a [u8]>,
    pub(super) policies: BTreeMap<i64, PolicyRow<'a>>,
    pub(super) runs: Vec<(i64, i64, &'a RunRecord)>,
    pub(super) refused: Vec<&'a RefusedRecord>,
    pub(super) hours: BTreeMap<(&'a str, i64), (&'a HourAggregate, String)>,
    pub(super) forgotten: Vec<i64>,
    ids: BTreeSet<&'a str>,
}

pub(super) struct NodeRow<'a> {
    pub(super) id: &'a str,
    pub(super) record: &'a NodeRecord,
    pub(super) json: Vec<u8>,
    pub(super) inventory: Option<&'a [u8]>,
}

/// A version of the definitions: its number, when, what it is, packed.
pub(super) type Version = (i64, i64, Vec<u8>);

pub(super) struct PolicyRow<'a> {
    pub(super) record: &'a PolicyRecord,
    /// Hashes of the policy and of what is expected.
    pub(super) hashes: Option<(Digest, Digest)>,
    /// The node's last run.
    pub(super) run: Option<i64>,
}

fn json(what: &impl serde::Serialize) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(what).map_err(|error| StoreError::Database {
        doing: "write to",
        cause: error.to_string(),
    })
}

impl<'a> Rows<'a> {
    /// The rows of a batch; those of the first are written before those of the second.
    ///
    /// # Errors
    /// Something cannot be serialised.
    pub(super) fn of(writes: &'a [Write]) -> Result<Vec<Self>, StoreError> {
        let mut all = Vec::new();
        let mut rows = Self::default();
        for write in writes {
            if !rows.takes(write) {
                all.push(std::mem::take(&mut rows));
            }
            rows.add(write)?;
        }
        all.push(rows);
        Ok(all)
    }

    /// Can this be written with those that came before it?
    fn takes(&self, write: &Write) -> bool {
        match write {
            Write::Forget(..) => true,
            Write::Policy(_, node, _) if self.policies.contains_key(node) => false,
            // What was revoked may come again, and the other way round.
            Write::Token(token) if self.ids.contains(&*token.id) => false,
            Write::Revoke(id) if self.ids.contains(&**id) => false,
            _ => self.forgotten.is_empty(),
        }
    }

    fn add(&mut self, write: &'a Write) -> Result<(), StoreError> {
        match write {
            Write::Node(id, record, inventory) => {
                let inventory = inventory.as_deref();
                let before = self.nodes.get(&record.number);
                let inventory = inventory.or_else(|| before.and_then(|row| row.inventory));
                let row = NodeRow {
                    id,
                    record,
                    json: json(&*record.node)?,
                    inventory,
                };
                self.nodes.insert(record.number, row);
            }
            Write::Forget(_, number) => self.forgotten.push(*number),
            Write::Definitions(definitions, version, at) => {
                let body = packed::pack(&json(&**definitions)?);
                self.definitions.push((*version, *at, body));
            }
            Write::Edit(edit, version, at) => {
                let body = packed::pack(&json(&**edit)?);
                self.edits.push((*version, *at, body));
            }
            Write::Token(token) => {
                self.ids.insert(&token.id);
                self.tokens.push(token);
            }
            Write::Revoke(id) => {
                self.ids.insert(id);
                self.revoked.push(id.as_bytes());
            }
            Write::Policy(record, node, run) => {
                let sum = |bytes: &[u8]| digest(&SHA256, bytes);
                let served = record.served.as_ref();
                let hashes = served.map(|served| (sum(&served.document), sum(&record.expected)));
                let run = *run;
                self.policies.insert(
                    *node,
                    PolicyRow {
                        record,
                        hashes,
                        run,
                    },
                );
            }
            Write::Run(record, number, node) => self.runs.push((*number, *node, record)),
            Write::Refused(record) => self.refused.push(record),
            Write::History(all) => {
                for (thing, hour) in all {
                    let key = (&**thing, hour.begin);
                    self.hours.insert(key, (hour, counts(hour)));
                }
            }
        }
        Ok(())
    }
}
