//! The file with one line for each request says the same as the histograms.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::target::{Behaviour, Target};
use crate::workload::{closed, failures, open, plain};
use lab_generator::{Local, SampleCounts};
use lab_load::arrivals::Process;
use lab_load::recording::Phase;
use lab_load::{Flow, Generate as _, Recorded, Segment, Workload};

/// A file in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a segment; its result, its samples as fields by column, and their numbers.
fn run(
    workload: Workload,
    segment: &Segment,
) -> (Recorded, Vec<BTreeMap<String, String>>, SampleCounts) {
    let memory = Memory::default();
    let (mut local, log) = Local::with_samples(workload, Box::new(memory.clone())).unwrap();
    let recorded = local.run(segment, &mut |_| Flow::Continue).unwrap();
    drop(local);
    let counts = log.finish().unwrap();
    let text = String::from_utf8(memory.0.lock().unwrap().clone()).unwrap();
    let mut lines = text.lines();
    let columns: Vec<String> = lines
        .next()
        .unwrap()
        .split(',')
        .map(str::to_owned)
        .collect();
    let samples = lines.map(|line| {
        let fields: Vec<String> = line.split(',').map(str::to_owned).collect();
        assert_eq!(fields.len(), columns.len(), "{line}");
        columns.iter().cloned().zip(fields).collect()
    });
    (recorded, samples.collect(), counts)
}

fn numbers(samples: &[BTreeMap<String, String>], column: &str) -> Vec<f64> {
    let fields = samples.iter().map(|sample| &sample[column]);
    let mut numbers: Vec<f64> = fields.filter_map(|field| field.parse().ok()).collect();
    numbers.sort_by(f64::total_cmp);
    numbers
}

#[test]
fn samples_are_what_the_histograms_were_made_of() {
    let target = Target::start(0, Behaviour::default()).unwrap();
    let mut workload = plain(target.address, 6);
    (workload.threads, workload.share.threads) = (2, 2);
    let (recorded, samples, counts) = run(workload, &open(Process::Poisson, 2000.0, 1.2));
    let seen = recorded.total.requests();
    assert_eq!((counts.written, counts.lost), (2400, 0));
    assert_eq!(samples.len(), 2400);
    let due = numbers(&samples, "intended_s");
    assert!(due.len() == 2400 && due[2399] < 1.2 && due[0] >= 0.0);
    assert_eq!(numbers(&samples, "waited_s").len() as u64, seen.waited);
    assert_eq!(
        numbers(&samples, "lateness_s").len() as u64,
        seen.lateness.count()
    );
    for (column, histogram) in [
        ("latency_intended_s", &seen.intended),
        ("latency_actual_s", &seen.actual),
    ] {
        let exact = numbers(&samples, column);
        assert_eq!(exact.len() as u64, histogram.count());
        for quantile in [0.5, 0.99, 1.0] {
            let expected = exact[(quantile * 2400.0_f64).ceil() as usize - 1];
            let found = histogram.quantile(quantile).unwrap().as_secs_f64();
            // Three digits, and whole microseconds.
            let allowed = expected * 2e-3 + 2e-6;
            assert!(
                (found - expected).abs() <= allowed,
                "{column} {quantile}: {found} {expected}"
            );
        }
    }
    assert!(samples.iter().all(|sample| {
        (&*sample["kind"], &*sample["status"], &*sample["failure"]) == ("get", "200", "")
    }));
}

#[test]
fn a_request_without_an_answer_says_why() {
    let behaviour = Behaviour {
        delay: Duration::from_secs(3600),
        ..Behaviour::default()
    };
    let target = Target::start(0, behaviour).unwrap();
    let mut workload = plain(target.address, 3);
    workload.timeout = Duration::from_millis(50);
    let (recorded, samples, _) = run(workload, &closed(5));
    let expected = vec![(Phase::Timeout, "timeout", 5)];
    assert_eq!(failures(&recorded.total.requests()), expected);
    assert_eq!(samples.len(), 5);
    for sample in samples {
        assert_eq!(sample["failure"], "timeout: timeout");
        assert_eq!(sample["latency_actual_s"], "");
    }
}

#[test]
fn of_a_load_that_cannot_begin_nothing_is_written() {
    let memory = Memory::default();
    let nobody = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
    let started = Local::with_samples(plain(nobody, 1), Box::new(memory.clone()));
    assert!(started.is_err());
    while Arc::strong_count(&memory.0) > 1 {
        std::thread::yield_now();
    }
    assert_eq!(*memory.0.lock().unwrap(), b"");
}

/// A disk that takes nothing until it is told to.
struct Stuck(Receiver<()>);

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Without a sender it is stuck no longer.
        let _ = self.0.recv();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_disk_that_is_too_slow_costs_samples_and_no_requests() {
    let target = Target::start(0, Behaviour::default()).unwrap();
    let (stuck, disk): (Sender<()>, _) = channel();
    let workload = plain(target.address, 16);
    let (mut local, log) = Local::with_samples(workload, Box::new(Stuck(disk))).unwrap();
    // More than can wait to be written.
    let recorded = local.run(&closed(80_000), &mut |_| Flow::Continue).unwrap();
    drop((local, stuck));
    let counts = log.finish().unwrap();
    assert_eq!(recorded.total.requests().answered, 80_000);
    assert_eq!(counts.written + counts.lost, 80_000);
    assert!((60_000..80_000).contains(&counts.written), "{counts:?}");
}

/// The truth is in the samples: when each answer came, to the nanosecond.
#[test]
fn answers_after_the_end_are_told_apart_exactly() {
    let late = Duration::from_millis(300);
    for (threads, delay, seconds) in [(1, late, 1.0), (2, late, 1.5), (2, Duration::ZERO, 1.25)] {
        let behaviour = Behaviour {
            delay,
            ..Behaviour::default()
        };
        let target = Target::start(0, behaviour).unwrap();
        let mut workload = plain(target.address, 100);
        workload.threads = threads;
        workload.share.threads = threads;
        let (recorded, samples, _) = run(workload, &open(Process::Poisson, 200.0, seconds));
        let number = |sample: &BTreeMap<String, String>, name: &str| sample[name].parse::<f64>();
        let came = samples.iter().map(|sample| {
            number(sample, "intended_s").unwrap() + number(sample, "latency_intended_s").unwrap()
        });
        let within = came.filter(|at| *at < seconds - 5e-10).count() as u64;
        let (own, after) = (recorded.sending(), recorded.after_end());
        assert_eq!(own.length, Duration::from_secs_f64(seconds));
        assert_eq!(own.requests().answered, within);
        assert_eq!(after.requests().answered, samples.len() as u64 - within);
        assert_eq!((own.planned, after.planned), (samples.len() as u64, 0));
        if delay == late {
            assert!(
                after.requests().answered > 20,
                "{}",
                after.requests().answered
            );
        }
    }
}
