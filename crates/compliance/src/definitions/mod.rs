//! All that administrators define, as one value: what a folder of files holds, what the server
//! keeps, and what differs between two of them.

mod check;
mod delta;
mod edit;
mod groups;
mod setting;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::directive::Directive;
use crate::model::group::Group;
use crate::model::mode::ModesSet;
use crate::model::property::GlobalParameter;
use crate::model::rule::Rule;
use crate::model::technique::Technique;
use crate::policy::generation::{Change, Settings};

pub use check::Wrong;
pub use delta::Delta;
pub use edit::{Edit, Made, Object};
pub use setting::Setting;

/// Objects by their identities; techniques by identity and version.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Definitions {
    /// What holds for all nodes.
    pub settings: Settings,
    /// Global parameters.
    pub parameters: BTreeMap<String, GlobalParameter>,
    /// Groups.
    pub groups: BTreeMap<String, Group>,
    /// Techniques, by [`Technique::key`].
    pub techniques: BTreeMap<String, Technique>,
    /// Directives.
    pub directives: BTreeMap<String, Directive>,
    /// Rules.
    pub rules: BTreeMap<String, Rule>,
    /// Which of these were made one by one, beside those of a folder.
    #[serde(skip_serializing_if = "Made::is_empty")]
    pub made: Made,
}

/// What became of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectOutcome {
    /// It is new.
    Added,
    /// It is another.
    Changed,
    /// It is gone.
    Removed,
    /// It was made beside the folder, which does not have it, and stays.
    Kept,
    /// It was made beside the folder, which has it now: from now on it is the folder's.
    Taken,
}

/// An object that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The kind of object: `rule`, `settings` and so on.
    pub kind: String,
    /// Its identity; empty for settings.
    pub id: String,
    /// What became of it.
    pub became: ObjectOutcome,
}

/// What leads from some definitions to others.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Differences {
    /// The objects, by kind and identity.
    pub objects: Vec<Difference>,
    /// The same for the engine: what goes before what comes.
    pub changes: Vec<Change>,
}

impl Definitions {
    /// The modes that directives of these identities set, as far as they are defined.
    pub fn modes_of(&self, directives: &[String]) -> ModesSet {
        let known = directives.iter().filter_map(|id| self.directives.get(id));
        known.map(|directive| directive.policy_mode).collect()
    }

    /// All of it, for an engine that has nothing yet.
    pub fn changes(&self) -> Vec<Change> {
        let mut found = Self::default().to(self).changes;
        found.push(Change::SetSettings(self.settings.clone()));
        found
    }

    /// What leads to `new`.
    pub fn to(&self, new: &Self) -> Differences {
        let mut found = Differences::default();
        if self.settings != new.settings {
            found.note("settings", "", ObjectOutcome::Changed);
            let settings = new.settings.clone();
            found.changes.push(Change::SetSettings(settings));
        }
        found.table(&self.parameters, &new.parameters, Object::Parameter);
        found.table(&self.groups, &new.groups, Object::Group);
        found.table(&self.techniques, &new.techniques, Object::Technique);
        found.table(&self.directives, &new.directives, Object::Directive);
        found.table(&self.rules, &new.rules, Object::Rule);
        found
    }

    /// Identities of objects that stand under another key: the path of each, and what is there.
    /// It would be found by the one name and changed by the other.
    pub fn misnamed(&self) -> Vec<(String, String)> {
        [
            misnamed("parameters", &self.parameters, |one| one.id.clone()),
            misnamed("groups", &self.groups, |one| one.id.clone()),
            misnamed("techniques", &self.techniques, Technique::key),
            misnamed("directives", &self.directives, |one| one.id.clone()),
            misnamed("rules", &self.rules, |one| one.id.clone()),
        ]
        .concat()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.parameters.len()
            + self.groups.len()
            + self.techniques.len()
            + self.directives.len()
            + self.rules.len()
    }

    /// Is nothing defined?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn misnamed<T>(
    table: &str,
    objects: &BTreeMap<String, T>,
    name: impl Fn(&T) -> String,
) -> Vec<(String, String)> {
    let named = objects.iter().map(|(key, one)| (key, name(one)));
    // Of an empty one the check of the object tells.
    let others = named.filter(|(key, name)| *key != name && !name.is_empty());
    let told = others.map(|(key, name)| {
        let why = format!("it is \"{name}\"; expected \"{key}\", the key that it stands under");
        (format!("{table}.{key}"), why)
    });
    told.collect()
}

impl Differences {
    /// Does nothing differ?
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    fn note(&mut self, kind: &str, id: &str, became: ObjectOutcome) {
        self.objects.push(Difference {
            kind: kind.to_owned(),
            id: id.to_owned(),
            became,
        });
    }

    fn table<T: Clone + PartialEq>(
        &mut self,
        old: &BTreeMap<String, T>,
        new: &BTreeMap<String, T>,
        object: fn(T) -> Object,
    ) {
        for (id, gone) in old.iter().filter(|(id, _)| !new.contains_key(*id)) {
            let gone = object(gone.clone());
            self.note(gone.kind(), id, ObjectOutcome::Removed);
            self.changes.extend(Edit::Remove(gone).into_change());
        }
        for (id, one) in new {
            let became = match old.get(id) {
                None => ObjectOutcome::Added,
                Some(before) if before != one => ObjectOutcome::Changed,
                Some(_) => continue,
            };
            let one = object(one.clone());
            self.note(one.kind(), id, became);
            self.changes.extend(Edit::Put(one).into_change());
        }
    }
}
