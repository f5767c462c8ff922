//! The task of a target: one batch after the other, each until it is taken.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use net::{Client, ClientOptions};
use tokio::sync::mpsc;

use super::{Counters, Export, Format};
use traces::{Origin, Span};

/// How patient a sender is.
#[derive(Debug, Clone, Copy)]
pub(in crate::trace) struct SenderOptions {
    /// Longest wait for an answer.
    pub(in crate::trace) answer_within: Duration,
    /// Posts of one batch; then it is dropped.
    pub(in crate::trace) attempts: u32,
    /// Pause after the first failed post; each further one doubles it.
    pub(in crate::trace) pause: Duration,
}

/// Longest pause between two posts of a batch.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

impl Default for SenderOptions {
    fn default() -> Self {
        Self {
            answer_within: Duration::from_secs(10),
            attempts: 6,
            pause: Duration::from_millis(100),
        }
    }
}

pub(super) struct Sender {
    export: Export,
    origin: Origin,
    options: SenderOptions,
    counters: Arc<Counters>,
    client: Client,
}

impl Sender {
    pub(super) fn new(
        export: Export,
        origin: Origin,
        options: SenderOptions,
        counters: Arc<Counters>,
    ) -> Self {
        let client = Client::new(ClientOptions {
            connections_per_host: 1,
            answer_within: options.answer_within,
            // Collectors answer with a word at most.
            answer_bytes: 64 * 1024,
            ..ClientOptions::default()
        });
        Self {
            export,
            origin,
            options,
            counters,
            client,
        }
    }

    /// Until the queue is closed and empty.
    pub(super) async fn run(self, mut batches: mpsc::Receiver<Vec<Span>>) {
        while let Some(batch) = batches.recv().await {
            let all = batch.len() as u64;
            let taken = all.saturating_sub(self.deliver(&batch).await.unwrap_or(all));
            self.counters.sent.fetch_add(taken, Relaxed);
            self.counters.dropped.fetch_add(all - taken, Relaxed);
        }
    }

    /// How many spans of a batch that was taken were not; `None`: it was not taken.
    async fn deliver(&self, batch: &[Span]) -> Option<u64> {
        let body = bytes::Bytes::from(self.export.write(batch, &self.origin));
        let mut pause = self.options.pause;
        for attempt in 1..=self.options.attempts {
            let post = self.client.post(
                &self.export.target,
                self.export.content_type(),
                HeaderMap::new(),
                body.clone(),
            );
            let again = match post.await {
                Ok(answer) if answer.status.is_success() => {
                    return Some(self.export.rejected(&answer.body));
                }
                Ok(answer) => may_change(self.export.format, answer.status),
                Err(_) => true,
            };
            self.counters.failures.fetch_add(1, Relaxed);
            if !again {
                return None;
            }
            if attempt < self.options.attempts {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
        None
    }
}

/// Whether the same batch may be taken later: OTLP says of which answers that is so.
fn may_change(format: Format, status: StatusCode) -> bool {
    match (format, status) {
        (_, StatusCode::TOO_MANY_REQUESTS) => true,
        (Format::Otlp, status) => matches!(
            status,
            StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
        ),
        (Format::Zipkin, status) => {
            status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT
        }
    }
}
