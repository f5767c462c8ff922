//! A cell that runs real processes, against a BBS in memory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::fake_bbs::{FakeBbs, eventually, logger};
use cells::rep::{Config, ExecutorKind, IdentitySettings, ProcessSettings, Running, start};
use diego::auction::{Lrp, Resource, Task, Work};
use diego::models::{Action, CertificateProperties, DesiredLrp, RunAction, TaskDefinition};
use net::tls::{self, Files};
use net::{Client, ClientOptions, PeerCertificate};
use tokio::sync::watch;
use wire::tls::Subject;

async fn cell(root: &Path) -> (FakeBbs, Running, watch::Sender<bool>) {
    cell_with(root, ProcessSettings::default()).await
}

async fn cell_with(
    root: &Path,
    settings: ProcessSettings,
) -> (FakeBbs, Running, watch::Sender<bool>) {
    let bbs = FakeBbs::start().await;
    let mut config = Config::new(1, "127.0.0.1:0".parse().unwrap(), &*bbs.url);
    let root = Some(root.to_owned());
    config.executor = ExecutorKind::Process(ProcessSettings { root, ..settings });
    let (ask, shutdown) = net::shutdown();
    let rep = start(config, logger("rep").0, shutdown).await.unwrap();
    rep.registered().await;
    (bbs, rep, ask)
}

async fn give(rep: &Running, work: Work) {
    let client = Client::new(ClientOptions::default());
    let uri = format!("http://{}/work", rep.addresses()[0])
        .parse()
        .unwrap();
    let body = serde_json::to_vec(&work).unwrap();
    let headers = http::HeaderMap::new();
    let answer = client
        .post(&uri, "application/json", headers, body.into())
        .await
        .unwrap();
    assert_eq!(answer.status, 200);
}

fn one_instance() -> Work {
    let lrp = Lrp {
        process_guid: "p".into(),
        domain: "test".into(),
        ..Lrp::default()
    };
    Work {
        lrps: vec![lrp],
        ..Work::default()
    }
}

fn sh(script: &str) -> Option<Action> {
    let run = RunAction {
        path: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        ..RunAction::default()
    };
    Some(Action::from(run))
}

#[tokio::test]
async fn tasks_run_and_their_results_reach_the_bbs() {
    let root = tempfile::tempdir().unwrap();
    let (bbs, rep, _ask) = cell(root.path()).await;
    let tasks = (0..20).map(|n| {
        let definition = TaskDefinition {
            action: sh(&format!("printf {n} > result; exit $(( {n} == 7 ))")),
            result_file: "result".into(),
            log_source: "APP".into(),
            ..TaskDefinition::default()
        };
        let guid = format!("t-{n}");
        bbs.records().add_task(&guid, definition);
        Task {
            task_guid: guid,
            resource: Resource::default(),
            ..Task::default()
        }
    });
    give(
        &rep,
        Work {
            tasks: tasks.collect(),
            ..Work::default()
        },
    )
    .await;
    bbs.until("all complete", |records| records.completed() == 20)
        .await;
    let records = bbs.records();
    for n in 0..20 {
        let task = &records.tasks[&format!("t-{n}")];
        // What one that fails has written says more than its status.
        assert_eq!(
            (task.failed, task.result.as_str()),
            (n == 7, &*n.to_string())
        );
        if task.failed {
            assert_eq!(task.failure_reason, "APP: Exited with status 1");
        }
    }
}

#[tokio::test]
async fn processes_end_with_the_rep() {
    let root = tempfile::tempdir().unwrap();
    let (bbs, rep, ask) = cell(root.path()).await;
    let pid_file = root.path().join("pid");
    bbs.records().desire(DesiredLrp {
        process_guid: "p".into(),
        domain: "test".into(),
        instances: 1,
        action: sh(&format!(
            "echo $$ > {}; exec sleep 1000",
            pid_file.display()
        )),
        ..DesiredLrp::default()
    });
    give(&rep, one_instance()).await;
    bbs.until("it runs", |records| records.running() == 1).await;
    let pid = || {
        std::fs::read_to_string(&pid_file)
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    eventually("it has said its number", || !pid().is_empty()).await;
    assert!(Path::new(&format!("/proc/{}", pid())).exists());
    ask.send(true).unwrap();
    rep.stopped().await;
    assert!(!Path::new(&format!("/proc/{}", pid())).exists());
}

#[tokio::test]
async fn an_instance_runs_once_its_monitor_succeeds_and_crashes_when_it_does_not() {
    let root = tempfile::tempdir().unwrap();
    let interval = Duration::from_millis(20);
    let settings = ProcessSettings {
        healthy_interval: interval,
        unhealthy_interval: interval,
        ..ProcessSettings::default()
    };
    let (bbs, rep, _ask) = cell_with(root.path(), settings).await;
    bbs.records().desire(DesiredLrp {
        process_guid: "p".into(),
        domain: "test".into(),
        instances: 1,
        action: sh("exec sleep 1000"),
        monitor: sh("echo >> tries; test -e up"),
        ..DesiredLrp::default()
    });
    give(&rep, one_instance()).await;
    let folder = || {
        let within = |path: &Path| {
            std::fs::read_dir(path)
                .unwrap()
                .flatten()
                .map(|it| it.path())
        };
        let containers = within(root.path()).next()?;
        // What it has fetched is no container.
        within(&containers).find(|path| !path.ends_with(".cache"))
    };
    let tries = || {
        let file = folder().map(|folder| folder.join("tries"));
        file.and_then(|file| std::fs::read(file).ok())
            .map_or(0, |tries| tries.len())
    };
    eventually("it was asked three times", || tries() >= 3).await;
    assert_eq!(bbs.records().lrps[&("p".into(), 0)].state, "CLAIMED");
    assert!(bbs.records().starts.is_empty());
    let up = folder().unwrap().join("up");
    std::fs::write(&up, "").unwrap();
    bbs.until("it runs", |records| records.running() == 1).await;
    std::fs::remove_file(&up).unwrap();
    bbs.until("it crashes", |records| records.crashes.len() == 1)
        .await;
    let reason = bbs.records().crashes[0].error_message.clone();
    assert_eq!(reason, "Instance became unhealthy: ");
}

/// Writes an authority as an operator has it.
fn authority(folder: &Path) -> IdentitySettings {
    let (kind, size) = (&rcgen::PKCS_RSA_SHA256, rcgen::RsaKeySize::_2048);
    let key = rcgen::KeyPair::generate_rsa_for(kind, size).unwrap();
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let settings = IdentitySettings {
        authority: folder.join("ca.pem"),
        key: folder.join("ca.key"),
        validity: Duration::from_secs(24 * 3600),
    };
    let certificate = params.self_signed(&key).unwrap();
    std::fs::write(&settings.authority, certificate.pem()).unwrap();
    std::fs::write(&settings.key, key.serialize_pem()).unwrap();
    settings
}

/// Tells clients who they are.
struct Mirror;

impl net::Handler for Mirror {
    async fn handle(&self, request: http::Request<net::Incoming>) -> http::Response<net::Body> {
        let peer = request.extensions().get::<PeerCertificate>().unwrap();
        let subject = Subject::of(&peer.0).unwrap();
        http::Response::new(net::full(subject.to_string()))
    }
}

#[tokio::test]
async fn an_instance_proves_to_clients_and_servers_who_it_is() {
    let root = tempfile::tempdir().unwrap();
    let operator = tempfile::tempdir().unwrap();
    let identity = authority(operator.path());
    let settings = ProcessSettings {
        identity: Some(identity.clone()),
        ..ProcessSettings::default()
    };
    let (bbs, rep, _ask) = cell_with(root.path(), settings).await;
    let told = root.path().join("told");
    let script = format!(
        "printf '%s\\n' $CF_INSTANCE_CERT $CF_INSTANCE_KEY $INSTANCE_GUID > {0}.new
        mv {0}.new {0}; exec sleep 1000",
        told.display()
    );
    bbs.records().desire(DesiredLrp {
        process_guid: "p".into(),
        domain: "test".into(),
        instances: 1,
        action: sh(&script),
        certificate_properties: Some(CertificateProperties {
            organizational_unit: vec!["space:s".into(), "app:a".into()],
        }),
        ..DesiredLrp::default()
    });
    give(&rep, one_instance()).await;
    eventually("it has said where they are", || told.exists()).await;
    let told = std::fs::read_to_string(told).unwrap();
    let lines: Vec<&str> = told.lines().collect();
    let [certificate, key, guid] = lines.as_slice() else {
        panic!("{told}")
    };
    let files = Files {
        certificate: certificate.into(),
        key: key.into(),
        authority: identity.authority,
    };
    let listener = net::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_stop, shutdown) = net::shutdown();
    tokio::spawn(net::serve(
        listener,
        Some(tls::server(&files).unwrap()),
        net::Limits::default(),
        Arc::new(Mirror),
        shutdown,
    ));
    let client = Client::new(ClientOptions {
        tls: Some(tls::client(&files).unwrap()),
        ..ClientOptions::default()
    });
    let uri = format!("https://{address}/").parse().unwrap();
    let answer = client.get(&uri).await.unwrap();
    let expected = format!(
        "OrganizationalUnit=\"app:a\", OrganizationalUnit=\"space:s\", CommonName=\"{guid}\""
    );
    assert_eq!(String::from_utf8(answer.body.to_vec()).unwrap(), expected);
}
