//! The server: what nodes send is kept and counted, what administrators define becomes policies,
//! and both can be asked for.
//!
//! ```text
//! agents ──PUT──▶ intake: unpack, check, read ─▶ ledger, one thread ─▶ store (SQLite)
//!                    │ all cores                    one sync a batch     │ at the start
//!                    └──── when durable ───▶ fleet: compliance ◀─────────┘
//! older agents ──syslog──▶ runs put together ─▶ intake
//!                clock: expiry, hours, purge ─▶ ledger
//! agents ◀─GET── policies ◀── generator, one thread ◀── inventories, definitions ◀── REST
//! ```

mod administered;
mod clock;
mod edit;
mod fleet;
mod generator;
mod intake;
mod ledger;
mod metrics;
mod packed;
mod rest;
mod service;
mod state;
mod store;
mod syslog;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use commit::{StartError, Started, StoreError};
use net::Shutdown;
use telemetry::{Fields, Logger};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::acceptance::Standing;
use crate::model::node::{Node, NodeKind, ROOT};
use crate::policy::generation::{Change, Engine};
use crate::reports::decision::UnixMillis;
use crate::trust::{self, Identity, TrustError, write_secret};
use clock::Clock;
use fleet::Compliance;
use generator::{Generator, Task};
use intake::{Intake, inventory_of};
use ledger::Ledger;
use metrics::Metrics;
use service::Service;
use store::Store;
use syslog::{Listening, Sockets};

pub(crate) use packed::{pack, unpack};

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
    /// Where reports of older agents come over syslog, datagrams and streams, unsigned; nowhere without it.
    pub syslog: Option<SocketAddr>,
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

    /// A server that accepts no node by itself.
    pub fn new(listen: SocketAddr, data: impl Into<PathBuf>) -> Self {
        Self {
            listen,
            data: data.into(),
            syslog: None,
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
    /// The writer ended by itself.
    #[error("the writer ended unexpectedly; the log says why")]
    Writer,
}

/// Milliseconds since 1970.
pub(crate) fn now() -> UnixMillis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since.unwrap_or_default().as_millis();
    i64::try_from(millis).unwrap_or(i64::MAX)
}

/// Names of files in the folder of a server's data.
pub mod files {
    /// The certificate, by whose key clients know the server.
    pub const CERTIFICATE: &str = "server.pem";
    /// Its private key.
    pub const KEY: &str = "server.key";
    /// The token of the REST API.
    pub const TOKEN: &str = "api-token";
    /// Where the server listens: `https://ADDRESS`.
    pub const ADDRESS: &str = "address";
}

/// Runs a server until `shutdown`.
///
/// # Errors
/// When it cannot start, or can no longer write.
pub async fn run(config: Config, logger: Logger, mut shutdown: Shutdown) -> Result<(), Error> {
    let mut running = start(config, logger).await?;
    tokio::select! {
        () = shutdown.asked() => running.stop().await,
        result = &mut running.serving => result.unwrap_or(Err(Error::Writer)),
    }
}

/// A server that runs in the background.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    syslog: Option<SocketAddr>,
    ask_stop: watch::Sender<bool>,
    serving: JoinHandle<Result<(), Error>>,
}

impl Running {
    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of syslog, if it listens there.
    pub fn syslog_address(&self) -> Option<SocketAddr> {
        self.syslog
    }

    /// Ends it: requests under way are answered, the database is closed.
    ///
    /// # Errors
    /// When the writer had ended before.
    pub async fn stop(self) -> Result<(), Error> {
        let _ = self.ask_stop.send(true);
        self.serving.await.unwrap_or(Err(Error::Writer))
    }
}

/// Starts a server; it serves when this returns.
///
/// # Errors
/// When the data folder or the address cannot be used.
pub fn start(config: Config, logger: Logger) -> net::BoxFuture<Result<Running, Error>> {
    Box::pin(start_unboxed(config, logger))
}

async fn start_unboxed(config: Config, logger: Logger) -> Result<Running, Error> {
    let store = Store::open(&config.data)?;
    let identity = identity(&config)?;
    let token = rest::hash(token(&config.data)?.as_bytes());
    let tls = trust::server(&identity)?;
    let loaded = store.load()?;
    let last_runs = store.last_run_numbers()?;
    let compliance = Arc::new(Compliance::load(&store, &loaded.state, now())?);
    let engine = engine(&store, &loaded.state, config.listen)?;
    let listener = net::bind(config.listen).await.map_err(Error::Listen)?;
    let address = listener.local_addr().map_err(Error::Listen)?;
    let sockets = match config.syslog {
        Some(address) => Some(Sockets::bind(address).await.map_err(Error::Listen)?),
        None => None,
    };
    let syslog_address = sockets.as_ref().map(|sockets| sockets.address);

    let metrics = Arc::new(Metrics::default());
    let ledger = Ledger::new(store, &loaded, last_runs, logger.session("writer"));
    // SQLite awaits nothing.
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(Error::Thread)?;
    let state = loaded.state;
    let open = || async { Ok::<_, std::convert::Infallible>((ledger, state)) };
    let Started {
        requests: commands,
        view,
        ended: writer_ended,
    } = commit::start("compliance-writer", runtime, ledger::LIMITS, open)
        .await
        .map_err(|StartError::Thread(error)| Error::Thread(error))?;
    let mut generator = Generator {
        engine,
        commands: commands.clone(),
        view: view.clone(),
        compliance: Arc::clone(&compliance),
        metrics: Arc::clone(&metrics),
        runtime: tokio::runtime::Handle::current(),
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        logger: logger.session("generator"),
        unsaved: Vec::new(),
        known_groups: HashMap::new(),
    };
    let (tasks, waiting) = mpsc::channel(generator::WAITING);
    let (generated, first) = oneshot::channel();
    let work = move || {
        // Policies are as defined before anybody can ask.
        generator.generate();
        let _ = generated.send(());
        generator.run(waiting);
    };
    let generator = std::thread::Builder::new()
        .name("compliance-generator".into())
        .spawn(work)
        .map_err(Error::Thread)?;
    // An error would mean that the thread panicked, which the log tells.
    let _ = first.await;
    let intake = Intake {
        view: view.clone(),
        commands: commands.clone(),
        compliance: Arc::clone(&compliance),
        tasks: tasks.clone(),
        metrics: Arc::clone(&metrics),
        acceptance: config.acceptance,
        logger: logger.session("intake"),
        places: intake::places(),
        halves: Default::default(),
    };
    let service = Arc::new(Service {
        intake,
        view,
        commands: commands.clone(),
        compliance: Arc::clone(&compliance),
        tasks: tasks.clone(),
        metrics: Arc::clone(&metrics),
        token,
        database: config.data.join(store::FILE),
        limits: config.limits,
        started: now(),
    });
    let limits = net::Limits {
        connections: config.limits.connections,
        ..net::Limits::default()
    };
    let (ask_stop, asked) = net::shutdown();
    let syslog = sockets.map(|sockets| {
        let logger = logger.session("syslog");
        let service = Arc::clone(&service);
        Listening::start(sockets, service, Arc::clone(&metrics), logger, &asked)
    });
    let server = net::serve(listener, Some(tls), limits, service, asked.clone());
    let url = format!("https://{address}");
    let told = config.data.join(files::ADDRESS);
    std::fs::write(&told, &url).map_err(|error| TrustError::file("write", &told, error))?;
    logger.info("started", Fields::new().and("address", &url));
    let serving = tokio::spawn(net::boxed(serve(
        Serving {
            server: Box::pin(server),
            syslog,
            generator,
            tasks,
            clock: Clock {
                compliance,
                commands,
                metrics,
                keep_runs: config.keep_runs,
                keep_history: config.keep_history,
                history_every: config.history_every,
                logger: logger.session("clock"),
            },
            logger,
        },
        asked,
        writer_ended,
    )));
    Ok(Running {
        address,
        syslog: syslog_address,
        ask_stop,
        serving,
    })
}

/// What runs until the server stops.
struct Serving {
    server: net::BoxFuture<()>,
    syslog: Option<Listening>,
    generator: std::thread::JoinHandle<()>,
    tasks: mpsc::Sender<Task>,
    clock: Clock,
    logger: Logger,
}

/// Serves until asked to stop, or until the writer is gone, and closes everything in order:
/// requests under way, the generator, the writer.
async fn serve(
    parts: Serving,
    mut asked: Shutdown,
    mut writer_ended: oneshot::Receiver<()>,
) -> Result<(), Error> {
    let Serving {
        server,
        syslog,
        generator,
        tasks,
        clock,
        logger,
    } = parts;
    let server = tokio::spawn(server);
    let clock = Arc::new(clock);
    let following = Arc::clone(&clock);
    let following = tokio::spawn(net::boxed(async move { following.follow().await }));
    tokio::select! {
        () = asked.asked() => {}
        _ = &mut writer_ended => {
            server.abort();
            if let Some(syslog) = syslog {
                syslog.abort();
            }
            following.abort();
            return Err(Error::Writer);
        }
    }
    let _ = server.await;
    if let Some(syslog) = syslog {
        syslog.stop().await;
    }
    following.abort();
    // A thread that is gone already has nothing to do.
    let _ = tasks.send(Task::Stop).await;
    let _ = tokio::task::spawn_blocking(move || generator.join()).await;
    clock.write_history().await;
    clock.commands.stop().await;
    let _ = writer_ended.await;
    logger.info("exited", Fields::new());
    Ok(())
}

/// The engine with all that was defined and accepted.
fn engine(store: &Store, state: &state::State, listen: SocketAddr) -> Result<Engine, Error> {
    let mut engine = Engine::new(state.definitions.settings.clone());
    let root = Node {
        kind: NodeKind::Root,
        ..Node::new(ROOT, listen.ip().to_string())
    };
    engine.apply(vec![Change::SetNode(Box::new(root))])?;
    engine.apply(state.definitions.changes())?;
    for (id, record) in &state.nodes {
        if record.known.standing != Standing::Accepted {
            continue;
        }
        engine.apply(vec![Change::SetNode(Box::new(Node::clone(&record.node)))])?;
        let inventory = store.inventory(record.number).ok();
        if let Some(inventory) = inventory.and_then(|packed| inventory_of(&packed)) {
            engine.apply(vec![Change::SetInventory {
                node: id.to_string(),
                inventory,
            }])?;
        }
        if let Some(served) = state.policies.get(id) {
            let config_id = Arc::clone(&served.config_id);
            engine.remember_config(id, served.digest, config_id);
        }
    }
    Ok(engine)
}

/// The server's key and certificate, made at the first start.
fn identity(config: &Config) -> Result<Identity, TrustError> {
    let (certificate, key) = (
        config.data.join(files::CERTIFICATE),
        config.data.join(files::KEY),
    );
    if key.exists() {
        let read = |path: &Path| {
            std::fs::read_to_string(path).map_err(|error| TrustError::file("read", path, error))
        };
        return Ok(Identity {
            key: read(&key)?,
            certificate: read(&certificate)?,
        });
    }
    let mut names = vec!["localhost".to_owned(), config.listen.ip().to_string()];
    names.extend(config.names.iter().cloned());
    names.dedup();
    let identity = Identity::make(None, &names)?;
    // The key comes last: without it both are made anew.
    std::fs::write(&certificate, &identity.certificate)
        .map_err(|error| TrustError::file("write", &certificate, error))?;
    write_secret(&key, identity.key.as_bytes())?;
    Ok(identity)
}

/// The token of the REST API, made at the first start.
fn token(data: &Path) -> Result<String, TrustError> {
    let path = data.join(files::TOKEN);
    if path.exists() {
        let read = std::fs::read_to_string(&path);
        let token = read.map_err(|error| TrustError::file("read", &path, error))?;
        let token = token.trim().to_owned();
        if token.len() < 32 {
            let cause = "it is shorter than 32 characters; remove it, and a new one is made";
            return Err(TrustError::file("use", &path, cause));
        }
        return Ok(token);
    }
    let token = trust::random_token()?;
    write_secret(&path, token.as_bytes())?;
    Ok(token)
}
