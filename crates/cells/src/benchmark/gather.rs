//! Passes of convergence, as the metrics of the BBS tell them.

use std::time::Duration;

use http::{StatusCode, Uri};
use net::Client;
use tokio::time::{Instant, sleep};

use super::times::Stopwatch;
use super::{BenchmarkError, Options, Times};

/// Pause between two looks; passes that end between two looks are told as one, and not counted.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Longest wait for a pass that looks at everything.
const PASS_WITHIN: Duration = Duration::from_secs(120);

/// What passes had taken by some moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Passes {
    pub(super) count: u64,
    /// Time and records of the newest.
    pub(super) seconds: f64,
    pub(super) judged: u64,
}

impl Passes {
    /// Reads a page of metrics; `None`: it does not tell of passes.
    pub(super) fn read(page: &str) -> Option<Self> {
        let value = |name: &str| {
            let mut lines = page.lines();
            let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line?.trim().parse::<f64>().ok()
        };
        Some(Self {
            count: value("bbs_convergence_passes_total")? as u64,
            seconds: value("bbs_convergence_last_seconds")?,
            judged: value("bbs_convergence_last_judged")? as u64,
        })
    }
}

/// Waits for as many passes as are asked for that looked at every record.
pub(super) async fn passes(client: &Client, options: &Options) -> Result<Times, BenchmarkError> {
    let passes = Stopwatch::new();
    if options.passes == 0 {
        return Ok(passes.times());
    }
    let uri = format!("{}/metrics", options.bbs.trim_end_matches('/'));
    let refuse = |cause: String| BenchmarkError::Metrics {
        uri: uri.clone(),
        cause,
    };
    let address: Uri = uri.parse().map_err(|_| refuse("no address".to_owned()))?;
    let mut before: Option<u64> = None;
    let (mut noted, mut newest) = (0, Instant::now());
    while noted < options.passes {
        let answer = client.get(&address).await;
        let answer = answer.map_err(|error| refuse(error.to_string()))?;
        if answer.status != StatusCode::OK {
            return Err(refuse(format!("status {}", answer.status.as_u16())));
        }
        let page = String::from_utf8_lossy(&answer.body);
        let now = Passes::read(&page);
        let now = now.ok_or_else(|| refuse("it tells nothing of passes".to_owned()))?;
        let is_next = before.is_some_and(|before| now.count > before);
        if is_next && now.judged >= u64::from(options.processes) {
            passes.note(Duration::try_from_secs_f64(now.seconds).unwrap_or_default());
            (noted, newest) = (noted + 1, Instant::now());
        } else if newest.elapsed() > PASS_WITHIN {
            return Err(BenchmarkError::NoPass {
                records: options.processes,
                within: PASS_WITHIN,
            });
        }
        before = Some(now.count);
        sleep(LOOK_EVERY).await;
    }
    Ok(passes.times())
}
