//! The agent as a process: it enrols its node, fetches the policy, runs it on this machine, and
//! sends signed reports, which wait in a spool while the server is away. Many hollow agents in
//! one process make a fleet.

mod admin;
mod datagrams;
mod hollow;
mod machine;
mod node;
mod policies;
mod spool;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use net::Shutdown;
use telemetry::{Fields, Logger};

use crate::agent::{LockError, Rates};
use crate::trust::TrustError;
use crate::upstream::AccessError;
use admin::{Admin, Counters};
use node::Agent;

pub use node::{Event, Round};

pub(crate) use machine::facts;

/// Wait of an agent that has no policy yet, until it asks again.
const NO_POLICY: Duration = Duration::from_secs(2);

/// What an agent needs to run.
#[derive(Debug, Clone)]
pub struct Config {
    /// The server: `https://HOST:PORT`.
    pub server: String,
    /// A file with the server's certificate; without one the first that is seen is trusted.
    pub server_certificate: Option<PathBuf>,
    /// A file with the server's key for policies; without one the first that the server, or a relay of
    /// it, tells is trusted.
    pub policy_key: Option<PathBuf>,
    /// Folder of its key, its policy and its spool.
    pub data: PathBuf,
    /// What it takes for `/`.
    pub root: PathBuf,
    /// Its name in the network; this machine's without one.
    pub hostname: Option<String>,
    /// Time from run to run, whatever the policy says.
    pub interval: Option<Duration>,
    /// Audit everything, whatever the policy says.
    pub force_audit: bool,
    /// Where `GET /ping` answers once every agent has a policy.
    pub admin_listen: Option<SocketAddr>,
}

/// A fleet of hollow agents.
#[derive(Debug, Clone)]
pub struct FleetConfig {
    /// What each agent needs; the root is not touched.
    pub agent: Config,
    /// How many.
    pub count: u32,
    /// Seed of nodes, identities and outcomes.
    pub seed: u64,
    /// How calls end.
    pub rates: Rates,
    /// Runs of each agent after which it rests; none: it goes on.
    pub runs: Option<u64>,
    /// Runs of each agent that may wait for the server; the oldest make room.
    pub spool: usize,
    /// Where reports go over syslog, as those of older agents; signed runs to the server without.
    pub syslog: Option<SocketAddr>,
}

impl FleetConfig {
    /// [`Self::spool`] where nothing else is said.
    pub const SPOOL: usize = 8;
}

/// Why an agent cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no way to its server.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// Its key or certificate cannot be used.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// Its folder cannot be used.
    #[error("use the agent's folder {}: {cause}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// Runs of one second cannot be told apart.
    #[error("the interval is {0:?}; expected at least 1 s, as a run is known by its second")]
    Interval(Duration),
    /// It may not run now.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The outcomes of hollow agents cannot be drawn.
    #[error(transparent)]
    Rates(#[from] crate::agent::RatesError),
    /// Nothing can be sent over syslog.
    #[error("open a socket for reports over syslog: {0}")]
    Syslog(std::io::Error),
    /// The address cannot be listened on.
    #[error(transparent)]
    Listen(std::io::Error),
}

impl Config {
    fn check(&self) -> Result<(), Error> {
        match self.interval {
            Some(interval) if interval < Duration::from_secs(1) => Err(Error::Interval(interval)),
            _ => Ok(()),
        }
    }
}

/// Runs an agent once: inventory if it is due, policy, run, reports.
///
/// # Errors
/// Its folder cannot be used, or another run goes on. A server that is away is none: the round
/// tells.
pub async fn once(config: Config) -> Result<Round, Error> {
    let mut agent = Agent::open(config)?;
    agent.round().await
}

/// Runs an agent until `shutdown`.
///
/// # Errors
/// Its folder cannot be used.
pub async fn run(config: Config, logger: Logger, mut shutdown: Shutdown) -> Result<(), Error> {
    config.check()?;
    let counters = Arc::new(Counters::of_one());
    let admin = Admin::start(config.admin_listen, Arc::clone(&counters), &shutdown).await?;
    let interval = config.interval;
    let mut agent = Agent::open(config)?;
    logger.info("started", Fields::new().and("node", agent.id()));
    loop {
        let round = agent.round().await;
        let wait = match &round {
            // Another run goes on, or somebody disabled the agent: the next one may do.
            Err(error) => {
                logger.error("round", error, Fields::new());
                Duration::from_secs(60)
            }
            Ok(round) => {
                counters.take(round);
                log(&logger, round);
                match (round.config_id.is_some(), interval) {
                    (false, _) => NO_POLICY,
                    (true, Some(interval)) => interval,
                    (true, None) => agent.until_next(),
                }
            }
        };
        tokio::select! {
            () = shutdown.requested() => break,
            () = tokio::time::sleep(wait) => {}
        }
    }
    logger.info("exited", Fields::new());
    admin.stop().await;
    Ok(())
}

/// Runs hollow agents until `shutdown`.
///
/// # Errors
/// The folder cannot be used, or the rates cannot be.
pub async fn run_fleet(
    config: FleetConfig,
    logger: Logger,
    shutdown: Shutdown,
) -> Result<(), Error> {
    config.agent.check()?;
    let counters = Arc::new(Counters::of_fleet(config.count));
    let listen = config.agent.admin_listen;
    let admin = Admin::start(listen, Arc::clone(&counters), &shutdown).await?;
    logger.info("started", Fields::new().and("agents", config.count));
    hollow::run(config, counters, &logger, shutdown).await?;
    logger.info("exited", Fields::new());
    admin.stop().await;
    Ok(())
}

/// Tells what a round did: all that is not as it was.
fn log(logger: &Logger, round: &Round) {
    for problem in &round.problems {
        logger.error("problem", problem, Fields::new());
    }
    if round.config_id.is_none() {
        logger.info("no-policy", Fields::new().and("node", &round.node));
    }
    for event in &round.events {
        let fields = Fields::new()
            .and("type", event.kind)
            .and("directive", &event.directive)
            .and("component", &event.component)
            .and("value", &event.key)
            .and("message", &event.message);
        logger.info("report", fields);
    }
    if round.ran {
        let fields = Fields::new()
            .and("config", &round.config_id)
            .and("calls", round.calls)
            .and("repaired", round.repaired)
            .and("sent", round.sent)
            .and("waiting", round.waiting);
        logger.info("run", fields);
    }
}
