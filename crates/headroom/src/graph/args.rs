//! The command line of service graphs.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::cli::{LogArgs, duration, rate, share};

#[derive(Debug, Subcommand)]
pub(crate) enum GraphCommand {
    /// Check a topology for mistakes, and predict its latency
    Check(CheckArgs),
    /// Start every service of a topology
    #[command(after_help = UP)]
    Up(Box<UpArgs>),
    /// Start one service: from a topology, or from testapi's environment variables
    #[command(after_help = TESTAPI)]
    Service(Box<ServiceArgs>),
    /// Turn an isotope topology or recorded traces into a topology
    Import(ImportArgs),
    /// Make a topology: a chain, a tree, or one shaped like published traces
    #[command(subcommand)]
    Generate(GenerateCommand),
    /// Print Kubernetes manifests of a topology
    Kubernetes(KubernetesArgs),
    /// Show where the latency of a graph's requests comes from
    Analyse(AnalyseArgs),
    /// Decide whether one environment is slower than another, and show what changed
    #[command(after_help = crate::traces::COMPARE)]
    Compare(CompareArgs),
    /// Measure how much time this machine takes away from services
    #[command(after_help = NOISE)]
    Noise(NoiseArgs),
}

const UP: &str = "\
While it runs:
  curl http://ADMIN/           the graph, live, in a browser
  curl http://ADMIN/analysis   where the latency comes from
  curl -X PUT --data-binary @FILE http://ADMIN/profile   another profile, with the next request
Saving FILE has the same effect; a file with a mistake changes nothing, and the log says why.";

const TESTAPI: &str = "\
Environment, without --file (as testapi's):
  UPSTREAM_URI    where to listen, host:port
  DOWNSTREAM_URI  who is called, scheme://host:port; none: nobody
  SERVICE_NAME    own name
  REPORTER_URI    where spans go (Zipkin v2)
  METRICS_PORT    where metrics answer [default: 8887]
  PRIME_MAX       largest number of /prime
  JOBFILE         stress-ng job of /stress-ng
  LOADFILE        stress-ng job of /load";

/// A topology, and what shall be other than its file says.
#[derive(Debug, Clone, Args)]
pub(crate) struct TopologyArgs {
    /// The topology
    pub(crate) file: PathBuf,
    /// Set a value of the topology, for instance services.store.replicas=2,
    /// services.front.steps.0.cpu=2ms (the first step) or defaults.timeout=2s; may be repeated
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = path_and_value)]
    pub(crate) set: Vec<(String, String)>,
}

const NOISE: &str = "\
Exit codes:
  0  the machine is as quiet as required, or nothing was required
  3  it is noisier than --most-lost or --most-late
  4  error";

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) topology: TopologyArgs,
    /// Expected requests a second (500/s): names what cannot keep up
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) rate: Option<f64>,
    /// Time that a hop adds, for the expected latency
    #[arg(long, value_name = "DURATION", default_value = "25us", value_parser = duration)]
    pub(crate) hop: std::time::Duration,
    /// Print JSON, times in nanoseconds
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) topology: TopologyArgs,
    /// Where the entry listens; the others take free ports of 127.0.0.1. With --namespaces
    /// each has an address of its own, with this port, and this one leads to the entry's
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// Address of the control server, which shows and changes the graph
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8090")]
    pub(crate) admin: SocketAddr,
    /// A process for each instance, instead of one for all
    #[arg(long)]
    pub(crate) processes: bool,
    /// A process in a network namespace of its own for each instance, joined by a bridge; needs
    /// root
    #[arg(long)]
    pub(crate) namespaces: bool,
    /// Threads that read and answer requests, of each process [default: one; without
    /// --processes one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,
    /// Number of this run, 0 to 4294967295: part of the trace ids and of nothing else [default:
    /// another one each time]
    #[arg(long, value_name = "N")]
    pub(crate) run: Option<u32>,
    /// Ignore changes of the topology file while the graph runs
    #[arg(long)]
    pub(crate) no_watch: bool,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ServiceArgs {
    /// The topology that the service is one of
    #[arg(long, value_name = "FILE", requires = "name")]
    pub(crate) file: Option<PathBuf>,
    /// Its name there
    #[arg(long, value_name = "NAME", requires = "file")]
    pub(crate) name: Option<String>,
    /// Its number among the replicas, counted from 0
    #[arg(long, value_name = "N", default_value_t = 0, requires = "file")]
    pub(crate) replica: u32,
    /// Where it listens [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR", requires = "file")]
    pub(crate) listen: Option<SocketAddr>,
    /// Where a service that it calls listens, host:port; once for each replica
    #[arg(long, value_name = "NAME=ADDR", value_parser = peer, requires = "file")]
    pub(crate) peer: Vec<(String, String)>,
    /// Address that shows it and changes its profile [default: 127.0.0.1:8887; without --file
    /// 127.0.0.1:METRICS_PORT]
    #[arg(long, value_name = "ADDR")]
    pub(crate) admin: Option<SocketAddr>,
    /// Additional destination of its spans: OTLP over HTTP
    #[arg(long, value_name = "URL", value_parser = collector)]
    pub(crate) collector: Option<http::Uri>,
    /// Threads that read and answer requests
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: u16,
    /// Number of this run, 0 to 4294967295: part of the trace ids and of nothing else [default:
    /// another one each time]
    #[arg(long, value_name = "N")]
    pub(crate) run: Option<u32>,
    /// Ignore changes of the topology file while the service runs
    #[arg(long)]
    pub(crate) no_watch: bool,
    /// Keep the whole process to the processors of the service, not its own threads alone
    #[arg(long, requires = "file")]
    pub(crate) pin: bool,
    /// How fast this machine is, as JSON, instead of measuring it (set by `graph up`)
    #[arg(long, value_name = "JSON", hide = true)]
    pub(crate) calibration: Option<String>,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Form {
    /// An isotope topology, YAML or JSON
    Isotope,
    /// Calls of traces, CSV with Alibaba's columns
    Calls,
    /// Spans: OTLP (JSON or protobuf), Zipkin v2 or Jaeger's JSON
    Spans,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// What FILE holds
    #[arg(value_enum)]
    pub(crate) form: Form,
    /// The file
    pub(crate) file: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GenerateCommand {
    /// Services that call each other in a row
    Chain {
        /// How many
        #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
        services: u32,
    },
    /// A tree, each service of a level called by one of the level above
    Tree {
        /// Levels, the root's included
        #[arg(value_parser = clap::value_parser!(u32).range(1..=16))]
        levels: u32,
        /// Services that each one calls
        #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
        branches: u32,
    },
    /// A graph whose shape is that of published traces of microservices
    Random {
        /// How many services
        #[arg(value_parser = clap::value_parser!(u32).range(2..=10_000))]
        services: u32,
        /// Seed of the graph's shape
        #[arg(long, value_name = "N", default_value_t = 0)]
        seed: u64,
    },
}

#[derive(Debug, Args)]
pub(crate) struct KubernetesArgs {
    #[command(flatten)]
    pub(crate) topology: TopologyArgs,
    /// Image whose entry point is this program
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: String,
    /// Namespace of all resources
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) namespace: String,
    /// Leave out the ServiceMonitor, which needs the Prometheus operator
    #[arg(long)]
    pub(crate) no_monitor: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AnalyseArgs {
    /// Address of a running graph's admin server (http://HOST:PORT), or a file of spans
    pub(crate) source: String,
    /// The topology that the spans are of, for a budget (known if SOURCE is a running graph)
    #[arg(long, value_name = "FILE")]
    pub(crate) topology: Option<PathBuf>,
    /// Requests to this path of the entry [default: that of most of them]
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<String>,
    /// At most this many traces, the newest; for a running graph
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) last: u32,
    /// The machine's noise, as `graph noise --json` printed it
    #[arg(long, value_name = "FILE")]
    pub(crate) noise: Option<PathBuf>,
    /// Keep the spans in this file, OTLP's JSON, for `compare`
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Time that a hop adds, for the expected latency [default: what hops take in the run, or
    /// took on this machine before it]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) hop: Option<std::time::Duration>,
    /// Print JSON, times in nanoseconds
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Spans of the first environment, a file for each run
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    pub(crate) a: Vec<PathBuf>,
    /// Spans of the second one, from runs that alternated with the first
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    pub(crate) b: Vec<PathBuf>,
    /// Print JSON, times in nanoseconds
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct NoiseArgs {
    /// How long each processor is watched
    #[arg(long = "for", value_name = "DURATION", default_value = "5s", value_parser = duration)]
    pub(crate) length: std::time::Duration,
    /// Exit with 3 if gaps take more of the time than this share
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) most_lost: Option<f64>,
    /// Exit with 3 if one sleep in a hundred ends later than this
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) most_late: Option<std::time::Duration>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn path_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((path, value)) if !path.is_empty() => Ok((path.into(), value.into())),
        _ => Err("expected PATH=VALUE, for instance services.store.replicas=2".into()),
    }
}

fn peer(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, address)) if !name.is_empty() && !address.is_empty() => {
            Ok((name.into(), address.into()))
        }
        _ => Err("expected NAME=ADDR, for instance store=127.0.0.1:9001".into()),
    }
}

fn collector(text: &str) -> Result<http::Uri, String> {
    let uri: http::Uri = text
        .parse()
        .map_err(|error| format!("{error}; expected http://HOST:PORT/v1/traces"))?;
    match uri.scheme_str() {
        Some("http") if uri.authority().is_some() => Ok(uri),
        _ => Err("expected http://HOST:PORT/v1/traces".into()),
    }
}
