//! The server: what is asked, and who answers.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use collector::answer::{Query, Refusal, json, whole};
use collector::{BODY_WITHIN, Form, Heavy, Intake, kept, run_blocking, stopping, unread};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use net::{Body, Handler, Incoming, Limits, Shutdown, read_body};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::peers::{Peer, Watch};
use super::stats::Stats;
use super::{Control, graph};
use crate::metrics::{self, Metrics};
use crate::trace::Tracer;
use traces::otlp;

/// Most bytes of a profile.
const PROFILE_BYTES: usize = 16 << 20;

/// Seconds that `/stats` covers if nothing is said.
const STATS_SECONDS: f64 = 5.0;

/// Traces whose spans `/spans` gives if nothing is said.
const SPANS_OF: usize = 1000;

/// What a control server shows.
pub struct AdminConfig {
    /// The graph.
    pub control: Arc<dyn Control>,
    /// What this process counts.
    pub metrics: Arc<Metrics>,
    /// Its spans. Those of other processes come in here.
    pub tracer: Tracer,
    /// The page at `/`.
    pub page: Option<AdminPage>,
    /// Whether `/metrics` has testapi's names beside ours, without being asked for them:
    /// what scrapes testapi asks for no others.
    pub testapi_names: bool,
}

/// A page of one file.
#[derive(Debug, Clone)]
pub struct AdminPage {
    /// Its text.
    pub html: Bytes,
    /// Its `Content-Security-Policy`.
    pub policy: HeaderValue,
}

/// A control server. See the module.
pub struct Admin {
    control: Arc<dyn Control>,
    tracer: Tracer,
    pub(super) watch: Arc<Watch>,
    intake: Arc<Intake>,
    page: Option<AdminPage>,
    testapi_names: bool,
    heavy: Heavy,
    /// One profile after the other.
    profiles: Semaphore,
}

impl Admin {
    /// A server that does not listen yet.
    pub fn new(config: AdminConfig) -> Arc<Self> {
        Arc::new(Self {
            control: config.control,
            watch: Arc::new(Watch::new(config.metrics)),
            intake: Arc::new(Intake::new(
                config.tracer.store().clone(),
                config.tracer.origin().clone(),
            )),
            tracer: config.tracer,
            page: config.page,
            testapi_names: config.testapi_names,
            heavy: Heavy::default(),
            profiles: Semaphore::new(1),
        })
    }

    /// Counts what these processes count, too. Those that were named before and are not
    /// now are forgotten; what they had counted stays.
    pub fn follow(&self, peers: Vec<Peer>) {
        self.watch.follow(peers);
    }

    /// Serves, and reads counters once a second, until `shutdown`. It knows no passwords:
    /// who reaches it can change the graph and so run programs. Hence `listener` belongs
    /// on a loopback address, unless all who can reach it may do that.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, shutdown: Shutdown) {
        let limits = Limits {
            connections: 1024,
            ..Limits::default()
        };
        let watch = tokio::spawn(net::boxed(Arc::clone(&self.watch).run(shutdown.clone())));
        net::serve(listener, None, limits, self, shutdown).await;
        // It ends by the same word.
        let _ = watch.await;
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        let query = request.uri().query().unwrap_or_default().to_owned();
        let query = Query(&query);
        if method != Method::GET && method != Method::HEAD {
            refuse_strange_pages(request.headers())?;
        }
        match (method.as_str(), path.as_str()) {
            ("GET" | "HEAD", path) => self.show(path, query).await,
            ("PUT", "/profile") => self.put_profile(request).await,
            ("POST", "/api/v2/spans") => self.heavy.take(&self.intake, Form::Zipkin, request).await,
            ("POST", otlp::PATH) => self.heavy.take(&self.intake, Form::Otlp, request).await,
            (_, "/profile" | "/api/v2/spans" | otlp::PATH) => Err(Refusal::new(
                StatusCode::METHOD_NOT_ALLOWED,
                format!("{path} does not know {method}"),
            )),
            (_, path) => Err(unknown(path)),
        }
    }

    async fn show(&self, path: &str, query: Query<'_>) -> Result<Response<Body>, Refusal> {
        let store = self.tracer.store();
        let origin = self.tracer.origin();
        Ok(match path {
            "/" => self.page()?,
            "/ping" => whole("text/plain; charset=utf-8", "pong\n"),
            "/topology" => json(&graph::graph(&*self.control)),
            "/stats" => {
                let seconds = query.number("seconds", 1.0, 60.0)?;
                json(&self.stats(seconds.unwrap_or(STATS_SECONDS)))
            }
            "/metrics" => self.metrics(query)?,
            "/counters" => json(&self.watch.own()),
            "/profile" => whole("application/toml", self.control.profile()),
            "/analysis" => self.analysis(query).await?,
            "/traces" => {
                self.tracer.collect();
                json(&kept::list(store, origin, wire::clock::now(), query)?)
            }
            "/spans" => {
                self.tracer.collect();
                let kept = (store, origin);
                let now = wire::clock::now();
                self.heavy.spans(kept, now, query, SPANS_OF).await?
            }
            path => match path.strip_prefix("/traces/") {
                Some(id) => {
                    self.tracer.collect();
                    kept::one(store, origin, id, query)?
                }
                None => return Err(unknown(path)),
            },
        })
    }

    fn page(&self) -> Result<Response<Body>, Refusal> {
        let page = self.page.as_ref().ok_or_else(|| {
            Refusal::new(
                StatusCode::NOT_FOUND,
                "there is no page here; /topology, /stats and /traces have what it shows",
            )
        })?;
        let mut answer = whole("text/html; charset=utf-8", page.html.clone());
        let headers = answer.headers_mut();
        headers.insert(header::CONTENT_SECURITY_POLICY, page.policy.clone());
        headers.insert(
            HeaderName::from_static("x-content-type-options"),
            HeaderValue::from_static("nosniff"),
        );
        Ok(answer)
    }

    fn stats(&self, seconds: f64) -> Stats {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at most a minute"
        )]
        let window = self.watch.window((seconds * 1e9) as u64);
        let (_, revision) = self.control.topology();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
        Stats::new(&window, revision, now)
    }

    fn metrics(&self, query: Query<'_>) -> Result<Response<Body>, Refusal> {
        let all = self.watch.all();
        let page = match query.text("names").as_deref() {
            None => {
                let mut page = metrics::page(&all, Some(&self.tracer.counts()));
                self.control.metrics(&mut page);
                let mut text = page.into_text();
                if self.testapi_names {
                    text += &metrics::testapi_page(&all);
                }
                text
            }
            Some("testapi") => metrics::testapi_page(&all),
            Some(other) => {
                return Err(Refusal::bad(format!(
                    "names={other}: expected testapi, or none"
                )));
            }
        };
        Ok(whole(telemetry::prometheus::CONTENT_TYPE, page))
    }

    async fn analysis(&self, query: Query<'_>) -> Result<Response<Body>, Refusal> {
        let _place = self.heavy.place().await?;
        self.tracer.collect();
        let traces = kept::whole(
            self.tracer.store(),
            wire::clock::now(),
            query,
            kept::MOST_WHOLE,
        )?;
        let control = Arc::clone(&self.control);
        let analysed = run_blocking("the analysis", move || control.analysis(traces)).await?;
        let refused = |why| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, why);
        analysed.map(|analysis| json(&analysis)).map_err(refused)
    }

    async fn put_profile(&self, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
        let body = read_body(request.into_body(), PROFILE_BYTES, BODY_WITHIN).await;
        let body = body.map_err(|error| unread(&error))?;
        let text = String::from_utf8(body.into())
            .map_err(|_| Refusal::bad("the profile is not text in UTF-8; the one before stays"))?;
        let _turn = self.profiles.acquire().await.map_err(|_| stopping())?;
        let control = Arc::clone(&self.control);
        let put = move || control.put_profile(&text);
        let revision = run_blocking("the change of the profile", put).await?;
        let revision = revision.map_err(Refusal::bad)?;
        Ok(json(&serde_json::json!({ "revision": revision })))
    }
}

impl Handler for Admin {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let answer = self.answer(request).await;
        answer.unwrap_or_else(|refusal| refusal.answer())
    }
}

/// Refuses what a page of somewhere else has its reader's browser send. Such a page can
/// reach this server under a name of its own (DNS rebinding), but its origin shows.
fn refuse_strange_pages(headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return Ok(());
    };
    let host = origin.to_str().ok().and_then(|text| {
        let host = url::Url::parse(text).ok()?.host_str()?.to_owned();
        Some(host.trim_matches(['[', ']']).to_owned())
    });
    match host {
        Some(host) if host == "localhost" || host.parse::<IpAddr>().is_ok() => Ok(()),
        _ => Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "the request comes from a page of another site; expected one from no page, or from this server's under its address",
        )),
    }
}

fn unknown(path: &str) -> Refusal {
    Refusal::new(
        StatusCode::NOT_FOUND,
        format!(
            "nothing is at {path}; there are /topology, /stats, /metrics, /counters, /traces, /spans, /analysis, /profile, /ping"
        ),
    )
}
