//! What leads from some definitions to others, as it is kept: only the objects that differ.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Definitions, Made};
use crate::model::directive::Directive;
use crate::model::group::Group;
use crate::model::property::GlobalParameter;
use crate::model::rule::Rule;
use crate::model::technique::Technique;
use crate::policy::generation::Settings;

/// Objects by their identities; what is gone stands there without one.
type Objects<T> = BTreeMap<String, Option<T>>;

/// What differs between some definitions and others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Delta {
    #[serde(skip_serializing_if = "Option::is_none")]
    settings: Option<Settings>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parameters: Objects<GlobalParameter>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    groups: Objects<Group>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    techniques: Objects<Technique>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    directives: Objects<Directive>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    rules: Objects<Rule>,
    #[serde(skip_serializing_if = "Option::is_none")]
    made: Option<Made>,
}

impl Delta {
    /// What leads from `old` to `new`.
    pub fn between(old: &Definitions, new: &Definitions) -> Self {
        Self {
            settings: (old.settings != new.settings).then(|| new.settings.clone()),
            parameters: objects(&old.parameters, &new.parameters),
            groups: objects(&old.groups, &new.groups),
            techniques: objects(&old.techniques, &new.techniques),
            directives: objects(&old.directives, &new.directives),
            rules: objects(&old.rules, &new.rules),
            made: (old.made != new.made).then(|| new.made.clone()),
        }
    }

    /// How many objects differ.
    pub fn len(&self) -> usize {
        self.parameters.len()
            + self.groups.len()
            + self.techniques.len()
            + self.directives.len()
            + self.rules.len()
    }

    /// Does no object differ?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Carries it out.
    pub(super) fn on(self, all: &mut Definitions) {
        let Self {
            settings,
            parameters,
            groups,
            techniques,
            directives,
            rules,
            made,
        } = self;
        if let Some(settings) = settings {
            all.settings = settings;
        }
        put(&mut all.parameters, parameters);
        put(&mut all.groups, groups);
        put(&mut all.techniques, techniques);
        put(&mut all.directives, directives);
        put(&mut all.rules, rules);
        if let Some(made) = made {
            all.made = made;
        }
    }
}

fn objects<T: Clone + PartialEq>(
    old: &BTreeMap<String, T>,
    new: &BTreeMap<String, T>,
) -> Objects<T> {
    let gone = old.keys().filter(|id| !new.contains_key(*id));
    let gone = gone.map(|id| (id.clone(), None));
    let other = new.iter().filter(|(id, one)| old.get(*id) != Some(one));
    let other = other.map(|(id, one)| (id.clone(), Some(one.clone())));
    gone.chain(other).collect()
}

fn put<T>(all: &mut BTreeMap<String, T>, objects: Objects<T>) {
    for (id, object) in objects {
        match object {
            Some(object) => drop(all.insert(id, object)),
            None => drop(all.remove(&id)),
        }
    }
}
