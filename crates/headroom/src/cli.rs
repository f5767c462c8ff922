//! The command line.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use cells::rep::{Distribution, Mebibytes, Room};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::baseline::BaselineArgs;
use crate::cells_auction_sim::AuctionSimArgs;
use crate::cells_benchmark::BenchmarkBbsArgs;
use crate::cells_client::ClientCommand;
use crate::cells_settings::{AuctioneerWorkers, BbsWorkers, RepCertificates, RepWorkers};
use crate::ci::{CiCommand, ResultFiles};
use crate::compare::CompareArgs;
use crate::compliance::args::ComplianceCommand;
use crate::gate::GateArgs;
use crate::graph::GraphCommand;
use crate::history::HistoryCommand;
use crate::lifecycle::LifecycleCommand;
use crate::load::{AFTER_HELP, LoadArgs};
use crate::planted::PlantedArgs;
use crate::router::{ApiClientArgs, RouterCommand};
use crate::runs::RunsArgs;
use crate::target::TargetArgs;
use crate::traces::TracesCommand;

/// A scale laboratory for distributed platforms: find out how far it goes before
/// your users do.
#[derive(Debug, Parser)]
#[command(name = "headroom", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an experiment; the exit code is the verdict
    #[command(after_help = EXIT_CODES)]
    Run(RunArgs),
    /// Write a first experiment for a running service, or for one that a command starts
    #[command(after_help = INIT)]
    Init(InitArgs),
    /// List the ready-made experiments, which `run` accepts by name
    List(ListArgs),
    /// Check an experiment file for mistakes, without starting anything
    Check(CheckArgs),
    /// Rebuild the report of a stored run
    Report(ReportArgs),
    /// The stored runs: list them, show and open one, a page of all, remove old ones
    #[command(after_help = crate::runs::AFTER_HELP, args_conflicts_with_subcommands = true)]
    Runs(Box<RunsArgs>),
    /// Decide whether one of two commands is worse than the other, by pairs of runs in random order
    #[command(after_help = crate::gate::AFTER_HELP)]
    Gate(Box<GateArgs>),
    /// Compare stored runs, two of them or two groups
    #[command(after_help = crate::compare::AFTER_HELP)]
    Compare(CompareArgs),
    /// Print what runs measured as one small file, to compare later runs with
    #[command(after_help = crate::baseline::AFTER_HELP)]
    Baseline(BaselineArgs),
    /// Metrics over many runs: since when, by how much, between which commits
    #[command(subcommand)]
    History(HistoryCommand),
    /// What build servers need
    #[command(subcommand)]
    Ci(CiCommand),
    /// Put load on a target, and check whether the result can be trusted
    #[command(after_help = AFTER_HELP)]
    Load(Box<LoadArgs>),
    /// A server to load, with known capacity and failures
    #[command(after_help = crate::target::AFTER_HELP)]
    Target(Box<TargetArgs>),
    /// Measure the latency floor of this machine, and keep it for reports of load
    Calibrate(CalibrateArgs),
    /// Parts of a container scheduler that speaks Diego's protocols, and cfdot's commands
    #[command(subcommand, after_help = CELLS)]
    Cells(Box<CellsCommand>),
    /// HTTP and TCP routers that speak Cloud Foundry's protocols, and what belongs to them
    #[command(subcommand)]
    Router(Box<RouterCommand>),
    /// Continuous configuration and compliance that speaks Rudder's protocols: server and agents
    #[command(subcommand)]
    Compliance(Box<ComplianceCommand>),
    /// Service graphs with calibrated work, and an analysis of where their latency goes
    #[command(subcommand)]
    Graph(Box<GraphCommand>),
    /// Lifecycles of entities, from logs
    #[command(subcommand)]
    Lifecycle(LifecycleCommand),
    /// Find out from spans where the latency of any system comes from, and what got worse
    #[command(subcommand)]
    Traces(TracesCommand),
    /// Print a script that completes commands and flags
    #[command(after_help = COMPLETIONS)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print a page of the manual (headroom man load | man -l -)
    Man(ManArgs),
    /// A server with a flaw that is known, for experiments/planted
    #[command(hide = true)]
    Planted(Box<PlantedArgs>),
    /// Removes what is left behind when whoever started it is killed
    #[command(hide = true)]
    Reaper,
    /// Undoes the faults of a run when that is killed
    #[command(hide = true)]
    Guardian {
        /// What has to be undone
        ledger: PathBuf,
    },
}

const EXIT_CODES: &str = "\
Exit codes:
  0  pass          every expectation held
  1  fail          an expectation did not hold, or a wait ran out
  2  inconclusive  the data is not enough to decide
  3  invalid       the generator or the machine was the limit
  4  error         the run could not be carried out";

const CELLS: &str = "\
bbs, auctioneer, rep, route-emitter and locket run until they are stopped. The commands from domains
on read or change the state and print JSON, one line per record:
  headroom cells actual-lrps --bbs http://127.0.0.1:8889

Their exit codes are cfdot's:
  0  done
  3  wrong arguments
  4  a component refused or failed
  5  anything else, such as no connection to the BBS";

const INIT: &str = "\
It measures for five seconds at 20 requests a second, and writes expectations from the result:
  headroom init http://127.0.0.1:8080/
  headroom init ./my-service --port 9000
  headroom init 'python3 -m http.server {port}'      {port} becomes a free one

The program also gets a free port in the variable PORT.";

const COMPLETIONS: &str = "\
  headroom completions bash > ~/.local/share/bash-completion/completions/headroom
  headroom completions zsh  > ~/.zfunc/_headroom        (with ~/.zfunc in fpath)
  headroom completions fish > ~/.config/fish/completions/headroom.fish";

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// File to write; an existing file is not replaced
    #[arg(long, value_name = "FILE", default_value = "experiment.toml")]
    pub(crate) out: PathBuf,
    /// Path to request from the program
    #[arg(long, value_name = "PATH", default_value = "/", value_parser = url_path)]
    pub(crate) path: String,
    /// How long to wait until the program listens
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub(crate) within: std::time::Duration,
    /// A URL, or a command with its arguments
    #[arg(value_name = "URL|COMMAND", required = true, num_args = 1.., trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) target: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Write all of them, with the files that they use, to this folder instead
    #[arg(long, value_name = "DIR", conflicts_with = "json")]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The command [default: the page about all commands]
    pub(crate) command: Vec<String>,
    /// Write every page to this folder instead
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The experiment file, or the name of a ready one (see `headroom list`)
    pub(crate) file: PathBuf,
    /// Replace a value of [let]; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) set: Vec<(String, String)>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) check: CheckArgs,
    /// Folder in which the run creates its own folder
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) out: PathBuf,
    /// Print the verdict as JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Keep the systems' working files
    #[arg(long)]
    pub(crate) keep: bool,
    /// Serve the report's page on this machine during the run; its address is printed
    #[arg(long)]
    pub(crate) page: bool,
    /// Port of the page [default: a free one]
    #[arg(
        long,
        value_name = "PORT",
        requires = "page",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub(crate) page_port: u16,
    #[command(flatten)]
    pub(crate) files: ResultFiles,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The folder of the run
    pub(crate) run: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    /// Measure for 2 s instead of 10 s
    #[arg(long)]
    pub(crate) quick: bool,
    /// Print JSON, times in seconds, instead of words
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CellsCommand {
    #[command(flatten)]
    Part(CellsPart),
    #[command(flatten)]
    Client(ClientCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum CellsPart {
    /// Store the desired and the actual state durably, and publish every change
    Bbs(Box<BbsArgs>),
    /// Place work on cells
    Auctioneer(AuctioneerArgs),
    /// Keep locks and presences for others, over gRPC, without a BBS
    Locket(LocketArgs),
    /// Create an authority and a certificate, to try mutual TLS
    Certs(CertsArgs),
    /// Run the work of one cell or many
    Rep(Box<RepArgs>),
    /// Register instances with routers, as Diego's route-emitter does
    RouteEmitter(Box<RouteEmitterArgs>),
    /// Place random work on simulated cells, without a network, and measure how evenly and how fast
    AuctionSim(Box<AuctionSimArgs>),
    /// Measure a BBS as Diego's was measured: fetches, convergence, bulk loops of many reps
    BenchmarkBbs(Box<BenchmarkBbsArgs>),
    /// Make and count work for an experiment, which starts this itself
    #[command(hide = true)]
    Driver,
}

/// Certificates; without them everything is plain HTTP on loopback.
#[derive(Debug, Args)]
pub(crate) struct TlsArgs {
    /// Own certificate (PEM); turns mutual TLS on, with --tls-key and --tls-ca
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "tls_ca"])]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Authority that peers' certificates must come from (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_ca: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// Lowest level of log lines to write
    #[arg(long, value_enum, default_value = "info")]
    pub(crate) log_level: LogLevel,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum LogLevel {
    Debug,
    Info,
    Error,
}

impl From<LogLevel> for telemetry::Level {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Debug => Self::Debug,
            LogLevel::Info => Self::Info,
            LogLevel::Error => Self::Error,
        }
    }
}

/// How a database in PostgreSQL is reached.
#[derive(Debug, Args)]
pub(crate) struct StoreAccess {
    /// File with the password of PostgreSQL; without it, the variable PGPASSWORD
    #[arg(long, value_name = "FILE", requires = "store")]
    pub(crate) store_password: Option<PathBuf>,
    /// Authority of PostgreSQL's certificate (PEM); without it, those of the web
    #[arg(long, value_name = "FILE", requires = "store")]
    pub(crate) store_ca: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct BbsArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8889")]
    pub(crate) listen: SocketAddr,
    /// Folder of the database; created if missing
    #[arg(long, value_name = "DIR", required_unless_present = "store")]
    pub(crate) data: Option<PathBuf>,
    /// Keep records in PostgreSQL instead: postgres://user@host/name?sslmode=require
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    pub(crate) store: Option<String>,
    #[command(flatten)]
    pub(crate) access: StoreAccess,
    /// Encrypt what is stored with the keys of this JSON file: active_key_label and
    /// encryption_keys, as in Diego's bbs.json
    #[arg(long, value_name = "FILE")]
    pub(crate) encryption_keys: Option<PathBuf>,
    /// URL of the auctioneer; without it nothing is ever placed
    #[arg(long, value_name = "URL")]
    pub(crate) auctioneer: Option<String>,
    /// Longest time between two passes of convergence; one comes at once when a cell is lost
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub(crate) converge_repeat_interval: std::time::Duration,
    /// Check all records in every Nth pass of convergence, not only those that may need
    /// something; 0: only in the first pass
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) converge_whole_every: u32,
    /// If no cell is present at all, treat all cells as lost, as Diego does
    #[arg(long)]
    pub(crate) empty_cells_are_lost: bool,
    /// Accept LRPs of clients without metric tags; the tag source_id is set to their metrics_guid
    #[arg(long)]
    pub(crate) old_clients: bool,
    /// Serve Locket's calls over gRPC at this address as well
    #[arg(long, value_name = "ADDR")]
    pub(crate) locket_listen: Option<SocketAddr>,
    /// While another BBS uses the database, wait until it ends, and then take over
    #[arg(long)]
    pub(crate) standby: bool,
    #[command(flatten)]
    pub(crate) workers: BbsWorkers,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CertsArgs {
    /// Folder to write ca.pem, cert.pem and key.pem to; created if missing
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Names and addresses of the servers
    #[arg(long = "name", value_name = "NAME", default_values = ["localhost", "127.0.0.1", "::1"])]
    pub(crate) names: Vec<String>,
    /// Create an expired certificate, to test how it is handled
    #[arg(long)]
    pub(crate) expired: bool,
    /// Also create an authority of the certificates of instances, with its key, and print the flags
    /// with which a rep uses it
    #[arg(long)]
    pub(crate) instance_identity: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LocketArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8891")]
    pub(crate) listen: SocketAddr,
    /// Folder of the database; created if missing
    #[arg(long, value_name = "DIR", required_unless_present = "store")]
    pub(crate) data: Option<PathBuf>,
    /// Keep them in PostgreSQL instead, which several Lockets may share: postgres://user@host/name?sslmode=require
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    pub(crate) store: Option<String>,
    #[command(flatten)]
    pub(crate) access: StoreAccess,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AuctioneerArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9016")]
    pub(crate) listen: SocketAddr,
    /// The BBS
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8889")]
    pub(crate) bbs: String,
    /// Shortest time between the starts of two rounds, so that work gathers
    #[arg(long, value_name = "DURATION", default_value = "50ms", value_parser = duration)]
    pub(crate) round_interval: std::time::Duration,
    /// How much a container that is still starting weighs against its cell
    #[arg(long, value_name = "WEIGHT", default_value_t = 0.25)]
    pub(crate) starting_container_weight: f64,
    /// Most containers that may be starting at once, over all cells; 0: no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) starting_container_count_maximum: u32,
    /// How much a cell's position weighs, to fill the first cells first; 0: not at all
    #[arg(long, value_name = "WEIGHT", default_value_t = 0.0)]
    pub(crate) bin_pack_first_fit_weight: f64,
    /// Be one of several: the one that holds the lock at the BBS is active, the others wait
    #[arg(long)]
    pub(crate) standby: bool,
    #[command(flatten)]
    pub(crate) workers: AuctioneerWorkers,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RouteEmitterArgs {
    /// The JSON file of Diego's route-emitter; flags win over it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Address of health checks, /ready and /metrics [default: 127.0.0.1:17011]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// The BBS [default: http://127.0.0.1:8889]
    #[arg(long, value_name = "URL")]
    pub(crate) bbs: Option<String>,
    /// Register the instances of this cell only [default: of all cells]
    #[arg(long, value_name = "ID", conflicts_with = "standby")]
    pub(crate) cell_id: Option<String>,
    /// Servers of NATS [default: 127.0.0.1:4222]
    #[arg(long, value_name = "ADDRS", value_delimiter = ',')]
    pub(crate) nats: Vec<String>,
    /// User for NATS
    #[arg(long, value_name = "NAME", requires = "nats_password_file")]
    pub(crate) nats_user: Option<String>,
    /// File with the password for NATS
    #[arg(long, value_name = "FILE", requires = "nats_user")]
    pub(crate) nats_password_file: Option<PathBuf>,
    /// Certificate to show to NATS (PEM); turns TLS on, with --nats-key and --nats-ca
    #[arg(long, value_name = "FILE", requires_all = ["nats_key", "nats_ca"])]
    pub(crate) nats_cert: Option<PathBuf>,
    /// Private key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "nats_cert")]
    pub(crate) nats_key: Option<PathBuf>,
    /// Authority of NATS (PEM)
    #[arg(long, value_name = "FILE", requires = "nats_cert")]
    pub(crate) nats_ca: Option<PathBuf>,
    /// Longest time between two comparisons of all routes with the BBS [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) sync_interval: Option<std::time::Duration>,
    /// Lead to addresses of containers where an instance prefers none
    #[arg(long)]
    pub(crate) register_direct_instance_routes: bool,
    /// Register internal routes with service discovery
    #[arg(long)]
    pub(crate) internal_routes: bool,
    /// Time between two sends of an unregistration [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) unregistration_interval: Option<std::time::Duration>,
    /// How often an unregistration is sent again [default: 20]
    #[arg(long, value_name = "N")]
    pub(crate) unregistration_send_count: Option<u32>,
    /// URL of the routing API, to register TCP routes with
    #[arg(long, value_name = "URL")]
    pub(crate) api: Option<String>,
    #[command(flatten)]
    pub(crate) client: ApiClientArgs,
    /// How long a TCP route lives without a refresh [default: 2m]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) tcp_route_ttl: Option<std::time::Duration>,
    /// Register TCP routes with the TLS ports of instances
    #[arg(long)]
    pub(crate) tcp_tls: bool,
    /// Be one of several: the one that holds the lock at the BBS is active, the others wait
    #[arg(long)]
    pub(crate) standby: bool,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RepArgs {
    /// Number of cells in this process
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) count: u32,
    /// Cell I is called PREFIX-I
    #[arg(long, value_name = "PREFIX", default_value = "cell")]
    pub(crate) id_prefix: String,
    /// Address of the first cell; the others take the ports after it (port 0: free ones)
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:1801")]
    pub(crate) listen: SocketAddr,
    /// Where GET /ping answers once every cell is known to the BBS, and POST /evacuate
    /// empties them, as SIGUSR1 does
    #[arg(long, value_name = "ADDR")]
    pub(crate) admin_listen: Option<SocketAddr>,
    /// Time between two comparisons of a cell's containers with the BBS's records
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub(crate) polling_interval: std::time::Duration,
    /// The same while cells are evacuated: how soon a replaced instance ends
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) evacuation_polling_interval: std::time::Duration,
    /// Longest time for an evacuation; then everything on the cells ends
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration)]
    pub(crate) evacuation_timeout: std::time::Duration,
    /// Address that cells are known by, if it is not the one they listen on
    #[arg(long, value_name = "IP")]
    pub(crate) advertise: Option<IpAddr>,
    /// The BBS
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8889")]
    pub(crate) bbs: String,
    /// Time between renewals of a cell's presence, give or take a fifth
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    pub(crate) heartbeat: std::time::Duration,
    /// How long a cell's presence lives without renewal; the BBS counts in whole seconds
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    pub(crate) presence_ttl: std::time::Duration,
    /// Cells are spread over this many zones
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) zones: u32,
    /// Names of preloaded root file systems; Docker images are always accepted
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "cflinuxfs3,cflinuxfs4"
    )]
    pub(crate) preloaded: Vec<String>,
    /// Tags that work must ask for to come to these cells
    #[arg(long, value_name = "TAGS", value_delimiter = ',')]
    pub(crate) placement_tags: Vec<String>,
    /// Tags that work may ask for
    #[arg(long, value_name = "TAGS", value_delimiter = ',')]
    pub(crate) optional_placement_tags: Vec<String>,
    /// Most containers of each cell
    #[arg(long, value_name = "N", default_value_t = 250)]
    pub(crate) capacity_containers: i32,
    /// Memory of each cell; auto: what the machine, or the rep's control group, has
    #[arg(long, value_name = "SIZE", default_value = "16GiB")]
    pub(crate) capacity_memory: Room,
    /// Disk of each cell; auto: what the file system of --containers has
    #[arg(long, value_name = "SIZE", default_value = "64GiB")]
    pub(crate) capacity_disk: Room,
    /// What runs the work
    #[arg(long, value_enum, default_value = "simulated")]
    pub(crate) executor: Executor,
    /// Time to create a container, for instance "lognormal 900ms p99=4s"
    #[arg(long, value_name = "TIME", default_value = "0")]
    pub(crate) delays_create: Distribution,
    /// Simulated: time from there until its process runs
    #[arg(long, value_name = "TIME", default_value = "0")]
    pub(crate) delays_start: Distribution,
    /// Simulated: how long the process of a task runs
    #[arg(long, value_name = "TIME", default_value = "0")]
    pub(crate) delays_run: Distribution,
    /// Simulated: time from a stop to the end of the process
    #[arg(long, value_name = "TIME", default_value = "0")]
    pub(crate) delays_stop: Distribution,
    /// Simulated: share of containers that cannot be created
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    pub(crate) fail_create: f64,
    /// Simulated: share of tasks whose process ends with status 1
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    pub(crate) fail_run: f64,
    /// Simulated: time until an instance with checks passes them, and then until it is routed
    /// to if it has checks of that
    #[arg(long, value_name = "TIME", default_value = "0")]
    pub(crate) delays_check: Distribution,
    /// Simulated: share of instances with checks that never pass them
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    pub(crate) fail_check: f64,
    /// Processes: folder in which each container gets a folder of its own
    #[arg(long, value_name = "DIR")]
    pub(crate) containers: Option<PathBuf>,
    /// Processes: how many containers can have a network of their own, with their ports
    /// at an address that this machine alone reaches; needs root and iproute2 (0: they
    /// share the machine's network)
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    pub(crate) networks: u32,
    /// Processes: keep containers to their memory_mb and max_pids; needs control groups
    #[arg(long)]
    pub(crate) limits: bool,
    /// Processes: time between the request to stop and the kill
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) graceful_shutdown_interval: std::time::Duration,
    /// Processes: time between two checks of a healthy instance, where its check does not say
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub(crate) healthy_monitoring_interval: std::time::Duration,
    /// Processes: the same for one that is not healthy yet
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    pub(crate) unhealthy_monitoring_interval: std::time::Duration,
    #[command(flatten)]
    pub(crate) workers: RepWorkers,
    /// Processes: bytes of downloads that are kept for the next container
    #[arg(long, value_name = "SIZE", default_value = "10GiB")]
    pub(crate) max_cache_size: Mebibytes,
    /// Processes: authorities of the servers to download from (PEM) [default: those of the public web]
    #[arg(long, value_name = "FILE")]
    pub(crate) download_ca: Option<PathBuf>,
    /// Processes: lines of the log that a container may write within a second
    #[arg(long, value_name = "N")]
    pub(crate) max_log_lines_per_second: Option<u32>,
    #[command(flatten)]
    pub(crate) certificates: RepCertificates,
    /// Seed of delays and failures
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Executor {
    /// Nothing runs: delays and failures are simulated
    Simulated,
    /// A child process per container, without isolation
    Process,
}

fn url_path(text: &str) -> Result<String, String> {
    match text.starts_with('/') && !text.contains(char::is_whitespace) {
        true => Ok(text.to_owned()),
        false => Err("expected a path such as /health".into()),
    }
}

pub(crate) fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("expected NAME=VALUE, for instance cells=10".into()),
    }
}

pub(crate) fn duration(text: &str) -> Result<std::time::Duration, String> {
    units::parse_duration(text).map_err(meant)
}

pub(crate) fn rate(text: &str) -> Result<f64, String> {
    units::parse_rate(text).map_err(meant)
}

/// A mistake in a flag, and what was most likely meant.
pub(crate) fn meant(error: units::UnitError) -> String {
    format!("{error}{}", error.hint())
}

pub(crate) fn share(text: &str) -> Result<f64, String> {
    let share = units::parse_share(text).map_err(meant)?;
    match (0.0..=1.0).contains(&share) {
        true => Ok(share),
        false => Err("expected a share from 0 to 1, or from 0% to 100%".into()),
    }
}
