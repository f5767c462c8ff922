//! Counters of this process and of others, read about once a second.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::Uri;
use net::{Client, ClientOptions, Shutdown};
use tokio::task::JoinSet;

use crate::Nanos;
use crate::lock;
use crate::metrics::{History, Metrics, Snapshot, Window};

/// Time between two readings.
const EVERY: Duration = Duration::from_secs(1);

/// Reading the counters of thousands of services takes long enough to disturb them. The
/// pause behind it is so many times as long, if that is more: it never takes more than a
/// half percent of a processor.
const PAUSE: u32 = 200;

/// Longest wait for the counters of another process.
const ANSWER_WITHIN: Duration = Duration::from_millis(900);

/// Most bytes of another's counters.
const COUNTERS_BYTES: usize = 64 << 20;

/// Another process of the same graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Tells it apart from others.
    pub name: String,
    /// Its counters: `http://HOST:PORT/counters`.
    pub counters: Uri,
}

/// Reads counters and remembers what came.
pub(super) struct Watch {
    metrics: Arc<Metrics>,
    peers: Mutex<Vec<Peer>>,
    history: Mutex<History>,
    client: Client,
}

impl Watch {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        let client = Client::new(ClientOptions {
            connections_per_host: 1,
            connect_within: ANSWER_WITHIN,
            answer_within: ANSWER_WITHIN,
            answer_bytes: COUNTERS_BYTES,
            tls: None,
        });
        let watch = Self {
            metrics,
            peers: Mutex::default(),
            history: Mutex::default(),
            client,
        };
        watch.take(vec![(String::new(), watch.metrics.snapshot())]);
        watch
    }

    pub(super) fn follow(&self, peers: Vec<Peer>) {
        *lock(&self.peers) = peers;
    }

    /// Reads once a second, or as often as it disturbs nobody, until the end.
    pub(super) async fn run(self: Arc<Self>, mut shutdown: Shutdown) {
        loop {
            let took = self.read().await;
            tokio::select! {
                () = tokio::time::sleep(EVERY.max(took * PAUSE)) => {}
                () = shutdown.requested() => return,
            }
        }
    }

    /// Reads all counters now. Gives the time that this took of the calling thread.
    pub(super) async fn read(&self) -> Duration {
        let peers = lock(&self.peers).clone();
        let mut reading = JoinSet::new();
        for peer in peers {
            let client = self.client.clone();
            reading.spawn(net::boxed(async move {
                let answer = client.get(&peer.counters).await.ok()?;
                // One that is busy or gone is read again in a second.
                let snapshot = serde_json::from_slice::<Snapshot>(&answer.body).ok()?;
                Some((peer.name, snapshot))
            }));
        }
        let mut all = Vec::new();
        while let Some(read) = reading.join_next().await {
            all.extend(read.ok().flatten());
        }
        let begin = Instant::now();
        all.push((String::new(), self.metrics.snapshot()));
        self.take(all);
        begin.elapsed()
    }

    fn take(&self, all: Vec<(String, Snapshot)>) {
        let mut history = lock(&self.history);
        history.round(wire::clock::now());
        for (name, snapshot) in all {
            history.read(&name, snapshot);
        }
    }

    /// What came in the last time.
    pub(super) fn window(&self, length: Nanos) -> Window {
        lock(&self.history).window(length)
    }

    /// All counters: of this process as they are, of others as of the last second.
    pub(super) fn all(&self) -> Snapshot {
        match lock(&self.peers).is_empty() {
            true => self.metrics.snapshot(),
            false => lock(&self.history).all(),
        }
    }

    /// Those of this process alone.
    pub(super) fn own(&self) -> Snapshot {
        self.metrics.snapshot()
    }
}
