//! Calls over the wire: paths, statuses, bodies, tokens, events, bounds.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::SocketAddr;
use std::path::Path;

use crate::running_api::{Api, GROUP, logger, mapping, read_until, route, settings, sqlite};
use http::{Method, StatusCode};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PKCS_ECDSA_P256_SHA256,
    PKCS_RSA_SHA256,
};
use routing_api::client::{ApiClient, ClientError, ClientSettings, PeerTls};
use routing_api::model::TcpMapping;
use routing_api::{self as api, MutualTls};
use serde_json::json;

const TCP: &str = "/routing/v1/tcp_routes";

fn text(answer: &net::Answer) -> &str {
    std::str::from_utf8(&answer.body).unwrap()
}

#[tokio::test]
async fn mappings_come_and_go_as_the_protocol_says() {
    let folder = tempfile::tempdir().unwrap();
    let api = Api::start(&settings(sqlite(folder.path()))).await;
    let empty = api.call(Method::GET, TCP, "").await;
    assert_eq!((empty.status, text(&empty)), (StatusCode::OK, "[]"));
    let body = format!(
        r#"[{{"router_group_guid":"{GROUP}","port":5200,"backend_ip":"10.0.0.1","backend_port":60000,"isolation_segment":"is1","unknown":1}}]"#
    );
    let made = api
        .call(Method::POST, &format!("{TCP}/create"), &body)
        .await;
    assert_eq!((made.status, text(&made)), (StatusCode::CREATED, ""));
    let list = api.call(Method::GET, TCP, "").await;
    assert_eq!(list.headers["content-type"], "application/json");
    let rows: serde_json::Value = serde_json::from_slice(&list.body).unwrap();
    let tag = &rows[0]["modification_tag"];
    assert_eq!(tag["guid"].as_str().unwrap().len(), 36);
    assert_eq!(
        rows,
        json!([{
            "router_group_guid": GROUP, "port": 5200, "backend_ip": "10.0.0.1",
            "backend_port": 60000, "backend_tls_port": 0, "instance_id": "", "ttl": 120,
            "isolation_segment": "is1", "modification_tag": {"guid": tag["guid"], "index": 0},
        }])
    );
    for (query, found) in [
        ("?isolation_segment=is1", 1),
        ("?isolation_segment=is2", 0),
        ("?isolation_segment=is2&isolation_segment=is1", 1),
        ("?isolation_segment=", 0),
    ] {
        let list = api.call(Method::GET, &format!("{TCP}{query}"), "").await;
        let rows: Vec<TcpMapping> = serde_json::from_slice(&list.body).unwrap();
        assert_eq!(rows.len(), found, "{query}");
    }
    for _ in 0..2 {
        let gone = api
            .call(Method::POST, &format!("{TCP}/delete"), &body)
            .await;
        assert_eq!((gone.status, text(&gone)), (StatusCode::NO_CONTENT, ""));
    }
    api.running.stop().await.unwrap();
}

#[tokio::test]
async fn errors_have_their_names_texts_and_statuses() {
    let folder = tempfile::tempdir().unwrap();
    let api = Api::start(&settings(sqlite(folder.path()))).await;
    let unknown = r#"[{"router_group_guid":"g","port":1,"backend_ip":"1.1.1.1","backend_port":2}]"#;
    let no_port =
        format!(r#"[{{"router_group_guid":"{GROUP}","backend_ip":"1.1.1.1","backend_port":2}}]"#);
    let cases = [
        (
            Method::POST,
            "/routing/v1/tcp_routes/create",
            unknown,
            400,
            r#"{"name":"ProcessRequestError","message":"Cannot process request: router_group_guid: g not found"}"#.to_owned(),
        ),
        (
            Method::POST,
            "/routing/v1/tcp_routes/create",
            &no_port,
            400,
            format!(
                r#"{{"name":"ProcessRequestError","message":"Cannot process request: Each tcp mapping requires a positive external port. RouteMapping=[{GROUP}:0<->1.1.1.1:2]"}}"#
            ),
        ),
        (
            Method::POST,
            "/routing/v1/routes",
            r#"[{"route":"a.b","ip":"1.1.1.1","port":1,"ttl":121}]"#,
            400,
            r#"{"name":"RouteInvalidError","message":"Max ttl is 120"}"#.to_owned(),
        ),
        (
            Method::POST,
            "/routing/v1/routes",
            r#"[{"route":"a.b","ip":"1.1.1.1","port":1,"route_service_url":"http://c"}]"#,
            400,
            r#"{"name":"RouteServiceUrlInvalidError","message":"Route service url must use HTTPS."}"#
                .to_owned(),
        ),
        (
            Method::PUT,
            "/routing/v1/router_groups/none",
            "{}",
            404,
            r#"{"name":"ResourceNotFoundError","message":"router group 'none' does not exist"}"#
                .to_owned(),
        ),
        // A path is no form.
        (
            Method::PUT,
            "/routing/v1/router_groups/a=b&c+d%26%c3%a9",
            "{}",
            404,
            r#"{"name":"ResourceNotFoundError","message":"router group 'a=b&c+d&é' does not exist"}"#
                .to_owned(),
        ),
        (Method::GET, "/routing/v2", "", 404, "404 page not found\n".to_owned()),
        (
            Method::GET,
            "/routing/v1/tcp_routes/create",
            "",
            405,
            "Method Not Allowed\n".to_owned(),
        ),
    ];
    for (method, path, body, status, expected) in cases {
        let answer = api.call(method, path, body).await;
        assert_eq!(
            (answer.status.as_u16(), text(&answer)),
            (status, &*expected)
        );
    }
    for (method, path, allowed) in [
        (Method::HEAD, TCP, "GET"),
        (Method::PATCH, "/routing/v1/routes", "GET, POST, DELETE"),
        (Method::GET, "/routing/v1/router_groups/g", "PUT, DELETE"),
    ] {
        let answer = api.call(method, path, "").await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
        assert_eq!(answer.headers["allow"], allowed, "{path}");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
    }
    let garbage = api.call(Method::POST, "/routing/v1/routes", "[{").await;
    assert_eq!(garbage.status, StatusCode::BAD_REQUEST);
    assert!(
        text(&garbage)
            .starts_with(r#"{"name":"ProcessRequestError","message":"Cannot process request: "#)
    );
    api.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_stream_tells_each_change_with_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let api = Api::start(&settings(sqlite(folder.path()))).await;
    let mut stream = api.stream("/routing/v1/events").await;
    let field = |name: &str| stream.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(field("content-type"), "text/event-stream; charset=utf-8");
    assert_eq!(
        field("cache-control"),
        "no-cache, no-store, must-revalidate"
    );
    // Changes of the other kind are not told here.
    api.client.upsert(&[mapping(5200)]).await.unwrap();
    api.client.upsert(&[route("a.b")]).await.unwrap();
    api.client.upsert(&[route("a.b")]).await.unwrap();
    api.client.delete(&[route("a.b")]).await.unwrap();
    let told = read_until(stream.body_mut(), |text| text.matches("\n\n").count() == 3).await;
    let rows: Vec<&str> = told
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .collect();
    let row: serde_json::Value = serde_json::from_str(rows[0]).unwrap();
    let guid = row["modification_tag"]["guid"].as_str().unwrap();
    let data = |index: u32| {
        format!(
            r#"{{"route":"a.b","port":8080,"ip":"10.0.0.1","ttl":120,"log_guid":"app","modification_tag":{{"guid":"{guid}","index":{index}}}}}"#
        )
    };
    assert_eq!(
        told,
        format!(
            "id: 0\nevent: Upsert\ndata: {}\n\nid: 1\nevent: Upsert\ndata: {}\n\nid: 2\nevent: Delete\ndata: {}\n\n",
            data(0),
            data(1),
            data(1)
        )
    );
    api.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_subscriber_that_does_not_read_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(sqlite(folder.path()));
    settings.limits.subscriber_events = 8;
    let api = Api::start(&settings).await;
    let stream = api.stream("/routing/v1/tcp_routes/events").await;
    let many: Vec<_> = (2000..4000).map(mapping).collect();
    let mut rounds = 0;
    while api.metric("routing_api_slow_subscribers_total").await == 0 {
        api.client.upsert(&many).await.unwrap();
        rounds += 1;
        assert!(rounds < 1000, "never cut off");
    }
    drop(stream);
    while api.metric("routing_api_tcp_subscriptions").await > 0 {
        tokio::task::yield_now().await;
    }
    api.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_full_disk_is_a_503_that_passes() {
    let folder = tempfile::tempdir().unwrap();
    let api = Api::start(&settings(sqlite(folder.path()))).await;
    api.client.upsert(&[mapping(5200)]).await.unwrap();
    api.running.limit_pages(1).await;
    let many: Vec<_> = (6000..12000).map(mapping).collect();
    let refused = api.client.upsert(&many).await.unwrap_err();
    let ClientError::Refused { status, text, .. } = refused else {
        panic!("{refused}");
    };
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(
        text.starts_with(r#"{"name":"DBCommunicationError","message":"write to the database: "#)
    );
    // Nothing of it is there, and what was there is.
    assert_eq!(api.client.list::<TcpMapping>().await.unwrap().len(), 1);
    api.running.limit_pages(1 << 20).await;
    api.client.upsert(&many).await.unwrap();
    assert_eq!(api.client.list::<TcpMapping>().await.unwrap().len(), 6001);
    api.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_body_beyond_the_bound_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(sqlite(folder.path()));
    settings.limits.body_bytes = 100;
    let api = Api::start(&settings).await;
    let long = format!("[{}]", " ".repeat(100));
    let answer = api.call(Method::POST, "/routing/v1/routes", &long).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(
        api.call(Method::GET, "/health", "").await.status,
        StatusCode::OK
    );
    api.running.stop().await.unwrap();
}

fn claims(scope: serde_json::Value, lives: i64) -> serde_json::Value {
    let now = jsonwebtoken::get_current_timestamp() as i64;
    json!({"scope": scope, "exp": now + lives, "aud": ["anybody"], "iss": "https://uaa"})
}

async fn tokens_decide(folder: &Path, pair: &KeyPair, algorithm: Algorithm, key: EncodingKey) {
    std::fs::create_dir(folder).unwrap();
    let file = folder.join("token.pem");
    std::fs::write(&file, pair.public_key_pem()).unwrap();
    let mut settings = settings(sqlite(folder));
    settings.token_key = Some(file);
    let api = Api::start(&settings).await;
    let token = |claims: &serde_json::Value| {
        let token = encode(&Header::new(algorithm), claims, &key).unwrap();
        format!("bearer {token}")
    };
    let read = token(&claims(json!(["routing.routes.read"]), 60));
    let words = token(&claims(json!("a routing.routes.read b"), 60));
    let groups = token(&claims(json!(["routing.router_groups.read"]), 60));
    let late = token(&claims(json!(["routing.routes.read"]), -5));
    let forged = {
        let secret = EncodingKey::from_secret(pair.public_key_pem().as_bytes());
        let claims = claims(json!(["routing.routes.read"]), 60);
        let token = encode(&Header::new(Algorithm::HS256), &claims, &secret).unwrap();
        format!("bearer {token}")
    };
    let unsigned = format!("{}AAAA", &read[..read.len() - 4]);
    let (write, router_groups) = ("/routing/v1/routes", "/routing/v1/router_groups");
    let lacking = "You are not authorized to perform the requested action";
    let signature = match algorithm {
        Algorithm::ES256 => "crypto/ecdsa: verification error",
        _ => "crypto/rsa: verification error",
    };
    for (method, path, token, refusal) in [
        (Method::GET, TCP, Some(&*read), ""),
        (Method::GET, TCP, Some(&words), ""),
        (Method::GET, TCP, Some(&groups), lacking),
        (Method::GET, TCP, Some(&late), "Token is expired"),
        (Method::GET, TCP, Some(&forged), "invalid signing method"),
        (Method::GET, TCP, Some(&unsigned), signature),
        (Method::GET, TCP, Some("bearer a.b.c"), "token is malformed"),
        (
            Method::GET,
            TCP,
            Some("Basic YTpi"),
            "Invalid token type: Basic",
        ),
        (Method::GET, TCP, None, "invalid token format"),
        (Method::POST, write, Some(&read), lacking),
        (Method::GET, router_groups, Some(&groups), ""),
        (Method::GET, router_groups, Some(&read), lacking),
        (Method::GET, "/routing/v1/events", Some(&groups), lacking),
        (Method::GET, "/health", None, ""),
    ] {
        let answer = api.call_with(method, path, "", token).await;
        let status = if refusal.is_empty() { 200 } else { 401 };
        assert_eq!(answer.status.as_u16(), status, "{path} {token:?}");
        if status == 401 {
            let expected = json!({"name": "UnauthorizedError", "message": refusal});
            let found: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
            assert_eq!(found, expected, "{path} {token:?}");
        }
    }
    assert_eq!(api.metric("routing_api_token_errors_total").await, 10);
    api.running.stop().await.unwrap();
    // Other zones of a UAA sign with its key: only the issuer tells their tokens apart.
    let mut elsewhere = claims(json!(["routing.routes.read"]), 60);
    elsewhere["iss"] = json!("https://zone.uaa");
    let mut nobody = elsewhere.clone();
    nobody.as_object_mut().unwrap().remove("iss");
    settings.token_issuer = Some("https://uaa".to_owned());
    let api = Api::start(&settings).await;
    for (token, status) in [(read, 200), (token(&elsewhere), 401), (token(&nobody), 401)] {
        let answer = api.call_with(Method::GET, TCP, "", Some(&token)).await;
        assert_eq!(answer.status.as_u16(), status);
        let is_told = text(&answer).contains("invalid issuer");
        assert_eq!(is_told, status == 401, "{}", text(&answer));
    }
    api.running.stop().await.unwrap();
}

#[tokio::test]
async fn tokens_signed_with_ec_and_rsa_decide_who_may_do_what() {
    let folder = tempfile::tempdir().unwrap();
    let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let key = EncodingKey::from_ec_pem(pair.serialize_pem().as_bytes()).unwrap();
    tokens_decide(&folder.path().join("ec"), &pair, Algorithm::ES256, key).await;
    let pair = KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap();
    let key = EncodingKey::from_rsa_pem(pair.serialize_pem().as_bytes()).unwrap();
    for algorithm in [Algorithm::RS256, Algorithm::RS384, Algorithm::RS512] {
        let folder = folder.path().join(format!("{algorithm:?}"));
        tokens_decide(&folder, &pair, algorithm, key.clone()).await;
    }
}

#[tokio::test]
async fn other_machines_need_a_token_or_a_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(sqlite(folder.path()));
    settings.listen = Some(SocketAddr::from(([0, 0, 0, 0], 0)));
    let refused = api::start(settings.clone(), logger()).await.unwrap_err();
    assert!(refused.to_string().contains("without a token"), "{refused}");
    settings.listen = None;
    let refused = api::start(settings.clone(), logger()).await.unwrap_err();
    assert!(refused.to_string().contains("listens nowhere"), "{refused}");
    settings.listen = Some(SocketAddr::from(([0, 0, 0, 0], 0)));
    settings.open_to_all = true;
    let running = api::start(settings, logger()).await.unwrap();
    running.stop().await.unwrap();
}

#[tokio::test]
async fn mutual_tls_lets_those_in_whom_the_authority_signed() {
    let folder = tempfile::tempdir().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let signed = |name: &str| {
        let pair = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&pair, &authority).unwrap();
        (certificate.pem(), pair.serialize_pem())
    };
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (certificate, key) = signed("localhost");
    let files = net::tls::Files {
        certificate: write("api.crt", &certificate),
        key: write("api.key", &key),
        authority: write("ca.crt", &authority.pem()),
    };
    let mut settings = settings(sqlite(folder.path()));
    settings.listen = None;
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    settings.mtls = Some(MutualTls { listen, files });
    let running = api::start(settings, logger()).await.unwrap();
    let port = running.mtls_address().unwrap().port();
    let client = |certificate: &str, key: &str| {
        let settings = ClientSettings {
            url: format!("https://localhost:{port}"),
            tls: PeerTls {
                authorities: authority.pem(),
                certificate: certificate.to_owned(),
                key: key.into(),
            },
            tokens: None,
        };
        ApiClient::new(&settings).unwrap()
    };
    let (certificate, key) = signed("router");
    client(&certificate, &key)
        .upsert(&[mapping(5200)])
        .await
        .unwrap();
    client("", "").upsert(&[mapping(5201)]).await.unwrap_err();
    running.stop().await.unwrap();
}

#[tokio::test]
async fn router_groups_are_locked_for_a_backup() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(sqlite(folder.path()));
    settings.admin_listen = Some(SocketAddr::from(([0, 0, 0, 0], 0)));
    let refused = api::start(settings.clone(), logger()).await.unwrap_err();
    assert!(refused.to_string().contains("expected a loopback address"));
    settings.admin_listen = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let api = Api::start(&settings).await;
    let admin = api.running.admin_address().unwrap();
    let put = async |path: &str| {
        let client = net::Client::new(net::ClientOptions::default());
        let request = http::Request::put(format!("http://{admin}/{path}"));
        let request = request.body(http_body_util::Full::default()).unwrap();
        client.request(request).await.unwrap().status
    };
    let groups = "/routing/v1/router_groups";
    let statuses = async || {
        let body = r#"{"name":"default-tcp","type":"tcp"}"#;
        let list = api.call(Method::GET, groups, "").await;
        let make = api.call(Method::POST, groups, body).await;
        [list.status.as_u16(), make.status.as_u16()]
    };
    assert_eq!(statuses().await, [200, 200]);
    assert_eq!(put("lock_router_group_writes").await, StatusCode::OK);
    assert_eq!(statuses().await, [200, 503]);
    assert_eq!(put("lock_router_group_reads").await, StatusCode::OK);
    assert_eq!(statuses().await, [503, 503]);
    let list = api.call(Method::GET, groups, "").await;
    assert_eq!(
        text(&list),
        r#"{"name":"DBCommunicationError","message":"database unavailable due to backup or restore"}"#
    );
    assert_eq!(put("unlock_router_group_reads").await, StatusCode::OK);
    assert_eq!(put("unlock_router_group_writes").await, StatusCode::OK);
    assert_eq!(statuses().await, [200, 200]);
    assert_eq!(put("anything").await, StatusCode::NOT_FOUND);
    api.running.stop().await.unwrap();
}
