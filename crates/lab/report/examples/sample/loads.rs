//! Made-up loads whose shapes are those of a real target: a pool of connections, and
//! stalls during which nothing is answered.

use std::collections::BTreeMap;
use std::time::Duration;

use lab_load::Summary;
use lab_load::recording::{ConnectionCounts, Latencies, Phase, Tenths};
use lab_load::slo::Statistic;
use lab_load::summary::{
    AfterEnd, Bytes, Counts, Distribution, ErrorCount, Floor, GeneratorUse, Histograms,
    KindSummary, Latency, Rates, Reason, SCHEMA, Slot, Steady, Validity,
};
use measure::Histogram;

use crate::model::Dice;
use crate::searches;

type Failure = Box<dyn std::error::Error>;

/// Begin of every load, unless it is part of a run.
pub(crate) const BEGAN_NS: i64 = 1_795_253_400_000_000_000;

/// What is asked of a made-up target, and how it answers.
pub(crate) struct Sketch {
    pub(crate) name: &'static str,
    pub(crate) rate: f64,
    pub(crate) seconds: u32,
    /// Slots for each second.
    pub(crate) slots: u32,
    pub(crate) connections: usize,
    /// Median time to answer.
    pub(crate) service_s: f64,
    /// Begin and length of each stall.
    pub(crate) stalls: Vec<(f64, f64)>,
    /// Share of requests that fail.
    pub(crate) failing: f64,
    pub(crate) closed: bool,
}

impl Default for Sketch {
    fn default() -> Self {
        Self {
            name: "load",
            rate: 2000.0,
            seconds: 30,
            slots: 1,
            connections: 32,
            service_s: 0.0021,
            stalls: Vec::new(),
            failing: 0.0,
            closed: false,
        }
    }
}

#[derive(Default, Clone)]
struct Tally {
    planned: u64,
    good: u64,
    failed: u64,
    in_flight: u64,
    backlog: u64,
    times: Histogram,
    heat: BTreeMap<u8, u64>,
}

impl Tally {
    /// Of the failures, those without an answer.
    fn unanswered(&self) -> u64 {
        self.failed - self.failed / 3
    }

    fn latency(&self, statistic: Statistic) -> Option<f64> {
        let value = Latencies::of(&self.times, self.unanswered()).value(statistic);
        value.filter(|time| time.is_finite())
    }
}

impl Sketch {
    /// Runs the sketch.
    pub(crate) fn run(&self, dice: &mut Dice) -> Result<Summary, Failure> {
        let slots = (self.seconds * self.slots) as usize;
        let slot_s = 1.0 / f64::from(self.slots);
        let mut tallies = vec![Tally::default(); slots];
        let mut free = vec![0.0_f64; self.connections];
        let (mut intended, mut actual, mut late) = <(Histogram, Histogram, Histogram)>::default();
        let (mut due, mut waited) = (0.0_f64, 0);
        while let Some(next) = (0..free.len()).min_by(|&a, &b| free[a].total_cmp(&free[b])) {
            due = if self.closed {
                free[next]
            } else {
                due + dice.exponential(1.0 / self.rate)
            };
            if due >= f64::from(self.seconds) {
                break;
            }
            waited += u64::from(free[next] > due);
            let sent = free[next].max(due) + dice.around(8e-6, 1.6);
            // The first seconds warm the target up.
            let warm = 1.0 + 4.0 * (-due / 1.2).exp();
            let mut done = sent + dice.around(self.service_s * warm, 1.45);
            for (from, length) in &self.stalls {
                if done > *from && sent < from + length {
                    done = done.max(from + length + dice.around(self.service_s, 1.3));
                }
            }
            free[next] = done;
            let busy = free.iter().filter(|at| **at > due).count() as u64;
            let tally = &mut tallies[((due / slot_s) as usize).min(slots - 1)];
            tally.planned += 1;
            tally.in_flight = tally.in_flight.max(busy);
            tally.backlog = tally.backlog.max(((sent - due) * self.rate) as u64);
            if dice.chance(self.failing * if due > 12.0 { 1.0 } else { 0.0 }) {
                tally.failed += 1;
                continue;
            }
            let felt = if self.closed { done - sent } else { done - due };
            // Answers after the end belong to no slot.
            let Some(answered) = tallies.get_mut((done / slot_s) as usize) else {
                continue;
            };
            answered.good += 1;
            answered.times.record(Duration::from_secs_f64(felt));
            let bin = ((felt.log10() + 5.0) * 10.0).clamp(0.0, 79.0) as u8;
            *answered.heat.entry(bin).or_default() += 1;
            if due >= self.warm_s() {
                intended.record(Duration::from_secs_f64(felt));
                actual.record(Duration::from_secs_f64(done - sent));
                late.record(Duration::from_secs_f64(dice.around(9e-6, 1.7)));
            }
        }
        self.summary(&tallies, waited, &intended, &actual, &late)
    }

    fn warm_s(&self) -> f64 {
        if self.seconds < 10 { 0.0 } else { 4.0 }
    }

    fn summary(
        &self,
        tallies: &[Tally],
        waited: u64,
        intended: &Histogram,
        actual: &Histogram,
        late: &Histogram,
    ) -> Result<Summary, Failure> {
        let slot_s = 1.0 / f64::from(self.slots);
        let seconds = f64::from(self.seconds);
        let steady_s = seconds - self.warm_s();
        let timeline: Vec<Slot> = tallies
            .iter()
            .enumerate()
            .map(|(slot, tally)| Slot {
                t_s: slot as f64 * slot_s,
                length_s: slot_s,
                after_end: false,
                planned: tally.planned,
                sent: tally.planned,
                good: tally.good,
                failed: tally.failed,
                unanswered: tally.unanswered(),
                p50: tally.latency(Statistic::P50),
                p99: tally.latency(Statistic::P99),
                max: tally.latency(Statistic::Max),
                in_flight: tally.in_flight,
                backlog: tally.backlog,
                heat: tally.heat.iter().map(|(bin, n)| (*bin, *n)).collect(),
                ..Slot::default()
            })
            .collect();
        let failed: u64 = tallies.iter().map(|tally| tally.failed).sum();
        let sent = intended.count() + failed;
        let unanswered: u64 = tallies.iter().map(Tally::unanswered).sum();
        let of = |answers| Distribution::from(Latencies::of(answers, unanswered));
        let mean_s = of(actual).mean.unwrap_or(0.0);
        Ok(Summary {
            schema: SCHEMA,
            name: self.name.into(),
            target: "http://127.0.0.1:8080/".into(),
            model: if self.closed { "closed" } else { "open" }.into(),
            arrivals: if self.closed {
                format!("{} users", self.connections)
            } else {
                format!("poisson {}/s", self.rate)
            },
            began_unix_ns: BEGAN_NS,
            duration_s: seconds,
            partial: None,
            validity: Validity {
                valid: true,
                reasons: Vec::new(),
                loosened: Vec::new(),
            },
            sending_s: seconds,
            warm_up_s: 0.0,
            after_end: AfterEnd::default(),
            steady: Steady {
                from_s: self.warm_s(),
                to_s: seconds,
                state: if self.seconds < 10 { "short" } else { "steady" }.into(),
                ..Steady::default()
            },
            rate: Rates {
                asked: (!self.closed).then_some(self.rate),
                sent: sent as f64 / steady_s,
                good: intended.count() as f64 / steady_s,
                good_at_best: None,
            },
            requests: Counts {
                planned: sent,
                sent,
                waited,
                answered: intended.count(),
                refused: failed - unanswered,
                errors: unanswered,
                retried: 0,
                tried: sent,
                failed,
                failed_share: (sent > 0).then(|| failed as f64 / sent as f64),
                starved: 0,
            },
            latency: Latency {
                intended: of(intended),
                actual: of(actual),
            },
            lateness: late.into(),
            statuses: BTreeMap::from([(200, intended.count()), (503, failed - unanswered)]),
            status_names: BTreeMap::new(),
            errors: if failed > 0 {
                vec![
                    error(Phase::Read, "reset", failed / 2),
                    error(Phase::Timeout, "timeout", unanswered - failed / 2),
                ]
            } else {
                Vec::new()
            },
            refusals: if failed > 0 {
                BTreeMap::from([("status 503".into(), failed - unanswered)])
            } else {
                BTreeMap::new()
            },
            bytes: Bytes {
                sent: sent * 78,
                received: intended.count() * 853,
            },
            connections: ConnectionCounts {
                opened: self.connections as u64,
                handshakes: 0,
                resumed: 0,
                failed: 0,
                closed: failed / 2,
                surplus: 0,
                reused: sent.saturating_sub(self.connections as u64),
                unserved: 0,
                open: self.connections as u64,
            },
            generator: GeneratorUse {
                threads: 1,
                workers: 1,
                cpu_s: sent as f64 * 5.4e-6,
                cpu_per_request_s: (sent > 0).then_some(5.4e-6),
                busiest_thread: (sent as f64 / steady_s * 5.4e-6 + 0.01).min(0.99),
                pace: if self.closed { "coalesce" } else { "exact" }.into(),
                steal: 0.002,
                in_flight: sent as f64 / steady_s * mean_s,
                in_flight_little: sent as f64 / steady_s * mean_s * 1.003,
                in_flight_most: None,
                waited_s: 0.004,
                stopped_s: 0.0,
                read_late_s: 3e-4,
            },
            kinds: Vec::new(),
            timeline,
            tenths: Tenths::default(),
            histograms: Histograms {
                intended: intended.to_base64()?,
                actual: actual.to_base64()?,
                lateness: late.to_base64()?,
            },
            capacity: None,
            floor: None,
            notes: Vec::new(),
        })
    }
}

/// The loads that stand alone, by the name of their page.
pub(crate) fn alone() -> Result<Vec<(&'static str, Summary)>, Failure> {
    let mut dice = Dice::new(4);
    let stalls = vec![(9.0, 0.8), (17.0, 0.8), (25.0, 0.8)];
    let mut valid = Sketch {
        stalls: stalls.clone(),
        failing: 0.002,
        ..Sketch::default()
    }
    .run(&mut dice)?;
    valid.floor = Some(floor());
    valid.kinds = kinds(&valid);
    let mut invalid = Sketch {
        rate: 6000.0,
        service_s: 0.0042,
        connections: 24,
        seconds: 12,
        ..Sketch::default()
    }
    .run(&mut dice)?;
    spoil(&mut invalid);
    let closed = Sketch {
        closed: true,
        connections: 8,
        stalls,
        ..Sketch::default()
    }
    .run(&mut dice)?;
    let mut found = Sketch::default().run(&mut dice)?;
    found.capacity = Some(searches::found(&mut dice, 8400.0));
    let mut refused = Sketch {
        seconds: 6,
        ..Sketch::default()
    }
    .run(&mut dice)?;
    refused.capacity = Some(searches::nothing_held());
    let empty = Sketch {
        rate: 1e-9,
        seconds: 5,
        ..Sketch::default()
    }
    .run(&mut dice)?;
    let mut huge = Sketch {
        seconds: 60,
        slots: 10,
        rate: 500.0,
        ..Sketch::default()
    }
    .run(&mut dice)?;
    for (n, slot) in huge.timeline.iter_mut().enumerate() {
        slot.heat = (0..80)
            .map(|bin| (bin, 1 + (n as u64 * 7 + u64::from(bin) * 13) % 977))
            .collect();
    }
    Ok(vec![
        ("valid", valid),
        ("invalid", invalid),
        ("closed", closed),
        ("knee", found),
        ("no-knee", refused),
        ("empty", nothing(empty)),
        ("huge", huge),
    ])
}

/// A load of which nothing came.
fn nothing(mut summary: Summary) -> Summary {
    summary.timeline.clear();
    summary.histograms.intended.clear();
    summary.histograms.actual.clear();
    summary.partial = Some("interrupted after 0.2 s".into());
    summary
}

/// Makes a load one that the guard refuses.
pub(crate) fn spoil(summary: &mut Summary) {
    let reason = |check: &str, found: &str, help: &str| Reason {
        check: check.into(),
        found: found.into(),
        help: help.into(),
    };
    summary.validity.valid = false;
    summary.validity.reasons = vec![
        reason(
            "generator-late",
            "the median may be anything from 1.2 ms to 9.4 ms: the generator waited 3.1 s for a processor \
             and had 93 % of a processor to do",
            "give the generator a processor of its own (--cpus), more threads, a lower rate or fewer users, \
             or another machine (--workers)",
        ),
        reason(
            "steal",
            "the hypervisor gave 7.1 % of the processors to others, limit 2 %",
            "repeat on a machine that is not shared, or when it is quiet",
        ),
    ];
    summary.validity.loosened = vec!["the generator may add 5 ms (usually 1 ms)".into()];
    summary.generator.busiest_thread = 0.93;
}

fn kinds(summary: &Summary) -> Vec<KindSummary> {
    let kind = |name: &str, share: f64| KindSummary {
        name: name.into(),
        requests: Counts {
            planned: (summary.requests.planned as f64 * share) as u64,
            sent: (summary.requests.sent as f64 * share) as u64,
            answered: (summary.requests.answered as f64 * share) as u64,
            waited: 0,
            refused: 0,
            errors: (summary.requests.errors as f64 * share) as u64,
            failed: (summary.requests.errors as f64 * share) as u64,
            ..Counts::default()
        },
        latency: summary.latency.clone(),
        statuses: BTreeMap::from([(200, (summary.requests.answered as f64 * share) as u64)]),
    };
    vec![kind("list routes", 0.7), kind("add route", 0.3)]
}

fn floor() -> Floor {
    Floor {
        measured_unix_ns: BEGAN_NS,
        ping_pong_p50: 55e-6,
        ping_pong_p99: 102e-6,
        ping_pong_spin_p50: 21e-6,
        timer_p50: 58e-6,
        timer_p99: 170e-6,
        longest_gap: 0.0042,
        gap_share: 0.003,
        steal: 0.001,
        clock: 25e-9,
    }
}

fn error(phase: Phase, cause: &str, count: u64) -> ErrorCount {
    ErrorCount {
        phase,
        cause: cause.into(),
        count,
    }
}
