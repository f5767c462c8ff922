//! `/openapi.json`, made of the table of calls.

use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use super::route::{Input, Route, Verb};
use super::routes;
use super::schema::{Documents, Schema};
use crate::server::state::Access;

/// The document; it is made once.
pub(in super::super) fn document() -> &'static str {
    static MADE: OnceLock<String> = OnceLock::new();
    MADE.get_or_init(|| format!("{:#}", made()))
}

fn made() -> Value {
    let mut objects = Documents::default();
    let mut paths: Map<String, Value> = Map::new();
    for route in routes() {
        let path = format!("/rudder/api/latest/{}", route.path);
        let calls = paths.entry(path).or_insert_with(|| json!({}));
        calls[route.method.name().to_ascii_lowercase()] = call(route, &mut objects);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "headroom compliance",
            "version": super::VERSION.to_string(),
            "description": "The part of Rudder's REST API that is there, and definitions as a whole.",
        },
        "security": [{"token": []}],
        "components": {
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "X-API-Token"},
            },
            "schemas": objects.into_json(),
        },
        "paths": paths,
    })
}

fn call(route: &'static Route, objects: &mut Documents) -> Value {
    let names = route.path.split('/').filter_map(|part| {
        let name = part.strip_prefix('{')?;
        name.strip_suffix('}')
    });
    let mut parameters: Vec<Value> = names
        .map(|name| {
            let schema = objects.of(&Schema::Text(1 << 10));
            json!({"name": name, "in": "path", "required": true, "schema": schema})
        })
        .collect();
    parameters.extend(route.query.iter().map(|one| {
        let schema = objects.of(one.schema);
        json!({"name": one.name, "in": "query", "description": one.note, "schema": schema})
    }));
    let (key, schema) = route.output;
    let data = match key {
        "" => objects.of(schema),
        key => json!({
            "type": "object",
            "properties": {key: objects.of(schema)},
            "required": [key],
            "additionalProperties": false,
        }),
    };
    let envelope = json!({
        "type": "object",
        "properties": {
            "action": {"const": route.action},
            "result": {"const": "success"},
            "id": {"type": "string"},
            "data": data,
        },
        "required": ["action", "result", "data"],
    });
    let mut made = json!({
        "operationId": operation(route),
        "summary": route.summary,
        "parameters": parameters,
        "responses": {
            "200": {
                "description": "Done.",
                "content": {"application/json": {"schema": envelope}},
            },
            "default": {
                "description": "Not done: result is error, errorDetails says why, fields names \
                                what is wrong, managedBy who manages it. Of decisions about \
                                several nodes data tells which were made (nodes) and which \
                                were not, and why (undecided).",
            },
        },
    });
    if let Input::Checked(schema) | Input::Read(schema) = route.input {
        made["requestBody"] = json!({
            "required": true,
            "content": {"application/json": {"schema": objects.of(schema)}},
        });
    }
    match route.access {
        Access::Open => made["security"] = json!([]),
        Access::Read => {}
        Access::Write => made["description"] = "Takes a token that may write.".into(),
        Access::Admin => made["description"] = "Takes the administrator's token.".into(),
    }
    made
}

/// A name that no other call has.
fn operation(route: &Route) -> String {
    let verb = match route.method {
        Verb::Get => "get",
        Verb::Put => "create",
        Verb::Post => "update",
        Verb::Delete => "delete",
    };
    let parts = route
        .path
        .split('/')
        .map(|part| part.trim_matches(['{', '}']));
    parts.fold(verb.to_owned(), |name, part| format!("{name}_{part}"))
}
