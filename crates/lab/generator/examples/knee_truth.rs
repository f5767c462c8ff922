//! How often a search for the knee is right: real searches, through the real generator
//! over real sockets, against queues of known capacity.
//!
//! `knee_truth [SEARCHES] [AT_A_TIME] [mm1|md1|pool|refusing] [brief|thorough]`. A brief search
//! takes up to four minutes; several at a time disturb each other little, at a thousand
//! requests a second each.

#[path = "../tests/target/mod.rs"]
mod target;
#[path = "../tests/workload/mod.rs"]
mod workload;

use std::error::Error;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use lab_generator::Local;
use lab_load::knee::{Capacity, Search, search};
use lab_load::slo::Slo;
use lab_load::{Flow, validity};
use stats::SplitMix;
use target::queue::{Queue, Work};
use target::{Behaviour, Target};
use workload::plain;

/// A queue, its objective, and the highest rate at which that holds.
fn plant(kind: &str, seed: u64) -> (Queue, &'static str, f64) {
    let spread = 1.0 + SplitMix::new(seed).uniform();
    match kind {
        // The fixed shares of capacity are those of simulations 4,000 s long.
        "md1" => {
            let queue = Queue::new(2000.0, 1, Work::Constant, seed);
            (queue, "p99 < 4.5ms", 1.0)
        }
        "pool" => {
            let queue = Queue::new(1000.0, 20, Work::Constant, seed);
            (queue, "p99 < 30ms", 1.0)
        }
        "refusing" => {
            let mut queue = Queue::new(1000.0, 20, Work::Exponential, seed);
            queue.room = 25;
            (queue, "errors < 1%", 1.0)
        }
        _ => {
            let capacity = 800.0 * spread;
            let queue = Queue::new(capacity, 1, Work::Exponential, seed);
            let truth = capacity - 100f64.ln() / 0.02;
            (queue, "p99 < 20ms, errors < 0.1%", truth)
        }
    }
}

/// What the objective would be at this rate, as good as a long simulation tells: above
/// 1 it is broken.
fn excess(queue: &Queue, objective: &str, rate: f64) -> f64 {
    let mut queue = queue.clone();
    queue.free.fill(0);
    let mut random = SplitMix::new(1);
    let bound = match objective {
        "p99 < 4.5ms" => 4_500_000,
        "p99 < 30ms" => 30_000_000,
        _ => u64::MAX,
    };
    let (mut now, mut slow) = (0.0, 0.0);
    let all = 4_000_000;
    for _ in 0..all {
        now += random.exponential() / rate * 1e9;
        let done = queue.take(now as u64);
        let late = done.is_none_or(|done| done - now as u64 > bound);
        slow += f64::from(u8::from(late));
    }
    slow / f64::from(all) / 0.01
}

fn one(kind: &str, pace: &str, seed: u64) -> Result<(f64, Capacity), Box<dyn Error + Send + Sync>> {
    let (queue, objective, mut truth) = plant(kind, seed);
    if truth == 1.0 {
        let capacity = 1e9 * queue.free.len() as f64 / queue.mean.as_nanos() as f64;
        let (mut low, mut high) = (capacity * 0.3, capacity * 1.2);
        while high > low * 1.001 {
            let middle = (low * high).sqrt();
            match excess(&queue, objective, middle) > 1.0 {
                true => high = middle,
                false => low = middle,
            }
        }
        truth = (low * high).sqrt();
    }
    let behaviour = Behaviour {
        queue: Some(queue),
        ..Behaviour::default()
    };
    let target = Target::start(0, behaviour)?;
    let mut workload = plain(target.address, 64);
    workload.connections.most = 2000;
    workload.seed = seed;
    let slo = Slo::parse(objective)?;
    let settings = match pace {
        "thorough" => Search::new(slo),
        _ => Search::brief(slo),
    };
    let mut local = Local::start(workload.clone())?;
    let guard = |recorded: &lab_load::Recorded| {
        let judged = settings.slo.judge(recorded);
        let reasons = validity::check_for(&workload, recorded, &judged).reasons;
        reasons.into_iter().map(|reason| reason.check).collect()
    };
    let found = search(&mut local, &settings, &guard, &mut |_| Flow::Continue)?;
    Ok((truth, found))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let text = |index: usize| arguments.get(index).map_or("", String::as_str);
    let searches: u64 = text(0).parse().unwrap_or(8);
    let at_a_time: u64 = text(1).parse().unwrap_or(4);
    let (kind, pace) = (text(2), text(3));
    let next = AtomicU64::new(0);
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= searches {
                        return;
                    }
                    match one(kind, pace, number + 1) {
                        Ok(one) => {
                            print(number, &one);
                            if let Ok(mut found) = found.lock() {
                                found.push(one);
                            }
                        }
                        Err(error) => println!("{number}: {error}"),
                    }
                }
            });
        }
    });
    if let Ok(found) = found.lock() {
        conclude(&found);
    }
}

fn print(number: u64, (truth, found): &(f64, Capacity)) {
    let invalid = found
        .points
        .iter()
        .filter(|point| !point.invalid.is_empty());
    let invalid = invalid.count();
    match found.knee {
        Some(knee) => println!(
            "{number}: truth {truth:.0}, found {:.0} [{:.0} to {:.0}] {:+.1} %{}; {} holds, \
             {invalid} invalid; {}",
            knee.rate,
            knee.low,
            knee.high,
            (knee.rate / truth - 1.0) * 100.0,
            if knee.low <= *truth && *truth <= knee.high {
                ""
            } else {
                " MISSED"
            },
            found.points.len(),
            found.limit
        ),
        None => println!(
            "{number}: truth {truth:.0}, {}: {}",
            found.limit, found.note
        ),
    }
}

fn conclude(found: &[(f64, Capacity)]) {
    let mut errors = Vec::new();
    let mut widths = Vec::new();
    let (mut covered, mut below, mut above) = (0, 0, 0);
    for (truth, found) in found {
        let Some(knee) = found.knee.filter(|_| found.limit == "target") else {
            continue;
        };
        errors.push((knee.rate / truth - 1.0).abs());
        widths.push(knee.high / knee.low - 1.0);
        match (*truth < knee.low, *truth > knee.high) {
            (true, _) => below += 1,
            (_, true) => above += 1,
            _ => covered += 1,
        }
    }
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        stats::nearest_rank(values, 0.5).unwrap_or(f64::NAN) * 100.0
    };
    println!(
        "{} searches, {} told a knee: {covered} hold the truth, {below} are above it, {above} \
         below; median error {:.2} %, width {:.1} %",
        found.len(),
        errors.len(),
        median(&mut errors),
        median(&mut widths)
    );
}
