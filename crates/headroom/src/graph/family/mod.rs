//! `headroom graph up --processes`: a process for each instance, and this one as the
//! control server of all.

mod control;
mod placing;

use std::sync::Arc;

use anyhow::{Context, Result};
use graph::metrics::Metrics;
use graph::processes::{ProcessGroup, Published, READY, Start};
use graph::topology::Topology;
use graph::trace::Tracer;
use graph::work::{Calibration, SharedResources};
use telemetry::Fields;
use traces::StoreLimits;

use self::control::{Supervisor, peers};
use self::placing::Placing;
use super::args::UpArgs;
use super::background::BackgroundWork;
use super::deployment::Deployment;
use super::file::TopologyFile;
use super::serving::{self, DRAIN, Serving};
use super::up::{self, entry_address};
use crate::server::{control_runtime, ended, logger, on_signal};

pub(super) fn up(args: &UpArgs, file: TopologyFile, topology: Arc<Topology>) -> Result<()> {
    // Children must be started on the thread that blocks here: see `processes::Program::spawn`.
    control_runtime()?.block_on(net::local(run(args, file, topology)))
}

/// Where an entry that has a network of its own is reached from this one.
async fn publish(args: &UpArgs) -> Result<tokio::net::TcpListener> {
    let listener = net::bind(args.listen).await;
    listener.with_context(|| {
        let wanted = args.listen;
        format!("listen on {wanted} for the entry of the graph (--listen takes another address)")
    })
}

async fn run(args: &UpArgs, file: TopologyFile, topology: Arc<Topology>) -> Result<()> {
    let shutdown = on_signal()?;
    let logger = logger("graph", &args.log)?;
    let (listener, admin) = serving::listen(args.admin).await?;
    let calibration = Calibration::measure();
    let resources = SharedResources::open(calibration, &std::env::temp_dir())?;
    let run = up::run(args);
    // Dropped after the children are gone: their groups and namespaces go with it.
    let mut placing = Placing::new(args, &topology, admin, &calibration, run)?;
    let gateway = match placing.gateway() {
        Some(address) => Some(serving::listen((address, admin.port()).into()).await?.0),
        None => None,
    };
    // Bound before anything starts, so that nobody else is there.
    let publish = match args.namespaces {
        true => Some(publish(args).await?),
        false => None,
    };
    let tracer = Tracer::new(StoreLimits::default(), Vec::new());
    let metrics = Arc::new(Metrics::new());
    let lines = logger.clone();
    let start = Start {
        topology: &topology,
        program: &|service, replica, known| placing.program(service, replica, known),
        said: Arc::new(move |line| lines.sink().pass_on(line)),
    };
    let mut asked = shutdown.clone();
    let group = ProcessGroup::start(&start, asked.requested()).await;
    let Some(group) = group.inspect_err(|_| logger.sink().flush())? else {
        return ended(&logger, anyhow::Ok(()));
    };
    placing.all_started();
    let group = Arc::new(group);
    let background = BackgroundWork::new(&resources);
    background.follow(&topology.background)?;
    let mode = match args.namespaces {
        true => "namespaces",
        false => "processes",
    };
    let control = Arc::new(Supervisor::new(
        Arc::clone(&group),
        Arc::clone(&topology),
        file.source.clone(),
        Deployment::new(mode, &file.source, run, Vec::new()).with_floors(calibration),
        resources,
        background,
        logger.clone(),
    ));
    let serving = Serving {
        control: Arc::clone(&control),
        metrics,
        tracer,
        logger: logger.clone(),
        testapi_names: false,
    };
    if !args.no_watch {
        serving.follow(file, shutdown.clone());
    }
    let mut served = serving.start(listener);
    if let Some(gateway) = gateway {
        served.also_on(gateway);
    }
    served.admin.follow(peers(&group));
    let entry = entry_address(&topology, group.directory());
    let published = publish
        .as_ref()
        .and_then(|listener| listener.local_addr().ok());
    let _published = publish
        .zip(entry)
        .map(|(listener, to)| Published::start(listener, to));
    let fields = Fields::new()
        .and("name", &topology.name)
        .and("services", topology.services.len())
        .and("processes", group.children().len())
        .and("address", entry.map(|address| address.to_string()))
        .and("published", published.map(|address| address.to_string()))
        .and("admin", admin.to_string());
    logger.of_every_level().info(READY, fields);

    let mut running: Vec<usize> = (0..group.children().len()).collect();
    loop {
        tokio::select! {
            () = asked.requested() => break,
            (place, how) = group.next_end(&mut running) => {
                if let Some(child) = group.children().get(place) {
                    let fields = Fields::new()
                        .and("service", &child.name)
                        .and("pid", child.pid);
                    logger.error("service-ended", &how, fields);
                }
                served.admin.follow(peers(&group));
            }
        }
    }
    let drained = group.stop(topology.entry, DRAIN).await;
    served.stop().await;
    drop(placing);
    logger.info("stopped", Fields::new().and("drained", drained));
    ended(&logger, anyhow::Ok(()))
}
