//! What is defined, as lists and one by one.

use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

use super::answers::ApiError;
use super::{Call, Service};

impl Service {
    pub(super) fn objects(&self, call: &Call<'_>) -> Result<Value, ApiError> {
        let all = std::sync::Arc::clone(&self.view.read().definitions);
        let rest = &call.path[1..];
        match call.path.first().copied().unwrap_or_default() {
            "rules" => of("rules", "rule", &all.rules, rest),
            "directives" => of("directives", "directive", &all.directives, rest),
            "groups" => of("groups", "group", &all.groups, rest),
            "parameters" => of("parameters", "parameter", &all.parameters, rest),
            "techniques" => {
                let wanted = rest.join("/");
                let techniques = all.techniques.iter();
                let found = techniques.filter(|(key, technique)| {
                    wanted.is_empty() || **key == wanted || technique.id == wanted
                });
                let found: Vec<_> = found.map(|(_, technique)| technique).collect();
                if found.is_empty() && !wanted.is_empty() {
                    return Err(ApiError::not_found("technique", &wanted));
                }
                Ok(json!({"techniques": found}))
            }
            "settings" if rest.is_empty() => Ok(json!({"settings": all.settings})),
            _ => Err(ApiError::no_such_call(call.method, &call.path)),
        }
    }
}

fn of<T: Serialize>(
    name: &str,
    kind: &str,
    all: &BTreeMap<String, T>,
    rest: &[&str],
) -> Result<Value, ApiError> {
    match rest {
        [] => Ok(json!({name: all.values().collect::<Vec<_>>()})),
        [id] => match all.get(*id) {
            Some(one) => Ok(json!({name: [one]})),
            None => Err(ApiError::not_found(kind, id)),
        },
        _ => Err(ApiError::not_found(kind, &rest.join("/"))),
    }
}
