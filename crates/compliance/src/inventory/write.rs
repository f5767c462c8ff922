//! Inventories as agents write them.

use std::fmt::Write;

use quick_xml::escape::escape;
use serde_json::{Map, Value};

use super::fields::{MAPPINGS, Unit};
use super::records::is_of_xml;
use super::{NodeFacts, normal};
use crate::model::attributes::ObjectType;
use crate::reports::moment::Moment;

const MEGABYTE: u64 = 1 << 20;
/// Letters of a date and a time without its zone.
const DATE_LETTERS: usize = "2026-03-01 12:00:00".len();

/// The XML of an inventory. What is read of it is what was written, but for sizes below one MB
/// and characters that XML cannot hold, which become `?`.
pub fn write(facts: &NodeFacts) -> String {
    let mut out = Xml(String::with_capacity(64 << 10));
    out.0
        .push_str("<?xml version=\"1.0\" encoding=\"UTF-8\" ?>\n<REQUEST>\n  <CONTENT>\n");
    let node = &facts.node;
    if let Some(date) = facts.date {
        // It is that of the node's clock, whose zone the operating system tells.
        let zone = node.time_zone.as_ref();
        let local = zone.and_then(|zone| Moment::within(date, &zone.offset));
        let local = local.unwrap_or_else(|| Moment::utc(date));
        let local = local.as_run_start().to_string();
        let local: String = local.chars().take(DATE_LETTERS).collect();
        out.record("ACCESSLOG", &[("LOGDATE", &local)]);
    }
    for login in &node.accounts {
        out.record("LOCAL_USERS", &[("LOGIN", login)]);
    }
    hardware(&mut out, facts);
    for (name, kind, fields) in MAPPINGS {
        let elements = facts.inventory.elements.get(kind).into_iter().flatten();
        for element in elements.flat_map(|one| std::iter::repeat_n(one, normal::quantity(one))) {
            let mut attributes: Vec<&str> = Vec::new();
            out.open(name);
            for (field, attribute, unit) in *fields {
                // Addresses of version 6 have elements of their own, read into the same
                // attributes.
                if attributes.contains(attribute) {
                    continue;
                }
                attributes.push(attribute);
                if let Some(value) = element.get(*attribute) {
                    match unit {
                        Unit::Text | Unit::Date => out.field(field, value),
                        Unit::Megabytes => {
                            let bytes: u64 = value.parse().unwrap_or_default();
                            out.field(field, &(bytes / MEGABYTE).to_string());
                        }
                    }
                }
            }
            out.close(name);
        }
    }
    for update in &facts.updates {
        let mut fields = vec![
            ("NAME", update.name.as_str()),
            ("VERSION", &update.version),
            ("ARCH", &update.arch),
            ("FROM", &update.from),
            ("KIND", &update.kind),
            ("SOURCE", &update.source),
            ("DESCRIPTION", &update.description),
            ("SEVERITY", &update.severity),
            ("DATE", &update.date),
        ];
        fields.extend(update.ids.split(',').map(|id| ("ID", id)));
        out.record("SOFTWAREUPDATES", &fields);
    }
    system(&mut out, facts);
    rudder(&mut out, facts);
    out.0.push_str("  </CONTENT>\n  <QUERY>INVENTORY</QUERY>\n");
    let _ = writeln!(out.0, "  <DEVICEID>{}</DEVICEID>", clean(&node.id));
    out.0.push_str("</REQUEST>\n");
    out.0
}

fn hardware(out: &mut Xml, facts: &NodeFacts) {
    let machine = facts.inventory.elements.get(&ObjectType::Machine);
    let machine = machine.and_then(|all| all.first());
    let attribute = |name| {
        machine
            .and_then(|one| one.get(name))
            .map_or("", |text| text)
    };
    let size = |bytes: Option<u64>| {
        let megabytes = bytes.map(|bytes| (bytes / MEGABYTE).to_string());
        megabytes.unwrap_or_default()
    };
    let system = match attribute("vmType") {
        "" => "Physical",
        system => system,
    };
    out.record(
        "HARDWARE",
        &[
            ("MEMORY", &size(facts.node.ram)),
            ("SWAP", &size(facts.node.swap)),
            ("UUID", attribute("motherBoardUuid")),
            ("VMSYSTEM", system),
        ],
    );
}

fn system(out: &mut Xml, facts: &NodeFacts) {
    let os = &facts.node.os;
    let kernel = match os.kernel.as_str() {
        "Linux" => "linux",
        "Windows" => "MSWin32",
        other => other,
    };
    out.open("OPERATINGSYSTEM");
    for (name, text) in [
        ("ARCH", facts.node.architecture_description.as_str()),
        ("FQDN", &facts.node.hostname),
        ("FULL_NAME", &os.full_name),
        ("KERNEL_NAME", kernel),
        ("KERNEL_VERSION", &os.kernel_version),
        ("NAME", &os.name),
        (
            "SERVICE_PACK",
            os.service_pack.as_deref().unwrap_or_default(),
        ),
        ("VERSION", &os.version),
    ] {
        out.field(name, text);
    }
    if let Some(zone) = &facts.node.time_zone {
        out.open("TIMEZONE");
        out.field("NAME", &zone.name);
        out.field("OFFSET", &zone.offset);
        out.close("TIMEZONE");
    }
    out.close("OPERATINGSYSTEM");
}

fn rudder(out: &mut Xml, facts: &NodeFacts) {
    let node = &facts.node;
    out.open("RUDDER");
    out.open("AGENT");
    for (name, text) in [
        ("AGENT_CERT", facts.certificate.as_str()),
        ("AGENT_NAME", &node.agent.name),
        ("OWNER", &node.agent.owner),
        ("POLICY_SERVER_UUID", &node.policy_server_id),
    ] {
        out.field(name, text);
    }
    out.close("AGENT");
    out.open("AGENT_CAPABILITIES");
    for capability in &facts.capabilities {
        out.field("AGENT_CAPABILITY", capability);
    }
    out.close("AGENT_CAPABILITIES");
    out.field("AGENT_VERSION", &node.agent.version);
    let custom: Map<String, Value> = node
        .properties
        .iter()
        .filter(|property| property.provider.as_deref() == Some("inventory"))
        .map(|property| (property.name.clone(), property.value.clone()))
        .collect();
    if !custom.is_empty() {
        // One object for each hook; these are told by one.
        let hooks = Value::Array(vec![Value::Object(custom)]);
        out.field("CUSTOM_PROPERTIES", &hooks.to_string());
    }
    out.field("HOSTNAME", &node.hostname);
    out.field("UUID", &node.id);
    out.close("RUDDER");
}

struct Xml(String);

impl Xml {
    fn open(&mut self, name: &str) {
        let _ = writeln!(self.0, "    <{name}>");
    }

    fn close(&mut self, name: &str) {
        let _ = writeln!(self.0, "    </{name}>");
    }

    fn field(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            let _ = writeln!(self.0, "      <{name}>{}</{name}>", clean(text));
        }
    }

    fn record(&mut self, name: &str, fields: &[(&str, &str)]) {
        self.open(name);
        for (field, text) in fields {
            self.field(field, text);
        }
        self.close(name);
    }
}

/// Escaped, without what XML 1.0 cannot hold. A carriage return is told by its number, or it
/// would be read as the end of a line.
fn clean(text: &str) -> String {
    let held = |c: char| if is_of_xml(c) { c } else { '?' };
    let text: String = text.chars().map(held).collect();
    escape(text.as_str()).replace('\r', "&#13;")
}
