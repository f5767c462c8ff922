//! What each kind of file says: the words are those of Rudder's API and techniques, and what can
//! be left out may be.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::params::ParameterFile;
use crate::model::directive::{Parameters, SectionValues};
use crate::model::group::Group;
use crate::model::mode::{PolicyMode, or_default};
use crate::model::property::{Property, text_of};
use crate::model::query::Query;
use crate::model::rule::Rule;
use crate::model::target::{RuleTarget, Union};
use crate::model::technique::{
    Action, Body, MethodItem, Methods, PolicyGeneration, Reporting, Section, Technique, in_order,
};

/// `groups/ID.yml`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GroupFile {
    id: Option<String>,
    name: Option<String>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    category: String,
    query: Option<Query>,
    nodes: Option<Vec<String>>,
    #[serde(default = "yes")]
    enabled: bool,
    #[serde(default)]
    properties: BTreeMap<String, Value>,
}

/// `techniques/ID.yml`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TechniqueFile {
    id: Option<String>,
    name: Option<String>,
    #[serde(default = "first")]
    version: String,
    #[serde(default)]
    category: String,
    #[serde(default)]
    description: String,
    multi_instance: Option<bool>,
    #[serde(default)]
    generation: PolicyGeneration,
    #[serde(default)]
    params: Vec<ParameterFile>,
    items: Option<Vec<ItemFile>>,
    sections: Option<Vec<Section>>,
    /// For people, and for makers of other forms, as Rudder's YAML has them.
    #[serde(rename = "documentation")]
    _documentation: Option<String>,
    #[serde(rename = "tags")]
    _tags: Option<Value>,
    #[serde(rename = "format")]
    _format: Option<u32>,
    #[serde(rename = "policy_types")]
    _policy_types: Option<Vec<String>>,
}

/// A call or a block of a technique. All that either may have is here, so that a mistake is told at
/// its place and an unknown key is one.
#[derive(Debug, Deserialize)]
struct ItemFile {
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    condition: String,
    #[serde(default, deserialize_with = "mode")]
    policy_mode_override: Option<PolicyMode>,
    #[serde(default)]
    reporting: Reporting,
    #[serde(default)]
    foreach: Vec<Map<String, Value>>,
    foreach_name: Option<String>,
    method: Option<String>,
    #[serde(default, deserialize_with = "in_order::deserialize")]
    params: Vec<(String, Value)>,
    items: Option<Vec<ItemFile>>,
    /// For people, as Rudder's YAML has them.
    #[serde(rename = "description")]
    _description: Option<String>,
    #[serde(rename = "documentation")]
    _documentation: Option<String>,
    #[serde(rename = "tags")]
    _tags: Option<Value>,
    /// Of an editor's table, and of what rudderc made of a loop.
    #[serde(rename = "foreach_columns_order")]
    _foreach_columns_order: Option<Vec<String>>,
    #[serde(rename = "foreach_resolved_state")]
    _foreach_resolved_state: Option<String>,
}

/// A policy mode, or `default` for none of its own.
fn mode<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PolicyMode>, D::Error> {
    match Option::<String>::deserialize(from)? {
        None => Ok(None),
        Some(word) => or_default::deserialize(word.into_deserializer()),
    }
}

/// `directives/ID.yml`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DirectiveFile {
    id: Option<String>,
    name: Option<String>,
    #[serde(default)]
    description: String,
    /// `ID` or `ID/VERSION`.
    pub(super) technique: String,
    #[serde(default)]
    params: Map<String, Value>,
    parameters: Option<Parameters>,
    priority: Option<u8>,
    #[serde(default = "yes")]
    enabled: bool,
    #[serde(default, deserialize_with = "mode")]
    policy_mode: Option<PolicyMode>,
    #[serde(default)]
    tags: Vec<Map<String, Value>>,
    schedule: Option<String>,
}

/// `rules/ID.yml`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RuleFile {
    id: Option<String>,
    name: Option<String>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    directives: Vec<String>,
    #[serde(default)]
    targets: Vec<OneTarget>,
    #[serde(default = "yes")]
    enabled: bool,
    #[serde(default)]
    category: String,
    #[serde(default)]
    tags: Vec<Map<String, Value>>,
}

fn yes() -> bool {
    true
}

fn first() -> String {
    "1.0".into()
}

/// A rule's target; what is wrong with a word is told, which an untagged form would not.
#[derive(Debug)]
struct OneTarget(RuleTarget);

impl<'de> Deserialize<'de> for OneTarget {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Target;

        #[derive(Deserialize)]
        struct Composite {
            include: Union,
            exclude: Union,
        }

        impl<'de> Visitor<'de> for Target {
            type Value = OneTarget;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a target such as special:all, or include and exclude")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<OneTarget, E> {
                let target = text.parse().map_err(E::custom)?;
                Ok(OneTarget(RuleTarget::Simple(target)))
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<OneTarget, M::Error> {
                let Composite { include, exclude } =
                    Composite::deserialize(MapAccessDeserializer::new(map))?;
                Ok(OneTarget(RuleTarget::Composite { include, exclude }))
            }
        }

        from.deserialize_any(Target)
    }
}

impl GroupFile {
    pub(super) fn into_group(self, stem: &str) -> Group {
        let id = self.id.unwrap_or_else(|| stem.to_owned());
        let name = self.name.unwrap_or_else(|| id.clone());
        let properties = self.properties.into_iter();
        Group {
            description: self.description,
            category: self.category,
            dynamic: self.query.is_some(),
            query: self.query,
            enabled: self.enabled,
            properties: properties
                .map(|(name, value)| Property::new(name, value))
                .collect(),
            ..Group::of_nodes(id, name, self.nodes.unwrap_or_default())
        }
    }
}

impl ItemFile {
    fn into_item(self) -> MethodItem {
        MethodItem {
            id: self.id,
            name: self.name,
            condition: self.condition,
            policy_mode_override: self.policy_mode_override,
            reporting: self.reporting,
            foreach: self.foreach,
            foreach_name: self.foreach_name,
            action: match (self.method, self.items) {
                (None, Some(items)) => Action::Block {
                    items: items.into_iter().map(Self::into_item).collect(),
                },
                // Neither, or both, is a mistake that is found with the others.
                (method, _) => Action::Call {
                    method: method.unwrap_or_default(),
                    params: self.params,
                },
            },
        }
    }
}

impl TechniqueFile {
    pub(super) fn into_technique(self, stem: &str) -> Technique {
        let id = self.id.unwrap_or_else(|| stem.to_owned());
        let items = self.items.unwrap_or_default();
        let mut methods = Methods {
            params: self
                .params
                .into_iter()
                .map(ParameterFile::into_parameter)
                .collect(),
            items: items.into_iter().map(ItemFile::into_item).collect(),
        };
        methods.identify(&id);
        // A technique of calls is one that rudderc makes: each directive stands for itself.
        let multi_instance = self.multi_instance.unwrap_or(self.sections.is_none());
        Technique {
            name: self.name.unwrap_or_else(|| id.clone()),
            id,
            version: self.version,
            category: self.category,
            description: self.description,
            multi_instance,
            generation: self.generation,
            system: false,
            body: match self.sections {
                Some(sections) => Body::Sections(sections),
                None => Body::Methods(methods),
            },
        }
    }
}

impl DirectiveFile {
    /// Values of `params` are put beside those of `parameters`, into the root.
    pub(super) fn into_directive(self, stem: &str) -> crate::model::directive::Directive {
        let id = self.id.unwrap_or_else(|| stem.to_owned());
        let name = self.name.unwrap_or_else(|| id.clone());
        let (technique, version) = self
            .technique
            .rsplit_once('/')
            .unwrap_or((&self.technique, "1.0"));
        let mut directive = crate::model::directive::Directive::new(id, name, (technique, version));
        let mut parameters = self.parameters.unwrap_or_default();
        let root = std::mem::take(&mut parameters.section);
        parameters.section = with_values(root, &self.params);
        directive.parameters = parameters;
        directive.short_description = self.description;
        directive.priority = self.priority.unwrap_or(directive.priority);
        directive.enabled = self.enabled;
        directive.policy_mode = self.policy_mode;
        directive.tags = self.tags;
        directive.schedule_id = self.schedule;
        directive
    }
}

fn with_values(root: SectionValues, values: &Map<String, Value>) -> SectionValues {
    values.iter().fold(root, |root, (name, value)| {
        root.with(name, text_of(value).into_owned())
    })
}

impl RuleFile {
    pub(super) fn into_rule(self, stem: &str) -> Rule {
        let id = self.id.unwrap_or_else(|| stem.to_owned());
        let name = self.name.unwrap_or_else(|| id.clone());
        Rule {
            short_description: self.description,
            directives: self.directives,
            targets: self.targets.into_iter().map(|target| target.0).collect(),
            enabled: self.enabled,
            category_id: self.category,
            tags: self.tags,
            ..Rule::new(id, name)
        }
    }
}
