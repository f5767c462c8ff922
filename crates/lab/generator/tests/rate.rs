//! What was asked for is what arrives: at the target, by its clock.
#![allow(clippy::unwrap_used)]

mod target;
mod workload;

use std::sync::Mutex;

use lab_load::arrivals::Process;
use stats::kolmogorov_smirnov;
use target::{Behaviour, Target};
use workload::{open, plain, run};

const TRIES: usize = 3;
/// One load at a time: they would spoil each other.
static ALONE: Mutex<()> = Mutex::new(());

/// Times at which requests of a second or more came in at the target, in seconds.
fn arrivals(process: Process, rate: f64, seconds: f64, threads: u32) -> Vec<f64> {
    let _alone = ALONE.lock();
    let behaviour = Behaviour {
        log: true,
        ..Behaviour::default()
    };
    let target = Target::start(0, behaviour).unwrap();
    let mut workload = plain(target.address, 50);
    (workload.threads, workload.share.threads) = (threads, threads);
    let total = run(workload, &open(process, rate, seconds)).total;
    let planned = (rate * seconds) as u64;
    let seen = total.requests();
    assert_eq!(
        (total.planned, seen.sent, seen.answered),
        (planned, planned, planned)
    );
    let mut times = target.end();
    times.sort_unstable();
    assert_eq!(times.len() as u64, planned);
    times.into_iter().map(|time| time as f64 * 1e-9).collect()
}

/// Tries a measurement again when the machine may have spoilt it.
fn holds_once(measure: impl Fn() -> Result<(), String>) {
    let mut wrong = Vec::new();
    for _ in 0..TRIES {
        match measure() {
            Ok(()) => return,
            Err(error) => wrong.push(error),
        }
    }
    panic!("{wrong:#?}");
}

#[test]
fn poisson_arrivals_are_poisson_at_the_target() {
    let rate = 1000.0;
    holds_once(|| {
        let times = arrivals(Process::Poisson, rate, 3.0, 1);
        let mut gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_by(f64::total_cmp);
        let fit = kolmogorov_smirnov(&gaps, |gap| 1.0 - (-rate * gap).exp()).unwrap();
        match fit.p_value > 0.01 {
            true => Ok(()),
            false => Err(format!("seed 1: {fit:?}")),
        }
    });
}

#[test]
fn a_constant_rate_is_that_rate_at_the_target() {
    holds_once(|| {
        let times = arrivals(Process::Constant, 1000.0, 3.0, 1);
        let seen = (times.len() - 1) as f64 / (times[times.len() - 1] - times[0]);
        match (seen / 1000.0 - 1.0).abs() < 1e-3 {
            true => Ok(()),
            false => Err(format!("{seen}/s")),
        }
    });
}

/// More than a debug build may be able to send in time: it sends them nevertheless.
#[test]
fn every_request_of_a_high_rate_is_sent_even_if_late() {
    let times = arrivals(Process::Constant, 50_000.0, 0.5, 2);
    let seen = (times.len() - 1) as f64 / (times[times.len() - 1] - times[0]);
    assert!(seen < 50_050.0, "never faster than asked: {seen}/s");
}
