//! Starting and stopping all cells of a process.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use diego::Bbs;
use diego::auction::{CellState, Resources, RootFsProvider};
use fleet::Silence;
use net::{Client, ClientOptions, Limits, Shutdown, tls};
use telemetry::{Fields, Logger};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::api::{AdminApi, CellApi};
use super::bulk;
use super::cell::{Cell, Identity};
use super::config::{Config, ExecutorKind};
use super::desired::DesiredLrps;
use super::evacuation::{self, Evacuation, Pace};
use super::executor::Executor;
use super::executor::process::Process;
use super::executor::simulated::Simulated;
use super::logs::Logs;
use super::metrics::Metrics;
use super::ports::{self, HostPorts};
use super::presence::{self, Hold, Presence};
use super::settings::{Error, check};
use super::work::uuid;
use crate::descriptors;
use crate::locket_client::LocketClient;

/// Longest wait for containers to end at shutdown, beyond the grace they are given.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// Connections that a cell's API has at once.
const CELL_CONNECTIONS: usize = 256;

/// Connections over which all presences are renewed.
const PRESENCE_CONNECTIONS: usize = 16;

/// Cells at work.
#[derive(Debug)]
pub struct Running {
    addresses: Vec<SocketAddr>,
    held: Vec<watch::Receiver<Hold>>,
    evacuation: Evacuation,
    tasks: JoinSet<()>,
}

impl Running {
    /// Where each cell listens, in order of their numbers.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Waits until every cell is known to the BBS.
    pub async fn registered(&self) {
        registered(self.held.clone()).await;
    }

    /// Has the cells evacuated. When all are empty, or their time is over, they stop.
    pub fn evacuation(&self) -> Evacuation {
        self.evacuation.clone()
    }

    /// Waits until all cells have stopped, which the shutdown given to [`start`]
    /// asks for, or the end of an evacuation.
    pub async fn stopped(mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

/// Runs cells until `shutdown`; then takes no more work, ends all containers and
/// gives the presences up.
///
/// # Errors
/// When they cannot start; see [`Error`].
pub async fn run(config: Config, logger: Logger, shutdown: Shutdown) -> Result<(), Error> {
    start(config, logger, shutdown).await?.stopped().await;
    Ok(())
}

/// Starts cells and returns once all of them listen.
///
/// # Errors
/// When they cannot start; see [`Error`].
pub fn start(
    config: Config,
    logger: Logger,
    shutdown: Shutdown,
) -> net::BoxFuture<Result<Running, Error>> {
    Box::pin(start_unboxed(config, logger, shutdown))
}

async fn start_unboxed(
    config: Config,
    logger: Logger,
    shutdown: Shutdown,
) -> Result<Running, Error> {
    check(&config)?;
    let metrics = Arc::new(Metrics::default());
    match config.executor.clone() {
        ExecutorKind::Simulated(settings) => {
            let executor = Simulated::new(settings, config.seed);
            start_with(config, executor, metrics, CLOSE_WITHIN, logger, shutdown).await
        }
        ExecutorKind::Process(settings) => {
            let within = settings.grace + CLOSE_WITHIN;
            let executor = Process::new(settings, Arc::clone(&metrics), &logger)?;
            start_with(config, executor, metrics, within, logger, shutdown).await
        }
    }
}

async fn start_with<E: Executor>(
    config: Config,
    executor: E,
    metrics: Arc<Metrics>,
    close_within: Duration,
    logger: Logger,
    shutdown: Shutdown,
) -> Result<Running, Error> {
    let server_tls = config.server_tls.as_ref().map(tls::server).transpose()?;
    let client_tls = config.client_tls.as_ref().map(tls::client).transpose()?;
    let client = |connections_per_host| {
        Client::new(ClientOptions {
            connections_per_host,
            tls: client_tls.clone(),
            ..ClientOptions::default()
        })
    };
    let to_bbs = client(config.bbs_connections.max(1));
    to_bbs.check(&config.bbs).map_err(Error::Bbs)?;
    let bbs = Bbs::new(to_bbs, &*config.bbs);
    // What each cell may have on top is for its auctioneer and BBS, who open few.
    let per_cell = descriptors::connections(CELL_CONNECTIONS, &logger);
    // Presences have connections of their own: they must not queue behind work.
    let presences = client(PRESENCE_CONNECTIONS);
    let desired = Arc::new(DesiredLrps::new(bbs.clone()));
    let executor = Arc::new(executor);
    let listeners = bind(&config).await?;
    let admin = match config.admin_listen {
        None => None,
        Some(address) => Some(check_free(address).await?),
    };

    let resettable = matches!(config.executor, ExecutorKind::Simulated(_));
    let machine = match config.executor {
        ExecutorKind::Simulated(_) => None,
        ExecutorKind::Process(_) => {
            let ports = HostPorts::machine(config.host_ports.clone(), ports::MACHINE);
            Some(Arc::new(ports))
        }
    };
    let scheme = if server_tls.is_some() {
        "https"
    } else {
        "http"
    };
    let (evacuation, evacuated) = Evacuation::new();
    let mut running = Running {
        addresses: Vec::new(),
        held: Vec::new(),
        evacuation: evacuation.clone(),
        tasks: JoinSet::new(),
    };
    let pace = Pace {
        interval: config.evacuation_interval,
        within: config.evacuation_timeout,
        close_within,
    };
    // What stops the cells: somebody asks, or all of them have been evacuated.
    let (leave, shutdown) = either(shutdown, &mut running.tasks);
    let silence = Silence::of(u32::try_from(listeners.len()).unwrap_or(u32::MAX));
    let mut drains = JoinSet::new();
    let mut cells = Vec::new();
    for (number, listener) in listeners.into_iter().enumerate() {
        let mut address = listener.local_addr()?;
        running.addresses.push(address);
        if let Some(ip) = config.advertise {
            address.set_ip(ip);
        }
        let url = format!("{scheme}://{address}");
        let agent = silence.agent(u32::try_from(number).unwrap_or(u32::MAX));
        let state = empty_state(&config, number, &url);
        let (cell_id, value) = (state.cell_id.clone(), presence::value(&state, &url));
        let logs = Logs::new(&logger, &cell_id);
        let presence = Presence {
            locket: LocketClient {
                client: presences.clone(),
                base: config.bbs.trim_end_matches('/').to_owned(),
                holder: "rep of the same cell",
            },
            cell_id,
            owner: uuid(&mut rand::rng()),
            value,
            ttl: config.presence_ttl,
            heartbeat: config.heartbeat,
            jitter: config.heartbeat_jitter.clamp(0.0, 1.0),
            agent: agent.clone(),
            metrics: Arc::clone(&metrics),
            logger: logs.presence.clone(),
        };
        let identity = Identity {
            state,
            address: address.ip().to_string(),
            ports: match &machine {
                Some(ports) => Arc::clone(ports),
                None => Arc::new(HostPorts::own(config.host_ports.clone())),
            },
            agent: agent.clone(),
        };
        let (hold, held) = watch::channel(Hold::Missing);
        let cell = Cell::new(
            identity,
            held.clone(),
            bbs.clone(),
            desired.clone(),
            executor.clone(),
            Arc::clone(&metrics),
            logs,
        );
        cells.push(Arc::clone(&cell));
        running.held.push(held.clone());
        let limits = Limits {
            connections: per_cell,
            ..Limits::default()
        };
        let handler = Arc::new(CellApi {
            cell: Arc::clone(&cell),
            resettable,
        });
        let tasks = &mut running.tasks;
        tasks.spawn(net::serve(
            listener,
            server_tls.clone(),
            limits,
            handler,
            shutdown.clone(),
        ));
        // Whoever gets the presence next may take it that nothing of this cell runs any more.
        let (empty, presence_over) = net::shutdown();
        tasks.spawn(net::boxed(presence.keep(hold, presence_over)));
        tasks.spawn(net::boxed(bulk::repeat(
            Arc::clone(&cell),
            agent,
            held.clone(),
            config.bulk_interval,
            shutdown.clone(),
        )));
        drains.spawn(net::boxed(evacuation::drain(
            Arc::clone(&cell),
            evacuated.clone(),
            pace,
            shutdown.clone(),
        )));
        let following = cell.follow(held, close_within, shutdown.clone());
        tasks.spawn(net::boxed(async move {
            following.await;
            // Nobody listens when the presence has ended already.
            let _ = empty.send(true);
        }));
    }
    running.tasks.spawn(async move {
        while drains.join_next().await.is_some() {}
        // Nobody listens when all have stopped already.
        let _ = leave.send(true);
    });
    if let Some(address) = admin {
        let handler = AdminApi {
            cells,
            held: running.held.clone(),
            bbs,
            metrics,
            evacuation,
            silence,
        };
        running.tasks.spawn(net::boxed(serve_admin(
            address,
            handler,
            logger.clone(),
            shutdown,
        )));
    }
    let first = running.addresses.first().map(ToString::to_string);
    let fields = Fields::new()
        .and("cells", config.count)
        .and("first-address", first);
    logger.info("started", fields);
    Ok(running)
}

/// A shutdown that comes with `first`, and by itself.
fn either(mut first: Shutdown, tasks: &mut JoinSet<()>) -> (Arc<watch::Sender<bool>>, Shutdown) {
    let (ask, second) = net::shutdown();
    let ask = Arc::new(ask);
    let (passes_on, mut asked) = (Arc::clone(&ask), second.clone());
    tasks.spawn(async move {
        tokio::select! {
            () = first.requested() => {}
            () = asked.requested() => {}
        }
        // Nobody listens when all have stopped already.
        let _ = passes_on.send(true);
    });
    (ask, second)
}

async fn bind(config: &Config) -> Result<Vec<TcpListener>, Error> {
    let mut listeners = Vec::new();
    let mut address = config.listen;
    for _ in 0..config.count {
        listeners.push(net::bind(address).await?);
        if address.port() != 0 {
            // The last port was checked; the one after it is never used.
            address.set_port(address.port().wrapping_add(1));
        }
    }
    Ok(listeners)
}

/// Finds out now whether the address can be used later.
async fn check_free(address: SocketAddr) -> Result<SocketAddr, Error> {
    Ok(net::bind(address).await?.local_addr()?)
}

async fn registered(held: Vec<watch::Receiver<Hold>>) {
    for mut held in held {
        // An error means that the cell has stopped: it will not register any more.
        let _ = held.wait_for(|held| *held == Hold::Held).await;
    }
}

/// Serves the admin API once all cells are registered.
async fn serve_admin<E: Executor>(
    address: SocketAddr,
    handler: AdminApi<E>,
    logger: Logger,
    mut shutdown: Shutdown,
) {
    tokio::select! {
        () = registered(handler.held.clone()) => {}
        () = shutdown.requested() => return,
    }
    match net::bind(address).await {
        Ok(listener) => {
            logger.info(
                "ready",
                Fields::new().and("admin-address", address.to_string()),
            );
            net::serve(
                listener,
                None,
                Limits::default(),
                Arc::new(handler),
                shutdown,
            )
            .await;
        }
        Err(error) => logger.error("failed-to-serve-admin", &error, Fields::new()),
    }
}

/// The state of cell `number` with nothing on it.
fn empty_state(config: &Config, number: usize, url: &str) -> CellState {
    let total = Resources {
        memory_mb: config.capacity.memory.0,
        disk_mb: config.capacity.disk.0,
        containers: config.capacity.containers,
    };
    let names: BTreeSet<String> = config.preloaded.iter().cloned().collect();
    CellState {
        rep_url: url.to_owned(),
        cell_id: format!("{}-{number}", config.id_prefix),
        cell_index: i32::try_from(number).unwrap_or(i32::MAX),
        root_fs_providers: BTreeMap::from([
            ("docker".into(), RootFsProvider::Arbitrary),
            ("preloaded".into(), RootFsProvider::fixed(&names)),
            ("preloaded+layer".into(), RootFsProvider::fixed(&names)),
        ]),
        available_resources: total,
        total_resources: total,
        zone: format!("z{}", 1 + number % config.zones as usize),
        placement_tags: config.placement_tags.clone(),
        optional_placement_tags: config.optional_placement_tags.clone(),
        ..CellState::default()
    }
}
