//! The command line of the routers and what belongs to them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use routing::tcp::fixed::health_address;
use routing::tcp::{FixedRoute, TcpMapping};

use crate::cli::{LogArgs, duration, meant};

#[derive(Debug, Subcommand)]
pub(crate) enum RouterCommand {
    /// Route HTTP to the backends that registered over NATS, the routing API or a file
    #[command(after_help = SIGNALS)]
    Http(Box<HttpArgs>),
    /// Route TCP connections by port, and by name within TLS
    #[command(after_help = TCP_SIGNALS)]
    Tcp(TcpArgs),
    /// Store TCP routes, HTTP routes and router groups, and publish changes
    Api(ApiArgs),
    /// Register many routes, keep them fresh, and unregister them at the end
    Populate(PopulateArgs),
    /// Answer every request with the same bytes, or with configured faults
    #[command(after_help = BEHAVIOUR)]
    Static(StaticArgs),
    /// The NATS endpoint of `router http --embedded-nats` on its own
    Nats(NatsArgs),
}

const SIGNALS: &str = "\
Signals:
  SIGUSR1          drain: unhealthy at once, serve on for drain.wait, then end with the last request
  SIGTERM, SIGINT  end now
  SIGHUP           read settings, certificates and routes again, open the access log anew

Routes on one machine, without a NATS server:
  headroom router http --embedded-nats 127.0.0.1:4222 --start-delay 0s
  headroom router static --listen 127.0.0.1:9000
  headroom router populate --nats 127.0.0.1:4222 --routes 1000 --domain example.test --backend 127.0.0.1:9000
  curl -H 'Host: app-7.example.test' http://127.0.0.1:8081/";

const TCP_SIGNALS: &str = "\
Signals:
  SIGUSR2          drain: unhealthy at once, accept for a while, then end with the last connection
  SIGTERM, SIGINT  end now";

const BEHAVIOUR: &str = "\
With --control, how it behaves can be changed while it runs:
  curl -X PUT http://ADDR/behaviour -d '{\"mode\": \"slow\", \"delay\": \"50ms\"}'
Modes: ok, slow (with a delay), hang, reset, close, error (with a status).";

#[derive(Debug, Clone, Args)]
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
    /// How long to collect registrations before the first connection is accepted [default: 5s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) start_delay: Option<Duration>,
    /// How long to keep serving after a drain began [default: 20s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) drain_wait: Option<Duration>,
    /// Print every setting with its meaning as a settings file, and exit
    #[arg(long)]
    pub(crate) print_settings: bool,
    /// Lowest level of log lines to write [default: info]
    #[arg(long, value_enum)]
    pub(crate) log_level: Option<crate::cli::LogLevel>,
}

/// How the routing API is called. Secrets and keys stand in files.
#[derive(Debug, Default, Args)]
pub(crate) struct ApiClientArgs {
    /// PEM file with the authorities of the routing API [default: those of the public web]
    #[arg(long, value_name = "FILE", requires = "api")]
    pub(crate) api_authority: Option<PathBuf>,
    /// PEM file with the certificate to show it
    #[arg(long, value_name = "FILE", requires_all = ["api", "api_key"])]
    pub(crate) api_cert: Option<PathBuf>,
    /// PEM file with the key of that
    #[arg(long, value_name = "FILE", requires = "api_cert")]
    pub(crate) api_key: Option<PathBuf>,
    /// Token endpoint (UAA), such as https://uaa.example:8443; without it calls carry no token
    #[arg(long, value_name = "URL", requires_all = ["api", "token_client", "token_secret_file"])]
    pub(crate) token_url: Option<String>,
    /// Name of the client that requests tokens
    #[arg(long, value_name = "NAME", requires = "token_url")]
    pub(crate) token_client: Option<String>,
    /// File with the client's secret
    #[arg(long, value_name = "FILE", requires = "token_url")]
    pub(crate) token_secret_file: Option<PathBuf>,
    /// PEM file with the authorities of the token endpoint [default: those of the public web]
    #[arg(long, value_name = "FILE", requires = "token_url")]
    pub(crate) token_authority: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct TcpArgs {
    /// Settings, in TOML, and routes as [[route]]; flags win over it
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The routing API that routes come from
    #[arg(long, value_name = "URL")]
    pub(crate) api: Option<String>,
    #[command(flatten)]
    pub(crate) client: ApiClientArgs,
    /// An isolation segment whose routes are served, "" for those without one; may be repeated
    /// [default: all]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["route", "routes"])]
    pub(crate) segment: Vec<String>,
    /// A fixed route from an external port to a backend, for several backends repeated; with
    /// the URL of its health it gets no connections while that does not answer 200
    #[arg(long, value_name = "PORT=ADDR[,URL]", value_parser = tcp_route, conflicts_with = "api")]
    pub(crate) route: Vec<FixedRoute>,
    /// Fixed routes from a file: JSON, as the routing API lists them
    #[arg(long, value_name = "FILE", conflicts_with = "api")]
    pub(crate) routes: Option<PathBuf>,
    /// Address on which external ports are opened [default: 127.0.0.1]
    #[arg(long, value_name = "IP")]
    pub(crate) listen: Option<std::net::IpAddr>,
    /// Where /health and /metrics answer; without it, nowhere
    #[arg(long, value_name = "ADDR")]
    pub(crate) health: Option<SocketAddr>,
    /// Threads of the data path [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// How long connections are still accepted after a drain began [default: 20s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) drain_wait: Option<Duration>,
    /// Print every setting with its meaning as a settings file, and exit
    #[arg(long)]
    pub(crate) print_settings: bool,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ApiArgs {
    /// Settings, in TOML; flags win over it
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where plain connections are accepted [default: 127.0.0.1:3000]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// Folder of the database, an SQLite file; created if missing
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// PEM file with the public key of bearer tokens; without it calls need none
    #[arg(long, value_name = "FILE")]
    pub(crate) token_key: Option<PathBuf>,
    /// Where /health and /metrics answer beside the API; without it, nowhere else
    #[arg(long, value_name = "ADDR")]
    pub(crate) health: Option<SocketAddr>,
    /// Print every setting with its meaning as a settings file, and exit
    #[arg(long)]
    pub(crate) print_settings: bool,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("where").required(true).args(["nats", "api"]))]
pub(crate) struct PopulateArgs {
    /// Register HTTP routes with the routers that listen on this NATS server
    #[arg(long, value_name = "HOST:PORT", requires = "domain")]
    pub(crate) nats: Vec<String>,
    /// User of NATS
    #[arg(long, value_name = "NAME", requires = "nats_password_file")]
    pub(crate) nats_user: Option<String>,
    /// File with the password of NATS
    #[arg(long, value_name = "FILE", requires = "nats_user")]
    pub(crate) nats_password_file: Option<PathBuf>,
    /// Register TCP routes with this routing API
    #[arg(long, value_name = "URL", requires = "first_port")]
    pub(crate) api: Option<String>,
    #[command(flatten)]
    pub(crate) client: ApiClientArgs,
    /// TCP: isolation segment of the routes; "" for none
    #[arg(long, value_name = "NAME", requires = "api", default_value = "")]
    pub(crate) segment: String,
    /// How many routes
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) routes: u32,
    /// Route I is PREFIX-I.DOMAIN, from 0
    #[arg(long, value_name = "PREFIX", default_value = "app")]
    pub(crate) prefix: String,
    /// Domain of the routes
    #[arg(long, value_name = "DOMAIN")]
    pub(crate) domain: Option<String>,
    /// TCP: the external port of the first route; the others follow
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) first_port: Option<u16>,
    /// TCP: name of the router group; created if missing
    #[arg(long, value_name = "NAME", default_value = "default-tcp")]
    pub(crate) router_group: String,
    /// Backend of all routes; several share them in turn
    #[arg(long, value_name = "ADDR", required = true)]
    pub(crate) backend: Vec<SocketAddr>,
    /// Time between two registrations of each route
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    pub(crate) every: Duration,
    /// Pause between two messages
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = duration)]
    pub(crate) pause: Duration,
    /// Stop after this time
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, conflicts_with = "once")]
    pub(crate) length: Option<Duration>,
    /// Exit after one pass, and keep the routes
    #[arg(long)]
    pub(crate) once: bool,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Args)]
pub(crate) struct NatsArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4222")]
    pub(crate) listen: SocketAddr,
    /// User that may connect; without it, anyone who reaches the address
    #[arg(long, value_name = "NAME", requires = "password_file")]
    pub(crate) user: Option<String>,
    /// File with the user's password
    #[arg(long, value_name = "FILE", requires = "user")]
    pub(crate) password_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) log: LogArgs,
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
    /// Value of the header X-Backend; without it the header is not sent
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) id: String,
    /// Where PUT /behaviour changes how it behaves, and /health and /metrics answer
    #[arg(long, value_name = "ADDR")]
    pub(crate) control: Option<SocketAddr>,
    /// Speak TLS, with this certificate and its chain, PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

fn tcp_route(text: &str) -> Result<FixedRoute, String> {
    let (place, health) = match text.split_once(',') {
        Some((place, health)) => (place, Some(health_address(health)?)),
        None => (text, None),
    };
    let parts = place.split_once('=').and_then(|(port, backend)| {
        let port: u16 = port.parse().ok().filter(|port| *port > 0)?;
        Some((port, backend.parse::<SocketAddr>().ok()?))
    });
    let (port, backend) = parts.ok_or_else(|| {
        "expected PORT=ADDR, for instance 1024=127.0.0.1:9000, and perhaps where its health is \
         asked, 1024=127.0.0.1:9000,http://127.0.0.1:8080/health"
            .to_owned()
    })?;
    let mapping = TcpMapping {
        port,
        backend_ip: backend.ip().to_string(),
        backend_port: backend.port(),
        ..TcpMapping::default()
    };
    Ok(FixedRoute { mapping, health })
}

pub(crate) fn body_size(text: &str) -> Result<usize, String> {
    let most = backend::MOST_BODY_BYTES;
    let bytes = units::parse_bytes(text).map_err(meant)?;
    match usize::try_from(bytes) {
        Ok(bytes) if bytes <= most => Ok(bytes),
        _ => Err(format!(
            "expected at most {}",
            units::write_bytes(most as u64)
        )),
    }
}
