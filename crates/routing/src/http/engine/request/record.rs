//! What is told of a request that is over, in counters and in the access log; and its
//! memory, which the next one uses.

use wire::deadlines::NEVER;

use super::ActiveRequest;
use crate::http::access_log;
use crate::http::counters::ThreadCounters;
use crate::http::engine::buffers::Buffers;
use crate::http::engine::context::Context;
use crate::http::engine::log_writer::LogLines;
use crate::http::pipeline::{Client, Upgrade};
use crate::table::Nanos;

/// Used requests that are kept for the next ones.
const SPARE: usize = 256;

/// The requests of one thread: those that were.
pub(crate) struct Requests {
    #[expect(clippy::vec_box, reason = "requests are large, and move in and out")]
    spare: Vec<Box<ActiveRequest>>,
    log: Option<LogLines>,
}

impl Requests {
    pub(crate) fn new(log: Option<LogLines>) -> Self {
        let spare = Vec::new();
        Self { spare, log }
    }

    /// Memory for a request.
    pub(crate) fn take(&mut self) -> Box<ActiveRequest> {
        let mut request = self.spare.pop().unwrap_or_default();
        request.reset();
        request
    }

    /// Keeps the memory of a request for another one.
    pub(crate) fn spare(&mut self, mut request: Box<ActiveRequest>, buffers: &mut Buffers) {
        request.upstream.clear(buffers);
        if self.spare.len() < SPARE {
            request.release();
            self.spare.push(request);
        }
    }

    /// Counts and logs a request that is over.
    pub(crate) fn end(
        &mut self,
        request: Box<ActiveRequest>,
        client: &Client,
        context: &mut Context,
    ) {
        context.clock.look();
        let times = context.clock.times();
        let most_apps = context.shared.settings.app_latencies;
        request.count(times.mono, most_apps, &context.counters);
        if let Some(log) = &mut self.log
            && !request.unlogged
        {
            access_log::write_line(
                &context.shared.pipeline,
                &request.head,
                client,
                &request.exchange,
                times,
                log.line(times.mono),
            );
        }
        self.spare(request, &mut context.buffers);
    }

    /// When [`Requests::hand_over`] is to be called at the latest.
    pub(crate) fn next_deadline(&self) -> Nanos {
        self.log.as_ref().map_or(NEVER, LogLines::due)
    }

    /// Gives the lines of the access log to their writer, if they are due by `now`.
    pub(crate) fn hand_over(&mut self, now: Nanos, counters: &ThreadCounters) {
        if let Some(log) = &mut self.log
            && log.due() <= now
        {
            log.hand_over(counters);
        }
    }
}

impl ActiveRequest {
    fn count(&self, now: Nanos, most_apps: usize, counters: &ThreadCounters) {
        counters.active.decrement();
        if self.tunnels {
            counters.open_tunnels.decrement();
        }
        let exchange = &self.exchange;
        let status = exchange.status();
        let class = usize::from(status / 100);
        let class = if (1..=5).contains(&class) { class } else { 0 };
        if let Some(count) = counters.responses.get(class) {
            count.increment();
        }
        if self.to_service
            && self.answered
            && let Some(count) = counters.responses_of_route_services.get(class)
        {
            count.increment();
        }
        match status {
            400 | 404 if !self.answered => counters.rejected.increment(),
            502 | 503 | 496 | 525 | 526 if !self.answered && self.attempts > 0 => {
                counters.bad_gateways.increment();
            }
            _ => {}
        }
        if exchange.upgrade() != Upgrade::None && status != 101 {
            counters.failed_upgrades.increment();
        }
        let took = now.saturating_sub(exchange.started().mono);
        counters.latency.record(took);
        let progress = &exchange.progress;
        let endpoint = progress.endpoint.as_deref();
        if most_apps > 0 && !counters.apps.record(endpoint, took, most_apps) {
            counters.app_latency_misses.increment();
        }
        if progress.backend_started > 0 {
            let backend = progress
                .backend_finished
                .saturating_sub(progress.backend_started);
            counters.own_time.record(took.saturating_sub(backend));
        }
    }
}
