//! How much of a node is shown: what `include` asks for, down to all of its inventory.

use std::collections::BTreeSet;
use std::sync::Arc;

use commit::StoreError;
use serde_json::{Map, Value};

use super::super::answers::{ApiError, under};
use super::super::route::{Answer, Call, apart};
use super::{NodeRecord, Service, Standing, shown};
use crate::model::attributes::{AttributeType, ObjectType};
use crate::model::inventory::Inventory;
use crate::server::intake::inventory_of;

/// Nodes of which inventories are shown at once: those of more are asked for one by one.
const DETAILED: usize = 500;
/// Inventories that are read at once, between two batches of the writer.
const READ: usize = 50;
/// What is shown of every node.
const ALWAYS: [&str; 3] = ["id", "hostname", "status"];

/// A part of an inventory: Rudder's name for it, the kind of its elements, and the names of their
/// attributes where these are others than those that queries have.
struct Part {
    name: &'static str,
    kind: ObjectType,
    names: &'static [(&'static str, &'static str)],
}

const fn part(
    name: &'static str,
    kind: ObjectType,
    names: &'static [(&'static str, &'static str)],
) -> Part {
    Part { name, kind, names }
}

use ObjectType as O;

const MACHINE: Part = part(
    "machine",
    O::Machine,
    &[
        ("machineId", "id"),
        ("machineType", "type"),
        ("vmType", "provider"),
        ("cn", "name"),
        ("componentSerialNumber", "serialNumber"),
    ],
);
const PARTS: [Part; 15] = [
    part(
        "software",
        O::Software,
        &[("cn", "name"), ("softwareVersion", "version")],
    ),
    part(
        "networkInterfaces",
        O::NetworkInterface,
        &[
            ("networkInterface", "name"),
            ("ipHostNumber", "ipAddresses"),
            ("networkInterfaceDhcpServer", "dhcpServer"),
            ("networkInterfaceGateway", "gateway"),
            ("networkInterfaceMask", "mask"),
            ("networkInterfaceMacAddress", "macAddress"),
            ("networkInterfaceType", "type"),
        ],
    ),
    part(
        "fileSystems",
        O::FileSystem,
        &[
            ("cn", "name"),
            ("fileSystemFreeSpace", "freeSpace"),
            ("fileSystemTotalSpace", "totalSpace"),
        ],
    ),
    part("processes", O::Process, &[]),
    part(
        "virtualMachines",
        O::VirtualMachine,
        &[
            ("vmName", "name"),
            ("vmType", "type"),
            ("vmOwner", "owner"),
            ("vmStatus", "status"),
            ("vmCpu", "vcpu"),
            ("vmMemory", "memory"),
            ("virtualMachineUuid", "uuid"),
        ],
    ),
    part("environmentVariables", O::Environment, &[]),
    part(
        "processors",
        O::Processor,
        &[
            ("cpuName", "name"),
            ("cpuSpeed", "speed"),
            ("cpuStepping", "stepping"),
            ("cpuFamily", "family"),
            ("cpuFamilyName", "familyName"),
            ("cpuThread", "thread"),
            ("cpuCore", "core"),
        ],
    ),
    part(
        "memories",
        O::Memory,
        &[
            ("cn", "name"),
            ("memoryCapacity", "capacity"),
            ("memoryCaption", "caption"),
            ("memorySpeed", "speed"),
            ("memorySlotNumber", "slotNumber"),
            ("memoryType", "type"),
            ("componentSerialNumber", "serialNumber"),
        ],
    ),
    part(
        "storage",
        O::Storage,
        &[
            ("cn", "name"),
            ("smeType", "type"),
            ("storageSize", "size"),
            ("componentSerialNumber", "serialNumber"),
        ],
    ),
    part(
        "bios",
        O::Bios,
        &[
            ("biosName", "name"),
            ("softwareVersion", "version"),
            ("componentSerialNumber", "serialNumber"),
        ],
    ),
    part(
        "controllers",
        O::Controller,
        &[("controllerName", "name"), ("smeType", "type")],
    ),
    part(
        "ports",
        O::Port,
        &[("portName", "name"), ("smeType", "type")],
    ),
    part("slots", O::Slot, &[("slotName", "name")]),
    part("sound", O::SoundCard, &[("soundCardName", "name")]),
    part(
        "videos",
        O::VideoCard,
        &[
            ("videoCardName", "name"),
            ("videoChipset", "chipset"),
            ("videoResolution", "resolution"),
            ("memoryCapacity", "memory"),
        ],
    ),
];

/// Names of all parts of an inventory.
pub(super) fn parts() -> impl Iterator<Item = &'static str> {
    [MACHINE.name]
        .into_iter()
        .chain(PARTS.iter().map(|one| one.name))
}

/// What is asked for.
#[derive(Debug, Clone)]
struct Include(BTreeSet<String>);

impl Include {
    fn of(call: &Call<'_>) -> Self {
        let asked = call.query.get("include").filter(|asked| !asked.is_empty());
        let words = asked.unwrap_or("default").split(',');
        Self(words.map(|word| word.trim().to_owned()).collect())
    }

    fn has(&self, word: &str) -> bool {
        self.0.contains(word)
    }

    /// Is this part of an inventory shown?
    fn part(&self, name: &str) -> bool {
        self.has("full") || self.has(name)
    }

    fn inventory(&self) -> bool {
        parts().any(|name| self.part(name))
    }

    /// A node with these fields.
    fn of_node(&self, record: &NodeRecord) -> Map<String, Value> {
        let Value::Object(mut node) = shown(record) else {
            return Map::new();
        };
        if self.part("accounts") {
            node.insert("accounts".into(), record.node.accounts.clone().into());
        }
        if !self.has("full") && !self.has("default") {
            node.retain(|key, _| ALWAYS.contains(&&**key) || self.has(key));
        }
        node
    }

    /// Adds what is asked of an inventory.
    fn add(&self, node: &mut Map<String, Value>, inventory: &Inventory) {
        if self.part(MACHINE.name)
            && let Some(machine) = MACHINE.of(inventory).into_iter().next()
        {
            node.insert(MACHINE.name.into(), machine);
        }
        for part in PARTS.iter().filter(|one| self.part(one.name)) {
            node.insert(part.name.into(), part.of(inventory).into());
        }
    }
}

impl Part {
    /// The elements of an inventory.
    fn of(&self, inventory: &Inventory) -> Vec<Value> {
        let elements = inventory.elements.get(&self.kind);
        let elements = elements.into_iter().flatten();
        let shown = elements.map(|element| {
            let attributes = element.iter();
            let fields: Map<String, Value> = attributes
                .map(|(attribute, text)| self.field(attribute, text))
                .collect();
            Value::Object(fields)
        });
        shown.collect()
    }

    fn field(&self, attribute: &str, text: &str) -> (String, Value) {
        let mut names = self.names.iter();
        let name = names.find(|(ours, _)| *ours == attribute);
        let name = name.map_or(attribute, |(_, theirs)| *theirs);
        let mut known = self.kind.attributes().iter();
        let kind = known.find(|(known, _)| *known == attribute);
        let number = matches!(
            kind,
            Some((_, AttributeType::Number | AttributeType::Memory))
        );
        let value = match text.parse::<u64>() {
            Ok(number_of) if number => number_of.into(),
            _ if matches!(name, "ipAddresses" | "mask" | "gateway") => {
                let all = text.split(',').map(str::trim);
                all.filter(|one| !one.is_empty()).map(Value::from).collect()
            }
            _ => text.into(),
        };
        (name.to_owned(), value)
    }
}

impl Service {
    /// Nodes of which so much is shown as is asked for.
    pub(super) async fn included(&self, call: &Call<'_>, records: Vec<Arc<NodeRecord>>) -> Answer {
        let include = Include::of(call);
        if !include.inventory() {
            let nodes = records.iter().map(|one| Value::from(include.of_node(one)));
            return Ok(under("nodes", nodes.collect()));
        }
        if records.len() > DETAILED {
            let message = format!(
                "inventories of {} nodes; they are shown of at most {DETAILED} at once: ask for \
                 one node",
                records.len()
            );
            return Err(ApiError::field("include", message));
        }
        let turn = self.turn().await;
        let mut nodes = Vec::with_capacity(records.len());
        for some in records.chunks(READ) {
            let numbers: Vec<i64> = some.iter().map(|one| one.number).collect();
            let read = self.looked_up(move |ledger| {
                Box::pin(async move { ledger.store.inventories(&numbers).await })
            });
            let mut packed = read.await?.map_err(|error: StoreError| {
                ApiError::unavailable(format!("reading inventories: {error}; ask again"))
            })?;
            let (some, include) = (some.to_vec(), include.clone());
            let made = move || {
                let nodes = some.iter().map(|record| {
                    let mut node = include.of_node(record);
                    let inventory = packed.remove(&record.number);
                    let inventory = inventory.and_then(|packed| inventory_of(&packed));
                    include.add(&mut node, &inventory.unwrap_or_default());
                    Value::Object(node)
                });
                nodes.collect::<Vec<_>>()
            };
            nodes.extend(apart(turn.clone(), made).await?);
        }
        Ok(under("nodes", nodes.into()))
    }

    /// The nodes that stand so.
    pub(super) fn records(&self, standing: Standing) -> Vec<Arc<NodeRecord>> {
        let state = self.view.read();
        let all = state.nodes.values();
        let all = all.filter(|node| node.known.standing == standing);
        all.cloned().collect()
    }
}
