//! `headroom graph up --processes`: a process for each instance, and this one as the
//! control server of all.

mod control;
mod placing;
mod sweeper;

use std::sync::Arc;

use anyhow::Result;
use graph::metrics::Metrics;
use graph::processes::{Family, READY, Start};
use graph::topology::Topology;
use graph::trace::{StoreLimits, Tracer};
use graph::work::{Calibration, Site};
use telemetry::Fields;

use self::control::{Conductor, peers};
use self::placing::{Placing, PlacingConfig};
pub(super) use self::sweeper::sweep;
use super::args::UpArgs;
use super::beside::Beside;
use super::deployment::Deployment;
use super::file::TopologyFile;
use super::serving::{self, DRAIN, Serving};
use super::up::{self, entry_address};
use crate::cells::{ended, logger, on_signal};

pub(super) fn up(args: &UpArgs, file: TopologyFile, topology: Arc<Topology>) -> Result<()> {
    // Children must be started on the thread that blocks here: see `end_with_parent`.
    serving::runtime()?.block_on(net::local(run(args, file, topology)))
}

async fn run(args: &UpArgs, file: TopologyFile, topology: Arc<Topology>) -> Result<()> {
    let shutdown = on_signal()?;
    let logger = logger("graph", &args.log)?;
    let (listener, admin) = serving::listen(args.admin).await?;
    let calibration = Calibration::measure();
    let site = Site::open(calibration, &std::env::temp_dir())?;
    let run = up::run(args);
    // Dropped after the children are gone: their groups and namespaces go with it.
    let mut placing = Placing::new(&PlacingConfig {
        args,
        topology: &topology,
        admin,
        calibration: &calibration,
        run,
    })?;
    let gateway = match placing.gateway() {
        Some(address) => Some(serving::listen((address, admin.port()).into()).await?.0),
        None => None,
    };
    let tracer = Tracer::new(StoreLimits::default(), Vec::new());
    let metrics = Arc::new(Metrics::new());
    let lines = logger.clone();
    let start = Start {
        topology: &topology,
        command: &|service, replica, known| placing.command(service, replica, known),
        said: Arc::new(move |line| lines.sink().pass_on(line)),
    };
    let mut asked = shutdown.clone();
    let family = Family::start(&start, asked.asked()).await;
    let Some(family) = family.inspect_err(|_| logger.sink().flush())? else {
        return ended(&logger, Ok::<(), std::io::Error>(()));
    };
    placing.all_started();
    let family = Arc::new(family);
    let background = Beside::new(&site);
    background.follow(&topology.background)?;
    let mode = match args.namespaces {
        true => "namespaces",
        false => "processes",
    };
    let control = Arc::new(Conductor::new(
        Arc::clone(&family),
        Arc::clone(&topology),
        file.source.clone(),
        Deployment::new(mode, &file.source, run, Vec::new()).with_floors(calibration),
        site,
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
    served.admin.follow(peers(&family));
    let entry = entry_address(&topology, family.directory());
    let fields = Fields::new()
        .and("name", &topology.name)
        .and("services", topology.services.len())
        .and("processes", family.members().len())
        .and("address", entry.map(|address| address.to_string()))
        .and("admin", admin.to_string());
    logger.of_every_level().info(READY, fields);

    let mut running: Vec<usize> = (0..family.members().len()).collect();
    loop {
        tokio::select! {
            () = asked.asked() => break,
            (place, how) = family.next_end(&mut running) => {
                if let Some(member) = family.members().get(place) {
                    let fields = Fields::new()
                        .and("service", &member.name)
                        .and("pid", member.pid);
                    logger.error("service-ended", &how, fields);
                }
                served.admin.follow(peers(&family));
            }
        }
    }
    let drained = family.stop(topology.entry, DRAIN).await;
    served.stop().await;
    drop(placing);
    logger.info("stopped", Fields::new().and("drained", drained));
    ended(&logger, Ok::<(), std::io::Error>(()))
}
