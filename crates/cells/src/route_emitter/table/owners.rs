//! Who is where: a port of a cell is given to another instance once the first has ended.

use std::collections::HashMap;
use std::sync::Arc;

use super::TableSettings;
use super::derive::places;
use super::facts::Slots;
use crate::route_emitter::registration::Key;

/// An instance, with its process.
pub(super) type Owner = (Arc<str>, Arc<str>);

/// Instances by where they are.
#[derive(Debug, Default)]
pub(super) struct Owners(HashMap<(Box<str>, u32), Vec<Owner>>);

impl Owners {
    /// Notes where an instance is now that was elsewhere, or nowhere, before. Returns at how many
    /// places it met another one.
    pub(super) fn moved(
        &mut self,
        owner: &Owner,
        before: Option<&Slots>,
        after: Option<&Slots>,
        settings: TableSettings,
    ) -> u64 {
        let of = |slots: Option<&Slots>| slots.map(|it| places(it, settings)).unwrap_or_default();
        let (before, after) = (of(before), of(after));
        for place in before.iter().filter(|place| !after.contains(place)) {
            if let Some(owners) = self.0.get_mut(place) {
                owners.retain(|other| other != owner);
                if owners.is_empty() {
                    self.0.remove(place);
                }
            }
        }
        let mut met = 0;
        for place in after {
            if before.contains(&place) {
                continue;
            }
            // Port 0 is no place where two could answer.
            let counts = place.1 != 0;
            let owners = self.0.entry(place).or_default();
            met += u64::from(counts && !owners.is_empty());
            owners.push(owner.clone());
        }
        met
    }

    /// Whether anybody is at a port.
    pub(super) fn has(&self, host: &str, port: u32) -> bool {
        self.0.contains_key(&(host.into(), port))
    }

    /// Instances that could have such a registration.
    pub(super) fn at(&self, key: &Key) -> &[Owner] {
        let (host, port) = match key {
            Key::Http { host, port, .. } => (host, *port),
            Key::Tcp {
                host, backend_port, ..
            } => (host, u32::from(*backend_port)),
            Key::Internal { host, .. } => (host, 0),
        };
        let owners = self.0.get(&(host.as_str().into(), port));
        owners.map(Vec::as_slice).unwrap_or_default()
    }
}
