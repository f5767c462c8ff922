//! The control address of a backend, and the whole of it as a program.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use net::{Body, Handler, Incoming, Limits, Shutdown, plain_text, read_body};
use telemetry::{Fields, Logger, prometheus};

use super::{BackendSettings, Behaviour, StaticBackend};

/// Bytes of a behaviour at most.
const BODY_BYTES: usize = 4096;

/// Longest wait for it.
const BODY_WITHIN: Duration = Duration::from_secs(5);

/// Runs a backend until `shutdown`.
///
/// # Errors
/// When an address cannot be listened on.
pub async fn run(
    settings: BackendSettings,
    logger: Logger,
    mut shutdown: Shutdown,
) -> std::io::Result<()> {
    let control = match settings.control {
        Some(address) => Some(net::bind(address).await?),
        None => None,
    };
    let backend = Arc::new(StaticBackend::start(&settings)?);
    let mut fields = Fields::new()
        .and("address", backend.address().to_string())
        .and("tls", settings.tls.is_some());
    if let Some(address) = control
        .as_ref()
        .and_then(|control| control.local_addr().ok())
    {
        fields = fields.and("control", address.to_string());
    }
    logger.info("started", fields);
    match control {
        Some(listener) => {
            let handler = Arc::new(Control {
                backend: Arc::clone(&backend),
                logger: logger.clone(),
            });
            net::serve(listener, None, Limits::default(), handler, shutdown).await;
        }
        None => shutdown.requested().await,
    }
    logger.info("stopped", Fields::new().and("requests", backend.requests()));
    Ok(())
}

struct Control {
    backend: Arc<StaticBackend>,
    logger: Logger,
}

impl Handler for Control {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let (head, body) = request.into_parts();
        match (head.method, head.uri.path()) {
            (Method::GET, "/health") => plain_text(StatusCode::OK, "ok\n"),
            (Method::GET, "/behaviour") => json(self.backend.behaviour().to_json()),
            (Method::PUT, "/behaviour") => {
                let body = match read_body(body, BODY_BYTES, BODY_WITHIN).await {
                    Ok(body) => body,
                    Err(error) => return plain_text(StatusCode::BAD_REQUEST, format!("{error}\n")),
                };
                match Behaviour::from_json(&body) {
                    Ok(behaviour) => {
                        self.backend.behave(behaviour);
                        let json_text = behaviour.to_json();
                        self.logger
                            .info("behaviour", Fields::new().and("mode", behaviour.mode));
                        json(json_text)
                    }
                    Err(error) => plain_text(StatusCode::BAD_REQUEST, format!("{error}\n")),
                }
            }
            (Method::GET, "/metrics") => self.metrics(),
            (_, "/health" | "/behaviour" | "/metrics") => {
                plain_text(StatusCode::METHOD_NOT_ALLOWED, "405 method not allowed\n")
            }
            _ => plain_text(StatusCode::NOT_FOUND, "404 page not found\n"),
        }
    }
}

impl Control {
    fn metrics(&self) -> Response<Body> {
        let mut page = prometheus::Page::new();
        page.counter(
            "static_requests_total",
            "Requests read.",
            self.backend.requests(),
        )
        .counter(
            "static_connections_total",
            "Connections accepted.",
            self.backend.accepted(),
        );
        net::response(StatusCode::OK, prometheus::CONTENT_TYPE, page.into_text())
    }
}

fn json(text: String) -> Response<Body> {
    net::response(StatusCode::OK, "application/json", text)
}
