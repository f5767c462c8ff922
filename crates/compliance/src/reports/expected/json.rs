//! Where Rudder's JSON says by its keys what something is.

use serde::{Deserialize, Serialize};

use super::{Component, ExpectedValue};
use crate::model::reporting::ReportingLogic;

#[derive(Serialize, Deserialize)]
pub(super) struct ComponentJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    vid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vs: Option<Vec<ExpectedValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rl: Option<ReportingLogic>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scs: Option<Vec<Component>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
}

impl TryFrom<ComponentJson> for Component {
    type Error = &'static str;

    fn try_from(json: ComponentJson) -> Result<Self, Self::Error> {
        match (json.vid, json.bid) {
            (Some(name), None) => Ok(Self::Values {
                name,
                values: json.vs.unwrap_or_default(),
            }),
            (None, Some(name)) => Ok(Self::Block {
                name,
                id: json.id,
                logic: json.rl.unwrap_or(ReportingLogic::Weighted),
                components: json.scs.unwrap_or_default(),
            }),
            _ => Err("a component has either \"vid\" or \"bid\""),
        }
    }
}

impl From<Component> for ComponentJson {
    fn from(component: Component) -> Self {
        let (vid, vs, bid, rl, scs, id) = match component {
            Component::Values { name, values } => {
                (Some(name), Some(values), None, None, None, None)
            }
            Component::Block {
                name,
                id,
                logic,
                components,
            } => (None, None, Some(name), Some(logic), Some(components), id),
        };
        Self {
            vid,
            vs,
            bid,
            rl,
            scs,
            id,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum ValueJson {
    Key(Vec<String>),
    Id { id: String, v: String },
}

impl TryFrom<ValueJson> for ExpectedValue {
    type Error = &'static str;

    fn try_from(json: ValueJson) -> Result<Self, Self::Error> {
        let none = || "None".to_owned();
        let mut texts = match json {
            ValueJson::Id { id, v } => return Ok(Self::Id { id, value: v }),
            ValueJson::Key(texts) => texts.into_iter(),
        };
        // What is empty is reported as none, by Rudder's agents as by ours.
        let expanded = texts.next().filter(|text| !text.is_empty());
        let expanded = expanded.unwrap_or_else(none);
        let unexpanded = texts.next().unwrap_or_else(|| expanded.clone());
        if texts.next().is_some() {
            return Err("a value has at most two texts: expanded and unexpanded");
        }
        Ok(Self::Key {
            expanded,
            unexpanded,
        })
    }
}

impl From<ExpectedValue> for ValueJson {
    fn from(value: ExpectedValue) -> Self {
        match value {
            ExpectedValue::Id { id, value } => Self::Id { id, v: value },
            ExpectedValue::Key {
                expanded,
                unexpanded,
            } if expanded == unexpanded => {
                let texts = [expanded].into_iter();
                Self::Key(texts.filter(|text| text != "None").collect())
            }
            ExpectedValue::Key {
                expanded,
                unexpanded,
            } => Self::Key(vec![expanded, unexpanded]),
        }
    }
}
