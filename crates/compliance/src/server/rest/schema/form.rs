//! What a form has, as the JSON that it stands for: a form knows texts alone.

use serde_json::{Map, Value};

use super::super::query::Query;
use super::Schema;

impl Schema {
    /// Is it an object of known keys, as a form is?
    pub(in super::super) fn is_object(&self) -> bool {
        matches!(self, Self::Object(..))
    }

    /// The object that a form stands for. A list is a key that comes several times, with or without
    /// `[]`, or one that has commas; what is neither text nor list is JSON. Whatever does not fit is
    /// left as it is for the check to tell.
    pub(in super::super) fn of_form(&self, form: &Query) -> Value {
        let Self::Object(_, fields) = self else {
            return Value::Null;
        };
        let mut object = Map::new();
        for (key, text) in form.pairs() {
            let name = key.strip_suffix("[]").unwrap_or(key);
            if name.is_empty() {
                continue;
            }
            let field = fields.iter().find(|field| field.name == name);
            match field.map(|field| field.schema) {
                Some(Self::List(of, _)) => {
                    let list = object
                        .entry(name)
                        .or_insert_with(|| Value::Array(Vec::new()));
                    if let Value::Array(list) = list {
                        list.extend(of.values(text));
                    }
                }
                Some(schema) => drop(object.insert(name.to_owned(), schema.value(text))),
                None => drop(object.insert(name.to_owned(), text.into())),
            }
        }
        Value::Object(object)
    }

    /// Elements of a list of these.
    fn values(&self, text: &str) -> Vec<Value> {
        if let Ok(Value::Array(list)) = serde_json::from_str(text) {
            return list;
        }
        match self {
            Self::Text(_) | Self::Identity | Self::Target => {
                let parts = text.split(',').filter(|part| !part.is_empty());
                parts.map(Value::from).collect()
            }
            one => vec![one.value(text)],
        }
    }

    fn value(&self, text: &str) -> Value {
        match self {
            Self::Text(_)
            | Self::Identity
            | Self::Name
            | Self::PropertyName
            | Self::Word(_)
            | Self::Target => text.into(),
            _ => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
        }
    }
}
