//! `headroom target`: a server to load, whose truth is known.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use backend::target::{Target, TargetSettings};
use backend::{BackendSettings, StaticBackend};
use cells::rep::Distribution;
use clap::Args;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use units::grouped;

use crate::cli::{duration, rate, share};
use crate::output::{eprint, print};
use crate::router::body_size;
use crate::server::on_signal;

pub(crate) const AFTER_HELP: &str = "\
Its queue is computed: --pool 20 with --latency 20ms serves exactly 1,000 requests a second.
TIME is 5ms, \"uniform 1ms 9ms\", \"exponential 5ms\" or \"lognormal 5ms p99=40ms\".

  headroom target --latency 'lognormal 5ms p99=40ms' --pool 20
  headroom load http://127.0.0.1:8080/ --rate 500/s --duration 10s";

#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// Address to listen on; port 0: a free one, shown in the first line of output
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Time that each request takes
    #[arg(long, value_name = "TIME", default_value = "0")]
    latency: Distribution,
    /// Requests that it works on at once; the others queue
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pool: Option<u32>,
    /// Requests that it accepts in a second, as 100/s or 100, with a burst of one second's worth; the
    /// others are answered 429 at once
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate_limit: Option<f64>,
    /// Share of the requests that fail
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    errors: f64,
    /// Status of a failure
    #[arg(long, value_name = "STATUS", default_value_t = 500, value_parser = clap::value_parser!(u16).range(400..=599))]
    status: u16,
    /// Stand still (3s..7s after the first request); may be repeated
    #[arg(long, value_name = "FROM..TO", value_parser = span)]
    freeze: Vec<Range<Duration>>,
    /// Reset every connection that sends a request (3s..7s after the first request); may be repeated
    #[arg(long, value_name = "FROM..TO", value_parser = span)]
    down: Vec<Range<Duration>>,
    /// Size of the body of an answer
    #[arg(long, value_name = "SIZE", default_value = "1KiB", value_parser = body_size)]
    size: usize,
    /// Threads [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Seed of times and failures
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

/// Serves until a signal ends it.
pub(crate) fn serve(args: &TargetArgs) -> Result<()> {
    let target = Arc::new(Target::new(settings(args)?));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    runtime.block_on(net::local(async {
        let mut shutdown = on_signal()?;
        let backend = BackendSettings {
            listen: args.listen,
            body_bytes: args.size,
            threads: args.threads.map(usize::from),
            id: String::new(),
            control: None,
            tls: None,
        };
        let backend = StaticBackend::start_script(&backend, target.clone())
            .context("start the target (--listen takes another address)")?;
        print(&format!("listening on http://{}/\n", backend.address()))?;
        shutdown.requested().await;
        let counts = target.counts();
        eprint(format_args!(
            "{} requests: {} good, {} failed, {} beyond the rate limit, {} reset; {} connections",
            grouped(backend.requests()),
            grouped(counts.good),
            grouped(counts.failed),
            grouped(counts.limited),
            grouped(counts.reset),
            grouped(backend.accepted()),
        ));
        Ok(())
    }))
}

fn settings(args: &TargetArgs) -> Result<TargetSettings> {
    let (latency, errors) = (args.latency, args.errors);
    let mut rng = StdRng::seed_from_u64(args.seed);
    let mut frozen = args.freeze.clone();
    frozen.sort_by_key(|span| span.start);
    if let Some([one, two]) = frozen.array_windows().find(|[a, b]| b.start < a.end) {
        bail!("--freeze {one:?} and --freeze {two:?}: expected spans that do not overlap");
    }
    Ok(TargetSettings {
        draw: Box::new(move || (latency.draw(&mut rng), rng.random::<f64>() < errors)),
        pool: args.pool,
        rate_limit: args.rate_limit,
        status: args.status,
        frozen,
        down: args.down.clone(),
    })
}

fn span(text: &str) -> Result<Range<Duration>, String> {
    let (from, to) = text
        .split_once("..")
        .ok_or("expected FROM..TO, for instance 3s..7s")?;
    let span = duration(from)?..duration(to)?;
    match span.is_empty() {
        true => Err("expected an end after the beginning, for instance 3s..7s".to_owned()),
        false => Ok(span),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::TargetArgs;
    use crate::cli::{Cli, Command};

    fn target(words: &[&str]) -> Result<TargetArgs, String> {
        let all = ["headroom", "target"].iter().chain(words);
        match Cli::try_parse_from(all).map(|cli| cli.command) {
            Ok(Command::Target(args)) => Ok(*args),
            Ok(_) => Err("not a target".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn a_rate_is_written_as_for_a_load() {
        for (text, expected) in [("50", 50.0), ("50/s", 50.0), ("30/m", 0.5)] {
            let args = target(&["--rate-limit", text]).unwrap();
            assert_eq!(args.rate_limit, Some(expected), "{text}");
        }
        let error = target(&["--rate-limit", "50rps"]).unwrap_err();
        assert!(error.contains("a rate such as 500/s"), "{error}");
    }

    #[test]
    fn no_bytes_need_no_unit() {
        assert_eq!(target(&["--size", "0"]).unwrap().size, 0);
    }

    #[test]
    fn what_was_most_likely_meant_is_said() {
        let error = target(&["--freeze", "3..7"]).unwrap_err();
        assert!(error.contains("did you mean \"3s\"?"), "{error}");
        let error = target(&["--size", "1K"]).unwrap_err();
        assert!(error.contains("did you mean \"KiB\"?"), "{error}");
    }
}
