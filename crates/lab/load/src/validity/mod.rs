//! Whether a load says something about its target, or about its generator.
//!
//! A generator that sends or reads late makes latencies longer. By how much at most is
//! recorded ([`Doubt`](crate::recording::Doubt)), so every number lies between two
//! [`Bounds`], and what it is used for decides whether these are good enough: a load is
//! INVALID where the truth could turn the conclusion round.
//!
//! What cannot be bounded is a rule with a limit in [`GuardLimits`]; a load that breaks
//! one is INVALID whatever it is used for. Limits can be loosened, and every result then
//! says so.

mod bounds;
mod limits;

use std::time::Duration;

use units::{show_count, show_rate, show_seconds, show_share};

pub(crate) use bounds::most_good;
pub use bounds::{Between, Bounds, more_asked};

use crate::recording::{KEPT, NO_DESCRIPTORS, NO_PORTS, Recorded, Recording, Span};
use crate::slo::{Judgement, Quantity, Statistic};
use crate::summary::{Reason, Validity};
use crate::workload::{GuardLimits, Workload};

/// The name of the reason that concerns latencies alone: the generator may have made so
/// much of them that a conclusion could be wrong.
pub const GENERATOR_LATE: &str = "generator-late";

/// The check that what a worker measured is not missing.
const WORKER_LOST: &str = "worker-lost";

/// Fewest answers from which Little's law can tell something.
const LITTLE_ANSWERS: u64 = 200;
/// Time without a processor, and share of one in use, from which these are named as why
/// a generator was late.
const WAITED_S: f64 = 0.01;
const BUSY: f64 = 0.8;
/// Share of the failures, and of all requests, beyond which those that the generator may have made
/// say nothing that a reader could use of the target's; share of the good answers beyond which those
/// that it may have made too late do not.
const DOUBTFUL: f64 = 0.2;
const FEW: f64 = 0.01;
/// Fewer requests than these are no share that could be of use.
const SEVERAL: f64 = 10.0;
/// Descriptors that a generator needs besides connections, generously.
const OTHER_DESCRIPTORS: u64 = 64;
/// What rounding and reading the clock may add to or take from one latency.
const LITTLE_NOISE: Duration = Duration::from_micros(2);

/// Judges a load of which nothing particular is asked: its median must be told, its share of
/// failures, and its rate unless its users set that.
pub fn check(workload: &Workload, recorded: &Recorded) -> Validity {
    judged_by(workload, recorded, |seen| {
        seen.failures()
            .or_else(|| seen.median())
            .or_else(|| seen.rate())
    })
}

/// Judges a load by what an objective came to: the terms that could be turned round by
/// what the generator may have added count, and no other number does.
pub fn check_for(workload: &Workload, recorded: &Recorded, judged: &Judgement) -> Validity {
    judged_by(workload, recorded, |seen| seen.objective(judged))
}

fn judged_by(
    workload: &Workload,
    recorded: &Recorded,
    latencies: impl Fn(&Seen<'_>) -> Option<Reason>,
) -> Validity {
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
        Seen::nothing_due,
        Seen::under_sent,
        Seen::steal,
        Seen::little,
    ];
    let reasons = checks.iter().filter_map(|check| check(&seen));
    let reasons: Vec<Reason> = reasons.chain(latencies(&seen)).collect();
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
            WORKER_LOST,
            || {
                let names = lost.join(", ");
                let noun = match lost.len() {
                    1 => "worker was",
                    _ => "workers were",
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
                let most = self.workload.connections.most;
                format!(
                    "{failed} connections found no file descriptor left: {most} connections need \
                     {}",
                    u64::from(most) + OTHER_DESCRIPTORS
                )
            },
            "allow the process more (`ulimit -Hn` as root, nofile of a container), or lower \
             --max-connections",
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

    /// The share of requests that failed.
    fn failures(&self) -> Option<Reason> {
        let tried = self.requests.tried();
        let high = tried.share()?;
        let low = tried.had_served(self.requests.starved()).share()?;
        reason(
            high - low > (DOUBTFUL * high).max(FEW),
            GENERATOR_LATE,
            || {
                let (low, high) = (show_share(low), show_share(high));
                format!(
                    "the share of failures may be anything from {low} to {high}: {}",
                    self.delay_cause()
                )
            },
            self.help(),
        )
    }

    /// The median from the intended send.
    fn median(&self) -> Option<Reason> {
        let between = Between::intended(&self.requests);
        let bounds = between.bounds(|all| all.value(Statistic::P50))?;
        reason(
            bounds.withheld(self.limits.late_after),
            GENERATOR_LATE,
            || {
                let (low, high) = (show_seconds(bounds.low), show_seconds(bounds.high));
                format!(
                    "the median may be anything from {low} to {high}: {}",
                    self.delay_cause()
                )
            },
            self.help(),
        )
    }

    /// Good answers a second.
    fn rate(&self) -> Option<Reason> {
        let own = self.recorded.sending();
        let good = own.requests().good();
        let most = most_good(self.recorded, &self.requests, good);
        let apart = most - good as f64;
        let seconds = own.length.as_secs_f64().max(f64::MIN_POSITIVE);
        reason(
            self.recorded.segment.model.is_open() && apart >= SEVERAL && apart > DOUBTFUL * most,
            GENERATOR_LATE,
            || {
                let (low, high) = (show_rate(good as f64 / seconds), show_rate(most / seconds));
                format!(
                    "the rate of good answers may be anything from {low} to {high}: {}",
                    self.delay_cause()
                )
            },
            self.help(),
        )
    }

    /// Terms that the generator may have turned round.
    fn objective(&self, judged: &Judgement) -> Option<Reason> {
        // One term that surely fails decides.
        let doubtful = judged.measured.iter().filter(|one| one.doubtful());
        let doubtful: Vec<String> = doubtful
            .filter(|_| judged.holds.is_none())
            .map(|one| {
                let show: fn(f64) -> String = match one.term.quantity {
                    Quantity::Intended(_) | Quantity::Actual(_) => show_seconds,
                    Quantity::Errors | Quantity::Sent => show_share,
                    Quantity::Rate => show_rate,
                };
                let (low, high) = (show(one.least()), show(one.most()));
                format!("{} may be {low} to {high}", one.term.quantity)
            })
            .collect();
        reason(
            !doubtful.is_empty(),
            GENERATOR_LATE,
            || format!("{}: {}", doubtful.join(", "), self.delay_cause()),
            self.help(),
        )
    }

    /// What kept the generator from being in time.
    fn delay_cause(&self) -> String {
        let delays = &self.total.delays;
        let (waited, stopped) = (delays.waited.as_secs_f64(), delays.stopped.as_secs_f64());
        let length = self.total.length.as_secs_f64().max(f64::MIN_POSITIVE);
        let busiest = self.total.threads_cpu.iter().max().copied();
        let used = busiest.unwrap_or_default().as_secs_f64() / length;
        let mut found = Vec::new();
        if stopped > 0.0 {
            found.push(format!("was stopped for {}", show_seconds(stopped)));
        }
        if waited > WAITED_S {
            found.push(format!("waited {} for a processor", show_seconds(waited)));
        }
        if used > BUSY {
            found.push(format!("had {} of a processor to do", show_share(used)));
        }
        match found.is_empty() {
            true => "the generator was late".to_owned(),
            false => format!("the generator {}", found.join(" and ")),
        }
    }

    fn help(&self) -> &'static str {
        match self.total.machine.throttled {
            0 => {
                "give the generator a processor of its own (--cpus), more threads, a lower rate \
                 or fewer users, or another machine (--workers)"
            }
            _ => "a processor quota (cgroup) stops the generator: raise or remove it",
        }
    }

    /// A load that asked nothing says nothing; one that was ended early may have had no time to.
    fn nothing_due(&self) -> Option<Reason> {
        let asked = self.total.planned + self.requests.tried().all;
        reason(
            asked == 0 && self.recorded.cut.is_none(),
            "nothing-due",
            || "no request was due: the rate is too low for so short a load".to_owned(),
            "raise the rate, or let the load go on for longer",
        )
    }

    fn under_sent(&self) -> Option<Reason> {
        if !self.recorded.segment.model.is_open() {
            return None;
        }
        // Those that found every connection kept by the load itself were not tried at the target.
        let kept = self.caused_by(KEPT);
        let begun = (self.requests.sent + self.requests.unsendable()).saturating_sub(kept);
        let planned = self.total.planned;
        let share = begun as f64 / planned as f64;
        reason(
            planned > 0 && share < self.limits.sent_share,
            "under-sent",
            || {
                let (begun, all) = (show_count(begun as f64), show_count(planned as f64));
                let (share, limit) = (show_share(share), show_share(self.limits.sent_share));
                let why = match kept {
                    0 => "",
                    _ => "; others found every connection kept by a journey that pauses",
                };
                format!("{begun} of {all} planned requests were sent, {share}, limit {limit}{why}")
            },
            "lower the rate, or allow more connections (--max-connections) and threads",
        )
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

    /// The requests seen in flight must be those that the latencies account for: both
    /// are the sum of the time that each request took. What ended without an answer has
    /// no latency, and may have been in flight for as long as the timeout.
    fn little(&self) -> Option<Reason> {
        let requests = &self.requests;
        if requests.answered < LITTLE_ANSWERS {
            return None;
        }
        let told = requests.actual.sum_seconds() + requests.retried_seconds;
        let noise = LITTLE_NOISE.as_secs_f64() * requests.answered as f64;
        let broken = requests.failed().saturating_sub(requests.unsendable());
        let unfinished = requests.sent.saturating_sub(requests.answered + broken);
        let delays = &self.total.delays;
        // A thread that did not run noticed them so much later.
        let longest = self.workload.timeout + delays.waited + delays.stopped;
        let untold = broken as f64 * longest.as_secs_f64()
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
}

impl Validity {
    /// Whether it says nothing about its target whatever it is used for. Otherwise it may
    /// only be that latencies are too uncertain for one conclusion, and not for another.
    pub fn spoiled(&self) -> bool {
        self.reasons
            .iter()
            .any(|reason| reason.check != GENERATOR_LATE)
    }

    /// Whether even its counts say nothing: what a part of it counted is not there.
    pub fn miscounted(&self) -> bool {
        self.reasons
            .iter()
            .any(|reason| reason.check == WORKER_LOST)
    }
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
