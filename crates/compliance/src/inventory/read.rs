//! From records to what the model holds.

use jiff::Timestamp;

use super::fields::{MAPPINGS, Unit};
use super::normal;
use super::records::{self, Record};
use super::{InventoryError, Limits, NodeFacts, SoftwareUpdate};
use crate::model::attributes::ObjectType;
use crate::model::inventory::{ELEMENTS, Inventory, VALUE_BYTES};
use crate::model::node::{LIST_ENTRIES, Node, NodeKind, NodeTimeZone, ROOT};
use crate::reports::moment::Moment;

const MEGABYTE: u64 = 1 << 20;
/// Bytes that are kept of each part of a time zone.
const ZONE_BYTES: usize = 256;
/// Names that are kept of an update of software.
const UPDATE_IDS: usize = 100;
/// Attribute of an interface's addresses.
const ADDRESS: &str = "ipHostNumber";

pub(super) fn read(xml: &[u8], limits: &Limits) -> Result<NodeFacts, InventoryError> {
    let mut gathered = Gathered::default();
    records::read(xml, limits, |record| gathered.take(record))?;
    gathered.finish()
}

/// What has been read so far; texts are empty until they are found.
#[derive(Default)]
struct Gathered {
    node: Node,
    fqdn: String,
    arch_name: String,
    os_version: String,
    rudders: usize,
    agent: Option<Agent>,
    agent_version: String,
    packages: Vec<(String, String)>,
    date: String,
    offset: String,
    capabilities: Vec<String>,
    inventory: Inventory,
    elements: usize,
    updates: Vec<SoftwareUpdate>,
    machine: Vec<(&'static str, String)>,
}

/// What a record of an agent tells.
#[derive(Default)]
struct Agent {
    name: String,
    server: String,
    owner: String,
    certificate: String,
}

impl Agent {
    fn of(group: &[(String, String)]) -> Self {
        let text = |name: &str| {
            let path = format!("AGENT/{name}");
            let found = group
                .iter()
                .find(|(at, text)| *at == path && !text.is_empty());
            found.map(|(_, text)| text.clone()).unwrap_or_default()
        };
        Self {
            name: text("AGENT_NAME"),
            server: text("POLICY_SERVER_UUID"),
            owner: text("OWNER"),
            certificate: normal::certificate(text("AGENT_CERT")),
        }
    }

    fn is_whole(&self) -> bool {
        let fields = [&self.server, &self.owner, &self.certificate];
        agent_name(&self.name).is_ok() && fields.iter().all(|field| !field.is_empty())
    }
}

impl Gathered {
    fn take(&mut self, record: &Record) -> Result<(), InventoryError> {
        let text = |path| record.text(path).unwrap_or_default().to_owned();
        match record.name.as_str() {
            "RUDDER" => return self.rudder(record),
            "OPERATINGSYSTEM" => {
                let os = &mut self.node.os;
                let kernel = text("KERNEL_NAME").to_ascii_lowercase();
                os.name = normal::system_name(&kernel, &text("NAME"), &text("FULL_NAME"));
                os.version = text("VERSION");
                os.full_name = text("FULL_NAME");
                os.service_pack = record.text("SERVICE_PACK").map(normal::service_pack);
                os.kernel_version = text("KERNEL_VERSION");
                os.kernel = match kernel.as_str() {
                    "linux" => "Linux".into(),
                    "mswin32" => "Windows".into(),
                    _ => text("KERNEL_NAME"),
                };
                self.node.architecture_description = text("ARCH");
                self.fqdn = text("FQDN");
                self.offset = text("TIMEZONE/OFFSET");
                self.node.time_zone = time_zone(record);
            }
            "HARDWARE" => {
                self.arch_name = text("ARCHNAME");
                self.os_version = text("OSVERSION");
                self.node.ram = megabytes(record.text("MEMORY"));
                self.node.swap = megabytes(record.text("SWAP"));
                let system = text("VMSYSTEM");
                let physical = system.is_empty() || system.eq_ignore_ascii_case("physical");
                let kind = if physical { "Physical" } else { "Virtual" };
                self.machine.push(("machineType", kind.into()));
                if !physical {
                    let word = normal::virtualization(&system);
                    self.machine.push(("vmType", word));
                }
                self.machine.push(("motherBoardUuid", text("UUID")));
            }
            "ACCESSLOG" => self.date = text("LOGDATE"),
            "LOCAL_USERS" => {
                // Windows has only names.
                let login = record.text("LOGIN").or_else(|| record.text("NAME"));
                if let Some(login) = login
                    && self.node.accounts.len() < LIST_ENTRIES
                    && !self.node.accounts.iter().any(|known| known == login)
                {
                    self.node.accounts.push(login.to_owned());
                }
            }
            "SOFTWAREUPDATES" => {
                self.count()?;
                self.updates.extend(update(record));
            }
            "BIOS" => {
                let of_system = normal::of_firmware(record.text("SMANUFACTURER"));
                let of_board = || normal::of_firmware(record.text("MMANUFACTURER"));
                let manufacturer = of_system.or_else(of_board).unwrap_or_default();
                self.machine.push(("manufacturer", manufacturer.to_owned()));
                self.machine.push(("componentSerialNumber", text("SSN")));
            }
            "NETWORKS" => {
                for address in addresses(record) {
                    let known = self.node.ip_addresses.iter().any(|one| one == address);
                    if !known && self.node.ip_addresses.len() < LIST_ENTRIES {
                        self.node.ip_addresses.push(address.to_owned());
                    }
                }
            }
            "SOFTWARES" => {
                let name = text("NAME").to_lowercase();
                if let Some(version) = record.text("VERSION")
                    && normal::AGENT_PACKAGES
                        .iter()
                        .any(|(_, package)| name.contains(package))
                {
                    self.packages.push((name, version.to_owned()));
                }
            }
            _ => {}
        }
        self.element(record)
    }

    fn count(&mut self) -> Result<(), InventoryError> {
        self.elements += 1;
        if self.elements > ELEMENTS {
            let (what, limit) = ("software, processes and the like", ELEMENTS);
            return Err(InventoryError::TooLarge { what, limit });
        }
        Ok(())
    }

    fn element(&mut self, record: &Record) -> Result<(), InventoryError> {
        let Some((_, kind, fields)) = MAPPINGS.iter().find(|(name, ..)| *name == record.name)
        else {
            return Ok(());
        };
        self.count()?;
        let mut element = std::collections::BTreeMap::new();
        if let Some((attribute, mut name)) = normal::joined_name(*kind, record) {
            name.truncate(name.floor_char_boundary(VALUE_BYTES));
            element.insert(attribute.to_owned(), name);
        }
        for (field, attribute, unit) in *fields {
            let Some(text) = record.text(field) else {
                continue;
            };
            let value = match unit {
                Unit::Text => Some(text.to_owned()),
                Unit::Megabytes => megabytes(Some(text)).map(|bytes| bytes.to_string()),
                Unit::Date => Some(day(text)),
            };
            if let Some(mut value) = value {
                value.truncate(value.floor_char_boundary(VALUE_BYTES));
                element.entry((*attribute).to_owned()).or_insert(value);
            }
        }
        if element.is_empty() {
            return Ok(());
        }
        // An interface with several addresses is one for each: queries ask for an address.
        let told = element.remove(ADDRESS).is_some();
        let mut addresses = addresses(record).filter(|_| told).peekable();
        if addresses.peek().is_none() {
            let elements = self.inventory.elements.entry(*kind).or_default();
            elements.push(element);
            return Ok(());
        }
        for (place, address) in addresses.enumerate() {
            if place > 0 {
                self.count()?;
            }
            let mut one = element.clone();
            let address = &address[..address.floor_char_boundary(VALUE_BYTES)];
            one.insert(ADDRESS.to_owned(), address.to_owned());
            let elements = self.inventory.elements.entry(*kind).or_default();
            elements.push(one);
        }
        Ok(())
    }

    fn rudder(&mut self, record: &Record) -> Result<(), InventoryError> {
        let text = |path| record.text(path).unwrap_or_default().to_owned();
        self.rudders += 1;
        if self.rudders > 1 {
            // Whose node it is would be a matter of order.
            return Err(InventoryError::Field {
                field: "RUDDER",
                found: "there twice".into(),
                expected: "one",
            });
        }
        self.node.id = text("UUID");
        self.node.hostname = text("HOSTNAME");
        // Of several agents the first that is told of wholly counts.
        let mut agents: Vec<Agent> = record.groups("AGENT").map(Agent::of).collect();
        let whole = agents.iter().position(Agent::is_whole).unwrap_or_default();
        self.agent = (whole < agents.len()).then(|| agents.swap_remove(whole));
        self.agent_version = text("AGENT_VERSION");
        let capabilities = record.all("AGENT_CAPABILITIES/AGENT_CAPABILITY");
        self.capabilities = capabilities.take(1_000).map(str::to_owned).collect();
        if let Some(json) = record.text("CUSTOM_PROPERTIES") {
            self.node.properties = normal::custom_properties(json);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<NodeFacts, InventoryError> {
        let node = &mut self.node;
        let agent = self.agent.unwrap_or_default();
        let told = [std::mem::take(&mut node.hostname), self.fqdn];
        let good = told.iter().find(|name| normal::is_hostname(name));
        node.hostname = good.cloned().unwrap_or_default();
        normal::hostname_of_hooks(node);
        let odd = told
            .iter()
            .find(|name| !normal::is_written_as_hostname(name));
        if let (true, Some(odd)) = (node.hostname.is_empty(), odd) {
            return Err(InventoryError::Field {
                field: "RUDDER/HOSTNAME or OPERATINGSYSTEM/FQDN",
                found: shortened(odd),
                expected: "a name of letters, digits, -, . and _, which begins with one of the first two",
            });
        }
        let arch = match node.architecture_description.as_str() {
            "" => &self.arch_name,
            arch => arch,
        };
        node.architecture_description = normal::architecture(arch, &node.os.name);
        // Tools on AIX tell the version of its kernel as one of the hardware.
        if node.os.kernel_version.is_empty() && node.os.kernel.eq_ignore_ascii_case("aix") {
            node.os.kernel_version = self.os_version;
        }
        let system = [&node.os.full_name, &node.os.kernel, &node.os.name];
        let named = system.iter().any(|name| !name.is_empty());
        for (field, found) in [
            ("RUDDER/UUID", !node.id.is_empty()),
            (
                "RUDDER/HOSTNAME or OPERATINGSYSTEM/FQDN",
                !node.hostname.is_empty(),
            ),
            ("RUDDER/AGENT/AGENT_NAME", !agent.name.is_empty()),
            ("RUDDER/AGENT/AGENT_CERT", !agent.certificate.is_empty()),
            ("RUDDER/AGENT/OWNER", !agent.owner.is_empty()),
            ("RUDDER/AGENT/POLICY_SERVER_UUID", !agent.server.is_empty()),
            ("OPERATINGSYSTEM/FULL_NAME, KERNEL_NAME or NAME", named),
            (
                "OPERATINGSYSTEM/KERNEL_VERSION",
                !node.os.kernel_version.is_empty(),
            ),
        ] {
            if !found {
                return Err(InventoryError::Missing { field });
            }
        }
        // What names a policy server is looked up when the node is accepted, whatever it is.
        if !is_node_id(&node.id) {
            return Err(InventoryError::Field {
                field: "RUDDER/UUID",
                found: shortened(&node.id),
                expected: "a UUID or root",
            });
        }
        if node.id == ROOT {
            node.kind = NodeKind::Root;
        }
        node.policy_server_id = agent.server;
        node.agent.name = agent_name(&agent.name)?;
        node.agent.owner = agent.owner;
        let packaged = self.packages.into_iter().find(|(name, _)| {
            let mut all = normal::AGENT_PACKAGES.iter();
            all.any(|(kind, part)| *kind == node.agent.name && name.contains(part))
        });
        node.agent.version = match (self.agent_version, packaged) {
            (told, Some((_, version))) if told.is_empty() => version,
            (told, _) => told,
        };
        if node.agent.version.is_empty() {
            let field = "RUDDER/AGENT_VERSION, or the version of the agent's package in SOFTWARES";
            return Err(InventoryError::Missing { field });
        }
        let date = date(&self.date, &self.offset)?;
        node.last_inventory = date.map(Timestamp::as_second);
        self.machine.retain(|(_, value)| !value.is_empty());
        if !self.machine.is_empty() {
            let fields: Vec<_> = self
                .machine
                .iter()
                .map(|(name, value)| (*name, &value[..value.floor_char_boundary(VALUE_BYTES)]))
                .collect();
            self.inventory.push(ObjectType::Machine, &fields);
        }
        normal::quantities(&mut self.inventory);
        self.inventory.check(&self.node.id)?;
        self.node.check()?;
        Ok(NodeFacts {
            node: self.node,
            certificate: agent.certificate,
            date,
            capabilities: self.capabilities,
            inventory: self.inventory,
            updates: self.updates,
        })
    }
}

/// The addresses of an interface, of both versions.
fn addresses(record: &Record) -> impl Iterator<Item = &str> {
    let all = record.all("IPADDRESS").chain(record.all("IPADDRESS6"));
    all.flat_map(normal::addresses)
}

/// The zone of a node's clock; none unless both its name and its offset are told.
fn time_zone(record: &Record) -> Option<NodeTimeZone> {
    let text = |path| {
        let text = record.text(path)?;
        Some(text[..text.floor_char_boundary(ZONE_BYTES)].to_owned())
    };
    Some(NodeTimeZone {
        name: text("TIMEZONE/NAME")?,
        offset: text("TIMEZONE/OFFSET")?,
    })
}

/// An update of software, which counts for nothing without a name.
fn update(record: &Record) -> Option<SoftwareUpdate> {
    let text = |path| {
        let text = record.text(path).unwrap_or_default();
        text[..text.floor_char_boundary(VALUE_BYTES)].to_owned()
    };
    // A word that Rudder does not know it tells as it came.
    let word = |path, known: &[&str]| {
        let told = text(path);
        let known = known.iter().find(|one| one.eq_ignore_ascii_case(&told));
        known.map_or(told, |one| (*one).to_owned())
    };
    record.text("NAME")?;
    let mut kind = word("KIND", &["none", "defect", "security", "enhancement"]);
    if kind.is_empty() {
        kind = "none".into();
    }
    let date = Moment::from_rfc3339(&text("DATE"));
    let ids = record.all("ID").flat_map(|all| all.split(','));
    let ids = ids.map(str::trim).filter(|id| !id.is_empty());
    let ids: Vec<&str> = ids.take(UPDATE_IDS).collect();
    Some(SoftwareUpdate {
        name: text("NAME"),
        version: text("VERSION"),
        arch: text("ARCH"),
        from: text("FROM"),
        kind,
        source: text("SOURCE"),
        description: text("DESCRIPTION"),
        severity: word("SEVERITY", &["low", "moderate", "high", "critical"]),
        date: date.map_or_else(String::new, |date| Moment::utc(date.instant()).to_string()),
        ids: ids.join(","),
    })
}

fn shortened(text: &str) -> String {
    text.chars().take(64).collect()
}

/// `root`, or a UUID in its usual form.
pub(super) fn is_node_id(id: &str) -> bool {
    let bytes = id.as_bytes();
    let dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    let fits = |(at, byte): (usize, &u8)| match dash(at) {
        true => *byte == b'-',
        false => byte.is_ascii_hexdigit(),
    };
    id == ROOT || (bytes.len() == 36 && bytes.iter().enumerate().all(fits))
}

fn agent_name(name: &str) -> Result<String, InventoryError> {
    match name.to_ascii_lowercase().as_str() {
        "cfengine-community" | "cfengine community" | "community" => {
            Ok("cfengine-community".into())
        }
        "dsc" => Ok("dsc".into()),
        _ => Err(InventoryError::Field {
            field: "RUDDER/AGENT/AGENT_NAME",
            found: shortened(name),
            expected: "cfengine-community or dsc",
        }),
    }
}

/// Bytes of a number of MB; none of what is no number.
fn megabytes(text: Option<&str>) -> Option<u64> {
    let number: f64 = text?.parse().ok()?;
    let most = (u64::MAX / MEGABYTE) as f64;
    (0.0..most)
        .contains(&number)
        .then_some((number * MEGABYTE as f64) as u64)
}

/// `MM/DD/YYYY` as `YYYY-MM-DD`.
fn day(text: &str) -> String {
    let found = jiff::civil::Date::strptime("%m/%d/%Y", text);
    found.map_or_else(|_| text.to_owned(), |date| date.to_string())
}

/// The date of an inventory, which is that of the node's clock.
fn date(text: &str, offset: &str) -> Result<Option<Timestamp>, InventoryError> {
    if text.is_empty() {
        return Ok(None);
    }
    // Without a zone that can be read it is taken as UTC: the limits leave room for this.
    let zoned = Moment::from_run_start(&format!("{text} {offset}"));
    let moment = zoned.or_else(|| Moment::from_run_start(&format!("{text}+00:00")));
    match moment {
        Some(moment) => Ok(Some(moment.instant())),
        None => Err(InventoryError::Field {
            field: "ACCESSLOG/LOGDATE",
            found: shortened(text),
            expected: "a date as 2025-01-13 07:00:41",
        }),
    }
}
