//! Schemas as JSON Schema, which OpenAPI 3.1 has.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Schema;
use crate::model::property::PROPERTY_NAME_BYTES;
use crate::model::{ID_BYTES, NAME_BYTES};

/// Objects that have a name, once each.
#[derive(Debug, Default)]
pub(in super::super) struct Documents(BTreeMap<&'static str, Value>);

impl Documents {
    /// The JSON Schema of a schema; objects are referred to.
    pub(in super::super) fn of(&mut self, schema: &'static Schema) -> Value {
        match schema {
            Schema::Any => json!({}),
            Schema::Flag => json!({"type": "boolean"}),
            Schema::Number(least, most) => {
                json!({"type": "integer", "minimum": least, "maximum": most})
            }
            Schema::Share => json!({"type": "number"}),
            Schema::Text(most) => json!({"type": "string", "maxLength": most}),
            Schema::Identity => json!({"type": "string", "minLength": 1, "maxLength": ID_BYTES}),
            Schema::Name => json!({"type": "string", "minLength": 1, "maxLength": NAME_BYTES}),
            Schema::PropertyName => {
                json!({"type": "string", "minLength": 1, "maxLength": PROPERTY_NAME_BYTES})
            }
            Schema::Word(words) => json!({"type": "string", "enum": words}),
            Schema::Target => json!({
                "type": "string",
                "description": "special:all, special:all_exceptPolicyServers, \
                                special:all_policyServers, policyServer:ID or group:ID",
            }),
            Schema::List(of, most) => {
                json!({"type": "array", "items": self.of(of), "maxItems": most})
            }
            Schema::Pair(first, second) => json!({
                "type": "array",
                "prefixItems": [self.of(first), self.of(second)],
                "minItems": 2,
                "maxItems": 2,
            }),
            Schema::Map(of) => json!({"type": "object", "additionalProperties": self.of(of)}),
            Schema::Either(forms) => {
                let forms = forms.iter().map(|form| self.of(form));
                json!({"anyOf": forms.collect::<Vec<_>>()})
            }
            Schema::Object(name, fields) => {
                if !self.0.contains_key(name) {
                    // It may be within itself.
                    self.0.insert(name, Value::Null);
                    let mut properties = Map::new();
                    for field in *fields {
                        let mut schema = self.of(field.schema);
                        if !field.note.is_empty() {
                            schema["description"] = field.note.into();
                        }
                        properties.insert(field.name.into(), schema);
                    }
                    let needed = fields.iter().filter(|field| field.needed);
                    let needed: Vec<_> = needed.map(|field| field.name).collect();
                    let object = json!({
                        "type": "object",
                        "properties": properties,
                        "required": needed,
                        "additionalProperties": false,
                    });
                    self.0.insert(name, object);
                }
                json!({"$ref": format!("#/components/schemas/{name}")})
            }
        }
    }

    /// All objects by their names.
    pub(in super::super) fn into_json(self) -> Value {
        json!(self.0)
    }
}
