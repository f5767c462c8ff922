//! How much processor time work of 1 ms and of 10 ms really takes, alone and beside four
//! threads that spin, and what a spin that looks at the wall clock does in its place; and
//! what it costs to hand work to another thread.
//!
//! `cargo run --release -p graph --example work_precision [SECONDS]`, where each of the
//! eight rows takes so long (default 2).
#![allow(clippy::unwrap_used, reason = "an example may panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use graph::Nanos;
use graph::amount::Amount;
use graph::topology::Work;
use graph::work::{Calibration, Inbox, Job, SharedResources, Task, Worker, Workers, WorkersConfig};
use wire::poller::Poller;

struct Rows {
    length: Duration,
    worker: Worker,
    task: Task,
}

fn main() {
    let seconds = std::env::args()
        .nth(1)
        .map_or(2.0, |text| text.parse().unwrap());
    let calibration = Calibration::measure();
    println!(
        "an operation takes {:.3} ns (best {:.3}), a reading of the thread's clock {:.0} ns\n",
        calibration.op_ns, calibration.op_best_ns, calibration.clock_ns
    );
    let resources = SharedResources::open(calibration, &std::env::temp_dir()).unwrap();
    let mut rows = Rows {
        length: Duration::from_secs_f64(seconds),
        worker: Worker::new(&resources),
        task: resources
            .equipment()
            .task(&Work::Cpu(Amount::ZERO))
            .unwrap(),
    };
    println!("                               thread CPU, µs                   wall, µs");
    println!(
        "work      machine   by           p1       p50       p99       p50       p99   done at p50   n"
    );
    for nominal in [1_000_000, 10_000_000] {
        rows.of(nominal, "alone");
        let end = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !end.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            rows.of(nominal, "4 spin");
            end.store(true, Ordering::Relaxed);
        });
    }
    other_kinds(&resources);
    hand_over(&resources);
    let drift = calibration.recheck();
    println!("\nan operation takes {:+.1} % now", 100.0 * drift.share());
}

impl Rows {
    fn of(&mut self, nominal: Nanos, machine: &str) {
        self.row(nominal, machine, "thread CPU", |rows| {
            let worker = &mut rows.worker;
            worker
                .perform(&rows.task, nominal as f64, 0.0, Nanos::MAX)
                .unwrap();
        });
        self.row(nominal, machine, "wall clock", |_| {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_nanos(nominal) {
                std::hint::spin_loop();
            }
        });
    }

    fn row(&mut self, nominal: Nanos, machine: &str, by: &str, work: impl Fn(&mut Self)) {
        let begun = Instant::now();
        let (mut cpu, mut wall) = (Vec::new(), Vec::new());
        while begun.elapsed() < self.length {
            // Readings from outside: what the work says of itself is not taken for granted.
            let start = (Instant::now(), wire::clock::thread_cpu());
            work(self);
            cpu.push((wire::clock::thread_cpu() - start.1).as_secs_f64() * 1e6);
            wall.push(start.0.elapsed().as_secs_f64() * 1e6);
        }
        cpu.sort_by(f64::total_cmp);
        wall.sort_by(f64::total_cmp);
        let at = |sorted: &[f64], q| stats::nearest_rank(sorted, q).unwrap_or(f64::NAN);
        println!(
            "{:>5} ms  {machine:<8}  {by:<10} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>11.2} % {:>5}",
            nominal / 1_000_000,
            at(&cpu, 0.01),
            at(&cpu, 0.5),
            at(&cpu, 0.99),
            at(&wall, 0.5),
            at(&wall, 0.99),
            at(&cpu, 0.5) / (nominal as f64 / 1e5),
            cpu.len(),
        );
    }
}

/// What work of other kinds takes here.
fn other_kinds(resources: &Arc<SharedResources>) {
    println!("\nmedian of 101                   CPU, µs   wall, µs");
    let (zero, mut equipment) = (Amount::ZERO, resources.equipment());
    let memory = |set| Work::Memory {
        set,
        touches: Amount::ZERO,
    };
    let disk = |sync| Work::Disk {
        read: Amount::ZERO,
        write: Amount::ZERO,
        sync,
    };
    for (name, work, amount, second) in [
        ("50,000 operations", Work::Ops(zero.clone()), 50e3, 0.0),
        ("primes up to 250,000", Work::Primes(250_000), 0.0, 0.0),
        ("20,000 lines of 16 KiB", memory(16 << 10), 20e3, 0.0),
        ("20,000 lines of 64 MiB", memory(64 << 20), 20e3, 0.0),
        ("fork date", Work::Fork(vec!["date".into()]), 0.0, 0.0),
        ("4 KiB read, 4 written", disk(false), 4096.0, 4096.0),
        ("the same, synced", disk(true), 4096.0, 4096.0),
    ] {
        let task = equipment.task(&work).unwrap();
        let mut worker = Worker::new(resources);
        let mut one = || worker.perform(&task, amount, second, Nanos::MAX).unwrap();
        let (mut cpu, mut wall): (Vec<_>, Vec<_>) = (0..101)
            .map(|_| one())
            .map(|done| (done.cpu, done.wall))
            .unzip();
        cpu.sort_unstable();
        wall.sort_unstable();
        let (cpu, wall) = (cpu[50] as f64 / 1e3, wall[50] as f64 / 1e3);
        println!("{name:<28} {cpu:>10.1} {wall:>10.1}");
    }
}

/// No work at all, by a thread of a pool: what its way there and back costs.
fn hand_over(resources: &Arc<SharedResources>) {
    let mut poller = Poller::new().unwrap();
    let inbox = Inbox::new(poller.waker().clone());
    let config = WorkersConfig {
        name: "worker".to_owned(),
        threads: 1,
        queue: 1,
        cpus: Vec::new(),
    };
    let workers = Workers::new(resources, &inbox, config).unwrap();
    let nothing = Work::Ops(Amount::ZERO);
    let task = Arc::new(resources.equipment().task(&nothing).unwrap());
    let mut times = Vec::new();
    let mut ended = Vec::new();
    let cpu = wire::clock::thread_cpu();
    for key in 0..5000 {
        let begun = Instant::now();
        let job = Job {
            task: Arc::clone(&task),
            amount: 0.0,
            second: 0.0,
            key,
            deadline: Nanos::MAX,
        };
        workers.submit(job).unwrap();
        while ended.is_empty() {
            poller.wait(None).unwrap();
            inbox.drain(&mut ended);
        }
        ended.clear();
        times.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    let cpu = (wire::clock::thread_cpu() - cpu).as_secs_f64() * 1e6 / times.len() as f64;
    times.sort_by(f64::total_cmp);
    let at = |q| stats::nearest_rank(&times, q).unwrap_or(f64::NAN);
    println!(
        "\nto a worker and back: p50 {:.1} µs, p99 {:.1} µs, of which {cpu:.1} µs CPU of the event loop",
        at(0.5),
        at(0.99)
    );
}
