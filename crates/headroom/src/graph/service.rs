//! `headroom graph service`: one service, of a topology or as testapi's variables say.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use document::Source;
use graph::service::{Directory, Hosted};
use graph::topology::{Topology, testapi};
use graph::trace::{Export, Format};
use graph::work::Calibration;
use telemetry::Fields;
use traces::ids::Run;

use super::args::{ServiceArgs, TopologyArgs};
use super::deployment::Deployment;
use super::file::TopologyFile;
use super::local::{Local, LocalConfig};
use super::serving;
use crate::server::{control_runtime, logger, on_signal};

/// How long a name of a called service may be unknown: its Service of Kubernetes may come
/// into being after us.
const NAMES_WITHIN: Duration = Duration::from_secs(60);
/// Time between two tries.
const NAMES_EVERY: Duration = Duration::from_millis(500);

/// What is started, from whichever side it was said.
struct ServiceSetup {
    source: Source,
    topology: Arc<Topology>,
    service: graph::topology::ServiceId,
    listen: String,
    admin: SocketAddr,
    /// Called services: name and where they are.
    peers: Vec<(String, String)>,
    /// What it was read from.
    file: Option<TopologyFile>,
}

pub(super) fn service(args: &ServiceArgs) -> Result<()> {
    let wanted = match (&args.file, &args.name) {
        (Some(file), Some(name)) => of_file(args, file, name)?,
        _ => of_environment(args)?,
    };
    if args.pin {
        pin(&wanted.topology, wanted.service)?;
    }
    let calibration = match &args.calibration {
        Some(text) => serde_json::from_str(text).context("read --calibration")?,
        None => Calibration::measure(),
    };
    control_runtime()?.block_on(net::local(run(args, wanted, calibration)))
}

/// Keeps this process, and all its threads to come, to the processors of its service.
fn pin(topology: &Topology, service: graph::topology::ServiceId) -> Result<()> {
    let cpus = topology.service(service).map(|one| &one.placement.cpus[..]);
    graph::work::pin(cpus.unwrap_or_default()).context("pin the service to its processors")
}

fn of_file(args: &ServiceArgs, file: &Path, name: &str) -> Result<ServiceSetup> {
    let file = TopologyFile::read(&TopologyArgs {
        file: file.to_owned(),
        set: Vec::new(),
    })?;
    let topology = Arc::new(super::read(&file.source, &super::machine())?);
    let service = topology.find(name).ok_or_else(|| {
        let names = topology.services.iter().map(|one| one.name.as_str());
        let names: Vec<&str> = names.take(20).collect();
        anyhow!(
            "{}: no service has the name {name}; there are {}",
            file.path().display(),
            names.join(", ")
        )
    })?;
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    Ok(ServiceSetup {
        source: file.source.clone(),
        topology,
        service,
        listen: args
            .listen
            .unwrap_or_else(|| SocketAddr::new(loopback, 8080))
            .to_string(),
        admin: args
            .admin
            .unwrap_or_else(|| SocketAddr::new(loopback, 8887)),
        peers: args.peer.clone(),
        file: Some(file),
    })
}

fn of_environment(args: &ServiceArgs) -> Result<ServiceSetup> {
    let variable = |name: &str| std::env::var(name).ok();
    // Without it the service is called "service", as in testapi.
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = host.as_deref().map(str::trim);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let cpus = u32::try_from(cpus).unwrap_or(1);
    let configured = testapi::from_env(variable, host, cpus)
        .context("start a service as testapi's variables say (or give --file and --name)")?;
    let topology = configured.topology;
    let downstream = configured.downstream.as_ref().and_then(|(id, address)| {
        let service = topology.service(*id)?;
        Some((service.name.clone(), address.to_string()))
    });
    let listen = match configured.listen.host.is_empty() {
        // As Go has it: every address.
        true => format!("0.0.0.0:{}", configured.listen.port),
        false => configured.listen.to_string(),
    };
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    Ok(ServiceSetup {
        source: Source {
            name: "environment".into(),
            text: topology.to_toml(),
        },
        service: topology.entry,
        listen,
        admin: args
            .admin
            .unwrap_or_else(|| SocketAddr::new(loopback, configured.metrics_port)),
        peers: downstream.into_iter().collect(),
        topology: Arc::new(topology),
        file: None,
    })
}

async fn run(args: &ServiceArgs, wanted: ServiceSetup, calibration: Calibration) -> Result<()> {
    let mut shutdown = on_signal()?;
    let topology = wanted.topology;
    let name = topology
        .service(wanted.service)
        .map(|one| one.name.clone())
        .unwrap_or_default();
    let logger = logger(&name, &args.log)?;
    let (listener, admin) = serving::listen(wanted.admin).await?;
    let mut directory = Directory::default();
    let mut replicas = std::collections::BTreeMap::<&str, u32>::new();
    for (name, address) in &wanted.peers {
        if topology.find(name).is_none() {
            bail!("--peer {name}={address}: no service has this name");
        }
        let replica = replicas.entry(name).or_default();
        let known = tokio::select! {
            known = looked_up(address) => known?,
            () = shutdown.requested() => return Ok(()),
        };
        directory.set(name, *replica, known);
        *replica += 1;
    }
    let local = Local::start(LocalConfig {
        source: wanted.source.clone(),
        hosted: vec![Hosted {
            service: wanted.service,
            replica: args.replica,
            listen: looked_up(&wanted.listen).await?,
        }],
        topology: Arc::clone(&topology),
        directory,
        threads: usize::from(args.threads),
        calibration,
        collector: args.collector.clone().map(|target| Export {
            format: Format::Otlp,
            target,
        }),
        background: false,
        deployment: Deployment::new(
            "service",
            &wanted.source,
            args.run.map_or_else(Run::new, Run),
            Vec::new(),
        ),
        logger,
    })?;
    let address = local.host.directory().get(&name, args.replica);
    let ready = Fields::new()
        .and("address", address.map(|address| address.to_string()))
        .and("admin", admin.to_string());
    let testapi_names = wanted.file.is_none();
    let file = wanted.file.filter(|_| !args.no_watch);
    local
        .serve(listener, file, testapi_names, shutdown, ready)
        .await
}

/// The address of a name, waiting for a while until there is one.
async fn looked_up(text: &str) -> Result<SocketAddr> {
    let until = tokio::time::Instant::now() + NAMES_WITHIN;
    loop {
        let found = tokio::net::lookup_host(text).await;
        let error = match found.map(|mut found| found.next()) {
            Ok(Some(address)) => return Ok(address),
            Ok(None) => anyhow!("there is none"),
            // A mistake in the text does not go away.
            Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
                return Err(error).with_context(|| format!("read the address {text}"));
            }
            Err(error) => error.into(),
        };
        if tokio::time::Instant::now() >= until {
            return Err(error).with_context(|| {
                format!(
                    "look up {text}: no address within {} s",
                    NAMES_WITHIN.as_secs()
                )
            });
        }
        tokio::time::sleep(NAMES_EVERY).await;
    }
}
