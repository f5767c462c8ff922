//! Runs as they are: load with a shape of its own, warm-up, bursts, neighbours that are alike, an outlier. Nothing in
//! them is wrong until a test plants it.

use std::collections::BinaryHeap;

use stats::SplitMix;

use crate::Finding;
use crate::detect::{
    AttemptCounts, ConnectionCounts, DatagramCounts, GeneratorUse, LoopTurns, Phase, ProcessUse,
    QueueLevels, ResourceUse, SlotLatencies, ThreadUse, connections, drops, exhaustion, generator,
    growth, handshakes, pool, processor, queue, repeats, retries, stalls,
};

/// Seconds of a run, and samples a second.
pub(super) const SECONDS: usize = 120;
pub(super) const SAMPLES: usize = 10;

/// `[begin, end)` in nanoseconds.
pub(super) type Intervals = Vec<(i64, i64)>;

/// Everything that was recorded of one system.
#[derive(Debug, Clone, Default)]
pub(super) struct Run {
    /// Load, as a share of its mean, for each sample.
    pub(super) load: Vec<f64>,
    pub(super) phase: (Intervals, Intervals),
    pub(super) threads: Vec<Vec<f64>>,
    pub(super) idle: Vec<f64>,
    pub(super) outside: Vec<f64>,
    /// Levels of a queue for each sample.
    pub(super) queue: Vec<f64>,
    pub(super) descriptors: Vec<f64>,
    pub(super) turns: Vec<(f64, f64)>,
    pub(super) latency_s: Vec<f64>,
    pub(super) arrivals: Vec<f64>,
    /// For each second.
    pub(super) requests: Vec<f64>,
    pub(super) attempts: Vec<f64>,
    /// Requests and what they called, for each second.
    pub(super) called: (Vec<f64>, Vec<f64>),
    pub(super) opened: Vec<f64>,
    pub(super) full: Vec<f64>,
    pub(super) resumed: Vec<f64>,
    pub(super) received: Vec<f64>,
    pub(super) dropped: Vec<f64>,
    pub(super) late: Vec<f64>,
    pub(super) generator: Vec<f64>,
    pub(super) generator_waits: Vec<f64>,
    pub(super) in_flight_limit: Vec<f64>,
}

/// Noise around 1 whose neighbours are alike.
pub(super) struct Alike {
    value: f64,
    alike: f64,
    spread: f64,
}

impl Alike {
    pub(super) fn new(random: &mut SplitMix, alike: f64, spread: f64) -> Self {
        let value = random.normal();
        Self {
            value,
            alike,
            spread,
        }
    }

    pub(super) fn next(&mut self, random: &mut SplitMix) -> f64 {
        let fresh = (1.0 - self.alike * self.alike).sqrt();
        self.value = self.alike * self.value + fresh * random.normal();
        (1.0 + self.spread * self.value).max(0.05)
    }
}

pub(super) fn between(random: &mut SplitMix, low: f64, high: f64) -> f64 {
    low + (high - low) * random.uniform()
}

/// Between two values that are factors apart.
pub(super) fn within_factors(random: &mut SplitMix, low: f64, high: f64) -> f64 {
    between(random, low.ln(), high.ln()).exp()
}

/// The number of events where so many are expected: exact for few, normal for many.
pub(super) fn count(random: &mut SplitMix, mean: f64) -> f64 {
    if mean > 50.0 {
        return (mean + mean.sqrt() * random.normal()).round().max(0.0);
    }
    let (mut count, mut left) = (0.0, mean);
    loop {
        left -= random.exponential();
        if left < 0.0 {
            return count;
        }
        count += 1.0;
    }
}

/// A part of a day, a step of load, or even load; always with noise.
fn load(random: &mut SplitMix) -> Vec<f64> {
    let shape = random.below(3);
    let (phase, height) = (random.uniform(), between(random, 0.1, 0.4));
    let step_at = between(random, 0.2, 0.8);
    let mut noise = Alike::new(random, 0.9, 0.05);
    (0..SECONDS * SAMPLES)
        .map(|sample| {
            let at = sample as f64 / (SECONDS * SAMPLES) as f64;
            let level = match shape {
                0 => 1.0 + height * ((at + phase) * std::f64::consts::TAU).sin(),
                1 if at > step_at => 1.0 + height,
                _ => 1.0,
            };
            level * noise.next(random)
        })
        .collect()
}

/// Instants at which entities come, in seconds: so many a second, with the load's shape.
pub(super) fn arrivals(random: &mut SplitMix, load: &[f64], rate: f64) -> Vec<f64> {
    let highest = load.iter().copied().fold(0.0, f64::max);
    let mut at_s = 0.0;
    let mut all = Vec::new();
    loop {
        at_s += random.exponential() / (rate * highest);
        let Some(level) = load.get((at_s * SAMPLES as f64) as usize) else {
            return all;
        };
        if random.uniform() < level / highest {
            all.push(at_s);
        }
    }
}

/// First come, first served by so many servers: when each waited and was served, in nanoseconds.
/// Between one and the next a server takes a moment.
pub(super) fn served(
    arrivals: &[f64],
    servers: usize,
    moment_s: f64,
    mut service_s: impl FnMut() -> f64,
) -> (Intervals, Intervals) {
    let ns = |seconds: f64| (seconds * 1e9) as i64;
    let mut free: BinaryHeap<std::cmp::Reverse<i64>> = BinaryHeap::new();
    let (mut inside, mut waiting) = (Vec::new(), Vec::new());
    for at in arrivals {
        let at = ns(*at);
        let earliest = if free.len() < servers {
            None
        } else {
            free.pop()
        };
        let begin = match earliest {
            Some(std::cmp::Reverse(end)) if end > at => end + ns(moment_s),
            _ => at,
        };
        let end = begin + ns(service_s()).max(1);
        waiting.push((at, begin));
        inside.push((begin, end));
        free.push(std::cmp::Reverse(end));
    }
    (inside, waiting)
}

/// How many are in intervals at each sample.
pub(super) fn sampled(intervals: &[(i64, i64)]) -> Vec<f64> {
    let mut levels = vec![0.0; SECONDS * SAMPLES];
    let sample = 1_000_000_000 / SAMPLES as i64;
    for (from, to) in intervals {
        let first = from.div_euclid(sample) + 1;
        for number in first..=to.div_euclid(sample) {
            if let Some(level) = levels.get_mut(number as usize) {
                *level += 1.0;
            }
        }
    }
    levels
}

impl Run {
    /// A run in which nothing is wrong.
    pub(super) fn clean(seed: u64) -> Self {
        let mut source = SplitMix::new(seed);
        let random = &mut source;
        let load = load(random);
        let mut run = Self {
            load,
            ..Self::default()
        };
        run.lifecycle(random);
        run.processors(random);
        run.waiting(random);
        run.resources(random);
        run.loops(random);
        run.latencies(random);
        run.counts(random);
        run.calls(random);
        run
    }

    /// Entities that pass a delay and then a phase which takes as many as come.
    fn lifecycle(&mut self, random: &mut SplitMix) {
        let rate = within_factors(random, 5.0, 500.0);
        let service_s = within_factors(random, 0.01, 1.0);
        let delay_s = within_factors(random, 0.005, 0.5);
        let constant = random.below(2) == 0;
        let paced = random.below(4) == 0;
        let come = if paced {
            let all = (rate * SECONDS as f64) as usize;
            (0..all).map(|number| number as f64 / rate).collect()
        } else {
            arrivals(random, &self.load, rate)
        };
        for at in come {
            let begin = at + delay_s * random.exponential();
            let takes = service_s
                * if constant {
                    between(random, 0.9, 1.1)
                } else {
                    random.exponential()
                };
            let ns = |seconds: f64| (seconds * 1e9) as i64;
            self.phase.1.push((ns(at), ns(begin)));
            self.phase.0.push((ns(begin), ns(begin + takes)));
        }
    }

    fn processors(&mut self, random: &mut SplitMix) {
        self.idle = vec![0.0; self.load.len()];
        self.threads = (0..4)
            .map(|_| {
                // At the height of the load a thread may use up to nine tenths of a processor.
                let highest = self.load.iter().copied().fold(0.0, f64::max);
                let level = between(random, 0.02, 0.9) / highest;
                let spread = between(random, 0.02, 0.1);
                let mut noise = Alike::new(random, 0.5, spread);
                let samples = self.load.iter().enumerate();
                samples
                    .map(|(sample, load)| {
                        let warms_up = sample < 8 * SAMPLES;
                        let used =
                            level * load * noise.next(random) + if warms_up { 0.5 } else { 0.0 };
                        used.min(1.0)
                    })
                    .collect()
            })
            .collect();
        let processors = 8.0;
        for (sample, idle) in self.idle.iter_mut().enumerate() {
            let used: f64 = self.threads.iter().map(|thread| thread[sample]).sum();
            *idle = (processors - used - 0.3 * random.exponential()).max(0.0);
        }
    }

    /// A queue with room to spare, but at times not much.
    fn waiting(&mut self, random: &mut SplitMix) {
        let servers = 1 + random.below(8);
        let busy = between(random, 0.3, 0.97);
        let service_s = 0.005;
        let highest = self.load.iter().copied().fold(0.0, f64::max);
        let rate = busy * servers as f64 / service_s / highest;
        let arrivals = arrivals(random, &self.load, rate);
        let (_, waiting) = served(&arrivals, servers, 0.0, || service_s * random.exponential());
        self.queue = sampled(&waiting);
    }

    fn resources(&mut self, random: &mut SplitMix) {
        let mut noise = Alike::new(random, 0.9, 0.05);
        let level = between(random, 100.0, 600.0);
        let samples = self.load.iter();
        self.descriptors = samples
            .map(|load| (level * load * noise.next(random)).min(850.0))
            .collect();
    }

    /// A fleet that fills up, and a loop that does not mind.
    fn loops(&mut self, random: &mut SplitMix) {
        let most = within_factors(random, 100.0, 10_000.0);
        let mut noise = Alike::new(random, 0.7, 0.2);
        let odd = random.below(40);
        self.turns = (0..40)
            .map(|turn| {
                let size = (most * f64::from(turn + 1) / 40.0).ceil();
                let long = if turn as usize == odd { 8.0 } else { 1.0 };
                (size, 0.05 * long * noise.next(random))
            })
            .collect();
    }

    /// Latencies with stalls that have no rhythm, or the rhythm of the load.
    fn latencies(&mut self, random: &mut SplitMix) {
        let beat = 20 + random.below(100);
        // Of the load's rhythm, without a rhythm, with half of one, none.
        let kind = random.below(4);
        let gap = within_factors(random, 15.0, 200.0);
        let mut next_stall = gap;
        let mut noise = Alike::new(random, 0.6, 0.15);
        let odd = random.below(self.load.len());
        let rate = within_factors(random, 10.0, 200.0);
        for (sample, load) in self.load.iter().enumerate() {
            let burst = kind == 0 && sample % beat < 2;
            let due = sample as f64 >= next_stall;
            if due {
                let random_gap = random.exponential();
                let even =
                    (random.exponential() + random.exponential() + random.exponential()) / 3.0;
                next_stall += gap * if kind == 1 { random_gap } else { even };
            }
            let stall = burst || (due && (kind == 1 || kind == 2)) || sample == odd;
            let factor = if stall {
                between(random, 3.0, 10.0)
            } else {
                1.0
            };
            let more = if burst { 3.0 } else { 1.0 };
            self.arrivals.push(count(random, rate * load * more));
            self.latency_s
                .push(0.01 * noise.next(random) * (0.2 * random.normal()).exp() * factor);
        }
    }

    fn counts(&mut self, random: &mut SplitMix) {
        let rate = within_factors(random, 20.0, 5_000.0);
        let churn = between(random, 0.0, 0.05);
        let again = between(random, 0.0, 0.02);
        let resumes = random.below(2) == 0;
        let (odd, stop) = (random.below(SECONDS), random.below(SECONDS));
        let pinned = between(random, 0.1, 0.7);
        for second in 0..SECONDS {
            let requests = count(random, rate * self.load[second * SAMPLES]);
            let first = if second == 0 { 50.0 } else { 0.0 };
            let opened = count(random, churn * requests) + first;
            let resumed = if resumes { (0.9 * opened).floor() } else { 0.0 };
            let failed = if (odd..odd + 3).contains(&second) {
                0.5
            } else {
                again
            };
            self.requests.push(requests);
            self.attempts
                .push(requests + count(random, failed * requests));
            self.opened.push(opened);
            self.resumed.push(resumed);
            // Who does not resume keeps what it has opened.
            self.full.push(if resumes {
                opened - resumed
            } else {
                first + count(random, 0.01 * requests)
            });
            self.received.push(requests);
            self.dropped.push(if second == odd || second == stop {
                30.0
            } else {
                0.0
            });
            let stopped = second == stop;
            let late = count(random, 0.001 * requests) + if stopped { 0.4 * requests } else { 0.0 };
            self.late.push(late.min(requests));
            self.generator
                .push(pinned * self.load[second * SAMPLES].min(1.3));
            self.generator_waits
                .push(0.01 * random.uniform() + if stopped { 0.4 } else { 0.0 });
            self.in_flight_limit.push(if stopped { 0.3 } else { 0.0 });
        }
    }

    /// A service that calls others so often for a request on average, each time for a while more
    /// often until caches are full, and once for some seconds.
    fn calls(&mut self, random: &mut SplitMix) {
        let rate = within_factors(random, 20.0, 2_000.0);
        let usual = 1.0 + 5.0 * random.uniform() * random.uniform();
        let (cold, full) = (between(random, 0.0, 3.0), random.below(40));
        let (odd, lasts) = (random.below(SECONDS), 1 + random.below(5));
        // Calls of one request differ as much as they may.
        let lumps = 1 + random.below(3);
        for second in 0..SECONDS {
            let requests = count(random, rate * self.load[second * SAMPLES]);
            let cold = if second < full { 1.0 + cold } else { 1.0 };
            let again = if (odd..odd + lasts).contains(&second) {
                1.8
            } else {
                1.0
            };
            let mean = requests * usual * cold * again / lumps as f64;
            self.called.0.push(requests);
            self.called.1.push(count(random, mean) * lumps as f64);
        }
    }

    /// What every detector says of it.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let (system, start_s) = ("store", 0.0);
        let sample_s = 1.0 / SAMPLES as f64;
        let names = ["main", "worker-0", "worker-1", "worker-2", "worker-3"];
        let threads: Vec<ThreadUse<'_>> = self
            .threads
            .iter()
            .zip(names)
            .map(|(cores, name)| ThreadUse {
                name,
                cores,
                waited: &[],
            })
            .collect();
        let whole: Vec<f64> = (0..self.idle.len())
            .map(|sample| self.threads.iter().map(|thread| thread[sample]).sum())
            .collect();
        let client = ConnectionCounts {
            system,
            client: "traffic",
            start_s,
            period_s: 1.0,
            requests: &self.requests,
            opened: &self.opened,
            full: &self.full,
            resumed: &self.resumed,
        };
        let found = [
            pool(&Phase {
                system,
                name: "acquired→released",
                inside: &self.phase.0,
                waiting: &self.phase.1,
            }),
            processor(&ProcessUse {
                system,
                process: "store",
                start_s,
                period_s: sample_s,
                cores: &whole,
                threads: &threads,
                idle: &self.idle,
                outside: &self.outside,
            }),
            queue(&QueueLevels {
                system,
                name: "store's queue",
                start_s,
                period_s: sample_s,
                levels: &self.queue,
                load: &self.load,
            }),
            exhaustion(&ResourceUse {
                system,
                what: "descriptors",
                start_s,
                period_s: sample_s,
                used: &self.descriptors,
                limit: 1024.0,
            }),
            growth(&LoopTurns {
                system,
                name: "convergence",
                size_of: "instances",
                span_s: (0.0, SECONDS as f64),
                turns: &self.turns,
            }),
            stalls(&SlotLatencies {
                system,
                name: "traffic",
                start_s,
                slot_s: sample_s,
                latency_s: &self.latency_s,
                arrivals: &self.arrivals,
            }),
            connections(&client),
            handshakes(&client),
            drops(&DatagramCounts {
                system,
                socket: "0.0.0.0:514",
                start_s,
                period_s: 1.0,
                received: &self.received,
                dropped: &self.dropped,
            }),
            retries(&AttemptCounts {
                system,
                client: "traffic",
                start_s,
                period_s: 1.0,
                requests: &self.requests,
                attempts: &self.attempts,
            }),
            repeats(&AttemptCounts {
                system: "request",
                client: "traffic",
                start_s,
                period_s: 1.0,
                requests: &self.called.0,
                attempts: &self.called.1,
            }),
            generator(&GeneratorUse {
                load: "traffic",
                start_s,
                period_s: 1.0,
                sent: &self.requests,
                late: &self.late,
                busiest: &self.generator,
                waiting_for_processor: &self.generator_waits,
                at_in_flight_limit: &self.in_flight_limit,
                outside: &[],
            }),
        ];
        found.into_iter().flatten().collect()
    }
}
