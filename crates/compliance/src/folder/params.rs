//! Parameters of a technique, as Rudder's YAML has them, and as they were written here first: type
//! and default stand beside the constraints or among them.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::model::constraint::{Constraint, ConstraintKind};
use crate::model::technique::MethodParameter;

/// One of `params` in `techniques/ID.yml`.
#[derive(Debug, Deserialize)]
pub(super) struct ParameterFile {
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    description: String,
    #[serde(rename = "type")]
    kind: Option<ConstraintKind>,
    default: Option<String>,
    #[serde(default)]
    constraints: ConstraintsFile,
    /// For people.
    #[serde(rename = "documentation")]
    _documentation: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConstraintsFile {
    #[serde(rename = "type")]
    kind: Option<ConstraintKind>,
    default: Option<String>,
    #[serde(default, alias = "allow_empty")]
    may_be_empty: bool,
    regex: Option<Pattern>,
    #[serde(default)]
    select: Vec<Choice>,
    /// What a form would make of a password: whoever writes a directive gives what agents get.
    #[serde(rename = "password_hashes")]
    _password_hashes: Option<Vec<String>>,
}

/// A value that may be chosen.
#[derive(Debug, Deserialize)]
struct Choice {
    value: String,
    /// For people.
    #[serde(rename = "name")]
    _name: Option<String>,
}

/// A regular expression: alone, or with what a form would say of other values.
#[derive(Debug)]
struct Pattern(String);

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;

        #[derive(Deserialize)]
        struct WithError {
            value: String,
            #[serde(rename = "error")]
            _error: Option<String>,
        }

        impl<'de> Visitor<'de> for Either {
            type Value = Pattern;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a regular expression, or value and error")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Pattern, E> {
                Ok(Pattern(text.to_owned()))
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Pattern, M::Error> {
                let WithError { value, .. } =
                    WithError::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Pattern(value))
            }
        }

        from.deserialize_any(Either)
    }
}

impl ParameterFile {
    pub(super) fn into_parameter(self) -> MethodParameter {
        let within = self.constraints;
        let choices: Vec<_> = within
            .select
            .iter()
            .map(|choice| regex::escape(&choice.value))
            .collect();
        // Whoever chooses one of some matches nothing else besides.
        let regex = match choices.is_empty() {
            true => within.regex.map(|pattern| pattern.0),
            false => Some(choices.join("|")),
        };
        MethodParameter {
            id: self.id,
            name: self.name,
            description: self.description,
            constraints: Constraint {
                kind: self.kind.or(within.kind).unwrap_or_default(),
                default: self.default.or(within.default),
                may_be_empty: within.may_be_empty,
                regex,
            },
        }
    }
}
