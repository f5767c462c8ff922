//! The four benchmarks that Diego's BBS was measured with, for any BBS that speaks its protocol:
//! what a route-emitter fetches, what a bulker of the desired fetches, the gathering of
//! convergence, and the bulk loops of many reps with the starts and claims that follow from them.
//!
//! It fills an empty BBS with processes of one instance each, dealt out to simulated reps which hold
//! their presences and otherwise only ask. Every call is timed from when it is sent. What the
//! generator adds by itself (turns that begin late, calls that wait for a place among those in
//! flight, its processor time) is counted apart.

mod bulk;
mod fetch;
mod gather;
mod limits;
mod populate;
mod text;
mod times;

use std::time::Duration;

use diego::{Bbs, CallError};
use net::tls::{self, Files};
use net::{Client, ClientOptions};
use serde::Serialize;

pub use limits::Generator;
pub use times::Times;

/// Longest wait for one answer: lists of a large deployment take a while.
const ANSWER_WITHIN: Duration = Duration::from_secs(300);
/// Connections beyond those in flight: for metrics, and lists.
const SPARE_CONNECTIONS: usize = 8;

/// What is measured, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// The BBS, which is to be empty: `http://…` or `https://…`.
    pub bbs: String,
    /// What is shown to it and whom to trust; an `https` address needs it.
    pub tls: Option<Files>,
    /// Processes of one instance, 1 to 10,000,000.
    pub processes: u32,
    /// Reps, 1 to 100,000 and no more than processes.
    pub reps: u32,
    /// Turns of each rep's bulk loop, 1 to 10,000.
    pub trials: u32,
    /// Time from one turn of a rep to its next.
    pub cycle: Duration,
    /// Share of the instances that cause two writes in a turn and the next one, a claim and a start,
    /// is half of this many percent; 0 to 100.
    pub percent_writes: f64,
    /// How often the lists of a route-emitter and of a bulker are fetched, 1 to 10,000.
    pub fetches: u32,
    /// Whole passes of convergence that are waited for, at most 10,000; 0 leaves them out, as they
    /// are told by the metrics of this project's BBS alone.
    pub passes: u32,
    /// Most calls in flight, 1 to 25,000.
    pub in_flight: u32,
    /// What is drawn: when in a cycle a rep begins its turn, and what is claimed.
    pub seed: u64,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum BenchmarkError {
    /// An option is out of its bounds.
    #[error("--{option}: expected {expected}, found {found}")]
    Option {
        /// Its name.
        option: &'static str,
        /// What it can be.
        expected: &'static str,
        /// What it is.
        found: String,
    },
    /// The certificates cannot be used.
    #[error("use the certificates: {0}")]
    Tls(#[from] tls::TlsError),
    /// The address cannot be used.
    #[error("use the address of the BBS: {0}")]
    Address(net::ClientError),
    /// A call failed.
    #[error("{doing}: {cause}")]
    Call {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        cause: CallError,
    },
    /// A presence was not taken.
    #[error("hold the presence of {cell}: {cause}")]
    Presence {
        /// The cell.
        cell: String,
        /// Why not.
        cause: String,
    },
    /// The BBS has not what it was given.
    #[error(
        "{doing}: expected {expected} records, found {found}; the BBS must be empty at first and have no other clients"
    )]
    Records {
        /// What was being done.
        doing: &'static str,
        /// Those that were made.
        expected: usize,
        /// Those that came.
        found: usize,
    },
    /// The metrics of the BBS could not be read.
    #[error("read {uri}: {cause}")]
    Metrics {
        /// Where they are.
        uri: String,
        /// Why not.
        cause: String,
    },
    /// No pass of convergence looked at everything.
    #[error(
        "no pass of convergence looked at all of {records} records within {within:?}; start the BBS with --converge-whole-every 1 and a short --converge-repeat-interval, or leave passes out with --passes 0"
    )]
    NoPass {
        /// Records that it should look at.
        records: u32,
        /// How long it was waited for.
        within: Duration,
    },
    /// A piece of the work came to an end that it must not.
    #[error("{doing}: the task ended: {cause}")]
    Task {
        /// What was being done.
        doing: &'static str,
        /// How.
        cause: tokio::task::JoinError,
    },
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Processes and instances that there were.
    pub processes: u32,
    /// Reps.
    pub reps: u32,
    /// Turns of each rep.
    pub trials: u32,
    /// Of the option.
    pub percent_writes: f64,
    /// How long it took to fill the BBS, in seconds.
    pub populated_s: f64,
    /// All instances, then all scheduling infos, decoded.
    pub route_emitter_fetch: Times,
    /// All scheduling infos, decoded.
    pub nsync_bulker_fetch: Times,
    /// A pass of convergence that looks at everything, by the BBS's own clock.
    pub convergence: Times,
    /// The records of one cell, decoded.
    pub rep_bulk_fetch: Times,
    /// The same with the wait for a place among the calls in flight.
    pub rep_bulk_loop: Times,
    /// Starts that follow from a turn.
    pub start: Times,
    /// Claims that follow from a turn.
    pub claim: Times,
    /// What the generator itself did to these numbers.
    pub generator: Generator,
}

/// Fills the BBS and measures. `processor_time` tells the time that this process has used.
///
/// # Errors
/// See [`BenchmarkError`]. A call that fails ends everything: times of a BBS that refuses say
/// nothing.
pub async fn run(
    options: &Options,
    processor_time: impl Fn() -> Duration,
) -> Result<Outcome, BenchmarkError> {
    options.check()?;
    let tls = options.tls.as_ref().map(tls::client).transpose()?;
    let client = Client::new(ClientOptions {
        connections_per_host: options.in_flight as usize + SPARE_CONNECTIONS,
        answer_within: ANSWER_WITHIN,
        tls,
        ..ClientOptions::default()
    });
    let checked = client.check(&options.bbs);
    checked.map_err(BenchmarkError::Address)?;
    let bbs = Bbs::new(client.clone(), &*options.bbs);
    let populated = populate::populate(&bbs, &client, options).await?;
    let fetched = fetch::fetch(&bbs, options).await?;
    let convergence = gather::passes(&client, options).await?;
    let (bulk, generator) = bulk::loops(&bbs, options, processor_time).await?;
    populate::leave(&client, options).await?;
    Ok(Outcome {
        processes: options.processes,
        reps: options.reps,
        trials: options.trials,
        percent_writes: options.percent_writes,
        populated_s: populated.as_secs_f64(),
        route_emitter_fetch: fetched.route_emitter,
        nsync_bulker_fetch: fetched.nsync_bulker,
        convergence,
        rep_bulk_fetch: bulk.fetch,
        rep_bulk_loop: bulk.turn,
        start: bulk.start,
        claim: bulk.claim,
        generator: Generator {
            resent: bbs.counts().resent,
            ..generator
        },
    })
}

impl Options {
    fn check(&self) -> Result<(), BenchmarkError> {
        let counts = [
            (
                "processes",
                self.processes,
                1,
                10_000_000,
                "1 to 10,000,000",
            ),
            ("reps", self.reps, 1, 100_000, "1 to 100,000"),
            ("trials", self.trials, 1, 10_000, "1 to 10,000"),
            ("fetches", self.fetches, 1, 10_000, "1 to 10,000"),
            ("passes", self.passes, 0, 10_000, "at most 10,000"),
            ("in-flight", self.in_flight, 1, 25_000, "1 to 25,000"),
        ];
        for (option, found, least, most, expected) in counts {
            if !(least..=most).contains(&found) {
                return Err(BenchmarkError::Option {
                    option,
                    expected,
                    found: found.to_string(),
                });
            }
        }
        if self.reps > self.processes {
            return Err(BenchmarkError::Option {
                option: "reps",
                expected: "no more reps than processes",
                found: self.reps.to_string(),
            });
        }
        if !(0.0..=100.0).contains(&self.percent_writes) {
            return Err(BenchmarkError::Option {
                option: "percent-writes",
                expected: "0 to 100",
                found: self.percent_writes.to_string(),
            });
        }
        Ok(())
    }

    /// How many instances a rep has.
    fn instances_of(&self, rep: u32) -> usize {
        let more = u32::from(rep < self.processes % self.reps);
        (self.processes / self.reps + more) as usize
    }
}

#[cfg(test)]
mod tests;
