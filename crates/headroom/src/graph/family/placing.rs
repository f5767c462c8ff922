//! What each process is started with, and what it is started in.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use graph::service::Directory;
use graph::topology::{Service, ServiceId, Topology};
use graph::work::Calibration;
use measure::Clock;
use processes::{Group, Groups, Network, Program, Reaper, RunTag};
use traces::ids::Run;

use crate::cli::LogLevel;
use crate::graph::args::UpArgs;

/// Port of the control server of a process that has an address of its own.
const ADMIN_PORT: u16 = 8887;

/// The file, groups and namespaces of processes. Dropping it removes them.
pub(super) struct Placing {
    program: PathBuf,
    /// In which the topology is, as the children read it when they start.
    folder: Option<tempfile::TempDir>,
    calibration: String,
    run: Run,
    collector: String,
    listen: SocketAddr,
    threads: u16,
    log_level: &'static str,
    topology: Topology,
    instances: Vec<(ServiceId, u32)>,
    /// Those of instances with limits, by their place in `instances`.
    groups: Vec<Option<Group>>,
    network: Option<Network>,
    tag: RunTag,
    /// The last one: it finds nothing when all above is removed already.
    _reaper: Reaper,
}

impl Placing {
    /// Makes groups for instances with limits, and namespaces if they are wanted. `admin` is
    /// our own control server: spans go there; `run` is that of all children.
    pub(super) fn new(
        args: &UpArgs,
        topology: &Topology,
        admin: SocketAddr,
        calibration: &Calibration,
        run: Run,
    ) -> Result<Self> {
        let own = std::process::id();
        let services = (0..).map(ServiceId).zip(&topology.services);
        let instances: Vec<_> = services
            .flat_map(|(id, of)| (0..of.replicas).map(move |replica| (id, replica)))
            .collect();
        let program = std::env::current_exe().context("find the path of this program")?;
        let reaper = Reaper::start(&[program.clone().into(), "reaper".into()])?;
        let tag = RunTag::new("graph", Clock::start().origin_unix_ns());
        reaper.tag(&tag)?;
        reaper.limits(own)?;
        let network = match args.namespaces {
            true => Some(Network::make(own, instances.len())?),
            false => None,
        };
        let folder = tempfile::Builder::new()
            .prefix("headroom-graph-")
            .tempdir()
            .context("make a folder for the topology of the processes")?;
        reaper.folder(folder.path())?;
        let file = folder.path().join("graph.toml");
        std::fs::write(&file, topology.to_toml())
            .with_context(|| format!("write {}", file.display()))?;
        let collector = match &network {
            Some(network) => SocketAddr::from((network.gateway(), admin.port())),
            None => admin,
        };
        Ok(Self {
            program,
            folder: Some(folder),
            calibration: serde_json::to_string(calibration)?,
            run,
            collector: format!("http://{}/v1/traces", reachable(collector)),
            listen: args.listen,
            threads: args.threads.unwrap_or(1),
            log_level: match args.log.log_level {
                LogLevel::Debug => "debug",
                LogLevel::Info => "info",
                LogLevel::Error => "error",
            },
            topology: topology.clone(),
            groups: groups(topology, &instances, own)?,
            instances,
            network,
            tag,
            _reaper: reaper,
        })
    }

    /// All have started, and read what they need.
    pub(super) fn all_started(&mut self) {
        self.folder = None;
    }

    /// Where processes in namespaces reach this one.
    pub(super) fn gateway(&self) -> Option<Ipv4Addr> {
        self.network.as_ref().map(Network::gateway)
    }

    /// The program of an instance. Callees are known already.
    pub(super) fn program(&self, service: ServiceId, replica: u32, known: &Directory) -> Program {
        let of = self.topology.service(service);
        let name = of.map_or("", |of| of.name.as_str());
        let place = self.place(service, replica);
        let (listen, admin) = self.addresses(service, replica, place);
        let folder = self.folder.as_ref().map(tempfile::TempDir::path);
        let file = folder.unwrap_or(Path::new("")).join("graph.toml");
        let mut program = Program::new(&self.program)
            .args(["graph", "service", "--pin", "--no-watch", "--name", name])
            .args([OsStr::new("--file"), file.as_os_str()])
            .args(["--replica", &replica.to_string()])
            .args(["--listen", &listen.to_string()])
            .args(["--admin", &admin.to_string()])
            .args(["--threads", &self.threads.to_string()])
            .args(["--log-level", self.log_level])
            .args(["--collector", &self.collector])
            .args(["--calibration", &self.calibration])
            .args(["--run", &self.run.0.to_string()]);
        let (variable, value) = self.tag.variable();
        program.env.insert(variable.into(), value.into());
        program.network = place.and_then(|place| Some(self.network.as_ref()?.namespace(place)));
        let group = place.and_then(|place| self.groups.get(place)?.as_ref());
        program.groups = group.map(Group::folders).unwrap_or_default().to_vec();
        let edges = self.topology.edges.iter();
        for edge in edges.filter(|edge| edge.from == service) {
            let Some(callee) = self.topology.service(edge.to) else {
                continue;
            };
            for address in known.all(&callee.name) {
                program = program.args(["--peer", &format!("{}={address}", callee.name)]);
            }
        }
        program
    }

    fn place(&self, service: ServiceId, replica: u32) -> Option<usize> {
        let mut instances = self.instances.iter();
        instances.position(|one| *one == (service, replica))
    }

    /// Where an instance listens, and its control server.
    fn addresses(
        &self,
        service: ServiceId,
        replica: u32,
        place: Option<usize>,
    ) -> (SocketAddr, SocketAddr) {
        if let (Some(network), Some(place)) = (&self.network, place) {
            let address = network.address(place);
            return (
                (address, self.listen.port()).into(),
                (address, ADMIN_PORT).into(),
            );
        }
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        match service == self.topology.entry && replica == 0 {
            true => (self.listen, free),
            false => (free, free),
        }
    }
}

/// The limits of processors and memory; `None`: there is neither.
fn limits(of: &Service) -> Option<(Option<f64>, Option<u64>)> {
    let limits = (of.placement.cpu_limit, of.placement.memory_limit);
    (limits != (None, None)).then_some(limits)
}

/// Groups of the instances that have limits.
fn groups(
    topology: &Topology,
    instances: &[(ServiceId, u32)],
    owner: u32,
) -> Result<Vec<Option<Group>>> {
    if topology.services.iter().all(|of| limits(of).is_none()) {
        return Ok(Vec::new());
    }
    let all = Groups::open(Path::new("/"), owner);
    let made = instances.iter().map(|(service, replica)| {
        let of = topology.service(*service);
        let Some((of, (cpus, memory))) = of.and_then(|of| Some((of, limits(of)?))) else {
            return Ok(None);
        };
        let name = &of.name;
        let group = all
            .make(&format!("{name}-{replica}"), cpus, memory)
            .with_context(|| format!("limit the service {name}"))?;
        Ok(Some(group))
    });
    made.collect()
}

/// An address that connections can be made to: one that listens everywhere is here too.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip().is_unspecified() {
        true => SocketAddr::from((Ipv4Addr::LOCALHOST, address.port())),
        false => address,
    }
}
