//! Properties of nodes and groups, and global parameters.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ModelError;

/// Longest name of a property, in bytes.
pub const PROPERTY_NAME_BYTES: usize = 255;
/// Longest value of a property, in bytes of its JSON.
pub const PROPERTY_BYTES: usize = 64 * 1024;
/// Most properties of one node or group.
pub const PROPERTIES: usize = 1_000;

/// A named JSON value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Property {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Value,
    /// Who set it: `inventory`, a data source; nobody for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
}

impl Property {
    /// A property that a person sets.
    pub fn new(name: impl Into<String>, value: Value) -> Self {
        Self {
            name: name.into(),
            value,
            provider: None,
        }
    }
}

/// Does a property go that is changed to this value? As in Rudder, to nothing or an empty text.
pub fn removes(value: &Value) -> bool {
    value.is_null() || value == ""
}

/// What becomes of an object that another is laid over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Objects {
    /// Keys of both are there.
    #[default]
    Merge,
    /// It is replaced.
    Override,
}

/// What becomes of a list or text that another is laid over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Others {
    /// It is replaced.
    #[default]
    Override,
    /// The other comes behind it.
    Append,
    /// The other comes before it.
    Prepend,
}

impl Others {
    fn of(letter: char) -> Option<Self> {
        match letter {
            'o' => Some(Self::Override),
            'a' => Some(Self::Append),
            'p' => Some(Self::Prepend),
            _ => None,
        }
    }

    fn letter(self) -> char {
        match self {
            Self::Override => 'o',
            Self::Append => 'a',
            Self::Prepend => 'p',
        }
    }
}

/// How a value is laid over the one that is inherited. As text it has three letters: `m` or `o` for
/// objects, `o`, `a` or `p` for lists, and the same for texts; `moo` is the usual one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InheritMode {
    /// Of objects.
    pub objects: Objects,
    /// Of lists.
    pub lists: Others,
    /// Of texts.
    pub texts: Others,
}

impl InheritMode {
    /// Is it what holds where nothing is said?
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

impl TryFrom<String> for InheritMode {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut letters = text.chars();
        let mut read = || {
            let objects = match letters.next()? {
                'm' => Objects::Merge,
                'o' => Objects::Override,
                _ => return None,
            };
            let (lists, texts) = (Others::of(letters.next()?)?, Others::of(letters.next()?)?);
            letters.next().is_none().then_some(Self {
                objects,
                lists,
                texts,
            })
        };
        read().ok_or_else(|| {
            "expected three letters: m or o for objects, o, a or p for lists, o, a or p for texts"
                .into()
        })
    }
}

impl From<InheritMode> for String {
    fn from(mode: InheritMode) -> Self {
        let objects = match mode.objects {
            Objects::Merge => 'm',
            Objects::Override => 'o',
        };
        [objects, mode.lists.letter(), mode.texts.letter()]
            .iter()
            .collect()
    }
}

/// A parameter of all nodes: each inherits it as a property.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GlobalParameter {
    /// Its name; `${rudder.param.NAME}` and `${node.properties[NAME]}` name it.
    #[serde(alias = "name")]
    pub id: String,
    /// Its value.
    pub value: Value,
    /// For people.
    #[serde(default)]
    pub description: String,
    /// How what groups and nodes say is laid over it.
    #[serde(default, skip_serializing_if = "InheritMode::is_usual")]
    pub inherit_mode: InheritMode,
}

impl GlobalParameter {
    /// Checks name and size.
    pub fn check(&self) -> Result<(), ModelError> {
        check_property("parameter", &self.id, &self.id, &self.value)
    }
}

/// Checks the properties of one object: their number, names and sizes, and that none is there
/// twice.
pub fn check_properties(
    kind: &'static str,
    id: &str,
    properties: &[Property],
) -> Result<(), ModelError> {
    if properties.len() > PROPERTIES {
        let found = properties.len();
        let message = format!("{found} properties; at most {PROPERTIES} are kept");
        return Err(ModelError::new(kind, id, message));
    }
    let mut names = std::collections::HashSet::new();
    for property in properties {
        check_property(kind, id, &property.name, &property.value)?;
        if !names.insert(&property.name) {
            let message = format!("the property \"{}\" is there twice", property.name);
            return Err(ModelError::new(kind, id, message));
        }
    }
    Ok(())
}

/// May this be a letter of a property's name? Variables must be able to name it.
pub fn is_name_char(letter: char) -> bool {
    !letter.is_control()
        && !letter.is_whitespace()
        && !['"', '$', '{', '}', '[', ']'].contains(&letter)
}

/// Checks name and size of a property of an object.
pub fn check_property(
    kind: &'static str,
    id: &str,
    name: &str,
    value: &Value,
) -> Result<(), ModelError> {
    let wrong = |message: String| Err(ModelError::new(kind, id, message).of("properties"));
    if name.is_empty() || name.len() > PROPERTY_NAME_BYTES {
        let found = name.len();
        return wrong(format!(
            "a property's name has {found} bytes; expected 1 to {PROPERTY_NAME_BYTES}"
        ));
    }
    if let Some(letter) = name.chars().find(|&letter| !is_name_char(letter)) {
        return wrong(format!(
            "the property \"{}\" has {letter:?} in its name; names have no spaces and none of \
             \" $ {{ }} [ ]",
            name.escape_debug()
        ));
    }
    let bytes = value.to_string().len();
    if bytes > PROPERTY_BYTES {
        return wrong(format!(
            "the property \"{name}\" has {bytes} bytes; at most {PROPERTY_BYTES} are kept"
        ));
    }
    Ok(())
}

/// A value with another laid over it: one of the same type as the mode says, anything else is
/// replaced.
#[must_use]
pub fn merge(under: &Value, over: &Value, mode: InheritMode) -> Value {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) if mode.objects == Objects::Merge => {
            let mut merged = under.clone();
            for (key, value) in over {
                let value = match merged.get(key) {
                    Some(below) => merge(below, value, mode),
                    None => value.clone(),
                };
                merged.insert(key.clone(), value);
            }
            Value::Object(merged)
        }
        (Value::Array(under), Value::Array(over)) => match mode.lists {
            Others::Override => over.clone().into(),
            Others::Append => under.iter().chain(over).cloned().collect(),
            Others::Prepend => over.iter().chain(under).cloned().collect(),
        },
        (Value::String(under), Value::String(over)) => match mode.texts {
            Others::Override => over.as_str().into(),
            Others::Append => format!("{under}{over}").into(),
            Others::Prepend => format!("{over}{under}").into(),
        },
        _ => over.clone(),
    }
}

/// The text that a value becomes where a text is expected: a string itself, anything else
/// its JSON.
pub fn text_of(value: &Value) -> std::borrow::Cow<'_, str> {
    match value {
        Value::String(text) => text.into(),
        other => other.to_string().into(),
    }
}

/// What stands in a value at a key; of a list at a number.
pub(crate) fn within<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    match value {
        Value::Array(list) => list.get(key.parse::<usize>().ok()?),
        other => other.get(key),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_merged_key_by_key_and_all_else_is_replaced() {
        let under = json!({"a": 1, "b": {"x": 1, "y": [1, 2]}, "c": "text"});
        let over = json!({"a": {"deep": true}, "b": {"y": [3], "z": null}});
        let merged = json!({
            "a": {"deep": true}, "b": {"x": 1, "y": [3], "z": null}, "c": "text"
        });
        let usual = InheritMode::default();
        assert_eq!(merge(&under, &over, usual), merged);
        assert_eq!(merge(&json!([1]), &json!([2]), usual), json!([2]));
        assert_eq!(merge(&json!({"a": 1}), &json!("x"), usual), json!("x"));
    }

    #[test]
    fn a_mode_says_what_becomes_of_each_type() {
        let under = json!({"a": "x", "b": [1], "c": 1, "d": {"e": "y"}});
        let over = json!({"a": "-", "b": [2], "c": 2, "d": {"e": "+"}, "f": []});
        for (word, expected) in [
            (
                "moo",
                json!({"a": "-", "b": [2], "c": 2, "d": {"e": "+"}, "f": []}),
            ),
            (
                "maa",
                json!({"a": "x-", "b": [1, 2], "c": 2, "d": {"e": "y+"}, "f": []}),
            ),
            (
                "mpp",
                json!({"a": "-x", "b": [2, 1], "c": 2, "d": {"e": "+y"}, "f": []}),
            ),
            ("oaa", over.clone()),
        ] {
            let mode: InheritMode = serde_json::from_value(json!(word)).unwrap();
            assert_eq!(merge(&under, &over, mode), expected, "{word}");
            assert_eq!(json!(mode), word);
            assert_eq!(mode.is_usual(), word == "moo");
            // What is of another type is replaced.
            assert_eq!(merge(&json!([1]), &json!("x"), mode), json!("x"));
        }
        for wrong in ["", "mo", "aoo", "moo ", "xyz", "mooo"] {
            let read: Result<InheritMode, _> = serde_json::from_value(json!(wrong));
            assert!(read.is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn names_and_sizes_are_checked() {
        let check = |properties: &[Property]| check_properties("node", "n1", properties);
        let good = [
            Property::new("dns", json!("1.1.1.1")),
            Property::new("emo😄ji", json!(1)),
        ];
        assert_eq!(check(&good), Ok(()));
        for name in ["", "a b", "a\"b", "a$b", "a[b", "a}b", "a\u{10}b"] {
            assert!(check(&[Property::new(name, json!(1))]).is_err(), "{name:?}");
        }
        let twice = check(&[good[0].clone(), good[0].clone()]).unwrap_err();
        assert_eq!(
            twice.to_string(),
            "node \"n1\": the property \"dns\" is there twice"
        );
        let long = Property::new("long", json!("x".repeat(PROPERTY_BYTES)));
        assert!(check(&[long]).unwrap_err().message.contains("65538 bytes"));
    }
}
