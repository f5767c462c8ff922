//! `headroom graph up`, all services in this process.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use graph::service::{Directory, Hosted};
use graph::topology::{ServiceId, Topology};
use graph::work::Calibration;
use telemetry::Fields;
use traces::ids::Run;

use super::args::UpArgs;
use super::deployment::Deployment;
use super::file::TopologyFile;
use super::local::{Local, LocalConfig};
use super::serving;
use crate::server::{control_runtime, logger, on_signal};

pub(super) fn up(args: &UpArgs) -> Result<()> {
    let file = TopologyFile::read(&args.topology)?;
    let topology = Arc::new(super::read(&file.source, &super::machine())?);
    serving::processors(&topology, file.path())?;
    if args.processes || args.namespaces {
        return super::family::up(args, file, topology);
    }
    let warnings = unkept_limits(&topology);
    super::warn(&warnings);
    control_runtime()?.block_on(net::local(async {
        let shutdown = on_signal()?;
        let logger = logger("graph", &args.log)?;
        let (listener, admin) = serving::listen(args.admin).await?;
        let calibration = Calibration::measure();
        let deployment = Deployment::new("process", &file.source, run(args), warnings);
        let local = Local::start(LocalConfig {
            source: file.source.clone(),
            hosted: all(&topology, args.listen),
            topology: Arc::clone(&topology),
            directory: Directory::default(),
            threads: args.threads.map_or(0, usize::from),
            calibration,
            collector: None,
            background: true,
            deployment: deployment.with_floors(calibration),
            logger,
        })?;
        let entry = entry_address(&topology, &local.host.directory());
        let ready = Fields::new()
            .and("name", &topology.name)
            .and("services", topology.services.len())
            .and("address", entry.map(|address| address.to_string()))
            .and("admin", admin.to_string());
        let file = (!args.no_watch).then_some(file);
        local.serve(listener, file, false, shutdown, ready).await
    }))
}

/// The run that was asked for, or a new one.
pub(super) fn run(args: &UpArgs) -> Run {
    args.run.map_or_else(Run::new, Run)
}

/// Where the entry's first instance listens.
pub(super) fn entry_address(topology: &Topology, directory: &Directory) -> Option<SocketAddr> {
    directory.get(&topology.service(topology.entry)?.name, 0)
}

/// Every instance. The entry's first one takes the address, the others free ports that
/// only this machine reaches.
fn all(topology: &Topology, listen: SocketAddr) -> Vec<Hosted> {
    let free = SocketAddr::from(([127, 0, 0, 1], 0));
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

/// A limit is one of a process.
fn unkept_limits(topology: &Topology) -> Vec<String> {
    let limited = topology.services.iter().filter(|service| {
        let placement = &service.placement;
        placement.cpu_limit.is_some() || placement.memory_limit.is_some()
    });
    let names: Vec<&str> = limited.map(|service| &*service.name).collect();
    match names[..] {
        [] => Vec::new(),
        _ => vec![format!(
            "the limits of {} do not hold within one process; --processes keeps them",
            names.join(", ")
        )],
    }
}
