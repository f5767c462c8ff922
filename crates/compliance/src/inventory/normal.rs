//! What the tools that make inventories tell in several ways, in the one of Rudder: groups ask for
//! that. Source: Rudder's `FusionInventoryParser`.

use serde_json::{Map, Value};

use crate::model::node::Node;
use crate::model::property::{PROPERTIES, Property, check_property};

/// A property by which a machine tells another hostname than its own.
const OTHER_HOSTNAME: &str = "rudder_override_hostname";
/// The property that then tells its own.
const OWN_HOSTNAME: &str = "rudder_original_hostname";

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

/// Is it a name that another machine does not have as well?
pub(super) fn is_hostname(name: &str) -> bool {
    !matches!(name, "" | "localhost" | "127.0.0.1" | "::1")
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
