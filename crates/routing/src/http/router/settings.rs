//! What a whole HTTP router can be told: its data path, and everything around it. Plain
//! data.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use telemetry::{Level, LineTimes};

use crate::http::settings::HttpSettings;
use crate::table::TableSettings;
use document::Secret;
use routing_api::client::{ClientSettings as RoutingApiSettings, PeerTls};

/// Settings of a router process.
#[derive(Debug, Clone, PartialEq)]
pub struct RouterSettings {
    /// The data path.
    pub http: HttpSettings,
    /// The table.
    pub table: TableSettings,
    /// Time between two walks that prune stale endpoints (`prune_stale_droplets_interval`).
    pub prune_interval: Duration,
    /// Prune nothing while NATS is away (`suspend_pruning_if_nats_unavailable`).
    pub suspend_pruning: bool,
    /// Number of this router among its like, the beginning of its id (`index`).
    pub index: u32,
    /// How long registrations are gathered before the first connection is accepted; also
    /// the shortest time between two registrations that senders are told
    /// (`start_response_delay_interval`).
    pub start_delay: Duration,
    /// NATS; `None`: no registrations come from it.
    pub nats: Option<NatsSettings>,
    /// A file with routes; read again when it changes, and on SIGHUP.
    pub routes_file: Option<PathBuf>,
    /// The routing API; `None`: no routes come from it.
    pub routing_api: Option<RoutingApiSettings>,
    /// The status endpoints.
    pub status: StatusSettings,
    /// Where `/metrics` answers; `None`: nowhere (`prometheus`).
    pub metrics_listen: Option<SocketAddr>,
    /// TLS of that, whose readers must prove themselves; `None`: plain (`prometheus.cert_path`
    /// and its neighbours).
    pub metrics_tls: Option<PeerTls>,
    /// How it drains.
    pub drain: DrainSettings,
    /// Where the process writes its id (`pid_file`).
    pub pid_file: Option<PathBuf>,
    /// Least important lines that are logged (`logging.level`).
    pub log_level: Level,
    /// How its lines say their time (`logging.format.timestamp`).
    pub log_times: LineTimes,
}

impl RouterSettings {
    /// The names of what differs from `old`, beside the data path, and counts only after a
    /// restart.
    pub(super) fn restarts_for<'s>(
        &'s self,
        old: &'s Self,
    ) -> impl Iterator<Item = &'static str> + use<'s> {
        let differ = [
            ("routes", self.table != old.table),
            ("prune_interval", self.prune_interval != old.prune_interval),
            (
                "suspend_pruning",
                self.suspend_pruning != old.suspend_pruning,
            ),
            ("index", self.index != old.index),
            ("start_delay", self.start_delay != old.start_delay),
            ("nats", self.nats != old.nats),
            ("routes_file", self.routes_file != old.routes_file),
            ("routing_api", self.routing_api != old.routing_api),
            ("status", self.status != old.status),
            (
                "metrics",
                (self.metrics_listen, &self.metrics_tls) != (old.metrics_listen, &old.metrics_tls),
            ),
            ("pid_file", self.pid_file != old.pid_file),
            ("log_level", self.log_level != old.log_level),
            ("log_times", self.log_times != old.log_times),
        ];
        differ
            .into_iter()
            .filter_map(|(name, differs)| differs.then_some(name))
    }
}

impl Default for RouterSettings {
    fn default() -> Self {
        Self {
            http: HttpSettings::default(),
            table: TableSettings::default(),
            prune_interval: Duration::from_secs(30),
            suspend_pruning: true,
            index: 0,
            start_delay: Duration::from_secs(5),
            nats: None,
            routes_file: None,
            routing_api: None,
            status: StatusSettings::default(),
            metrics_listen: None,
            metrics_tls: None,
            drain: DrainSettings::default(),
            pid_file: None,
            log_level: Level::Info,
            log_times: LineTimes::Unix,
        }
    }
}

/// How to reach NATS.
#[derive(Debug, Clone, PartialEq)]
pub struct NatsSettings {
    /// `host:port` of each server; tried in turn (`nats.hosts`). Empty: the embedded
    /// endpoint, or without one 127.0.0.1:4222.
    pub servers: Vec<String>,
    /// Where an endpoint of our own listens within this process; `None`: there is none.
    pub embedded: Option<SocketAddr>,
    /// User; empty: none (`nats.user`).
    pub user: String,
    /// Password (`nats.pass`).
    pub password: Secret,
    /// TLS; `None`: plain (`nats.tls_enabled`).
    pub tls: Option<PeerTls>,
    /// Time between two pings (`nats_client_ping_interval`).
    pub ping_interval: Duration,
}

impl Default for NatsSettings {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            embedded: None,
            user: String::new(),
            password: Secret::default(),
            tls: None,
            ping_interval: Duration::from_secs(20),
        }
    }
}

/// The status endpoints (section 7 of the routing facts).
#[derive(Debug, Clone, PartialEq)]
pub struct StatusSettings {
    /// Where `/health` answers; `None`: nowhere (`status.host`, `status.port`).
    pub listen: Option<SocketAddr>,
    /// The same within TLS (`status.tls.port`).
    pub listen_tls: Option<SocketAddr>,
    /// Certificate and key of that, PEM (`status.tls.certificate`, `status.tls.key`).
    pub certificate: (String, Secret),
    /// Where `/routes` answers; `None`: nowhere (`status.routes.port`).
    pub routes_listen: Option<SocketAddr>,
    /// User of `/routes` and `/varz` (`status.user`).
    pub user: String,
    /// Its password; while both are empty, nobody gets in (`status.pass`).
    pub password: Secret,
    /// `/varz`, `/healthz` and `/routes` on the status port
    /// (`status.enable_deprecated_varz_healthz_endpoints`).
    pub deprecated: bool,
}

impl Default for StatusSettings {
    fn default() -> Self {
        Self {
            listen: Some(SocketAddr::from(([127, 0, 0, 1], 8080))),
            listen_tls: None,
            certificate: (String::new(), Secret::default()),
            routes_listen: Some(SocketAddr::from(([127, 0, 0, 1], 8082))),
            user: String::new(),
            password: Secret::default(),
            deprecated: false,
        }
    }
}

/// How a router drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainSettings {
    /// How long it serves on after it said that it is not healthy (`drain_wait`).
    pub wait: Duration,
    /// Longest wait for requests under way after that (`drain_timeout`).
    pub timeout: Duration,
}

impl Default for DrainSettings {
    fn default() -> Self {
        Self {
            wait: Duration::from_secs(20),
            timeout: Duration::from_secs(60),
        }
    }
}
