//! Answers: plain texts for agents, Rudder's envelope for the REST API.

use http::{Method, Response, StatusCode};
use net::Body;
use serde_json::{Value, json};

use super::route::Turn;
use super::schema::Wrong;

/// Who defined an object that cannot be changed by the API.
pub(super) const FOLDER: &str = "folder";
/// An object that was made by the API.
pub(super) const API: &str = "api";

/// Why a call of the API is not answered.
#[derive(Debug)]
pub(in super::super) struct ApiError {
    status: StatusCode,
    details: String,
    /// Fields that are wrong.
    fields: Vec<String>,
    /// Who manages what was to be changed.
    managed_by: Option<&'static str>,
    /// What was done all the same, and what was not.
    data: Option<Value>,
}

impl ApiError {
    pub(super) fn new(status: StatusCode, details: impl ToString) -> Self {
        Self {
            status,
            details: details.to_string(),
            fields: Vec::new(),
            managed_by: None,
            data: None,
        }
    }

    /// What was asked about is not there.
    pub(super) fn not_found(kind: &str, id: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            format!("there is no {kind} \"{id}\""),
        )
    }

    pub(super) fn bad(details: impl ToString) -> Self {
        Self::new(StatusCode::BAD_REQUEST, details)
    }

    /// These fields are wrong.
    pub(super) fn wrong(wrong: Vec<Wrong>) -> Self {
        let details: Vec<_> = wrong.iter().map(ToString::to_string).collect();
        Self {
            fields: wrong.into_iter().map(|one| one.field).collect(),
            ..Self::bad(details.join("; "))
        }
    }

    /// One field is wrong.
    pub(super) fn field(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::wrong(vec![Wrong::new(field, message)])
    }

    pub(super) fn conflict(details: impl ToString) -> Self {
        Self::new(StatusCode::CONFLICT, details)
    }

    /// A part was done, as `data` tells.
    pub(super) fn in_part(details: impl ToString, data: Value) -> Self {
        Self {
            data: Some(data),
            ..Self::conflict(details)
        }
    }

    /// Something is not the API's to change.
    pub(super) fn managed(by: &'static str, details: impl ToString) -> Self {
        Self {
            managed_by: Some(by),
            ..Self::conflict(details)
        }
    }

    /// The server cannot say, now.
    pub(super) fn unavailable(details: impl ToString) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, details)
    }

    pub(super) fn no_such_call(method: &Method, path: &[&str]) -> Self {
        let details = format!(
            "there is no call {method} /{}; /openapi.json lists all",
            path.join("/")
        );
        Self::new(StatusCode::NOT_FOUND, details)
    }

    /// There are other calls of this path.
    pub(super) fn other_method(method: &Method, path: &[&str], known: &[&str]) -> Self {
        let details = format!(
            "there is no call {method} /{}; expected {}",
            path.join("/"),
            known.join(" or ")
        );
        Self::new(StatusCode::METHOD_NOT_ALLOWED, details)
    }
}

/// What a call came to.
#[derive(Debug)]
pub(super) struct CallResult {
    /// The identity that it was about.
    pub(super) id: Option<String>,
    /// An object; or a text, a table for spreadsheets, which has no envelope.
    pub(super) data: Value,
    /// Its turn, if it is long.
    pub(super) turn: Option<Turn>,
}

/// An object with one value, which is moved there: `json!` would copy all of it.
pub(super) fn under(key: &str, value: Value) -> Value {
    Value::Object([(key.to_owned(), value)].into_iter().collect())
}

/// An answer in Rudder's envelope.
pub(super) fn enveloped(
    action: &str,
    done: Result<CallResult, ApiError>,
    pretty: bool,
) -> Response<Body> {
    let (status, body) = match done {
        Ok(CallResult {
            data: Value::String(table),
            ..
        }) => return net::response(StatusCode::OK, "text/csv; charset=utf-8", table),
        Ok(CallResult { id, data, .. }) => {
            let mut body = under("data", data);
            body["action"] = action.into();
            body["result"] = "success".into();
            if let Some(id) = id {
                body["id"] = id.into();
            }
            (StatusCode::OK, body)
        }
        Err(error) => {
            let details = error.details;
            let mut body = json!({"action": action, "result": "error", "errorDetails": details});
            if !error.fields.is_empty() {
                body["fields"] = error.fields.into();
            }
            if let Some(by) = error.managed_by {
                body["managedBy"] = by.into();
            }
            if let Some(data) = error.data {
                body["data"] = data;
            }
            (error.status, body)
        }
    };
    let text = if pretty {
        format!("{body:#}")
    } else {
        body.to_string()
    };
    net::response(status, "application/json", text)
}
