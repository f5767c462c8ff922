//! The BBS as a whole: what it does with bad input, a full disk and slow readers.

use std::time::Duration;

use bytes::Bytes;
use cells::bbs::{self, Config, Running};
use diego::models::{self, error::Type};
use diego::{Bbs, path};
use http::StatusCode;
use net::{Client, ClientOptions};
use proptest::prelude::*;
use prost::Message;
use telemetry::{Level, Logger, Sink};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::desired::{action, tags};

struct World {
    bbs: Running,
    client: Bbs,
    sink: Sink,
    _folder: TempDir,
}

async fn world(change: impl FnOnce(&mut Config)) -> World {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::new("127.0.0.1:0".parse().unwrap(), folder.path());
    change(&mut config);
    let sink = Sink::memory();
    let bbs = bbs::start(config, Logger::new("bbs", sink.clone(), Level::Info))
        .await
        .unwrap();
    let client = Bbs::new(
        Client::new(ClientOptions::default()),
        format!("http://{}", bbs.address()),
    );
    World {
        bbs,
        client,
        sink,
        _folder: folder,
    }
}

fn desire_task(guid: &str, annotation: usize) -> models::DesireTaskRequest {
    models::DesireTaskRequest {
        task_guid: guid.into(),
        domain: "d".into(),
        task_definition: Some(models::TaskDefinition {
            root_fs: "preloaded:x".into(),
            annotation: "a".repeat(annotation),
            action: action(),
            ..Default::default()
        }),
    }
}

impl World {
    async fn desire(&self, guid: &str, annotation: usize) -> Result<(), diego::CallError> {
        let request = desire_task(guid, annotation);
        let call = self
            .client
            .call::<models::TaskLifecycleResponse>(path::DESIRE_TASK, &request);
        call.await.map(drop)
    }

    async fn task_guids(&self) -> Vec<String> {
        let all = models::TasksRequest::default();
        let tasks: models::TasksResponse = self.client.call(path::TASKS, &all).await.unwrap();
        let mut guids: Vec<String> = tasks.tasks.into_iter().map(|task| task.task_guid).collect();
        guids.sort();
        guids
    }
}

#[tokio::test]
async fn a_full_disk_refuses_plainly_and_loses_nothing() {
    let world = world(|_| ()).await;
    world.desire("before", 10).await.unwrap();
    world.bbs.limit_pages(1).await;
    let mut refused = None;
    for number in 0..1000 {
        if let Err(error) = world.desire(&format!("filler-{number}"), 10_000).await {
            refused = Some((number, error));
            break;
        }
    }
    let (number, error) = refused.expect("the database has no bound");
    assert_eq!(error.kind(), Some(Type::UnknownError));
    assert!(
        error
            .to_string()
            .contains("not stored: write to the database: database or disk is full"),
        "{error}"
    );
    let guids = world.task_guids().await;
    assert!(guids.contains(&"before".into()));
    assert!(!guids.contains(&format!("filler-{number}")));
    world.bbs.limit_pages(1_000_000).await;
    world.desire("after", 10_000).await.unwrap();
    assert!(world.task_guids().await.contains(&"after".into()));
}

#[tokio::test]
async fn state_survives_a_restart_and_one_folder_has_one_bbs() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config::new("127.0.0.1:0".parse().unwrap(), folder.path());
    let logger = Logger::new("bbs", Sink::nothing(), Level::Info);
    let first = bbs::start(config.clone(), logger.clone()).await.unwrap();
    let second = bbs::start(config.clone(), logger.clone())
        .await
        .unwrap_err();
    assert!(
        second.to_string().contains("another BBS holds its lock"),
        "{second}"
    );
    let client = Client::new(ClientOptions::default());
    let bbs = Bbs::new(client.clone(), format!("http://{}", first.address()));
    let request = models::UpsertDomainRequest {
        domain: "kept".into(),
        ttl: 0,
    };
    let _: models::UpsertDomainResponse = bbs.call(path::UPSERT_DOMAIN, &request).await.unwrap();
    first.stop().await.unwrap();
    let again = bbs::start(config, logger).await.unwrap();
    let bbs = Bbs::new(client, format!("http://{}", again.address()));
    let domains: models::DomainsResponse = bbs
        .call(path::DOMAINS, &models::EventsByCellId::default())
        .await
        .unwrap();
    assert_eq!(domains.domains, ["kept"]);
    again.stop().await.unwrap();
}

#[tokio::test]
async fn tables_of_a_newer_program_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config::new("127.0.0.1:0".parse().unwrap(), folder.path());
    let logger = Logger::new("bbs", Sink::nothing(), Level::Info);
    bbs::start(config.clone(), logger.clone())
        .await
        .unwrap()
        .stop()
        .await
        .unwrap();
    let database = rusqlite::Connection::open(folder.path().join("bbs.sqlite")).unwrap();
    database.pragma_update(None, "user_version", 99).unwrap();
    drop(database);
    let error = bbs::start(config, logger).await.unwrap_err().to_string();
    assert!(
        error.contains("version 99") && error.contains("use a newer program"),
        "{error}"
    );
}

/// A folder as the first program left it, which kept the version in a table.
#[tokio::test]
async fn a_folder_whose_version_stands_in_a_table_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let database = rusqlite::Connection::open(folder.path().join("bbs.sqlite")).unwrap();
    let tables = "
        PRAGMA journal_mode = WAL;
        CREATE TABLE schema (version INTEGER NOT NULL);
        CREATE TABLE tasks (id INTEGER PRIMARY KEY, guid TEXT NOT NULL, record BLOB NOT NULL);
        CREATE TABLE desired_lrps (id INTEGER PRIMARY KEY, process_guid TEXT NOT NULL,
            domain TEXT NOT NULL, info BLOB NOT NULL, rest BLOB NOT NULL);
        CREATE TABLE actual_lrps (id INTEGER PRIMARY KEY, process_guid TEXT NOT NULL,
            idx INTEGER NOT NULL, presence INTEGER NOT NULL, record BLOB NOT NULL);
        CREATE TABLE domains (domain TEXT PRIMARY KEY, expires INTEGER NOT NULL) WITHOUT ROWID;
        INSERT INTO schema VALUES (1);
        INSERT INTO domains VALUES ('kept', 9223372036854775807);";
    database.execute_batch(tables).unwrap();
    drop(database);
    let config = Config::new("127.0.0.1:0".parse().unwrap(), folder.path());
    let logger = Logger::new("bbs", Sink::nothing(), Level::Info);
    let running = bbs::start(config, logger).await.unwrap();
    let client = Client::new(ClientOptions::default());
    let bbs = Bbs::new(client, format!("http://{}", running.address()));
    let nothing = models::EventsByCellId::default();
    let domains: models::DomainsResponse = bbs.call(path::DOMAINS, &nothing).await.unwrap();
    assert_eq!(domains.domains, ["kept"]);
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscriber_that_does_not_read_is_closed_and_the_others_see_all() {
    let world = world(|config| config.limits.subscriber_events = 64).await;
    // It asks for events and never reads one.
    let mut deaf = TcpStream::connect(world.bbs.address()).await.unwrap();
    let ask = format!(
        "POST {} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n",
        path::TASK_EVENTS
    );
    deaf.write_all(ask.as_bytes()).await.unwrap();
    let nothing = models::EventsByCellId::default();
    let mut attentive = world
        .client
        .subscribe(path::TASK_EVENTS, &nothing)
        .await
        .unwrap();
    let subscribers = || async {
        let uri = format!("http://{}/metrics", world.bbs.address())
            .parse()
            .unwrap();
        let answer = Client::new(ClientOptions::default())
            .get(&uri)
            .await
            .unwrap();
        let text = String::from_utf8(answer.body.to_vec()).unwrap();
        let line = text
            .lines()
            .find(|line| line.starts_with("bbs_subscribers "));
        line.unwrap()
            .rsplit(' ')
            .next()
            .unwrap()
            .parse::<u32>()
            .unwrap()
    };
    while subscribers().await < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut desired = 0;
    // Kernel buffers take a few megabytes before the deaf one's queue fills.
    while subscribers().await == 2 {
        for _ in 0..32 {
            world.desire(&format!("t-{desired}"), 10_000).await.unwrap();
            let event = attentive
                .next()
                .await
                .unwrap()
                .expect("the attentive one was closed");
            assert_eq!(event.id, desired);
            desired += 1;
        }
        assert!(desired < 20_000, "the deaf subscriber is never closed");
    }
    world.desire("last", 10).await.unwrap();
    assert_eq!(attentive.next().await.unwrap().unwrap().id, desired);
    // What was under way ends with the last chunk or the connection.
    let mut rest = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(60), deaf.read_to_end(&mut rest));
    let _ = tokio::time::timeout(Duration::from_secs(1), read).await;
    let last = rest.windows(5).any(|bytes| bytes == b"0\r\n\r\n");
    assert!(
        last,
        "the deaf one's stream has no end after {} bytes",
        rest.len()
    );
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_and_the_connection_closed() {
    let world = world(|config| config.limits.body_bytes = 1000).await;
    let body = Bytes::from(vec![0; 1001]);
    let answer = world
        .client
        .send(path::DESIRE_TASK, body, "")
        .await
        .unwrap();
    let answer = models::TaskLifecycleResponse::decode(answer).unwrap();
    let error = answer.error.unwrap();
    assert_eq!(error.r#type(), Type::InvalidRequest);
    assert!(
        error.message.contains("longer than 1000 bytes"),
        "{}",
        error.message
    );
    world.desire("small", 10).await.unwrap();
}

#[tokio::test]
async fn a_deeply_nested_action_is_refused() {
    let world = world(|_| ()).await;
    let mut action = action().unwrap();
    for _ in 0..5000 {
        action = models::Action {
            try_action: Some(Box::new(models::TryAction {
                action: Some(Box::new(action)),
                log_source: String::new(),
            })),
            ..Default::default()
        };
    }
    let body = {
        // Encoding recurses: give it room.
        let encode = move || {
            let mut request = desire_task("deep", 0);
            request.task_definition.as_mut().unwrap().action = Some(action);
            let bytes = request.encode_to_vec();
            // Dropping recurses as well.
            drop(request);
            bytes
        };
        let thread = std::thread::Builder::new()
            .stack_size(1 << 28)
            .spawn(encode)
            .unwrap();
        thread.join().unwrap()
    };
    let answer = world
        .client
        .send(path::DESIRE_TASK, body.into(), "")
        .await
        .unwrap();
    let answer = models::TaskLifecycleResponse::decode(answer).unwrap();
    assert_eq!(answer.error.unwrap().r#type(), Type::InvalidRequest);
}

#[tokio::test]
async fn the_life_of_a_task_is_in_the_log() {
    let world = world(|_| ()).await;
    world.desire("t", 0).await.unwrap();
    let (task_guid, cell_id) = (String::from("t"), String::from("c"));
    let start = models::StartTaskRequest {
        task_guid: task_guid.clone(),
        cell_id: cell_id.clone(),
    };
    let _: models::StartTaskResponse = world.client.call(path::START_TASK, &start).await.unwrap();
    let complete = models::CompleteTaskRequest {
        task_guid,
        cell_id,
        ..Default::default()
    };
    let _: models::TaskLifecycleResponse = world
        .client
        .call(path::COMPLETE_TASK, &complete)
        .await
        .unwrap();
    let lines: Vec<serde_json::Value> = world
        .sink
        .kept()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for message in [
        "bbs.request.desire-task.starting",
        "bbs.request.desire-task.succeeded-persisting-task",
        "bbs.request.desire-task.requesting-task-auction",
        "bbs.request.start-task.finished",
        "bbs.request.complete-task.finished",
    ] {
        let line = lines.iter().find(|line| line["message"] == message);
        let line = line.unwrap_or_else(|| panic!("no {message}"));
        assert_eq!(line["data"]["task-guid"], "t", "{message}");
    }
}

#[tokio::test]
async fn a_large_process_is_created_and_listed_whole() {
    let world = world(|_| ()).await;
    let nothing = models::EventsByCellId::default();
    let mut events = world
        .client
        .subscribe(path::INSTANCE_EVENTS, &nothing)
        .await
        .unwrap();
    let request = models::DesireLrpRequest {
        desired_lrp: Some(models::DesiredLrp {
            process_guid: "large".into(),
            domain: "d".into(),
            root_fs: "preloaded:x".into(),
            instances: 4000,
            action: action(),
            metric_tags: tags("x"),
            ..Default::default()
        }),
    };
    let _: models::DesiredLrpLifecycleResponse =
        world.client.call(path::DESIRE_LRP, &request).await.unwrap();
    for id in 0..=4000 {
        let event = events
            .next()
            .await
            .unwrap()
            .expect("the burst closed the subscriber");
        assert_eq!(event.id, id);
    }
    let all = models::ActualLrPsRequest::default();
    let listed: models::ActualLrPsResponse =
        world.client.call(path::ACTUAL_LRPS, &all).await.unwrap();
    let mut indices: Vec<i32> = listed
        .actual_lrps
        .iter()
        .map(|lrp| lrp.actual_lrp_key.as_ref().unwrap().index)
        .collect();
    indices.sort_unstable();
    assert_eq!(indices, (0..4000).collect::<Vec<_>>());
}

#[test]
fn any_body_gets_an_answer() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = runtime.block_on(world(|_| ()));
    let paths = [
        path::DESIRE_TASK,
        path::DESIRE_LRP,
        path::UPDATE_DESIRED_LRP,
        path::START_ACTUAL_LRP,
        path::CRASH_ACTUAL_LRP,
        path::EVACUATE_RUNNING_ACTUAL_LRP,
        path::ACTUAL_LRPS,
        path::DESIRED_LRPS,
        path::TASKS,
        path::UPSERT_DOMAIN,
    ];
    let client = Client::new(ClientOptions::default());
    proptest!(ProptestConfig::with_cases(200), |(
        at in 0..paths.len(),
        body in proptest::collection::vec(any::<u8>(), 0..64),
    )| {
        let uri = format!("http://{}{}", world.bbs.address(), paths[at]).parse().unwrap();
        let post = client.post(&uri, diego::PROTOBUF, http::HeaderMap::new(), body.into());
        let answer = runtime.block_on(post).unwrap();
        prop_assert_eq!(answer.status, StatusCode::OK);
        prop_assert!(models::TaskLifecycleResponse::decode(answer.body).is_ok());
    });
}

#[tokio::test]
async fn group_events_can_be_followed_and_too_many_instances_are_refused() {
    let world = world(|_| ()).await;
    let nothing = models::EventsByCellId::default();
    let mut events = world
        .client
        .subscribe(path::GROUP_EVENTS, &nothing)
        .await
        .unwrap();
    let mut lrp = models::DesiredLrp {
        process_guid: "p".into(),
        domain: "d".into(),
        root_fs: "preloaded:x".into(),
        instances: i32::MAX,
        action: action(),
        metric_tags: tags("x"),
        ..Default::default()
    };
    for (instances, refused) in [(i32::MAX, true), (1, false)] {
        lrp.instances = instances;
        let request = models::DesireLrpRequest {
            desired_lrp: Some(lrp.clone()),
        };
        let done = world
            .client
            .call::<models::DesiredLrpLifecycleResponse>(path::DESIRE_LRP, &request);
        assert_eq!(done.await.is_err(), refused, "{instances} instances");
    }
    for name in ["desired_lrp_created", "actual_lrp_created"] {
        assert_eq!(events.next().await.unwrap().unwrap().name, name);
    }
}

#[tokio::test]
async fn clients_without_metric_tags_are_served_where_that_is_asked_for() {
    for served in [false, true] {
        let world = world(|config| config.old_clients = served).await;
        for (metrics, log, source) in [("m", "l", "m"), ("", "l", "l"), ("", "", "p")] {
            let request = models::DesireLrpRequest {
                desired_lrp: Some(models::DesiredLrp {
                    process_guid: "p".into(),
                    metrics_guid: metrics.into(),
                    log_guid: log.into(),
                    domain: "d".into(),
                    root_fs: "preloaded:x".into(),
                    action: action(),
                    ..Default::default()
                }),
            };
            type Done = models::DesiredLrpLifecycleResponse;
            let done = world.client.call::<Done>(path::DESIRE_LRP, &request).await;
            assert_eq!(done.is_ok(), served, "{done:?}");
            if !served {
                continue;
            }
            let of = models::DesiredLrpByProcessGuidRequest {
                process_guid: "p".into(),
            };
            let found: models::DesiredLrpResponse = world
                .client
                .call(path::DESIRED_LRP_BY_PROCESS_GUID_R2, &of)
                .await
                .unwrap();
            let tags = found.desired_lrp.unwrap().metric_tags;
            assert_eq!(tags["source_id"].r#static, source);
            let remove = models::RemoveDesiredLrpRequest {
                process_guid: "p".into(),
            };
            let removed = world.client.call::<Done>(path::REMOVE_DESIRED_LRP, &remove);
            removed.await.unwrap();
        }
    }
}

#[tokio::test]
async fn an_address_of_an_auctioneer_that_is_none_is_refused_at_the_start() {
    for bad in ["auctioneer:9016", "ftp://a:9016", "https://a:9016", ""] {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::new("127.0.0.1:0".parse().unwrap(), folder.path());
        config.auctioneer_url = Some(bad.into());
        let refused = bbs::start(config, Logger::new("bbs", Sink::nothing(), Level::Info)).await;
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("the address of the auctioneer"),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn a_full_house_is_told_in_the_log() {
    let world = world(|config| config.limits.connections = 3).await;
    let mut open = Vec::new();
    for _ in 0..4 {
        open.push(TcpStream::connect(world.bbs.address()).await.unwrap());
    }
    while !world.sink.kept().contains("bbs.request.no-connection") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(world.sink.kept().contains("3 connections are open"));
}
