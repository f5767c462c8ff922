//! Decisions about several nodes at once, some of which cannot be made.

use compliance::client::{ApiClient, CallError};
use compliance::server::{Acceptance, Running};
use http::Method;
use serde_json::{Value, json};

use super::Admin;
use crate::peers::{Node, config, logger, url};

/// The identity of the node of this number.
fn id(number: u8) -> String {
    format!("3f2f0a32-0f0b-4c43-9d0d-6a5f6f8f1c{number:02}")
}

/// A server at which nodes of these names wait, numbered from 1.
async fn waiting(folder: &std::path::Path, hostnames: &[&str]) -> (Running, Admin) {
    let mut config = config(folder);
    config.acceptance = Acceptance::Manual;
    let server = compliance::server::start(config, logger()).await.unwrap();
    let admin = Admin::of(folder, &url(&server)).await;
    for (number, hostname) in (1..).zip(hostnames) {
        let mut node = Node::new(&id(number), &url(&server));
        (*hostname).clone_into(&mut node.hostname);
        assert_eq!(node.enrol().await, 201);
    }
    (server, admin)
}

async fn statuses(admin: &Admin, count: u8) -> Vec<Value> {
    let ids: Vec<String> = (1..=count).map(id).collect();
    let found = admin
        .get(&format!("nodes/status?ids={}", ids.join(",")))
        .await;
    let found = found["nodes"].as_array().unwrap().iter();
    found.map(|one| one["status"].clone()).collect()
}

fn decision(status: &str, nodes: &[String]) -> Option<Value> {
    Some(json!({"nodeId": nodes, "status": status}))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_decided_is_told_beside_what_was_not() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin) = waiting(folder.path(), &["web", "a", "web", "b", "web", "c"]).await;
    let accepted = |number: u8, hostname: &str| json!({"id": id(number), "hostname": hostname, "status": "accepted"});
    let path = "nodes/pending";
    admin
        .data(Method::POST, path, decision("accepted", &[id(1)]))
        .await;

    let some = decision("accepted", &[id(2), id(3), id(4), id(4), id(5)]);
    let answer = admin.call(Method::POST, path, some).await;
    assert_eq!(answer.status, 409);
    let data = &answer.body["data"];
    assert_eq!(data["nodes"], json!([accepted(2, "a"), accepted(4, "b")]));
    let ids: Vec<&Value> = data["undecided"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["id"])
        .collect();
    assert_eq!(ids, [&id(3), &id(5)]);
    let why = format!(
        "node {} has the hostname web of an accepted node; delete that node or refuse this one",
        id(3)
    );
    assert_eq!(data["undecided"][0]["why"], json!(why));
    let details =
        format!("2 of 4 nodes were accepted; {why}; and 1 more, which data.undecided lists");
    assert_eq!(answer.body["errorDetails"], json!(details));
    let as_told = [
        "accepted", "accepted", "pending", "accepted", "pending", "pending",
    ];
    assert_eq!(statuses(&admin, 6).await, as_told);

    // Refusals are no other.
    let some = decision("refused", &[id(9), id(3)]);
    let answer = admin.call(Method::POST, path, some).await;
    let data = &answer.body["data"];
    assert_eq!(
        (answer.status, &data["nodes"][0]["id"]),
        (409, &json!(id(3)))
    );
    assert_eq!(data["undecided"][0]["id"], json!(id(9)));
    assert_eq!(statuses(&admin, 3).await[2], "unknown");
    // A client of this crate has both lists as well.
    let client = ApiClient::of_data(folder.path(), None).unwrap();
    let some = decision("accepted", &[id(5), id(6)]).unwrap();
    match client.call(Method::POST, path, Some(&some)).await {
        Err(CallError::InPart { data, .. }) => {
            assert_eq!(data["nodes"], json!([accepted(6, "c")]));
            assert_eq!(data["undecided"][0]["id"], json!(id(5)));
        }
        other => panic!("{other:?}"),
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn decisions_that_can_all_be_made_are_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin) = waiting(folder.path(), &["a", "b", "c"]).await;
    let waits = admin.get(&format!("nodes/{}", id(1))).await;
    assert_eq!(waits["nodes"][0]["status"], "pending");
    let path = "nodes/pending";
    let twice = decision("accepted", &[id(1), id(1), id(2)]);
    let data = admin.data(Method::POST, path, twice).await;
    assert_eq!(data["nodes"].as_array().unwrap().len(), 2);
    admin
        .data(Method::POST, path, decision("refused", &[id(3)]))
        .await;
    assert_eq!(
        statuses(&admin, 3).await,
        ["accepted", "accepted", "unknown"]
    );
    // Of a single one the reason is all that there is to tell.
    let answer = admin
        .call(Method::POST, path, decision("accepted", &[id(1)]))
        .await;
    let told = answer.body["errorDetails"].as_str().unwrap();
    assert!(
        told.starts_with(&format!("node {} is not pending", id(1))),
        "{told}"
    );
    server.stop().await.unwrap();
}
