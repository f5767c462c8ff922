//! Registers TCP mappings and keeps them fresh, for measurements: all of them lead to the
//! same backend, as with routing-perf-release's `tcp_route_populator`.

use std::net::SocketAddr;
use std::time::Duration;

use net::Shutdown;
use telemetry::{Fields, Logger};
use tokio::time::MissedTickBehavior;

use super::client::{ApiClient, ClientError, ClientSettings};
use super::model::{RouterGroup, TcpMapping};

/// Mappings of one call.
const BATCH: usize = 1000;
/// Longest wait for their removal when it stops.
const REMOVE_WITHIN: Duration = Duration::from_secs(30);

/// What is registered.
#[derive(Debug, Clone)]
pub struct PopulateTcp {
    /// The routing API.
    pub api: ClientSettings,
    /// Name of the router group (of type `tcp`). It is made if it is not there.
    pub router_group: String,
    /// Isolation segment of all mappings; empty: none.
    pub isolation_segment: String,
    /// The first external port; the others follow it.
    pub first_port: u16,
    /// External ports.
    pub routes: u16,
    /// Where all of them lead.
    pub backend: SocketAddr,
    /// Seconds until a mapping expires; `None`: as the server likes.
    pub ttl: Option<u32>,
    /// Time between two heartbeats; 60 s in routing-perf-release.
    pub every: Duration,
    /// End after the first pass, and leave the mappings.
    pub once: bool,
}

/// Why mappings cannot be registered.
#[derive(Debug, thiserror::Error)]
pub enum PopulateTcpError {
    /// There are not so many ports.
    #[error(
        "register {routes} ports from {first_port} on: the last port is 65535; ask for fewer, or begin lower"
    )]
    TooManyPorts {
        /// The first port.
        first_port: u16,
        /// How many were asked for.
        routes: u16,
    },
    /// The first pass failed.
    #[error(transparent)]
    Api(#[from] ClientError),
}

/// Registers the mappings, keeps them fresh until `shutdown`, then removes them. A
/// heartbeat that fails is logged; the next one tries again.
///
/// # Errors
/// When the ports do not exist, or the first pass or the removal fails.
pub async fn run(
    what: &PopulateTcp,
    logger: Logger,
    mut shutdown: Shutdown,
) -> Result<(), PopulateTcpError> {
    if u32::from(what.first_port) + u32::from(what.routes) > 65536 {
        return Err(PopulateTcpError::TooManyPorts {
            first_port: what.first_port,
            routes: what.routes,
        });
    }
    let client = ApiClient::new(&what.api)?;
    let group = client
        .create_router_group(&RouterGroup {
            name: what.router_group.clone(),
            kind: "tcp".to_owned(),
            reservable_ports: "1024-65535".to_owned(),
            ..RouterGroup::default()
        })
        .await?;
    let mappings = mappings(what, &group.guid);
    register(&client, &mappings).await?;
    logger.info("registered", Fields::new().and("routes", mappings.len()));
    if what.once {
        return Ok(());
    }
    let mut beats = tokio::time::interval(what.every.max(Duration::from_millis(1)));
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first pass was the first beat.
    beats.tick().await;
    loop {
        tokio::select! {
            _ = beats.tick() => {}
            () = shutdown.requested() => break,
        }
        if let Err(error) = register(&client, &mappings).await {
            logger.error("heartbeat-failed", &error, Fields::new());
        }
    }
    let remove = async {
        for batch in mappings.chunks(BATCH) {
            client.delete(batch).await?;
        }
        Ok(())
    };
    let late = || ClientError::Stream("the mappings were not removed in time".to_owned());
    tokio::time::timeout(REMOVE_WITHIN, remove)
        .await
        .unwrap_or_else(|_| Err(late()))?;
    logger.info("unregistered", Fields::new().and("routes", mappings.len()));
    Ok(())
}

fn mappings(what: &PopulateTcp, group: &str) -> Vec<TcpMapping> {
    let ports = (0..what.routes).map(|more| what.first_port.saturating_add(more));
    let mapping = |port| TcpMapping {
        router_group_guid: group.to_owned(),
        port,
        backend_ip: what.backend.ip().to_string(),
        backend_port: what.backend.port(),
        isolation_segment: what.isolation_segment.clone(),
        ttl: what.ttl.map(i64::from),
        ..TcpMapping::default()
    };
    ports.map(mapping).collect()
}

async fn register(client: &ApiClient, mappings: &[TcpMapping]) -> Result<(), ClientError> {
    for batch in mappings.chunks(BATCH) {
        client.upsert(batch).await?;
    }
    Ok(())
}
