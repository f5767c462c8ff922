//! The result of a load, as it is stored, printed as JSON and drawn. Version 3 of the
//! schema that `docs/load.md` documents. Times are in seconds.

mod notes;
mod numbers;
mod of;
mod warm_up;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::knee::Capacity;
use crate::recording::{ConnectionCounts, Phase, Tenths};

pub use numbers::heat;
pub use warm_up::WarmUp;

/// Version of this schema; readers refuse a newer one. In version 1 the numbers were those
/// of the steady part, and until version 2 percentiles were of whole answers only; see
/// [`Summary::read_from_older`].
pub const SCHEMA: u32 = 3;

/// What one load came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// [`SCHEMA`] of the writer.
    pub schema: u32,
    /// Name of the load (in an experiment), or `load`.
    pub name: String,
    /// Target as people write it: `http://127.0.0.1:8080/`.
    pub target: String,
    /// `open` or `closed`.
    pub model: String,
    /// Arrivals in words: `poisson 5000/s`; for a closed loop `64 users`.
    pub arrivals: String,
    /// Begin of the load, nanoseconds of Unix time.
    pub began_unix_ns: i64,
    /// Length of the whole load.
    pub duration_s: f64,
    /// Why it ended early, when it did: the numbers are those until then.
    pub partial: Option<String>,
    /// Whether these numbers say something about the target.
    pub validity: Validity,
    /// Length of the load's own time, in which requests were due. Rates are over it.
    #[serde(default)]
    pub sending_s: f64,
    /// What latency leaves out at the start because it was asked for; 0: nothing.
    #[serde(default)]
    pub warm_up_s: f64,
    /// What came after the load's own time.
    #[serde(default)]
    pub after_end: AfterEnd,
    /// The part in which the load was steady: a second view, beside the numbers of all.
    pub steady: Steady,
    /// Requests a second.
    pub rate: Rates,
    /// How many requests.
    pub requests: Counts,
    /// Latency, from the intended and from the actual send time.
    pub latency: Latency,
    /// Lateness of sends by the generator's own fault.
    pub lateness: Distribution,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Names of these statuses, where the protocol has some (gRPC).
    #[serde(default)]
    pub status_names: BTreeMap<u16, String>,
    /// Requests without a whole answer, by phase and cause.
    pub errors: Vec<ErrorCount>,
    /// Whole answers that were refused, by assertion.
    pub refusals: BTreeMap<String, u64>,
    /// Bytes sent and received.
    pub bytes: Bytes,
    /// Connections over the whole load.
    pub connections: ConnectionCounts,
    /// The generator itself.
    pub generator: GeneratorUse,
    /// The same numbers for each kind of request, when there are several.
    pub kinds: Vec<KindSummary>,
    /// Over time; a warm-up included.
    pub timeline: Vec<Slot>,
    /// The same in tenths of a second, as far as an hour goes. Empty in what older versions
    /// wrote.
    #[serde(default)]
    pub tenths: Tenths,
    /// HdrHistograms of the latency above, and of lateness: V2, deflated, base64, in microseconds.
    pub histograms: Histograms,
    /// What was found when a limit was searched for.
    pub capacity: Option<Capacity>,
    /// The floor of this machine, when `headroom calibrate` measured it.
    pub floor: Option<Floor>,
    /// What a reader should know besides: that certificates were not checked, why a
    /// rate was chosen.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Whether a load says something about its target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Validity {
    /// It does.
    pub valid: bool,
    /// Why it does not.
    pub reasons: Vec<Reason>,
    /// Limits that differ from their defaults, in words.
    pub loosened: Vec<String>,
}

/// A reason why a load is INVALID.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// Short constant name: `generator-late`, `under-sent`, `steal`, `no-ports`,
    /// `no-descriptors`, `little`, `worker-lost`, `nothing-due`.
    pub check: String,
    /// What was found, against which limit.
    pub found: String,
    /// What to do next.
    pub help: String,
}

/// The part of a load that is steady (MSER-5): a view beside the whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Steady {
    /// Where it begins, from the start of the load.
    pub from_s: f64,
    /// Where it ends.
    pub to_s: f64,
    /// `steady`; `asked` (what comes after the warm-up that was asked for); in the others
    /// the part is the whole load: `short` (too few slots to tell), `not-steady`,
    /// `growing`, `ramp` (rates that change by plan), `whole` (nobody looked).
    pub state: String,
    /// How fast latency grows, where the state is `growing`.
    #[serde(default)]
    pub growth: Option<Growth>,
    /// The numbers of the part, where it is not the whole load.
    #[serde(default)]
    pub numbers: Option<PartNumbers>,
}

/// How fast the median of latency grows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// Seconds a second.
    pub per_s: f64,
    /// Ends of its interval.
    pub low: f64,
    /// See `low`.
    pub high: f64,
    /// Probability with which the interval holds it.
    pub confidence: f64,
}

/// Numbers of a part of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartNumbers {
    /// Requests a second.
    pub rate: Rates,
    /// How many requests.
    pub requests: Counts,
    /// Latency.
    pub latency: Latency,
}

/// What came after a load's own time: answers that were still awaited, and requests that
/// were due before its end and sent after it. The counts of the whole load hold them, its
/// rates do not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AfterEnd {
    /// Until when, from the end of the load's own time.
    pub length_s: f64,
    /// Sent.
    pub sent: u64,
    /// Answered whole.
    pub answered: u64,
    /// Of these, answered and not refused.
    pub good: u64,
    /// Refused or without a whole answer.
    pub failed: u64,
}

/// Requests a second, within the load's own time and over it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Planned; absent in a closed loop.
    pub asked: Option<f64>,
    /// Sent.
    pub sent: f64,
    /// Answered whole and not refused.
    pub good: f64,
    /// The most that may have been good without the generator's part in it; absent where that changes
    /// nothing.
    #[serde(default)]
    pub good_at_best: Option<f64>,
}

/// Numbers of requests.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Due by the schedule.
    pub planned: u64,
    /// Sent.
    pub sent: u64,
    /// Sent after waiting for a connection.
    pub waited: u64,
    /// Answered whole.
    pub answered: u64,
    /// Of the answers, those that an assertion or a status made failures.
    pub refused: u64,
    /// Without a whole answer.
    pub errors: u64,
    /// Sent once more because the target left them out or closed their connection.
    #[serde(default)]
    pub retried: u64,
    /// All that were tried: sent, or due and never sent.
    #[serde(default)]
    pub tried: u64,
    /// Of these, refused, without a whole answer, or never sent.
    #[serde(default)]
    pub failed: u64,
    /// The share of those tried that failed; absent when nothing was tried.
    #[serde(default)]
    pub failed_share: Option<f64>,
    /// Of those that failed, requests that the generator may have kept from a connection, as it
    /// read answers late.
    #[serde(default)]
    pub starved: u64,
}

/// Latency, both ways.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// From the intended send time: what a user feels.
    pub intended: Distribution,
    /// From the actual send time: what the target took.
    pub actual: Distribution,
}

/// A distribution of times, in seconds. Percentiles and the largest are of all requests,
/// of which those without a whole answer are the slowest; the other numbers are of whole
/// answers. A percentile with fewer than ten samples beyond it is absent. Nearest rank, to
/// three digits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Number of samples: of latencies, the whole answers.
    pub count: u64,
    /// Requests without a whole answer.
    #[serde(default)]
    pub unanswered: u64,
    /// Those of the numbers below, by the name of the field, that fall among requests without
    /// an answer, and are absent for that.
    #[serde(default)]
    pub no_answer: Vec<String>,
    /// Smallest.
    pub min: Option<f64>,
    /// Mean.
    pub mean: Option<f64>,
    /// Standard deviation.
    pub stddev: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 75th percentile.
    pub p75: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// 99.99th percentile.
    pub p9999: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
    /// Between which values those of the above lie to which the generator may have added
    /// something worth saying, by the name of the field. A number that is given is the
    /// upper one; one whose bounds are too far apart to be of use is absent. An upper one that
    /// falls among requests without an answer is infinite: `null` in JSON.
    #[serde(default, deserialize_with = "numbers::bounds")]
    pub bounds: BTreeMap<String, [f64; 2]>,
}

/// Requests that failed in one way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCount {
    /// Where.
    pub phase: Phase,
    /// How.
    pub cause: String,
    /// How often.
    pub count: u64,
}

/// Bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bytes {
    /// Sent.
    pub sent: u64,
    /// Received.
    pub received: u64,
}

/// What the generator used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GeneratorUse {
    /// Threads, over all workers.
    pub threads: u32,
    /// Workers; 1 without `--workers`.
    pub workers: u32,
    /// Processor time in all, user and system.
    pub cpu_s: f64,
    /// Processor time for one request.
    pub cpu_per_request_s: Option<f64>,
    /// Largest share of a processor that one thread used, over the load's own time.
    pub busiest_thread: f64,
    /// How sends were paced: `exact`, `spin`, `tick 1ms`, `coalesce`.
    pub pace: String,
    /// Largest share of time taken by the hypervisor in any slot.
    pub steal: f64,
    /// Time in which its threads could have run and had no processor, in all.
    #[serde(default)]
    pub waited_s: f64,
    /// Time in which they were stopped.
    #[serde(default)]
    pub stopped_s: f64,
    /// The longest that an answer may have waited to be read.
    #[serde(default)]
    pub read_late_s: f64,
    /// Requests in flight on average, as seen.
    pub in_flight: f64,
    /// The same as Little's law has it, X·R.
    pub in_flight_little: f64,
    /// Most requests in flight that the load allows; absent in a closed loop, whose users
    /// are as many as they are.
    #[serde(default)]
    pub in_flight_most: Option<u64>,
}

/// Numbers of one kind of request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KindSummary {
    /// Its name.
    pub name: String,
    /// How many.
    pub requests: Counts,
    /// Latency.
    pub latency: Latency,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
}

/// One slot of the timeline.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Slot {
    /// Start, from the start of the load.
    pub t_s: f64,
    /// Length.
    pub length_s: f64,
    /// Whether it lies after the load's own time: nothing was due in it.
    #[serde(default)]
    pub after_end: bool,
    /// Due.
    pub planned: u64,
    /// Sent.
    pub sent: u64,
    /// Answered whole and not refused.
    pub good: u64,
    /// Refused or without a whole answer.
    pub failed: u64,
    /// Of these, without a whole answer.
    #[serde(default)]
    pub unanswered: u64,
    /// Median latency from intended send. It and the two below are absent where nothing
    /// ended, and where they fall among requests without an answer.
    pub p50: Option<f64>,
    /// 99th percentile from intended send; shown whatever the number of samples.
    pub p99: Option<f64>,
    /// Largest from intended send.
    pub max: Option<f64>,
    /// Most requests in flight.
    pub in_flight: u64,
    /// Most arrivals due and not sent.
    pub backlog: u64,
    /// Answers by latency from intended send, as pairs of bin and count, ascending;
    /// bin `b` holds latencies from `1e-5 * 10^(b/10)` s to that of `b + 1`; 0 to 79.
    pub heat: Vec<(u8, u64)>,
    /// Sent later than the load's `late_after`, by the generator's own fault. This and what
    /// follows is 0 in what older versions wrote.
    #[serde(default)]
    pub late: u64,
    /// Sent after waiting, as every connection that the load allows was busy.
    #[serde(default)]
    pub waited: u64,
    /// Sent once more, as their connection was closed.
    #[serde(default)]
    pub retried: u64,
    /// Connections that were opened.
    #[serde(default)]
    pub opened: u64,
    /// Of these, with a handshake of TLS from the start.
    #[serde(default)]
    pub handshakes: u64,
    /// Of these, with TLS that took up an earlier session.
    #[serde(default)]
    pub resumed: u64,
    /// Processor time of the generator's busiest thread, in cores.
    #[serde(default)]
    pub busiest: f64,
    /// Share of the time in which a thread of the generator could have run and had no
    /// processor, on average over its threads.
    #[serde(default)]
    pub waited_share: f64,
}

/// Histograms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Histograms {
    /// Latency from the intended send.
    pub intended: String,
    /// Latency from the actual send.
    pub actual: String,
    /// Lateness of sends.
    pub lateness: String,
}

/// What this machine can tell apart, measured by `headroom calibrate`. In seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Floor {
    /// When it was measured, nanoseconds of Unix time.
    pub measured_unix_ns: i64,
    /// Median of a ping-pong of one byte over loopback, sleeping.
    pub ping_pong_p50: f64,
    /// Its 99th percentile.
    pub ping_pong_p99: f64,
    /// The same, spinning.
    pub ping_pong_spin_p50: f64,
    /// How late a sleep of 100 µs to 1 ms ends: median.
    pub timer_p50: f64,
    /// Its 99th percentile.
    pub timer_p99: f64,
    /// Longest time in which a spinning thread did not run.
    pub longest_gap: f64,
    /// Share of time lost to gaps above 100 µs.
    pub gap_share: f64,
    /// Share of time that the hypervisor took away.
    pub steal: f64,
    /// Cost of reading the clock.
    pub clock: f64,
}

#[cfg(test)]
mod tests;
