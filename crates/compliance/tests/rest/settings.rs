//! Settings over the API: obeyed at once, kept, and told of in the log.

use std::io::Read as _;

use flate2::read::GzDecoder;
use telemetry::{Level, Logger, Sink};

use super::*;
use crate::peers::config;

/// The schedule and the mode of a node's policy.
async fn policy(node: &Node) -> (String, Value) {
    let (config_id, packed) = node.policy().await;
    let mut text = String::new();
    GzDecoder::new(&packed[..])
        .read_to_string(&mut text)
        .unwrap();
    (config_id, serde_json::from_str(&text).unwrap())
}

async fn set(admin: &Admin, path: &str, body: Value) -> Value {
    admin.data(Method::POST, path, Some(body)).await["settings"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_is_obeyed_at_once_kept_and_told_of_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let sink = Sink::memory();
    let logger = Logger::new("test", sink.clone(), Level::Info);
    let server = compliance::server::start(config(folder.path()), logger);
    let server = server.await.unwrap();
    let mut admin = Admin::of(folder.path(), &url(&server)).await;
    let node = Node::new(A, &url(&server));
    assert_eq!(node.enrol().await, 201);
    let first = node.policy().await.0;
    admin.apply(&super::folder()).await;
    node.policy_after(&first).await;
    let before = policy(&node).await;
    let usual = admin.get("settings").await["settings"].clone();
    assert_eq!(usual["run_frequency"], 5);

    let answered = set(&admin, "settings/run_frequency", json!({"value": 30})).await;
    assert_eq!(answered, json!({"run_frequency": 30}));
    // Its policy is the one with the new schedule once the call is answered.
    let after = policy(&node).await;
    assert_ne!(after.0, before.0);
    assert_ne!(after.1["schedule"], before.1["schedule"]);
    let many = json!({"global_policy_mode": "audit", "global_policy_mode_overridable": false,
        "compliance_mode": "changes-only", "first_run_hour": 2, "first_run_minute": 10,
        "splay_time": 20, "instance_id": "here"});
    let writer = json!({"id": "ops", "name": "Ops", "authorizationType": "rw"});
    let writer = admin.data(Method::PUT, "apiaccounts", Some(writer)).await;
    let own = admin.token.clone();
    admin.with(writer["accounts"][0]["token"].as_str().unwrap());
    assert_eq!(set(&admin, "settings", many.clone()).await, many);
    let last = policy(&node).await.1;
    let is_audit = |policy: &Value| policy.to_string().contains("audit");
    assert!(is_audit(&last) && !is_audit(&before.1));
    let all = admin.get("settings").await["settings"].clone();
    assert_eq!(
        admin.get("settings/splay_time").await["settings"]["splay_time"],
        20
    );

    // What the folder leaves as usual stays with the API.
    admin.with(&own);
    let plan = admin.apply(&super::folder()).await;
    let stays = plan["objects"].as_array().unwrap().iter();
    let stays = stays.filter(|one| one["kind"] == "setting" && one["became"] == "kept");
    assert_eq!(stays.count(), 8);
    assert_eq!(admin.get("settings").await["settings"], all);
    server.stop().await.unwrap();
    let log = sink.kept();
    let lines: Vec<_> = log
        .lines()
        .filter(|line| line.contains("setting-changed"))
        .collect();
    assert_eq!(lines.len(), 8, "{log}");
    for (account, setting, from, to) in [
        ("administrator", "run_frequency", "5", "30"),
        ("ops", "global_policy_mode", "enforce", "audit"),
    ] {
        let line = lines
            .iter()
            .find(|line| line.contains(&format!("\"{setting}\"")));
        let line = line.unwrap_or_else(|| panic!("no {setting} in {log}"));
        for part in [account, from, to] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }

    let server = crate::peers::server(folder.path()).await;
    let admin = Admin::of(folder.path(), &url(&server)).await;
    assert_eq!(admin.get("settings").await["settings"], all);
    let again = Node::with(&node.id, node.identity, &url(&server));
    assert_eq!(policy(&again).await.1, last);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nothing_would_obey_is_refused_by_name_and_what_is_the_folders_is_changed_there() {
    let folder = tempfile::tempdir().unwrap();
    let server = crate::peers::server(folder.path()).await;
    let mut admin = Admin::of(folder.path(), &url(&server)).await;
    let before = admin.get("settings").await;
    for ((path, body, status), told) in cases![
        ("settings/heartbeat_frequency", json!({"value": 3}), 404) => "heartbeat_frequency";
        ("settings/root_server_id", json!({"value": "x"}), 404) => "root_server_id";
        ("settings", json!({"splay_time": 3, "send_metrics": true}), 400) => "send_metrics";
        ("settings", json!({"root_server_id": "x"}), 400) => "root_server_id";
        ("settings", json!({"splay_time": 3, "run_frequency": 61}), 400) => "run_frequency";
        ("settings", json!({"run_frequency": "5"}), 400) => "run_frequency";
        ("settings/run_frequency", json!({"value": 0}), 400) => "run_frequency";
        ("settings/run_frequency", json!({}), 400) => "value";
        ("settings/global_policy_mode", json!({"value": "off"}), 400) => "audit, enforce";
    ] {
        let answer = admin.call(Method::POST, path, Some(body.clone())).await;
        assert_eq!(answer.status, status, "{path} {body}: {}", answer.body);
        let details = answer.body["errorDetails"].as_str().unwrap();
        assert!(details.contains(told), "{details}");
    }
    // Of a call that is refused nothing is done.
    assert_eq!(admin.get("settings").await, before);

    let mut defined = super::folder();
    defined["settings"] = json!({"agentRun": {"interval": 10, "splaytime": 4}});
    admin.apply(&defined).await;
    let value = json!({"value": 20});
    let path = "settings/run_frequency";
    let answer = admin.call(Method::POST, path, Some(value.clone())).await;
    assert_eq!(
        (answer.status, &answer.body["managedBy"]),
        (409, &json!("folder"))
    );
    // What the API set is the folder's once the folder says something of it.
    set(&admin, "settings/splay_time", json!({"value": 9})).await;
    defined["settings"]["agentRun"]["splaytime"] = json!(2);
    admin.apply(&defined).await;
    assert_eq!(admin.get("settings").await["settings"]["splay_time"], 2);
    let answer = admin
        .call(Method::POST, "settings/splay_time", Some(value))
        .await;
    assert_eq!(answer.status, 409);

    let reader = json!({"id": "reader", "name": "R"});
    let reader = admin.data(Method::PUT, "apiaccounts", Some(reader)).await;
    admin.with(reader["accounts"][0]["token"].as_str().unwrap());
    let answer = admin
        .call(Method::POST, path, Some(json!({"value": 1})))
        .await;
    assert_eq!(answer.status, 403);
    server.stop().await.unwrap();
}
