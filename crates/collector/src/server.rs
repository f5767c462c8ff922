//! The collector's server: what posts spans, and what is asked about them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use http::header::{ALLOW, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use net::{Body, BodyError, Handler, Incoming};
use telemetry::prometheus::Page;
use traces::analysis::Question;
use traces::{Nanos, Origin, Store, StoreLimits, otlp, zipkin};

use crate::answer::{Query, Refusal, json, whole};
use crate::heavy::Heavy;
use crate::intake::{Form, Intake, is_json};
use crate::kept;

/// Traces of an answer with whole traces, if nothing is said.
const USUAL: usize = 10_000;

/// A collector by itself. Nobody is asked for a name: its listener belongs on a loopback
/// address, unless all who can reach it may send and read spans.
pub struct Collector {
    store: Store,
    origin: Origin,
    intake: Arc<Intake>,
    heavy: Heavy,
    refused: AtomicU64,
}

impl Collector {
    /// One that keeps so much. Times of spans count from 1970.
    pub fn new(limits: StoreLimits) -> Arc<Self> {
        let (store, origin) = (Store::new(limits), Origin::unix());
        Arc::new(Self {
            intake: Arc::new(Intake::new(store.clone(), origin.clone())),
            store,
            origin,
            heavy: Heavy::default(),
            refused: AtomicU64::new(0),
        })
    }

    /// What it keeps.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Spans that came in and could not be used: without ids, without a sensible time.
    pub fn refused_spans(&self) -> u64 {
        self.intake.refused()
    }

    pub(crate) fn heavy(&self) -> &Heavy {
        &self.heavy
    }

    pub(crate) fn intake(&self) -> Arc<Intake> {
        Arc::clone(&self.intake)
    }

    pub(crate) fn count_refused(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
        let path = request.uri().path().to_owned();
        let form = match path.as_str() {
            otlp::PATH => Some(Form::Otlp),
            zipkin::PATH => Some(Form::Zipkin),
            _ => None,
        };
        match (request.method(), form) {
            (&Method::POST, Some(form)) => {
                let is_protobuf = form == Form::Otlp && !is_json(request.headers());
                match self.heavy.take(&self.intake, form, request).await {
                    Err(refusal) if is_protobuf => {
                        self.count_refused();
                        // As OTLP asks for: in the form of the request.
                        let why = otlp::status_protobuf(&refusal.error);
                        let mut answer = whole(otlp::PROTOBUF, why);
                        *answer.status_mut() = refusal.status;
                        Ok(answer)
                    }
                    taken => taken.inspect_err(|_| self.count_refused()),
                }
            }
            (&Method::GET | &Method::HEAD, None) => {
                let query = request.uri().query().unwrap_or_default().to_owned();
                self.show(&path, Query(&query)).await
            }
            (method, Some(_)) => Err(Refusal::new(
                StatusCode::METHOD_NOT_ALLOWED,
                format!("{path} does not know {method}: spans are posted"),
            )),
            (method, None) => Err(Refusal::new(
                StatusCode::METHOD_NOT_ALLOWED,
                format!(
                    "{path} does not know {method}: expected GET, or POST of spans to {} or {}",
                    otlp::PATH,
                    zipkin::PATH
                ),
            )),
        }
    }

    async fn show(&self, path: &str, query: Query<'_>) -> Result<Response<Body>, Refusal> {
        let (store, origin) = (&self.store, &self.origin);
        Ok(match path {
            "/ping" => whole("text/plain; charset=utf-8", "pong\n"),
            "/metrics" => whole(telemetry::prometheus::CONTENT_TYPE, self.metrics()),
            "/traces" => json(&kept::list(store, origin, now(), query)?),
            "/spans" => {
                let kept = (store, origin);
                self.heavy.spans(kept, now(), query, USUAL).await?
            }
            "/analysis" => {
                let _place = self.heavy.place().await?;
                let spans = kept::whole(store, now(), query, USUAL)?.concat();
                run_blocking("the analysis", move || {
                    json(&Question::default().analyse_groups(&spans))
                })
                .await?
            }
            path => match path.strip_prefix("/traces/") {
                Some(id) => kept::one(store, origin, id, query)?,
                None => {
                    return Err(Refusal::new(
                        StatusCode::NOT_FOUND,
                        format!(
                            "nothing is at {path}; there are /traces, /traces/ID, /spans, /analysis, /metrics, /ping"
                        ),
                    ));
                }
            },
        })
    }

    fn metrics(&self) -> String {
        let counts = self.store.counts();
        let mut page = Page::new();
        page.gauge(
            "headroom_collector_traces",
            "Traces that are kept.",
            counts.traces,
        )
        .gauge(
            "headroom_collector_spans",
            "Spans that are kept.",
            counts.spans,
        )
        .gauge(
            "headroom_collector_kept_bytes",
            "Memory of the spans that are kept, names not counted.",
            counts.bytes,
        )
        .counter(
            "headroom_collector_received_spans_total",
            "Spans that came in.",
            counts.received,
        )
        .counter(
            "headroom_collector_dropped_spans_total",
            "Spans of traces that had too many.",
            counts.dropped,
        )
        .counter(
            "headroom_collector_forgotten_spans_total",
            "Spans that were forgotten to make room.",
            counts.forgotten,
        )
        .counter(
            "headroom_collector_refused_spans_total",
            "Spans without ids or without a sensible time.",
            self.refused_spans(),
        )
        .counter(
            "headroom_collector_refused_bodies_total",
            "Bodies that held no spans, or too many.",
            self.refused.load(Relaxed),
        );
        page.into_text()
    }
}

impl Handler for Collector {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let is_posted = [otlp::PATH, zipkin::PATH].contains(&request.uri().path());
        let allowed = if is_posted { "POST" } else { "GET, HEAD" };
        let answer = self.answer(request).await;
        answer.unwrap_or_else(|refusal| {
            let mut answer = refusal.answer();
            if refusal.status == StatusCode::METHOD_NOT_ALLOWED {
                answer
                    .headers_mut()
                    .insert(ALLOW, HeaderValue::from_static(allowed));
            }
            answer
        })
    }
}

/// By the clock of the spans: since 1970.
fn now() -> Nanos {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}

/// Why a body was not read, as an answer.
pub fn unread(error: &BodyError) -> Refusal {
    let status = match error {
        BodyError::TooLong { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        BodyError::TooSlow { .. } => StatusCode::REQUEST_TIMEOUT,
        BodyError::Broken(_) => StatusCode::BAD_REQUEST,
    };
    Refusal::new(status, error.to_string())
}

/// Nothing new is begun.
pub fn stopping() -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server stops")
}

/// Does what takes long where that hurts nobody.
///
/// # Errors
/// When it panics.
pub async fn run_blocking<T: Send + 'static>(
    what: &str,
    act: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(act).await;
    done.map_err(|_| {
        Refusal::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("{what} failed by an error of this program; its log says more"),
        )
    })
}
