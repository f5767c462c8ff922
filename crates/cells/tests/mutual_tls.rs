//! BBS, auctioneer and a cell that all demand certificates of each other.

use std::path::Path;

use cells::{auctioneer, bbs, rep};
use diego::models::*;
use diego::{Bbs, path};
use net::tls::Files;
use net::{Client, ClientOptions};

use crate::desired::{action, tags};
use crate::own_address::own_address;
use crate::patience::until;
use crate::quiet::logger;

/// Writes an authority and a certificate that it signed for this machine.
pub(crate) fn certificates(folder: &Path) -> Files {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = authority.self_signed(&key).unwrap();
    let issuer = rcgen::Issuer::from_params(&authority, &key);
    let leaf_key = rcgen::KeyPair::generate().unwrap();
    let hosts = vec!["127.0.0.1".into(), own_address().ip().to_string()];
    let leaf = rcgen::CertificateParams::new(hosts).unwrap();
    let leaf = leaf.signed_by(&leaf_key, &issuer).unwrap();
    let files = Files {
        certificate: folder.join("leaf.pem"),
        key: folder.join("key.pem"),
        authority: folder.join("ca.pem"),
    };
    std::fs::write(&files.authority, certificate.pem()).unwrap();
    std::fs::write(&files.certificate, leaf.pem()).unwrap();
    std::fs::write(&files.key, leaf_key.serialize_pem()).unwrap();
    files
}

fn client(files: &Files) -> Client {
    Client::new(ClientOptions {
        tls: Some(net::tls::client(files).unwrap()),
        ..ClientOptions::default()
    })
}

fn task() -> DesireTaskRequest {
    DesireTaskRequest {
        task_guid: "t".into(),
        domain: "d".into(),
        task_definition: Some(TaskDefinition {
            root_fs: "preloaded:cflinuxfs4".into(),
            action: action(),
            ..TaskDefinition::default()
        }),
    }
}

fn lrp() -> DesireLrpRequest {
    DesireLrpRequest {
        desired_lrp: Some(DesiredLrp {
            process_guid: "p".into(),
            domain: "d".into(),
            root_fs: "preloaded:cflinuxfs4".into(),
            instances: 1,
            action: action(),
            metric_tags: tags("p"),
            ..DesiredLrp::default()
        }),
    }
}

#[tokio::test]
async fn a_task_and_an_instance_run_and_strangers_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let own = certificates(folder.path());
    let any = "127.0.0.1:0".parse().unwrap();
    let (_ask, shutdown) = net::shutdown();
    let free = own_address();

    let mut config = bbs::Config::new(any, folder.path().join("data"));
    config.auctioneer_url = Some(format!("https://{free}"));
    (config.server_tls, config.client_tls) = (Some(own.clone()), Some(own.clone()));
    let server = bbs::start(config, logger("bbs")).await.unwrap();
    let url = format!("https://{}", server.address());

    let mut config = auctioneer::Config::new(free, &*url);
    (config.server_tls, config.client_tls) = (Some(own.clone()), Some(own.clone()));
    let auctioneer = auctioneer::start(config, logger("auctioneer"), shutdown.clone());
    let auctioneer = auctioneer.await.unwrap();

    let mut config = rep::Config::new(1, any, &*url);
    (config.server_tls, config.client_tls) = (Some(own.clone()), Some(own.clone()));
    let rep = rep::start(config, logger("rep"), shutdown).await.unwrap();
    rep.registered().await;

    let bbs = Bbs::new(client(&own), &*url);
    type Answer = TaskLifecycleResponse;
    bbs.call::<Answer>(path::DESIRE_TASK, &task())
        .await
        .unwrap();
    bbs.call::<Answer>(path::DESIRE_LRP, &lrp()).await.unwrap();
    until("the task completes", async || {
        let tasks = TasksRequest::default();
        let tasks: TasksResponse = bbs.call(path::TASKS, &tasks).await.unwrap();
        tasks.tasks[0].state() == task::State::Completed
    })
    .await;
    until("the instance runs", async || {
        let lrps = ActualLrPsRequest::default();
        let lrps: ActualLrPsResponse = bbs.call(path::ACTUAL_LRPS, &lrps).await.unwrap();
        lrps.actual_lrps[0].state == "RUNNING"
    })
    .await;

    // Somebody of another authority, who even knows ours.
    let other = tempfile::tempdir().unwrap();
    let mut stranger = certificates(other.path());
    stranger.authority.clone_from(&own.authority);
    let addresses = [server.address(), auctioneer.address(), rep.addresses()[0]];
    for address in addresses {
        for scheme in ["https", "http"] {
            let uri: http::Uri = format!("{scheme}://{address}/v1/ping").parse().unwrap();
            assert!(client(&stranger).get(&uri).await.is_err(), "{uri}");
        }
        let uri = format!("https://{address}/nowhere").parse().unwrap();
        assert_eq!(
            client(&own).get(&uri).await.unwrap().status,
            404,
            "{address}"
        );
    }
}
