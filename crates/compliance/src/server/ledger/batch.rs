//! Requests become writes, one after the other, each on top of what those before it did.

use std::collections::HashMap;
use std::sync::Arc;

use commit::Layer;

use super::{Accepted, CheckedNode, Ledger, Refusal, Reply, Request, TOKENS};
use crate::acceptance::{DecisionError, NodeCandidate, NodeStatus};
use crate::model::node::Node;
use crate::server::administered::{administer, keep_set, nobody_behind, take_place};
use crate::server::now;
use crate::server::state::{
    NodeRecord, PolicyRecord, RunKey, RunRecord, State, TokenRecord, Write,
};

/// What a batch does, on top of what is durable.
pub(in crate::server) struct Batch<'a> {
    pub(in crate::server) state: &'a State,
    pub(in crate::server) records: Layer<Arc<str>, Arc<NodeRecord>>,
    pub(super) runs: HashMap<RunKey, Option<i64>>,
    pub(super) version: i64,
    /// Tokens that come and go.
    pub(super) tokens: Layer<Arc<str>, Arc<TokenRecord>>,
    pub(in crate::server) writes: Vec<Write>,
}

impl Batch<'_> {
    /// Are the definitions of this version?
    fn is_of(&self, base: i64) -> Result<(), Refusal> {
        let found = self.version;
        match found == base {
            true => Ok(()),
            false => Err(Refusal::Version { found, base }),
        }
    }

    fn next_version(&mut self) -> i64 {
        self.version += 1;
        self.version
    }
}

impl Ledger {
    pub(super) fn one(
        &mut self,
        batch: &mut Batch<'_>,
        request: Request,
    ) -> Result<Reply, Refusal> {
        match request {
            Request::Inventory(newcome) => self.inventory(batch, *newcome),
            Request::Decide { nodes, accept } => {
                let decided = nodes.iter().map(|id| self.decide(batch, id, accept));
                Ok(Reply::Decided(decided.collect()))
            }
            Request::Delete(id) => {
                nobody_behind(batch, &id)?;
                self.nodes.delete(&id)?;
                self.forget(batch, &id);
                Ok(Reply::Done)
            }
            Request::ResetKey(id) => {
                self.nodes.reset_key(&id)?;
                self.put(batch, &id);
                Ok(Reply::Done)
            }
            Request::Definitions(definitions, base) => {
                batch.is_of(base)?;
                let version = batch.next_version();
                let write = Write::Definitions(definitions, version, now());
                batch.writes.push(write);
                Ok(Reply::Version(version))
            }
            Request::Edit(edit, base) => {
                if let Some(base) = base {
                    batch.is_of(base)?;
                }
                let version = batch.next_version();
                batch.writes.push(Write::Edit(edit, version, now()));
                Ok(Reply::Version(version))
            }
            Request::Administer { node, change } => administer(batch, &node, change),
            Request::Token(record) => {
                let (id, known) = (Arc::clone(&record.id), &batch.state.tokens);
                if batch.tokens.get(known, &*id).is_some() {
                    return Err(Refusal::KnownToken(id.to_string()));
                }
                if known.len() >= TOKENS {
                    return Err(Refusal::TooManyTokens);
                }
                batch.tokens.put(id, Some(Arc::clone(&record)));
                batch.writes.push(Write::Token(record));
                Ok(Reply::Done)
            }
            Request::Revoke(id) => {
                let known = batch.tokens.get(&batch.state.tokens, &*id).is_some();
                if !known {
                    return Err(Refusal::UnknownToken(id));
                }
                let id: Arc<str> = id.into();
                batch.tokens.put(Arc::clone(&id), None);
                batch.writes.push(Write::Revoke(id));
                Ok(Reply::Done)
            }
            Request::Policies(policies) => {
                self.policies(batch, policies);
                Ok(Reply::Done)
            }
            Request::Run(record) => self.run(batch, record),
            Request::Refused(record) => {
                batch.writes.push(Write::Refused(record));
                Ok(Reply::Done)
            }
            Request::History(hours) => {
                batch.writes.push(Write::History(hours));
                Ok(Reply::Done)
            }
        }
    }

    fn inventory(&mut self, batch: &mut Batch<'_>, newcome: CheckedNode) -> Result<Reply, Refusal> {
        let CheckedNode {
            mut node,
            key,
            certificate,
            received,
            inventory,
        } = newcome;
        let id: Arc<str> = node.id.as_str().into();
        let arrival = self.nodes.receive(NodeCandidate {
            id: node.id.clone(),
            hostname: node.hostname.clone(),
            key,
        })?;
        let before = batch.records.get(&batch.state.nodes, &*id).cloned();
        if let Some(before) = &before {
            keep_set(before, &mut node);
        }
        let Some(known) = self.nodes.get(&id).cloned() else {
            return Ok(Reply::Done);
        };
        let number = before.map_or(self.next_node, |before| before.number);
        self.next_node = self.next_node.max(number + 1);
        let node = Arc::new(node);
        let record = Arc::new(NodeRecord {
            number,
            known,
            certificate: certificate.into(),
            node: Arc::clone(&node),
            received,
        });
        batch
            .records
            .put(Arc::clone(&id), Some(Arc::clone(&record)));
        batch.writes.push(Write::Node(id, record, Some(inventory)));
        Ok(Reply::Arrived(arrival, node))
    }

    fn decide(
        &mut self,
        batch: &mut Batch<'_>,
        id: &str,
        accept: bool,
    ) -> Result<Accepted, DecisionError> {
        let record = batch.records.get(&batch.state.nodes, id).cloned();
        let not_pending = || DecisionError::NotPending { id: id.to_owned() };
        let record = record.ok_or_else(not_pending)?;
        if !accept {
            self.nodes.refuse(id)?;
            self.forget(batch, id);
            return Ok(Accepted {
                node: Arc::clone(&record.node),
                inventory: Vec::new(),
            });
        }
        self.nodes.accept(id, false)?;
        let mut node = Node::clone(&record.node);
        take_place(batch, &mut node);
        node.accepted = Some(now() / 1_000);
        let node = Arc::new(node);
        let record = Arc::new(NodeRecord {
            node,
            ..NodeRecord::clone(&record)
        });
        batch.records.put(id.into(), Some(Arc::clone(&record)));
        self.put(batch, id);
        // An inventory of this very batch is not on the disk yet.
        let coming = batch.writes.iter().rev().find_map(|write| match write {
            Write::Node(node, _, Some(inventory)) if **node == *id => Some(inventory.clone()),
            _ => None,
        });
        let inventory = coming.or_else(|| self.found.inventories.remove(&record.number));
        Ok(Accepted {
            node: Arc::clone(&record.node),
            inventory: inventory.unwrap_or_default(),
        })
    }

    /// Writes a node as it now stands.
    fn put(&self, batch: &mut Batch<'_>, id: &str) {
        let record = batch.records.get(&batch.state.nodes, id);
        let (Some(record), Some(known)) = (record, self.nodes.get(id)) else {
            return;
        };
        let mut record = NodeRecord::clone(record);
        record.known = known.clone();
        let (id, record): (Arc<str>, _) = (id.into(), Arc::new(record));
        batch
            .records
            .put(Arc::clone(&id), Some(Arc::clone(&record)));
        batch.writes.push(Write::Node(id, record, None));
    }

    fn forget(&mut self, batch: &mut Batch<'_>, id: &str) {
        if let Some(record) = batch.records.get(&batch.state.nodes, id).cloned() {
            let id: Arc<str> = id.into();
            batch.records.put(Arc::clone(&id), None);
            batch.writes.push(Write::Forget(id, record.number));
            self.last_runs.remove(&record.number);
        }
    }

    fn policies(&self, batch: &mut Batch<'_>, policies: Vec<Arc<PolicyRecord>>) {
        for record in policies {
            // A node may have gone while its policy was made.
            if let Some(node) = batch.records.get(&batch.state.nodes, &*record.node) {
                let number = node.number;
                let run = self.last_runs.get(&number).copied();
                batch.writes.push(Write::Policy(record, number, run));
            }
        }
    }

    fn run(&mut self, batch: &mut Batch<'_>, record: Box<RunRecord>) -> Result<Reply, Refusal> {
        let node = batch.records.get(&batch.state.nodes, &*record.node);
        let accepted = node.filter(|node| node.known.standing == NodeStatus::Accepted);
        let unknown = || Refusal::UnknownNode(record.node.to_string());
        let node = accepted.ok_or_else(unknown)?.number;
        let key = record.key(node);
        // Of runs that older servers kept nobody knows what they said.
        let known = self.found.runs.get(&key).or_else(|| batch.runs.get(&key));
        if let Some(known) = known.copied() {
            let same = known.is_none()
                || record.repeat_digest().is_none()
                || known == record.repeat_digest();
            if same {
                return Ok(Reply::Duplicate);
            }
            return Err(Refusal::OtherRun);
        }
        batch.runs.insert(key, record.repeat_digest());
        let number = self.next_run;
        self.next_run += 1;
        if record.whole {
            self.last_runs.insert(node, number);
        }
        batch.writes.push(Write::Run(record, number, node));
        Ok(Reply::Kept(number))
    }
}
