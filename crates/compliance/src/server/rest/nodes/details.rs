//! How much of a node is shown: what `include` asks for, down to all of its inventory.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Number, Value, json};

use super::super::answers::{ApiError, under};
use super::super::route::{Answer, Call, run_blocking};
use super::super::shapes::when;
use super::{Node, NodeRecord, NodeStatus, Service, shown};
use crate::inventory::SoftwareUpdate;
use crate::model::attributes::{AttributeType, ObjectType};
use crate::model::inventory::Inventory;
use crate::reports::decision::UnixMillis;
use crate::server::intake::StoredInventory;

/// Nodes of which inventories are shown at once: those of more are asked for one by one.
const DETAILED: usize = 500;
/// Inventories that are read at once, between two batches of the writer.
const READ: usize = 50;
/// What is shown of every node.
const ALWAYS: [&str; 3] = ["id", "hostname", "status"];
/// How much is shown of it.
const LEVELS: [&str; 3] = ["minimal", "default", "full"];
/// What is shown of it unless less is asked for.
pub(super) const USUAL: [&str; 15] = [
    "kind",
    "state",
    "os",
    "architectureDescription",
    "ram",
    "ipAddresses",
    "description",
    "acceptanceDate",
    "lastInventoryDate",
    "lastRunDate",
    "policyServerId",
    "managementTechnology",
    "properties",
    "policyMode",
    "timezone",
];
/// What is shown of it if it is asked for, beside its inventory.
const MORE: [&str; 4] = [
    "accounts",
    "swap",
    "instanceId",
    "managementTechnologyDetails",
];

/// A part of an inventory: Rudder's name for it, the kind of its elements, and the names of their
/// attributes where these are others than those that queries have.
struct Part {
    name: &'static str,
    kind: ObjectType,
    names: &'static [(&'static str, &'static str)],
}

/// A part whose attributes have these other names: `OURS => THEIRS`.
macro_rules! part {
    ($name:literal $kind:ident $(: $($ours:ident => $theirs:ident),*)?) => {
        Part {
            name: $name,
            kind: ObjectType::$kind,
            names: &[$($((stringify!($ours), stringify!($theirs))),*)?],
        }
    };
}
macro_rules! parts {
    ($($name:literal $kind:ident $(: $($ours:ident => $theirs:ident),*)?;)*) => {
        [$(part!($name $kind $(: $($ours => $theirs),*)?)),*]
    };
}

use ObjectType as O;

const MACHINE: Part = part! {
    "machine" Machine:
        machineId => id, machineType => type, vmType => provider, cn => name,
        componentSerialNumber => serialNumber
};
const PARTS: [Part; 15] = parts! {
    "software" Software: cn => name, softwareVersion => version;
    "networkInterfaces" NetworkInterface:
        networkInterface => name, ipHostNumber => ipAddresses,
        networkInterfaceDhcpServer => dhcpServer, networkInterfaceGateway => gateway,
        networkInterfaceMask => mask, networkSubnet => subnet,
        networkInterfaceMacAddress => macAddress, networkInterfaceType => type,
        networkInterfaceTypeMib => typeMib;
    "fileSystems" FileSystem:
        cn => name, fileSystemFreeSpace => freeSpace, fileSystemTotalSpace => totalSpace;
    "processes" Process;
    "virtualMachines" VirtualMachine:
        vmName => name, vmType => type, vmOwner => owner, vmStatus => status, vmCpu => vcpu,
        vmMemory => memory, virtualMachineUuid => uuid;
    "environmentVariables" Environment;
    "processors" Processor:
        cpuName => name, cpuSpeed => speed, cpuStepping => stepping, cpuFamily => family,
        cpuFamilyName => familyName, cpuThread => thread, cpuCore => core;
    "memories" Memory:
        cn => name, memoryCapacity => capacity, memoryCaption => caption, memorySpeed => speed,
        memorySlotNumber => slotNumber, memoryType => type, componentSerialNumber => serialNumber;
    "storage" Storage:
        cn => name, smeType => type, storageSize => size, componentSerialNumber => serialNumber;
    "bios" Bios:
        biosName => name, softwareVersion => version, componentSerialNumber => serialNumber;
    "controllers" Controller: controllerName => name, smeType => type;
    "ports" Port: portName => name, smeType => type;
    "slots" Slot: slotName => name;
    "sound" SoundCard: soundCardName => name;
    "videos" VideoCard:
        videoCardName => name, videoChipset => chipset, videoResolution => resolution,
        memoryCapacity => memory;
};

/// What Rudder shows as numbers although queries ask for it as text.
const NUMBERS: [(ObjectType, &[&str]); 2] = [
    (O::Process, &["pid", "cpuUsage", "memory", "virtualMemory"]),
    (
        O::Processor,
        &["model", "cpuStepping", "cpuFamily", "cpuThread", "cpuCore"],
    ),
];

/// Updates of software that a node could install.
const UPDATES: &str = "softwareUpdate";

/// Names of all parts of an inventory.
pub(super) fn parts() -> impl Iterator<Item = &'static str> {
    [MACHINE.name, UPDATES]
        .into_iter()
        .chain(PARTS.iter().map(|one| one.name))
}

/// What is shown of nodes and does not stand in their records.
#[derive(Debug, Default)]
struct NodeExtras {
    instance_id: String,
    /// When the last run of each node started.
    last_runs: HashMap<Arc<str>, UnixMillis>,
}

/// What is asked for.
#[derive(Debug, Clone)]
struct Include(BTreeSet<String>);

impl Include {
    fn of(call: &Call<'_>) -> Result<Self, ApiError> {
        let asked = call.query.get("include").unwrap_or_default().split(',');
        let asked = asked.map(str::trim).filter(|word| !word.is_empty());
        let mut words: BTreeSet<String> = asked.map(str::to_owned).collect();
        let known = || {
            let all = LEVELS.iter().chain(&ALWAYS).chain(&USUAL).chain(&MORE);
            all.copied().chain(parts())
        };
        if let Some(unknown) = words.iter().find(|word| !known().any(|one| one == **word)) {
            let mut all: Vec<_> = known().collect();
            all.sort_unstable();
            let unknown = &unknown[..unknown.floor_char_boundary(64)];
            let message = format!(
                "nothing of a node is called \"{unknown}\"; there are {}",
                all.join(", ")
            );
            return Err(ApiError::field("include", message));
        }
        // Names alone are shown beside what is usual.
        if !LEVELS.iter().any(|level| words.contains(*level)) {
            words.insert("default".into());
        }
        Ok(Self(words))
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
    fn of_node(&self, record: &NodeRecord, beside: &NodeExtras) -> Map<String, Value> {
        let Value::Object(mut node) = shown(record) else {
            return Map::new();
        };
        let last = beside.last_runs.get(&*record.node.id);
        if let Some(start) = last {
            node.insert("lastRunDate".into(), when(*start).into());
        }
        if !self.has("full") && !self.has("default") {
            node.retain(|key, _| ALWAYS.contains(&&**key) || self.has(key));
        }
        let Node {
            accounts,
            swap,
            agent,
            ..
        } = &*record.node;
        let more = |name| match name {
            "accounts" => json!(accounts),
            "swap" => json!(swap),
            "instanceId" => json!(beside.instance_id),
            _ => json!({"cfengineKeys": [&*record.certificate], "cfengineUser": agent.owner}),
        };
        for name in MORE.into_iter().filter(|name| self.part(name)) {
            node.insert(name.into(), more(name));
        }
        node
    }

    /// Adds what is asked of an inventory. Swap, in bytes, is the first of its file systems, as
    /// Rudder has it.
    fn add(&self, node: &mut Map<String, Value>, kept: &StoredInventory, swap: Option<u64>) {
        let inventory = &kept.inventory;
        if self.part(UPDATES) {
            let updates = kept.updates.iter().map(update);
            node.insert(UPDATES.into(), updates.collect());
        }
        if self.part(MACHINE.name)
            && let Some(machine) = MACHINE.of(inventory).into_iter().next()
        {
            node.insert(MACHINE.name.into(), machine);
        }
        for part in PARTS.iter().filter(|one| self.part(one.name)) {
            let mut elements = part.of(inventory);
            if part.kind == O::Software {
                // A package may be installed of several architectures: software is what has a
                // name and a version.
                let mut seen = HashSet::new();
                let named = |one: &Value| ["name", "version"].map(|key| one[key].to_string());
                elements.retain(|one| seen.insert(named(one)));
            }
            if part.kind == O::FileSystem
                && let Some(swap) = swap
            {
                let swap = json!({"name": "swap", "mountPoint": "none", "totalSpace": swap});
                elements.insert(0, swap);
            }
            node.insert(part.name.into(), elements.into());
        }
    }
}

/// An update as Rudder shows it: with the names of it in a list.
fn update(update: &SoftwareUpdate) -> Value {
    let mut shown = json!(update);
    if !update.ids.is_empty() {
        shown["ids"] = update.ids.split(',').map(Value::from).collect();
    }
    shown
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
        let shown_so = NUMBERS
            .iter()
            .any(|(kind, names)| *kind == self.kind && names.contains(&attribute));
        let number = matches!(
            kind,
            Some((_, AttributeType::Number | AttributeType::Memory))
        );
        let value = match number_of(text).filter(|_| number || shown_so) {
            Some(number) => number.into(),
            None if matches!(name, "ipAddresses" | "mask" | "gateway" | "subnet") => {
                let all = text.split(',').map(str::trim);
                all.filter(|one| !one.is_empty()).map(Value::from).collect()
            }
            None => text.into(),
        };
        (name.to_owned(), value)
    }
}

/// A number, whole if it can be.
fn number_of(text: &str) -> Option<Number> {
    let whole = text.parse::<u64>().map(Number::from).ok();
    whole.or_else(|| Number::from_f64(text.parse().ok()?))
}

impl Service {
    /// Nodes of which so much is shown as is asked for.
    pub(super) async fn included(&self, call: &Call<'_>, records: Vec<Arc<NodeRecord>>) -> Answer {
        let include = Include::of(call)?;
        let beside = Arc::new(self.beside(&records));
        if !include.inventory() {
            let nodes = records.iter();
            let nodes = nodes.map(|one| Value::from(include.of_node(one, &beside)));
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
            let read = self.looked_up("reading inventories", move |ledger| {
                Box::pin(async move { ledger.store.inventories(&numbers).await })
            });
            let mut packed = read.await?;
            let (some, include) = (some.to_vec(), include.clone());
            let beside = Arc::clone(&beside);
            let made = move || {
                let nodes = some.iter().map(|record| {
                    let mut node = include.of_node(record, &beside);
                    let kept = packed.remove(&record.number);
                    let kept = kept.and_then(|packed| StoredInventory::read(&packed));
                    include.add(&mut node, &kept.unwrap_or_default(), record.node.swap);
                    Value::Object(node)
                });
                nodes.collect::<Vec<_>>()
            };
            nodes.extend(run_blocking(turn.clone(), made).await?);
        }
        Ok(under("nodes", nodes.into()))
    }

    fn beside(&self, records: &[Arc<NodeRecord>]) -> NodeExtras {
        let instance_id = self.view.read().definitions.settings.instance_id.clone();
        let all = self.compliance.lock();
        let last_runs = records.iter().filter_map(|record| {
            let id = &record.node.id;
            Some((Arc::from(id.as_str()), all.fleet.last_run(id)?))
        });
        NodeExtras {
            instance_id,
            last_runs: last_runs.collect(),
        }
    }

    /// The nodes that stand so.
    pub(super) fn records(&self, standing: NodeStatus) -> Vec<Arc<NodeRecord>> {
        let state = self.view.read();
        let all = state.nodes.values();
        let all = all.filter(|node| node.known.standing == standing);
        all.cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_of_one_name_and_version_is_shown_once() {
        let mut inventory = Inventory::default();
        for (name, version, publisher) in [
            ("libc6", "2.36", "one"),
            ("libc6", "2.36", "other"),
            ("libc6", "2.37", "one"),
            ("zlib", "2.36", "one"),
        ] {
            let fields = [
                ("cn", name),
                ("softwareVersion", version),
                ("editor", publisher),
            ];
            inventory.push(O::Software, &fields);
            inventory.push(O::Slot, &[("slotName", "same")]);
        }
        let kept = StoredInventory {
            inventory,
            ..StoredInventory::default()
        };
        let mut node = Map::new();
        Include(["full".to_owned()].into()).add(&mut node, &kept, Some(1_024));
        let shown = node["software"].as_array().unwrap().iter();
        let shown: Vec<_> = shown
            .map(|one| {
                (
                    one["name"].as_str().unwrap(),
                    one["version"].as_str().unwrap(),
                )
            })
            .collect();
        let expected = [("libc6", "2.36"), ("libc6", "2.37"), ("zlib", "2.36")];
        assert_eq!(shown, expected);
        // Of what else there is, what is there twice is there twice.
        assert_eq!(node["slots"].as_array().unwrap().len(), 4);
        let swap = json!([{"name": "swap", "mountPoint": "none", "totalSpace": 1_024}]);
        assert_eq!(node["fileSystems"], swap);
    }

    #[test]
    fn what_rudder_shows_as_numbers_is_numbers() {
        let mut inventory = Inventory::default();
        inventory.push(
            O::Process,
            &[("pid", "12"), ("memory", "0.4"), ("virtualMemory", "none")],
        );
        inventory.push(
            O::Processor,
            &[("cpuStepping", "9"), ("cpuName", "2"), ("cpuSpeed", "2800")],
        );
        inventory.push(O::NetworkInterface, &[("networkSubnet", "192.0.2.0")]);
        let kept = StoredInventory {
            inventory,
            ..StoredInventory::default()
        };
        let mut node = Map::new();
        Include(["full".to_owned()].into()).add(&mut node, &kept, None);
        let process = json!([{"pid": 12, "memory": 0.4, "virtualMemory": "none"}]);
        assert_eq!(node["processes"], process);
        let processor = json!([{"stepping": 9, "name": "2", "speed": 2_800}]);
        assert_eq!(node["processors"], processor);
        let interface = json!([{"subnet": ["192.0.2.0"]}]);
        assert_eq!(node["networkInterfaces"], interface);
        assert_eq!(node["fileSystems"], json!([]));
    }
}
