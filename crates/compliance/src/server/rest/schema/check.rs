//! Whether a value is what a schema says, and which field is not.

use std::fmt;

use serde_json::{Map, Value};

use super::{Field, Schema};
use crate::model::property::{PROPERTY_NAME_BYTES, is_name_char};
use crate::model::target::Target;
use crate::model::{NAME_BYTES, check_id};

/// Fields that are named at once.
const NAMED: usize = 16;

/// A field that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Wrong {
    /// Its path: `targets[0].include`; empty for the whole body.
    pub(in super::super) field: String,
    /// What was found, what was expected.
    pub(in super::super) message: String,
}

impl Wrong {
    pub(in super::super) fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => write!(f, "the body: {}", self.message),
            field => write!(f, "{field}: {}", self.message),
        }
    }
}

impl Schema {
    /// What is wrong with a value, at most some fields of it.
    pub(in super::super) fn check(&self, value: &Value) -> Vec<Wrong> {
        let mut wrong = Vec::new();
        self.walk(value, "", &mut wrong);
        wrong
    }

    /// What is wrong with a value that an address has.
    pub(in super::super) fn check_text(&self, field: &str, text: &str) -> Vec<Wrong> {
        let value = match self {
            Self::Number(..) => text
                .parse::<i64>()
                .map_or_else(|_| text.into(), Value::from),
            Self::Flag => text
                .parse::<bool>()
                .map_or_else(|_| text.into(), Value::from),
            _ => text.into(),
        };
        let mut wrong = Vec::new();
        self.walk(&value, field, &mut wrong);
        wrong
    }

    fn walk(&self, value: &Value, path: &str, wrong: &mut Vec<Wrong>) {
        if wrong.len() >= NAMED {
            return;
        }
        match (self, value) {
            (Self::List(of, most), Value::Array(values)) => {
                if values.len() > *most {
                    let found = values.len();
                    let message = format!("{found} entries; at most {most} are kept");
                    wrong.push(Wrong::new(path, message));
                }
                for (place, value) in values.iter().take(*most).enumerate() {
                    of.walk(value, &format!("{path}[{place}]"), wrong);
                }
            }
            (Self::Pair(first, second), Value::Array(values)) if values.len() == 2 => {
                for (place, of) in [first, second].into_iter().enumerate() {
                    of.walk(&values[place], &format!("{path}[{place}]"), wrong);
                }
            }
            (Self::Map(of), Value::Object(entries)) => {
                for (key, value) in entries {
                    of.walk(value, &below(path, key), wrong);
                }
            }
            (Self::Object(_, fields), Value::Object(entries)) => {
                object(fields, entries, path, wrong);
            }
            (Self::Either(forms), value) => either(forms, value, path, wrong),
            (one, value) => {
                if let Some(message) = one.single(value) {
                    wrong.push(Wrong::new(path, message));
                }
            }
        }
    }

    /// What is wrong with a value that holds no others.
    fn single(&self, value: &Value) -> Option<String> {
        let text = value.as_str();
        let message = match (self, text) {
            (Self::Any, _) => return None,
            (Self::Flag, _) if value.is_boolean() => return None,
            (Self::Share, _) if value.is_number() => return None,
            (Self::Number(least, most), _) => {
                let fits = |number: i64| (*least..=*most).contains(&number);
                return (!value.as_i64().is_some_and(fits)).then(|| self.expected(value));
            }
            (Self::Text(most), Some(text)) => (text.len() > *most)
                .then(|| format!("{} bytes; at most {most} are kept", text.len()))?,
            (Self::Identity, Some(text)) => check_id("", text).err()?.message,
            (Self::Name, Some("")) => "the name is empty".into(),
            (Self::Name, Some(text)) => (text.len() > NAME_BYTES)
                .then(|| format!("{} bytes; at most {NAME_BYTES} are kept", text.len()))?,
            (Self::PropertyName, Some(text)) => property_name(text)?,
            (Self::Word(words), Some(text)) if words.contains(&text) => return None,
            (Self::Target, Some(text)) => text.parse::<Target>().err()?.to_string(),
            _ => self.expected(value),
        };
        Some(message)
    }

    fn expected(&self, found: &Value) -> String {
        format!("found {}; expected {}", shortened(found), self.words())
    }

    fn words(&self) -> String {
        match self {
            Self::Any => "anything".into(),
            Self::Flag => "true or false".into(),
            Self::Number(least, most) => format!("a whole number from {least} to {most}"),
            Self::Share => "a number".into(),
            Self::Text(_) | Self::Identity | Self::Name | Self::PropertyName => "a text".into(),
            Self::Word(words) => words.join(", "),
            Self::Target => "a target such as special:all".into(),
            Self::List(..) => "a list".into(),
            Self::Pair(first, second) => {
                format!("a list of two: {} and {}", first.words(), second.words())
            }
            Self::Map(_) => "an object".into(),
            Self::Object(_, fields) => {
                let names: Vec<_> = fields.iter().map(|field| field.name).collect();
                format!("an object of {}", names.join(", "))
            }
            Self::Either(forms) => {
                let words: Vec<_> = forms.iter().map(|form| form.words()).collect();
                words.join(", or ")
            }
        }
    }

    /// Is it meant for such a value at all?
    fn is_for(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Object(_, fields), Value::Object(entries)) => {
                let mut needed = fields.iter().filter(|field| field.needed);
                needed.all(|field| entries.contains_key(field.name))
            }
            (Self::List(..) | Self::Pair(..), _) => value.is_array(),
            (Self::Map(_), _) => value.is_object(),
            (Self::Object(..), _) => false,
            (Self::Either(forms), _) => forms.iter().any(|form| form.is_for(value)),
            (Self::Flag, _) => value.is_boolean(),
            (Self::Number(..) | Self::Share, _) => value.is_number(),
            (Self::Any, _) => true,
            _ => value.is_string(),
        }
    }
}

fn object(fields: &[Field], entries: &Map<String, Value>, path: &str, wrong: &mut Vec<Wrong>) {
    for (key, value) in entries {
        match fields.iter().find(|field| field.name == key) {
            Some(field) => field.schema.walk(value, &below(path, key), wrong),
            None => {
                let names: Vec<_> = fields.iter().map(|field| field.name).collect();
                let message = format!("no such field; there are {}", names.join(", "));
                wrong.push(Wrong::new(below(path, key), message));
            }
        }
    }
    for field in fields.iter().filter(|field| field.needed) {
        if !entries.contains_key(field.name) {
            let message = format!("it is missing; expected {}", field.schema.words());
            wrong.push(Wrong::new(below(path, field.name), message));
        }
    }
}

/// The form that the value seems to have says what is wrong with it.
fn either(forms: &[&Schema], value: &Value, path: &str, wrong: &mut Vec<Wrong>) {
    let mut meant = forms.iter().filter(|form| form.is_for(value));
    let Some(first) = meant.next() else {
        let words: Vec<_> = forms.iter().map(|form| form.words()).collect();
        let found = shortened(value);
        let message = format!("found {found}; expected {}", words.join(", or "));
        wrong.push(Wrong::new(path, message));
        return;
    };
    let mut found = Vec::new();
    first.walk(value, path, &mut found);
    for other in meant {
        if found.is_empty() {
            return;
        }
        let mut again = Vec::new();
        other.walk(value, path, &mut again);
        if again.is_empty() {
            return;
        }
    }
    wrong.extend(found);
}

fn below(path: &str, key: &str) -> String {
    match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    }
}

fn property_name(text: &str) -> Option<String> {
    if text.is_empty() || text.len() > PROPERTY_NAME_BYTES {
        let found = text.len();
        return Some(format!(
            "the name has {found} bytes; expected 1 to {PROPERTY_NAME_BYTES}"
        ));
    }
    let letter = text.chars().find(|&letter| !is_name_char(letter))?;
    Some(format!(
        "{letter:?} cannot be in the name: no spaces, and none of \" $ {{ }} [ ]"
    ))
}

/// A value as a message shows it.
fn shortened(value: &Value) -> String {
    let text = match value {
        Value::Array(_) => return "a list".into(),
        Value::Object(_) => return "an object".into(),
        other => other.to_string(),
    };
    match text.floor_char_boundary(64) {
        end if end < text.len() => format!("{}…", &text[..end]),
        _ => text,
    }
}
