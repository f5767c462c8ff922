//! A TCP router and a populator that prove themselves: tokens of a UAA, certificates of a
//! private authority, isolation segments.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use net::{Body, Client, ClientOptions, Handler, Incoming};
use rcgen::KeyPair;
use routing::api_feed;
use routing::tcp::{CHANGES, TcpRouter, TcpSettings};
use routing_api::client::{ApiClient, ClientError, ClientSettings, PeerTls, TokenSettings};
use routing_api::model::TcpMapping;
use routing_api::populate_tcp::{self, PopulateTcp};
use routing_api::{ApiSettings, MutualTls, Running};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use telemetry::{Level, Logger, Sink};
use tokio::sync::mpsc;

use crate::free_port::free_port;
use crate::running_api::{logger, settings, sqlite};
use crate::tcp::tls::Authority;

/// The client that UAA knows.
const CLIENT: (&str, &str) = ("tcp_router", "s3cr3t:of/it");

/// A UAA: gives its client tokens that it signs, by client credentials (RFC 6749 section
/// 4.4), and nobody else.
struct Uaa {
    key: KeyPair,
    granted: AtomicUsize,
    refused: AtomicUsize,
}

impl Uaa {
    async fn start(authority: &Authority) -> (Arc<Self>, String) {
        let uaa = Arc::new(Self {
            key: KeyPair::generate().unwrap(),
            granted: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
        });
        let (chain, key) = authority.sign("127.0.0.1");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from_pem_slice(chain.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
            )
            .unwrap();
        let listener = net::bind(local()).await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let (stop, asked) = net::shutdown();
        // It serves until the test's runtime ends.
        std::mem::forget(stop);
        let (limits, handler) = (net::Limits::default(), Arc::clone(&uaa));
        tokio::spawn(net::serve(
            listener,
            Some(Arc::new(tls)),
            limits,
            handler,
            asked,
        ));
        (uaa, url)
    }

    fn token(&self) -> String {
        let claims = serde_json::json!({
            "client_id": CLIENT.0,
            "scope": [
                "routing.routes.read", "routing.routes.write",
                "routing.router_groups.read", "routing.router_groups.write",
            ],
            "exp": jsonwebtoken::get_current_timestamp() + 600,
        });
        let key = EncodingKey::from_ec_pem(self.key.serialize_pem().as_bytes()).unwrap();
        jsonwebtoken::encode(&Header::new(Algorithm::ES256), &claims, &key).unwrap()
    }
}

impl Handler for Uaa {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let pair = STANDARD.encode(format!("{}:{}", CLIENT.0, CLIENT.1));
        let known = head.headers["authorization"] == format!("Basic {pair}").as_str();
        let asked = head.uri.path() == "/oauth/token" && body == "grant_type=client_credentials";
        let (status, answer) = if known && asked {
            self.granted.fetch_add(1, Ordering::SeqCst);
            let token = self.token();
            let answer = serde_json::json!({
                "access_token": token, "token_type": "bearer", "expires_in": 599,
            });
            (StatusCode::OK, answer.to_string())
        } else {
            self.refused.fetch_add(1, Ordering::SeqCst);
            (
                StatusCode::UNAUTHORIZED,
                r#"{"error":"unauthorized"}"#.into(),
            )
        };
        let mut response = Response::new(net::full(answer));
        *response.status_mut() = status;
        response
    }
}

fn local() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// An API that wants both: a certificate and a token.
async fn start_api(folder: &Path, authority: &Authority, uaa: &Uaa) -> Running {
    let (chain, key) = authority.sign("127.0.0.1");
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let files = net::tls::Files {
        certificate: write("api.crt", &chain),
        key: write("api.key", &key),
        authority: write("ca.crt", &authority.pem),
    };
    let settings = ApiSettings {
        listen: None,
        mtls: Some(MutualTls {
            listen: local(),
            files,
        }),
        status: Some(local()),
        token_key: Some(write("uaa.pem", &uaa.key.public_key_pem())),
        ..settings(sqlite(folder))
    };
    routing_api::start(settings, logger()).await.unwrap()
}

/// How a client with everything in order calls the API.
fn client_settings(api: &Running, authority: &Authority, uaa_url: &str) -> ClientSettings {
    let (certificate, key) = authority.sign("127.0.0.1");
    ClientSettings {
        url: format!("https://{}", api.mtls_address().unwrap()),
        tls: PeerTls {
            authorities: authority.pem.clone(),
            certificate,
            key: key.into(),
        },
        tokens: Some(TokenSettings {
            url: uaa_url.to_owned(),
            client: CLIENT.0.to_owned(),
            secret: CLIENT.1.into(),
            authorities: authority.pem.clone(),
            insecure: false,
        }),
    }
}

async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let request = Request::get(format!("http://{address}{path}"));
    let request = request.body(Full::new(Bytes::new())).unwrap();
    let client = Client::new(ClientOptions::default());
    let answer = client.request(request).await.unwrap();
    let body = String::from_utf8(answer.body.to_vec()).unwrap();
    (answer.status.as_u16(), body)
}

/// A router, and its feed as soon as it is let.
async fn start_router(api: ClientSettings, segments: &[&str]) -> (TcpRouter, Sink) {
    let log = Sink::memory();
    let logger = Logger::new("tcp-router", log.clone(), Level::Debug);
    let settings = TcpSettings {
        listen: IpAddr::V4(Ipv4Addr::LOCALHOST),
        status: Some(local()),
        threads: Some(1),
        routing_api: Some(api.clone()),
        isolation_segments: segments.iter().map(|it| (*it).to_owned()).collect(),
        ..TcpSettings::default()
    };
    let segments = settings.isolation_segments.clone();
    let (changes, told) = mpsc::channel(CHANGES);
    let router = TcpRouter::start(settings, told, logger.clone()).await;
    let router = router.unwrap();
    let before = get(router.status().unwrap(), "/health").await;
    assert_eq!(before, (503, "waiting for the routing API\n".to_owned()));
    let (stop, asked) = net::shutdown();
    std::mem::forget(stop);
    tokio::spawn(async move {
        let _ = api_feed::tcp::run(&api, segments, changes, logger, asked).await;
    });
    (router, log)
}

async fn until<F: Future<Output = bool>>(so: impl Fn() -> F) {
    while !so().await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_router_serves_its_segment_with_token_and_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let (uaa, uaa_url) = Uaa::start(&authority).await;
    let api = start_api(folder.path(), &authority, &uaa).await;
    let of_client = client_settings(&api, &authority, &uaa_url);
    let populate = async |segment: &str, port: u16| {
        let what = PopulateTcp {
            api: of_client.clone(),
            router_group: "default-tcp".into(),
            isolation_segment: segment.into(),
            first_port: port,
            routes: 1,
            backend: SocketAddr::from(([127, 0, 0, 1], 9)),
            ttl: Some(60),
            every: Duration::from_secs(60),
            once: true,
        };
        let (_stop, asked) = net::shutdown();
        populate_tcp::run(&what, logger(), asked).await.unwrap();
    };
    let (mine, others) = (free_port(), free_port());
    populate("mine", mine).await;
    populate("others", others).await;
    let (router, log) = start_router(of_client.clone(), &["mine"]).await;
    let status = router.status().unwrap();
    until(async || get(status, "/health").await.0 == 200).await;
    until(async || log.kept().contains("port-opened")).await;
    tokio::net::TcpStream::connect(("127.0.0.1", mine))
        .await
        .unwrap();
    assert!(
        tokio::net::TcpStream::connect(("127.0.0.1", others))
            .await
            .is_err()
    );
    let page = get(status, "/metrics").await.1;
    assert!(page.contains("\ntcp_router_ports 1\n"), "{page}");
    assert!(
        page.contains("\ntcp_router_ms_since_last_change "),
        "{page}"
    );
    // Each party has a token of its own, and none was refused one.
    assert_eq!(uaa.granted.load(Ordering::SeqCst), 3);
    assert_eq!(uaa.refused.load(Ordering::SeqCst), 0);
    assert!(!log.kept().contains(CLIENT.1), "{}", log.kept());
    router.stop();
    api.stop().await.unwrap();
}

#[tokio::test]
async fn a_router_that_is_refused_says_so_and_keeps_the_secret() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let (uaa, uaa_url) = Uaa::start(&authority).await;
    let api = start_api(folder.path(), &authority, &uaa).await;
    let mut of_client = client_settings(&api, &authority, &uaa_url);
    if let Some(tokens) = &mut of_client.tokens {
        tokens.secret = "wr0ng-s3cr3t".into();
    }
    let (router, log) = start_router(of_client, &[]).await;
    until(async || log.kept().contains("subscribe-failed")).await;
    assert!(uaa.refused.load(Ordering::SeqCst) >= 3);
    assert_eq!(get(router.status().unwrap(), "/health").await.0, 503);
    let kept = log.kept();
    assert!(kept.contains("fetch a token from"), "{kept}");
    assert!(kept.contains("401"), "{kept}");
    assert!(!kept.contains("wr0ng-s3cr3t"), "{kept}");
    router.stop();
    api.stop().await.unwrap();
}

#[tokio::test]
async fn what_is_missing_is_missed() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let (uaa, uaa_url) = Uaa::start(&authority).await;
    let api = start_api(folder.path(), &authority, &uaa).await;
    let right = client_settings(&api, &authority, &uaa_url);
    let list =
        async |settings: &ClientSettings| ApiClient::new(settings)?.list::<TcpMapping>().await;
    list(&right).await.unwrap();

    let without_token = ClientSettings {
        tokens: None,
        ..right.clone()
    };
    let refused = list(&without_token).await;
    assert!(
        matches!(&refused, Err(ClientError::Refused { status, .. }) if *status == 401),
        "{refused:?}"
    );
    let mut without_certificate = right.clone();
    without_certificate.tls.certificate.clear();
    assert!(matches!(
        list(&without_certificate).await,
        Err(ClientError::Exchange(_))
    ));
    let mut of_the_web = right.clone();
    of_the_web.tls.authorities.clear();
    assert!(matches!(
        list(&of_the_web).await,
        Err(ClientError::Exchange(_))
    ));
    let mut strange_uaa = right.clone();
    if let Some(tokens) = &mut strange_uaa.tokens {
        tokens.authorities = Authority::new().pem;
    }
    assert!(matches!(
        list(&strange_uaa).await,
        Err(ClientError::Token { .. })
    ));
    // Whoever may ask nothing else learns that it lives.
    let status = api.status_address().unwrap();
    assert_eq!(get(status, "/health").await.0, 200);
    let page = get(status, "/metrics").await;
    assert!(
        page.1.contains("routing_api_token_errors_total 1"),
        "{page:?}"
    );
    assert_eq!(get(status, "/routing/v1/tcp_routes").await.0, 404);
    api.stop().await.unwrap();
}

#[test]
fn a_secret_does_not_cross_the_network_in_plain_text() {
    let settings = |url: &str| ClientSettings {
        url: "https://api.example:3001".into(),
        tokens: Some(TokenSettings {
            url: url.into(),
            secret: CLIENT.1.into(),
            ..TokenSettings::default()
        }),
        ..ClientSettings::default()
    };
    for (url, good) in [
        ("http://uaa.example:8080", false),
        ("http://10.0.0.7", false),
        ("HTTP://uaa.example", false),
        ("http://127.0.0.1:8080", true),
        ("http://[::1]:8080", true),
        ("http://localhost", true),
        ("https://uaa.example", true),
    ] {
        let made = ApiClient::new(&settings(url)).map(drop);
        assert_eq!(made.is_ok(), good, "{url}: {made:?}");
        if let Err(error) = made {
            assert!(!error.to_string().contains(CLIENT.1));
        }
    }
}
