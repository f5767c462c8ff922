//! What is told of a request that is over, in counters and in the access log; and its
//! memory, which the next one uses.

use wire::deadlines::NEVER;

use super::ActiveRequest;
use crate::http::access_log;
use crate::http::counters::ThreadCounters;
use crate::http::engine::batches::Batches;
use crate::http::engine::buffers::Buffers;
use crate::http::engine::context::Context;
use crate::http::envelopes::Ended;
use crate::http::pipeline::{Client, Refusal, Times, Upgrade};
use crate::http::settings::HttpSettings;
use crate::table::Nanos;

/// Used requests that are kept for the next ones.
const SPARE: usize = 256;

/// The requests of one thread: those that were.
pub(crate) struct Requests {
    #[expect(clippy::vec_box, reason = "requests are large, and move in and out")]
    spare: Vec<Box<ActiveRequest>>,
    request_sinks: RequestSinks,
    /// Memory for a line that is told in an envelope.
    line: Vec<u8>,
}

/// Where a thread tells of its requests.
#[derive(Default)]
pub(crate) struct RequestSinks {
    /// The access log.
    pub(crate) log: Option<Batches>,
    /// Envelopes of loggregator.
    pub(crate) envelopes: Option<Batches>,
}

impl Requests {
    pub(crate) fn new(request_sinks: RequestSinks) -> Self {
        Self {
            spare: Vec::new(),
            request_sinks,
            line: Vec::new(),
        }
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
        request.count(times.mono, &context.shared.settings, &context.counters);
        if !request.unlogged {
            self.write_records(&request, client, context, times);
        }
        self.spare(request, &mut context.buffers);
    }

    /// Writes its line of the access log and its envelopes, where they are asked for.
    fn write_records(
        &mut self,
        request: &ActiveRequest,
        client: &Client,
        context: &Context,
        times: Times,
    ) {
        let (head, exchange) = (&request.head, &request.exchange);
        let RequestSinks { log, envelopes } = &mut self.request_sinks;
        let settings = context.shared.settings.envelopes.as_ref();
        let envelopes = envelopes.as_mut().zip(settings);
        let pipeline = &context.shared.pipeline;
        if let Some(log) = log {
            let line = log.entry(times.mono, 1);
            access_log::write_line(pipeline, head, client, exchange, times, line);
        }
        if let Some((envelopes, settings)) = envelopes {
            let line = &mut self.line;
            line.clear();
            if settings.logs {
                access_log::write_short_line(pipeline, head, client, exchange, times, line);
            }
            let ended = Ended {
                head,
                client,
                exchange,
                now: times,
                line: line.strip_suffix(b"\n").unwrap_or_default(),
            };
            let out = envelopes.entry(times.mono, 0);
            let count = ended.write(settings, out);
            envelopes.entry(times.mono, count);
        }
    }

    /// When [`Requests::hand_over`] is to be called at the latest.
    pub(crate) fn next_deadline(&self) -> Nanos {
        let RequestSinks { log, envelopes } = &self.request_sinks;
        let due = [log, envelopes].map(|it| it.as_ref().map_or(NEVER, Batches::due));
        due[0].min(due[1])
    }

    /// Gives lines and envelopes to those who write and send them, if they are due by `now`.
    pub(crate) fn hand_over(&mut self, now: Nanos, counters: &ThreadCounters) {
        let RequestSinks { log, envelopes } = &mut self.request_sinks;
        if let Some(log) = log.as_mut().filter(|log| log.due() <= now) {
            let handed = log.hand_over();
            counters.logged.add(handed.taken);
            counters.log_drops.add(handed.dropped);
        }
        if let Some(envelopes) = envelopes.as_mut().filter(|it| it.due() <= now) {
            counters.envelope_drops.add(envelopes.hand_over().dropped);
        }
    }
}

impl ActiveRequest {
    fn count(&self, now: Nanos, settings: &HttpSettings, counters: &ThreadCounters) {
        counters.active.decrement();
        if self.tunnels {
            counters.open_tunnels.decrement();
        }
        let exchange = &self.exchange;
        let progress = &exchange.progress;
        let endpoint = progress.endpoint.as_deref();
        let took = now.saturating_sub(exchange.started().mono);
        let class = usize::from(exchange.status() / 100);
        let class = if (1..=5).contains(&class) { class } else { 0 };
        // As in gorouter: what reached nobody is not among them.
        if endpoint.is_some() || self.to_service {
            counters.latency.record(took);
            if let Some(count) = counters.responses.get(class) {
                count.increment();
            }
        }
        if self.to_service
            && self.answered
            && let Some(count) = counters.responses_of_route_services.get(class)
        {
            count.increment();
        }
        match self.refused {
            Some(refusal) if refusal.is_rejection() => counters.rejected.increment(),
            Some(Refusal::Overloaded) => counters.exhausted.increment(),
            Some(Refusal::EndpointFailure) => counters.bad_gateways.increment(),
            // Once for a request, and not if another endpoint served it: as in gorouter.
            Some(Refusal::NameMismatch) => counters.invalid_backend_id.increment(),
            Some(Refusal::UntrustedCertificate) => counters.invalid_backend_certificate.increment(),
            Some(Refusal::HandshakeFailure) => counters.failed_handshakes.increment(),
            _ => {}
        }
        if exchange.upgrade() == Upgrade::WebSocket && self.attempts > 0 && !self.answered {
            counters.failed_upgrades.increment();
        }
        if !settings.active_apps.is_zero()
            && let Some(endpoint) = endpoint.filter(|it| !it.app.is_empty())
            && !counters.active_apps.note(&endpoint.app)
        {
            counters.active_app_misses.increment();
        }
        let most_apps = settings.app_latencies;
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
