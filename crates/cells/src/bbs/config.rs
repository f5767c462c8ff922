//! What a BBS is told, and its bounds.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use commit::postgres::PostgresSettings;
use net::tls;

use super::encryption::EncryptionKeys;
use super::model::convergence::ConvergenceAges;
use crate::pool::{self, PoolSizeError};

/// What a BBS needs to run.
#[derive(Debug, Clone)]
pub struct Config {
    /// Address of the API; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Address of Locket's calls over gRPC; without one only plain HTTP has them.
    pub locket_listen: Option<SocketAddr>,
    /// Folder of the database; created when missing, used by one BBS at a time.
    pub data_dir: PathBuf,
    /// A database in PostgreSQL instead, used by one BBS at a time.
    pub postgres: Option<PostgresSettings>,
    /// Keys with which what is stored is encrypted; without them it is not.
    pub encryption: Option<EncryptionKeys>,
    /// Certificate to serve with; clients must then show one of the same authority.
    pub server_tls: Option<tls::Files>,
    /// Certificate to show to the auctioneer, reps and callbacks at `https` addresses.
    pub client_tls: Option<tls::Files>,
    /// Base address of the auctioneer; without one nothing is placed.
    pub auctioneer_url: Option<String>,
    /// When no cell at all is present, all are lost, as Diego has it. Otherwise nothing is
    /// known then, and what runs is left alone.
    pub empty_cells_are_lost: bool,
    /// Take LRPs of clients that know no metric tags, as Diego did until 2018: their source is
    /// made of what names their metrics, their log, or themselves.
    pub old_clients: bool,
    /// While another BBS uses the database, wait until it does not, without listening.
    pub standby: bool,
    /// Bounds.
    pub limits: Limits,
}

impl Config {
    /// A BBS in plain HTTP without an auctioneer.
    pub fn new(listen: SocketAddr, data_dir: impl Into<PathBuf>) -> Self {
        Self {
            listen,
            locket_listen: None,
            data_dir: data_dir.into(),
            postgres: None,
            encryption: None,
            server_tls: None,
            client_tls: None,
            auctioneer_url: None,
            empty_cells_are_lost: false,
            old_clients: false,
            standby: false,
            limits: Limits::default(),
        }
    }
}

/// Bounds of a BBS.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// Longest wait for a request's body.
    pub body_within: Duration,
    /// Connections open at once.
    pub connections: usize,
    /// Events that may wait for one subscriber.
    pub subscriber_events: usize,
    /// Callbacks under way at once; also the connections to one receiver of them.
    pub callback_workers: usize,
    /// Calls to the auctioneer at once, for instances and as many for tasks. Each takes up to
    /// 1,000 records, so more of them make for smaller ones.
    pub create_workers: usize,
    /// Calls to cells at once that stop instances and cancel tasks.
    pub delete_workers: usize,
    /// Calls to cells at once that tell instances of new routes and tags.
    pub update_workers: usize,
    /// Changes of convergence at once, each of up to 256 records.
    pub convergence_workers: usize,
    /// Rejections after which a task is placed again; the next one fails it.
    pub task_retries_max: i32,
    /// Longest wait for an answer of the auctioneer, a rep or a callback.
    pub communication_timeout: Duration,
    /// Longest wait, after a start, for the cells of before, until work that waited then is
    /// auctioned again.
    pub cells_within: Duration,
    /// Time until what was asked of others and has not come about is asked for again.
    pub again_after: Duration,
    /// Longest time between two passes of convergence.
    pub converge_interval: Duration,
    /// Every so many passes look at all records; 0: only the first one after a start does, and
    /// further ones at what may have to be changed.
    pub whole_pass_every: u32,
    /// Age at which a task that has not started has failed.
    pub pending_within: Duration,
    /// How long a result that nobody reads is kept.
    pub completed_for: Duration,
    /// Longest wait of a change for a database that went away; from then on, until it is back,
    /// changes are refused.
    pub database_within: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 16 << 20,
            body_within: Duration::from_secs(30),
            connections: 16_384,
            subscriber_events: 1024,
            callback_workers: 1000,
            create_workers: 1,
            delete_workers: 256,
            update_workers: 256,
            convergence_workers: 1,
            task_retries_max: 3,
            communication_timeout: Duration::from_secs(10),
            // A presence's usual time to live: who has not renewed it by then is gone.
            cells_within: Duration::from_secs(15),
            // Diego's, for stale instances as for results that nobody took.
            again_after: Duration::from_secs(30),
            converge_interval: Duration::from_secs(30),
            whole_pass_every: 0,
            pending_within: Duration::from_secs(1800),
            completed_for: Duration::from_secs(120),
            database_within: Duration::from_secs(5),
        }
    }
}

impl Limits {
    /// Can each pool have as many workers as it is to have?
    ///
    /// # Errors
    /// When one cannot; the first of them.
    pub fn check(&self) -> Result<(), PoolSizeError> {
        for (setting, workers) in [
            ("task_callback_workers", self.callback_workers),
            ("create_workers", self.create_workers),
            ("delete_workers", self.delete_workers),
            ("update_workers", self.update_workers),
            ("convergence_workers", self.convergence_workers),
        ] {
            pool::check(setting, workers)?;
        }
        Ok(())
    }

    /// The ages at which convergence acts, of a BBS that began to serve then, in ns since 1970.
    pub(super) fn ages(&self, began: i64) -> ConvergenceAges {
        let ns = |age: Duration| i64::try_from(age.as_nanos()).unwrap_or(i64::MAX);
        ConvergenceAges {
            again: ns(self.again_after),
            pending: ns(self.pending_within),
            completed: ns(self.completed_for),
            began,
        }
    }
}
