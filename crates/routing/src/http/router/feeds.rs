//! Where the routes come from: NATS, a file, the routing API.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use nats::Password;
use nats::client::{
    Client, ClientConfig, ConnectError, QueueLimits, ServerAddress, SubscribeError,
};
use nats::server::{Server, ServerConfig};
use net::Shutdown;
use telemetry::Fields;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::component;
use super::run::Parts;
use super::settings::NatsSettings;
use crate::api_feed;
use crate::http::active_apps;
use crate::http::counters::Counters;
use crate::http::metrics::Registrations;
use crate::http::status::Varz;
use crate::peer_tls::{self, TlsPartError};
use crate::registry::file::{FileError, Follower, Routes};
use crate::registry::{Announcement, Feed, FeedSettings, MESSAGES, RegistryCounters};
use routing_api::client::{ApiClient, ClientError};

/// Where NATS is when nobody says it.
const NATS: &str = "127.0.0.1:4222";

/// Latencies of registrations right after the start say how old the routes are, not how
/// slow they came: `route_latency_metric_muzzle_duration`.
const LATENCY_MUZZLE: Duration = Duration::from_secs(20);

/// Why a feed cannot be started, or ended for ever.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The embedded endpoint of NATS cannot be started.
    #[error(transparent)]
    EmbeddedNats(#[from] nats::server::StartError),
    /// A server of the settings is no address.
    #[error("[nats] servers: {0}")]
    Address(#[from] nats::client::AddressError),
    /// NATS cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// NATS does not take the subscriptions.
    #[error("subscribe to registrations: {0}")]
    Subscribe(#[from] SubscribeError),
    /// Certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsPartError),
    /// The file of routes cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The settings of the routing API cannot be used.
    #[error(transparent)]
    RoutingApi(#[from] ClientError),
    /// NATS is lost for ever.
    #[error("the connection to NATS was closed for good: {0}; start the router again")]
    Lost(String),
}

/// The feeds' numbers.
#[derive(Default)]
pub(super) struct Feeds {
    registry: Arc<RegistryCounters>,
    /// Set once NATS is connected.
    nats: OnceLock<Arc<Feed>>,
    /// Endpoints pruned while there is no NATS.
    pruned: AtomicU64,
}

/// The feeds while they run. Dropping it ends them.
pub(super) struct Feeding {
    embedded: Option<Server>,
    nats: Option<Arc<Feed>>,
    reload: Arc<Notify>,
    /// Ended with this.
    tasks: JoinSet<()>,
}

impl Feeds {
    /// What they have counted.
    pub(super) fn read(&self) -> Registrations {
        let stats = self.nats.get().map(|feed| feed.stats()).unwrap_or_default();
        Registrations {
            registry: self.registry.totals(),
            pruned_without_nats: self.pruned.load(Ordering::Relaxed),
            stats,
        }
    }

    /// Starts those that the settings ask for. NATS comes first, as its answers take time.
    pub(super) async fn start(
        self: &Arc<Self>,
        parts: &Arc<Parts>,
        varz: Option<Arc<Varz>>,
        stopped: &Shutdown,
    ) -> Result<Feeding, FeedError> {
        let settings = &parts.settings;
        let mut feeding = Feeding {
            embedded: None,
            nats: None,
            reload: Arc::new(Notify::new()),
            tasks: JoinSet::new(),
        };
        match &settings.nats {
            Some(nats) => self.start_nats(nats, parts, varz, &mut feeding).await?,
            None => {
                let task = prune(Arc::clone(self), Arc::clone(parts));
                feeding.tasks.spawn(net::boxed(task));
            }
        }
        if let Some(path) = &settings.routes_file {
            let routes = Routes::read(path)?;
            let http2 = settings.http.http2;
            let follower = Follower {
                path: path.clone(),
                table: Arc::clone(&parts.table),
                counters: Arc::clone(&self.registry),
                http2,
                logger: parts.logger.session("routes-file"),
            };
            follower.take(&routes, None);
            let reload = Arc::clone(&feeding.reload);
            feeding
                .tasks
                .spawn(net::boxed(follower.follow(routes, reload)));
        }
        if let Some(api) = &settings.routing_api {
            let (table, counters) = (Arc::clone(&parts.table), Arc::clone(&self.registry));
            feeding.tasks.spawn(net::boxed(api_feed::http::run(
                ApiClient::new(api)?,
                table,
                counters,
                parts.logger.session("routing-api"),
                stopped.clone(),
            )));
        }
        Ok(feeding)
    }

    async fn start_nats(
        &self,
        nats: &NatsSettings,
        parts: &Parts,
        varz: Option<Arc<Varz>>,
        feeding: &mut Feeding,
    ) -> Result<(), FeedError> {
        let settings = &parts.settings;
        if let Some(listen) = nats.embedded {
            let config = ServerConfig {
                listen,
                user: user(nats),
                ..ServerConfig::default()
            };
            feeding.embedded = Some(Server::start(config).await?);
        }
        let client = Client::connect(client_config(nats, feeding.nats_address())?).await?;
        let announcement = Announcement {
            id: parts.id.clone(),
            address: settings.http.address,
            minimum_interval: settings.start_delay,
            threshold: settings.table.stale_after,
        };
        // What an endpoint of this process hears needs no connection to be taken.
        let limits = QueueLimits::default();
        let messages = match &feeding.embedded {
            Some(server) if nats.servers.is_empty() => server.subscribe(MESSAGES, limits)?,
            _ => client.subscribe(MESSAGES, limits)?,
        };
        let feed = Arc::new(Feed::start(
            client.clone(),
            messages,
            Arc::clone(&parts.table),
            FeedSettings {
                announcement,
                http2: settings.http.http2,
                prune_interval: settings.prune_interval,
                suspend_pruning: settings.suspend_pruning,
                latency_muzzle: LATENCY_MUZZLE,
            },
            Arc::clone(&self.registry),
            parts.logger.session("registry"),
        )?);
        let every = settings.http.active_apps;
        if !every.is_zero() {
            let told = publish_active_apps(client.clone(), Arc::clone(&parts.counters), every);
            feeding.tasks.spawn(net::boxed(told));
        }
        if let Some(varz) = varz {
            let logger = parts.logger.session("component");
            feeding
                .tasks
                .spawn(net::boxed(component::answer(client, varz, logger)?));
        }
        feeding.nats = Some(Arc::clone(&feed));
        // There is one start, and so nothing that could be there already.
        let _ = self.nats.set(feed);
        Ok(())
    }
}

/// Publishes the applications that were called, so often, until the client is closed.
async fn publish_active_apps(client: Client, counters: Arc<Counters>, every: Duration) {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first one is at once, when nobody can have been called.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let Ok(message) = active_apps::message(&counters.take_active_apps()) else {
            continue;
        };
        // While NATS is away nobody hears it; the next message tells of what is new then.
        let _ = client.publish(active_apps::SUBJECT.as_bytes(), &message);
    }
}

fn user(nats: &NatsSettings) -> Option<(String, Password)> {
    let named = !nats.user.is_empty();
    named.then(|| (nats.user.clone(), Password::new(nats.password.as_str())))
}

/// How to reach NATS: the servers that are named, else the embedded one.
fn client_config(
    nats: &NatsSettings,
    embedded: Option<SocketAddr>,
) -> Result<ClientConfig, FeedError> {
    let mut servers = Vec::new();
    for server in &nats.servers {
        servers.push(server.parse::<ServerAddress>()?);
    }
    if servers.is_empty() {
        let address = embedded.map_or_else(|| NATS.to_owned(), |address| address.to_string());
        servers.push(address.parse()?);
    }
    let tls = match &nats.tls {
        Some(tls) => Some(peer_tls::client("[nats]", tls)?),
        None => None,
    };
    Ok(ClientConfig {
        servers,
        user: user(nats),
        tls,
        name: "headroom-router".to_owned(),
        ping_interval: nats.ping_interval,
        ..ClientConfig::default()
    })
}

/// Prunes while there is no NATS, whose feed does it otherwise.
async fn prune(feeds: Arc<Feeds>, parts: Arc<Parts>) {
    let mut ticks = tokio::time::interval(parts.settings.prune_interval.max(SHORTEST_PRUNE));
    loop {
        ticks.tick().await;
        let pruned = parts.table.prune(wire::clock::now());
        let endpoints = pruned.endpoints as u64;
        feeds.pruned.fetch_add(endpoints, Ordering::Relaxed);
        if pruned.endpoints > 0 {
            let fields = Fields::new()
                .and("routes", pruned.routes)
                .and("endpoints", pruned.endpoints);
            parts.logger.info("pruned", fields);
        }
    }
}

/// Walks over the table more often than this would do nothing else.
const SHORTEST_PRUNE: Duration = Duration::from_millis(10);

impl Feeding {
    /// Where the embedded endpoint of NATS listens.
    pub(super) fn nats_address(&self) -> Option<SocketAddr> {
        self.embedded.as_ref().map(Server::address)
    }

    /// Reads the file of routes again, soon.
    pub(super) fn reload(&self) {
        self.reload.notify_one();
    }

    /// Returns when NATS is lost for ever.
    pub(super) async fn lost(&self) -> FeedError {
        match &self.nats {
            Some(feed) => FeedError::Lost(feed.lost().await),
            None => std::future::pending().await,
        }
    }
}
