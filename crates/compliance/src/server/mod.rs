//! The server: what nodes send is kept and counted, what administrators define becomes policies,
//! and both can be asked for.
//!
//! ```text
//! agents ──PUT──▶ intake: unpack, check, read ─▶ ledger, one thread ─▶ store: SQLite,
//!                    │ all cores                    one sync a batch     │     PostgreSQL
//!                    └──── when durable ───▶ fleet: compliance ◀─────────┘
//! older agents ──syslog──▶ runs put together ─▶ intake
//!                clock: expiry, hours, purge ─▶ ledger
//! agents ◀─GET── policies ◀── generator, one thread ◀── inventories, definitions ◀── REST
//! ```

mod administered;
mod clock;
mod config;
mod edit;
mod fleet;
mod generator;
mod identity;
mod intake;
mod ledger;
mod metrics;
mod packed;
mod page;
mod plan;
mod relays;
mod rest;
mod service;
mod signing;
mod start;
mod state;
mod store;
mod syslog;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use net::Shutdown;
use telemetry::{Fields, Logger};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::reports::decision::UnixMillis;
use clock::Clock;
use generator::Task;
use ledger::Lost;
use syslog::Listening;

pub use commit::postgres::PostgresSettings;
pub use config::{Acceptance, Config, Error, Limits};
pub use start::start;

pub(crate) use metrics::{Count, expose};
pub(crate) use packed::{pack, unpack};
pub(crate) use rest::unescaped;
pub(crate) use service::{is_known, shown, tagged};

/// Milliseconds since 1970.
pub(crate) fn now() -> UnixMillis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since.unwrap_or_default().as_millis();
    i64::try_from(millis).unwrap_or(i64::MAX)
}

/// Names of files in the folder of a server's data.
pub mod files {
    /// The certificate, by whose key clients know the server.
    pub const CERTIFICATE: &str = "server.pem";
    /// Its private key.
    pub const KEY: &str = "server.key";
    /// The private key that signs policies.
    pub const POLICY_KEY: &str = "policy.key";
    /// The key by which agents know policies as this server's.
    pub const POLICY_VERIFICATION_KEY: &str = "policy.pem";
    /// When the server last started, in seconds since 1970: policies of a later start are newer.
    pub const POLICY_START: &str = "policy-start";
    /// The token of the REST API.
    pub const TOKEN: &str = "api-token";
    /// Where the server listens: `https://ADDRESS`.
    pub const ADDRESS: &str = "address";
}

/// Runs a server until `shutdown`.
///
/// # Errors
/// When it cannot start, or can no longer write.
pub async fn run(config: Config, logger: Logger, mut shutdown: Shutdown) -> Result<(), Error> {
    let mut running = start(config, logger).await?;
    tokio::select! {
        () = shutdown.requested() => running.stop().await,
        result = &mut running.serving => result.unwrap_or(Err(Error::Writer)),
    }
}

/// A server that runs in the background.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    syslog: Option<SocketAddr>,
    ask_stop: watch::Sender<bool>,
    serving: JoinHandle<Result<(), Error>>,
}

impl Running {
    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of syslog, if it listens there.
    pub fn syslog_address(&self) -> Option<SocketAddr> {
        self.syslog
    }

    /// Ends it: requests under way are answered, the database is closed.
    ///
    /// # Errors
    /// When the writer had ended before.
    pub async fn stop(self) -> Result<(), Error> {
        let _ = self.ask_stop.send(true);
        self.serving.await.unwrap_or(Err(Error::Writer))
    }
}

/// What runs until the server stops.
struct Serving {
    server: net::BoxFuture<()>,
    /// Looks after a database that may go away.
    looking: Option<JoinHandle<()>>,
    syslog: Option<Listening>,
    generator: std::thread::JoinHandle<()>,
    tasks: mpsc::Sender<Task>,
    clock: Clock,
    logger: Logger,
}

/// What is heard of the writer.
struct Writer {
    ended: oneshot::Receiver<()>,
    lost: oneshot::Receiver<Lost>,
}

impl Writer {
    /// Waits until it can write no more.
    async fn failed(&mut self) -> Error {
        tokio::select! {
            _ = &mut self.ended => Error::Writer,
            Ok(lost) = &mut self.lost => match lost {
                Lost::Displaced => Error::Displaced,
                Lost::Behind => Error::Behind,
            },
        }
    }
}

/// Serves until asked to stop, or until the writer is gone, and closes everything in order:
/// requests under way, the generator, the writer.
async fn serve(parts: Serving, mut asked: Shutdown, mut writer: Writer) -> Result<(), Error> {
    let server = tokio::spawn(parts.server);
    let clock = Arc::new(parts.clock);
    let following = Arc::clone(&clock);
    let following = tokio::spawn(net::boxed(async move { following.follow().await }));
    tokio::select! {
        () = asked.requested() => {}
        error = writer.failed() => {
            server.abort();
            if let Some(looking) = parts.looking {
                looking.abort();
            }
            if let Some(syslog) = parts.syslog {
                syslog.abort();
            }
            following.abort();
            return Err(error);
        }
    }
    let _ = server.await;
    if let Some(syslog) = parts.syslog {
        syslog.stop().await;
    }
    following.abort();
    if let Some(looking) = parts.looking {
        looking.abort();
    }
    // A thread that is gone already has nothing to do.
    let _ = parts.tasks.send(Task::Stop).await;
    let _ = tokio::task::spawn_blocking(move || parts.generator.join()).await;
    clock.write_history().await;
    clock.commands.stop().await;
    let _ = writer.ended.await;
    parts.logger.info("exited", Fields::new());
    Ok(())
}
