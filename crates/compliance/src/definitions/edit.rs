//! Changes of single objects, beside what a folder defines.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Definitions, Delta, Difference, ObjectOutcome, Setting};
use crate::model::directive::Directive;
use crate::model::group::Group;
use crate::model::property::GlobalParameter;
use crate::model::rule::Rule;
use crate::model::technique::Technique;
use crate::policy::generation::{Change, Settings};

/// An object that can be made by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Object {
    /// A global parameter.
    Parameter(GlobalParameter),
    /// A group.
    Group(Group),
    /// A technique.
    Technique(Technique),
    /// A directive.
    Directive(Directive),
    /// A rule.
    Rule(Rule),
}

impl Object {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Parameter(_) => "parameter",
            Self::Group(_) => "group",
            Self::Technique(_) => "technique",
            Self::Directive(_) => "directive",
            Self::Rule(_) => "rule",
        }
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Edit {
    /// An object is there, or is now so.
    Put(Object),
    /// An object is gone, as it was.
    Remove(Object),
    /// Settings are so; those of these names were set by themselves.
    Settings(Box<Settings>, BTreeSet<String>),
    /// A folder is another, by a few objects.
    Folder(Box<Delta>),
}

/// Identities of objects that were made one by one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Made {
    /// Of parameters.
    pub parameters: BTreeSet<String>,
    /// Of groups.
    pub groups: BTreeSet<String>,
    /// Of techniques, with their versions.
    pub techniques: BTreeSet<String>,
    /// Of directives.
    pub directives: BTreeSet<String>,
    /// Of rules.
    pub rules: BTreeSet<String>,
    /// Names of settings.
    pub settings: BTreeSet<String>,
}

impl Made {
    /// Was nothing made by itself?
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn all_of(&mut self, object: &Object) -> (&mut BTreeSet<String>, String) {
        match object {
            Object::Parameter(one) => (&mut self.parameters, one.id.clone()),
            Object::Group(one) => (&mut self.groups, one.id.clone()),
            Object::Technique(one) => (&mut self.techniques, one.key()),
            Object::Directive(one) => (&mut self.directives, one.id.clone()),
            Object::Rule(one) => (&mut self.rules, one.id.clone()),
        }
    }
}

impl Edit {
    /// The same for the engine; none for what a folder has changed, of which
    /// [`Definitions::to`] tells it.
    pub fn change(&self) -> Option<Change> {
        self.clone().into_change()
    }

    pub(super) fn into_change(self) -> Option<Change> {
        Some(match self {
            Self::Put(Object::Parameter(one)) => Change::SetParameter(one),
            Self::Put(Object::Group(one)) => Change::SetGroup(one),
            Self::Put(Object::Technique(one)) => Change::SetTechnique(one),
            Self::Put(Object::Directive(one)) => Change::SetDirective(one),
            Self::Put(Object::Rule(one)) => Change::SetRule(one),
            Self::Remove(Object::Parameter(one)) => Change::RemoveParameter(one.id),
            Self::Remove(Object::Group(one)) => Change::RemoveGroup(one.id),
            Self::Remove(Object::Technique(one)) => Change::RemoveTechnique(one.id, one.version),
            Self::Remove(Object::Directive(one)) => Change::RemoveDirective(one.id),
            Self::Remove(Object::Rule(one)) => Change::RemoveRule(one.id),
            Self::Settings(settings, _) => Change::SetSettings(*settings),
            Self::Folder(_) => return None,
        })
    }
}

impl Definitions {
    /// Carries out a change; what is put is from then on of those that were made by themselves.
    pub fn edit(&mut self, edit: &Edit) {
        match edit {
            Edit::Put(object) => {
                let (made, id) = self.made.all_of(object);
                made.insert(id.clone());
                match object.clone() {
                    Object::Parameter(one) => drop(self.parameters.insert(id, one)),
                    Object::Group(one) => drop(self.groups.insert(id, one)),
                    Object::Technique(one) => drop(self.techniques.insert(id, one)),
                    Object::Directive(one) => drop(self.directives.insert(id, one)),
                    Object::Rule(one) => drop(self.rules.insert(id, one)),
                }
            }
            Edit::Remove(object) => {
                let (made, id) = self.made.all_of(object);
                made.remove(&id);
                match object {
                    Object::Parameter(_) => drop(self.parameters.remove(&id)),
                    Object::Group(_) => drop(self.groups.remove(&id)),
                    Object::Technique(_) => drop(self.techniques.remove(&id)),
                    Object::Directive(_) => drop(self.directives.remove(&id)),
                    Object::Rule(_) => drop(self.rules.remove(&id)),
                }
            }
            Edit::Settings(settings, names) => {
                self.settings = Settings::clone(settings);
                self.made.settings.clone_from(names);
            }
            Edit::Folder(delta) => Delta::clone(delta).on(self),
        }
    }

    /// Takes over from `before` what was made by itself there and is not here; of settings, what
    /// has its usual value here. What is here too is the folder's from now on. Tells both.
    pub fn keep_made(&mut self, before: &Self) -> Vec<Difference> {
        let mut kept = Vec::new();
        self.made = Made::default();
        macro_rules! keep {
            ($kind:literal, $table:ident) => {
                for id in &before.made.$table {
                    let mut became = ObjectOutcome::Taken;
                    if !self.$table.contains_key(id)
                        && let Some(object) = before.$table.get(id)
                    {
                        self.$table.insert(id.clone(), object.clone());
                        self.made.$table.insert(id.clone());
                        became = ObjectOutcome::Kept;
                    }
                    kept.push(Difference {
                        kind: $kind.to_owned(),
                        id: id.clone(),
                        became,
                    });
                }
            };
        }
        keep!("parameter", parameters);
        keep!("group", groups);
        keep!("technique", techniques);
        keep!("directive", directives);
        keep!("rule", rules);
        for name in &before.made.settings {
            let Some(setting) = Setting::named(name) else {
                continue;
            };
            let mut became = ObjectOutcome::Taken;
            let value = setting.of(&before.settings);
            // A value of a setting is one that it can have.
            if setting.is_usual(&self.settings) && setting.set(&mut self.settings, value).is_ok() {
                self.made.settings.insert(name.clone());
                became = ObjectOutcome::Kept;
            }
            kept.push(Difference {
                kind: "setting".to_owned(),
                id: name.clone(),
                became,
            });
        }
        kept
    }
}
