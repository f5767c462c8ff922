//! What the data path counts.
//!
//! Each thread counts for itself, without locked instructions; who reads sums over the
//! threads. A sum may miss what happens meanwhile, and never counts anything twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use telemetry::prometheus::Page;

use super::active_apps::ActiveApps;
use super::app_latencies::{AppLatencies, AppLatency};
use crate::table::Text;

/// A number that one thread changes and any thread reads.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds one. Only for the owning thread: two writers would lose counts.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds `more`. Only for the owning thread.
    pub fn add(&self, more: u64) {
        self.0
            .store(self.get().wrapping_add(more), Ordering::Relaxed);
    }

    /// Takes one away, of a number that goes up and down. Only for the owning thread.
    pub fn decrement(&self) {
        self.0.store(self.get().wrapping_sub(1), Ordering::Relaxed);
    }

    /// Raises it to `other` if that is higher. Only for the owning thread.
    pub fn raise(&self, other: u64) {
        if other > self.get() {
            self.0.store(other, Ordering::Relaxed);
        }
    }

    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Buckets of a histogram: how many values were at most each bound.
#[derive(Debug)]
pub struct Histogram<const BUCKETS: usize> {
    bounds: &'static [u64; BUCKETS],
    /// Not cumulative.
    counts: [Count; BUCKETS],
    above: Count,
    sum: Count,
}

impl<const BUCKETS: usize> Histogram<BUCKETS> {
    fn new(bounds: &'static [u64; BUCKETS]) -> Self {
        Self {
            bounds,
            counts: std::array::from_fn(|_| Count::default()),
            above: Count::default(),
            sum: Count::default(),
        }
    }

    /// Counts a value, in nanoseconds. Only for the owning thread.
    pub fn record(&self, value: u64) {
        let bucket = self.bounds.iter().position(|bound| value <= *bound);
        let count = bucket.and_then(|bucket| self.counts.get(bucket));
        count.unwrap_or(&self.above).increment();
        self.sum.add(value);
    }
}

/// A histogram over all threads. Values are nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistogramTotal {
    /// Upper bound of each bucket, and the values up to it: cumulative, as Prometheus
    /// shows them.
    pub buckets: Vec<(u64, u64)>,
    /// All values.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
}

impl HistogramTotal {
    fn add<const BUCKETS: usize>(&mut self, of: &Histogram<BUCKETS>) {
        if self.buckets.is_empty() {
            self.buckets = of.bounds.iter().map(|bound| (*bound, 0)).collect();
        }
        let mut below = 0;
        for (bucket, count) in self.buckets.iter_mut().zip(&of.counts) {
            below += count.get();
            bucket.1 += below;
        }
        self.count += below + of.above.get();
        self.sum = self.sum.wrapping_add(of.sum.get());
    }
}

const MS: u64 = 1_000_000;

/// Bounds for times of requests: 1 ms to 1 s, as gorouter's.
pub const REQUEST_BOUNDS: [u64; 12] = [
    MS,
    2 * MS,
    4 * MS,
    6 * MS,
    8 * MS,
    10 * MS,
    20 * MS,
    40 * MS,
    50 * MS,
    100 * MS,
    500 * MS,
    1000 * MS,
];

const SECOND: u64 = 1000 * MS;

/// Bounds for the router's own share: 1 µs to 1 ms, where it lies; then gorouter's, which
/// are seconds.
pub const OWN_BOUNDS: [u64; 22] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    MS,
    SECOND,
    2 * SECOND,
    4 * SECOND,
    6 * SECOND,
    8 * SECOND,
    10 * SECOND,
    20 * SECOND,
    40 * SECOND,
    50 * SECOND,
    100 * SECOND,
    500 * SECOND,
    1000 * SECOND,
];

/// Bounds for finding a route: 0.1 µs to 5 µs, where it lies; then gorouter's.
pub const LOOKUP_BOUNDS: [u64; 16] = [
    100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 40_000, 50_000, 60_000, 70_000,
    80_000, 90_000, 100_000,
];

/// Makes what a thread counts and what the totals are of each name. The page of metrics tells
/// those of `ours` in this order, with their description here as the help text.
macro_rules! counters {
    (
        gorouters { $($(#[$doc:meta])* $name:ident,)* }
        ours { $($(#[doc = $help:literal])* $own:ident: $kind:ident $metric:literal,)* }
    ) => {
        /// What one thread has counted. Only that thread changes it.
        #[derive(Debug)]
        #[repr(align(128))]
        pub struct ThreadCounters {
            $($(#[$doc])* pub $name: Count,)*
            $($(#[doc = $help])* pub $own: Count,)*
            /// Answers by the first digit of their status; place 0: none of 1 to 5.
            pub responses: [Count; 6],
            /// The same, of answers that route services gave.
            pub responses_of_route_services: [Count; 6],
            /// From a request's first byte to its answer's last.
            pub latency: Histogram<12>,
            /// The part of it that was spent in this router.
            pub own_time: Histogram<22>,
            /// Reading a request's fields and finding its route; of every sixteenth request.
            pub lookup_time: Histogram<16>,
            /// From first byte to last by application, if that is asked for.
            pub apps: AppLatencies,
            /// Applications that were called lately, if that is asked for.
            pub(super) active_apps: ActiveApps,
        }

        impl Default for ThreadCounters {
            fn default() -> Self {
                Self {
                    $($name: Count::default(),)*
                    $($own: Count::default(),)*
                    responses: Default::default(),
                    responses_of_route_services: Default::default(),
                    latency: Histogram::new(&REQUEST_BOUNDS),
                    own_time: Histogram::new(&OWN_BOUNDS),
                    lookup_time: Histogram::new(&LOOKUP_BOUNDS),
                    apps: AppLatencies::default(),
                    active_apps: ActiveApps::default(),
                }
            }
        }

        /// What all threads have counted.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct Totals {
            $($(#[$doc])* pub $name: u64,)*
            $($(#[doc = $help])* pub $own: u64,)*
            /// Answers by the first digit of their status; place 0: none of 1 to 5.
            pub responses: [u64; 6],
            /// The same, of answers that route services gave.
            pub responses_of_route_services: [u64; 6],
            /// From a request's first byte to its answer's last.
            pub latency: HistogramTotal,
            /// The part of it that was spent in this router.
            pub own_time: HistogramTotal,
            /// Reading a request's fields and finding its route; of every sixteenth request.
            pub lookup_time: HistogramTotal,
            /// From first byte to last by application, if that is asked for.
            pub apps: BTreeMap<String, AppLatency>,
        }

        impl Totals {
            fn add(&mut self, of: &ThreadCounters) {
                $(self.$name = self.$name.wrapping_add(of.$name.get());)*
                $(self.$own = self.$own.wrapping_add(of.$own.get());)*
                for (all, one) in self.responses.iter_mut().zip(&of.responses) {
                    *all += one.get();
                }
                let services = &of.responses_of_route_services;
                for (all, one) in self.responses_of_route_services.iter_mut().zip(services) {
                    *all += one.get();
                }
                self.latency.add(&of.latency);
                self.own_time.add(&of.own_time);
                self.lookup_time.add(&of.lookup_time);
                of.apps.add_to(&mut self.apps);
            }

            /// Adds those that gorouter does not have to a page.
            pub(super) fn add_ours(&self, page: &mut Page) {
                $(page.$kind($metric, concat!($($help),*).trim_start(), self.$own);)*
            }
        }
    };
}

counters! {
    gorouters {
        /// Requests that this router answered itself with 400 or 404.
        rejected,
        /// Requests with a `Content-Length` without a value, which are refused.
        empty_content_length,
        /// Answers 502 for backends that failed.
        bad_gateways,
        /// Requests for which every endpoint had too many in flight.
        exhausted,
        /// Answers 503 because the backend's certificate is for another name.
        invalid_backend_id,
        /// Answers 526 because the backend's certificate is not trusted.
        invalid_backend_certificate,
        /// Answers 525 because the backend's TLS handshake failed otherwise.
        failed_handshakes,
        /// Upgrades that backends accepted.
        upgrades,
        /// Upgrades that failed.
        failed_upgrades,
        /// Attempts at backends.
        routed,
    }
    ours {
        /// Requests whose head broke the protocol.
        malformed: counter "router_malformed_requests_total",
        /// Attempts after the first.
        retries: counter "router_retries_total",
        /// Requests sent again because an idle connection turned out to be closed.
        stale_connections: counter "router_stale_connections_total",
        /// Attempts that ran into their time limit.
        timeouts: counter "router_timeouts_total",
        /// Requests that clients left before their answer.
        clients_gone: counter "router_clients_gone_total",
        /// Connections of clients that were accepted.
        accepted: counter "router_client_connections_total",
        /// Connections of clients that are open.
        open_clients: gauge "router_client_connections",
        /// Connections behind upgrades that are open.
        open_tunnels: gauge "router_tunnels",
        /// Handshakes of clients that failed, and PROXY headers that did not parse.
        failed_clients: counter "router_client_failures_total",
        /// Times that accepting paused because there were as many connections as allowed.
        full: counter "router_client_connections_full_total",
        /// Times that an idle connection was closed, or accepting paused, for want of a descriptor.
        no_descriptors: counter "router_descriptors_missing_total",
        /// Connections cut because large heads took all the memory that there is for them.
        no_memory: counter "router_memory_missing_total",
        /// Streams of HTTP/2 that were refused: tunnels, or no descriptor or memory was left.
        refused_streams: counter "router_refused_streams_total",
        /// Connections closed because a head, or all of a request, took too long.
        slow_clients: counter "router_slow_clients_total",
        /// Requests on their way.
        active: gauge "router_active_requests",
        /// Connections to backends that were begun.
        dialed: counter "router_backend_connections_total",
        /// Requests that found an idle connection to their backend.
        reused: counter "router_backend_reuses_total",
        /// Connections to backends that are open.
        open_backends: gauge "router_backend_connections",
        /// Idle ones of them.
        idle_backends: gauge "router_backend_connections_idle",
        /// Bytes received from clients.
        received: counter "router_client_received_bytes_total",
        /// Bytes sent to clients.
        sent: counter "router_client_sent_bytes_total",
        /// Lines of the access log.
        logged: counter "router_access_log_lines_total",
        /// Lines of the access log that were dropped because the writer was behind.
        log_drops: counter "router_access_log_drops_total",
        /// Lines of the access log that could not be written: a full disk, a closed pipe.
        log_failures: counter "router_access_log_failures_total",
        /// Lines of the access log that were given to syslog.
        syslog_lines: counter "router_syslog_lines_total",
        /// Lines of the access log that syslog did not take, or not soon enough.
        syslog_drops: counter "router_syslog_drops_total",
        /// Envelopes that were given to loggregator's agent.
        envelopes: counter "router_envelopes_total",
        /// Envelopes that loggregator's agent did not take, or not soon enough.
        envelope_drops: counter "router_envelope_drops_total",
        /// Requests, those too that no backend got.
        requests: counter "router_requests_total",
        /// Calls of applications that were not noted as active: they were read just then.
        active_app_misses: counter "router_active_app_misses_total",
        /// Requests whose latency was not recorded by application: metrics were read just then.
        app_latency_misses: counter "router_app_latency_misses_total",
        /// Turns of the threads' loops.
        turns: counter "router_loop_turns_total",
        /// Turns that took longer than 50 ms.
        late_turns: counter "router_loop_late_turns_total",
    }
}

/// What the data path counts. See the module.
#[derive(Debug)]
pub struct Counters {
    threads: Box<[Arc<ThreadCounters>]>,
    log_writer: Arc<ThreadCounters>,
    syslog: Arc<ThreadCounters>,
    envelopes: Arc<ThreadCounters>,
}

impl Counters {
    /// For so many threads.
    pub fn new(threads: usize) -> Self {
        Self {
            threads: (0..threads).map(|_| Arc::default()).collect(),
            log_writer: Arc::default(),
            syslog: Arc::default(),
            envelopes: Arc::default(),
        }
    }

    /// Threads that count.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Those of one thread; `None` beyond their number.
    pub fn thread(&self, index: usize) -> Option<&Arc<ThreadCounters>> {
        self.threads.get(index)
    }

    /// Those of the thread that writes the access log.
    pub(super) fn log_writer(&self) -> &Arc<ThreadCounters> {
        &self.log_writer
    }

    /// Those of the thread that sends it to syslog.
    pub(super) fn syslog(&self) -> &Arc<ThreadCounters> {
        &self.syslog
    }

    /// Those of the thread that sends envelopes.
    pub(super) fn envelopes(&self) -> &Arc<ThreadCounters> {
        &self.envelopes
    }

    /// Connections of clients that are open now and do not tunnel.
    pub fn open_exchanges(&self) -> u64 {
        let open = self.threads.iter().map(|thread| {
            let tunnels = thread.open_tunnels.get();
            thread.open_clients.get().saturating_sub(tunnels)
        });
        open.fold(0, u64::wrapping_add)
    }

    /// The applications that were called since the last time that this was asked.
    pub(super) fn take_active_apps(&self) -> BTreeSet<Text> {
        let mut all = BTreeSet::new();
        for thread in &self.threads {
            thread.active_apps.move_to(&mut all);
        }
        all
    }

    /// What all threads have counted so far.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for thread in &self.threads {
            totals.add(thread);
        }
        totals.add(&self.log_writer);
        totals.add(&self.syslog);
        totals.add(&self.envelopes);
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up() {
        let counters = Counters::new(2);
        let (one, two) = (counters.thread(0).unwrap(), counters.thread(1).unwrap());
        one.requests.increment();
        two.requests.add(2);
        two.responses[2].increment();
        one.open_clients.increment();
        one.open_clients.decrement();
        one.latency.record(MS);
        two.latency.record(3 * MS);
        two.latency.record(5_000 * MS);
        let totals = counters.totals();
        assert_eq!((totals.requests, totals.open_clients), (3, 0));
        assert_eq!(totals.responses, [0, 0, 1, 0, 0, 0]);
        assert_eq!(totals.latency.count, 3);
        assert_eq!(totals.latency.sum, 5_004 * MS);
        assert_eq!(
            totals.latency.buckets[..3],
            [(MS, 1), (2 * MS, 1), (4 * MS, 2)]
        );
        assert!(counters.thread(2).is_none());
    }
}
