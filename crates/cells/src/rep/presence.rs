//! A cell's presence: a lock at Locket that the cell renews for as long as it lives.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use diego::auction::{CellState, RootFsProvider};
use diego::locket::{Resource, TypeCode};
use fleet::Agent;
use net::Shutdown;
use rand::RngExt;
use serde::Serialize;
use telemetry::{Fields, Logger};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::metrics::{Metrics, count};
use crate::locket_client::{LocketClient, Refused};

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
    pub(super) locket: LocketClient,
    pub(super) cell_id: String,
    /// Proves that it is we who renew.
    pub(super) owner: String,
    pub(super) value: String,
    pub(super) ttl: Duration,
    pub(super) heartbeat: Duration,
    pub(super) jitter: f64,
    /// May be told to be silent.
    pub(super) agent: Agent,
    pub(super) metrics: Arc<Metrics>,
    pub(super) logger: Logger,
}

/// Whether a cell has its presence, without which it does nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    /// Not yet, or it could not be renewed for as long as it lives.
    Missing,
    /// It has.
    Held,
    /// Another rep has, for a cell of the same id.
    Taken,
}

/// Why a presence is not renewed that could be.
const SILENT: &str = "the cell was told to be silent";
/// Longest pause between attempts while the presence is not held.
const RETRY: Duration = Duration::from_secs(1);

impl Presence {
    /// Takes the presence and renews it until `shutdown`, then releases it. Says in `hold`
    /// whether it is held. One that cannot be renewed is held until it expires.
    pub(super) async fn keep(mut self, hold: watch::Sender<Hold>, mut shutdown: Shutdown) {
        // The first pause is shorter, so that cells which start together spread out.
        let mut spread = rand::rng().random::<f64>();
        let mut expires = Instant::now();
        loop {
            // Counted from before the call: the BBS counts from when it arrives.
            let asked = Instant::now();
            let renewed = match self.agent.is_silent() {
                true => Err(Refused::Other(SILENT.to_owned())),
                false => self.locket.lock(self.resource(), self.ttl).await,
            };
            let now = match renewed {
                Ok(()) => {
                    count(&self.metrics.renewals, 1);
                    expires = asked + self.ttl;
                    Hold::Held
                }
                Err(cause) => {
                    count(&self.metrics.failed_renewals, 1);
                    self.logger
                        .error("failed-to-set-presence", &cause, Fields::new());
                    match cause {
                        Refused::Taken(_) => Hold::Taken,
                        Refused::Other(_) if Instant::now() < expires => Hold::Held,
                        Refused::Other(_) => Hold::Missing,
                    }
                }
            };
            let before = hold.send_replace(now);
            match (before, now) {
                (Hold::Missing | Hold::Taken, Hold::Held) => self
                    .logger
                    .info("succeeded-setting-presence", Fields::new()),
                (Hold::Held, Hold::Missing | Hold::Taken) => {
                    let cause = if now == Hold::Taken {
                        "another rep has taken it: all containers end"
                    } else {
                        "it could not be renewed in time: no work is taken until it can"
                    };
                    self.logger.error("lost-presence", &cause, Fields::new());
                }
                _ => {}
            }
            let mut pause = self.heartbeat.mul_f64(spread);
            // Who is silent cannot find out that it could be held again.
            if now != Hold::Held && !self.agent.is_silent() {
                pause = pause.min(RETRY);
            }
            spread = 1.0 + self.jitter * (2.0 * rand::rng().random::<f64>() - 1.0);
            tokio::select! {
                () = sleep(pause) => {}
                () = self.agent.recalled() => {}
                () = shutdown.asked() => break,
            }
        }
        if self.agent.is_silent() {
            return;
        }
        match self.locket.release(self.resource()).await {
            // It never was this rep's.
            Ok(()) | Err(Refused::Taken(_)) => {}
            Err(cause) => {
                self.logger
                    .error("failed-to-release-presence", &cause, Fields::new());
            }
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
}
