//! What was asked for is what arrives: at the target, by its clock.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Mutex;
use std::time::Duration;

use crate::target::{Behaviour, Target};
use crate::workload::{open, plain, run};
use lab_load::arrivals::Process;
use stats::kolmogorov_smirnov;

const TRIES: usize = 3;
/// One load at a time: they would spoil each other.
static ALONE: Mutex<()> = Mutex::new(());

/// An answer that takes longer than this was held up by the machine: the target answers
/// at once.
const HELD_UP: Duration = Duration::from_micros(300);

/// Times at which requests came in at the target, in seconds, and the share of them that
/// the machine held up.
fn arrivals(process: Process, rate: f64, seconds: f64, threads: u32) -> (Vec<f64>, f64) {
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
    let held_up = seen.intended.count_above(HELD_UP) as f64 / planned as f64;
    let times = times.into_iter().map(|time| time as f64 * 1e-9);
    (times.collect(), held_up)
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
        let (times, held_up) = arrivals(Process::Poisson, rate, 3.0, 1);
        let mut gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_by(f64::total_cmp);
        let fit = kolmogorov_smirnov(&gaps, |gap| 1.0 - (-rate * gap).exp()).unwrap();
        // At a level of 1 %. A request that comes late changes the gaps on both of its
        // sides. (Evenly spaced requests have a distance of 0.63, bursts a larger one.)
        let allowed = 1.63 / (gaps.len() as f64).sqrt() + (2.0 * held_up).min(0.2);
        match fit.distance <= allowed {
            true => Ok(()),
            false => Err(format!(
                "seed 1: {fit:?}, allowed {allowed}, held up {held_up}"
            )),
        }
    });
}

#[test]
fn a_constant_rate_is_that_rate_at_the_target() {
    holds_once(|| {
        let (times, _) = arrivals(Process::Constant, 1000.0, 3.0, 1);
        let seen = (times.len() - 1) as f64 / (times[times.len() - 1] - times[0]);
        match (seen / 1000.0 - 1.0).abs() < 1e-3 {
            true => Ok(()),
            false => Err(format!("{seen}/s")),
        }
    });
}

/// More than a debug build may be able to send in time: it sends them nevertheless, and
/// never faster than asked. (A first request that the machine held up makes the others look
/// fast: hence the tries.)
#[test]
fn every_request_of_a_high_rate_is_sent_even_if_late() {
    holds_once(|| {
        let (times, held_up) = arrivals(Process::Constant, 50_000.0, 0.5, 2);
        let seen = (times.len() - 1) as f64 / (times[times.len() - 1] - times[0]);
        match seen < 50_050.0 {
            true => Ok(()),
            false => Err(format!("{seen}/s, held up {held_up}")),
        }
    });
}
