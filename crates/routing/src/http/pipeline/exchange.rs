//! What a router knows of one request while it is under way.

use std::net::SocketAddr;
use std::sync::Arc;

use super::fields::{FieldList, Part};
use super::sticky::RequestCookies;
use super::target::Target;
use super::trace::ClientTrace;
use super::{Client, Refusal};
use crate::http::identity::Rules;
use crate::selection::{Instance, SelectionRequest, Sticky};
use crate::table::{Endpoint, Nanos, Pool};

/// One moment on two clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// The monotonic clock: for differences.
    pub mono: Nanos,
    /// Nanoseconds since 1970, UTC: for what people read.
    pub wall: u64,
}

/// The protocol that a request asks to change to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Upgrade {
    /// It asks for none.
    #[default]
    None,
    /// WebSocket.
    WebSocket,
    /// Another one; it is passed on like a WebSocket.
    Other,
}

/// What the engine tells the log line of. All times are monotonic; 0: it did not happen.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// Bytes of the request's body that came from the client.
    pub request_body: u64,
    /// Bytes of the answer's body that were given to the client; 0 behind an upgrade.
    pub answer_body: u64,
    /// Attempts that failed.
    pub failed_attempts: u32,
    /// The first attempt began.
    pub backend_started: Nanos,
    /// The answer (or the tunnel behind it) ended, or the last attempt failed.
    pub backend_finished: Nanos,
    /// The last failed attempt ended.
    pub failed_finished: Nanos,
    /// The latest attempt began.
    pub attempt_started: Nanos,
    /// Its answer's head was there, or it failed.
    pub attempt_finished: Nanos,
    /// The status of its answer; 0: there was none.
    pub backend_status: u16,
    /// The length that its answer's head gives of the body; `None`: it gives none.
    pub backend_length: Option<u64>,
    /// Nanoseconds that the successful attempt took to connect; 0: the connection was there.
    pub dial: Nanos,
    /// Nanoseconds that its TLS handshake took.
    pub tls: Nanos,
    /// The router's own end of the connection to the endpoint.
    pub local: Option<SocketAddr>,
    /// The endpoint of the latest attempt.
    pub endpoint: Option<Arc<Endpoint>>,
}

/// What a router knows of one request. Made to be used again for the next request, so
/// that nothing is allocated once its buffers have grown.
#[derive(Debug, Default)]
pub struct Exchange {
    /// What the engine tells the log line of.
    pub progress: Progress,
    pub(crate) start: Times,
    pub(crate) status: u16,
    pub(crate) pool: Option<Arc<Pool>>,
    pub(crate) upgrade: Upgrade,
    pub(crate) idempotent: bool,
    pub(crate) router_error: String,
    /// What stands behind the status of a refusal.
    pub(crate) detail: String,
    /// The host that is asked for, as it came, with its port.
    pub(crate) host: Vec<u8>,
    pub(crate) target: Target,
    /// The request's fields as an endpoint sees them.
    pub(crate) request: FieldList,
    /// The answer's fields as the client sees them.
    pub(crate) answer: FieldList,
    pub(crate) seen: Seen,
    pub(crate) asked: RequestCookies,
    /// Values of `X-Forwarded-For`, joined.
    pub(crate) forwarded_for: Vec<u8>,
    /// Names of the request's trailers, as they came.
    pub(crate) trailers: Vec<u8>,
    /// The options of `Connection`: the request's, then the answer's.
    pub(crate) options: Vec<u8>,
    /// Where the request goes instead of an endpoint.
    pub(crate) service: Option<RouteService>,
    /// The head was made for an endpoint: the log tells what it was sent.
    pub(crate) sent: bool,
    /// The backend is told that its connection ends with this request.
    pub(crate) closes: bool,
    /// The route says who may call it.
    pub(crate) guarded: bool,
}

/// Where a request goes on its way to a route service: over TLS, or to this router itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteService {
    /// Name or address of its host; its certificate must have it.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// This router serves it: the request goes through the router once more, and not over
    /// the network.
    pub hairpin: bool,
    /// Its host field: the host, with the port if the URL names one.
    pub(crate) authority: String,
    /// Its path and query.
    pub(crate) path: String,
    /// Its URL, as registered.
    pub(crate) url: String,
}

/// Fields of a request that are looked at again. Parts lie within the request's fields.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) user_agent: Part,
    pub(crate) referer: Part,
    /// `X-Forwarded-For` as the client sent it, the first one; then as it is sent on.
    pub(crate) client_for: Part,
    pub(crate) sent_for: Part,
    /// The same of `X-Forwarded-Proto`.
    pub(crate) client_proto: Part,
    pub(crate) sent_proto: Part,
    pub(crate) expect: Part,
    pub(crate) request_id: Part,
    /// Its trace and span; 0: it has none.
    pub(crate) traced: (u128, u64),
    pub(crate) app_instance: Part,
    pub(crate) process_instance: Part,
    pub(crate) upgrade: Part,
    pub(crate) signature: Part,
    pub(crate) metadata: Part,
    pub(crate) forwarded_url: Part,
    pub(crate) trace: ClientTrace,
    pub(crate) host_given: bool,
    pub(crate) request_start: bool,
    pub(crate) wants_trailers: bool,
    /// `X-Vcap-Trace` has the key.
    pub(crate) trace_key: bool,
}

impl Exchange {
    /// The pool that serves the request; there is one when it is forwarded.
    pub fn pool(&self) -> Option<&Arc<Pool>> {
        self.pool.as_ref()
    }

    /// When the request's head was there.
    pub fn started(&self) -> Times {
        self.start
    }

    /// The status that was answered; 0: none yet.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The protocol that it asks to change to.
    pub fn upgrade(&self) -> Upgrade {
        self.upgrade
    }

    /// Whether it may be sent twice: no body and `GET`, `HEAD`, `OPTIONS` or `TRACE`, or a
    /// field `Idempotency-Key` or `X-Idempotency-Key`.
    pub fn idempotent(&self) -> bool {
        self.idempotent
    }

    /// The route service that it goes to instead of an endpoint of the pool.
    pub fn route_service(&self) -> Option<&RouteService> {
        self.service.as_ref()
    }

    /// Whether the client is near enough to an endpoint that was chosen.
    ///
    /// # Errors
    /// The answer in place of the endpoint's.
    pub fn check_scope(&self, client: &Client, endpoint: &Endpoint) -> Result<(), Refusal> {
        if !self.guarded {
            return Ok(());
        }
        let rules = self.pool.as_ref().and_then(|it| Rules::of(it.settings()));
        let caller = client.caller().and_then(|caller| caller.identity.as_ref());
        rules
            .map_or(Ok(()), |rules| rules.reaches(caller, endpoint))
            .map_err(Refusal::Denied)
    }

    /// The instance that the client names by header: no other will do.
    pub fn instance(&self) -> Option<Instance<'_>> {
        let split = |named: &'_ [u8]| memchr::memchr(b':', named);
        let named = self.request.part(self.seen.app_instance);
        if !named.is_empty() {
            let at = split(named)?;
            return Some(Instance::App {
                app: &named[..at],
                index: &named[at + 1..],
            });
        }
        let named = self.request.part(self.seen.process_instance);
        let at = split(named);
        (!named.is_empty()).then(|| Instance::Process {
            process: &named[..at.unwrap_or(named.len())],
            index: at.map(|at| &named[at + 1..]),
        })
    }

    /// What it asks for beside any endpoint of its pool, which may hash a field of its head.
    pub fn selection_request<'e>(
        &'e self,
        head: &'e wire::http1::RequestHead,
    ) -> SelectionRequest<'e> {
        let id = self.asked.instance();
        let must = self.asked.must();
        let hashed = self.pool.as_ref().map(|pool| &pool.settings().hash_header);
        let hashed = hashed.filter(|name| !name.is_empty());
        SelectionRequest {
            sticky: (!id.is_empty()).then_some(Sticky { id, must }),
            instance: self.instance(),
            hash: hashed.and_then(|name| head.field(name)),
        }
    }

    /// `X-Cf-RouterError`; empty: there is none.
    pub fn router_error(&self) -> &str {
        &self.router_error
    }

    /// The request's id: a UUID, as it is sent to the endpoint.
    pub fn request_id(&self) -> &[u8] {
        self.request.part(self.seen.request_id)
    }

    /// Its trace and span in hexadecimal; `None`: it was too malformed to get one.
    pub(crate) fn trace(&self) -> Option<(String, String)> {
        let (trace, span) = self.seen.traced;
        let digits = if trace >> 64 == 0 { 16 } else { 32 };
        (trace != 0).then(|| (format!("{trace:0digits$x}"), format!("{span:016x}")))
    }

    /// The value of a request's field for the log, with what the router set itself.
    pub(crate) fn logged_value<'e>(
        &'e self,
        head: &'e wire::http1::RequestHead,
        name: &str,
    ) -> &'e [u8] {
        let value = match name {
            "X-Forwarded-Proto" if self.sent => Some(self.request.part(self.seen.sent_proto)),
            // What a client claims here is not what the endpoint was told.
            "X-Forwarded-Client-Cert" if self.sent => self.request.value(name.as_bytes()),
            // Go's server takes these out of the fields, so that gorouter's log has a dash.
            "Host" | "Trailer" | "Transfer-Encoding" => None,
            _ if is_set_early(name) => self.request.value(name.as_bytes()),
            // The rest is as the client sent it.
            _ => head.field(name),
        };
        value.unwrap_or_default()
    }

    /// Begins anew.
    pub(crate) fn begin(&mut self, now: Times) {
        self.progress = Progress::default();
        self.start = now;
        (self.status, self.pool) = (0, None);
        (self.upgrade, self.idempotent) = (Upgrade::None, false);
        (self.service, self.sent) = (None, false);
        (self.closes, self.guarded) = (false, false);
        self.router_error.clear();
        self.detail.clear();
        self.host.clear();
        self.target = Target::default();
        self.request.clear();
        self.answer.clear();
        self.seen = Seen::default();
        self.asked.clear();
        self.forwarded_for.clear();
        self.trailers.clear();
        self.options.clear();
    }
}

/// Whether the router sets a field before anything else happens to the request.
fn is_set_early(name: &str) -> bool {
    matches!(
        name,
        "X-Vcap-Request-Id" | "B3" | "Traceparent" | "Tracestate"
    ) || name.starts_with("X-B3-")
}
