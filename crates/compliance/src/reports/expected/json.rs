//! Where Rudder's JSON says by its keys what something is.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Component, ExpectedValue};
use crate::model::reporting::ReportingLogic;

#[derive(Deserialize)]
pub(super) struct ComponentJson {
    vid: Option<String>,
    vs: Option<Vec<ExpectedValue>>,
    bid: Option<String>,
    rl: Option<ReportingLogic>,
    scs: Option<Vec<Component>>,
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

/// By hand: what serde makes for two forms copies each value first, and a fleet has millions.
impl<'de> Deserialize<'de> for ExpectedValue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ValueVisitor)
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum ValueField {
    Id,
    V,
    #[serde(other)]
    Other,
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = ExpectedValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of at most two texts, or an object with \"id\" and \"v\"")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut texts: A) -> Result<Self::Value, A::Error> {
        // What is empty is reported as none, by Rudder's agents as by ours.
        let expanded: Option<String> = texts.next_element()?;
        let expanded = expanded.filter(|text| !text.is_empty());
        let expanded = expanded.unwrap_or_else(|| "None".to_owned());
        let unexpanded: Option<String> = texts.next_element()?;
        let unexpanded = unexpanded.unwrap_or_else(|| expanded.clone());
        if texts.next_element::<IgnoredAny>()?.is_some() {
            let why = "a value has at most two texts: expanded and unexpanded";
            return Err(de::Error::custom(why));
        }
        Ok(ExpectedValue::Key {
            expanded,
            unexpanded,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let (mut id, mut value) = (None, None);
        while let Some(name) = fields.next_key()? {
            match name {
                ValueField::Id => id = Some(fields.next_value()?),
                ValueField::V => value = Some(fields.next_value()?),
                ValueField::Other => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(ExpectedValue::Id {
            id: id.ok_or_else(|| de::Error::missing_field("id"))?,
            value: value.ok_or_else(|| de::Error::missing_field("v"))?,
        })
    }
}
