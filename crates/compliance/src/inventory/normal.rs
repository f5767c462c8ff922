//! What the tools that make inventories tell in several ways, in the one of Rudder: groups ask for
//! that. Source: Rudder's `FusionInventoryParser`.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::records::Record;
use crate::model::attributes::ObjectType;
use crate::model::inventory::{ELEMENTS, Inventory};
use crate::model::node::Node;
use crate::model::property::{PROPERTIES, Property, check_property};

/// A property by which a machine tells another hostname than its own.
const OTHER_HOSTNAME: &str = "rudder_override_hostname";
/// How many parts of a machine are alike.
const QUANTITY: &str = "quantity";
/// By which processors are alike.
const PROCESSOR_NAME: &str = "cpuName";
/// The property that then tells its own.
const OWN_HOSTNAME: &str = "rudder_original_hostname";

/// What the names of an agent's package have in them, in small letters, by the kind of the agent.
pub(super) const AGENT_PACKAGES: [(&str, &str); 2] = [
    ("cfengine-community", "rudder-agent"),
    ("dsc", "rudder agent (dsc)"),
];
/// What is in the name of a distribution, in small letters, and Rudder's word for it. The first counts.
const DISTRIBUTIONS: [(&str, &str); 20] = [
    ("almalinux", "AlmaLinux"),
    ("amazon", "AmazonLinux"),
    ("android", "Android"),
    ("centos", "Centos"),
    ("debian", "Debian"),
    ("fedora", "Fedora"),
    ("kali", "Kali"),
    ("mint", "Mint"),
    ("oracle", "Oracle"),
    ("raspbian", "Raspbian"),
    ("redhat", "Redhat"),
    ("red hat", "Redhat"),
    ("rhel", "Redhat"),
    ("rocky", "RockyLinux"),
    ("scientific", "Scientific"),
    ("slackware", "Slackware"),
    ("suse", "Suse"),
    ("sles", "Suse"),
    ("tuxedo", "Tuxedo"),
    ("ubuntu", "Ubuntu"),
];
/// The same of Windows, in whose full name it is. The longest counts, and the first of these.
const WINDOWS: [(&str, &str); 16] = [
    ("xp", "WindowsXP"),
    ("vista", "WindowsVista"),
    ("seven", "WindowsSeven"),
    ("10", "Windows10"),
    ("11", "Windows11"),
    ("2000", "Windows2000"),
    ("2003", "Windows2003"),
    ("2008", "Windows2008"),
    ("2008 r2", "Windows2008R2"),
    ("2012", "Windows2012"),
    ("2012 r2", "Windows2012R2"),
    ("2016", "Windows2016"),
    ("2016 r2", "Windows2016R2"),
    ("2019", "Windows2019"),
    ("2022", "Windows2022"),
    ("2025", "Windows2025"),
];

/// Rudder's word for a system: of Linux its distribution, of Windows its release. `kernel` is in small
/// letters. A system of another kernel keeps its name, as Rudder has no word for it.
pub(super) fn system_name(kernel: &str, name: &str, full_name: &str) -> String {
    let found = match kernel {
        "mswin32" => {
            let full_name = full_name.to_lowercase();
            let fitting = WINDOWS.iter().filter(|(part, _)| full_name.contains(part));
            let longest = fitting.rev().max_by_key(|(part, _)| part.len());
            longest.map_or("UnknownWindows", |(_, word)| word)
        }
        "linux" => distribution(name).unwrap_or("UnknownLinux"),
        _ => name,
    };
    found.to_owned()
}

/// Rudder's word for the distribution that this name is of.
pub(crate) fn distribution(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    let found = DISTRIBUTIONS.iter().find(|(part, _)| name.contains(part))?;
    Some(found.1)
}

/// Lists parts of a machine that are alike once, with their number, as attribute `quantity`: processors
/// by their name, of which the first is kept, all others by everything that is told of them. Modules
/// of memory stay as they are, as each has a slot.
pub(super) fn quantities(inventory: &mut Inventory) {
    for (kind, elements) in &mut inventory.elements {
        if kind.column(QUANTITY).is_none() {
            continue;
        }
        let mut kinds: Vec<(BTreeMap<String, String>, usize)> = Vec::new();
        let mut places: HashMap<Vec<(String, String)>, usize> = HashMap::new();
        for element in std::mem::take(elements) {
            let name = element
                .get(PROCESSOR_NAME)
                .filter(|_| *kind == ObjectType::Processor);
            let alike: Vec<(String, String)> = match name {
                Some(name) => vec![(PROCESSOR_NAME.to_owned(), name.clone())],
                None => element.clone().into_iter().collect(),
            };
            let known = places.get(&alike).filter(|_| *kind != ObjectType::Memory);
            match known.and_then(|place| kinds.get_mut(*place)) {
                Some((_, count)) => *count += 1,
                None => {
                    places.insert(alike, kinds.len());
                    kinds.push((element, 1));
                }
            }
        }
        let counted = kinds.into_iter().map(|(mut element, count)| {
            element.insert(QUANTITY.to_owned(), count.to_string());
            element
        });
        *elements = counted.collect();
    }
}

/// How often what is alike was told: as often as it is written.
pub(super) fn quantity(element: &BTreeMap<String, String>) -> usize {
    let told = element.get(QUANTITY).and_then(|count| count.parse().ok());
    told.unwrap_or(1).clamp(1, ELEMENTS)
}

/// Rudder's word for an architecture of a system.
pub(super) fn architecture(told: &str, system: &str) -> String {
    if system.eq_ignore_ascii_case("aix") {
        return "ppc64".into();
    }
    let lower = told.to_ascii_lowercase();
    // HARDWARE/ARCHNAME is Perl's, as MSWin32-x64-multi-thread.
    let mut words = lower.split('-');
    let has = |word: &str| lower.split('-').any(|one| one == word);
    let intel_32 = |word: &&str| matches!(word.as_bytes(), [b'i', b'3'..=b'9', b'8', b'6']);
    if lower == "64-bit" || has("amd64") || has("x64") || has("x86_64") {
        return "x86_64".into();
    }
    if let Some(word) = words.find(intel_32) {
        return word.to_owned();
    }
    match lower.as_str() {
        "32-bit" | "x86" => "x86".into(),
        "powerpc" => "ppc".into(),
        _ => lower,
    }
}

/// Rudder's word for what a virtual machine runs on. What it has no word for keeps its own.
pub(super) fn virtualization(told: &str) -> String {
    let lower = told.to_ascii_lowercase();
    match lower.as_str() {
        "hyper-v" => "hyperv".into(),
        "virtualbox" => "vbox".into(),
        "virtual machine" => "unknownvm".into(),
        _ => lower,
    }
}

/// A service pack. AIX tells the year and week of its release with it: `06-1316` is 6.
pub(super) fn service_pack(told: &str) -> String {
    let digits = |text: &str, count: usize| {
        text.len() == count && text.bytes().all(|one| one.is_ascii_digit())
    };
    match told.split_once('-') {
        Some((number, week)) if digits(number, 2) && digits(week, 4) => {
            number.strip_prefix('0').unwrap_or(number).to_owned()
        }
        _ => told.to_owned(),
    }
}

/// The attribute and the name of a part that Rudder names by two fields, if both are told.
pub(super) fn joined_name(kind: ObjectType, record: &Record) -> Option<(&'static str, String)> {
    let name = record.text("NAME")?;
    let with = |field| record.text(field).map(|other| format!("{name} - {other}"));
    match kind {
        ObjectType::Slot => Some(("slotName", with("DESIGNATION")?)),
        ObjectType::SoundCard => Some(("soundCardName", with("MANUFACTURER")?)),
        ObjectType::Port if name.eq_ignore_ascii_case("not specified") => {
            let plug = record.text("TYPE")?;
            Some(("portName", format!("{name} ({plug})")))
        }
        _ => None,
    }
}

/// A certificate in PEM. Old agents tell it without its first and last line, and in one; each
/// begins with the same letters then.
pub(super) fn certificate(told: String) -> String {
    if !told.starts_with("MI") {
        return told;
    }
    let letters: Vec<char> = told.chars().filter(|one| !one.is_whitespace()).collect();
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in letters.chunks(64) {
        pem.extend(line);
        pem.push('\n');
    }
    pem.push_str("-----END CERTIFICATE-----");
    pem
}

/// Is it a name that another machine does not have as well, and written as one?
pub(super) fn is_hostname(name: &str) -> bool {
    !matches!(name, "" | "localhost" | "127.0.0.1" | "::1") && is_written_as_hostname(name)
}

/// Has it the letters of a hostname? What is empty has none that is wrong.
pub(super) fn is_written_as_hostname(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let begins = |byte: &u8| byte.is_ascii_alphanumeric();
    name == "::1" || (name.bytes().all(plain) && name.as_bytes().first().is_none_or(begins))
}

/// Properties that an inventory's hooks told: a list with an object of each, or one object. What
/// cannot be a property is left out, as Rudder does: it is no reason to refuse a node.
pub(super) fn custom_properties(json: &str) -> Vec<Property> {
    let parts = match serde_json::from_str(json) {
        Ok(Value::Array(parts)) => parts,
        Ok(one) => vec![one],
        Err(_) => Vec::new(),
    };
    let mut all = Map::new();
    for part in parts {
        if let Value::Object(fields) = part {
            // Of a name that two hooks tell the last counts.
            all.extend(fields);
        }
    }
    all.into_iter()
        .filter(|(name, value)| check_property("node", "", name, value).is_ok())
        .map(|(name, value)| Property {
            provider: Some("inventory".into()),
            ..Property::new(name, value)
        })
        .take(PROPERTIES)
        .collect()
}

/// Takes the hostname that hooks of the inventory tell, if they do.
pub(super) fn hostname_of_hooks(node: &mut Node) {
    let told = node
        .properties
        .iter()
        .find(|one| one.name == OTHER_HOSTNAME);
    let told = told.and_then(|one| one.value.as_str()).map(str::trim);
    let Some(told) = told.filter(|told| is_hostname(told)).map(str::to_owned) else {
        return;
    };
    let own = std::mem::replace(&mut node.hostname, told);
    let known = node.properties.iter().any(|one| one.name == OWN_HOSTNAME);
    if !known && node.properties.len() < PROPERTIES {
        let own = Property {
            provider: Some("inventory".into()),
            ..Property::new(OWN_HOSTNAME, own.into())
        };
        // They are in the order of their names.
        let place = node
            .properties
            .partition_point(|one| *one.name < *OWN_HOSTNAME);
        node.properties.insert(place, own);
    }
}

/// The addresses of one text: several have commas between them, and some their network's length.
pub(super) fn addresses(text: &str) -> impl Iterator<Item = &str> {
    let all = text.split(',');
    all.map(|one| one.split('/').next().unwrap_or_default().trim())
        .filter(|one| !one.is_empty())
}

/// What a firmware tells, and not that it tells nothing.
pub(super) fn of_firmware(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.eq_ignore_ascii_case("not available"))
}
