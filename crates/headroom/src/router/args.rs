//! The command line of the routers and what belongs to them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::cli::{LogArgs, duration};

#[derive(Debug, Subcommand)]
pub(crate) enum RouterCommand {
    /// Route HTTP to the backends that registered over NATS, the routing API or a file
    #[command(after_help = SIGNALS)]
    Http(Box<HttpArgs>),
    /// Answer every request with the same bytes, or misbehave as told
    #[command(after_help = BEHAVIOUR)]
    Static(StaticArgs),
}

const SIGNALS: &str = "\
Signals:
  SIGUSR1          drain: unhealthy at once, serve on for drain.wait, then end with the last request
  SIGTERM, SIGINT  end now
  SIGHUP           open the access log anew, read the file of routes again

Routes on one machine, without a NATS server:
  headroom router http --embedded-nats 127.0.0.1:4222 --start-delay 0s
  headroom router static --listen 127.0.0.1:9000
  headroom router populate --routes 1000 --domain example.test --backend 127.0.0.1:9000
  curl -H 'Host: app-7.example.test' http://127.0.0.1:8081/";

const BEHAVIOUR: &str = "\
With --control, how it behaves can be changed while it runs:
  curl -X PUT http://ADDR/behaviour -d '{\"mode\": \"slow\", \"delay\": \"50ms\"}'
Modes: ok, slow (with a delay), hang, reset, close, error (with a status).";

#[derive(Debug, Args)]
pub(crate) struct HttpArgs {
    /// Settings: our TOML if the name ends in .toml, else gorouter's YAML; flags win over it
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where plain connections are accepted [default: 127.0.0.1:8081]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// A NATS server that registrations come from, host:port; may be repeated
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) nats: Vec<String>,
    /// Listen for NATS clients here, within this process, and take registrations from them
    #[arg(long, value_name = "ADDR", conflicts_with = "nats")]
    pub(crate) embedded_nats: Option<SocketAddr>,
    /// Routes from a file
    #[arg(long, value_name = "FILE")]
    pub(crate) routes: Option<PathBuf>,
    /// Where /health answers [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    pub(crate) status_listen: Option<SocketAddr>,
    /// Where /routes answers, to the user and password of the settings [default: 127.0.0.1:8082]
    #[arg(long, value_name = "ADDR")]
    pub(crate) routes_listen: Option<SocketAddr>,
    /// Where /metrics answers; without it, nowhere
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics_listen: Option<SocketAddr>,
    /// Threads of the data path [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Write a line for each request to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) access_log: Option<PathBuf>,
    /// Gather registrations for so long before the first connection is accepted [default: 5s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) start_delay: Option<Duration>,
    /// How long to serve on after a drain began [default: 20s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) drain_wait: Option<Duration>,
    /// Print every setting with its meaning as a settings file, and end
    #[arg(long)]
    pub(crate) print_settings: bool,
    /// Least important lines that are written [default: info]
    #[arg(long, value_enum)]
    pub(crate) log_level: Option<crate::cli::LogLevel>,
}

#[derive(Debug, Args)]
pub(crate) struct StaticArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9000")]
    pub(crate) listen: SocketAddr,
    /// Size of the body of an answer
    #[arg(long, value_name = "SIZE", default_value = "1KiB", value_parser = body_size)]
    pub(crate) size: usize,
    /// Threads [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Value of the header X-Backend; without it the header is not there
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) id: String,
    /// Where PUT /behaviour changes how it behaves, and /health and /metrics answer
    #[arg(long, value_name = "ADDR")]
    pub(crate) control: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

fn body_size(text: &str) -> Result<usize, String> {
    let most = routing::backend::MOST_BODY_BYTES;
    let bytes = units::parse_bytes(text).map_err(|error| error.to_string())?;
    match usize::try_from(bytes) {
        Ok(bytes) if bytes <= most => Ok(bytes),
        _ => Err(format!(
            "expected at most {}",
            units::write_bytes(most as u64)
        )),
    }
}
