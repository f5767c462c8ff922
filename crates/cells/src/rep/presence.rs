//! A cell's presence: a lock at Locket that the cell renews for as long as it lives.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use diego::auction::{CellState, RootFsProvider};
use diego::locket::{LockRequest, ReleaseRequest, Resource, TypeCode};
use diego::{PROTOBUF, path};
use http::{HeaderMap, StatusCode, Uri};
use net::{Client, Shutdown};
use prost::Message;
use rand::RngExt;
use serde::Serialize;
use telemetry::{Fields, Logger};
use tokio::sync::watch;
use tokio::time::sleep;

use super::metrics::{Metrics, count};

/// What a presence says, in the form of Diego's `CellPresence`.
#[derive(Debug, Serialize)]
struct Value<'a> {
    cell_id: &'a str,
    rep_address: &'a str,
    zone: &'a str,
    capacity: Capacity,
    rootfs_provider_list: Vec<Provider>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    placement_tags: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    optional_placement_tags: &'a [String],
    rep_url: &'a str,
    annotations: BTreeMap<&'a str, &'a str>,
}

#[derive(Debug, Serialize)]
struct Capacity {
    memory_mb: i32,
    disk_mb: i32,
    containers: i32,
}

#[derive(Debug, Serialize)]
struct Provider {
    name: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    properties: Vec<String>,
}

/// The presence of a cell that reports `state` and listens at `rep_address`.
pub(super) fn value(state: &CellState, rep_address: &str) -> String {
    let provider = |(name, provider): (&String, &RootFsProvider)| Provider {
        name: name.clone(),
        properties: match provider {
            RootFsProvider::Arbitrary => Vec::new(),
            RootFsProvider::FixedSet { set } => set.keys().cloned().collect(),
        },
    };
    let value = Value {
        cell_id: &state.cell_id,
        rep_address,
        zone: &state.zone,
        capacity: Capacity {
            memory_mb: state.total_resources.memory_mb,
            disk_mb: state.total_resources.disk_mb,
            containers: state.total_resources.containers,
        },
        rootfs_provider_list: state.root_fs_providers.iter().map(provider).collect(),
        placement_tags: &state.placement_tags,
        optional_placement_tags: &state.optional_placement_tags,
        rep_url: &state.rep_url,
        annotations: BTreeMap::new(),
    };
    // Plain strings and numbers always serialise.
    serde_json::to_string(&value).unwrap_or_default()
}

/// Keeps one presence alive.
pub(super) struct Presence {
    pub(super) client: Client,
    /// Where Locket answers.
    pub(super) base: String,
    pub(super) cell_id: String,
    /// Proves that it is we who renew.
    pub(super) owner: String,
    pub(super) value: String,
    pub(super) ttl: Duration,
    pub(super) heartbeat: Duration,
    pub(super) jitter: f64,
    pub(super) metrics: Arc<Metrics>,
    pub(super) logger: Logger,
}

impl Presence {
    /// Takes the presence and renews it until `shutdown`, then releases it. Says
    /// in `held` whether it has been taken.
    pub(super) async fn keep(self, held: watch::Sender<bool>, mut shutdown: Shutdown) {
        // The first pause is shorter, so that cells which start together spread out.
        let mut spread = rand::rng().random::<f64>();
        loop {
            match self.lock().await {
                Ok(()) => {
                    count(&self.metrics.renewals, 1);
                    if !held.send_replace(true) {
                        self.logger
                            .info("succeeded-setting-presence", Fields::new());
                    }
                }
                Err(cause) => {
                    count(&self.metrics.failed_renewals, 1);
                    held.send_replace(false);
                    self.logger
                        .error("failed-to-set-presence", &cause, Fields::new());
                }
            }
            let pause = self.heartbeat.mul_f64(spread);
            spread = 1.0 + self.jitter * (2.0 * rand::rng().random::<f64>() - 1.0);
            tokio::select! {
                () = sleep(pause) => {}
                () = shutdown.asked() => break,
            }
        }
        if let Err(cause) = self.release().await {
            self.logger
                .error("failed-to-release-presence", &cause, Fields::new());
        }
    }

    fn resource(&self) -> Resource {
        Resource {
            key: self.cell_id.clone(),
            owner: self.owner.clone(),
            value: self.value.clone(),
            r#type: "presence".into(),
            type_code: TypeCode::Presence.into(),
        }
    }

    async fn lock(&self) -> Result<(), String> {
        let request = LockRequest {
            resource: Some(self.resource()),
            ttl_in_seconds: i64::try_from(self.ttl.as_secs()).unwrap_or(i64::MAX).max(1),
        };
        self.post(path::LOCKET_LOCK, &request).await
    }

    async fn release(&self) -> Result<(), String> {
        let request = ReleaseRequest {
            resource: Some(self.resource()),
        };
        self.post(path::LOCKET_RELEASE, &request).await
    }

    async fn post(&self, path: &str, request: &impl Message) -> Result<(), String> {
        let uri: Uri = format!("{}{path}", self.base)
            .parse()
            .map_err(|_| format!("{:?} is not the address of a BBS", self.base))?;
        let body = Bytes::from(request.encode_to_vec());
        let answer = self
            .client
            .post(&uri, PROTOBUF, HeaderMap::new(), body)
            .await;
        let answer = answer.map_err(|error| error.to_string())?;
        if answer.status == StatusCode::OK {
            return Ok(());
        }
        let text = answer
            .headers
            .get("grpc-message")
            .and_then(|text| text.to_str().ok());
        Err(format!(
            "status {} from {path}: {}",
            answer.status.as_u16(),
            text.unwrap_or("no message")
        ))
    }
}
