//! HTTP: agents by their certificates and signatures, administrators by a token.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ETAG, HeaderValue, IF_NONE_MATCH};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use net::{Body, Handler, Incoming, PeerCertificate};
use telemetry::{Logger, prometheus};
use tokio::sync::{Semaphore, mpsc};

use super::Limits;
use super::fleet::Compliance;
use super::generator::Task;
use super::intake::Intake;
use super::ledger::{Absence, Commands};
use super::metrics::{Gauges, Metrics};
use super::page::page;
use super::relays::hands_on;
use super::rest::{openapi, unescaped};
use super::signing::Signing;
use super::state::{State, TokenHash};
use crate::acceptance::NodeStatus;
use crate::model::node::ROOT;
use crate::reports::signature::NodeCertificate;
use crate::uploads::UploadResult;

/// Long answers that are made at once; further ones wait. Each may take some seconds of a core.
pub(crate) const TURNS: usize = 2;

/// What all requests are answered with.
pub(crate) struct Service {
    pub(crate) intake: Intake,
    /// Whether the database is away.
    pub(crate) absence: Arc<Absence>,
    pub(crate) view: commit::View<State>,
    pub(crate) commands: Commands,
    pub(crate) compliance: Arc<Compliance>,
    pub(crate) tasks: mpsc::Sender<Task>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) signing: Signing,
    /// Hash of the administrator's token.
    pub(crate) token: TokenHash,
    /// The database's file, if it is one.
    pub(crate) database: Option<PathBuf>,
    pub(crate) limits: Limits,
    /// Turns of calls whose answers are long.
    pub(crate) turns: Arc<Semaphore>,
    pub(crate) started: i64,
    pub(crate) logger: Logger,
}

/// Takes requests. What may change something goes on to its end, whatever becomes of the peer:
/// what is durable is also told to those who work with it. A peer does not wait for a database
/// that stays away.
pub(crate) struct Front(pub(super) Arc<Service>);

impl Handler for Front {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let service = Arc::clone(&self.0);
        if request.method() == Method::GET {
            return service.answered(request).await;
        }
        let absence = &self.0.absence;
        if absence.is_too_long() {
            if request.uri().path().starts_with("/reports/") {
                service.metrics.failed.add(1);
            }
            let told = "the database is away, so that nothing can be kept; send it again\n";
            return net::plain_text(StatusCode::SERVICE_UNAVAILABLE, told);
        }
        let answered = async move { service.answered(request).await };
        tokio::select! {
            answer = tokio::spawn(net::boxed(answered)) => answer.unwrap_or_else(|_| {
                let told = "the request could not be carried out; the server's log says why\n";
                net::plain_text(StatusCode::INTERNAL_SERVER_ERROR, told)
            }),
            () = absence.too_long() => {
                let told = "the database went away: whether it is kept is not known yet; send it \
                            again\n";
                net::plain_text(StatusCode::SERVICE_UNAVAILABLE, told)
            }
        }
    }
}

impl Service {
    async fn answered(&self, request: Request<Incoming>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let path = head.uri.path().to_owned();
        let (first, rest) = match path.strip_prefix('/').unwrap_or(&path).split_once('/') {
            Some((first, rest)) => (first, rest),
            None => (path.trim_start_matches('/'), ""),
        };
        match (&head.method, first) {
            (&Method::GET, "" | "page") if rest.is_empty() => page(),
            (&Method::GET, "health") => net::plain_text(StatusCode::OK, "ok\n"),
            (&Method::GET, "metrics") => self.metrics(),
            (&Method::GET, "uuid") => net::plain_text(StatusCode::OK, ROOT),
            (&Method::GET, "policy-key") => {
                net::plain_text(StatusCode::OK, self.signing.key.clone())
            }
            (&Method::GET, "openapi.json") => {
                net::response(StatusCode::OK, "application/json", openapi())
            }
            (&Method::GET, "policies") => self.policy(&unescaped(rest, false), &head),
            (&Method::GET, "relays") => self.nodes_behind(&unescaped(rest, false), &head).await,
            (&Method::PUT, "reports" | "inventories" | "inventory-updates") => {
                let name = unescaped(rest, false);
                taken_answer(self.intake.upload(first, &name, body, &self.limits).await)
            }
            (_, "rudder") => self.api(&head, rest, body).await,
            _ => net::plain_text(StatusCode::NOT_FOUND, "there is nothing here\n"),
        }
    }
}

fn taken_answer(taken: UploadResult) -> Response<Body> {
    match taken {
        Ok((status, told)) => net::plain_text(status, told),
        Err(refused) => net::plain_text(refused.status, format!("{}\n", refused.why)),
    }
}

/// A document with its tag, or only that it is the one that the peer knows; and whether it is.
pub(crate) fn tagged(
    head: &Parts,
    tag: &str,
    content_type: &'static str,
    document: impl Into<Bytes>,
) -> (bool, Response<Body>) {
    let same = is_known(head, tag);
    let mut response = match same {
        true => net::response(StatusCode::NOT_MODIFIED, content_type, ""),
        false => net::response(StatusCode::OK, content_type, document),
    };
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{tag}\"")) {
        response.headers_mut().insert(ETAG, tag);
    }
    (same, response)
}

/// Does the peer know the document with this tag?
pub(crate) fn is_known(head: &Parts, tag: &str) -> bool {
    let known = head.headers.get(IF_NONE_MATCH);
    known.is_some_and(|known| *known == *format!("\"{tag}\""))
}

/// The certificate that a peer showed, if it can be read.
pub(crate) fn shown(head: &Parts) -> Option<NodeCertificate> {
    let PeerCertificate(shown) = head.extensions.get()?;
    NodeCertificate::from_der(shown).ok()
}

impl Service {
    /// Somebody who has no right to what was asked for.
    pub(super) fn forbidden(&self, why: &str) -> Response<Body> {
        self.metrics.forbidden.add(1);
        net::plain_text(StatusCode::FORBIDDEN, format!("{why}\n"))
    }

    /// A node's policy, for the one that has the node's key, and for relays that it is behind.
    fn policy(&self, rest: &str, head: &Parts) -> Response<Body> {
        let Some(node) = rest.strip_suffix("/rules/policy.json.gz") else {
            let told = "expected /policies/NODE/rules/policy.json.gz\n";
            return net::plain_text(StatusCode::NOT_FOUND, told);
        };
        let Some(PeerCertificate(shown)) = head.extensions.get() else {
            return self.forbidden("show the node's certificate to get its policy");
        };
        let Ok(shown) = NodeCertificate::from_der(shown) else {
            return self.forbidden("the certificate that was shown cannot be read");
        };
        let state = self.view.read();
        let Some(record) = state.nodes.get(node) else {
            return self.forbidden("the node is not known; send an inventory first");
        };
        if !record.known.key.has_key_of(&shown) && !hands_on(&state, node, &shown) {
            return self.forbidden(
                "the certificate that was shown is not that of the node, nor of a relay that it is \
                 behind",
            );
        }
        if record.known.standing != NodeStatus::Accepted {
            return self.forbidden("the node is pending: it has a policy once somebody accepts it");
        }
        let none = || net::plain_text(StatusCode::NOT_FOUND, "the node has no policy yet\n");
        let Some(config_id) = state.policies.get(node).map(|one| one.config_id.clone()) else {
            return none();
        };
        drop(state);
        if is_known(head, &config_id) {
            self.metrics.unchanged.add(1);
            return tagged(head, &config_id, "application/gzip", "").1;
        }
        let (served, document) = match self.signing.signed(node, || self.view.read()) {
            Some((served, Some(document))) => (served, document),
            Some((_, None)) => {
                let told = "the policy in the store cannot be signed: it was packed by others\n";
                return net::plain_text(StatusCode::INTERNAL_SERVER_ERROR, told);
            }
            None => return none(),
        };
        self.metrics.fetched.add(1);
        tagged(head, &served.config_id, "application/gzip", document).1
    }

    fn metrics(&self) -> Response<Body> {
        let (mut pending, mut accepted) = (0, 0);
        for node in self.view.read().nodes.values() {
            match node.known.standing {
                NodeStatus::Pending => pending += 1,
                NodeStatus::Accepted => accepted += 1,
            }
        }
        let compliance = self.compliance.lock().fleet.global().global_percent();
        let text = self.metrics.text(Gauges {
            writer: self.commands.counts(),
            pending,
            accepted,
            compliance,
            database_bytes: self.database_bytes(),
            away: self.absence.lasts(),
            losses: self.absence.losses(),
        });
        net::response(StatusCode::OK, prometheus::CONTENT_TYPE, text)
    }
}
