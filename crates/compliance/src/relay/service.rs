//! What a relay answers, on the paths of the server.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{HeaderValue, RETRY_AFTER};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use net::{Body, Handler, Incoming};
use telemetry::{Fields, Logger, prometheus};

use super::intake::Intake;
use super::key::ServerKey;
use super::metrics::{Gauges, Metrics};
use super::policies::Policies;
use super::roster::Roster;
use super::spool::Spool;
use super::tree::DEPTH;
use super::upstream::Upstream;
use crate::server::{is_known, now, shown, tagged, unescaped};
use crate::uploads::{UploadRejection, UploadResult};
use crate::upstream::{ConditionalAnswer, RELAYS};

/// Seconds after which what is not taken now may be sent again.
const RETRY: u32 = 60;

/// What all requests are answered with.
pub(super) struct Service {
    /// The relay's identity.
    pub(super) id: String,
    pub(super) intake: Intake,
    pub(super) spool: Arc<Spool>,
    pub(super) roster: Arc<Roster>,
    pub(super) policies: Arc<Policies>,
    pub(super) key: ServerKey,
    pub(super) upstream: Arc<Upstream>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) logger: Logger,
}

/// Takes requests. Uploads go on to their end, whatever becomes of the peer: what is durable is
/// also told to who sends it on.
pub(super) struct Front(pub(super) Arc<Service>);

impl Handler for Front {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let service = Arc::clone(&self.0);
        if request.method() == Method::GET {
            return service.answered(request).await;
        }
        let answered = async move { service.answered(request).await };
        let answer = tokio::spawn(net::boxed(answered)).await;
        answer.unwrap_or_else(|_| {
            let told = "the request could not be carried out; the relay's log says why\n";
            net::plain_text(StatusCode::INTERNAL_SERVER_ERROR, told)
        })
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
            (&Method::GET, "health") => net::plain_text(StatusCode::OK, "ok\n"),
            (&Method::GET, "metrics") => {
                net::response(StatusCode::OK, prometheus::CONTENT_TYPE, self.metrics())
            }
            (&Method::GET, "uuid") => net::plain_text(StatusCode::OK, self.id.clone()),
            (&Method::GET, "policy-key") => match self.key.get(&self.upstream).await {
                Ok(pem) => net::plain_text(StatusCode::OK, pem),
                Err(refused) => taken_answer(Err(refused)),
            },
            (&Method::GET, "policies") => self.policy(&unescaped(rest, false), &head).await,
            (&Method::GET, "relays") => self.nodes_behind(&unescaped(rest, false), &head).await,
            (&Method::PUT, "reports" | "inventories" | "inventory-updates") => {
                let name = unescaped(rest, false);
                let taken = match self.came_over(&head) {
                    Ok(relays) => {
                        let peer = shown(&head);
                        let intake = &self.intake;
                        intake
                            .upload(first, &name, &relays, peer.as_ref(), body)
                            .await
                    }
                    Err(refused) => Err(refused),
                };
                taken_answer(taken)
            }
            _ => {
                let told = "this is a relay; the REST API and the page are at the server\n";
                net::plain_text(StatusCode::NOT_FOUND, told)
            }
        }
    }

    /// The relays that an upload came over. One that came over this one goes in a circle.
    fn came_over(&self, head: &Parts) -> Result<String, UploadRejection> {
        let relays = head.headers.get(RELAYS).map(HeaderValue::to_str);
        let relays = match relays {
            None => return Ok(String::new()),
            Some(Ok(relays)) => relays,
            Some(Err(_)) => {
                let why = format!("{RELAYS} is no text; expected identities of relays");
                return Err(UploadRejection::new(StatusCode::BAD_REQUEST, why));
            }
        };
        let over: Vec<&str> = relays.split(',').collect();
        if over.len() >= DEPTH || over.contains(&self.id.as_str()) {
            let why = format!(
                "it came over {} relays, this one among them or too many; relays are each other's \
                 upstream",
                over.len()
            );
            return Err(UploadRejection::new(StatusCode::LOOP_DETECTED, why));
        }
        Ok(relays.to_owned())
    }

    fn forbidden(&self, why: &str) -> Response<Body> {
        self.metrics.forbidden.add(1);
        net::plain_text(StatusCode::FORBIDDEN, format!("{why}\n"))
    }

    /// A node's policy, for the one that has the node's key, and for relays that it is behind:
    /// the upstream's, and while that is away the last one.
    async fn policy(&self, rest: &str, head: &Parts) -> Response<Body> {
        let Some(node) = rest.strip_suffix("/rules/policy.json.gz") else {
            let told = "expected /policies/NODE/rules/policy.json.gz\n";
            return net::plain_text(StatusCode::NOT_FOUND, told);
        };
        let Some(shown) = shown(head) else {
            return self.forbidden("show the node's certificate to get its policy");
        };
        match self.roster.child(node, &self.upstream).await {
            Ok(_) => {}
            Err(refused) if refused.status == StatusCode::NOT_FOUND => {
                return self.forbidden(&refused.why);
            }
            Err(later) => return taken_answer(Err(later)),
        }
        let may = |roster: &Roster| {
            let children = roster.children();
            children.is_some_and(|children| children.may_fetch(node, &shown))
        };
        if !may(&self.roster) {
            return self.forbidden(
                "the certificate that was shown is not that of the node, nor of a relay that it is \
                 behind",
            );
        }
        let tag = self.policies.tag(node);
        let asked = self.upstream.wire.policy(node, tag.as_deref());
        let document = match self.upstream.request(asked).await {
            Ok(ConditionalAnswer::New(tag, document)) => {
                self.keep_policy(node, &tag, document.clone()).await;
                Some((tag, document))
            }
            Ok(ConditionalAnswer::Same) => self.kept(node, head).await,
            Ok(ConditionalAnswer::None { status, why }) => {
                // It is the node's no more, or this relay may not hand it on any more.
                self.policies.remove(node);
                return net::plain_text(status, format!("{why}\n"));
            }
            Err(_) => {
                self.metrics.from_disk.add(u64::from(tag.is_some()));
                self.kept(node, head).await
            }
        };
        let Some((tag, document)) = document else {
            let why = "the upstream is away, and no policy of the node is kept here; ask again";
            return taken_answer(Err(UploadRejection::later(why)));
        };
        let (same, response) = tagged(head, &tag, "application/gzip", document);
        match same {
            true => self.metrics.unchanged.add(1),
            false => self.metrics.fetched.add(1),
        }
        response
    }

    async fn keep_policy(&self, node: &str, tag: &str, document: Bytes) {
        let (policies, node, tag) = (Arc::clone(&self.policies), node.to_owned(), tag.to_owned());
        let put = move || policies.put(&node, &tag, &document);
        if let Ok(Err(error)) = tokio::task::spawn_blocking(put).await {
            // It is served all the same, as long as the upstream is there.
            self.logger.error("policy-not-kept", &error, Fields::new());
        }
    }

    /// The last policy of a node; of one that the peer knows the tag alone.
    async fn kept(&self, node: &str, head: &Parts) -> Option<(String, Bytes)> {
        let tag = self.policies.tag(node)?;
        if is_known(head, &tag) {
            return Some((tag, Bytes::new()));
        }
        let (policies, node) = (Arc::clone(&self.policies), node.to_owned());
        let get = tokio::task::spawn_blocking(move || policies.get(&node));
        get.await.ok().flatten()
    }

    /// The nodes behind a relay behind this one.
    async fn nodes_behind(&self, rest: &str, head: &Parts) -> Response<Body> {
        let Some(relay) = rest.strip_suffix("/nodes.json") else {
            let told = "expected /relays/RELAY/nodes.json\n";
            return net::plain_text(StatusCode::NOT_FOUND, told);
        };
        let Some(shown) = shown(head) else {
            return self.forbidden("show the relay's certificate to get its list");
        };
        if let Err(refused) = self.roster.child(relay, &self.upstream).await {
            // Not known here: it sends an inventory, which the server gets.
            return taken_answer(Err(refused));
        }
        // What it is told to be nobody's it refuses for good: that must be so now.
        self.roster.refresh_if_free(&self.upstream).await;
        if !self.upstream.is_there() {
            let told = "the upstream of this relay is away; ask again\n";
            return net::plain_text(StatusCode::SERVICE_UNAVAILABLE, told);
        }
        let children = self.roster.children();
        let listed = children.and_then(|children| children.behind(relay, &shown));
        match listed {
            Some((tag, json)) => tagged(head, &tag, "application/json", json).1,
            None => self.forbidden(
                "the node is no relay, or the certificate that was shown is not its; make it one \
                 with headroom compliance relays add",
            ),
        }
    }

    fn metrics(&self) -> String {
        let children = self.roster.children();
        let nodes = children.map_or((0, 0), |children| children.counts(&self.id));
        self.metrics.text(Gauges {
            spool: self.spool.size(now()),
            nodes,
            upstream_errors: self.upstream.errors.get(),
            upstream_is_there: self.upstream.is_there(),
        })
    }
}

fn taken_answer(taken: UploadResult) -> Response<Body> {
    match taken {
        Ok((status, told)) => net::plain_text(status, told),
        Err(refused) => {
            let mut response = net::plain_text(refused.status, format!("{}\n", refused.why));
            if refused.status == StatusCode::SERVICE_UNAVAILABLE {
                response.headers_mut().insert(RETRY_AFTER, RETRY.into());
            }
            response
        }
    }
}
