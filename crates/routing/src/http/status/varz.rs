//! gorouter's old `/varz` document.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use measure::ProcessSampler;
use serde_json::{Value, json};

use crate::http::counters::{Counters, HistogramTotal, Totals};
use crate::table::Table;
use document::Secret;

/// Seconds between two samples of the rates.
pub const SAMPLED_EVERY: u64 = 5;

/// Milliseconds since nothing: as many as Go can tell (292 years), as gorouter has it.
const NEVER_MS: u64 = i64::MAX as u64 / 1_000_000;

/// Makes the document. gorouter's `tags` and `top10_app_requests` are not in it: the data
/// path counts nothing by component or application.
pub struct Varz {
    table: Arc<Table>,
    counters: Arc<Counters>,
    /// What is told once: type, index, host, credentials, uuid, start.
    fixed: Fixed,
    rates: Mutex<Rates>,
    process: Mutex<Process>,
}

/// What this process uses, as last looked at.
#[derive(Debug, Default)]
struct Process {
    sampler: Option<ProcessSampler>,
    cpu_cores: f64,
    memory_kib: u64,
}

/// What a router says of itself.
#[derive(Debug, Clone)]
pub struct Fixed {
    /// Number among its like.
    pub index: u32,
    /// Address of the status port.
    pub host: String,
    /// User and password of the status port.
    pub credentials: (String, Secret),
    /// Unique to this process.
    pub uuid: String,
    /// When it began.
    pub started: Instant,
    /// The same, as `2006-01-02 15:04:05 -0700`.
    pub start: String,
}

/// Requests a second, averaged over 1, 5 and 15 minutes with weights that fade.
#[derive(Debug, Default)]
struct Rates {
    averages: [f64; 3],
    requests: u64,
    sampled: bool,
}

impl Rates {
    fn sample(&mut self, requests: u64) {
        let now = requests.saturating_sub(self.requests) as f64 / SAMPLED_EVERY as f64;
        self.requests = requests;
        for (average, minutes) in self.averages.iter_mut().zip([1.0, 5.0, 15.0]) {
            let weight = 1.0 - (-(SAMPLED_EVERY as f64) / 60.0 / minutes).exp();
            match self.sampled {
                true => *average += weight * (now - *average),
                false => *average = now,
            }
        }
        self.sampled = true;
    }
}

impl Varz {
    /// For a router.
    pub fn new(table: Arc<Table>, counters: Arc<Counters>, fixed: Fixed) -> Self {
        Self {
            table,
            counters,
            fixed,
            rates: Mutex::default(),
            process: Mutex::new(Process {
                // Without it both numbers are 0.
                sampler: ProcessSampler::new(std::process::id()).ok(),
                ..Process::default()
            }),
        }
    }

    /// Takes note of requests and of what the process uses; to be called every [`SAMPLED_EVERY`] seconds.
    pub fn sample(&self) {
        let requests = self.counters.totals().routed;
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        rates.sample(requests);
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let sample = process.sampler.as_mut().and_then(|one| one.sample().ok());
        if let Some(sample) = sample {
            process.cpu_cores = sample.cpu_cores;
            process.memory_kib = sample.rss_bytes / 1024;
        }
    }

    /// The document, with an end of line. Keys are sorted, as Go sorts a map's.
    pub fn document(&self) -> String {
        let totals = self.counters.totals();
        let rate = self
            .rates
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .averages;
        let up = self.fixed.started.elapsed();
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let document = json!({
            "bad_gateways": totals.bad_gateways,
            "bad_requests": totals.rejected,
            "cpu": process.cpu_cores,
            "credentials": [self.fixed.credentials.0, *self.fixed.credentials.1],
            "droplets": self.droplets(),
            "host": self.fixed.host,
            "index": self.fixed.index,
            "latency": latency(&totals),
            "log_counts": {},
            "mem": process.memory_kib,
            "ms_since_last_registry_update": self.table.ms_since_update(wire::clock::now()).unwrap_or(NEVER_MS),
            "num_cores": std::thread::available_parallelism().map_or(1, usize::from),
            "rate": rate,
            "requests": totals.routed,
            "requests_per_sec": rate[0],
            "responses_2xx": totals.responses[2],
            "responses_3xx": totals.responses[3],
            "responses_4xx": totals.responses[4],
            "responses_5xx": totals.responses[5],
            "responses_xxx": totals.responses[0] + totals.responses[1],
            "start": self.fixed.start,
            "type": "Router",
            "uptime": uptime(up.as_secs()),
            "urls": self.table.len(),
            "uuid": self.fixed.uuid,
        });
        format!("{document}\n")
    }

    /// Endpoints over all routes.
    fn droplets(&self) -> usize {
        self.table
            .pools()
            .iter()
            .map(|pool| pool.endpoints().len())
            .sum()
    }
}

fn uptime(seconds: u64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    format!(
        "{}d:{}h:{}m:{}s",
        hours / 24,
        hours % 24,
        minutes % 60,
        seconds % 60
    )
}

/// Quantiles and the mean in seconds. gorouter has constants for the mean (`value`) and
/// for the number of requests (`samples`).
fn latency(totals: &Totals) -> Value {
    let mean = totals.latency.sum as f64 / 1e9 / totals.latency.count.max(1) as f64;
    let at = |share: f64| quantile(&totals.latency, share);
    json!({
        "50": at(0.50), "75": at(0.75), "90": at(0.90), "95": at(0.95), "99": at(0.99),
        "samples": totals.latency.count,
        "value": mean,
    })
}

/// A quantile in seconds, taken to lie evenly within its bucket.
fn quantile(histogram: &HistogramTotal, share: f64) -> f64 {
    let wanted = share * histogram.count as f64;
    let (mut bound_before, mut below_before) = (0.0, 0.0);
    for (bound, below) in &histogram.buckets {
        let (bound, below) = (*bound as f64 / 1e9, *below as f64);
        if below >= wanted && below > below_before {
            let part = (wanted - below_before) / (below - below_before);
            return bound_before + part.max(0.0) * (bound - bound_before);
        }
        (bound_before, below_before) = (bound, below);
    }
    bound_before * f64::from(u8::from(histogram.count > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uptime_reads_as_gorouter_writes_it() {
        assert_eq!(uptime(23), "0d:0h:0m:23s");
        assert_eq!(uptime(2 * 86_400 + 3 * 3600 + 61), "2d:3h:1m:1s");
    }

    #[test]
    fn a_quantile_lies_within_its_bucket() {
        let histogram = HistogramTotal {
            buckets: vec![(1_000_000_000, 50), (2_000_000_000, 100)],
            count: 100,
            sum: 0,
        };
        assert_eq!(quantile(&histogram, 0.5), 1.0);
        assert_eq!(quantile(&histogram, 0.75), 1.5);
        assert_eq!(quantile(&HistogramTotal::default(), 0.5), 0.0);
    }

    #[test]
    fn rates_fade() {
        let mut rates = Rates::default();
        rates.sample(50);
        assert_eq!(rates.averages, [10.0; 3]);
        rates.sample(50);
        assert!(rates.averages[0] < rates.averages[2] && rates.averages[2] < 10.0);
    }
}
