//! `headroom graph up`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use document::Source;
use graph::service::{Directory, Hosted};
use graph::topology::{ServiceId, Topology};
use graph::work::Calibration;
use telemetry::Fields;
use tokio::runtime::Runtime;

use super::args::UpArgs;
use super::local::{Local, LocalConfig};
use super::profile::{self, Profiled, PutError};
use crate::cells::{ended, logger, on_signal};
use crate::output::tell;

/// Threads of the control server. Services have threads of their own.
const CONTROL_THREADS: usize = 2;

/// Longest wait for requests in hand when the graph stops.
pub(super) const DRAIN: Duration = Duration::from_secs(10);

pub(super) fn up(args: &UpArgs) -> Result<()> {
    let (source, checked) = super::read(&args.file)?;
    for warning in &checked.warnings {
        tell(format_args!("warning: {warning}"));
    }
    let topology = Arc::new(checked.topology);
    let calibration = Calibration::measure();
    let local = Local::start(LocalConfig {
        source: source.clone(),
        hosted: all(&topology, args.listen),
        topology,
        directory: Directory::default(),
        threads: args.threads.map_or(0, usize::from),
        calibration,
        collector: None,
        background: true,
    })?;
    runtime()?.block_on(async {
        let shutdown = on_signal()?;
        let logger = logger("graph", &args.log)?;
        let tracing = tokio::spawn(local.tracer.clone().run(shutdown.clone()));
        if !args.no_watch {
            let (path, to) = (args.file.clone(), Arc::clone(&local));
            let (logger, shutdown) = (logger.clone(), shutdown.clone());
            tokio::spawn(async move {
                profile::follow(&path, &source, to, logger, shutdown).await;
            });
        }
        let (topology, _) = local.host.topology();
        let entry = entry_address(&topology, &local.host.directory());
        let fields = Fields::new()
            .and("name", &topology.name)
            .and("services", topology.services.len())
            .and("address", entry.map(|address| address.to_string()));
        logger.info("ready", fields);
        shutdown.clone().asked().await;
        let drained = local.drain(DRAIN).await;
        let _ = tracing.await;
        logger.info("stopped", Fields::new().and("drained", drained));
        ended(&logger, Ok::<(), std::io::Error>(()))
    })
}

impl Profiled for Local {
    fn put(&self, source: Source) -> Result<u32, PutError> {
        self.put(source)
    }

    fn refused(&self, error: String) {
        self.profile.refused(error, profile::unix_s());
    }
}

/// Where the entry's first instance listens.
pub(super) fn entry_address(topology: &Topology, directory: &Directory) -> Option<SocketAddr> {
    directory.get(&topology.service(topology.entry)?.name, 0)
}

/// Every instance. The entry's first one takes the address, the others free ports of it.
fn all(topology: &Topology, listen: SocketAddr) -> Vec<Hosted> {
    let free = SocketAddr::new(listen.ip(), 0);
    let services = (0..).map(ServiceId).zip(&topology.services);
    let instances = services.flat_map(|(service, of)| {
        (0..of.replicas).map(move |replica| Hosted {
            service,
            replica,
            listen: match service == topology.entry && replica == 0 {
                true => listen,
                false => free,
            },
        })
    });
    instances.collect()
}

pub(super) fn runtime() -> Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(CONTROL_THREADS)
        .enable_all()
        .build()
        .context("start the runtime")
}
