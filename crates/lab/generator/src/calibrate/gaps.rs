//! Times in which a thread that never sleeps did not run: other work on its processor,
//! the hypervisor, a cgroup's quota.

use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity};
use wire::clock;

use super::CalibrateError;
use super::analysis::Gaps;
use super::timer::failed;

/// Spins on every processor that this process may use, on all at once.
pub(crate) fn on_each_processor(length: Duration) -> Result<Gaps, CalibrateError> {
    let allowed =
        sched_getaffinity(None).map_err(|error| failed("ask for processors")(error.into()))?;
    let processors = (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor));
    let mut threads = Vec::new();
    for processor in processors {
        let thread = std::thread::Builder::new().name("gaps".into());
        let thread = thread.spawn(move || on_one(processor, length));
        threads.push(thread.map_err(failed("start a thread"))?);
    }
    let mut all = Gaps::default();
    for thread in threads {
        let gaps = thread.join().unwrap_or_default();
        all.add(&gaps);
    }
    Ok(all)
}

fn on_one(processor: usize, length: Duration) -> Gaps {
    // Where that is not allowed the scheduler chooses, and the gaps are its own.
    let _ = clock::pin_to(processor as u32);
    let mut gaps = Gaps::default();
    let begin = Instant::now();
    let mut last = begin;
    while last - begin < length {
        let now = Instant::now();
        gaps.count(now - last);
        last = now;
    }
    gaps
}
