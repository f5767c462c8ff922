//! Flags of `headroom compliance`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::cli::{LogArgs, StoreAccess, duration, meant, share};

#[derive(Debug, Subcommand)]
pub(crate) enum ComplianceCommand {
    /// Store nodes, policies and reports, and serve agents and administrators
    Server(ServerArgs),
    /// Fetch this machine's policy, run it, and report; or many hollow agents
    Agent(Box<AgentArgs>),
    /// Relay between the server and some of its nodes: pass on their policies, check and forward
    /// their uploads
    Relay(Box<RelayArgs>),
    /// Check a folder of rules, directives and techniques for mistakes
    Check(CheckArgs),
    /// Replace the definitions on the server by those of a folder, after showing the changes
    Apply(ApplyArgs),
    /// List nodes, pending ones first
    Nodes(AdminArgs),
    /// Accept pending nodes
    Accept(DecideArgs),
    /// Refuse pending nodes
    Refuse(DecideArgs),
    /// Manage relays, and the nodes behind them
    #[command(subcommand)]
    Relays(RelaysCommand),
    /// Show the compliance of the fleet, or what a node reports
    Show(ShowArgs),
    /// Make, list and revoke tokens of the REST API
    #[command(subcommand)]
    Token(TokenCommand),
}

#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// Address to listen on (HTTPS)
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4443")]
    pub(crate) listen: SocketAddr,
    /// Address for reports of older agents over syslog (UDP and TCP, unsigned), for nodes that are set to send them
    #[arg(long, value_name = "ADDR")]
    pub(crate) syslog_listen: Option<SocketAddr>,
    /// Receive buffer for syslog datagrams, if the kernel grants it [default: 8MiB]
    #[arg(long, value_name = "SIZE", value_parser = buffer, requires = "syslog_listen")]
    pub(crate) syslog_receive_buffer: Option<u64>,
    /// Folder of the database, the key and the token; created if missing
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// Keep records in PostgreSQL instead: postgres://user@host/name?sslmode=require
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    #[command(flatten)]
    pub(crate) access: StoreAccess,
    /// A folder to apply at the start, without asking
    #[arg(long, value_name = "DIR")]
    pub(crate) policy: Option<PathBuf>,
    /// Which nodes are accepted automatically
    #[arg(long, value_enum, default_value = "none")]
    pub(crate) accept: Acceptance,
    /// A further name that the certificate is for, when it is made; may be repeated
    #[arg(long = "name", value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// How long runs are kept that are not a node's last [default: 96h]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) keep_runs: Option<Duration>,
    /// How long compliance by the hour is kept [default: 744h]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) keep_history: Option<Duration>,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Acceptance {
    /// An administrator decides about each one
    None,
    /// Every node that sends an inventory; for fleets of a laboratory
    All,
}

#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// The server
    #[arg(long, value_name = "URL", default_value = "https://127.0.0.1:4443")]
    pub(crate) server: String,
    /// A file with the server's certificate; without it the first one seen is trusted
    #[arg(long, value_name = "FILE")]
    pub(crate) server_cert: Option<PathBuf>,
    /// A file with the server's key for policies (policy.pem in its folder); without it the first one received is trusted
    #[arg(long, value_name = "FILE")]
    pub(crate) policy_key: Option<PathBuf>,
    /// Folder of the agent's key, policy and spool; created if missing
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// Folder that the agent treats as /
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub(crate) root: PathBuf,
    /// The node's name, if not this machine's
    #[arg(long, value_name = "NAME")]
    pub(crate) hostname: Option<String>,
    /// Run once, report what was done, and exit
    #[arg(long, conflicts_with = "count")]
    pub(crate) once: bool,
    /// Time from run to run, instead of the policy's
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) interval: Option<Duration>,
    /// Change nothing, whatever the policy says
    #[arg(long)]
    pub(crate) force_audit: bool,
    /// Run this many hollow agents: nodes without machines, with random reports
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) count: Option<u32>,
    /// Hollow: runs of each agent, after which it rests
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<u64>,
    /// Hollow: runs of each agent that may wait for the server; the oldest make room
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) spool: u32,
    /// Hollow: report over syslog to this address (UDP), as older agents do, and send no signed runs
    #[arg(long, value_name = "ADDR", requires = "count")]
    pub(crate) syslog: Option<SocketAddr>,
    /// Hollow: share of calls that fail
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    pub(crate) errors: f64,
    /// Hollow: share of audits that do not comply
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    pub(crate) non_compliant: f64,
    /// Hollow: share of calls that repair something
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    pub(crate) repaired: f64,
    /// Hollow: share of calls that have nothing to do
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    pub(crate) not_applicable: f64,
    /// Hollow: seed of nodes and of what they report
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Where GET /ping answers once every agent has a policy, and GET /metrics
    #[arg(long, value_name = "ADDR")]
    pub(crate) admin_listen: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RelayArgs {
    /// Address to listen on (HTTPS)
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4444")]
    pub(crate) listen: SocketAddr,
    /// The server, or another relay
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: String,
    /// A file with the upstream's certificate; without it the first one seen is trusted
    #[arg(long, value_name = "FILE")]
    pub(crate) upstream_cert: Option<PathBuf>,
    /// Folder of the relay's key and spool, which may be that of this machine's agent; created if missing
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// The relay's name as a node, if not this machine's
    #[arg(long, value_name = "NAME")]
    pub(crate) hostname: Option<String>,
    /// A further name that the certificate is for, when it is made; may be repeated
    #[arg(long = "name", value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// How much may wait for the upstream; beyond it uploads are refused for now [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = spool_bytes)]
    pub(crate) spool_bytes: Option<u64>,
    /// How long the oldest may wait until further uploads are refused for now [default: 96h]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) spool_age: Option<Duration>,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RelaysCommand {
    /// List relays, and the nodes behind them
    List(AdminArgs),
    /// Make an accepted node a relay
    Add(RelayNodeArgs),
    /// Turn a relay without nodes behind it into a normal node
    Remove(RelayNodeArgs),
    /// Put nodes behind a relay
    Assign(AssignArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RelayNodeArgs {
    /// Identity or name of an accepted node
    #[arg(value_name = "NODE")]
    pub(crate) node: String,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AssignArgs {
    /// Identity or name of the relay, or root for the server itself
    #[arg(value_name = "RELAY")]
    pub(crate) relay: String,
    /// Identities or names of accepted nodes
    #[arg(required = true, value_name = "NODE")]
    pub(crate) nodes: Vec<String>,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The folder
    pub(crate) folder: PathBuf,
}

/// How the server is found and told who asks.
#[derive(Debug, Args)]
pub(crate) struct AdminArgs {
    /// The folder of the server's data: its certificate, its token and its address
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// Address of the server, if it is not the one in that folder
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print it; it is shown only once
    New(NewTokenArgs),
    /// List tokens with their ids, rights and dates of creation
    List(AdminArgs),
    /// Revoke a token
    Revoke(RevokeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct NewTokenArgs {
    /// What it is for; its id too
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Allow changes; without this it is read-only
    #[arg(long)]
    pub(crate) write: bool,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// Its id
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// The folder
    pub(crate) folder: PathBuf,
    /// Do it without asking
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DecideArgs {
    /// Identities or names of nodes
    #[arg(required_unless_present = "all", value_name = "NODE")]
    pub(crate) nodes: Vec<String>,
    /// All that are pending
    #[arg(long, conflicts_with = "nodes")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Identity or name of a node
    #[arg(value_name = "NODE")]
    pub(crate) node: Option<String>,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
}

/// A size that sockets take.
fn buffer(text: &str) -> Result<u64, String> {
    let bytes = units::parse_bytes(text).map_err(meant)?;
    match (1 << 10..=1 << 30).contains(&bytes) {
        true => Ok(bytes),
        false => Err("expected a size from 1KiB to 1GiB".into()),
    }
}

/// A size of the spool: one upload fits at least.
fn spool_bytes(text: &str) -> Result<u64, String> {
    let bytes = units::parse_bytes(text).map_err(meant)?;
    match bytes >= 32 << 20 {
        true => Ok(bytes),
        false => Err("expected a size of at least 32MiB".into()),
    }
}
