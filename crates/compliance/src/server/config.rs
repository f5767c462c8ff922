//! What a server is told, its bounds, and why it cannot run.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use commit::StoreError;
use commit::postgres::PostgresSettings;

use crate::trust::TrustError;

/// Which nodes are accepted without anybody's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Acceptance {
    /// None: somebody decides.
    #[default]
    Manual,
    /// All; for fleets that a laboratory makes.
    All,
}

/// What a server needs to run.
#[derive(Debug, Clone)]
pub struct Config {
    /// Address to listen on; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Folder of the database, the key and the token; used by one server at a time.
    pub data: PathBuf,
    /// A database in PostgreSQL instead, used by one server at a time.
    pub postgres: Option<PostgresSettings>,
    /// Where reports of older agents come over syslog, datagrams and streams, unsigned; nowhere without it.
    pub syslog: Option<SocketAddr>,
    /// Bytes of datagrams that may wait to be taken, their bookkeeping by the kernel included.
    pub syslog_receive_buffer: usize,
    /// Which nodes are accepted at once.
    pub acceptance: Acceptance,
    /// Names and addresses that the server's certificate is for, beside those of this machine.
    pub names: Vec<String>,
    /// How long runs are kept that are not a node's last.
    pub keep_runs: Duration,
    /// How long compliance by the hour is kept.
    pub keep_history: Duration,
    /// Time after which compliance by the hour is written at the latest; so much of it is lost
    /// when the server is killed.
    pub history_every: Duration,
    /// Bounds.
    pub limits: Limits,
}

impl Config {
    /// How long runs are kept unless somebody says otherwise: Rudder's four days.
    pub const KEEP_RUNS: Duration = Duration::from_secs(4 * 86_400);

    /// How long compliance by the hour is kept unless somebody says otherwise: 31 days.
    pub const KEEP_HISTORY: Duration = Duration::from_secs(31 * 86_400);

    /// Bytes of datagrams that may wait unless somebody says otherwise: a tenth of a second of 100,000 reports a second.
    pub const SYSLOG_RECEIVE_BUFFER: usize = 8 << 20;

    /// A server that accepts no node by itself.
    pub fn new(listen: SocketAddr, data: impl Into<PathBuf>) -> Self {
        Self {
            listen,
            data: data.into(),
            postgres: None,
            syslog: None,
            syslog_receive_buffer: Self::SYSLOG_RECEIVE_BUFFER,
            acceptance: Acceptance::Manual,
            names: Vec::new(),
            keep_runs: Self::KEEP_RUNS,
            keep_history: Self::KEEP_HISTORY,
            history_every: Duration::from_secs(60),
            limits: Limits::default(),
        }
    }
}

/// Bounds of a server.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of an upload, packed.
    pub upload_bytes: usize,
    /// Bytes of all uploads that are in memory at once, packed; a further one is to come again.
    pub uploads_bytes: usize,
    /// Bytes of a call of the REST API: definitions may be large.
    pub call_bytes: usize,
    /// Longest wait for a body.
    pub body_within: Duration,
    /// Connections open at once.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            upload_bytes: 16 << 20,
            uploads_bytes: 512 << 20,
            call_bytes: 64 << 20,
            body_within: Duration::from_secs(30),
            connections: 32_768,
        }
    }
}

/// Why a server cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Key, certificate or token cannot be used.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// What was defined cannot be taken any more.
    #[error("take the definitions from the database: {0}")]
    Definitions(#[from] crate::policy::generation::ChangeError),
    /// The address cannot be listened on.
    #[error(transparent)]
    Listen(std::io::Error),
    /// A thread cannot be started.
    #[error("start a thread: {0}")]
    Thread(std::io::Error),
    /// Another server has, or had, the database.
    #[error(
        "another compliance server took the database over while this one could not reach it; stop the other before this one is started again"
    )]
    Displaced,
    /// The database is older than what was confirmed.
    #[error(
        "the database came back without changes that it had confirmed, as one restored from a copy; start the server again to go on with what it has"
    )]
    Behind,
    /// The writer ended by itself.
    #[error("the writer ended unexpectedly; the log says why")]
    Writer,
}
