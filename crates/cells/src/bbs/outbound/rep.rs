//! Calls to reps, found by the presence of their cell.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use diego::TRACE_HEADER;
use diego::models::{ActualLrpInstanceKey, ActualLrpKey, CellPresence};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request};
use http_body_util::Full;
use net::Client;
use serde::Serialize;

use super::super::metrics::Metrics;
use super::super::presence::Presences;

/// Why a rep did not do as it was told.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RepError {
    /// The cell has no presence.
    #[error("cell {0} is not present")]
    NoCell(String),
    /// It answered something else than success.
    #[error("http error: status code {0}")]
    Status(String),
    /// It did not answer.
    #[error("{0}")]
    Call(String),
}

/// All reps.
pub(crate) struct Reps {
    pub(crate) client: Client,
    pub(crate) presences: Arc<Presences>,
    pub(crate) metrics: Arc<Metrics>,
}

#[derive(Serialize)]
struct Update<'a> {
    instance_guid: &'a str,
    process_guid: &'a str,
    index: i32,
    domain: &'a str,
    internal_routes: Option<Vec<Route<'a>>>,
    metric_tags: Option<&'a BTreeMap<String, String>>,
}

#[derive(Serialize)]
struct Route<'a> {
    hostname: &'a str,
}

fn routes(hostnames: &[String]) -> Vec<Route<'_>> {
    let names = hostnames.iter();
    names.map(|hostname| Route { hostname }).collect()
}

impl Reps {
    /// Stops an instance.
    pub(crate) async fn stop(
        &self,
        process_guid: &str,
        instance: &ActualLrpInstanceKey,
        trace: &str,
    ) -> Result<(), RepError> {
        let cell = self.cell(&instance.cell_id)?;
        let guid = &instance.instance_guid;
        let path = format!("/v1/lrps/{process_guid}/instances/{guid}/stop");
        self.call(&cell, Method::POST, &path, Some(Bytes::new()), trace)
            .await
    }

    /// Tells an instance its routes and tags; what is `None` stays as it is.
    pub(super) async fn update(
        &self,
        key: &ActualLrpKey,
        instance: &ActualLrpInstanceKey,
        internal_routes: Option<&[String]>,
        metric_tags: Option<&BTreeMap<String, String>>,
        trace: &str,
    ) -> Result<(), RepError> {
        let cell = self.cell(&instance.cell_id)?;
        let (process, guid) = (&key.process_guid, &instance.instance_guid);
        let body = serde_json::to_vec(&Update {
            instance_guid: guid,
            process_guid: process,
            index: key.index,
            domain: &key.domain,
            internal_routes: internal_routes.map(routes),
            metric_tags,
        })
        .map_err(|error| RepError::Call(error.to_string()))?;
        let path = format!("/v2/lrps/{process}/instances/{guid}");
        self.call(&cell, Method::PUT, &path, Some(body.into()), trace)
            .await
    }

    /// Cancels a task.
    pub(super) async fn cancel(
        &self,
        task_guid: &str,
        cell: &str,
        trace: &str,
    ) -> Result<(), RepError> {
        let cell = self.cell(cell)?;
        let path = format!("/v1/tasks/{task_guid}/cancel");
        self.call(&cell, Method::POST, &path, None, trace).await
    }

    fn cell(&self, id: &str) -> Result<Arc<CellPresence>, RepError> {
        let cell = self.presences.cell(id, Instant::now());
        cell.ok_or_else(|| RepError::NoCell(id.to_owned()))
    }

    async fn call(
        &self,
        cell: &CellPresence,
        method: Method,
        path: &str,
        json: Option<Bytes>,
        trace: &str,
    ) -> Result<(), RepError> {
        self.metrics.rep_calls.add(1);
        let url = if cell.rep_url.is_empty() {
            &cell.rep_address
        } else {
            &cell.rep_url
        };
        let uri = format!("{}{path}", url.trim_end_matches('/'));
        let mut request = Request::builder().method(method).uri(uri);
        if json.is_some() {
            request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if !trace.is_empty() {
            request = request.header(TRACE_HEADER, trace);
        }
        let request = request
            .body(Full::new(json.unwrap_or_default()))
            .map_err(|error| RepError::Call(error.to_string()))?;
        match self.client.request(request).await {
            Ok(answer) if answer.status.is_success() => Ok(()),
            Ok(answer) => {
                let reason = answer.status.canonical_reason().unwrap_or("unknown");
                let text = format!("{} ({reason})", answer.status.as_u16());
                Err(RepError::Status(text))
            }
            Err(error) => Err(RepError::Call(error.to_string())),
        }
    }
}
