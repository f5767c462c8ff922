//! Parts of the server on a real disk.

mod history;
mod keeping;

use std::path::Path;
use std::sync::Arc;

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use telemetry::{Level, Logger, Sink};

use super::ledger::{Commands, LIMITS, Ledger, Newcome, Request};
use super::packed;
use super::state::{PolicyRecord, RunRecord, ServedPolicy, State};
use super::store::Store;
use crate::model::node::Node;
use crate::reports::signature::NodeCertificate;

pub(super) fn logger() -> Logger {
    Logger::new("test", Sink::nothing(), Level::Error)
}

/// A key and the certificate of a node, PEM.
pub(super) fn identity(node: &str) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    let uid = DnType::CustomDnType(vec![0, 9, 2342, 19_200_300, 100, 1, 1]);
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(uid, node);
    let certificate = params.self_signed(&key).unwrap().pem();
    (key.serialize_pem(), certificate)
}

pub(super) fn newcome(node: &str, certificate: &str) -> Request {
    Request::Inventory(Box::new(Newcome {
        node: Node::new(node, format!("{node}.example.org")),
        key: NodeCertificate::from_pem(certificate.as_bytes()).unwrap(),
        certificate: certificate.to_owned(),
        received: 1,
        inventory: packed::pack(b"{}"),
    }))
}

pub(super) fn decide(node: &str, accept: bool) -> Request {
    Request::Decide {
        nodes: vec![node.to_owned()],
        accept,
    }
}

pub(super) fn run(node: &str, start: i64, message: &[u8]) -> Request {
    Request::Run(Box::new(RunRecord {
        node: node.into(),
        start,
        received: start,
        config_id: Some("c".into()),
        whole: true,
        reports: 3,
        message: packed::pack(message).into(),
        signed: true,
        exceptions: Vec::new(),
    }))
}

pub(super) fn policy(node: &str, config_id: &str, begin: i64) -> Arc<PolicyRecord> {
    Arc::new(PolicyRecord {
        node: node.into(),
        begin,
        served: Some(ServedPolicy {
            config_id: config_id.into(),
            digest: [7; 32],
            document: packed::pack(config_id.as_bytes()).into(),
        }),
        expected: packed::pack(b"expected"),
    })
}

/// A writer on the store in a folder.
pub(super) async fn writer(folder: &Path) -> (Commands, commit::View<State>) {
    let store = Store::open(folder).unwrap();
    let loaded = store.load().unwrap();
    let last = store.last_run_numbers().unwrap();
    let ledger = Ledger::new(store, &loaded, last, logger());
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.build().unwrap();
    let open = || async { Ok::<_, std::convert::Infallible>((ledger, loaded.state)) };
    let Ok(started) = commit::start("writer", runtime, LIMITS, open).await else {
        panic!("it starts");
    };
    (started.requests, started.view)
}
