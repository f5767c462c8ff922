use std::collections::BinaryHeap;
use std::io::{Seek as _, Write as _};
use std::{cmp::Reverse, collections::VecDeque};

use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000_000;
/// What handling one event takes.
const HANDLING: u64 = 5_000;
/// What it takes from the kernel's look at the sockets to that at the clock.
const RETURN: u64 = 1_000;

#[test]
fn the_kernel_s_count_is_read() {
    assert_eq!(waited(b"123 456 7\n"), Some(456));
    assert_eq!(waited(b""), None);
    let mut queue = RunQueue::of_this_thread();
    let first = queue.since_last();
    assert!(queue.since_last() <= first + 1_000_000_000);
}

fn wait(began: u64, ended: u64, longest: u64, events: usize) -> Wait {
    Wait {
        began,
        ended,
        longest,
        events,
        full: false,
        interrupted: false,
    }
}

#[test]
fn what_a_wait_tells_was_ready_no_earlier_than_known() {
    // Asleep for 3 ms, and at once on a processor.
    assert_eq!(wait(MS, 4 * MS, 5 * MS, 1).before(0, 0), 0);
    // The kernel kept it waiting for 2 of them.
    assert_eq!(wait(MS, 4 * MS, 5 * MS, 1).before(MS, 2 * MS), 2 * MS);
    // It never slept: what was ready may be so since the wait before.
    assert_eq!(wait(MS, 4 * MS, 5 * MS, 1).before(0, 3 * MS), 4 * MS);
    assert_eq!(wait(MS, MS + 9, 5 * MS, 1).before(0, 0), MS + 9);
    // Stopped before it began, and slow to tell what had come meanwhile.
    assert_eq!(
        wait(900 * MS, 900 * MS + 80_000, 5 * MS, 9).before(0, 0),
        900 * MS + 80_000
    );
    // Asleep for a second although it was to be 5 ms.
    assert_eq!(wait(MS, 1_001 * MS, 5 * MS, 1).before(0, 0), 1_001 * MS);
}

#[test]
fn a_wait_that_was_broken_off_told_nothing() {
    assert_eq!(wait(MS, 4 * MS, 3 * MS, 0).ready_since(0, 0), 4 * MS);
    assert_eq!(wait(MS, 4 * MS, 5 * MS, 2).ready_since(0, 0), 4 * MS);
    // Kept from running before it looked at the clock, for as long as the kernel says or longer.
    assert_eq!(wait(MS, 4 * MS, 5 * MS, 2).ready_since(0, MS), 3 * MS);
    assert_eq!(wait(MS, 90 * MS, 5 * MS, 2).ready_since(0, MS), MS);
    // Stopped and continued.
    let interrupted = Wait {
        interrupted: true,
        ..wait(MS, 4 * MS, 5 * MS, 0)
    };
    assert_eq!(interrupted.ready_since(0, 0), MS);
    // Late to return from one whose time was up: nothing was ready then.
    assert_eq!(wait(MS, 90 * MS, 5 * MS, 0).ready_since(0, 0), 6 * MS);
    assert_eq!(wait(MS, 90 * MS, 5 * MS, 0).ready_since(0, 80 * MS), 6 * MS);
    let full = Wait {
        full: true,
        ..wait(MS, 4 * MS, 5 * MS, 256)
    };
    assert_eq!(full.ready_since(7, 0), 7);
}

/// Stretches in which the thread does not run, and whether the kernel counts them.
#[derive(Debug, Clone)]
struct Gaps(Vec<(u64, u64, bool)>);

/// A thread that runs when it may, in virtual time.
struct Thread {
    now: u64,
    gaps: Gaps,
    schedstat: File,
    queued: u64,
}

impl Thread {
    /// Goes on to `at`, and from there as soon as it may run.
    fn to(&mut self, at: u64) {
        self.now = self.now.max(at);
        let gap = self
            .gaps
            .0
            .iter()
            .find(|gap| (gap.0..gap.1).contains(&self.now));
        if let Some((_, end, counted)) = gap {
            if *counted {
                self.queued += end - self.now;
            }
            self.now = *end;
        }
    }

    /// Works for a while, with gaps between.
    fn work(&mut self, length: u64) {
        let until = self.now + length;
        let gap = self
            .gaps
            .0
            .iter()
            .find(|gap| (self.now + 1..until).contains(&gap.0));
        match gap.copied() {
            Some((begin, _, _)) => {
                let left = until - begin;
                self.to(begin);
                self.now += left;
            }
            None => self.now = until,
        }
        self.to(self.now);
    }
}

/// When each of the requests sent at these times is answered: first come, first served,
/// by so many at a time.
struct Target {
    free: BinaryHeap<Reverse<u64>>,
    service: VecDeque<u64>,
}

impl Target {
    fn new(servers: usize, service: &[u64]) -> Self {
        Self {
            free: (0..servers).map(|_| Reverse(0)).collect(),
            service: service.iter().copied().collect(),
        }
    }

    fn ask(&mut self, at: u64) -> u64 {
        let Reverse(free) = self.free.pop().unwrap();
        let end = free.max(at) + self.service.pop_front().unwrap();
        self.free.push(Reverse(end));
        end
    }
}

/// Latencies from the intended send: as measured, at least, and in truth.
fn simulate(due: &[u64], service: &[u64], servers: usize, gaps: Gaps) -> Vec<[u64; 3]> {
    let mut ideal = Target::new(servers, service);
    let truth: Vec<u64> = due.iter().map(|due| ideal.ask(*due) - due).collect();

    let mut schedstat = tempfile::tempfile().unwrap();
    let mut thread = Thread {
        now: 0,
        gaps,
        schedstat: schedstat.try_clone().unwrap(),
        queued: 0,
    };
    let mut reaction = Reaction::new(0);
    reaction.queue = RunQueue {
        file: Some(thread.schedstat.try_clone().unwrap()),
        last: 0,
    };
    let mut target = Target::new(servers, service);
    // Answers under way, with the number of their request; when each was sent.
    let mut under_way: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut sent = Vec::new();
    let mut seen = vec![[0; 3]; due.len()];
    let mut bursts = Vec::new();
    let mut left = due.len();
    while left > 0 {
        // What is due is sent.
        while sent.len() < due.len() && due[sent.len()] <= thread.now {
            let late = thread.now - due[sent.len()];
            bursts.push(reaction.sent(late, thread.now));
            sent.push(thread.now);
            // It leaves some time after it counts as sent.
            thread.work(HANDLING);
            under_way.push(Reverse((target.ask(thread.now), sent.len() - 1)));
            reaction.held(sent[sent.len() - 1], thread.now, 0);
            thread.work(HANDLING);
        }
        let began = thread.now;
        let next_due = due.get(sent.len()).copied().unwrap_or(u64::MAX);
        let wake_at = next_due.min(began + LONGEST_WAIT);
        let ready = under_way.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
        // A stop ends the wait, and the kernel says so when it is over.
        let wake = ready.min(wake_at).max(began);
        let stop = |gap: &&(u64, u64, bool)| !gap.2 && (began..wake).contains(&gap.0);
        let stop = thread.gaps.0.iter().find(stop).map(|gap| gap.1);
        let interrupted = stop.is_some();
        thread.to(stop.unwrap_or(wake));
        let mut events = Vec::new();
        while !interrupted
            && let Some(Reverse((at, number))) = under_way.peek().copied()
            && at <= thread.now
        {
            under_way.pop();
            events.push(number);
        }
        thread.work(RETURN);
        let ended = thread.now;
        schedstat.rewind().unwrap();
        write!(schedstat, "0 {} 0\n    ", thread.queued).unwrap();
        reaction.woken(Wait {
            began,
            ended,
            longest: wake_at.saturating_sub(began),
            events: events.len(),
            full: false,
            interrupted,
        });
        left -= events.len();
        let mut in_flight = (under_way.len() + events.len()) as u32;
        for number in events {
            in_flight -= 1;
            let measured = thread.now - due[number];
            seen[number] = [measured, measured, truth[number]];
            let answered = Answered {
                kind: number,
                at: thread.now,
                intended: measured,
                actual: thread.now - sent[number],
                late: sent[number] - due[number],
                burst: bursts[number],
                pooled: 0,
            };
            reaction.answered(answered, in_flight);
            thread.work(HANDLING);
        }
        // A preemption while events were handled shows in what was handled after it.
        schedstat.rewind().unwrap();
        write!(schedstat, "0 {} 0\n    ", thread.queued).unwrap();
        reaction.settle(|answered, _, added, _| {
            seen[answered.kind][1] = answered.intended.saturating_sub(added);
        });
    }
    seen
}

fn quantile(values: &[u64], quantile: f64) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (quantile * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

#[test]
fn a_thread_that_stops_between_counting_and_sending_is_in_doubt() {
    let due: Vec<u64> = (1..100).map(|number| number * 6 * MS).collect();
    let begin = due[40] + HANDLING / 2;
    for counted in [false, true] {
        let gaps = Gaps(vec![(begin, begin + 20 * MS, counted)]);
        let seen = simulate(&due, &[3 * MS; 99], 1, gaps);
        let [measured, least, truth] = seen[40];
        assert!(measured >= 20 * MS && truth == 3 * MS, "{:?}", seen[40]);
        assert!(least <= 4 * MS, "{:?}", seen[40]);
        // What came before is not.
        assert!(seen[..40].iter().all(|row| row[0] == row[1]));
    }
}

#[test]
fn a_thread_that_stops_between_waking_and_looking_at_the_clock_is_in_doubt() {
    // Two at a time, the second answered 1 ms later; nothing is due meanwhile.
    let due: Vec<u64> = (0..100)
        .map(|number| (number / 2 * 100 + number % 2) * MS)
        .collect();
    let begin = due[40] + RETURN + HANDLING + 3 * MS + RETURN / 2;
    for counted in [false, true] {
        let gaps = Gaps(vec![(begin, begin + 20 * MS, counted)]);
        let seen = simulate(&due, &[3 * MS; 100], 2, gaps);
        let [measured, least, truth] = seen[41];
        assert!(measured >= 20 * MS && truth == 3 * MS, "{:?}", seen[41]);
        assert!(least <= 4 * MS, "{:?}", seen[41]);
        assert!(seen[..40].iter().all(|row| row[0] == row[1]));
    }
}

/// Loads of up to 60 % of what the target can do, beside gaps of the generator.
fn loads() -> impl Strategy<Value = (Vec<u64>, Vec<u64>, usize, Gaps)> {
    let arrivals = proptest::collection::vec((0.0..1.0_f64, 0.0..1.0_f64), 50..400);
    let gaps = proptest::collection::vec((0_u64..400, 100_u64..80_000, any::<bool>()), 0..6);
    (arrivals, 1..4_usize, 1..8_u64, 0.1..0.6_f64, gaps).prop_map(
        |(draws, servers, service_ms, share, gaps)| {
            let mut at = 0;
            let service_ns = (service_ms * MS) as f64;
            let mut due = Vec::new();
            let mut service = Vec::new();
            for (between, length) in draws {
                let mean = service_ns / (servers as f64 * share);
                at += (-(1.0 - between).ln() * mean) as u64;
                due.push(at);
                service.push((service_ns * (0.5 + length)) as u64);
            }
            // Gaps do not overlap.
            let mut begin = 0;
            let gaps = gaps.into_iter().map(|(after_ms, length_us, counted)| {
                begin += after_ms * MS;
                let end = begin + length_us * 1_000;
                let gap = (begin, end, counted);
                begin = end + MS;
                gap
            });
            (due, service, servers, Gaps(gaps.collect()))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// Whatever keeps the thread from running, each percentile of what a generator
    /// without faults would have seen lies between what was measured and its least.
    #[test]
    fn the_truth_lies_within_the_bounds((due, service, servers, gaps) in loads()) {
        let seen = simulate(&due, &service, servers, gaps);
        let column = |at: usize| -> Vec<u64> { seen.iter().map(|row| row[at]).collect() };
        let (measured, least, truth) = (column(0), column(1), column(2));
        for share in [0.1, 0.5, 0.9, 0.99, 1.0] {
            let truth = quantile(&truth, share);
            prop_assert!(truth <= quantile(&measured, share), "p{share} {truth}");
            let least = quantile(&least, share);
            // What is negligible may come once from sending and once from reading, and stops
            // that are as short may go unnoticed. Within a tenth is the same number.
            let nearly = truth + truth / 10 + 2 * NEGLIGIBLE + 2 * OVERSLEPT;
            prop_assert!(least <= nearly, "p{share} {least} > {truth}");
        }
    }

    /// Without gaps nothing is in doubt: a thread that is merely busy is not blamed.
    #[test]
    fn a_thread_that_runs_is_not_blamed((due, service, servers, _) in loads()) {
        let seen = simulate(&due, &service, servers, Gaps(Vec::new()));
        let doubtful = seen.iter().filter(|row| row[0] - row[1] > 2 * NEGLIGIBLE).count();
        prop_assert!(doubtful == 0, "{doubtful} of {}", seen.len());
    }
}
