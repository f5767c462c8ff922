//! Inventories, which come in two halves, and what follows of them: who is accepted.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use http::StatusCode;
use telemetry::Fields;

use super::halves::Half;
use super::{Intake, NotTaken, Taken};
use crate::acceptance::Arrival;
use crate::inventory::{self, InventorySignature, NodeFacts};
use crate::model::inventory::Inventory;
use crate::model::node::Node;
use crate::policy::generation::Change;
use crate::server::generator::Task;
use crate::server::ledger::{Newcome, Refusal, Reply, Request};
use crate::server::state::NodeRecord;
use crate::server::{Acceptance, now, packed};

/// What a file's name tells of a half: the inventory's name, whether it is packed, and whether
/// it signs.
pub(super) fn half_of(name: &str) -> Result<(&str, bool, bool), NotTaken> {
    let (stem, signs) = match name.strip_suffix(".sign") {
        Some(stem) => (stem, true),
        None => (name, false),
    };
    let (stem, packed) = match stem.strip_suffix(".gz") {
        Some(stem) => (stem, true),
        None => (stem, false),
    };
    if stem.ends_with(".ocs") {
        return Ok((stem, packed, signs));
    }
    let why = format!("the file is {name:?}; expected NAME.ocs, NAME.ocs.gz or NAME.ocs.sign");
    Err(NotTaken::new(StatusCode::BAD_REQUEST, why))
}

impl Intake {
    /// Takes half of an inventory by its file's name: the second half that comes is answered for
    /// both.
    pub(crate) async fn inventory(&self, name: &str, body: Bytes) -> Taken {
        let (stem, packed, signs) = half_of(name)?;
        let half = Half {
            body,
            packed,
            signs,
            since: Instant::now(),
        };
        let paired = {
            let mut halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
            halves.pair(stem, half)
        };
        let Some((whole, signature)) = paired else {
            let told = "it waits for its other half\n";
            return Ok((StatusCode::ACCEPTED, told.into()));
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

    async fn whole_inventory(&self, whole: Half, signature: Bytes) -> Taken {
        let bad = |error: &dyn std::fmt::Display| NotTaken::new(StatusCode::BAD_REQUEST, error);
        let forbidden = |error: &dyn std::fmt::Display| NotTaken::new(StatusCode::FORBIDDEN, error);
        let limits = inventory::Limits::default();
        let name = if whole.packed { ".gz" } else { "" };
        let xml = inventory::unpack(name, &whole.body, &limits).map_err(|error| bad(&error))?;
        let facts = NodeFacts::read(&xml, &limits).map_err(|error| bad(&error))?;
        facts
            .check_date(jiff::Timestamp::now())
            .map_err(|error| bad(&error))?;
        let id = facts.node.id.clone();
        let known = self.node(&id);
        let certified = |node: &&Arc<NodeRecord>| {
            node.known.key_status == crate::acceptance::KeyStatus::Certified
        };
        let known = known.as_ref().filter(certified).map(|node| &node.known.key);
        let key = InventorySignature::parse(&signature)
            .and_then(|signature| signature.verify(&xml, &facts, known))
            .map_err(|error| forbidden(&error))?;
        let elements = serde_json::to_vec(&facts.inventory).map_err(|error| bad(&error))?;
        let newcome = Newcome {
            node: facts.node,
            key,
            certificate: facts.certificate,
            received: now(),
            inventory: packed::pack(&elements),
        };
        let request = Request::Inventory(Box::new(newcome));
        let Reply::Arrived(arrival, node) = self.commands.run(request).await? else {
            return Ok((StatusCode::OK, "it is kept\n".into()));
        };
        self.logger
            .debug("inventory-kept", Fields::new().and("node", &id));
        match arrival {
            Arrival::Updated => {
                self.update(node, facts.inventory).await;
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

    async fn accept(&self, id: &str) -> Result<(), NotTaken> {
        let nodes = vec![id.to_owned()];
        for decided in self.decide(nodes, true).await? {
            decided.map_err(|error| NotTaken::new(StatusCode::CONFLICT, error))?;
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
            Change::SetNode(Box::new(Node::clone(&node))),
            Change::SetInventory {
                node: id,
                inventory,
            },
        ];
        // As above.
        let _ = self.tasks.send(Task::Nodes(changes)).await;
    }
}

/// Reads a packed inventory.
pub(crate) fn inventory_of(packed: &[u8]) -> Option<Inventory> {
    serde_json::from_slice(&packed::unpack(packed).ok()?).ok()
}
