//! Giving a run to programs of others.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{ArgGroup, Args};
use lab_report::metrics::{self, Series};
use lab_report::perfetto_file;
use lab_store::{Outcome, RunFolder};

use super::{RunArgs, push, which};
use crate::output::{eprint, print};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("to").required(true).multiple(true))]
pub(super) struct ExportArgs {
    #[command(flatten)]
    run: RunArgs,
    /// Write a trace that ui.perfetto.dev opens: trace events in JSON
    #[arg(long, value_name = "FILE", group = "to")]
    perfetto: Option<PathBuf>,
    /// Most entities of each lifecycle in the trace: those that took longest
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000)]
    entities: usize,
    /// Send its numbers over time to a Prometheus remote-write endpoint
    #[arg(long, value_name = "URL", group = "to")]
    remote_write: Option<String>,
    /// Send its numbers over time to an OTLP endpoint over HTTP: http://127.0.0.1:4318/v1/metrics
    #[arg(long, value_name = "URL", group = "to")]
    otlp: Option<String>,
    #[command(flatten)]
    trust: push::TrustArgs,
}

/// Does what was asked for, one after the other.
pub(super) fn export(args: &ExportArgs) -> Result<Outcome> {
    let run = which::path(args.run.run.as_deref(), &args.run.within.folder)?;
    let run = RunFolder::open(&run)?;
    if let Some(file) = &args.perfetto {
        for left_out in perfetto_file(&run, args.entities, file)? {
            eprint(format_args!(
                "headroom: {} entities of {}, those whose life was shortest, are not in it; --entities takes more",
                left_out.entities, left_out.lifecycle
            ));
        }
        print(&format!("{}\n", file.display()))?;
    }
    if args.remote_write.is_none() && args.otlp.is_none() {
        return Ok(Outcome::Pass);
    }
    let series = metrics::gather(&run)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    if let Some(url) = &args.remote_write {
        runtime.block_on(remote_write(url, args, &series))?;
        sent(&run, &series, url)?;
    }
    if let Some(url) = &args.otlp {
        runtime.block_on(otlp(url, args, &series, &run.id()))?;
        sent(&run, &series, url)?;
    }
    Ok(Outcome::Pass)
}

fn sent(run: &RunFolder, series: &[Series], url: &str) -> Result<()> {
    let samples: usize = series.iter().map(|series| series.samples.len()).sum();
    print(&format!(
        "{}: {samples} samples of {} series to {url}\n",
        run.id(),
        series.len()
    ))
}

async fn remote_write(url: &str, args: &ExportArgs, series: &[Series]) -> Result<()> {
    let receiver = push::Receiver::new(url, &args.trust)?;
    for request in metrics::remote_write::requests(series) {
        let body = metrics::remote_write::body(&request)?;
        receiver.post(&metrics::remote_write::HEADERS, body).await?;
    }
    Ok(())
}

async fn otlp(url: &str, args: &ExportArgs, series: &[Series], run: &str) -> Result<()> {
    let receiver = push::Receiver::new(url, &args.trust)?;
    for request in metrics::otlp::requests(series, run) {
        let answer = receiver
            .post(&metrics::otlp::HEADERS, metrics::otlp::body(&request))
            .await?;
        if let Some(why) = metrics::otlp::refused(&answer.body) {
            bail!("{url} left some out: {why}");
        }
    }
    Ok(())
}
