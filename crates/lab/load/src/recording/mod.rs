//! What was seen: numbers of one span of time, which add up to those of longer spans,
//! of several threads and of several machines.

use std::collections::BTreeMap;
use std::time::Duration;

use measure::Histogram;

use crate::segment::Segment;

/// Numbers of one span of time. Spans of the same workload can be added.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Start, from the start of the segment.
    pub start: Duration,
    /// Length.
    pub length: Duration,
    /// Arrivals that fell due in the span (closed loops: requests sent).
    pub planned: u64,
    /// One per step of the mix, in its order.
    pub kinds: Vec<Recording>,
    /// Connections.
    pub connections: ConnectionCounts,
    /// Integral of requests in flight over the span, in request-seconds.
    pub in_flight_seconds: f64,
    /// Most arrivals at any moment that were due and not yet sent.
    pub backlog: u64,
    /// Most requests in flight at any moment.
    pub in_flight: u64,
    /// Processor time of each generator thread in the span, threads of all workers.
    pub threads_cpu: Vec<Duration>,
    /// What the machine did to the generator.
    pub machine: MachineNoise,
}

/// Requests of one kind in one span.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// Requests whose bytes were handed to the kernel.
    pub sent: u64,
    /// Of these, requests that had to wait because every connection was busy.
    pub waited: u64,
    /// Whole answers, whatever their status.
    pub answered: u64,
    /// Whole answers that an assertion (or a status of 400 and above) made failures.
    pub refused: u64,
    /// Time from the intended send to the end of the answer, of every whole answer.
    pub intended: Histogram,
    /// Time from the actual send to the end of the answer, of the same answers.
    pub actual: Histogram,
    /// Actual minus intended send time, of every send that did not have to wait for a
    /// connection: the generator's own lateness.
    pub lateness: Histogram,
    /// Answers by status (HTTP; gRPC: `grpc-status`; others: nothing).
    pub statuses: BTreeMap<u16, u64>,
    /// Requests without a whole answer, by phase and cause.
    pub errors: BTreeMap<Failure, u64>,
    /// Answers refused, by assertion.
    pub refusals: BTreeMap<String, u64>,
    /// Bytes handed to the kernel (before TLS).
    pub bytes_sent: u64,
    /// Bytes taken from it (after TLS).
    pub bytes_received: u64,
}

/// How an exchange failed.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Failure {
    /// Where it stood.
    pub phase: Phase,
    /// What happened: a short constant text such as `refused`, `reset`, `timeout`,
    /// `closed early`, `no ports left`, `no descriptors left`, `certificate unknown`.
    pub cause: String,
}

/// Where an exchange stood when it failed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The name of the target.
    Resolve,
    /// TCP.
    Connect,
    /// The handshake of TLS.
    Tls,
    /// Sending the request.
    Write,
    /// Waiting for the answer or reading it.
    Read,
    /// No whole answer within the timeout.
    Timeout,
    /// The answer broke the protocol.
    Protocol,
}

/// Connections in one span.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ConnectionCounts {
    /// Opened (handshakes finished).
    pub opened: u64,
    /// That could not be opened.
    pub failed: u64,
    /// Closed by the target while a request was neither sent nor awaited, or as its
    /// answers said.
    pub closed: u64,
    /// Requests on a connection that had carried one before.
    pub reused: u64,
    /// Open at the end of the span.
    pub open: u64,
}

/// What the machine did to the generator in one span.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct MachineNoise {
    /// Share of processor time that the hypervisor gave to others, 0 to 1; the largest
    /// of all workers.
    pub steal: f64,
    /// Times that a cgroup's quota stopped the generator.
    pub throttled: u64,
}

/// A segment as it went.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// What was asked.
    pub segment: Segment,
    /// When it began, in nanoseconds of Unix time.
    pub began_unix_ns: i64,
    /// All of it.
    pub total: Span,
    /// The same in the order of time, as many spans as memory allows; see [`Timeline`].
    pub timeline: Timeline,
    /// Why it ended before its time; `None`: it did not.
    pub cut: Option<String>,
    /// Workers lost on the way, by name.
    pub lost: Vec<String>,
}

/// Spans in order of time, in bounded memory: when there are more than
/// [`Timeline::MOST`], neighbours are merged.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timeline {
    spans: Vec<Span>,
}

impl Timeline {
    /// Most spans that are kept.
    pub const MOST: usize = 600;
}
