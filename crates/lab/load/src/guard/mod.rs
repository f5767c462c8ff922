//! Whether a load says something about its target, or about its generator.
//!
//! Each check is a rule with a limit in [`GuardLimits`]; a load that breaks one is
//! INVALID. Limits can be loosened, and every result then says so.

mod limits;

use std::time::Duration;

use units::{show_count, show_seconds, show_share};

use crate::recording::{NO_DESCRIPTORS, NO_PORTS, Recorded, Recording, Span};
use crate::segment::Model;
use crate::summary::{Reason, Validity};
use crate::workload::{GuardLimits, Pace, Workload};

/// Fewest answers from which Little's law can tell something.
const LITTLE_ANSWERS: u64 = 200;
/// Fewest late sends that say something: of a hundred requests two may be late by chance.
const LATE_SENDS: u64 = 3;
/// What rounding and reading the clock may add to or take from one latency.
const LITTLE_NOISE: Duration = Duration::from_micros(2);

/// Judges a load by every rule of the guard.
pub fn check(workload: &Workload, recorded: &Recorded) -> Validity {
    let seen = Seen {
        workload,
        limits: &workload.guard,
        recorded,
        total: &recorded.total,
        requests: recorded.total.requests(),
    };
    let checks = [
        Seen::lost,
        Seen::ports,
        Seen::descriptors,
        Seen::processor,
        Seen::late,
        Seen::connections,
        Seen::under_sent,
        Seen::steal,
        Seen::throttled,
        Seen::little,
    ];
    let reasons: Vec<Reason> = checks.iter().filter_map(|check| check(&seen)).collect();
    Validity {
        valid: reasons.is_empty(),
        reasons,
        loosened: limits::changed(workload),
    }
}

struct Seen<'r> {
    workload: &'r Workload,
    limits: &'r GuardLimits,
    recorded: &'r Recorded,
    total: &'r Span,
    /// All kinds together.
    requests: Recording,
}

impl Seen<'_> {
    fn lost(&self) -> Option<Reason> {
        let lost = &self.recorded.lost;
        reason(
            !lost.is_empty(),
            "worker-lost",
            || {
                let names = lost.join(", ");
                let noun = if lost.len() == 1 {
                    "worker was"
                } else {
                    "workers were"
                };
                format!("{} {noun} lost on the way: {names}", lost.len())
            },
            "look at the log of the worker, and repeat the load",
        )
    }

    fn ports(&self) -> Option<Reason> {
        let failed = self.caused_by(NO_PORTS);
        reason(
            failed > 0,
            "no-ports",
            || {
                format!(
                    "{} connections found no local port left",
                    show_count(failed as f64)
                )
            },
            "keep connections alive, hold fewer, or widen net.ipv4.ip_local_port_range",
        )
    }

    fn descriptors(&self) -> Option<Reason> {
        let failed = self.caused_by(NO_DESCRIPTORS);
        reason(
            failed > 0,
            "no-descriptors",
            || {
                let failed = show_count(failed as f64);
                format!("{failed} connections found no file descriptor left")
            },
            "raise the limit with `ulimit -n`, or hold fewer connections",
        )
    }

    /// Connections that failed for one cause, in whatever phase it was noticed.
    fn caused_by(&self, cause: &str) -> u64 {
        let errors = self.requests.errors.iter();
        errors
            .filter(|(failure, _)| failure.cause == cause)
            .map(|(_, count)| count)
            .sum()
    }

    /// A spinning thread always uses all of its processor, and a closed loop is meant to
    /// take what there is.
    fn processor(&self) -> Option<Reason> {
        if !self.open() || self.workload.pace == Pace::Spin {
            return None;
        }
        let sending = sending_time(self.recorded, self.total);
        let busiest = self.total.threads_cpu.iter().max()?;
        let share = busiest.as_secs_f64() / sending;
        reason(
            sending > 0.0 && share > self.limits.thread_cpu,
            "generator-cpu",
            || {
                let (share, limit) = (show_share(share), show_share(self.limits.thread_cpu));
                format!("a thread of the generator used {share} of its processor, limit {limit}")
            },
            "use more threads, --tick 1ms, or workers on other machines",
        )
    }

    fn late(&self) -> Option<Reason> {
        if !self.open() {
            return None;
        }
        let after = late_after(self.workload);
        let lateness = &self.requests.lateness;
        let late = lateness.count_above(after);
        let share = late as f64 / lateness.count() as f64;
        reason(
            late >= LATE_SENDS && share > self.limits.late_share,
            "late-sends",
            || {
                let after = show_seconds(after.as_secs_f64());
                let (share, limit) = (show_share(share), show_share(self.limits.late_share));
                format!("{share} of requests were sent more than {after} late, limit {limit}")
            },
            "give the generator a processor of its own (--cpus), more threads, or a lower rate",
        )
    }

    fn connections(&self) -> Option<Reason> {
        if !self.open() {
            return None;
        }
        let waited = self.requests.waited;
        let share = waited as f64 / self.requests.sent as f64;
        reason(
            waited > 0 && share > self.limits.waited_share,
            "in-flight-cap",
            || {
                let (share, limit) = (show_share(share), show_share(self.limits.waited_share));
                let most = self.workload.connections.most;
                format!(
                    "{share} of requests waited because all {most} connections were busy, \
                     limit {limit}"
                )
            },
            "allow more with --max-connections, or lower the rate: the target may be overloaded",
        )
    }

    fn under_sent(&self) -> Option<Reason> {
        if !self.open() {
            return None;
        }
        let begun: u64 = self
            .first_steps()
            .map(|kind| kind.sent + kind.unsendable())
            .sum();
        let planned = self.total.planned;
        let share = begun as f64 / planned as f64;
        reason(
            planned > 0 && share < self.limits.sent_share,
            "under-sent",
            || {
                let (begun, all) = (show_count(begun as f64), show_count(planned as f64));
                let (share, limit) = (show_share(share), show_share(self.limits.sent_share));
                format!("{begun} of {all} planned requests were sent, {share}, limit {limit}")
            },
            "lower the rate, or allow more connections (--max-connections) and threads",
        )
    }

    /// Recordings of the requests that arrivals begin with; later steps of a journey
    /// are not planned.
    fn first_steps(&self) -> impl Iterator<Item = &Recording> {
        let mut next = 0;
        let journeys = self.workload.mix.journeys.iter();
        journeys.filter_map(move |journey| {
            let first = next;
            next += journey.steps.len();
            self.total.kinds.get(first)
        })
    }

    fn steal(&self) -> Option<Reason> {
        let share = self.total.machine.steal;
        reason(
            share > self.limits.steal_share,
            "steal",
            || {
                let (share, limit) = (show_share(share), show_share(self.limits.steal_share));
                format!("the hypervisor gave {share} of the processors to others, limit {limit}")
            },
            "repeat on a machine that is not shared, or when it is quiet",
        )
    }

    fn throttled(&self) -> Option<Reason> {
        let times = self.total.machine.throttled;
        reason(
            times > 0,
            "throttled",
            || {
                let times = show_count(times as f64);
                format!("a processor quota (cgroup) stopped the generator {times} times")
            },
            "raise or remove the quota of the generator's container",
        )
    }

    /// The requests seen in flight must be those that the latencies account for: both
    /// are the sum of the time that each request took. What ended without an answer has
    /// no latency, and may have been in flight for as long as the timeout.
    fn little(&self) -> Option<Reason> {
        let requests = &self.requests;
        if requests.answered < LITTLE_ANSWERS {
            return None;
        }
        let told = requests.actual.sum_seconds();
        let noise = LITTLE_NOISE.as_secs_f64() * requests.answered as f64;
        let broken = requests.failed().saturating_sub(requests.unsendable());
        let unfinished = requests.sent.saturating_sub(requests.answered + broken);
        let untold = broken as f64 * self.workload.timeout.as_secs_f64()
            + unfinished as f64 * self.total.length.as_secs_f64();
        let least = told * (1.0 - self.limits.little) - noise;
        // A timeout takes effect a little after its time, so both may be more.
        let most = (told + untold) * (1.0 + self.limits.little) + noise;
        let seen = self.total.in_flight_seconds;
        let length = self.total.length.as_secs_f64().max(f64::MIN_POSITIVE);
        reason(
            !(least..=most).contains(&seen),
            "little",
            || {
                let (seen, told) = (show_count(seen / length), show_count(told / length));
                let limit = show_share(self.limits.little);
                format!(
                    "{seen} requests were seen in flight on average, but rate times latency \
                     is {told}; they may differ by {limit} (Little's law)"
                )
            },
            "the generator's books do not balance: please report this with the --json result",
        )
    }

    fn open(&self) -> bool {
        matches!(self.recorded.segment.model, Model::Open(_))
    }
}

/// From when on a send counts as late: a tick delays sends on purpose.
fn late_after(workload: &Workload) -> Duration {
    match workload.pace {
        Pace::Tick(tick) => workload.guard.late_after + tick,
        _ => workload.guard.late_after,
    }
}

/// Seconds of `span` in which requests were due; what comes after is waiting for answers.
pub(crate) fn sending_time(recorded: &Recorded, span: &Span) -> f64 {
    let end = match recorded.segment.length.duration {
        Some(duration) => duration.min(span.end()),
        None => span.end(),
    };
    end.saturating_sub(span.start).as_secs_f64()
}

fn reason(broken: bool, check: &str, found: impl FnOnce() -> String, help: &str) -> Option<Reason> {
    broken.then(|| Reason {
        check: check.to_owned(),
        found: found(),
        help: help.to_owned(),
    })
}

#[cfg(test)]
mod tests;
