//! A routing API of one test, and ways to call it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(dead_code, reason = "each test file uses a part")]

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use net::{Answer, Client, ClientOptions, Incoming};
use routing_api::client::{ApiClient, ClientSettings};
use routing_api::model::{HttpRoute, RouterGroup, TcpMapping};
use routing_api::{self as api, ApiSettings, Database, StoreError};
use telemetry::{Level, Logger, Sink};

/// The guid of the group that [`settings`] seeds.
pub(crate) const GROUP: &str = "7a3b9f5e-0000-4000-8000-000000000001";

/// Settings on a free port, with one router group.
pub(crate) fn settings(database: Database) -> ApiSettings {
    let mut settings = ApiSettings {
        listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        database,
        router_groups: vec![RouterGroup {
            guid: GROUP.into(),
            name: "default-tcp".into(),
            kind: "tcp".into(),
            reservable_ports: "1024-65535".into(),
        }],
        ..ApiSettings::default()
    };
    settings.limits.prune_interval = Duration::from_millis(50);
    settings.limits.retry_interval = Duration::from_millis(50);
    settings
}

/// An SQLite database in a folder.
pub(crate) fn sqlite(folder: &Path) -> Database {
    Database::Sqlite(folder.join("api.sqlite"))
}

/// A routing API that runs.
pub(crate) struct Api {
    pub(crate) running: api::Running,
    pub(crate) client: ApiClient,
    pub(crate) url: String,
    raw: Client,
}

/// A logger that keeps nothing.
pub(crate) fn logger() -> Logger {
    Logger::new("routing-api", Sink::nothing(), Level::Error)
}

impl Api {
    /// Starts one. PostgreSQL keeps the lock of one that has stopped until it has seen the end of
    /// its connection.
    pub(crate) async fn start(settings: &ApiSettings) -> Self {
        for _ in 0..2000 {
            match api::start(settings.clone(), logger()).await {
                Err(api::Error::Store(StoreError::Locked { .. })) => {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                started => return Self::of(started.unwrap()),
            }
        }
        panic!("the lock of the one before is still held");
    }

    /// One that was started.
    pub(crate) fn of(running: api::Running) -> Self {
        let url = format!("http://{}", running.address().unwrap());
        Self {
            client: client(&url),
            raw: Client::new(ClientOptions::default()),
            running,
            url,
        }
    }

    /// A call, byte for byte.
    pub(crate) async fn call(&self, method: Method, path: &str, body: &str) -> Answer {
        self.call_with(method, path, body, None).await
    }

    /// The same with an Authorization field.
    pub(crate) async fn call_with(
        &self,
        method: Method,
        path: &str,
        body: &str,
        authorization: Option<&str>,
    ) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url));
        if let Some(value) = authorization {
            request = request.header("authorization", value);
        }
        let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
        self.raw.request(request.body(body).unwrap()).await.unwrap()
    }

    /// An event stream, byte for byte.
    pub(crate) async fn stream(&self, path: &str) -> http::Response<Incoming> {
        let request = Request::get(format!("{}{path}", self.url));
        let request = request.body(Full::new(Bytes::new())).unwrap();
        self.raw.open(request).await.unwrap()
    }

    /// A number of the metrics page.
    pub(crate) async fn metric(&self, name: &str) -> u64 {
        let page = self.call(Method::GET, "/metrics", "").await.body;
        let page = String::from_utf8(page.to_vec()).unwrap();
        let line = page.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().parse().unwrap()
    }
}

/// A client without tokens.
pub(crate) fn client(url: &str) -> ApiClient {
    let settings = ClientSettings {
        url: url.to_owned(),
        ..ClientSettings::default()
    };
    ApiClient::new(&settings).unwrap()
}

/// Reads a stream until the text so far fits.
pub(crate) async fn read_until(body: &mut Incoming, fits: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    while !fits(&text) {
        let frame = body.frame().await.unwrap().unwrap();
        text.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
    }
    text
}

/// A mapping of [`GROUP`].
pub(crate) fn mapping(port: u16) -> TcpMapping {
    TcpMapping {
        router_group_guid: GROUP.into(),
        port,
        backend_ip: "10.0.0.1".into(),
        backend_port: 8080,
        ..TcpMapping::default()
    }
}

/// A mapping that says everything.
pub(crate) fn full_mapping(port: u16) -> TcpMapping {
    TcpMapping {
        backend_tls_port: -1,
        backend_sni_hostname: Some("sni.example.com".into()),
        sni_rewrite_hostname: Some("rewritten.example.com".into()),
        instance_id: "instance'\"\u{e9}".into(),
        ttl: Some(60),
        isolation_segment: "segment".into(),
        terminate_frontend_tls: true,
        alpns: "h2,http/1.1".into(),
        enable_backend_mtls: true,
        ..mapping(port)
    }
}

/// An HTTP route.
pub(crate) fn route(name: &str) -> HttpRoute {
    HttpRoute {
        route: name.into(),
        port: 8080,
        ip: "10.0.0.1".into(),
        log_guid: "app".into(),
        ..HttpRoute::default()
    }
}
