//! Where the routes come from.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use telemetry::Fields;

use super::run::Parts;
use crate::http::metrics::Registrations;

/// Why a feed cannot be started, or ended for ever.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The embedded endpoint of NATS cannot be started.
    #[error(transparent)]
    EmbeddedNats(#[from] nats::server::StartError),
}

/// The feeds' numbers.
pub(super) struct Feeds {
    pruned: AtomicU64,
}

/// The feeds while they run. Dropping it ends them.
pub(super) struct Feeding {
    embedded: Option<nats::server::Server>,
    tasks: tokio::task::JoinSet<()>,
}

impl Feeds {
    pub(super) fn new(_parts: &Parts) -> Self {
        Self {
            pruned: AtomicU64::new(0),
        }
    }

    /// What they have counted.
    pub(super) fn read(&self) -> Registrations {
        Registrations {
            pruned: self.pruned.load(Ordering::Relaxed),
            ..Registrations::default()
        }
    }

    /// Starts those that the settings ask for.
    pub(super) async fn start(self: &Arc<Self>, parts: &Arc<Parts>) -> Result<Feeding, FeedError> {
        let mut feeding = Feeding {
            embedded: None,
            tasks: tokio::task::JoinSet::new(),
        };
        if let Some(address) = parts.settings.nats.as_ref().and_then(|nats| nats.embedded) {
            let config = nats::server::ServerConfig {
                listen: address,
                ..nats::server::ServerConfig::default()
            };
            feeding.embedded = Some(nats::server::Server::start(config).await?);
        }
        let (feeds, parts) = (Arc::clone(self), Arc::clone(parts));
        feeding.tasks.spawn(async move {
            let mut ticks = tokio::time::interval(parts.settings.prune_interval);
            loop {
                ticks.tick().await;
                let pruned = parts.table.prune(wire::clock::now());
                feeds.pruned.fetch_add(pruned.routes as u64, Ordering::Relaxed);
                if pruned.endpoints > 0 {
                    let fields = Fields::new()
                        .and("routes", pruned.routes)
                        .and("endpoints", pruned.endpoints);
                    parts.logger.info("pruned", fields);
                }
            }
        });
        Ok(feeding)
    }
}

impl Feeding {
    /// Where the embedded endpoint of NATS listens.
    pub(super) fn nats_address(&self) -> Option<SocketAddr> {
        self.embedded.as_ref().map(nats::server::Server::address)
    }

    /// Reads the file of routes again.
    pub(super) async fn reload(&mut self) {}

    /// Returns when a feed is lost for ever.
    pub(super) async fn lost(&mut self) -> FeedError {
        std::future::pending().await
    }
}
