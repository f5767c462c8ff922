//! The servers beside the data path: status and metrics.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use measure::ProcessSampler;
use net::{Body, Handler, Incoming, Limits, Shutdown};

use super::feeds::Feeds;
use super::run::{Parts, Router, RouterError};
use crate::http::metrics::{self, Gauges};
use crate::http::status::{Endpoints, Fixed, SAMPLED_EVERY, StatusServer, Varz};
use crate::peer_tls;

/// Bounds of these servers: few peers, small requests.
const LIMITS: Limits = Limits {
    connections: 1024,
    head_bytes: 16 * 1024,
    head_within: Duration::from_secs(60),
    handshake_within: Duration::from_secs(10),
    write_stall: Duration::from_secs(30),
    drain: Duration::from_millis(100),
};

/// Starts what the settings ask for, and says where it listens.
pub(super) async fn start(
    parts: &Arc<Parts>,
    feeds: &Arc<Feeds>,
    varz: Option<&Arc<Varz>>,
    stopped: &Shutdown,
) -> Result<Router, RouterError> {
    let status = &parts.settings.status;
    let server = |endpoints| {
        Arc::new(StatusServer {
            endpoints,
            health: Arc::clone(&parts.health),
            table: Arc::clone(&parts.table),
            varz: varz.cloned(),
            user: status.user.clone(),
            password: status.password.clone(),
        })
    };
    let health = match status.deprecated {
        true => Endpoints::Deprecated,
        false => Endpoints::Health,
    };
    let mut running = Router::default();
    if let Some(address) = status.listen {
        running.status = Some(serve(address, None, server(health), stopped).await?);
    }
    if let Some(address) = status.listen_tls {
        let (certificate, key) = &status.certificate;
        let tls = peer_tls::server("[status]", certificate, key)?;
        serve(address, Some(tls), server(health), stopped).await?;
    }
    if let Some(address) = status.routes_listen {
        let server = server(Endpoints::Routes);
        running.routes = Some(serve(address, None, server, stopped).await?);
    }
    if let Some(address) = parts.settings.metrics_listen {
        let server = Arc::new(MetricsServer {
            parts: Arc::clone(parts),
            feeds: Arc::clone(feeds),
            // Without it the number of descriptors is 0.
            process: Mutex::new(ProcessSampler::new(std::process::id()).ok()),
        });
        let tls = parts.settings.metrics_tls.as_ref();
        let tls = tls.map(|tls| peer_tls::mutual_server("[metrics]", tls));
        running.metrics = Some(serve(address, tls.transpose()?, server, stopped).await?);
    }
    Ok(running)
}

async fn serve<H: Handler>(
    address: SocketAddr,
    tls: Option<Arc<rustls::ServerConfig>>,
    handler: Arc<H>,
    stopped: &Shutdown,
) -> Result<SocketAddr, RouterError> {
    let listener = net::bind(address).await.map_err(RouterError::Listen)?;
    let bound = listener.local_addr().map_err(RouterError::Listen)?;
    tokio::spawn(net::serve(listener, tls, LIMITS, handler, stopped.clone()));
    Ok(bound)
}

/// The `/varz` document, whose rates are sampled until the end.
pub(super) fn varz(parts: &Arc<Parts>, stopped: &Shutdown) -> Arc<Varz> {
    let status = &parts.settings.status;
    let fixed = Fixed {
        index: parts.settings.index,
        host: status
            .listen
            .map(|address| SocketAddr::new(parts.settings.http.address, address.port()).to_string())
            .unwrap_or_default(),
        credentials: (status.user.clone(), status.password.clone()),
        uuid: parts.id.clone(),
        started: std::time::Instant::now(),
        start: jiff::Timestamp::now()
            .strftime("%Y-%m-%d %H:%M:%S +0000")
            .to_string(),
    };
    let (table, counters) = (Arc::clone(&parts.table), Arc::clone(&parts.counters));
    let varz = Arc::new(Varz::new(table, counters, fixed));
    let (sampled, mut stopped) = (Arc::clone(&varz), stopped.clone());
    tokio::spawn(net::boxed(async move {
        let mut ticks = tokio::time::interval(Duration::from_secs(SAMPLED_EVERY));
        loop {
            tokio::select! {
                _ = ticks.tick() => sampled.sample(),
                () = stopped.requested() => return,
            }
        }
    }));
    varz
}

struct MetricsServer {
    parts: Arc<Parts>,
    feeds: Arc<Feeds>,
    process: Mutex<Option<ProcessSampler>>,
}

impl Handler for MetricsServer {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        if request.uri().path() != "/metrics" {
            return net::plain_text(StatusCode::NOT_FOUND, "404 page not found\n");
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let text = "405 method not allowed\n";
            return net::plain_text(StatusCode::METHOD_NOT_ALLOWED, text);
        }
        let totals = self.parts.counters.totals();
        let page = metrics::page(&totals, &self.gauges(), &self.feeds.read());
        net::response(StatusCode::OK, metrics::CONTENT_TYPE, page)
    }
}

impl MetricsServer {
    fn gauges(&self) -> Gauges {
        let sample = {
            let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
            process.as_mut().and_then(|process| process.sample().ok())
        };
        Gauges {
            routes: self.parts.table.len() as u64,
            ms_since_update: self.parts.table.ms_since_update(wire::clock::now()),
            descriptors: sample.map_or(0, |sample| sample.fds),
            uptime_seconds: self.parts.started.elapsed().as_secs(),
            log_drops: self.parts.logger.sink().dropped(),
        }
    }
}
