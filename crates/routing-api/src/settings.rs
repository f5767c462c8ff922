//! What a routing API can be told. Plain data; who reads it from a file is
//! [`super::settings_file`].

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::Error;
use super::model::RouterGroup;
pub use commit::postgres::PostgresSettings;

/// Settings of a routing API.
#[derive(Debug, Clone)]
pub struct ApiSettings {
    /// Where plain connections are accepted; `None`: nowhere (`api.listen_port`).
    pub listen: Option<SocketAddr>,
    /// Where mutual TLS is spoken; `None`: nowhere (`api.mtls_listen_port`).
    pub mtls: Option<MutualTls>,
    /// Where router groups can be locked for a backup, on a loopback address; `None`:
    /// nowhere (`admin_port`).
    pub admin_listen: Option<SocketAddr>,
    /// Where `/health` and `/metrics` answer beside the API, to whoever asks; `None`: nowhere
    /// else.
    pub status: Option<SocketAddr>,
    /// PEM file with the public key (RSA or EC) that signs bearer tokens (`oauth`); `None`:
    /// calls need no token.
    pub token_key: Option<PathBuf>,
    /// The issuer (`iss`) that tokens must name, such as `https://uaa.example/oauth/token`;
    /// `None`: any, also another zone of the same UAA, whose administrators give scopes as
    /// they like.
    pub token_issuer: Option<String>,
    /// Serve plain connections from other machines although calls need no token.
    pub open_to_all: bool,
    /// Where rows are kept (`sqldb`).
    pub database: Database,
    /// Longest time to live that a row may ask for, and what it gets if it asks for none
    /// (`max_ttl`), in whole seconds.
    pub max_ttl: Duration,
    /// Groups to make when there is none at all (`router_groups`).
    pub router_groups: Vec<RouterGroup>,
    /// Bounds.
    pub limits: Limits,
}

impl Default for ApiSettings {
    fn default() -> Self {
        Self {
            listen: Some(SocketAddr::from(([127, 0, 0, 1], 3000))),
            mtls: None,
            admin_listen: None,
            status: None,
            token_key: None,
            token_issuer: None,
            open_to_all: false,
            database: Database::Sqlite(PathBuf::from("routing-api.sqlite")),
            max_ttl: Duration::from_secs(120),
            router_groups: Vec::new(),
            limits: Limits::default(),
        }
    }
}

impl ApiSettings {
    /// Another server that holds the database is waited for if it may run elsewhere.
    pub(super) fn can_wait(&self) -> bool {
        matches!(self.database, Database::Postgres(_))
    }

    /// Whether they make sense, and are safe.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.max_ttl.as_secs() == 0 {
            return Err(Error::MaxTtl(self.max_ttl));
        }
        if self.listen.is_none() && self.mtls.is_none() {
            return Err(Error::Nowhere);
        }
        if let Some(address) = self.listen
            && !address.ip().is_loopback()
            && self.token_key.is_none()
            && !self.open_to_all
        {
            return Err(Error::Open(address));
        }
        if let Some(address) = self.admin_listen
            && !address.ip().is_loopback()
        {
            return Err(Error::OpenAdmin(address));
        }
        let mut names = HashSet::new();
        for group in &self.router_groups {
            let refuse = |cause| Error::Group {
                name: group.name.clone(),
                cause,
            };
            group.check().map_err(refuse)?;
            if !names.insert(&group.name) {
                return Err(refuse("its name is not unique".to_owned()));
            }
        }
        Ok(())
    }
}

/// A listener that asks its clients for a certificate.
#[derive(Debug, Clone)]
pub struct MutualTls {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Its certificate and key, and the authority of its clients.
    pub files: net::tls::Files,
}

impl Default for MutualTls {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 3001)),
            files: net::tls::Files::default(),
        }
    }
}

/// Where rows are kept.
#[derive(Debug, Clone)]
pub enum Database {
    /// In this SQLite file, which one process at a time can use.
    Sqlite(PathBuf),
    /// In PostgreSQL.
    Postgres(Box<PostgresSettings>),
}

/// Bounds of a routing API.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a request's body: 16 MiB, enough for 50,000 mappings in one call. A larger
    /// body is refused with 413.
    pub body_bytes: usize,
    /// Bytes of bodies that are read at the same time; further ones wait, at most
    /// [`body_within`](Self::body_within), and are then answered 503.
    pub body_bytes_at_once: usize,
    /// Longest wait for a request's body.
    pub body_within: Duration,
    /// Connections open at once, of each listener; above it they wait to be accepted.
    pub connections: usize,
    /// Events that wait for a subscriber when it is cut off.
    pub subscriber_events: usize,
    /// Longest wait for the database.
    pub write_within: Duration,
    /// Time between two walks that remove what expired.
    pub prune_interval: Duration,
    /// Time between two attempts to reach a lost database, or its lock.
    pub retry_interval: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 16 << 20,
            body_bytes_at_once: 256 << 20,
            body_within: Duration::from_secs(30),
            connections: 4096,
            subscriber_events: 1024,
            write_within: Duration::from_secs(60),
            prune_interval: Duration::from_secs(10),
            retry_interval: Duration::from_secs(1),
        }
    }
}
