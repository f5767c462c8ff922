//! A cell's presence: a lock at Locket that the cell renews for as long as it lives.

use std::sync::Arc;
use std::time::Duration;

use diego::auction::{CellState, RootFsProvider};
use diego::json::{self, shapes};
use diego::locket::{Resource, TypeCode};
use diego::models::{CellCapacity, CellPresence, Provider};
use fleet::Agent;
use net::Shutdown;
use prost::Message;
use rand::RngExt;
use telemetry::{Fields, Logger};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use super::metrics::Metrics;
use crate::locket_client::{LocketClient, Refused};

/// The presence of a cell that reports `state` and listens at `rep_address`, as JSON.
pub(super) fn value(state: &CellState, rep_address: &str) -> String {
    let provider = |(name, provider): (&String, &RootFsProvider)| Provider {
        name: name.clone(),
        properties: match provider {
            RootFsProvider::Arbitrary => Vec::new(),
            RootFsProvider::FixedSet { set } => set.keys().cloned().collect(),
        },
    };
    let presence = CellPresence {
        cell_id: state.cell_id.clone(),
        rep_address: rep_address.to_owned(),
        zone: state.zone.clone(),
        capacity: Some(CellCapacity {
            memory_mb: state.total_resources.memory_mb,
            disk_mb: state.total_resources.disk_mb,
            containers: state.total_resources.containers,
        }),
        rootfs_providers: state.root_fs_providers.iter().map(provider).collect(),
        placement_tags: state.placement_tags.clone(),
        optional_placement_tags: state.optional_placement_tags.clone(),
        rep_url: state.rep_url.clone(),
        ..CellPresence::default()
    };
    // What was encoded as a message has the message's shape.
    json::print(&shapes::CELL_PRESENCE, &presence.encode_to_vec()).unwrap_or_default()
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
            // What is held is not held for longer because no answer comes.
            let until = match *hold.borrow() {
                Hold::Held => expires,
                Hold::Missing | Hold::Taken => asked + self.ttl,
            };
            let renewed = match self.agent.is_silent() {
                true => Err(Refused::Other(SILENT.to_owned())),
                false => {
                    let locked = self.locket.lock(self.resource(), self.ttl);
                    let locked = timeout_at(until, locked).await;
                    locked.unwrap_or_else(|_| Err(Refused::Other("no answer".to_owned())))
                }
            };
            let now = match renewed {
                Ok(()) => {
                    self.metrics.counters.renewals.add(1);
                    expires = asked + self.ttl;
                    Hold::Held
                }
                Err(cause) => {
                    self.metrics.counters.failed_renewals.add(1);
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
                () = shutdown.requested() => break,
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use fleet::Silence;
    use http::{Request, Response};
    use net::{Body, Client, ClientOptions, Handler, Incoming, Limits};
    use telemetry::{Level, Sink};

    use super::*;

    /// Answers once, and then no more.
    #[derive(Default)]
    struct Stuck(AtomicUsize);

    impl Handler for Stuck {
        async fn handle(&self, _: Request<Incoming>) -> Response<Body> {
            if self.0.fetch_add(1, Relaxed) > 0 {
                std::future::pending::<()>().await;
            }
            Response::new(net::empty())
        }
    }

    #[tokio::test]
    async fn without_an_answer_it_is_held_for_as_long_as_it_lives() {
        let listener = net::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (_stop, stopped) = net::shutdown();
        let (limits, stuck) = (Limits::default(), Arc::new(Stuck::default()));
        tokio::spawn(net::serve(listener, None, limits, stuck, stopped));
        let presence = Presence {
            locket: LocketClient {
                client: Client::new(ClientOptions::default()),
                base,
                holder: "rep of the same cell",
            },
            cell_id: "c".into(),
            owner: "o".into(),
            value: String::new(),
            ttl: Duration::from_secs(2),
            heartbeat: Duration::from_millis(100),
            jitter: 0.0,
            agent: Silence::of(1).agent(0),
            metrics: Arc::default(),
            logger: Logger::new("rep", Sink::nothing(), Level::Info),
        };
        let (hold, mut held) = watch::channel(Hold::Missing);
        let (_ask, shutdown) = net::shutdown();
        tokio::spawn(presence.keep(hold, shutdown));
        held.wait_for(|held| *held == Hold::Held).await.unwrap();
        // The client itself would wait for half a minute.
        let missing = held.wait_for(|held| *held == Hold::Missing);
        let seen = tokio::time::timeout(Duration::from_secs(20), missing).await;
        assert!(matches!(seen, Ok(Ok(_))), "{seen:?}");
    }
}
