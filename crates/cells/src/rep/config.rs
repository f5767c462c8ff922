//! Settings of a process that carries cells.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use net::tls::Files;

use super::distribution::Distribution;
use super::size::Mebibytes;

/// Settings of a process that carries cells.
#[derive(Debug, Clone)]
pub struct Config {
    /// How many cells.
    pub count: u32,
    /// Cell `i` is called `<prefix>-<i>`.
    pub id_prefix: String,
    /// Address of the first cell; further ones take the ports after it. With port
    /// 0 each takes a free one.
    pub listen: SocketAddr,
    /// Where `GET /ping` is answered for the whole process, from the moment on that
    /// every cell is known to the BBS. `None`: nowhere.
    pub admin_listen: Option<SocketAddr>,
    /// Address that cells and their instances are known by; `None`: that of `listen`.
    pub advertise: Option<IpAddr>,
    /// The BBS, for instance `http://127.0.0.1:8889`.
    pub bbs: String,
    /// Most connections to the BBS, shared by all cells.
    pub bbs_connections: usize,
    /// Certificate of the cells' APIs; without it they are plain HTTP.
    pub server_tls: Option<Files>,
    /// Certificate shown to the BBS; needed for an `https` address.
    pub client_tls: Option<Files>,
    /// Time from one renewal of a cell's presence to the next.
    pub heartbeat: Duration,
    /// Each pause between heartbeats is up to this fraction longer or shorter.
    pub heartbeat_jitter: f64,
    /// How long a presence lives without renewal, in whole seconds.
    pub presence_ttl: Duration,
    /// Zones; cell `i` is in `z<1 + i mod zones>`.
    pub zones: u32,
    /// What each cell has.
    pub capacity: Capacity,
    /// Names of the preloaded root file systems; any docker image is accepted too.
    pub preloaded: Vec<String>,
    /// Tags that work must ask for.
    pub placement_tags: Vec<String>,
    /// Tags that work may ask for.
    pub optional_placement_tags: Vec<String>,
    /// Time from one comparison of records and containers to the next.
    pub bulk_interval: Duration,
    /// While the cells are evacuated: time from one question whether instances have been
    /// replaced to the next.
    pub evacuation_interval: Duration,
    /// Longest time for an evacuation; then what is left on a cell ends.
    pub evacuation_timeout: Duration,
    /// Host ports for instances. Simulated instances listen nowhere, so each cell hands out
    /// its own; of real ones each has one that no other has on this machine.
    pub host_ports: RangeInclusive<u16>,
    /// What runs the work.
    pub executor: ExecutorKind,
    /// Seed of delays and failures.
    pub seed: u64,
}

/// What a cell has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Containers.
    pub containers: i32,
    /// Memory.
    pub memory: Mebibytes,
    /// Disk.
    pub disk: Mebibytes,
}

/// What runs the work of a cell.
#[derive(Debug, Clone)]
pub enum ExecutorKind {
    /// Nothing runs; delays pass and failures happen as told.
    Simulated(Simulation),
    /// A child process per container.
    Process(ProcessSettings),
}

/// How a simulated executor behaves.
#[derive(Debug, Clone, Copy)]
pub struct Simulation {
    /// Time to create a container.
    pub create: Distribution,
    /// Time from there until its process runs.
    pub start: Distribution,
    /// How long the process of a task runs; those of instances run until stopped.
    pub run: Distribution,
    /// Time from a stop to the end of the process.
    pub stop: Distribution,
    /// Fraction of containers whose creation fails, 0 to 1.
    pub fail_create: f64,
    /// Fraction of tasks whose process ends with status 1, 0 to 1.
    pub fail_run: f64,
    /// Time from the start of an instance's process until its checks pass, of those that
    /// have checks; then until it may be routed to, of those that have checks of that.
    pub check: Distribution,
    /// Fraction of instances with checks that never pass them, 0 to 1.
    pub fail_check: f64,
}

impl Default for Simulation {
    fn default() -> Self {
        Self {
            create: Distribution::ZERO,
            start: Distribution::ZERO,
            run: Distribution::ZERO,
            stop: Distribution::ZERO,
            fail_create: 0.0,
            fail_run: 0.0,
            check: Distribution::ZERO,
            fail_check: 0.0,
        }
    }
}

/// How a process executor behaves.
#[derive(Debug, Clone)]
pub struct ProcessSettings {
    /// Folder under which the rep makes one for its containers and what it has fetched, which
    /// goes with it; `None`: `headroom-containers-UID` among the system's temporary files, where UID
    /// is the user's number.
    pub root: Option<PathBuf>,
    /// Time between asking a process to end and killing it.
    pub grace: Duration,
    /// Time to create a container, beyond what that takes.
    pub create: Distribution,
    /// Most processes that are being started at once.
    pub spawns: usize,
    /// Time between two checks of a healthy container, where the check does not say.
    pub healthy_interval: Duration,
    /// Time between two checks of a container that is not healthy yet.
    pub unhealthy_interval: Duration,
    /// Most monitor actions at once.
    pub monitors: usize,
    /// Most lines that a container may log within a second; `None`: any number.
    pub log_lines_per_second: Option<u32>,
    /// Containers that can have a network of their own at once, at most 1,000; 0: they share
    /// the machine's. Needs root and iproute2.
    pub networks: usize,
    /// Containers are kept to their memory and their number of processes, by control groups.
    pub limits: bool,
    /// The authority of certificates of containers; `None`: they have none.
    pub identity: Option<IdentitySettings>,
    /// Folder of certificates that the machine trusts, of which work with a
    /// `trusted_system_certificates_path` is told.
    pub trusted_certificates: Option<PathBuf>,
    /// How files come into containers and out of them.
    pub transfers: TransferSettings,
    /// Command of a program that calls [`processes::reaper_main`]: it ends what is left of the
    /// containers when the rep is killed. Empty: then only what the rep itself started ends.
    pub reaper: Vec<OsString>,
}

impl Default for ProcessSettings {
    fn default() -> Self {
        Self {
            root: None,
            grace: Duration::from_secs(10),
            create: Distribution::ZERO,
            spawns: 64,
            healthy_interval: Duration::from_secs(30),
            unhealthy_interval: Duration::from_secs(2),
            monitors: 64,
            log_lines_per_second: None,
            networks: 0,
            limits: false,
            identity: None,
            trusted_certificates: None,
            transfers: TransferSettings::default(),
            reaper: Vec::new(),
        }
    }
}

/// Who signs the certificates of containers.
#[derive(Debug, Clone)]
pub struct IdentitySettings {
    /// The authority's certificate, PEM.
    pub authority: PathBuf,
    /// Its RSA key, PEM.
    pub key: PathBuf,
    /// How long a certificate is valid.
    pub validity: Duration,
}

/// How files come into containers and out of them.
#[derive(Debug, Clone)]
pub struct TransferSettings {
    /// Most downloads at once.
    pub downloads: usize,
    /// Most uploads at once.
    pub uploads: usize,
    /// Bytes of downloads that are kept for the next container.
    pub cache_bytes: u64,
    /// Longest file, in bytes.
    pub file_bytes: u64,
    /// Most bytes that one archive may take when it is unpacked; a container's disk may
    /// allow less.
    pub unpacked_bytes: u64,
    /// Authorities of servers that speak TLS, in PEM; `None`: those of the web.
    pub authorities: Option<PathBuf>,
}

impl Default for TransferSettings {
    fn default() -> Self {
        Self {
            downloads: 5,
            uploads: 5,
            cache_bytes: 10 << 30,
            file_bytes: 4 << 30,
            unpacked_bytes: 16 << 30,
            authorities: None,
        }
    }
}

impl Config {
    /// The usual settings of `count` simulated cells, for the BBS at this address.
    pub fn new(count: u32, listen: SocketAddr, bbs: impl Into<String>) -> Self {
        Self {
            count,
            id_prefix: "cell".into(),
            listen,
            admin_listen: None,
            advertise: None,
            bbs: bbs.into(),
            bbs_connections: 64,
            server_tls: None,
            client_tls: None,
            heartbeat: Duration::from_secs(5),
            heartbeat_jitter: 0.2,
            presence_ttl: Duration::from_secs(15),
            zones: 2,
            capacity: Capacity {
                containers: 250,
                memory: Mebibytes(16 << 10),
                disk: Mebibytes(64 << 10),
            },
            preloaded: vec!["cflinuxfs3".into(), "cflinuxfs4".into()],
            placement_tags: Vec::new(),
            optional_placement_tags: Vec::new(),
            bulk_interval: Duration::from_secs(30),
            evacuation_interval: Duration::from_secs(10),
            evacuation_timeout: Duration::from_secs(600),
            host_ports: 20_000..=59_999,
            executor: ExecutorKind::Simulated(Simulation::default()),
            seed: 0,
        }
    }
}
