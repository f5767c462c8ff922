//! Sending spans to collectors.
//!
//! Each target has a bounded queue and a task of its own. A target that is slow or gone
//! costs spans, which are counted, and never holds up a request or another target.

mod sender;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use http::Uri;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

pub(super) use sender::SenderOptions;

use crate::topology::Tracing;
use traces::{Origin, Span, otlp, zipkin};

/// Spans of one request to a target.
const BATCH: usize = 1024;

/// Batches that wait for a target; further ones are dropped and counted.
const QUEUE: usize = 32;

/// How spans are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Zipkin's version 2, JSON.
    Zipkin,
    /// OpenTelemetry's, protobuf.
    Otlp,
}

/// Where spans go.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Export {
    /// How they are written.
    pub format: Format,
    /// Where they are posted: `http://HOST:PORT/PATH`.
    pub target: Uri,
}

/// What became of the spans of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportCounts {
    /// Where they go.
    pub export: Export,
    /// Spans that the target took.
    pub sent: u64,
    /// Spans that were dropped: the queue was full, or the target refused them, or did
    /// not take them however often they were sent.
    pub dropped: u64,
    /// Posts that failed.
    pub failures: u64,
}

impl Export {
    /// The targets that a profile names: an address alone has the path that its format is posted
    /// to. A URL that is not of HTTP is left out.
    pub fn all(tracing: &Tracing) -> Vec<Self> {
        let targets = [
            (Format::Zipkin, tracing.zipkin.as_ref()),
            (Format::Otlp, tracing.otlp.as_ref()),
        ];
        let exports = targets.into_iter().filter_map(|(format, target)| {
            let mut target = target?.clone();
            if target.path() == "/" {
                target.set_path(match format {
                    Format::Zipkin => zipkin::PATH,
                    Format::Otlp => otlp::PATH,
                });
            }
            let target = target.as_str().parse().ok()?;
            Some(Self { format, target })
        });
        exports.collect()
    }

    /// The target without what may be secret in it: a name, a password, a query.
    pub fn shown(&self) -> String {
        let host = self.target.host().unwrap_or_default();
        let port = self.target.port_u16().unwrap_or(80);
        format!("http://{host}:{port}{}", self.target.path())
    }

    fn content_type(&self) -> &'static str {
        match self.format {
            Format::Zipkin => zipkin::JSON,
            Format::Otlp => otlp::PROTOBUF,
        }
    }

    fn write(&self, spans: &[Span], origin: &Origin) -> Vec<u8> {
        match self.format {
            Format::Zipkin => zipkin::write(spans, origin),
            Format::Otlp => otlp::write_protobuf(spans, origin),
        }
    }

    /// Spans that were not taken, by the answer to a post that succeeded.
    fn rejected(&self, answer: &[u8]) -> u64 {
        match self.format {
            Format::Zipkin => 0,
            Format::Otlp => otlp::rejected(answer),
        }
    }
}

#[derive(Debug, Default)]
struct Counters {
    sent: AtomicU64,
    dropped: AtomicU64,
    failures: AtomicU64,
}

/// A target at work.
#[derive(Debug)]
pub(super) struct Exporter {
    export: Export,
    queue: mpsc::Sender<Vec<Span>>,
    counters: Arc<Counters>,
    task: JoinHandle<()>,
}

impl Exporter {
    /// Starts the task; needs a runtime of tokio.
    pub(super) fn start(export: Export, origin: Origin, options: SenderOptions) -> Self {
        let (queue, batches) = mpsc::channel(QUEUE);
        let counters = Arc::<Counters>::default();
        let sender = sender::Sender::new(export.clone(), origin, options, Arc::clone(&counters));
        Self {
            export,
            queue,
            counters,
            task: tokio::spawn(net::boxed(sender.run(batches))),
        }
    }

    pub(super) fn export(&self) -> &Export {
        &self.export
    }

    /// Hands spans over. Never waits.
    pub(super) fn send(&self, spans: &[Span]) {
        for batch in spans.chunks(BATCH) {
            if self.queue.try_send(batch.to_vec()).is_err() {
                self.counters.dropped.fetch_add(batch.len() as u64, Relaxed);
            }
        }
    }

    pub(super) fn counts(&self) -> ExportCounts {
        ExportCounts {
            export: self.export.clone(),
            sent: self.counters.sent.load(Relaxed),
            dropped: self.counters.dropped.load(Relaxed),
            failures: self.counters.failures.load(Relaxed),
        }
    }

    /// Takes nothing more, and ends with what is in the queue.
    pub(super) fn finish(self) -> JoinHandle<()> {
        self.task
    }
}
