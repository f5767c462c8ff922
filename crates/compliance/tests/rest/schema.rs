//! Answers held against `/openapi.json`: as much of JSON Schema as it uses.

use http::Method;
use serde_json::Value;

/// `/openapi.json`
pub(crate) struct Document(pub(crate) Value);

impl Document {
    /// Each call: its method, its path and what is said of it.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (&str, &str, &Value)> {
        let paths = self.0["paths"].as_object().unwrap().iter();
        paths.flat_map(|(path, calls)| {
            let path = path.strip_prefix("/rudder/api/latest/").unwrap();
            let calls = calls.as_object().unwrap().iter();
            calls.map(move |(method, call)| (method.as_str(), path, call))
        })
    }

    /// Holds a successful answer against what is said of the call.
    pub(crate) fn check(&self, method: &Method, path: &str, body: &Value) {
        let path = path.split('?').next().unwrap_or_default();
        let given: Vec<&str> = path.split('/').collect();
        let fits = |known: &str| {
            let known: Vec<&str> = known.split('/').collect();
            let mut pairs = known.iter().zip(&given);
            let same = pairs.all(|(known, given)| known.starts_with('{') || known == given);
            known.len() == given.len() && same
        };
        let method = method.as_str().to_ascii_lowercase();
        let mut found: Vec<_> = self
            .calls()
            .filter(|(by, known, _)| *by == method && fits(known))
            .collect();
        found.sort_by_key(|(_, known, _)| known.matches('{').count());
        let (_, known, call) = found.first().expect("a call of the document");
        let schema = &call["responses"]["200"]["content"]["application/json"]["schema"];
        let mut wrong = Vec::new();
        self.walk(schema, body, "", &mut wrong);
        assert!(wrong.is_empty(), "{method} {known}: {wrong:?}\n{body:#}");
    }

    fn walk(&self, schema: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
        if let Some(name) = schema["$ref"].as_str() {
            let pointer = name.strip_prefix('#').unwrap();
            let meant = self.0.pointer(pointer).expect("what is referred to");
            return self.walk(meant, value, at, wrong);
        }
        if let Some(forms) = schema["anyOf"].as_array() {
            let fits = forms.iter().any(|form| {
                let mut wrong = Vec::new();
                self.walk(form, value, at, &mut wrong);
                wrong.is_empty()
            });
            if !fits {
                wrong.push(format!("{at}: none of the forms"));
            }
            return;
        }
        let is = match schema["type"].as_str() {
            None => true,
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("string") => value.is_string(),
            Some("boolean") => value.is_boolean(),
            Some("integer") => value.is_i64() || value.is_u64(),
            Some("number") => value.is_number(),
            Some(other) => panic!("{other} is no type"),
        };
        let words = schema["enum"].as_array();
        let allowed = words.is_none_or(|words| words.contains(value))
            && schema.get("const").is_none_or(|constant| constant == value);
        if !is || !allowed {
            wrong.push(format!("{at}: {value} is not {schema}"));
            return;
        }
        for (place, item) in value.as_array().into_iter().flatten().enumerate() {
            self.walk(&schema["items"], item, &format!("{at}[{place}]"), wrong);
        }
        let Some(entries) = value.as_object().filter(|_| schema["type"] == "object") else {
            return;
        };
        for (key, entry) in entries {
            let at = format!("{at}.{key}");
            match (
                schema["properties"].get(key),
                &schema["additionalProperties"],
            ) {
                (Some(schema), _) => self.walk(schema, entry, &at, wrong),
                (None, Value::Bool(false)) => wrong.push(format!("{at}: nobody told of it")),
                (None, Value::Null) => {}
                (None, schema) => self.walk(schema, entry, &at, wrong),
            }
        }
        for key in schema["required"].as_array().into_iter().flatten() {
            if entries.get(key.as_str().unwrap()).is_none() {
                wrong.push(format!("{at}: {key} is missing"));
            }
        }
    }
}
