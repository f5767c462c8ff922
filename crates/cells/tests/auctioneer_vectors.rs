//! The auctioneer's API against `data/auctioneer.json`, recorded from Diego's
//! auctioneer 1ef7d6c9eefe94e4e7c344823e5bcd1de0d9b94d.

use crate::fake_bbs;
use std::collections::BTreeSet;

use crate::fake_bbs::{FakeBbs, logger};
use crate::same_json::same;
use cells::auctioneer::{Config, start};
use diego::auction::{LrpStartRequest, Task};
use http::{Method, Request};
use http_body_util::Full;
use net::{Client, ClientOptions};
use serde_json::Value;

fn examples(kind: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(include_str!("data/auctioneer.json")).unwrap();
    let examples = file["examples"].as_array().unwrap().iter();
    examples
        .filter(|example| example["kind"] == kind)
        .cloned()
        .collect()
}

#[test]
fn bodies_are_read_and_written_alike() {
    let bodies = examples("body");
    assert!(!bodies.is_empty());
    for example in bodies {
        let body = example["body"].as_str().unwrap();
        let ours = match example["go_type"].as_str().unwrap() {
            "[]auctioneer.LRPStartRequest" => {
                let read: Vec<LrpStartRequest> = serde_json::from_str(body).unwrap();
                serde_json::to_value(read).unwrap()
            }
            "[]auctioneer.TaskStartRequest" => {
                let read: Vec<Task> = serde_json::from_str(body).unwrap();
                serde_json::to_value(read).unwrap()
            }
            other => panic!("unknown type {other}"),
        };
        assert!(same(&ours, &example["json"]), "{}: {ours}", example["name"]);
    }
}

/// What an entry was accepted as, seen from the BBS: without cells, each accepted
/// instance or task is reported as failed, and nothing else is.
fn accepted(example: &Value) -> BTreeSet<String> {
    let entries = example["accepted"].as_array().cloned().unwrap_or_default();
    let guids = |entry: &Value| match entry["TaskGuid"].as_str() {
        Some(guid) => vec![guid.to_owned()],
        None => {
            let process = entry["process_guid"].as_str().unwrap();
            let indices = entry["indices"].as_array().unwrap().iter();
            indices.map(|index| format!("{process}.{index}")).collect()
        }
    };
    entries.iter().flat_map(guids).collect()
}

#[tokio::test]
async fn calls_are_answered_alike() {
    let calls = examples("call");
    assert!(!calls.is_empty());
    for example in calls {
        let name = &example["name"];
        let bbs = FakeBbs::start().await;
        let (_ask, shutdown) = net::shutdown();
        let config = Config::new("127.0.0.1:0".parse().unwrap(), &*bbs.url);
        let auctioneer = start(config, logger("auctioneer").0, shutdown)
            .await
            .unwrap();
        let uri = format!(
            "http://{}{}",
            auctioneer.address(),
            example["path"].as_str().unwrap()
        );
        let request = Request::builder()
            .method(
                example["method"]
                    .as_str()
                    .unwrap()
                    .parse::<Method>()
                    .unwrap(),
            )
            .uri(uri)
            .body(Full::from(example["body"].as_str().unwrap().to_owned()))
            .unwrap();
        let answer = Client::new(ClientOptions::default())
            .request(request)
            .await
            .unwrap();
        assert_eq!(
            u64::from(answer.status.as_u16()),
            example["response_status"],
            "{name}"
        );
        let kind = answer.headers["content-type"].to_str().unwrap();
        assert_eq!(kind, example["response_content_type"], "{name}");
        if answer.status == 400 {
            // Texts of the JSON decoder are its own.
            let body: Value = serde_json::from_slice(&answer.body).unwrap();
            assert!(body["error"].is_string(), "{name}");
        } else {
            assert_eq!(
                answer.body,
                example["response_body"].as_str().unwrap(),
                "{name}"
            );
        }
        let expected = accepted(&example);
        if expected.is_empty() {
            continue;
        }
        let seen = |records: &fake_bbs::Records| -> BTreeSet<String> {
            let tasks = records.rejections.iter().map(|task| task.task_guid.clone());
            let lrps = records.failures.iter().map(|failure| {
                let key = failure.actual_lrp_key.clone().unwrap();
                format!("{}.{}", key.process_guid, key.index)
            });
            tasks.chain(lrps).collect()
        };
        bbs.until(&format!("{name}: what is accepted"), |records| {
            seen(records) == expected
        })
        .await;
    }
}
