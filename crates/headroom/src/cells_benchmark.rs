//! The benchmark of a BBS: its command.

use std::time::Duration;

use anyhow::Result;
use cells::benchmark::{Options, run};
use clap::Args;
use nix::time::ClockId;

use crate::cells::files;
use crate::cli::{TlsArgs, duration};
use crate::output::show;

#[derive(Debug, Args)]
pub(crate) struct BenchmarkBbsArgs {
    /// The BBS, which must be empty and have no other clients
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8889")]
    bbs: String,
    /// Processes of one instance each
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    processes: u32,
    /// Reps that the instances are dealt out to
    #[arg(long, value_name = "N", default_value_t = 250)]
    reps: u32,
    /// Turns of each rep's bulk loop
    #[arg(long, value_name = "N", default_value_t = 10)]
    trials: u32,
    /// Time from one turn of a rep to its next
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    cycle: Duration,
    /// Percentage of the reports of a turn that write: half of so many instances are claimed, and
    /// started anew in the next turn
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    percent_writes: f64,
    /// How often the lists of a route-emitter and of a bulker are fetched
    #[arg(long, value_name = "N", default_value_t = 10)]
    fetches: u32,
    /// Whole passes of convergence that are waited for: the BBS must make them, with
    /// --converge-whole-every 1; 0: leave them out, for other BBSs
    #[arg(long, value_name = "N", default_value_t = 10)]
    passes: u32,
    /// Most calls in flight
    #[arg(long, value_name = "N", default_value_t = 256)]
    in_flight: u32,
    /// Seed of what is drawn: when a rep begins its turns, what is claimed
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    tls: TlsArgs,
    /// Print JSON instead, times in seconds
    #[arg(long)]
    json: bool,
}

/// Measures what the flags ask for.
pub(crate) async fn measure(args: &BenchmarkBbsArgs) -> Result<()> {
    let options = Options {
        bbs: args.bbs.clone(),
        tls: files(&args.tls),
        processes: args.processes,
        reps: args.reps,
        trials: args.trials,
        cycle: args.cycle,
        percent_writes: args.percent_writes,
        fetches: args.fetches,
        passes: args.passes,
        in_flight: args.in_flight,
        seed: args.seed,
    };
    show(&run(&options, processor_time).await?, args.json)
}

/// Processor time of this process so far.
fn processor_time() -> Duration {
    let clock = ClockId::CLOCK_PROCESS_CPUTIME_ID;
    clock.now().map_or(Duration::ZERO, Duration::from)
}
