//! A relay: it stands between the server and some of its nodes, which have it for their server.
//!
//! ```text
//! nodes ──PUT──▶ intake: unpack, check, read ─▶ spool on the disk ─▶ forwarder ──PUT──▶ upstream
//! nodes ◀─GET── last policies on the disk ◀───────────────────────────────GET─────────── upstream
//!                    who may: roster ◀── list of the nodes behind it ◀────GET─────────── upstream
//! ```
//!
//! Its right comes of the server, which lists the nodes behind it: it may fetch their policies,
//! and nobody else's. What it forwards carries the signatures of the nodes, which the server checks
//! again.

mod forward;
mod intake;
mod item;
mod key;
pub(crate) mod list;
mod metrics;
mod policies;
mod quarantine;
mod roster;
mod service;
mod spool;
pub(crate) mod tree;
mod upstream;

use std::fs::{File, TryLockError};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use net::Shutdown;
use telemetry::{Fields, Logger};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use self::forward::Forwarder;
use self::intake::Intake;
use self::key::ServerKey;
use self::metrics::Metrics;
use self::policies::Policies;
use self::quarantine::Quarantine;
use self::roster::{RelayScope, Roster};
use self::service::{Front, Service};
use self::spool::Spool;
use self::upstream::Upstream;
use crate::daemon;
use crate::private;
use crate::server::Limits;
use crate::trust::{self, ServerPin, TrustError};
use crate::uploads;
use crate::upstream::{
    AccessError, NodeIdentity, Wire, inventory_is_due, keep_pin, keep_sent, random_id, server_pin,
};

pub use crate::spool::Bounds;

/// The folder of a relay's own files, in the folder of its node.
const PLACE: &str = "relay";
/// Connections to the upstream: those of the forwarder, and of nodes that ask for policies.
const CONNECTIONS: usize = forward::SENDERS + 48;
/// Shortest time between two inventories of a relay that the upstream does not know.
const ENROL: Duration = Duration::from_secs(60);
/// How long the lock of the folder is waited for, and between two looks.
const LOCK_WITHIN: Duration = Duration::from_secs(2);
const LOCK_LOOK: Duration = Duration::from_millis(20);

/// Names of files in the folder of a relay's node.
pub mod files {
    /// Where the relay listens: `https://ADDRESS`.
    pub const ADDRESS: &str = "relay/address";
}

/// What a relay needs to run.
#[derive(Debug, Clone)]
pub struct Config {
    /// Address to listen on; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Folder of its node: the identity, which an agent of the same machine may share, and below
    /// `relay/` what waits, policies and the list of nodes.
    pub data: PathBuf,
    /// The server, or another relay: `https://HOST:PORT`.
    pub upstream: String,
    /// A file with the upstream's certificate; without one the first that is seen is trusted.
    pub upstream_certificate: Option<PathBuf>,
    /// Its name in the network; this machine's without one.
    pub hostname: Option<String>,
    /// Names and addresses that its certificate is for, when that is made.
    pub names: Vec<String>,
    /// How much may wait for the upstream.
    pub spool: Bounds,
    /// Time from one question for the list of nodes to the next.
    pub refresh: Duration,
    /// Bounds of what is served.
    pub limits: Limits,
}

impl Config {
    /// Time from one question for the list of nodes to the next, unless somebody says otherwise.
    pub const REFRESH: Duration = Duration::from_secs(15);

    /// A relay between this upstream and its nodes.
    pub fn new(listen: SocketAddr, data: impl Into<PathBuf>, upstream: impl Into<String>) -> Self {
        Self {
            listen,
            data: data.into(),
            upstream: upstream.into(),
            upstream_certificate: None,
            hostname: None,
            names: Vec::new(),
            spool: Bounds::default(),
            refresh: Self::REFRESH,
            limits: Limits::default(),
        }
    }
}

/// Why a relay cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no way to the upstream.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// Its key or certificate cannot be used.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// Its folder cannot be used.
    #[error("use the relay's folder {}: {cause}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// Another relay uses it.
    #[error("another relay uses {}; stop it first, or give this one another --data", .0.display())]
    Locked(PathBuf),
    /// The address cannot be listened on.
    #[error(transparent)]
    Listen(io::Error),
    /// A part of it ended by itself.
    #[error("a part of the relay ended unexpectedly; the log says why")]
    Ended,
}

/// Runs a relay until `shutdown`.
///
/// # Errors
/// When it cannot start.
pub async fn run(config: Config, logger: Logger, mut shutdown: Shutdown) -> Result<(), Error> {
    let mut running = start(config, logger).await?;
    tokio::select! {
        () = shutdown.requested() => running.stop().await,
        result = &mut running.serving => result.unwrap_or(Err(Error::Ended)),
    }
}

/// A relay that runs in the background.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    id: String,
    ask_stop: watch::Sender<bool>,
    serving: JoinHandle<Result<(), Error>>,
}

impl Running {
    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The identity of its node.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Ends it: requests under way are answered, what waits stays on the disk.
    ///
    /// # Errors
    /// When a part of it had ended before.
    pub async fn stop(self) -> Result<(), Error> {
        let _ = self.ask_stop.send(true);
        self.serving.await.unwrap_or(Err(Error::Ended))
    }
}

/// Starts a relay; it serves when this returns, whether its upstream is there or not.
///
/// # Errors
/// When its folder or the address cannot be used.
pub fn start(config: Config, logger: Logger) -> net::BoxFuture<Result<Running, Error>> {
    Box::pin(start_unboxed(config, logger))
}

async fn start_unboxed(config: Config, logger: Logger) -> Result<Running, Error> {
    let place = config.data.join(PLACE);
    let folder = |cause| Error::Folder {
        path: place.clone(),
        cause,
    };
    private::folder(&config.data).map_err(folder)?;
    private::folder(&place).map_err(folder)?;
    let lock = lock(&place).await?;
    let mut names = vec!["localhost".to_owned(), config.listen.ip().to_string()];
    names.extend(config.names.iter().cloned());
    names.dedup();
    let identity = NodeIdentity::open(&config.data, &names, random_id)?;
    let pin = Arc::new(server_pin(
        &config.data,
        config.upstream_certificate.as_deref(),
    )?);
    let wire = Wire::new(&config.upstream, Arc::clone(&pin), &identity, CONNECTIONS)?;
    let tls = trust::server(&identity.pems)?;
    let listener = net::bind(config.listen).await.map_err(Error::Listen)?;
    let address = listener.local_addr().map_err(Error::Listen)?;

    let seed = u64::try_from(Timestamp::now().as_nanosecond()).unwrap_or_default();
    let upstream = Arc::new(Upstream::new(wire, seed, logger.session("upstream")));
    let (spool, problems) = Spool::open(&place, config.spool).map_err(folder)?;
    for problem in problems {
        logger.error("spool-damaged", &problem, Fields::new());
    }
    let spool = Arc::new(spool);
    let id = identity.id.clone();
    let roster = Roster::open(&id, place.clone(), logger.session("roster")).map_err(folder)?;
    let roster = Arc::new(roster);
    let policies = Arc::new(Policies::open(place.join("policies")).map_err(folder)?);
    let key = ServerKey::open(place.clone(), logger.session("key")).map_err(folder)?;
    let refused = Arc::new(Quarantine::open(place.join("refused")).map_err(folder)?);
    let metrics = Arc::new(Metrics::default());
    let (ask_stop, asked) = net::shutdown();
    let forwarder = Forwarder {
        spool: Arc::clone(&spool),
        upstream: Arc::clone(&upstream),
        metrics: Arc::clone(&metrics),
        id: id.clone(),
        logger: logger.session("forwarder"),
    };
    let membership = Membership {
        identity,
        pin,
        roster: Arc::clone(&roster),
        policies: Arc::clone(&policies),
        upstream: Arc::clone(&upstream),
        config: config.clone(),
        logger: logger.session("membership"),
    };
    let service = Service {
        id: id.clone(),
        intake: Intake {
            spool: Arc::clone(&spool),
            roster: Arc::clone(&roster),
            upstream: Arc::clone(&upstream),
            metrics: Arc::clone(&metrics),
            refused,
            places: uploads::places(),
            checking: uploads::checking(),
            room: net::Room::new(config.limits.uploads_bytes),
            halves: Default::default(),
            limits: config.limits,
            logger: logger.session("intake"),
        },
        spool,
        roster,
        policies,
        key,
        upstream,
        metrics,
        logger: logger.session("service"),
    };
    let limits = net::Limits {
        connections: config.limits.connections,
        ..net::Limits::default()
    };
    let front = Arc::new(Front(Arc::new(service)));
    let server = net::serve(listener, Some(tls), limits, front, asked.clone());
    let url = format!("https://{address}");
    let told = config.data.join(files::ADDRESS);
    private::write(&told, url.as_bytes())
        .map_err(|error| TrustError::file("write", &told, error))?;
    let fields = Fields::new().and("address", &url).and("node", &id);
    logger.info("started", fields.and("upstream", &config.upstream));
    let serving = tokio::spawn(net::boxed(async move {
        let _lock = lock;
        let membership = tokio::spawn(net::boxed(membership.keep()));
        let forwarding = tokio::spawn(net::boxed(forwarder.run(asked.clone())));
        let mut stop = asked;
        let mut server = tokio::spawn(server);
        let mut forwarding = forwarding;
        let first = tokio::select! {
            biased;
            () = stop.requested() => true,
            _ = &mut server => false,
            _ = &mut forwarding => false,
        };
        // Asked to stop, both end as well, on other threads: that may be seen before the asking is.
        let asked = first
            || tokio::select! {
                biased;
                () = stop.requested() => true,
                () = std::future::ready(()) => false,
            };
        membership.abort();
        if asked {
            if !server.is_finished() {
                let _ = server.await;
            }
            if !forwarding.is_finished() {
                let _ = forwarding.await;
            }
        } else {
            server.abort();
            forwarding.abort();
        }
        logger.info("exited", Fields::new());
        asked.then_some(()).ok_or(Error::Ended)
    }));
    Ok(Running {
        address,
        id,
        ask_stop,
        serving,
    })
}

/// The right to use the folder, until it is dropped or the process ends. It is waited for a little: a
/// relay that ends still has it, and so has, until it runs a program, a child that its process has
/// started.
async fn lock(place: &Path) -> Result<File, Error> {
    let folder = |cause| Error::Folder {
        path: place.to_path_buf(),
        cause,
    };
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(place.join("lock"))
        .map_err(folder)?;
    let begin = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if begin.elapsed() < LOCK_WITHIN => {
                tokio::time::sleep(LOCK_LOOK).await;
            }
            Err(TryLockError::WouldBlock) => return Err(Error::Locked(place.to_path_buf())),
            Err(TryLockError::Error(cause)) => return Err(folder(cause)),
        }
    }
}

/// Keeps the relay a node of the server, and knows the nodes behind it.
struct Membership {
    identity: NodeIdentity,
    pin: Arc<ServerPin>,
    roster: Arc<Roster>,
    policies: Arc<Policies>,
    upstream: Arc<Upstream>,
    config: Config,
    logger: Logger,
}

impl Membership {
    /// For as long as the relay runs.
    async fn keep(self) {
        let mut enrolled: Option<Instant> = None;
        loop {
            let answered = self.roster.refresh(&self.upstream, Instant::now()).await;
            if answered {
                let scope = self.roster.scope();
                let unknown = matches!(scope, RelayScope::Nobody { unknown: true, .. });
                let due = unknown || inventory_is_due(&self.config.data);
                if due && enrolled.is_none_or(|at| at.elapsed() >= ENROL) {
                    enrolled = Some(Instant::now());
                    self.enrol().await;
                }
                if let Err(error) = keep_pin(&self.config.data, &self.pin) {
                    self.logger.error("not-noted", &error, Fields::new());
                }
                let children = self.roster.children();
                self.policies
                    .retain(|node| children.as_ref().is_some_and(|all| all.get(node).is_some()));
            }
            tokio::time::sleep(self.config.refresh).await;
        }
    }

    async fn enrol(&self) {
        let now = Timestamp::now();
        let mut facts = daemon::facts(
            Path::new("/"),
            &self.identity.id,
            self.config.hostname.as_deref(),
            &self.identity.pems.certificate,
            now,
        );
        let wire = &self.upstream.wire;
        match self
            .upstream
            .request(wire.enrol(&self.identity, &mut facts, now))
            .await
        {
            Err(error) => self
                .logger
                .error("inventory-not-sent", &error, Fields::new()),
            Ok(told) => {
                self.logger
                    .info("inventory-sent", Fields::new().and("told", told));
                if let Err(error) = keep_sent(&self.config.data, now) {
                    self.logger.error("not-noted", &error, Fields::new());
                }
            }
        }
    }
}
