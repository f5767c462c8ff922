//! One span of time.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::doubt::Delays;
use super::kind::Recording;
use super::tenths::Tenths;
use super::tried::Tried;

/// Numbers of one span of time. Spans of the same workload can be added.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// Start, from the start of the segment.
    pub start: Duration,
    /// Length.
    pub length: Duration,
    /// Whether the segment was over when the span began: nothing fell due in it, and
    /// what is counted in it came too late to belong to the segment's own time.
    #[serde(default)]
    pub after_end: bool,
    /// Requests that fell due in the span, by the schedule or as a later step of a
    /// journey (closed loops: requests sent).
    pub planned: u64,
    /// One per step of the mix, in its order. Answers and failures are counted in the span in
    /// which they came.
    pub kinds: Vec<Recording>,
    /// When the earliest of the requests was due that were answered or failed in the span, from
    /// the start of the segment; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earliest_due: Option<Duration>,
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
    /// How the generator's threads were kept from running.
    pub delays: Delays,
    /// Its tenths of a second.
    #[serde(default)]
    pub tenths: Tenths,
}

/// Connections in one span.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionCounts {
    /// Opened (handshakes finished).
    pub opened: u64,
    /// Of these, with a handshake of TLS from the start.
    #[serde(default)]
    pub handshakes: u64,
    /// Of these, with TLS that took up an earlier session.
    #[serde(default)]
    pub resumed: u64,
    /// That could not be opened.
    pub failed: u64,
    /// Closed by the target while a request was neither sent nor awaited, or as its
    /// answers said.
    pub closed: u64,
    /// Closed by the generator, because more came on them than one answer has.
    #[serde(default)]
    pub surplus: u64,
    /// Requests on a connection that had carried one before.
    pub reused: u64,
    /// Requests that were the first of their connection and had no answer in time; of connections that carry
    /// one at a time.
    #[serde(default)]
    pub unserved: u64,
    /// Open at the end of the span.
    pub open: u64,
}

/// What the machine did to the generator in one span.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineNoise {
    /// Share of processor time that the hypervisor gave to others, 0 to 1; the largest
    /// of all workers.
    pub steal: f64,
    /// Times that a cgroup's quota stopped the generator.
    pub throttled: u64,
}

impl Span {
    /// Nothing yet, for a mix of so many kinds of requests.
    pub fn empty(kinds: usize) -> Self {
        Self {
            kinds: vec![Recording::default(); kinds],
            ..Self::default()
        }
    }

    /// Forgets everything but the number of kinds, and keeps the memory.
    pub fn clear(&mut self) {
        self.kinds.iter_mut().for_each(Recording::clear);
        let kinds = std::mem::take(&mut self.kinds);
        let threads_cpu = std::mem::take(&mut self.threads_cpu);
        let tenths = std::mem::take(&mut self.tenths);
        *self = Self::empty(0);
        (self.kinds, self.threads_cpu, self.tenths) = (kinds, threads_cpu, tenths);
        self.threads_cpu.clear();
        self.tenths.clear();
    }

    /// Adds what other threads saw in the same time. The peaks of `backlog` and
    /// `in_flight` are added too: together they were at most that high.
    pub fn merge(&mut self, other: &Self) {
        let end = self.end().max(other.end());
        // An empty span has no place in time yet.
        if self.length.is_zero() || (!other.length.is_zero() && other.start < self.start) {
            self.start = other.start;
        }
        self.after_end = other.after_end && (self.length.is_zero() || self.after_end);
        self.length = end.saturating_sub(self.start);
        self.add_counts(other);
        self.tenths.merge(&other.tenths);
        self.connections.open += other.connections.open;
        self.backlog += other.backlog;
        self.in_flight += other.in_flight;
        self.threads_cpu.extend_from_slice(&other.threads_cpu);
        self.machine.steal = self.machine.steal.max(other.machine.steal);
    }

    /// Adds the span that follows in time, of the same threads.
    pub fn append(&mut self, next: &Self) {
        let own = self.length.as_secs_f64();
        let theirs = next.length.as_secs_f64();
        if self.length.is_zero() {
            self.start = next.start;
        }
        self.after_end = next.after_end && (self.length.is_zero() || self.after_end);
        self.length = next.end().max(self.end()).saturating_sub(self.start);
        self.add_counts(next);
        self.tenths.append(&next.tenths);
        self.connections.open = next.connections.open;
        self.backlog = self.backlog.max(next.backlog);
        self.in_flight = self.in_flight.max(next.in_flight);
        let threads = self.threads_cpu.len().max(next.threads_cpu.len());
        self.threads_cpu.resize(threads, Duration::ZERO);
        for (sum, cpu) in self.threads_cpu.iter_mut().zip(&next.threads_cpu) {
            *sum += *cpu;
        }
        if own + theirs > 0.0 {
            let stolen = self.machine.steal * own + next.machine.steal * theirs;
            self.machine.steal = stolen / (own + theirs);
        }
    }

    /// Takes note of when requests were due that have ended in the span.
    pub fn ended(&mut self, due: Option<Duration>) {
        self.earliest_due = match (self.earliest_due, due) {
            (Some(earliest), Some(due)) => Some(earliest.min(due)),
            (one, other) => one.or(other),
        };
    }

    /// What adds up in the same way over threads and over time.
    fn add_counts(&mut self, other: &Self) {
        self.planned += other.planned;
        self.ended(other.earliest_due);
        let kinds = self.kinds.len().max(other.kinds.len());
        self.kinds.resize_with(kinds, Recording::default);
        for (sum, kind) in self.kinds.iter_mut().zip(&other.kinds) {
            sum.merge(kind);
        }
        self.connections.opened += other.connections.opened;
        self.connections.handshakes += other.connections.handshakes;
        self.connections.resumed += other.connections.resumed;
        self.connections.failed += other.connections.failed;
        self.connections.closed += other.connections.closed;
        self.connections.surplus += other.connections.surplus;
        self.connections.reused += other.connections.reused;
        self.connections.unserved += other.connections.unserved;
        self.in_flight_seconds += other.in_flight_seconds;
        self.machine.throttled += other.machine.throttled;
        self.delays.merge(&other.delays);
    }

    /// All kinds of requests together.
    pub fn requests(&self) -> Recording {
        let mut sum = Recording::default();
        self.kinds.iter().for_each(|kind| sum.merge(kind));
        sum
    }

    /// What was tried, and what of it failed, over all kinds of requests.
    pub fn tried(&self) -> Tried {
        let mut tried = Tried::default();
        for kind in &self.kinds {
            let Tried { all, failed } = kind.tried();
            tried.all += all;
            tried.failed += failed;
        }
        tried
    }

    /// Its end, from the start of the segment.
    pub fn end(&self) -> Duration {
        self.start + self.length
    }

    /// Takes as little memory as it can; what is added later makes it large again.
    pub fn pack(&mut self) {
        self.kinds.iter_mut().for_each(Recording::pack);
        self.tenths.pack();
    }
}
