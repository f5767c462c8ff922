//! Locket answers over gRPC as the recorded one did, alone and in a BBS, plain and with mutual TLS,
//! with a database of its own and with one that it shares.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use cells::bbs::{self, locket};
use diego::locket::*;
use diego::models::CellsResponse;
use diego::path;
use http_body_util::Full;
use net::tls::Files;
use net::{Client, ClientOptions};
use prost::Message;
use serde::Deserialize;
use telemetry::{Level, Logger, Sink};
use wire::http2::grpc;

use crate::mutual_tls::certificates;
use crate::postgres_cluster::Cluster;

#[derive(Deserialize)]
struct Recorded {
    scenarios: Vec<Scenario>,
}

#[derive(Deserialize)]
struct Scenario {
    name: String,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    kind: String,
    name: String,
    #[serde(default)]
    path: String,
    #[serde(default)]
    ms: u64,
    #[serde(default)]
    request: Body,
    #[serde(default)]
    response: Body,
}

#[derive(Deserialize, Default)]
struct Body {
    #[serde(default)]
    hex: String,
    #[serde(default)]
    grpc_code_number: u32,
    #[serde(default)]
    grpc_message: String,
}

impl Body {
    fn bytes(&self) -> Vec<u8> {
        let digits = self.hex.as_bytes().chunks(2);
        let digits = digits.map(|pair| std::str::from_utf8(pair).unwrap());
        digits
            .map(|pair| u8::from_str_radix(pair, 16).unwrap())
            .collect()
    }
}

fn logger() -> Logger {
    Logger::new("locket", Sink::nothing(), Level::Info)
}

/// A Locket with a database in a folder, or in PostgreSQL.
pub(crate) fn config(folder: &Path, store: Option<&str>) -> locket::Config {
    locket::Config {
        listen: "127.0.0.1:0".parse().unwrap(),
        data_dir: folder.to_owned(),
        postgres: store.map(|store| bbs::PostgresSettings::at(store).unwrap()),
        tls: None,
    }
}

/// A call: gRPC's code and text, and the message of the answer.
pub(crate) async fn call(
    at: SocketAddr,
    files: Option<&Files>,
    path: &str,
    message: &[u8],
) -> Result<(u32, String, Vec<u8>), net::ClientError> {
    let host = at.to_string();
    let tls = files.map(|files| net::tls::client(files).unwrap());
    let request = grpc::request(tls.is_some(), &host, path).unwrap();
    let request = request.map(|()| Full::new(grpc::frame(message).unwrap()));
    let answer = net::http2_exchange(&host, tls.as_ref(), request, 1 << 20).await?;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["content-type"], "application/grpc");
    let status = answer.trailers.as_ref().unwrap_or(&answer.headers);
    let code = status["grpc-status"].to_str().unwrap().parse().unwrap();
    let text = status.get("grpc-message");
    let text = text.map_or("", |text| text.to_str().unwrap()).to_owned();
    let message = match answer.body.is_empty() {
        true => Vec::new(),
        false => grpc::message(&answer.body).unwrap().to_vec(),
    };
    Ok((code, text, message))
}

async fn lock(at: SocketAddr, files: Option<&Files>, owner: &str, value: &str) -> u32 {
    let resource = Resource {
        key: "cell-1".into(),
        owner: owner.into(),
        value: value.into(),
        r#type: String::new(),
        type_code: TypeCode::Presence.into(),
    };
    let request = LockRequest {
        resource: Some(resource),
        ttl_in_seconds: 3600,
    };
    let request = request.encode_to_vec();
    call(at, files, path::LOCKET_LOCK, &request)
        .await
        .unwrap()
        .0
}

/// The list as a set: its order has no meaning.
fn sorted(path: &str, message: Vec<u8>) -> Vec<u8> {
    if path != path::LOCKET_FETCH_ALL {
        return message;
    }
    let mut list = FetchAllResponse::decode(&*message).unwrap();
    list.resources
        .sort_by(|left, right| left.key.cmp(&right.key));
    list.encode_to_vec()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transcripts_are_as_recorded() {
    answers_as_recorded(|_| None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transcripts_on_postgresql_are_as_recorded() {
    let cluster = Cluster::start();
    answers_as_recorded(|number| Some(cluster.database(&format!("locket_{number}")))).await;
}

/// Each scenario begins without any key, in a store of its own.
async fn answers_as_recorded(store: impl Fn(usize) -> Option<String>) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/locket.json");
    let recorded: Recorded = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(recorded.scenarios.len(), 4);
    for (number, scenario) in recorded.scenarios.into_iter().enumerate() {
        let (folder, store) = (tempfile::tempdir().unwrap(), store(number));
        let config = config(folder.path(), store.as_deref());
        let (ask, shutdown) = net::shutdown();
        let running = locket::start(config, logger(), shutdown).await.unwrap();
        for step in &scenario.steps {
            if step.kind == "wait" {
                tokio::time::sleep(Duration::from_millis(step.ms)).await;
                continue;
            }
            let request = step.request.bytes();
            let answer = call(running.address(), None, &step.path, &request).await;
            let (code, text, message) = answer.unwrap();
            let expected = &step.response;
            let bytes = sorted(&step.path, expected.bytes());
            assert_eq!(
                (code, text.as_str(), sorted(&step.path, message)),
                (
                    expected.grpc_code_number,
                    expected.grpc_message.as_str(),
                    bytes
                ),
                "{}: {}",
                scenario.name,
                step.name
            );
        }
        ask.send(true).unwrap();
        running.stopped().await;
    }
}

#[tokio::test]
async fn who_held_a_key_holds_it_after_a_restart() {
    is_held_after_a_restart(None).await;
}

#[tokio::test]
async fn who_held_a_key_in_postgresql_holds_it_after_a_restart() {
    let cluster = Cluster::start();
    is_held_after_a_restart(Some(cluster.database("locket"))).await;
}

async fn is_held_after_a_restart(store: Option<String>) {
    let folder = tempfile::tempdir().unwrap();
    for owner in ["first", "second"] {
        let config = config(folder.path(), store.as_deref());
        let (ask, shutdown) = net::shutdown();
        let running = locket::start(config, logger(), shutdown).await.unwrap();
        // 6: it is in other hands.
        let expected = if owner == "first" { 0 } else { 6 };
        assert_eq!(lock(running.address(), None, owner, "").await, expected);
        ask.send(true).unwrap();
        running.stopped().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_presence_by_grpc_is_a_cell_of_the_bbs_and_certificates_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let files = certificates(folder.path());
    let mut config = bbs::Config::new("127.0.0.1:0".parse().unwrap(), folder.path().join("bbs"));
    config.locket_listen = Some("127.0.0.1:0".parse().unwrap());
    config.server_tls = Some(files.clone());
    config.client_tls = Some(files.clone());
    let running = bbs::start(config, logger()).await.unwrap();
    let at = running.locket().unwrap();
    let value = r#"{"cell_id":"cell-1","rep_address":"http://r"}"#;
    assert_eq!(lock(at, Some(&files), "o", value).await, 0);

    let client = Client::new(ClientOptions {
        tls: Some(net::tls::client(&files).unwrap()),
        ..ClientOptions::default()
    });
    let bbs = diego::Bbs::new(client, format!("https://{}", running.address()));
    let cells: CellsResponse = bbs.call(path::CELLS, &()).await.unwrap();
    assert_eq!(cells.cells[0].cell_id, "cell-1");

    // Nobody is served without TLS, nor with a certificate of somebody else's authority.
    let fetch = FetchRequest {
        key: "cell-1".into(),
    }
    .encode_to_vec();
    call(at, None, path::LOCKET_FETCH, &fetch)
        .await
        .unwrap_err();
    let strange = tempfile::tempdir().unwrap();
    let strange = Files {
        authority: files.authority.clone(),
        ..certificates(strange.path())
    };
    let refused = call(at, Some(&strange), path::LOCKET_FETCH, &fetch).await;
    refused.unwrap_err();
    running.stop().await.unwrap();
}

#[tokio::test]
async fn what_is_no_call_is_refused() {
    refuses_what_is_no_call(None).await;
}

#[tokio::test]
async fn what_is_no_call_is_refused_on_postgresql() {
    let cluster = Cluster::start();
    refuses_what_is_no_call(Some(cluster.database("locket"))).await;
}

async fn refuses_what_is_no_call(store: Option<String>) {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), store.as_deref());
    let (_ask, shutdown) = net::shutdown();
    let running = locket::start(config, logger(), shutdown).await.unwrap();
    let at = running.address();
    let unknown = call(at, None, "/models.Locket/Steal", b"").await.unwrap();
    assert_eq!(unknown.0, 12);
    let rubbish = call(at, None, path::LOCKET_LOCK, b"\xff\xff")
        .await
        .unwrap();
    assert_eq!(rubbish.0, 3);
    let nothing = call(at, None, path::LOCKET_LOCK, b"").await.unwrap();
    assert_eq!(nothing.0, 3);
    // A frame that says more than there is.
    let request = grpc::request(false, &at.to_string(), path::LOCKET_FETCH).unwrap();
    let short = request.map(|()| Full::new(Bytes::from_static(b"\0\0\0\0\x09ab")));
    let answer = net::http2_exchange(&at.to_string(), None, short, 1 << 20).await;
    assert_eq!(answer.unwrap().headers["grpc-status"], "3");
}
