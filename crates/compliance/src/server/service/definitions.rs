//! All definitions at once: to look at, to plan, to put in the place of what is there.

use std::sync::Arc;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::answers::ApiError;
use super::{Call, Service};
use crate::definitions::Definitions;
use crate::server::generator::{DefineError, Task};

impl From<DefineError> for ApiError {
    fn from(error: DefineError) -> Self {
        match error {
            DefineError::Refusal(refusal) => refusal.into(),
            other => Self::new(StatusCode::UNPROCESSABLE_ENTITY, other),
        }
    }
}

impl Service {
    pub(super) async fn definitions(&self, call: &Call<'_>) -> Result<Value, ApiError> {
        match (call.method, &call.path[1..]) {
            (&Method::GET, []) => {
                let state = self.view.read();
                let (all, version) = (Arc::clone(&state.definitions), state.version);
                drop(state);
                Ok(json!({"version": version, "definitions": *all}))
            }
            (&Method::POST, ["plan"]) => self.define(call, None).await,
            (&Method::PUT, []) => {
                let base = call.query.get("base").map(str::parse);
                let Some(Ok(base)) = base else {
                    let why = "expected ?base=VERSION, the version that the plan was made for";
                    return Err(ApiError::bad(why));
                };
                self.define(call, Some(base)).await
            }
            _ => Err(ApiError::no_such_call(call.method, &call.path)),
        }
    }

    async fn define(&self, call: &Call<'_>, base: Option<i64>) -> Result<Value, ApiError> {
        let definitions: Definitions = serde_json::from_slice(&call.body)
            .map_err(|error| ApiError::bad(format!("the definitions: {error}")))?;
        let (answer, hear) = oneshot::channel();
        let task = Task::Define {
            definitions: Arc::new(definitions),
            base,
            answer,
        };
        let gone = "the server stops";
        let sent = self.tasks.send(task).await;
        sent.map_err(|_| ApiError::unavailable(gone))?;
        let plan = hear.await.map_err(|_| ApiError::unavailable(gone))??;
        Ok(json!({"plan": plan}))
    }
}
