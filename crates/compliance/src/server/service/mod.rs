//! HTTP: agents by their certificates and signatures, administrators by a token.

mod answers;
mod compliance;
mod definitions;
mod history;
mod nodes;
mod objects;
mod shapes;
mod system;
mod tree;

use std::path::PathBuf;
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use bytes::Bytes;
use http::header::{ETAG, HeaderValue, IF_NONE_MATCH};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use net::{Body, BodyError, Handler, Incoming, PeerCertificate, read_body};
use telemetry::prometheus;
use tokio::sync::mpsc;

use super::Limits;
use super::fleet::Compliance;
use super::generator::Task;
use super::intake::{Intake, Taken};
use super::ledger::Commands;
use super::metrics::{Gauges, Metrics};
use super::state::State;
use crate::acceptance::Standing;
use crate::model::node::ROOT;
use crate::reports::signature::NodeCertificate;
use answers::{ApiError, answer, json, text};

/// What all requests are answered with.
pub(crate) struct Service {
    pub(crate) intake: Intake,
    pub(crate) view: commit::View<State>,
    pub(crate) commands: Commands,
    pub(crate) compliance: Arc<Compliance>,
    pub(crate) tasks: mpsc::Sender<Task>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) token: String,
    pub(crate) database: PathBuf,
    pub(crate) limits: Limits,
    pub(crate) started: i64,
}

/// A call of the REST API: what it asks, without version.
struct Call<'a> {
    method: &'a Method,
    /// The parts of the path.
    path: Vec<&'a str>,
    query: Query,
    body: Bytes,
}

/// What follows `?`: keys and values.
#[derive(Debug, Default)]
struct Query(Vec<(String, String)>);

impl Query {
    fn of(text: Option<&str>) -> Self {
        let pairs = text.unwrap_or_default().split('&').take(256);
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        Self(
            pairs
                .map(|(key, value)| (unescaped(key), unescaped(value)))
                .collect(),
        )
    }

    fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| value.as_str())
    }
}

/// A text of an address with its `%` and `+` undone; what is no UTF-8 is replaced.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        let byte = match (first, after) {
            (b'+', _) => b' ',
            (b'%', [high, low, after @ ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                match (digit(high), digit(low)) {
                    (Some(high), Some(low)) => {
                        rest = after;
                        u8::try_from(high * 16 + low).unwrap_or(b'?')
                    }
                    _ => b'%',
                }
            }
            (byte, _) => *byte,
        };
        bytes.push(byte);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Handler for Service {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let path = head.uri.path().to_owned();
        let (first, rest) = match path.strip_prefix('/').unwrap_or(&path).split_once('/') {
            Some((first, rest)) => (first, rest),
            None => (path.trim_start_matches('/'), ""),
        };
        match (&head.method, first) {
            (&Method::GET, "health") => text(StatusCode::OK, "ok\n"),
            (&Method::GET, "metrics") => self.metrics(),
            (&Method::GET, "uuid") => text(StatusCode::OK, ROOT),
            (&Method::GET, "openapi.json") => {
                answer(StatusCode::OK, "application/json", system::OPENAPI)
            }
            (&Method::GET, "policies") => self.policy(rest, &head),
            (&Method::PUT, "reports" | "inventories" | "inventory-updates") => {
                let limit = self.limits.upload_bytes;
                match read_body(body, limit, self.limits.body_within).await {
                    Ok(body) => {
                        let taken = match first {
                            "reports" => self.intake.report(rest, body).await,
                            _ => self.intake.inventory(rest, body).await,
                        };
                        taken_answer(taken)
                    }
                    Err(error) => text(body_status(&error), format!("{error}\n")),
                }
            }
            (_, "rudder") => self.api(&head, rest, body).await,
            _ => text(StatusCode::NOT_FOUND, "there is nothing here\n"),
        }
    }
}

fn body_status(error: &BodyError) -> StatusCode {
    match error {
        BodyError::TooLong { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        BodyError::TooSlow { .. } => StatusCode::REQUEST_TIMEOUT,
        BodyError::Broken(_) => StatusCode::BAD_REQUEST,
    }
}

fn taken_answer(taken: Taken) -> Response<Body> {
    match taken {
        Ok((status, told)) => text(status, told),
        Err(refused) => text(refused.status, format!("{}\n", refused.why)),
    }
}

impl Service {
    /// A node's policy, for the one that has the node's key.
    fn policy(&self, rest: &str, head: &Parts) -> Response<Body> {
        let Some(node) = rest.strip_suffix("/rules/policy.json.gz") else {
            let told = "expected /policies/NODE/rules/policy.json.gz\n";
            return text(StatusCode::NOT_FOUND, told);
        };
        let forbid = |why: &str| {
            self.metrics.forbidden.add(1);
            text(StatusCode::FORBIDDEN, format!("{why}\n"))
        };
        let Some(PeerCertificate(shown)) = head.extensions.get() else {
            return forbid("show the node's certificate to get its policy");
        };
        let Ok(shown) = NodeCertificate::from_der(shown) else {
            return forbid("the certificate that was shown cannot be read");
        };
        let state = self.view.read();
        let Some(record) = state.nodes.get(node) else {
            return forbid("the node is not known; send an inventory first");
        };
        if !record.known.key.has_key_of(&shown) {
            return forbid("the certificate that was shown is not that of the node");
        }
        if record.known.standing != Standing::Accepted {
            return forbid("the node is pending: it has a policy once somebody accepts it");
        }
        let Some(served) = state.policies.get(node).cloned() else {
            return text(StatusCode::NOT_FOUND, "the node has no policy yet\n");
        };
        drop(state);
        let tag = format!("\"{}\"", served.config_id);
        let known = head.headers.get(IF_NONE_MATCH);
        let mut response = if known.is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
            self.metrics.unchanged.add(1);
            answer(StatusCode::NOT_MODIFIED, "application/gzip", "")
        } else {
            self.metrics.fetched.add(1);
            answer(StatusCode::OK, "application/gzip", served.document)
        };
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            response.headers_mut().insert(ETAG, tag);
        }
        response
    }

    fn metrics(&self) -> Response<Body> {
        let (mut pending, mut accepted) = (0, 0);
        for node in self.view.read().nodes.values() {
            match node.known.standing {
                Standing::Pending => pending += 1,
                Standing::Accepted => accepted += 1,
            }
        }
        let compliance = self.compliance.lock().fleet.global().global_percent();
        let text = self.metrics.text(Gauges {
            writer: self.commands.counts(),
            pending,
            accepted,
            compliance,
            database_bytes: self.database_bytes(),
        });
        answer(StatusCode::OK, prometheus::CONTENT_TYPE, text)
    }

    /// `/rudder/api/VERSION/…`
    async fn api(&self, head: &Parts, rest: &str, body: Incoming) -> Response<Body> {
        self.metrics.calls.add(1);
        let mut path: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
        if path.first() != Some(&"api") || path.len() < 3 {
            return text(StatusCode::NOT_FOUND, "expected /rudder/api/latest/…\n");
        }
        path.drain(..2);
        let open = path == ["system", "status"];
        if !open && !self.knows_token(head) {
            self.metrics.unauthorised.add(1);
            let why = "the header X-API-Token is missing or not the server's token";
            return ApiError::new(StatusCode::UNAUTHORIZED, why).answer("authentication");
        }
        let body = match read_body(body, self.limits.call_bytes, self.limits.body_within).await {
            Ok(body) => body,
            Err(error) => return ApiError::new(body_status(&error), error).answer("read"),
        };
        let path: Vec<String> = path.into_iter().map(unescaped).collect();
        let call = Call {
            method: &head.method,
            path: path.iter().map(String::as_str).collect(),
            query: Query::of(head.uri.query()),
            body,
        };
        let action = action(&call);
        match self.called(&call).await {
            Ok(data) => json(StatusCode::OK, &action, data),
            Err(error) => error.answer(&action),
        }
    }

    fn knows_token(&self, head: &Parts) -> bool {
        let shown = head.headers.get("x-api-token");
        let shown = shown.map(HeaderValue::as_bytes).unwrap_or_default();
        verify_slices_are_equal(shown, self.token.as_bytes()).is_ok()
    }

    async fn called(&self, call: &Call<'_>) -> Result<serde_json::Value, ApiError> {
        let get = call.method == Method::GET;
        match &call.path[..] {
            ["compliance", "history"] if get => self.history(call),
            ["rules", id, "changes"] if get => Ok(self.changes(id)),
            [.., "compliance", "system"] | [.., "compliance", "byNode"] | [.., "compliance"]
                if get =>
            {
                self.compliance_of(call).await
            }
            ["compliance", ..] if get => self.compliance_of(call).await,
            ["nodes", ..] => self.nodes(call).await,
            ["definitions", ..] => self.definitions(call).await,
            ["system", what] if get => self.system(what).await,
            [
                "rules" | "directives" | "groups" | "techniques" | "parameters" | "settings",
                ..,
            ] if get => self.objects(call),
            _ => Err(ApiError::no_such_call(call.method, &call.path)),
        }
    }
}

/// The name of what is done, as Rudder's answers tell it.
fn action(call: &Call<'_>) -> String {
    let of = call.path.first().copied().unwrap_or_default();
    if call.path.contains(&"compliance") {
        return match of {
            "compliance" if call.path.len() == 1 => "getGlobalCompliance".into(),
            _ => "getCompliance".into(),
        };
    }
    let verb = match *call.method {
        Method::GET if call.path.len() == 1 => "list",
        Method::GET => "get",
        Method::DELETE => "delete",
        _ => "update",
    };
    let mut letters = of.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    let rest = letters.as_str();
    let name: String = first.into_iter().chain(rest.chars()).collect();
    format!("{verb}{name}")
}
