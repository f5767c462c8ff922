//! A BBS that ended before its auctioneer knew of work asks again when it starts.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cells::bbs::{self, Config, Limits};
use diego::models::*;
use diego::{Bbs, path};
use http::{Request, Response, StatusCode};
use net::{Body, Client, ClientOptions, Handler, Incoming};

use crate::desired::{action, tags};
use crate::own_address::own_address;
use crate::quiet::logger;

/// Keeps what it is asked and accepts it.
#[derive(Default)]
struct Auctioneer(Mutex<Vec<(String, serde_json::Value)>>);

impl Handler for Auctioneer {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let body = net::read_body(request.into_body(), 1 << 20, Duration::from_secs(60));
        let body = serde_json::from_slice(&body.await.unwrap()).unwrap();
        self.0.lock().unwrap().push((path, body));
        let mut response = Response::new(net::empty());
        *response.status_mut() = StatusCode::ACCEPTED;
        response
    }
}

async fn desire(bbs: &Bbs) {
    for task_guid in ["waits", "cancelled"] {
        let request = DesireTaskRequest {
            task_guid: task_guid.into(),
            domain: "d".into(),
            task_definition: Some(TaskDefinition {
                root_fs: "preloaded:x".into(),
                action: action(),
                ..TaskDefinition::default()
            }),
        };
        type Answer = TaskLifecycleResponse;
        bbs.call::<Answer>(path::DESIRE_TASK, &request)
            .await
            .unwrap();
    }
    let cancel = TaskGuidRequest {
        task_guid: "cancelled".into(),
    };
    type Answer = TaskLifecycleResponse;
    bbs.call::<Answer>(path::CANCEL_TASK, &cancel)
        .await
        .unwrap();
    let request = DesireLrpRequest {
        desired_lrp: Some(DesiredLrp {
            process_guid: "p".into(),
            domain: "d".into(),
            root_fs: "preloaded:x".into(),
            instances: 3,
            action: action(),
            metric_tags: tags("p"),
            ..DesiredLrp::default()
        }),
    };
    bbs.call::<Answer>(path::DESIRE_LRP, &request)
        .await
        .unwrap();
    let claim = ClaimActualLrpRequest {
        process_guid: "p".into(),
        index: 1,
        actual_lrp_instance_key: Some(ActualLrpInstanceKey {
            instance_guid: "i".into(),
            cell_id: "c".into(),
        }),
    };
    bbs.call::<Answer>(path::CLAIM_ACTUAL_LRP, &claim)
        .await
        .unwrap();
}

#[tokio::test]
async fn work_that_waited_is_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let any = "127.0.0.1:0".parse().unwrap();
    let config = |auctioneer: Option<String>| Config {
        auctioneer_url: auctioneer,
        limits: Limits {
            // The cell of the claimed instance never comes.
            cells_within: Duration::from_millis(50),
            ..Limits::default()
        },
        ..Config::new(any, folder.path())
    };
    let first = bbs::start(config(None), logger("bbs")).await.unwrap();
    let url = format!("http://{}", first.address());
    desire(&Bbs::new(Client::new(ClientOptions::default()), url)).await;
    first.stop().await.unwrap();

    let auctioneer = Arc::new(Auctioneer::default());
    // Nobody listens yet when the BBS starts: it tries again.
    let free = own_address();
    let _second = bbs::start(config(Some(format!("http://{free}"))), logger("bbs"))
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let listener = net::bind(free).await.unwrap();
    let (_ask, asked) = net::shutdown();
    let limits = net::Limits::default();
    let served = net::serve(listener, None, limits, Arc::clone(&auctioneer), asked);
    tokio::spawn(served);
    let all = async {
        while auctioneer.0.lock().unwrap().len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), all)
        .await
        .unwrap();
    let mut asked = auctioneer.0.lock().unwrap().clone();
    asked.sort_by(|left, right| left.0.cmp(&right.0));
    assert_eq!(asked[0].0, "/v1/lrps");
    assert_eq!(asked[0].1[0]["indices"], serde_json::json!([0, 2]));
    assert_eq!(asked[1].0, "/v1/tasks");
    assert_eq!(asked[1].1.as_array().unwrap().len(), 1);
    assert_eq!(asked[1].1[0]["TaskGuid"], "waits");
}
