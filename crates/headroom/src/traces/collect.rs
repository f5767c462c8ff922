//! `headroom traces collect`: a collector that understands what it keeps.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use collector::{Collector, Grpc};
use net::Limits;
use traces::{Origin, StoreLimits, normalise, otlp};
use units::{counted, grouped};

use super::output_file::OutputFile;
use crate::cli::{duration, meant};
use crate::output::{eprint, print};
use crate::server::{control_runtime, on_signal};

pub(super) const AFTER_HELP: &str = "\
Send it spans as to any collector (OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318, or :4317 for
gRPC; Zipkin's v2 API is on the first one too). While it runs:
  curl http://127.0.0.1:4318/analysis      where the latency of each kind of request comes from
  curl http://127.0.0.1:4318/traces        the newest; also ?slowest=10, and /traces/ID
  curl http://127.0.0.1:4318/spans         whole traces; also ?format=zipkin, jaeger or protobuf
  curl http://127.0.0.1:4318/metrics       what came in, was dropped and forgotten

To compare: headroom traces collect --for 5m --out before.json
            headroom traces collect --for 5m --out after.json      (with the change)
            headroom traces compare before.json after.json";

/// Connections of one address at once.
const CONNECTIONS: usize = 1024;

#[derive(Debug, Args)]
pub(crate) struct CollectArgs {
    /// Address for OTLP over HTTP, Zipkin and queries; anyone who reaches it may send and read spans
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4318")]
    listen: SocketAddr,
    /// Address for OTLP over gRPC
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4317")]
    grpc: SocketAddr,
    /// Most spans to keep; beyond it, traces that changed longest ago are dropped
    #[arg(long, value_name = "N", default_value_t = 2_000_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    spans: u32,
    /// Most memory for them, without names
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = bytes)]
    memory: usize,
    /// Stop after this time instead of at a signal
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    length: Option<Duration>,
    /// Write the spans to this file at the end, as OTLP JSON
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn collect(args: &CollectArgs) -> Result<()> {
    // What cannot be written is said now, and not when the spans are there.
    let file = args.out.as_deref().map(OutputFile::open).transpose()?;
    let collector = Collector::new(StoreLimits {
        spans: args.spans as usize,
        bytes: args.memory,
        ..StoreLimits::default()
    });
    control_runtime()?.block_on(net::local(serve(args, Arc::clone(&collector))))?;
    match file {
        Some(file) => keep(&collector, file),
        None => Ok(()),
    }
}

async fn serve(args: &CollectArgs, collector: Arc<Collector>) -> Result<()> {
    let http = net::bind(args.listen).await?;
    let grpc = net::bind(args.grpc).await?;
    print(&format!(
        "listening on {} (OTLP over HTTP, Zipkin, questions) and {} (OTLP over gRPC)\n",
        http.local_addr()?,
        grpc.local_addr()?
    ))?;
    let limits = Limits {
        connections: CONNECTIONS,
        ..Limits::default()
    };
    let (ask, shutdown) = net::shutdown();
    let mut signal = on_signal()?;
    let over = async {
        match args.length {
            Some(length) => tokio::time::sleep(length).await,
            None => std::future::pending().await,
        }
    };
    let stop = async {
        tokio::select! {
            () = signal.requested() => {}
            () = over => {}
        }
        let _ = ask.send(true);
    };
    let face = Arc::new(Grpc(Arc::clone(&collector)));
    tokio::join!(
        net::serve(http, None, limits, collector, shutdown.clone()),
        net::serve_http2(grpc, None, limits, face, shutdown),
        stop,
    );
    Ok(())
}

/// Writes all that is kept, whole or not.
fn keep(collector: &Collector, file: OutputFile<'_>) -> Result<()> {
    let mut traces = collector.store().all();
    normalise(traces.iter_mut().flatten());
    let spans = traces.concat();
    let text = otlp::write_json(&spans, &Origin::unix());
    let name = file.name();
    file.write(text.as_ref())?;
    let counts = collector.store().counts();
    let refused = match collector.refused_spans() {
        0 => String::new(),
        refused => format!(
            "; beside them {} could not be used: they had no ids or no sensible time",
            grouped(refused)
        ),
    };
    let kept = counted(spans.len() as u64, "span", "spans");
    let of = counted(traces.len() as u64, "trace", "traces");
    eprint(format_args!(
        "{}: {kept} of {of}; {} came in, {} were dropped, {} forgotten{refused}",
        name.display(),
        grouped(counts.received),
        grouped(counts.dropped),
        grouped(counts.forgotten),
    ));
    Ok(())
}

fn bytes(text: &str) -> Result<usize, String> {
    let bytes = units::parse_bytes(text).map_err(meant)?;
    usize::try_from(bytes).map_err(|_| "it is more than this machine can address".to_owned())
}
