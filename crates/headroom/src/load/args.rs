//! The command line of `headroom load`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lab_load::Pace;
use lab_load::summary::WarmUp;

use super::kubernetes::KubernetesArgs;
use crate::cli::{self, duration, meant};

/// Where the flags of hey, wrk and oha agree, these are theirs.
#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    /// Target: http, https, h2c, h2, ws, wss, grpc, grpcs, tcp, tls, udp, redis, rediss or postgres
    #[arg(value_name = "URL", required_unless_present = "worker")]
    pub(crate) url: Option<String>,
    /// Redis command, such as 'GET key:{uniform 0 1000}'
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Option<String>,

    /// Requests a second over all connections, such as 5000/s, 30/m or 5000
    #[arg(short = 'q', long, value_name = "RATE", value_parser = rate, help_heading = RATE)]
    pub(crate) rate: Option<f64>,
    /// How requests are spread: poisson, constant, "burst 50"; or a whole schedule, as in
    /// "sine 1000/s +- 500/s period 60s"
    #[arg(long, value_name = "WORDS", help_heading = RATE)]
    pub(crate) arrivals: Option<String>,
    /// Rates from one to another, evenly over the duration or in steps: 100/s..5000/s
    #[arg(long, value_name = "A..B", value_parser = ramp, conflicts_with = "rate", help_heading = RATE)]
    pub(crate) ramp: Option<String>,
    /// Length of each of ten steps of a ramp, which grow by the same factor
    #[arg(long, value_name = "TIME", value_parser = some_time, requires = "ramp", help_heading = RATE)]
    pub(crate) step: Option<Duration>,
    /// Replay recorded times: a file of seconds, one per line
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rate", "ramp", "arrivals"], help_heading = RATE)]
    pub(crate) trace: Option<PathBuf>,
    /// Closed loop: each of -c users waits for its answer before the next request
    #[arg(long, conflicts_with_all = ["rate", "ramp", "trace", "arrivals", "knee"], help_heading = RATE)]
    pub(crate) closed: bool,
    /// Pause of a user between an answer and the next request
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "closed", help_heading = RATE)]
    pub(crate) think: Option<Duration>,
    /// How long; 10s if -n is not given either
    #[arg(short = 'z', long, value_name = "TIME", value_parser = some_time, help_heading = RATE)]
    pub(crate) duration: Option<Duration>,
    /// How many requests
    #[arg(short = 'n', long, value_name = "N", value_parser = count, help_heading = RATE)]
    pub(crate) requests: Option<u64>,
    /// Seed of arrivals and of everything random
    #[arg(long, value_name = "N", value_parser = whole, default_value_t = 1, help_heading = RATE)]
    pub(crate) seed: u64,

    /// Find the highest rate at which this holds: "p99 < 20ms, errors < 0.1%"
    #[arg(long, value_name = "OBJECTIVE", conflicts_with_all = ["rate", "ramp", "trace", "duration", "requests", "expect"], help_heading = KNEE)]
    pub(crate) knee: Option<String>,
    /// First rate to try [default: 100/s]
    #[arg(long, value_name = "RATE", value_parser = rate, requires = "knee", help_heading = KNEE)]
    pub(crate) from: Option<f64>,
    /// Highest rate to try
    #[arg(long, value_name = "RATE", value_parser = rate, requires = "knee", help_heading = KNEE)]
    pub(crate) up_to: Option<f64>,
    /// Factor between rates until one does not hold [default: 2; 1.5 with --thorough]
    #[arg(long, value_name = "FACTOR", value_parser = factor, requires = "knee", help_heading = KNEE)]
    pub(crate) grow: Option<f64>,
    /// Shortest hold [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = some_time, requires = "knee", help_heading = KNEE)]
    pub(crate) each: Option<Duration>,
    /// Width of the interval at which the search ends [default: 10%; 3% with --thorough]
    #[arg(long, value_name = "SHARE", value_parser = share, requires = "knee", help_heading = KNEE)]
    pub(crate) precision: Option<f64>,
    /// Search for longer and in smaller steps: to 3% in up to 20m
    #[arg(long, requires = "knee", help_heading = KNEE)]
    pub(crate) thorough: bool,
    /// Longest search [default: 3m30s; 20m with --thorough]
    #[arg(long, value_name = "TIME", value_parser = some_time, requires = "knee", help_heading = KNEE)]
    pub(crate) within: Option<Duration>,

    /// Method; GET, or POST with a body
    #[arg(short = 'm', long, value_name = "METHOD", help_heading = REQUEST)]
    pub(crate) method: Option<String>,
    /// Header field "Name: value"; may be repeated
    #[arg(short = 'H', long = "header", value_name = "FIELD", help_heading = REQUEST)]
    pub(crate) headers: Vec<String>,
    /// Body; variables such as {seq} and {uniform 0 999} are replaced
    #[arg(short = 'd', long, value_name = "TEXT", help_heading = REQUEST)]
    pub(crate) data: Option<String>,
    /// Body from a file, byte for byte
    #[arg(short = 'D', long, value_name = "FILE", conflicts_with = "data", help_heading = REQUEST)]
    pub(crate) data_file: Option<PathBuf>,
    /// Content-Type, unless -H gives one
    #[arg(short = 'T', long, value_name = "TYPE", help_heading = REQUEST)]
    pub(crate) content_type: Option<String>,
    /// PostgreSQL statement, such as "SELECT name FROM users WHERE id = {uniform 1 1000}"
    #[arg(long, value_name = "TEXT", help_heading = REQUEST)]
    pub(crate) sql: Option<String>,
    /// What an answer must be, such as "status 200..299", "body contains ok", "size 1KiB..2KiB",
    /// "header Content-Type contains json", "rows 1..10" (databases); may be repeated
    #[arg(long = "assert", value_name = "WORDS", help_heading = REQUEST)]
    pub(crate) asserts: Vec<String>,
    /// How the end of an answer is recognised over TCP: "bytes 5", "delimiter \n", echo, close
    #[arg(long, value_name = "WORDS", help_heading = REQUEST)]
    pub(crate) answer: Option<String>,
    /// Several kinds of requests and journeys, from a TOML file; paths are those of the URL's
    /// host
    #[arg(long, value_name = "FILE", conflicts_with_all = ["method", "headers", "data", "data_file", "content_type", "asserts", "answer"], help_heading = REQUEST)]
    pub(crate) requests_file: Option<PathBuf>,
    /// Longest wait for a complete answer
    #[arg(short = 't', long, value_name = "TIME", value_parser = timeout, default_value = "20s", help_heading = REQUEST)]
    pub(crate) timeout: Duration,

    /// Connections opened before the first request; with --closed the number of users
    #[arg(short = 'c', long, value_name = "N", value_parser = up_to::<1_000_000>, help_heading = CONNECTIONS)]
    pub(crate) connections: Option<u32>,
    /// Most connections of an open loop, which opens more when all are busy
    #[arg(long, value_name = "N", value_parser = up_to::<1_000_000>, help_heading = CONNECTIONS)]
    pub(crate) max_connections: Option<u32>,
    /// Requests after which a connection is replaced
    #[arg(long, value_name = "N", value_parser = count, help_heading = CONNECTIONS)]
    pub(crate) requests_each: Option<u64>,
    /// A new connection for each request, with Connection: close over HTTP/1.1
    #[arg(long, conflicts_with = "requests_each", help_heading = CONNECTIONS)]
    pub(crate) disable_keepalive: bool,
    /// HTTP/2; with http:// by prior knowledge
    #[arg(long, help_heading = CONNECTIONS)]
    pub(crate) http2: bool,
    /// Exchanges at a time on one connection (HTTP/2 and gRPC)
    #[arg(long, value_name = "N", value_parser = up_to::<10_000>, help_heading = CONNECTIONS)]
    pub(crate) streams: Option<u32>,
    /// Commands at a time on one connection (Redis) [default: 1]
    #[arg(long, value_name = "N", value_parser = up_to::<10_000>, help_heading = CONNECTIONS)]
    pub(crate) pipeline: Option<u32>,
    /// File with the password of a database [default: the variable REDISCLI_AUTH or PGPASSWORD]
    #[arg(long, value_name = "FILE", help_heading = CONNECTIONS)]
    pub(crate) password_file: Option<PathBuf>,
    /// Connect to this host, or HOST:PORT, instead of the URL's; Host and certificate are still
    /// those of the URL
    #[arg(long, value_name = "HOST", help_heading = CONNECTIONS)]
    pub(crate) connect_to: Option<String>,
    /// Longest wait for a connection
    #[arg(long, value_name = "TIME", value_parser = some_time, default_value = "5s", help_heading = CONNECTIONS)]
    pub(crate) connect_within: Duration,
    /// Accept any certificate
    #[arg(short = 'k', long, help_heading = CONNECTIONS)]
    pub(crate) insecure: bool,
    /// Authorities to trust instead of the public ones (PEM)
    #[arg(long, value_name = "FILE", help_heading = CONNECTIONS)]
    pub(crate) cacert: Option<PathBuf>,
    /// Own certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "key", help_heading = CONNECTIONS)]
    pub(crate) cert: Option<PathBuf>,
    /// Private key of the own certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = CONNECTIONS)]
    pub(crate) key: Option<PathBuf>,

    /// Threads of the generator
    #[arg(long, value_name = "N", value_parser = up_to::<256>, help_heading = GENERATOR)]
    pub(crate) threads: Option<u32>,
    /// Processors to pin threads to, such as 0,2-3
    #[arg(long, value_name = "LIST", value_parser = cpus, help_heading = GENERATOR)]
    pub(crate) cpus: Option<Cpus>,
    /// Never sleep: halves the latency floor, costs a processor for each thread
    #[arg(long, conflicts_with = "tick", help_heading = GENERATOR)]
    pub(crate) spin: bool,
    /// Send what falls due within a tick together: cheaper, less exact
    #[arg(long, value_name = "TIME", value_parser = tick, conflicts_with = "closed", help_heading = GENERATOR)]
    pub(crate) tick: Option<Duration>,
    /// Closed loop: read each answer at once, at two fifths more work
    #[arg(long, requires = "closed", help_heading = GENERATOR)]
    pub(crate) no_coalesce: bool,
    /// Time at the start that latency leaves out; auto: none, but the steady part is shown as
    /// well; none: not even that
    #[arg(long, value_name = "WHAT", value_parser = warm_up, default_value = "auto", help_heading = GENERATOR)]
    pub(crate) warm_up: WarmUp,

    #[command(flatten)]
    pub(crate) guard: GuardArgs,

    /// What must hold, otherwise the exit code is 1: "p99 < 20ms, errors < 0.1%"
    #[arg(long, value_name = "OBJECTIVE", help_heading = RESULTS)]
    pub(crate) expect: Option<String>,
    /// Print the result as JSON
    #[arg(long, help_heading = RESULTS)]
    pub(crate) json: bool,
    /// Write one line for each second
    #[arg(long, value_name = "FILE", help_heading = RESULTS)]
    pub(crate) csv: Option<PathBuf>,
    /// Write an HdrHistogram interval log
    #[arg(long, value_name = "FILE", conflicts_with = "knee", help_heading = RESULTS)]
    pub(crate) hdr: Option<PathBuf>,
    /// Write one line for each request
    #[arg(long, value_name = "FILE", conflicts_with_all = ["knee", "workers", "worker", "kubernetes"], help_heading = RESULTS)]
    pub(crate) samples: Option<PathBuf>,
    /// Write a report that opens in any browser
    #[arg(long, value_name = "FILE", help_heading = RESULTS)]
    pub(crate) report: Option<PathBuf>,
    /// Serve the report's page on this machine during the load; its address is printed
    #[arg(long, conflicts_with_all = ["knee", "worker", "kubernetes"], help_heading = RESULTS)]
    pub(crate) page: bool,
    /// Port of the page [default: a free one]
    #[arg(
        long,
        value_name = "PORT",
        requires = "page",
        default_value_t = 0,
        hide_default_value = true,
        help_heading = RESULTS
    )]
    pub(crate) page_port: u16,
    /// Name of the load in results
    #[arg(long, value_name = "NAME", default_value = "load", help_heading = RESULTS)]
    pub(crate) name: String,
    /// Show nothing while it runs
    #[arg(long, help_heading = RESULTS)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) workers: WorkersArgs,
    #[command(flatten)]
    pub(crate) kubernetes: KubernetesArgs,
}

/// Several machines.
#[derive(Debug, Args)]
pub(crate) struct WorkersArgs {
    /// Send the load from this many workers instead of from here
    #[arg(long, value_name = "N", value_parser = up_to::<1_000>, conflicts_with = "worker", help_heading = WORKERS)]
    pub(crate) workers: Option<u32>,
    /// Be a worker, driven by the coordinator of the session
    #[arg(long, help_heading = WORKERS)]
    pub(crate) worker: bool,
    /// The NATS server that all of them use [default: the variable HEADROOM_NATS_URL]
    #[arg(long, value_name = "URL", help_heading = WORKERS)]
    pub(crate) nats: Option<String>,
    /// Name of the session
    #[arg(long, value_name = "NAME", default_value = "load", help_heading = WORKERS)]
    pub(crate) session: String,
    /// Longest wait for the others
    #[arg(long, value_name = "TIME", value_parser = some_time, default_value = "60s", help_heading = WORKERS)]
    pub(crate) workers_within: Duration,
}

/// Limits beyond which a load is INVALID. What is loosened is told in every result.
#[derive(Debug, Args)]
pub(crate) struct GuardArgs {
    /// How much of a shown latency the generator may have added [default: 1ms]
    #[arg(long, value_name = "TIME", value_parser = some_time, help_heading = GUARD)]
    pub(crate) late_after: Option<Duration>,
    /// Share of the planned requests that may stay unsent
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = GUARD)]
    pub(crate) allow_unsent: Option<f64>,
    /// Share of the time that the hypervisor may take
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = GUARD)]
    pub(crate) allow_steal: Option<f64>,
}

const RATE: &str = "Rate and length";
const KNEE: &str = "Search for the limit";
const REQUEST: &str = "Requests";
const CONNECTIONS: &str = "Connections";
const GENERATOR: &str = "Generator";
const GUARD: &str = "When a load is INVALID";
const RESULTS: &str = "Results";
const WORKERS: &str = "Several machines";

pub(crate) const AFTER_HELP: &str = "\
Examples:
  headroom load http://127.0.0.1:8080/                        100/s for 10 s, and is it valid?
  headroom load URL --rate 5000/s --duration 30s              open loop, Poisson arrivals
  headroom load URL -c 64 --closed                            as hey and wrk do
  headroom load URL --knee \"p99 < 20ms, errors < 0.1%\"        the highest rate that holds
  headroom load URL --ramp 100/s..5000/s --step 20s
  headroom load redis://127.0.0.1 'GET key:{zipf 1.1 1000}'   commands of Redis
  headroom load postgres://me@127.0.0.1/db --sql 'SELECT 1'   statements of PostgreSQL

Exit codes:
  0  pass          what was expected held (or nothing was expected)
  1  fail          it did not, or no request succeeded
  2  inconclusive  too few requests to decide, or interrupted
  3  invalid       the generator or the machine was the limit
  4  error         there was no load";

/// Processors, in order.
#[derive(Debug, Clone)]
pub(crate) struct Cpus(pub(crate) Vec<u32>);

fn share(text: &str) -> Result<f64, String> {
    units::parse_share(text).map_err(meant)
}

fn count(text: &str) -> Result<u64, String> {
    match whole(text)? {
        0 => Err("expected one request or more".into()),
        count => Ok(count),
    }
}

fn whole(text: &str) -> Result<u64, String> {
    units::parse_count(text).map_err(meant)
}

/// A whole number from 1 to `MOST`.
fn up_to<const MOST: u32>(text: &str) -> Result<u32, String> {
    let count = units::parse_count(text).ok();
    let count = count.and_then(|count| u32::try_from(count).ok());
    count
        .filter(|count| (1..=MOST).contains(count))
        .ok_or_else(|| format!("expected a whole number from 1 to {MOST}"))
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = units::parse_number(text).ok();
    factor
        .filter(|factor| *factor > 1.0 && *factor <= 10.0)
        .ok_or_else(|| "expected a factor above 1 and at most 10, such as 1.5".into())
}

/// Two rates, as arrivals write them. One end may be 0.
fn ramp(text: &str) -> Result<String, String> {
    let end = |text: &str| units::parse_rate(text).ok();
    let ends = text.split_once("..");
    ends.and_then(|(from, to)| Some(format!("{}/s..{}/s", end(from)?, end(to)?)))
        .ok_or_else(|| "expected two rates such as 100/s..5000/s".into())
}

/// A length of time that is not 0.
fn some_time(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("expected a time above 0".into()),
        time => Ok(time),
    }
}

fn tick(text: &str) -> Result<Duration, String> {
    let tick = duration(text)?;
    match Pace::TICKS.contains(&tick) {
        true => Ok(tick),
        false => Err("a tick is from 10us to 1s".into()),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = cli::rate(text)?;
    match rate > 0.0 && rate <= 10_000_000.0 {
        true => Ok(rate),
        false => Err("expected a rate above 0 and at most 10000000/s".into()),
    }
}

fn timeout(text: &str) -> Result<Duration, String> {
    match units::parse_duration(text) {
        Ok(Duration::ZERO) => Err("expected a time above 0".into()),
        Ok(timeout) => Ok(timeout),
        Err(_) if text.parse::<u32>().is_ok() => Err(format!(
            "a time needs a unit: -t {text}s waits {text} s for an answer as hey does; \
             wrk's -t {text} is --threads {text} here"
        )),
        Err(error) => Err(meant(error)),
    }
}

fn warm_up(text: &str) -> Result<WarmUp, String> {
    match text {
        "auto" => Ok(WarmUp::Auto),
        "none" => Ok(WarmUp::None),
        text => duration(text)
            .map(WarmUp::Fixed)
            .map_err(|error| format!("{error}; or auto, or none")),
    }
}

fn cpus(text: &str) -> Result<Cpus, String> {
    units::parse_cpus(text).map(Cpus).map_err(meant)
}
