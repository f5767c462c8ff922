//! Inventories, which come in two halves, and what follows of them: who is accepted.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use telemetry::Fields;

use super::Intake;
use crate::acceptance::{Arrival, KeyStatus};
use crate::inventory::SoftwareUpdate;
use crate::model::inventory::Inventory;
use crate::model::node::Node;
use crate::policy::generation::Change;
use crate::server::generator::Task;
use crate::server::ledger::{CheckedNode, Refusal, Reply, Request};
use crate::server::{Acceptance, now, packed};
use crate::uploads::{
    CheckedInventory, Half, UploadRejection, UploadResult, check_inventory, first_half, paired,
};

impl Intake {
    /// Takes half of an inventory by its file's name: the second half that comes is answered for
    /// both.
    pub(crate) async fn inventory(&self, name: &str, body: Bytes) -> UploadResult {
        let Some((whole, signature)) = paired(&self.halves, name, body)? else {
            return Ok(first_half());
        };
        let taken = match self.place() {
            Ok(_place) => self.whole_inventory(whole, signature.body).await,
            Err(busy) => Err(busy),
        };
        match &taken {
            Ok(_) => self.metrics.inventories.add(1),
            Err(refused) => {
                self.metrics.refused_inventories.add(1);
                let fields = Fields::new().and("file", name).and("why", &refused.why);
                self.logger.info("inventory-refused", fields);
            }
        }
        taken
    }

    async fn whole_inventory(&self, whole: Half, signature: Bytes) -> UploadResult {
        let known = |id: &str| {
            let node = self.node(id)?;
            let certified = node.known.key_status == KeyStatus::Certified;
            certified.then(|| node.known.key.clone())
        };
        let CheckedInventory { facts, key } = check_inventory(&whole, &signature, known)?;
        let mut node = facts.node;
        let id = node.id.clone();
        let capabilities = facts.capabilities.iter().map(|one| one.to_lowercase());
        let capabilities: BTreeSet<String> = capabilities.collect();
        node.agent.capabilities = capabilities.into_iter().collect();
        let kept = StoredInventory {
            inventory: facts.inventory,
            updates: facts.updates,
        };
        let json = kept.json();
        let json = json.map_err(|error| UploadRejection::new(StatusCode::BAD_REQUEST, error))?;
        let newcome = CheckedNode {
            node,
            key,
            certificate: facts.certificate,
            received: now(),
            inventory: packed::pack(&json),
        };
        let request = Request::Inventory(Box::new(newcome));
        let Reply::Arrived(arrival, node) = self.commands.run(request).await? else {
            return Ok((StatusCode::OK, "it is kept\n".into()));
        };
        self.logger
            .debug("inventory-kept", Fields::new().and("node", &id));
        match arrival {
            Arrival::Updated => {
                self.update(node, kept.inventory).await;
                Ok((StatusCode::CREATED, format!("node {id} is accepted\n")))
            }
            Arrival::NewPending | Arrival::StillPending => {
                if self.acceptance == Acceptance::All {
                    self.accept(&id).await?;
                    return Ok((StatusCode::CREATED, format!("node {id} is accepted\n")));
                }
                if arrival == Arrival::NewPending {
                    let fields = Fields::new().and("node", &id);
                    let fields = fields.and("hostname", &node.hostname);
                    self.logger.info("node-pending", fields);
                }
                Ok((StatusCode::CREATED, format!("node {id} is pending\n")))
            }
        }
    }

    async fn accept(&self, id: &str) -> Result<(), UploadRejection> {
        let nodes = vec![id.to_owned()];
        for decided in self.decide(nodes, true).await? {
            decided.map_err(|error| UploadRejection::new(StatusCode::CONFLICT, error))?;
        }
        Ok(())
    }

    /// Accepts or refuses pending nodes; policies of accepted ones follow.
    pub(crate) async fn decide(
        &self,
        nodes: Vec<String>,
        accept: bool,
    ) -> Result<Vec<Result<Arc<Node>, crate::acceptance::DecisionError>>, Refusal> {
        let reply = self.commands.run(Request::Decide { nodes, accept }).await?;
        let Reply::Decided(decided) = reply else {
            return Ok(Vec::new());
        };
        let mut answers = Vec::with_capacity(decided.len());
        for one in decided {
            if let Ok(one) = &one
                && accept
            {
                self.compliance.lock().fleet.add(&one.node.id);
                let inventory = inventory_of(&one.inventory).unwrap_or_default();
                self.update(Arc::clone(&one.node), inventory).await;
            }
            answers.push(one.map(|one| one.node));
        }
        Ok(answers)
    }

    /// Deletes an accepted node.
    pub(crate) async fn delete(&self, id: &str) -> Result<(), Refusal> {
        self.commands.run(Request::Delete(id.to_owned())).await?;
        self.compliance.lock().forget(id);
        let task = Task::Nodes(vec![Change::RemoveNode(id.to_owned())]);
        // The thread is gone only when the server stops; it starts anew from the store.
        let _ = self.tasks.send(task).await;
        Ok(())
    }

    async fn update(&self, node: Arc<Node>, inventory: Inventory) {
        let id = node.id.clone();
        let changes = vec![
            Change::SetNode(node),
            Change::SetInventory {
                node: id,
                inventory,
            },
        ];
        // As above.
        let _ = self.tasks.send(Task::Nodes(changes)).await;
    }
}

/// What is kept of an inventory: its elements, which queries ask for, and updates of software,
/// which are only shown.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct StoredInventory {
    pub(crate) inventory: Inventory,
    pub(crate) updates: Vec<SoftwareUpdate>,
}

/// What its JSON begins with if it has updates. Without any it is that of the elements alone, as
/// older servers wrote it; none of these has this name.
const WITH_UPDATES: &[u8] = b"{\"inventory\":";

impl StoredInventory {
    fn json(&self) -> serde_json::Result<Vec<u8>> {
        match self.updates.is_empty() {
            true => serde_json::to_vec(&self.inventory),
            false => serde_json::to_vec(self),
        }
    }

    /// Reads what is kept, packed.
    pub(crate) fn read(packed: &[u8]) -> Option<Self> {
        let json = packed::unpack(packed).ok()?;
        if json.starts_with(WITH_UPDATES) {
            return serde_json::from_slice(&json).ok();
        }
        Some(Self {
            inventory: serde_json::from_slice(&json).ok()?,
            updates: Vec::new(),
        })
    }
}

/// Reads the elements of a packed inventory.
pub(crate) fn inventory_of(packed: &[u8]) -> Option<Inventory> {
    StoredInventory::read(packed).map(|kept| kept.inventory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::attributes::ObjectType;

    #[test]
    fn what_is_kept_is_read_with_and_without_updates() {
        let mut inventory = Inventory::default();
        inventory.push(ObjectType::Software, &[("cn", "bash")]);
        let of_older_servers = packed::pack(&serde_json::to_vec(&inventory).unwrap());
        let update = SoftwareUpdate {
            name: "bash".into(),
            ..SoftwareUpdate::default()
        };
        for updates in [Vec::new(), vec![update]] {
            let kept = StoredInventory {
                inventory: inventory.clone(),
                updates,
            };
            let packed = packed::pack(&kept.json().unwrap());
            assert_eq!(packed == of_older_servers, kept.updates.is_empty());
            let read = StoredInventory::read(&packed).unwrap();
            assert_eq!(
                (&read.inventory, &read.updates),
                (&inventory, &kept.updates)
            );
            assert_eq!(inventory_of(&packed).as_ref(), Some(&inventory));
        }
    }
}
