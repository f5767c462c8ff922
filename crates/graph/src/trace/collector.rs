//! From the recorders of threads to the store and to collectors.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use net::Shutdown;

use super::export::{Exporter, SenderOptions};
use super::recorder::SpanBuffers;
use traces::{Origin, Span, Store, StoreCounts, StoreLimits};

use super::{Export, ExportCounts, Recorder};

use crate::lock;

/// Time between two collections.
const EVERY: Duration = Duration::from_millis(100);

/// Longest wait for collectors to take the last spans.
const FAREWELL: Duration = Duration::from_secs(2);

/// The spans of a process: gives recorders to threads, collects from them, keeps what they
/// recorded and sends it on. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tracer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    store: Store,
    origin: Origin,
    recorders: Mutex<Recorders>,
    /// Where spans should go.
    exports: Mutex<Vec<Export>>,
    /// Where they go.
    exporters: Mutex<Vec<Exporter>>,
}

#[derive(Debug, Default)]
struct Recorders {
    buffers: Vec<Arc<SpanBuffers>>,
    spare: Vec<Span>,
    /// Of recorders that are gone.
    recorded: u64,
    dropped: u64,
}

/// What a tracer has done so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracerCounts {
    /// Spans that were recorded here.
    pub recorded: u64,
    /// Spans that were dropped because collecting was behind.
    pub dropped: u64,
    /// What is kept, of this process and of others.
    pub store: StoreCounts,
    /// What was sent on.
    pub exports: Vec<ExportCounts>,
}

impl Tracer {
    /// A tracer that sends spans to `exports`, once it [runs](Self::run).
    pub fn new(limits: StoreLimits, exports: Vec<Export>) -> Self {
        Self(Arc::new(Shared {
            store: Store::new(limits),
            origin: Origin::here(),
            recorders: Mutex::default(),
            exports: Mutex::new(exports),
            exporters: Mutex::default(),
        }))
    }

    /// A recorder for a thread.
    pub fn recorder(&self) -> Recorder {
        let (recorder, buffers) = Recorder::new();
        lock(&self.0.recorders).buffers.push(buffers);
        recorder
    }

    /// What is kept. It lags behind by a tenth of a second; see [`collect`](Self::collect).
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// What ties its times to those of others.
    pub fn origin(&self) -> &Origin {
        &self.0.origin
    }

    /// Sends spans there from now on, and nowhere else. A target that stays goes on.
    pub fn export_to(&self, exports: Vec<Export>) {
        *lock(&self.0.exports) = exports;
    }

    /// Takes what the threads have recorded, keeps it and sends it on.
    pub fn collect(&self) {
        let mut spans = Vec::new();
        lock(&self.0.recorders).take(&mut spans);
        if spans.is_empty() {
            return;
        }
        for exporter in &*lock(&self.0.exporters) {
            exporter.send(&spans);
        }
        self.0.store.extend(spans);
    }

    /// Collects ten times a second until `shutdown`, then gives collectors two seconds to
    /// take the rest. One task of a process runs it; what records should have stopped by
    /// then.
    pub async fn run(self, mut shutdown: Shutdown) {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let stop = tokio::select! {
                _ = ticks.tick() => false,
                () = shutdown.requested() => true,
            };
            self.follow_exports();
            self.collect();
            if stop {
                break;
            }
        }
        let exporters = std::mem::take(&mut *lock(&self.0.exporters));
        let rest = exporters.into_iter().map(Exporter::finish);
        let rest: Vec<_> = rest.collect();
        let all = async {
            for task in rest {
                // A task that failed has nothing more to send.
                let _ = task.await;
            }
        };
        let _ = tokio::time::timeout(FAREWELL, all).await;
    }

    /// What it has done so far.
    pub fn counts(&self) -> TracerCounts {
        let (recorded, dropped) = lock(&self.0.recorders).counts();
        TracerCounts {
            recorded,
            dropped,
            store: self.0.store.counts(),
            exports: lock(&self.0.exporters)
                .iter()
                .map(Exporter::counts)
                .collect(),
        }
    }

    fn follow_exports(&self) {
        let wanted = lock(&self.0.exports).clone();
        let mut running = lock(&self.0.exporters);
        // Those that are dropped end when their queue is empty.
        running.retain(|exporter| wanted.contains(exporter.export()));
        for export in wanted {
            if running.iter().all(|exporter| *exporter.export() != export) {
                let origin = self.0.origin.clone();
                running.push(Exporter::start(export, origin, SenderOptions::default()));
            }
        }
    }
}

impl Recorders {
    fn take(&mut self, into: &mut Vec<Span>) {
        let (mut recorded, mut dropped) = (0, 0);
        let spare = &mut self.spare;
        self.buffers.retain(|buffers| {
            // Asked first: what a recorder leaves behind is taken below.
            let deserted = buffers.deserted();
            buffers.take(into, spare);
            if deserted {
                let (kept, lost) = buffers.counts();
                (recorded, dropped) = (recorded + kept, dropped + lost);
            }
            !deserted
        });
        self.recorded += recorded;
        self.dropped += dropped;
    }

    fn counts(&self) -> (u64, u64) {
        let now = self.buffers.iter().map(|buffers| buffers.counts());
        now.fold((self.recorded, self.dropped), |sum, one| {
            (sum.0 + one.0, sum.1 + one.1)
        })
    }
}
