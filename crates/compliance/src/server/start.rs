//! How a server comes to run.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use commit::{Started, StoreError};
use telemetry::{Fields, Logger};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, sleep};

use super::clock::Clock;
use super::fleet::{Compliance, Overridden};
use super::generator::{self, Generator};
use super::identity::{identity, token};
use super::intake::{Intake, inventory_of};
use super::ledger::{self, Absence, Ledger, Lost, Recovery};
use super::metrics::Metrics;
use super::service::{Front, Service, TURNS};
use super::signing::Signing;
use super::state::NodeRecord;
use super::store::{self, Store};
use super::syslog::{Listening, Sockets};
use super::{Config, Error, Running, Serving, Writer, files, now, rest, serve, state};
use crate::acceptance::NodeStatus;
use crate::cores::{self, Gathered};
use crate::model::node::{Node, NodeKind, ROOT};
use crate::policy::generation::{Change, Engine};
use crate::policy::node_policy::Remembered;
use crate::private;
use crate::trust::{self, TrustError};
use crate::uploads;

/// Longest wait for the lock of a database: of a server that was killed, PostgreSQL may not have
/// heard yet.
const LOCK_WITHIN: Duration = Duration::from_secs(10);
/// Time between two looks for it.
const LOCK_LOOK: Duration = Duration::from_millis(100);

/// Starts a server; it serves when this returns.
///
/// # Errors
/// When the data folder or the address cannot be used.
pub fn start(config: Config, logger: Logger) -> net::BoxFuture<Result<Running, Error>> {
    Box::pin(start_unboxed(config, logger))
}

async fn start_unboxed(config: Config, logger: Logger) -> Result<Running, Error> {
    let store = open(&config)?;
    let identity = identity(&config)?;
    let token = rest::hash(token(&config.data)?.as_bytes());
    let signing = Signing::open(&config.data)?;
    let tls = trust::server(&identity)?;
    let listener = net::bind(config.listen).await.map_err(Error::Listen)?;
    let address = listener.local_addr().map_err(Error::Listen)?;
    let sockets = match config.syslog {
        Some(address) => Some(
            Sockets::bind(address, config.syslog_receive_buffer)
                .await
                .map_err(Error::Listen)?,
        ),
        None => None,
    };
    let syslog_address = sockets.as_ref().map(|sockets| sockets.address);

    let remote = config.postgres.is_some();
    let metrics = Arc::new(Metrics::default());
    let absence = Arc::new(Absence::default());
    let (ask_stop, asked) = net::shutdown();
    let writer_logger = logger.session("writer");
    let recovery = Recovery::new(Arc::clone(&absence), asked.clone(), writer_logger.clone());
    let written = start_writer(store, &config, recovery, writer_logger).await?;
    let (commands, view) = (written.started.requests, written.started.view);
    let compliance = written.compliance;
    let mut generator = Generator {
        engine: written.engine,
        commands: commands.clone(),
        view: view.clone(),
        compliance: Arc::clone(&compliance),
        metrics: Arc::clone(&metrics),
        runtime: tokio::runtime::Handle::current(),
        threads: processors(),
        logger: logger.session("generator"),
        owing: false,
        known_groups: HashMap::new(),
    };
    let (tasks, waiting) = mpsc::channel(generator::WAITING);
    let (generated, first) = oneshot::channel();
    let compliance_then = Arc::clone(&compliance);
    let work = move || {
        // Policies are as defined before anybody can ask.
        generator.generate();
        // Only now is known how long what nodes last reported is kept.
        compliance_then.lock().observe(now());
        // To find it took more than to hold it.
        processes::give_back_freed_memory();
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
        places: uploads::places(),
        checking: uploads::checking(),
        room: net::Room::new(config.limits.uploads_bytes),
        halves: Default::default(),
    };
    let service = Arc::new(Service {
        intake,
        absence: Arc::clone(&absence),
        view,
        commands: commands.clone(),
        compliance: Arc::clone(&compliance),
        tasks: tasks.clone(),
        metrics: Arc::clone(&metrics),
        signing,
        token,
        database: (!remote).then(|| config.data.join(store::FILE)),
        limits: config.limits,
        turns: Arc::new(Semaphore::new(TURNS)),
        started: now(),
        logger: logger.session("api"),
    });
    let limits = net::Limits {
        connections: config.limits.connections,
        ..net::Limits::default()
    };
    let syslog = sockets.map(|sockets| {
        let logger = logger.session("syslog");
        let service = Arc::clone(&service);
        Listening::start(sockets, service, Arc::clone(&metrics), logger, &asked)
    });
    let server = net::serve(
        listener,
        Some(tls),
        limits,
        Arc::new(Front(service)),
        asked.clone(),
    );
    let url = format!("https://{address}");
    let told = config.data.join(files::ADDRESS);
    private::write(&told, url.as_bytes())
        .map_err(|error| TrustError::file("write", &told, error))?;
    logger.info("started", Fields::new().and("address", &url));
    let looking = remote.then(|| ledger::look_after(commands.clone()));
    let looking = looking.map(|looking| tokio::spawn(net::boxed(looking)));
    let serving = tokio::spawn(net::boxed(serve(
        Serving {
            server: Box::pin(server),
            looking,
            syslog,
            generator,
            tasks,
            clock: Clock {
                compliance,
                commands,
                absence,
                metrics,
                keep_runs: config.keep_runs,
                keep_history: config.keep_history,
                history_every: config.history_every,
                logger: logger.session("clock"),
            },
            logger,
        },
        asked,
        Writer {
            ended: written.started.ended,
            lost: written.lost,
        },
    )));
    Ok(Running {
        address,
        syslog: syslog_address,
        ask_stop,
        serving,
    })
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The database: a file is open and locked, PostgreSQL is yet to be [held](hold).
fn open(config: &Config) -> Result<Store, Error> {
    let Some(settings) = &config.postgres else {
        return Ok(Store::open(&config.data)?);
    };
    let made = private::folder(&config.data);
    made.map_err(|error| TrustError::file("make", &config.data, error))?;
    Ok(Store::postgres(settings)?)
}

/// Connects and takes the lock, which PostgreSQL takes from a connection that breaks.
async fn hold(store: &mut Store, logger: &Logger) -> Result<(), StoreError> {
    let (begin, mut told) = (Instant::now(), false);
    loop {
        match store.connect().await {
            Ok(_) => return Ok(()),
            Err(error @ StoreError::Locked { .. }) if begin.elapsed() < LOCK_WITHIN => {
                if !std::mem::replace(&mut told, true) {
                    let fields = Fields::new().and("why", error.to_string());
                    logger.info("waiting", fields);
                }
                sleep(LOCK_LOOK).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// The writer, and what was found in its store.
struct Written {
    started: Started<Ledger>,
    engine: Engine,
    compliance: Arc<Compliance>,
    lost: oneshot::Receiver<Lost>,
}

/// Starts the writer once it holds the database and all that is stored is loaded: by its thread,
/// whose the connection is.
async fn start_writer(
    mut store: Store,
    config: &Config,
    recovery: Recovery,
    logger: Logger,
) -> Result<Written, Error> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    if config.postgres.is_some() {
        // SQLite awaits nothing.
        runtime.enable_all();
    }
    let runtime = runtime.build().map_err(Error::Thread)?;
    let (listen, threads) = (config.listen, processors());
    let (tell, found) = oneshot::channel();
    let open = move || async move {
        hold(&mut store, &logger).await?;
        let mut loaded = store.load().await?;
        let found = Compliance::load(&store, &loaded.state, now(), threads).await?;
        let (compliance, overridden) = found;
        let engine = engine(&store, &loaded.state, overridden, listen, threads).await?;
        let (ledger, lost) = Ledger::new(store, &mut loaded, recovery, logger);
        // Who would hear it is gone when the start was given up.
        let _ = tell.send((engine, compliance, lost));
        Ok::<_, Error>((ledger, loaded.state))
    };
    let started = commit::start("compliance-writer", runtime, ledger::LIMITS, open).await;
    let started = started.map_err(|error| error.into_error(Error::Thread))?;
    let (engine, compliance, lost) = found.await.map_err(|_| Error::Writer)?;
    Ok(Written {
        started,
        engine,
        compliance: Arc::new(compliance),
        lost,
    })
}

/// The engine with all that was defined and accepted.
async fn engine(
    store: &Store,
    state: &state::State,
    mut overridden: Overridden,
    listen: SocketAddr,
    threads: usize,
) -> Result<Engine, Error> {
    let mut engine = Engine::new(state.definitions.settings.clone());
    let root = Node {
        kind: NodeKind::Root,
        ..Node::new(ROOT, listen.ip().to_string())
    };
    engine.apply(vec![Change::SetNode(Arc::new(root))])?;
    engine.apply(state.definitions.changes())?;
    let mut taken = Gathered::new(|some: Vec<(&NodeRecord, Vec<u8>)>| {
        let read = cores::shared(threads, &some, |(_, packed)| inventory_of(packed));
        for ((record, _), inventory) in some.iter().zip(read) {
            let id = record.node.id.clone();
            let mut changes = vec![Change::SetNode(Arc::clone(&record.node))];
            changes.extend(inventory.map(|inventory| Change::SetInventory {
                node: id.clone(),
                inventory,
            }));
            let applied = engine.apply(changes);
            applied.map_err(|error| StoreError::Damaged {
                table: "nodes",
                id: record.number,
                cause: error.to_string(),
            })?;
            if let Some(served) = state.policies.get(&*id) {
                let policy = Remembered {
                    config_id: Arc::clone(&served.config_id),
                    digest: served.digest,
                    overridden: overridden.remove(&*id),
                };
                engine.remember(&id, policy);
            }
        }
        Ok::<_, StoreError>(())
    });
    let each = store.all_inventories(|id, inventory| {
        let record = state.nodes.get(id);
        let accepted = record.filter(|record| record.known.standing == NodeStatus::Accepted);
        if let Some(record) = accepted {
            let bytes = inventory.len();
            taken.push((&**record, inventory), bytes);
        }
        Ok(())
    });
    each.await?;
    taken.finish()?;
    Ok(engine)
}
