//! Agents and a server in one process, over real sockets and disks.

use std::path::Path;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use telemetry::{Level, Logger, Sink};

use super::*;
use crate::client::ApiClient;
use crate::definitions::Definitions;
use crate::folder::{self, FolderFile};
use crate::server::{self, Acceptance, Running};

fn logger() -> Logger {
    Logger::new("test", Sink::nothing(), Level::Error)
}

async fn server(folder: &Path, acceptance: Acceptance) -> Running {
    let config = server::Config {
        acceptance,
        ..server::Config::new(([127, 0, 0, 1], 0).into(), folder)
    };
    server::start(config, logger()).await.unwrap()
}

fn api(folder: &Path) -> ApiClient {
    ApiClient::of_data(folder, None).unwrap()
}

async fn call(api: &ApiClient, method: Method, path: &str, body: Value) -> Value {
    let body = (!body.is_null()).then_some(&body);
    api.call(method, path, body).await.unwrap()
}

fn agent(server: &Running, folder: &Path, root: &Path) -> Config {
    Config {
        server: format!("https://{}", server.address()),
        server_certificate: None,
        policy_key: None,
        data: folder.to_path_buf(),
        root: root.to_path_buf(),
        hostname: Some("web-1.example.org".into()),
        interval: None,
        force_audit: false,
        admin_listen: None,
    }
}

/// A file that is enforced, and one that is audited.
fn definitions(text: &str) -> Definitions {
    let file = |path: &str, text: String| FolderFile {
        path: path.into(),
        source: document::Source {
            name: path.into(),
            text,
        },
    };
    let technique = "params: [{name: path}, {name: text}]\n\
                     items:\n  - name: Text\n    method: file_content\n    params:\n      \
                     path: ${file.path}\n      lines: ${file.text}\n";
    let directive = |path: &str, mode: &str, text: &str| {
        format!("technique: file\npolicyMode: {mode}\nparams: {{path: {path}, text: {text}}}\n")
    };
    let files = [
        file("techniques/file.yml", technique.into()),
        file(
            "directives/motd.yml",
            directive("/etc/motd", "enforce", text),
        ),
        file(
            "directives/issue.yml",
            directive("/etc/issue", "audit", "known"),
        ),
        file(
            "rules/base.yml",
            "directives: [motd, issue]\ntargets: [special:all]\n".into(),
        ),
    ];
    folder::read(&files).unwrap()
}

async fn define(api: &ApiClient, text: &str) -> Value {
    let now = call(api, Method::GET, "definitions", Value::Null).await;
    let path = format!("definitions?base={}", now["version"]);
    call(api, Method::PUT, &path, json!(definitions(text))).await
}

/// Rounds until the agent has another policy than `before`.
async fn next_policy(config: &Config, before: Option<&str>) -> Round {
    for _ in 0..500 {
        let round = once(config.clone()).await.unwrap();
        assert_eq!(round.problems, [""; 0]);
        if round.config_id.is_some() && round.config_id.as_deref() != before {
            return round;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("no other policy came");
}

/// Statuses and messages by directive.
async fn reports(api: &ApiClient, node: &str) -> Vec<(String, String, String)> {
    let path = format!("nodes/{node}/compliance");
    let shown = call(api, Method::GET, &path, Value::Null).await;
    let mut all = Vec::new();
    for directive in shown["nodes"][0]["rules"][0]["directives"]
        .as_array()
        .unwrap()
    {
        for component in directive["components"].as_array().unwrap() {
            for report in component["values"][0]["reports"].as_array().unwrap() {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                all.push((
                    text(&directive["id"]),
                    text(&report["status"]),
                    text(&report["message"]),
                ));
            }
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn from_an_unknown_machine_to_its_compliance() {
    let (data, own, root) = (tempdir(), tempdir(), tempdir());
    let server = server(data.path(), Acceptance::Manual).await;
    let api = api(data.path());
    let config = agent(&server, own.path(), root.path());
    // Unknown, then pending: no policy, nothing is run.
    let round = once(config.clone()).await.unwrap();
    assert_eq!((round.config_id, round.ran), (None, false));
    let pending = call(&api, Method::GET, "nodes/pending", Value::Null).await;
    assert_eq!(pending["nodes"][0]["id"], round.node.as_str());
    assert_eq!(pending["nodes"][0]["hostname"], "web-1.example.org");
    let global = call(&api, Method::GET, "compliance", Value::Null).await;
    assert_eq!(global["globalCompliance"]["compliance"], -1);

    // Accepted, and told what it should be.
    let path = format!("nodes/pending/{}", round.node);
    call(&api, Method::POST, &path, json!({"status": "accepted"})).await;
    let first = next_policy(&config, None).await;
    assert_eq!(first.repaired, 0);
    let applied = define(&api, "hello").await;
    assert_eq!(applied["plan"]["nodes"], 1);
    let second = next_policy(&config, first.config_id.as_deref()).await;
    assert_eq!((second.repaired, second.sent), (1, 1));
    let written = std::fs::read_to_string(root.path().join("etc/motd")).unwrap();
    assert_eq!(written, "hello\n");
    // What is audited is left alone.
    assert!(!root.path().join("etc/issue").exists());
    let node = second.node.as_str();
    let said = |directive: &str, status: &str, message: &str| {
        (directive.to_owned(), status.to_owned(), message.to_owned())
    };
    let missing = said(
        "issue",
        "auditNonCompliant",
        "file_content /etc/issue was not correct: there is no such file",
    );
    let repaired = said(
        "motd",
        "successRepaired",
        "file_content /etc/motd was repaired: there is no such file",
    );
    assert_eq!(reports(&api, node).await, [missing.clone(), repaired]);
    let global = call(&api, Method::GET, "compliance", Value::Null).await;
    assert_eq!(global["globalCompliance"]["compliance"], 50);

    // A change on the machine is repaired.
    std::fs::write(root.path().join("etc/motd"), "other\n").unwrap();
    let third = once(config.clone()).await.unwrap();
    assert_eq!((third.repaired, third.config_id), (1, second.config_id));
    std::fs::write(root.path().join("etc/issue"), "known\n").unwrap();
    let fourth = once(config.clone()).await.unwrap();
    assert_eq!(fourth.events, []);
    let global = call(&api, Method::GET, "compliance", Value::Null).await;
    assert_eq!(global["globalCompliance"]["compliance"], 100);
    let system = format!("nodes/{node}/compliance/system");
    let system = call(&api, Method::GET, &system, Value::Null).await;
    assert_eq!(system["nodes"][0]["compliance"], 100.0);
    let rule = call(&api, Method::GET, "rules/base/compliance", Value::Null).await;
    assert_eq!(rule["rules"][0]["compliance"], 100.0);
    assert_eq!(rule["rules"][0]["nodes"][0]["id"], node);

    // After a restart all of it is as it was, with the same policy.
    server.stop().await.unwrap();
    let server = self::server(data.path(), Acceptance::Manual).await;
    let config = agent(&server, own.path(), root.path());
    let api = self::api(data.path());
    let global = call(&api, Method::GET, "compliance", Value::Null).await;
    assert_eq!(global["globalCompliance"]["compliance"], 100);
    assert_ne!(reports(&api, node).await, [missing]);
    let fifth = once(config).await.unwrap();
    assert_eq!(
        (fifth.problems, fifth.config_id),
        (Vec::new(), fourth.config_id)
    );
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_wait_while_the_server_is_away() {
    let (data, own, root) = (tempdir(), tempdir(), tempdir());
    let server = server(data.path(), Acceptance::All).await;
    define(&api(data.path()), "hello").await;
    let config = agent(&server, own.path(), root.path());
    next_policy(&config, None).await;
    let address = server.address();
    server.stop().await.unwrap();
    for waiting in 1..=2 {
        std::fs::write(root.path().join("etc/motd"), "other\n").unwrap();
        let round = once(config.clone()).await.unwrap();
        // It does its work all the same.
        assert_eq!((round.repaired, round.sent, round.waiting), (1, 0, waiting));
        assert!(!round.problems.is_empty());
    }
    let again = server::Config {
        acceptance: Acceptance::All,
        ..server::Config::new(address, data.path())
    };
    let server = server::start(again, logger()).await.unwrap();
    let round = once(config).await.unwrap();
    assert_eq!((round.sent, round.waiting), (3, 0));
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn another_server_in_the_place_of_the_known_one_is_told_nothing() {
    let (data, other, own, root) = (tempdir(), tempdir(), tempdir(), tempdir());
    let server = server(data.path(), Acceptance::All).await;
    let config = agent(&server, own.path(), root.path());
    next_policy(&config, None).await;
    server.stop().await.unwrap();
    let impostor = self::server(other.path(), Acceptance::All).await;
    let config = agent(&impostor, own.path(), root.path());
    let round = once(config).await.unwrap();
    assert_eq!(round.sent, 0);
    assert!(
        round.problems[0].contains("another than was trusted"),
        "{:?}",
        round.problems
    );
    let nodes = call(&api(other.path()), Method::GET, "nodes", Value::Null).await;
    assert_eq!(nodes["nodes"], json!([]));
    impostor.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_report_of_a_fleet_is_counted() {
    let (data, own) = (tempdir(), tempdir());
    let server = server(data.path(), Acceptance::All).await;
    let api = api(data.path());
    define(&api, "hello").await;
    let fleet = FleetConfig {
        agent: Config {
            interval: Some(Duration::from_secs(1)),
            ..agent(&server, own.path(), Path::new("/nowhere"))
        },
        count: 8,
        seed: 7,
        rates: Rates {
            non_compliant: 1.0,
            ..Rates::NONE
        },
        runs: None,
        spool: FleetConfig::SPOOL,
        syslog: None,
    };
    let (stop, asked) = net::shutdown();
    let running = tokio::spawn(run_fleet(fleet, logger(), asked));
    let mut details = Value::Null;
    for _ in 0..1_000 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let global = call(&api, Method::GET, "compliance", Value::Null).await;
        details = global["globalCompliance"]["complianceDetails"].clone();
        if details == json!({"auditNonCompliant": 50.0, "successAlreadyOK": 50.0}) {
            break;
        }
    }
    assert_eq!(
        details,
        json!({"auditNonCompliant": 50.0, "successAlreadyOK": 50.0})
    );
    let nodes = call(&api, Method::GET, "nodes/compliance?level=1", Value::Null).await;
    assert_eq!(nodes["nodes"].as_array().unwrap().len(), 8);
    let rule = call(
        &api,
        Method::GET,
        "rules/base/compliance?level=2",
        Value::Null,
    )
    .await;
    assert_eq!(rule["rules"][0]["directives"][0]["compliance"], 0.0);
    assert_eq!(rule["rules"][0]["directives"][1]["compliance"], 100.0);
    let _ = stop.send(true);
    running.await.unwrap().unwrap();
    server.stop().await.unwrap();
}

fn tempdir() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}
