//! Parts of the server on real stores: a disk, and PostgreSQL.

#[path = "../../../../commit/src/postgres/cluster.rs"]
pub(super) mod cluster;
mod history;
mod keeping;
mod overtaken;
mod restart;

use std::sync::Arc;

use commit::StartError;
use commit::postgres::PostgresSettings;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use telemetry::{Level, Logger, Sink};
use tempfile::TempDir;

use super::ledger::{CheckedNode, Commands, LIMITS, Ledger, Recovery, Request};
use super::packed;
use super::state::{PolicyRecord, RunRecord, ServedPolicy, State};
use super::store::Store;
use crate::model::node::Node;
use crate::reports::signature::NodeCertificate;
use cluster::Cluster;

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
    Request::Inventory(Box::new(CheckedNode {
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
        digest: crate::uploads::digest_of(message),
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

/// Where a server keeps what it has: a folder, or a database in PostgreSQL.
pub(super) struct Place {
    folder: TempDir,
    postgres: Option<PostgresSettings>,
}

impl Place {
    fn sqlite() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            postgres: None,
        }
    }

    fn postgres(cluster: &Cluster, name: &str) -> Self {
        Self {
            postgres: Some(PostgresSettings::at(&cluster.database(name)).unwrap()),
            ..Self::sqlite()
        }
    }

    pub(super) fn store(&self) -> Result<Store, commit::StoreError> {
        match &self.postgres {
            None => Store::open(self.folder.path()),
            Some(settings) => Store::postgres(settings),
        }
    }

    /// A writer, once the one before has let the store go.
    pub(super) async fn writer(&self) -> (Commands, commit::View<State>) {
        for _ in 0..1_000 {
            if let Some(started) = self.try_writer().await {
                return started;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        panic!("the database is still locked");
    }

    async fn try_writer(&self) -> Option<(Commands, commit::View<State>)> {
        let mut store = self.store().ok()?;
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let open = || async move {
            store.connect().await?;
            let mut loaded = store.load().await?;
            let (_ask, stop) = net::shutdown();
            let recovery = Recovery::new(Arc::default(), stop, logger());
            let (ledger, _) = Ledger::new(store, &mut loaded, recovery, logger());
            Ok::<_, commit::StoreError>((ledger, loaded.state))
        };
        match commit::start("writer", runtime, LIMITS, open).await {
            Ok(started) => Some((started.requests, started.view)),
            Err(StartError::Open(commit::StoreError::Locked { .. })) => None,
            Err(StartError::Open(error)) => panic!("{error}"),
            Err(StartError::Thread(error)) => panic!("{error}"),
        }
    }
}

/// Tests that hold on both stores: each by itself on SQLite, one after the other on PostgreSQL,
/// where each has a database.
macro_rules! on_both_stores {
    ($cluster:ident: $($test:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $test() {
                super::$test(&super::Place::sqlite()).await;
            })*
        }

        #[tokio::test]
        async fn all_of_it_on_postgresql() {
            let cluster = $cluster::start();
            $(
                println!("{}", stringify!($test));
                $test(&Place::postgres(&cluster, stringify!($test))).await;
            )*
        }
    };
}
use on_both_stores;
